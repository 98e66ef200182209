"""`rollwise plan`: shares that match their formulas, a table, JSON, a picture, one line for every mistake."""

from __future__ import annotations

import gzip
import json
import struct
from pathlib import Path

import numpy as np
import pytest

from rollwise.allocators import Uniform
from rollwise.cli import plan
from rollwise.cli.app import status_of
from rollwise.cli.plan_input import read_counts, read_pool, read_rates
from rollwise.cli.plan_verdict import verdicts
from rollwise.pool import Pool
from rollwise.types import RollwiseError

SMALL = {"prompts": 4, "draws": 6, "methods": ("uniform", "sum_variance")}


@pytest.mark.parametrize("rollouts", [2, 3, 4, 8])
def test_uniform_dead_share_is_p_to_the_n_plus_q_to_the_n(rollouts: int) -> None:
    found = plan.run(rates="0:0.3,0.1:0.2,0.5:0.5", rollouts=rollouts, methods=("uniform",))
    dead = 0.3 + 0.2 * (0.1**rollouts + 0.9**rollouts) + 0.5 * 2 * 0.5**rollouts
    uniform = found["methods"]["uniform"]
    assert uniform["dead_prompt_share"] == pytest.approx(dead)
    assert uniform["informative_rollout_share"] == pytest.approx(1 - dead)
    assert uniform["unsolved_share"] == pytest.approx(0.3 + 0.2 * 0.9**rollouts + 0.5 * 0.5**rollouts)
    assert uniform["weight"]["weight"] == pytest.approx([rollouts - 1] * 2)
    assert bool(found["warnings"]) == (rollouts <= 4)


def test_small_groups_are_warned_of_with_their_dead_share() -> None:
    assert plan.run(rollouts=2, methods=("uniform",))["warnings"] == [
        "groups of 2: 67% of them are expected to be dead (all outcomes equal) under uniform allocation; groups of 4: 40%"
    ]


def test_simulated_uniform_agrees_with_the_computed_one() -> None:
    class Even:
        """Uniform under another type, so that it is simulated."""

        name, saves = "even", False
        next_wave, metrics = Uniform.next_wave, Uniform.metrics

    pool, settings = Pool.histogram([0.05, 0.6], [1, 1]), {"waves": 4, "n_min": 2, "prior": (1.0, 1.0)}
    computed, simulated = (plan.look(rule, pool, 8, 8, 150, 0, "dr_grpo", settings) for rule in (Uniform(), Even()))
    for name in plan.SHARES:
        assert abs(simulated[name] - computed[name]) < 4 * simulated["standard_error"][name]
    assert simulated["n"] == computed["n"] and simulated["n_shares"] == {"8": 1.0}
    for k in range(2):
        weight = simulated["weight"]
        assert abs(weight["weight"][k] - 7) < 2 * (weight["high"][k] - weight["weight"][k])


def test_an_adaptive_method_has_shape_and_the_plan_is_repeatable() -> None:
    found = plan.run(**SMALL)
    adaptive = found["methods"]["sum_variance"]
    assert adaptive["n"]["0"] == 2 and adaptive["n"]["100"] > 8
    assert sum(adaptive["n_shares"].values()) == pytest.approx(1)
    assert sum(int(n) * share for n, share in adaptive["n_shares"].items()) == pytest.approx(8)
    assert json.dumps(found) == json.dumps(plan.run(**SMALL))


def test_ceilings_and_objective_weights_are_those_of_the_pool() -> None:
    found = plan.run(prior="1,1", objective="pass@4", methods=("uniform",))
    assert [entry["objective"] for entry in found["ceilings"]] == ["mean", "pass@4"]
    assert found["ceilings"][0]["oracle"] == pytest.approx(0.925, abs=5e-4)
    assert found["ceilings"][1]["belief"] == pytest.approx(0.732, abs=5e-4)
    weights = found["objective"]
    at = weights["rates"].index(0.05)
    assert weights["asked"][at] == pytest.approx(3.43, abs=0.005)
    assert weights["applied"]["32"][at] == pytest.approx(3.17, abs=0.005)


def test_the_verdict_calls_lower_or_higher_only_what_lies_beyond_the_interval() -> None:
    uniform = {"dead_prompt_share": 0.2, "informative_rollout_share": 0.8}
    found = {"dead_prompt_share": 0.1, "informative_rollout_share": 0.78}
    exact = uniform | {"standard_error": dict.fromkeys(uniform, 0.0)}
    rough = found | {"standard_error": dict.fromkeys(uniform, 0.02)}
    assert verdicts({"uniform": exact, "sum_variance": rough}, uniform) == [
        "sum_variance against uniform: dead prompts lower (10.0% against 20.0%); "
        "informative rollouts not told apart (78.0% against 80.0%)"
    ]
    sure = found | {"dead_prompt_share": 0.3, "standard_error": dict.fromkeys(uniform, 0.001)}
    assert verdicts({"x": sure}, uniform) == [
        "x against uniform: dead prompts higher (30.0% against 20.0%); informative rollouts lower (78.0% against 80.0%)"
    ]


def test_a_plan_judges_adaptive_methods_though_uniform_was_not_asked_for() -> None:
    found = plan.run(**SMALL | {"methods": ("sum_variance",), "draws": 240})
    assert found["verdicts"][0].startswith("sum_variance against uniform: dead prompts lower (")
    assert "against 22.2%)" in found["verdicts"][0]


def test_counts_are_read_in_every_form(tmp_path: Path) -> None:
    path = tmp_path / "counts.jsonl"
    path.write_text(
        '{"successes": 3, "trials": 8}\n\n{"correct": [1, 0, 1]}\n{"correct": [2, 5], "n_per_visit": 8}\n'
        '{"correct": [7], "n_per_visit": 8}\n'
    )
    assert [column.tolist() for column in read_counts(path)] == [[3, 2, 2, 7], [8, 3, 8, 8]]
    assert [column.tolist() for column in read_counts(path, visit=-1)] == [[3, 2, 5, 7], [8, 3, 8, 8]]
    assert [column.tolist() for column in read_counts(path, visit=1)] == [[3, 2, 5], [8, 3, 8]]
    packed = tmp_path / "counts.jsonl.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert read_counts(packed)[0].tolist() == [3, 2, 2, 7]


def test_rates_are_read_as_text_and_from_json(tmp_path: Path) -> None:
    path = tmp_path / "rates.json"
    for content in ({"0.1": 2, "0.5": 1, "0.9": 1}, [[0.1, 2], [0.5, 1], [0.9, 1]], [0.1, 0.1, 0.5, 0.9]):
        path.write_text(json.dumps(content))
        assert read_rates(str(path)).mean == pytest.approx(0.4)
    assert read_rates("0.1:2, 0.5:1,0.9:1").mean == pytest.approx(0.4)


@pytest.mark.parametrize(
    "line",
    [
        '{"successes": 9, "trials": 8}',
        '{"successes": 1}',
        '{"successes": 0.5, "trials": 8}',
        "[1, 2]",
        "{",
        '{"correct": ["x"]}',
        '{"successes": NaN, "trials": 8}',
        '{"successes": 3, "trials": "8"}',
        '{"successes": [3], "trials": [8]}',
        '{"correct": [3, -5], "n_per_visit": 8}',
        "[" * 100_000,
    ],
    ids=lambda line: line[:40],
)
def test_a_bad_line_is_named(tmp_path: Path, line: str) -> None:
    path = tmp_path / "counts.jsonl"
    path.write_text('{"successes": 3, "trials": 8}\n' + line + "\n")
    with pytest.raises(RollwiseError, match=r"^--counts .*counts.jsonl:2: write \{"):
        read_counts(path)


@pytest.mark.parametrize("trials", ["1e30", "9" * 40, "4000000000000", "1000001", "1e400", "Infinity"])
def test_more_trials_than_can_be_fitted_are_refused(tmp_path: Path, trials: str) -> None:
    path = tmp_path / "counts.jsonl"
    path.write_text(f'{{"successes": 3, "trials": {trials}}}\n')
    with pytest.raises(
        RollwiseError, match=r"^--counts .*counts.jsonl:1: [\de+inf]+ trials of one prompt; give at most"
    ):
        read_counts(path)


def test_prompts_without_trials_say_nothing(tmp_path: Path) -> None:
    path = tmp_path / "counts.jsonl"
    path.write_text('\ufeff{"successes": 3, "trials": 8}\n{"successes": 0, "trials": 0}\n', encoding="utf-8")
    assert [column.tolist() for column in read_counts(path)] == [[3], [8]]
    path.write_text('{"successes": 0, "trials": 0}\n')
    with pytest.raises(RollwiseError, match="^--counts .*no prompt with counts"):
        read_counts(path)


def test_rates_of_any_length_are_read_and_none_are_refused(tmp_path: Path) -> None:
    assert read_rates(",".join(["0.25:1", "0.75:1"] * 100)).mean == pytest.approx(0.5)
    (tmp_path / "deep.json").write_text("[" * 100_000)
    for text in ("", str(tmp_path / "deep.json"), str(tmp_path)):
        with pytest.raises(RollwiseError, match="^--rates .*write rate:share"):
            read_pool(rates=text)


def test_files_that_cannot_be_read_are_one_line(tmp_path: Path) -> None:
    (tmp_path / "empty.jsonl").write_text("")
    (tmp_path / "false.jsonl.gz").write_bytes(b"no gzip")
    (tmp_path / "binary.jsonl").write_bytes(b"\xff\xfe\x00")
    packed = bytearray(gzip.compress(b'{"successes": 3, "trials": 8}\n' * 1000))
    packed[20] ^= 0xFF
    (tmp_path / "corrupt.jsonl.gz").write_bytes(packed)
    for name in ("absent.jsonl", "empty.jsonl", "false.jsonl.gz", "corrupt.jsonl.gz", "binary.jsonl", "."):
        with pytest.raises(RollwiseError, match="^--counts .*successes"):
            read_counts(tmp_path / name)


def test_the_real_log_is_planned_from_its_first_visit(training_log: Path) -> None:
    path = training_log
    pool, source = read_pool(counts=path)
    s, n = read_counts(path)
    assert f"{len(s)} prompts" in source
    assert pool.mean == pytest.approx(s.sum() / n.sum(), abs=0.01)
    dead = np.mean((s == 0) | (s == 8))
    assert pool.dead_share(8) == pytest.approx(dead, abs=0.02)


def test_the_command_prints_tables_and_writes_a_picture(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    assert (
        status_of(["plan", "--prompts", "4", "--draws", "4", "--method", "uniform", "--method", "sum_variance"]) == 0
    )
    out = capsys.readouterr().out
    assert "22.2%" in out and "sum_variance" in out and "0.925" in out
    assert max(map(len, out.splitlines())) <= 80
    words = " ".join(out.split())
    for legend in ("n: rollouts of a prompt", "w(p): weight of a prompt's gradient", "below 1 is better"):
        assert legend in words
    assert "sum_variance against uniform: dead prompts" in words
    assert list(tmp_path.iterdir()) == []
    arguments = ["--rates", "0:0.3,0.5:0.7", "--rollouts", "4", "--method", "uniform", "--objective", "log"]
    assert status_of(["plan", *arguments, "--picture", "plan.png", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["methods"]["uniform"]["dead_prompt_share"] == pytest.approx(0.3 + 0.7 * 0.125)
    assert shown["picture"] == "plan.png"
    head = (tmp_path / "plan.png").read_bytes()[:24]
    assert head[:8] == b"\x89PNG\r\n\x1a\n" and min(struct.unpack(">II", head[16:24])) > 500


def test_a_pool_of_hopeless_prompts_can_be_drawn(tmp_path: Path) -> None:
    found = plan.run(rates="0:0.9,1:0.1", **SMALL, picture=tmp_path / "plan.png")
    assert found["methods"]["sum_variance"]["dead_prompt_share"] == 1.0
    assert found["ceilings"][0]["belief"] == 1.0 and "90%" in found["warnings"][0]
    assert (tmp_path / "plan.png").stat().st_size > 1000


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (("--rates", "0:0.3", "--prior", "1,1"), "--rates and --prior: give one of them"),
        (("--rates", "half"), "--rates 'half': write rate:share"),
        (("--rates", "2:1"), "a success rate lies between 0 and 1"),
        (("--prior", "0,1"), "prior"),
        (("--counts", "absent.jsonl"), "absent.jsonl: No such file"),
        (("--method", "sum_varance"), "no 'sum_varance'"),
        (("--objective", "pas@4"), "objective: no 'pas@4'"),
        (("--advantage", "drgrpo"), "did you mean 'dr_grpo'"),
        (("--prompts", "0"), "give 1 to 100000 prompts and 1 to 1024 rollouts"),
        (("--rollouts", "10000000000"), "give 1 to 100000 prompts and 1 to 1024 rollouts"),
        (("--waves", "-1"), "waves: -1; give 1 or more"),
        (("--n-min", "-1"), "n_min: -1; give 0 or more"),
        (("--seed", "-1"), "seed: -1; give 0 or more"),
        (("--visit", "-1"), "visit: -1; give 0 or more"),
        (("--draws", "0"), "draws: 0"),
        (("--picture", "/dev/null/plan.png"), "picture: /dev/null/plan.png cannot be written ("),
        (("--picture", "."), "picture: . is a folder; give a file, such as picture.png"),
        (("--picture", "plan"), "picture: plan ends in no kind of picture; give plan.png"),
        (("--n-min", "99"), "n_min: 99 for 8 rollouts a prompt; at most 8"),
    ],
)
def test_what_the_user_can_mend_is_one_line_and_writes_nothing(
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: tuple[str, ...],
    line: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert status_of(["plan", *arguments]) == 2
    out, err = capsys.readouterr()
    assert out == "" and err.startswith("rollwise: ") and err.count("\n") == 1
    assert line in err
    assert list(tmp_path.iterdir()) == []
