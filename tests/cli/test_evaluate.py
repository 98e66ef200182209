"""`rollwise evaluate`: scores that follow from the completions, resuming after a kill, faults in one line."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from openai_server import is_right

from rollwise.cli import evaluate_loop
from rollwise.cli.app import status_of
from rollwise.cli.evaluate import default_ks, evaluate
from rollwise.cli.evaluate_flags import lines
from rollwise.cli.evaluate_inputs import read_data
from rollwise.cli.evaluate_loop import EvaluateConfig, Item, generate, plan_batches
from rollwise.cli.evaluate_results import summarise
from rollwise.cli.evaluate_store import EvaluationStore
from rollwise.tasks.datasets import DataSpec
from rollwise.tasks.endpoint import Endpoint
from rollwise.tasks.generation import Completion, Sampling
from rollwise.tasks.verdict import Verdict
from rollwise.tasks.verifiers import VERIFIERS
from rollwise.types import Outcome, RollwiseError

Serve = Callable[..., tuple[str, Path]]
SUMS = [{"prompt": f"{a}+{a + 1}?", "answer": str(2 * a + 1), "half": a // 6} for a in range(12)]


@pytest.fixture
def serve(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serve]:
    """Start a server in a process of its own; returns its address and the folder of its log."""
    servers: list[subprocess.Popen[bytes]] = []

    def start(delay: float = 0.0) -> tuple[str, Path]:
        folder = tmp_path_factory.mktemp("server")
        script = Path(__file__).parent / "openai_server.py"
        servers.append(subprocess.Popen([sys.executable, str(script), str(folder), str(delay)]))
        wait_for(lambda: (folder / "port").exists())
        return f"http://127.0.0.1:{(folder / 'port').read_text()}/v1", folder

    yield start
    for server in servers:
        server.kill()
        server.wait()


@pytest.fixture
def sums(tmp_path: Path) -> str:
    path = tmp_path / "sums.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in SUMS))
    return str(path)


def wait_for(happened: Callable[[], bool]) -> None:
    until = time.monotonic() + 120
    while not happened():
        assert time.monotonic() < until
        time.sleep(0.02)


def settings(sums: str, address: str | None, **changed: Any) -> dict[str, Any]:
    spec = DataSpec(source=sums, chat=True)
    own = {"model": "tiny", "endpoint": address, "data": spec, "verifier": "numeric", "samples": 4, "batch": 5}
    return own | changed


def requests(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "requests.jsonl").read_text().splitlines()]


def test_scores_are_those_of_the_completions_the_server_gave(serve: Serve, sums: str, tmp_path: Path) -> None:
    address, log = serve()
    results = evaluate(settings(sums, address), by=["half"], out=tmp_path / "out", progress=False)
    asked = requests(log)
    assert Counter(request["temperature"] for request in asked) == {0.0: 12, 0.6: 48}
    right: dict[str, list[bool]] = {row["prompt"]: [] for row in SUMS}
    for request in asked:
        prompt = request["messages"][-1]["content"]
        if request["temperature"]:
            right[prompt].append(is_right(prompt, request["seed"], 0.6))
    rates = [sum(values) / 4 for values in right.values()]
    scores = results["scores"]
    greedy = [is_right(row["prompt"], 0, 0.0) for row in SUMS]
    assert scores["greedy"]["value"] == pytest.approx(sum(greedy) / 12)
    assert scores["avg@4"]["value"] == scores["pass@1"]["value"] == pytest.approx(sum(rates) / 12)
    assert scores["pass@4"]["value"] == pytest.approx(sum(rate > 0 for rate in rates) / 12)
    assert 0 < scores["avg@4"]["low"] < scores["avg@4"]["value"] < scores["avg@4"]["high"] < 1
    first = results["groups"]["half"]["0"]["greedy"]
    assert first == {"value": pytest.approx(sum(greedy[:6]) / 6), "prompts": 6}
    table = pd.read_parquet(tmp_path / "out" / "completions.parquet")
    assert len(table) == 60
    assert set(table["outcome"]) == {"success", "failure"}
    assert json.loads((tmp_path / "out" / "results.json").read_text())["scores"] == scores


def test_a_killed_evaluation_goes_on_and_ends_as_if_nothing_had_happened(
    serve: Serve, sums: str, tmp_path: Path
) -> None:
    address, log = serve(0.2)
    command = [
        str(Path(sys.executable).parent / "rollwise"),
        "evaluate",
        "--model",
        "tiny",
        "--endpoint",
        address,
        "--data",
        sums,
    ]
    command += [
        "--verifier",
        "numeric",
        "--samples",
        "4",
        "--batch",
        "5",
        "--out",
        str(tmp_path / "killed"),
        "--split",
        "train",
    ]
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    written = tmp_path / "killed" / "completions.jsonl"
    wait_for(lambda: process.poll() is not None or (written.exists() and written.read_bytes().count(b"\n") >= 10))
    assert process.poll() is None
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    with written.open("a") as lines:
        lines.write('{"kind": "greedy", "row": 3, "sam')  # a line that the kill left unfinished
    kept = len(written.read_text().splitlines()) - 1
    results = evaluate(settings(sums, address), out=tmp_path / "killed", progress=False)
    assert 10 <= results["found"] == kept < 60
    twice = len(requests(log)) - 60
    assert 0 <= twice <= 10  # at most the batch being generated and the one being judged
    fresh, _ = serve()
    whole = evaluate(settings(sums, fresh), out=tmp_path / "whole", progress=False)
    assert whole["scores"] == results["scores"]
    tables = [pd.read_parquet(tmp_path / name / "completions.parquet") for name in ("killed", "whole")]
    assert tables[0].equals(tables[1])


def test_the_same_evaluation_again_asks_for_nothing_and_another_is_refused(
    serve: Serve, sums: str, tmp_path: Path
) -> None:
    address, log = serve()
    first = evaluate(settings(sums, address, samples=0), out=tmp_path / "out", progress=False)
    again = evaluate(settings(sums, address, samples=0), out=tmp_path / "out", progress=False)
    assert again["scores"] == first["scores"]
    assert again["found"] == len(requests(log)) == 12
    with pytest.raises(RollwiseError, match="holds an evaluation with max_tokens 512, not 9; give another folder"):
        evaluate(settings(sums, address, samples=0, max_tokens=9), out=tmp_path / "out", progress=False)
    Path(sums).write_text(json.dumps(SUMS[0]) + "\n")
    with pytest.raises(RollwiseError, match="holds an evaluation with rows 12, not 1"):
        evaluate(settings(sums, address, samples=0), out=tmp_path / "out", progress=False)


def test_a_damaged_line_is_told_of_and_only_what_it_held_is_asked_for_again(
    serve: Serve, sums: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    address, log = serve()
    out = tmp_path / "out"
    first = evaluate(settings(sums, address, samples=2), out=out, progress=False)
    whole = (out / "completions.jsonl").read_bytes().splitlines(keepends=True)
    (out / "completions.jsonl").write_bytes(b"".join([*whole[:2], b"{\n", *whole[3:]]))
    assert capsys.readouterr().err == ""
    for said in ("damaged: line 3; kept: 35 completions; to be made: 1\n", ""):
        again = evaluate(settings(sums, address, samples=2), out=out, progress=False)
        assert again["scores"] == first["scores"]
        assert capsys.readouterr().err.endswith(said)
    assert len(requests(log)) == 37


def test_what_was_made_before_a_request_failed_for_good_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    verdict: Future[Verdict] = Future()
    monkeypatch.setattr(evaluate_loop, "judge_later", lambda *given: verdict)

    class Failing:
        def complete(self, prompts: Any, sampling: Sampling, seeds: Any) -> list[Completion]:
            if prompts == ["2"]:
                verdict.set_result(Verdict(Outcome.SUCCESS, "late"))
                raise RollwiseError("endpoint: gone")
            return [Completion("1", 1, True)]

    config = EvaluateConfig(data=DataSpec(source="chains"), verifier="numeric")
    batches = [[Item("greedy", row, 0)] for row in range(2)]
    with EvaluationStore(tmp_path, {}, [item.key for batch in batches for item in batch]) as store:
        with pytest.raises(RollwiseError, match="endpoint: gone"):
            generate(
                Failing(), config, VERIFIERS["numeric"], [{"prompt": "1"}, {"prompt": "2"}], batches, store, False
            )
        assert list(store.done) == [("greedy", 0, 0)]


def test_an_endpoint_that_is_busy_is_asked_again_and_one_that_refuses_is_quoted(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    address, log = serve()
    endpoint = Endpoint(address, "tiny", waits=(0.0, 0.0))
    sampling = Sampling(stop=("####",), max_tokens=5)
    assert endpoint.complete(["busy 2+2?"], sampling, [1]) == [Completion("So\n", 7, True)]
    (*_, last) = requests(log)
    assert len(requests(log)) == 3
    assert (last["path"], last["key"], last["stop"], last["seed"]) == ("/v1/completions", "Bearer secret", ["####"], 1)
    with pytest.raises(RollwiseError, match="status 400: .*is too large.*; finished work is kept"):
        endpoint.complete(["refuse"], sampling, [1])
    assert len(requests(log)) == 4
    endpoint.close()


@pytest.mark.parametrize(
    ("prompt", "said"),
    [
        ("list", "no JSON object but '[1, 2]'"),
        ("page", "no JSON object but '<html>proxy</html>'"),
        ("short", "the answer breaks off after 18 bytes"),
        ("silent", "no whole answer within 1 s"),
    ],
)
def test_a_reply_that_is_none_is_asked_for_again_and_then_quoted(serve: Serve, prompt: str, said: str) -> None:
    address, log = serve()
    endpoint = Endpoint(address, "tiny", timeout=1.0, waits=(0.0,))
    with pytest.raises(RollwiseError, match=re.escape(said) + ".*; finished work is kept"):
        endpoint.complete([prompt], Sampling(), [1])
    assert len(requests(log)) == 2
    endpoint.close()


def test_an_evaluation_that_waits_for_a_silent_server_ends_when_it_is_asked_to(serve: Serve, tmp_path: Path) -> None:
    address, log = serve()
    data = tmp_path / "silent.jsonl"
    data.write_text(json.dumps({"prompt": "silent", "answer": "1"}) + "\n")
    flags = ["--model", "tiny", "--endpoint", address, "--data", str(data), "--verifier", "numeric", "--base"]
    command = [str(Path(sys.executable).parent / "rollwise"), "evaluate", *flags, "--out", str(tmp_path / "out")]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    wait_for(lambda: process.poll() is not None or (log / "requests.jsonl").exists())
    process.terminate()
    assert process.wait(60) == 130
    assert process.stderr is not None and process.stderr.read().strip().endswith("rollwise: interrupted")


def test_a_model_in_this_process_is_measured_and_draws_the_same_again(tmp_path: Path) -> None:
    own = {
        "data": DataSpec(source="chains", split="test", limit=12),
        "samples": 2,
        "max_tokens": 24,
        "temperature": 1.0,
    }
    first, again = (evaluate(own, by=["difficulty"], out=tmp_path / name, progress=False) for name in "ab")
    assert first["scores"] == again["scores"]
    assert first["verifier"] == "exact_match"
    assert 0 < first["scores"]["greedy"]["value"] <= 1
    assert first["completions"]["greedy"]["count"] == 12
    tables = [pd.read_parquet(tmp_path / name / "completions.parquet") for name in "ab"]
    assert tables[0].equals(tables[1])
    assert set(tables[0]["completion"]) != {""}


def test_lists_are_no_groups_and_nothing_is_made_before_that_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("tags.jsonl").write_text(
        '{"prompt": "1", "answer": "1", "tags": null}\n{"prompt": "2", "tags": ["a", "b"]}\n'
    )
    with pytest.raises(RollwiseError, match=r"^--by: 'tags' holds \['a', 'b'\]; give a column of texts or numbers$"):
        evaluate(settings("tags.jsonl", "http://127.0.0.1:9/v1"), by=["tags"])
    assert [path.name for path in tmp_path.iterdir()] == ["tags.jsonl"]


def test_why_nothing_could_be_judged_is_said(tmp_path: Path) -> None:
    rows = [row_of("unknown", "the verifier raised ValueError: \x1b[31m")] * 3 + [
        row_of("unknown", "the row has none")
    ]
    rows += [row_of("failure", f"another {n}") for n in range(20)]
    results = summarise([row | {"row": place} for place, row in enumerate(rows)], {}, len(rows), [], 0)
    given = {"model": "m", "data": "d", "split": "test", "prompts": 4, "verifier": "v", "folder": "f"}
    shown = lines(given | results)
    assert r"unknown: 'the verifier raised ValueError: \x1b[31m' (3 of 24)" in shown
    assert "unknown: 'the row has none' (1 of 24)" in shown


def row_of(outcome: str, reason: str) -> dict[str, Any]:
    own = {"kind": "greedy", "sample": 0, "tokens": 1, "ended": True, "answer": None}
    return own | {"outcome": outcome, "reason": reason}


@pytest.mark.parametrize(
    ("flags", "named"),
    [
        (("--data", "chains", "--no-greedy"), "--samples: nothing to do"),
        (("--data", "chains", "--samples", "2", "--k", "4"), "--k: 4 does not fit 2 samples"),
        (("--data", "chains", "--samples", "2", "--k", "0,1"), "--k: 0 does not fit 2 samples; give 1 to 2"),
        (("--data", "chains", "--k", "1"), "--k: there are no samples; give --samples 8"),
        (
            ("--data", "chains", "--chat"),
            "--chat: the prompts are conversations, and the tokenizer of embedded has no",
        ),
        (
            ("--data", "chains", "--out", "/dev/null/below"),
            "--out: /dev/null/below cannot be written (Not a directory)",
        ),
        (("--data", "chains", "--k", "two"), "--k: 'two' is no list of numbers"),
        (("--data", "chains", "--by", "colour"), "--by: no column 'colour'"),
        (("--data", "chains", "--verifier", "numerik"), "did you mean 'numeric'?"),
        (("--data", "chains", "--verifier", "reasoning_gym"), "--verifier: reasoning_gym needs a column"),
        (("--data", "chains", "--temperature", "0"), "--temperature: "),
        (("--data", "nowhere.jsonl"), "--verifier: nowhere.jsonl names none; give numeric"),
        (("--data", "nowhere.jsonl", "--verifier", "numeric"), "data.source: nowhere.jsonl does not exist"),
        (("--data", "nowhere.yaml"), "--config nowhere.yaml"),
        (("--data", "chains", "--endpoint", "localhost"), "endpoint: 'localhost' is no address"),
        (
            ("--data", "chains", "--endpoint", "http://127.0.0.1:9/v1"),
            "endpoint: nothing answers at http://127.0.0.1:9",
        ),
        (("--data", "chains", "--model", "./nothing"), "model: ./nothing does not exist"),
    ],
)
def test_what_does_not_fit_is_one_line_and_status_2(
    flags: tuple[str, ...],
    named: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    given = flags if "--model" in flags else ("--model", "embedded", *flags)
    assert status_of(["evaluate", *given]) == 2
    error = capsys.readouterr().err
    assert named in error
    assert error.count("\n") == 1


def test_batches_hold_every_item_once_greedy_first_and_like_lengths_together() -> None:
    config = EvaluateConfig(data=DataSpec(source="chains"), verifier="numeric", samples=2, batch=4)
    batches = list(plan_batches(config, [9, 1, 5]))
    items = [(item.kind, item.row, item.sample) for batch in batches for item in batch]
    greedy = [("greedy", 1, 0), ("greedy", 2, 0), ("greedy", 0, 0)]
    assert items == greedy + [("sampled", row, sample) for row in (1, 2, 0) for sample in (0, 1)]
    assert [len(batch) for batch in batches] == [3, 4, 2]


def test_data_is_a_name_a_file_or_a_yaml_file_with_a_spec(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("eval_data: {source: x.jsonl, columns: {prompt: q}, verifier: yes_no}\ndata: {source: chains}\n")
    assert read_data(str(path), None, 3, None) == DataSpec(
        source="x.jsonl", split="train", columns={"prompt": "q"}, verifier="yes_no", limit=3
    )
    assert read_data("gsm8k", None, None, True) == DataSpec(source="gsm8k", split="test", chat=True)
    path.write_text("data: {source: x.jsonl, limit: true}\n")
    with pytest.raises(RollwiseError, match="^data.limit: true is a switch and no number"):
        read_data(str(path), None, None, None)
    assert default_ks(6) == [1, 2, 4, 6]
    assert default_ks(0) == []
