"""Models: the embedded one as published, every kind of source, GGUF files made usable, faults in one line."""

from __future__ import annotations

import json
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest
import torch
from transformers import AutoConfig, AutoModelForCausalLM

from rollwise.tasks.chains import LONGEST, build_chains
from rollwise.tasks.models import embedded_model_path, load_model_and_tokenizer, locate_model, materialise
from rollwise.types import RollwiseError


@pytest.fixture(scope="module")
def tiny_gguf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A GGUF file of a one-layer Llama over bytes, weights from a fixed seed."""
    path = tmp_path_factory.mktemp("gguf") / "tiny.gguf"
    rng = np.random.default_rng(0)
    width, feed, words = 32, 64, ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256)), "a"]
    writer = gguf.GGUFWriter(str(path), "llama")
    writer.add_context_length(64)
    writer.add_embedding_length(width)
    writer.add_block_count(1)
    writer.add_feed_forward_length(feed)
    writer.add_head_count(4)
    writer.add_head_count_kv(4)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(width // 4)
    writer.add_vocab_size(len(words))
    writer.add_tokenizer_model("llama")
    writer.add_token_list(words)
    writer.add_token_scores([0.0] * len(words))
    writer.add_token_types([2, 3, 3, *([6] * 256), 1])
    writer.add_unk_token_id(0)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    shapes = {"token_embd": (len(words), width), "output": (len(words), width)}
    shapes |= {f"blk.0.attn_{part}": (width, width) for part in ("q", "k", "v", "output")}
    shapes |= {"blk.0.ffn_gate": (feed, width), "blk.0.ffn_up": (feed, width), "blk.0.ffn_down": (width, feed)}
    shapes |= {"output_norm": (width,), "blk.0.attn_norm": (width,), "blk.0.ffn_norm": (width,)}
    for name, shape in shapes.items():
        writer.add_tensor(f"{name}.weight", rng.normal(0, 0.1, shape).astype(np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def test_the_embedded_model_is_small_and_plain_transformers() -> None:
    folder = embedded_model_path()
    assert sum(file.stat().st_size for file in folder.iterdir()) < 2 * 1024**2
    assert json.loads((folder / "config.json").read_text())["model_type"] == "llama"
    model, tokenizer = load_model_and_tokenizer("embedded")
    assert sum(weight.numel() for weight in model.parameters()) == 87_872
    assert (tokenizer.pad_token, tokenizer.eos_token) == ("<pad>", "<eos>")
    assert len(tokenizer("7+5*3      =")["input_ids"]) == LONGEST + 2
    assert tokenizer.decode(tokenizer("7+5*3      =")["input_ids"]) == "7+5*3      ="


def test_the_embedded_model_spans_always_solved_to_never_solved() -> None:
    """Sampled at temperature 1, with the spread that its README publishes."""
    model, tokenizer = load_model_and_tokenizer("embedded")
    torch.manual_seed(0)
    shares = {}
    for family, length in (("plus", 2), ("minus", 2), ("mixed", 4), ("times", 8)):
        rows = build_chains("test", 30, seed=1, families=(family,), lengths=(length,))
        prompts = tokenizer(list(rows["prompt"]) * 8, return_tensors="pt")
        ids = model.generate(
            prompts["input_ids"],
            attention_mask=prompts["attention_mask"],
            max_new_tokens=LONGEST + 1,
            do_sample=True,
            top_k=0,
        )
        texts = tokenizer.batch_decode(ids[:, LONGEST + 2 :], skip_special_tokens=True)
        shares[family] = np.mean([text == answer for text, answer in zip(texts, list(rows["answer"]) * 8)])
    assert shares["plus"] > 0.95
    assert 0.55 < shares["minus"] < 0.85
    assert 0.15 < shares["mixed"] < 0.45
    assert shares["times"] < 0.02


def test_a_gguf_file_becomes_a_model_that_can_be_saved_and_used_again(tiny_gguf: Path, tmp_path: Path) -> None:
    folder = materialise(tiny_gguf, tmp_path / "model", dtype="float32")
    assert folder == tmp_path / "model"
    assert (folder / "model.safetensors").is_file()
    stored, _ = load_model_and_tokenizer(folder)
    direct, _ = load_model_and_tokenizer(tiny_gguf.parent, gguf_file=tiny_gguf.name)
    ids = torch.tensor([[1, 70, 71, 72]])
    assert torch.equal(stored(ids).logits, direct(ids).logits)
    written = next(tensor for tensor in gguf.GGUFReader(str(tiny_gguf)).tensors if tensor.name == "token_embd.weight")
    assert np.array_equal(stored.get_input_embeddings().weight.detach().numpy(), written.data)
    stored.save_pretrained(tmp_path / "again")


def test_materialising_twice_or_at_once_writes_once(tiny_gguf: Path, tmp_path: Path) -> None:
    target = tmp_path / "model"
    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(lambda _: materialise(tiny_gguf, target), range(2))) == [target, target]
    before = (target / "model.safetensors").stat().st_mtime_ns
    assert materialise(tiny_gguf, target) == target
    assert (target / "model.safetensors").stat().st_mtime_ns == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["model"]


def test_threads_that_load_at_once_leave_weight_tying_on(tiny_gguf: Path, tmp_path: Path) -> None:
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: load_model_and_tokenizer("embedded"), range(24)))
    config = AutoConfig.from_pretrained(embedded_model_path(), tie_word_embeddings=True)
    tied = AutoModelForCausalLM.from_config(config)
    assert tied.lm_head.weight is tied.get_input_embeddings().weight


def test_weights_are_stored_in_the_type_asked_for(tiny_gguf: Path, tmp_path: Path) -> None:
    stored, _ = load_model_and_tokenizer(materialise(tiny_gguf, tmp_path / "half"), dtype="auto")
    assert stored.dtype == torch.bfloat16


def test_materialising_over_something_else_is_refused(tiny_gguf: Path, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    refuses(lambda: materialise(tiny_gguf, tmp_path), "already holds something else")
    folder = materialise(tiny_gguf, tmp_path / "model")
    refuses(lambda: materialise("embedded", folder), "already holds something else")


def test_a_folder_with_one_gguf_file_stands_for_it(tiny_gguf: Path, tmp_path: Path) -> None:
    shutil.copy(tiny_gguf, tmp_path / "one.gguf")
    assert locate_model(tmp_path) == (str(tmp_path), "one.gguf")
    assert locate_model(tmp_path / "one.gguf") == (str(tmp_path), "one.gguf")
    shutil.copy(tiny_gguf, tmp_path / "two.gguf")
    refuses(lambda: locate_model(tmp_path), "set gguf_file to one of one.gguf, two.gguf")
    assert locate_model(tmp_path, "two.gguf") == (str(tmp_path), "two.gguf")
    refuses(lambda: locate_model(tmp_path, "three.gguf"), "it has one.gguf, two.gguf")


def test_names_and_hub_ids_are_told_from_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert locate_model("embedded") == (str(embedded_model_path()), None)
    assert locate_model("owner/model") == ("owner/model", None)
    monkeypatch.chdir(tmp_path)
    shutil.copytree(embedded_model_path(), tmp_path / "owner" / "model")
    assert locate_model("owner/model") == ("owner/model", None)
    assert load_model_and_tokenizer("owner/model")[0].num_parameters() == 87_872


@pytest.mark.parametrize(
    ("kept", "named"),
    [
        ((), "no config.json and no .gguf file"),
        (("config.json",), "no weights"),
        (("model.safetensors",), "no config.json"),
        (("config.json", "model.safetensors"), "could not be loaded"),
    ],
)
def test_an_incomplete_folder_is_named_with_what_is_missing(kept: tuple[str, ...], named: str, tmp_path: Path) -> None:
    for name in kept:
        shutil.copy(embedded_model_path() / name, tmp_path)
    refuses(lambda: load_model_and_tokenizer(tmp_path), named)


@pytest.mark.parametrize("file", ["model.safetensors", "config.json"])
def test_a_corrupt_file_is_reported_in_one_line(file: str, tmp_path: Path) -> None:
    shutil.copytree(embedded_model_path(), tmp_path / "model")
    (tmp_path / "model" / file).write_bytes(b"no such thing")
    refuses(lambda: load_model_and_tokenizer(tmp_path / "model"), "could not be loaded")


def test_a_corrupt_gguf_file_is_reported_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "bad.gguf").write_bytes(b"GGUF" + bytes(64))
    refuses(lambda: load_model_and_tokenizer(tmp_path / "bad.gguf"), "could not be loaded")


@pytest.mark.parametrize(
    ("name", "named"),
    [
        ("/no/such/folder", "does not exist"),
        ("./folder", "does not exist"),
        ("no-such.gguf", "does not exist"),
        ("a/b/c", "does not exist"),
        ("nobody/nothing", "the hub is offline"),
        ("nothing", "the hub is offline"),
    ],
)
def test_an_absent_model_is_named(name: str, named: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    refuses(lambda: load_model_and_tokenizer(name), named)


def test_a_file_that_is_no_gguf_and_an_unknown_type_are_refused(tmp_path: Path) -> None:
    (tmp_path / "weights.bin").write_bytes(b"")
    refuses(lambda: locate_model(tmp_path / "weights.bin"), "give the folder it lies in")
    refuses(lambda: load_model_and_tokenizer("embedded", dtype="bfloat"), "did you mean 'bfloat16'")


def refuses(call: Any, named: str) -> None:
    """`call` raises one line that contains `named`."""
    with pytest.raises(RollwiseError) as error:
        call()
    assert named in str(error.value)
    assert "\n" not in str(error.value)
