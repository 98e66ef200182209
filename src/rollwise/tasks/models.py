"""Where a model comes from: the embedded one, a folder, a hub id, or a GGUF file, as something a trainer can use.

torch and transformers are imported inside the functions that load weights; finding a model needs neither.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import tempfile
import threading
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from rollwise.suggest import nearest
from rollwise.types import RollwiseError

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

EMBEDDED = "embedded"
"""The name that stands for the model inside this package."""

WEIGHTS = ("*.safetensors", "*.bin")
DTYPES = ("float32", "bfloat16", "float16", "auto")
SOURCE_NOTE = "rollwise_source.json"

_loading = threading.Lock()
"""transformers switches weight tying off for the whole process while it loads: two threads that load leave it off."""


def embedded_model_path() -> Path:
    """The folder of the embedded model: a Llama of 88 thousand parameters, pretrained on `rollwise.tasks.chains`."""
    return Path(str(resources.files("rollwise.tasks") / "assets" / "chains-tiny"))


def locate_model(name: str | os.PathLike[str], gguf_file: str | None = None) -> tuple[str, str | None]:
    """(folder or hub id, GGUF file in it or None) for "embedded", a folder, a .gguf file or a hub id.

    Reads no weights. A folder without `config.json` but with one .gguf file is taken for that file.

    Raises:
        RollwiseError: a path that does not exist, a folder without weights, or one with several .gguf files to choose.
    """
    given = os.fspath(name)
    if given == EMBEDDED:
        return str(embedded_model_path()), None
    path = Path(given).expanduser()
    if path.is_file():
        if path.suffix != ".gguf":
            raise RollwiseError(f"model: {given} is a file but no .gguf; give the folder it lies in")
        return str(path.parent), path.name
    if not path.is_dir():
        if given.startswith(("/", ".", "~")) or given.endswith(".gguf") or given.count("/") > 1:
            raise RollwiseError(f"model: {given} does not exist; give a folder, a .gguf file, a hub id or 'embedded'")
        return given, gguf_file
    if gguf_file is not None:
        if not (path / gguf_file).is_file():
            raise RollwiseError(f"gguf_file: {given} has no {gguf_file}; {_offer(path, '*.gguf')}")
        return str(path), gguf_file
    if not (path / "config.json").is_file():
        found = sorted(file.name for file in path.glob("*.gguf"))
        if len(found) == 1:
            return str(path), found[0]
        if found:
            raise RollwiseError(f"model: {given} has several .gguf files; set gguf_file to one of {', '.join(found)}")
        raise RollwiseError(f"model: {given} has no config.json and no .gguf file; give a saved model's folder")
    if not any(file for pattern in WEIGHTS for file in path.glob(pattern)):
        raise RollwiseError(f"model: {given} has a config.json but no weights; it needs a .safetensors file")
    return str(path), None


def load_model_and_tokenizer(
    name: str | os.PathLike[str], *, gguf_file: str | None = None, dtype: str = "float32"
) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """The causal language model and its tokenizer; a tokenizer without a padding token gets the end-of-text one.

    Args:
        name: as for `locate_model`.
        gguf_file: the file to take of a folder or hub repository; its weights are de-quantised.
        dtype: the type of the loaded weights, one of DTYPES; "auto" is that of the file, of GGUF float32.

    Raises:
        RollwiseError: absent, incomplete or unreadable models, and an unreachable hub, in one line.
    """
    from transformers import AutoModelForCausalLM, AutoTokenizer

    if dtype not in DTYPES:
        raise RollwiseError(f"dtype: {dtype!r} is no type of weights; {nearest(dtype, DTYPES)}")
    folder, file = locate_model(name, gguf_file)
    local = Path(folder).is_dir()
    options: dict[str, Any] = {"gguf_file": file} if file else {}
    if not local and not hub_reachable():
        options["local_files_only"] = True
    try:
        tokenizer = AutoTokenizer.from_pretrained(folder, **options)
        with _loading:
            model = AutoModelForCausalLM.from_pretrained(folder, dtype="float32" if file else dtype, **options)
    # Every library below has errors of its own (safetensors, gguf, hub), and all mean that this model can't be had.
    except Exception as error:
        raise RollwiseError(_explain(os.fspath(name), local, options, error)) from error
    if tokenizer.pad_token_id is None:
        tokenizer.pad_token = tokenizer.eos_token
    return (_plain_copy(model, dtype) if file else model), tokenizer


def materialise(
    name: str | os.PathLike[str],
    out_dir: str | os.PathLike[str],
    *,
    gguf_file: str | None = None,
    dtype: str = "bfloat16",
) -> Path:
    """Save a model, a GGUF file above all, as a folder of safetensors and tokenizer files; returns that folder.

    A folder written earlier from the same source is used again. It appears whole or not at all, so that processes may
    ask for it at the same time.

    Raises:
        RollwiseError: as `load_model_and_tokenizer`, and where `out_dir` holds something else.
    """
    target = Path(out_dir)
    folder, file = locate_model(name, gguf_file)
    note = {"source": file or Path(folder).name, "dtype": dtype}
    if file and Path(folder, file).is_file():
        note["bytes"] = str(Path(folder, file).stat().st_size)
    if _holds(target, note):
        return target
    model, tokenizer = load_model_and_tokenizer(folder, gguf_file=file, dtype=dtype)
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=f".{target.name}-") as place:
        draft = Path(place) / target.name
        model.save_pretrained(draft)
        tokenizer.save_pretrained(draft)
        (draft / SOURCE_NOTE).write_text(json.dumps(note) + "\n")
        # A rename onto a filled folder fails: another process was first, and what lies there is checked below.
        with contextlib.suppress(OSError):
            draft.rename(target)
    if not _holds(target, note):
        raise RollwiseError(f"out_dir: {target} could not be written; give a folder on a writable disk")
    return target


def hub_reachable(timeout: float = 5.0) -> bool:
    """Whether the model hub answers; asking first spares a minute of retries. Behind a proxy it is assumed to."""
    from huggingface_hub import constants

    if constants.HF_HUB_OFFLINE:
        return False
    if any(os.environ.get(name) for name in ("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy")):
        return True
    place = urlsplit(constants.ENDPOINT)
    try:
        socket.create_connection((place.hostname or "", place.port or 443), timeout).close()
    except OSError:
        return False
    return True


def _plain_copy(model: Any, dtype: str) -> Any:
    """The same weights in a fresh model: one loaded from GGUF counts as quantised and refuses to be saved."""
    import torch
    from transformers import AutoModelForCausalLM

    config = model.config
    if hasattr(config, "quantization_config"):
        del config.quantization_config
    plain = AutoModelForCausalLM.from_config(config, dtype=torch.float32 if dtype == "auto" else getattr(torch, dtype))
    plain.load_state_dict(model.state_dict())
    plain.generation_config = model.generation_config
    return plain.eval()


def _holds(target: Path, note: dict[str, str]) -> bool:
    """Whether `target` is a model written from the source of `note`; raises where it holds anything else."""
    if not target.exists() or (target.is_dir() and not any(target.iterdir())):
        return False
    written = target / SOURCE_NOTE
    if written.is_file() and json.loads(written.read_text()) == note:
        return True
    raise RollwiseError(f"out_dir: {target} already holds something else; give a new or empty folder")


def _explain(name: str, local: bool, options: dict[str, Any], error: Exception) -> str:
    if not local and options.get("local_files_only"):
        return f"model: {name} is neither a folder nor in the hub's cache, and the hub is offline; give a local folder"
    first = (str(error).strip().splitlines() or [""])[0]
    return f"model: {name} could not be loaded ({type(error).__name__}: {first[:200]})"


def _offer(path: Path, pattern: str) -> str:
    found = sorted(file.name for file in path.glob(pattern))
    return f"it has {', '.join(found)}" if found else f"it has no {pattern}"
