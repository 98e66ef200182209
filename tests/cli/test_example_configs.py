"""Every example configuration is checked as far as it can be without its model: a dry run on the data it names."""

from __future__ import annotations

import importlib.util
import os
import shutil
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from rollwise.cli.config import read_config
from rollwise.cli.train import plan
from rollwise.tasks.datasets import load_rows
from rollwise.tasks.models import embedded_model_path
from rollwise.types import RollwiseError

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
CONFIGS = sorted(path.relative_to(EXAMPLES).as_posix() for path in EXAMPLES.rglob("*.yaml"))
HUB_ONLY = {"paper/logiqa.yaml"}


@pytest.fixture(autouse=True)
def data_of_ours(data_folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("ROLLWISE_DATA", str(data_folder))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="session")
def chat_model(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The embedded model with a chat template, as instruct models have one."""
    folder = tmp_path_factory.mktemp("model") / "chat"
    shutil.copytree(embedded_model_path(), folder)
    (folder / "chat_template.jinja").write_text("{% for message in messages %}{{ message['content'] }}{% endfor %}")
    return str(folder)


def test_there_is_a_config_per_data_set_of_the_paper() -> None:
    assert {f"paper/{name}.yaml" for name in ("gsm8k", "math", "logiqa", "colota")} <= set(CONFIGS)


@pytest.mark.parametrize("name", CONFIGS)
def test_an_example_passes_a_dry_run_with_a_model_that_is_at_hand(name: str, chat_model: str) -> None:
    changed: dict[str, Any] = {"model": chat_model, "gguf_file": None}
    if name in HUB_ONLY:
        with pytest.raises(RollwiseError, match="the hub is offline"):
            plan(read_config(EXAMPLES / name, changed))
        changed["data.source"] = "logiqa2"
    config = read_config(EXAMPLES / name, changed)
    lines = "\n".join(plan(config))
    assert f"= N = {config.budget} rollouts" in lines
    assert not list(Path.cwd().iterdir())


@pytest.mark.parametrize("name", [name for name in CONFIGS if name.startswith("paper/") and name not in HUB_ONLY])
def test_the_papers_configs_are_one_epoch_of_adamw_with_cosine_and_two_rows_per_device(name: str) -> None:
    config = read_config(EXAMPLES / name, {})
    assert config.steps == len(load_rows(config.data)) // config.prompts_per_step
    assert (config.rollouts_per_prompt, config.compare_uniform) == (8, True)
    assert config.trainer == {
        "optim": "adamw_torch",
        "lr_scheduler_type": "cosine",
        "per_device_train_batch_size": 2,
    }
    assert config.data.judged_by == config.rewards[0]
    assert config.eval_data is not None and config.eval_data.split == "test"


def load_search() -> ModuleType:
    place = importlib.util.spec_from_file_location("search", EXAMPLES / "paper" / "search_learning_rate.py")
    assert place is not None and place.loader is not None
    module = importlib.util.module_from_spec(place)
    place.loader.exec_module(module)
    return module


def test_the_search_validates_on_rows_it_does_not_train_on_and_never_on_the_test_split() -> None:
    search = load_search()
    path = EXAMPLES / "paper" / "math.yaml"
    settings = search.split_rows(read_config(path, {}), 100)
    run = search.command(path, 1e-6, 3, Path("out"), settings, ["--model", "embedded"])
    assert os.path.basename(run[0]) == "rollwise"
    import yaml

    pairs = dict(text.split("=", 1) for text in run if "=" in text)
    changed = {key: yaml.safe_load(value) for key, value in pairs.items()}
    config = read_config(path, changed | {"model": "embedded"})
    train, held = load_rows(config.data), load_rows(config.eval_data)
    assert (len(train), len(held)) == (3900, 100)
    assert not set(train["id"]) & set(held["id"])
    assert config.eval_data.split == "train"
    assert search.accuracy({"evaluation": {"adaroll": {"greedy": 0.5, "sampled": 0.25}}}) == 0.25
