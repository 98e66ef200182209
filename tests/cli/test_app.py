"""The command line: exit statuses, one line on standard error, JSON alone on standard output."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

from rollwise.cli import doctor
from rollwise.cli.app import status_of
from rollwise.cli.train_flags import parse_settings
from rollwise.types import RollwiseError


@pytest.fixture(autouse=True)
def empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def complaint(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """The one line a user error gives; checks status 2 and that nothing was written."""
    assert status_of(arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("rollwise: ") and err.count("\n") == 1
    assert list(Path().iterdir()) == []
    return err.removeprefix("rollwise: ").rstrip()


def test_without_a_command_the_help_is_printed_as_it_is_laid_out(capsys: pytest.CaptureFixture[str]) -> None:
    shown = []
    for arguments in ([], ["--help"]):
        assert status_of(arguments) == 0
        shown.append(capsys.readouterr())
    assert shown[0].out.rstrip() == shown[1].out.rstrip() and shown[0].err == ""
    lines = [line.split()[:1] for line in shown[0].out.splitlines()]
    assert all([command] in lines for command in ("train", "solve", "plan", "report", "doctor"))
    assert status_of(["analyze"]) == 0
    assert "difficulty" in capsys.readouterr().out


def test_the_version_is_that_of_the_package(capsys: pytest.CaptureFixture[str]) -> None:
    assert status_of(["--version"]) == 0
    assert capsys.readouterr().out == f"rollwise {metadata.version('rollwise')}\n"


def test_the_module_is_the_command() -> None:
    run = subprocess.run([sys.executable, "-m", "rollwise", "nothing"], capture_output=True, text=True)
    assert run.returncode == 2 and run.stdout == "" and run.stderr.startswith("rollwise: ")
    assert run.stderr.count("\n") == 1


@pytest.mark.parametrize("command", ["plan", "train"])
def test_the_help_of_an_objective_shows_one_that_can_be_typed(
    capsys: pytest.CaptureFixture[str], command: str
) -> None:
    assert status_of([command, "--help"]) == 0
    assert "such as pass@4" in " ".join(capsys.readouterr().out.split())


def test_a_misspelt_command_or_flag_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert "Did you mean 'train'?" in complaint(capsys, "trian")
    assert "--steps" in complaint(capsys, "train", "--stpes", "3")
    assert "'--steps'" in complaint(capsys, "train", "--steps", "many")


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (("--set", "stpes=3"), "stpes: unknown setting; did you mean 'steps'?"),
        (("--set", "trainer.bta=1"), "trainer.bta: TRL's GRPOConfig has no such field; did you mean 'beta'?"),
        (("--set", "trainer.num_generations=4"), "trainer.num_generations: set rollouts_per_prompt at the top level"),
        (("--set", "trainer.waves=4"), "trainer.waves: set it under method instead"),
        (("--set", "trainer.per_device_train_batch_size=48"), "48 does not divide the 256 rollouts of a step"),
        (("--set", "nonsense"), "--set 'nonsense': write key=value"),
        (("--config", "absent.yaml"), "--config absent.yaml: No such file or directory"),
        (("--utility", "min_varance"), "did you mean 'min_variance'?"),
        (("--allocator", "adarol"), "did you mean 'adaroll'?"),
        (("--reward", "exact_mach"), "did you mean 'exact_match'?"),
        (("--reward", "absent.module:reward"), "absent.module:reward"),
        (("--data", "absent.jsonl"), "absent.jsonl"),
        (("--model", "./absent-model"), "absent-model"),
        (("--prompts-per-step", "1"), "nothing to allocate"),
        (("--method.slector", "cero"), "method.slector: unknown setting; did you mean 'selector'?"),
        (("--method.selector",), "--method.selector: give a value, such as --method.selector 4"),
        (("-x", "3"), "no option -x; "),
        (("--method", "nope"), "method: no 'nope'; valid: "),
        (("absent.yaml",), "absent.yaml: No such file or directory"),
        (("a.yaml", "b.yaml"), "b.yaml: a run has one file, and a.yaml is given already"),
        (("a.yaml", "--config", "b.yaml"), "--config b.yaml: the run's file is given twice, also as a.yaml"),
    ],
)
def test_what_the_user_can_mend_is_one_line_and_writes_nothing(
    capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], line: str
) -> None:
    assert line in complaint(capsys, "train", *arguments)


def test_a_setting_of_a_part_is_a_flag_on_top_of_a_method_of_one_word(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = tmp_path / "run.yaml"
    file.write_text(
        "data: {source: chains, limit: 40}\nmethod: adaroll\nprompts_per_step: 4\nrollouts_per_prompt: 4\n"
    )
    flags = ["--method.selector", "cero", "--trainer.beta=0.1", "--steps", "3", "--dry-run", "--json"]
    assert status_of(["train", str(file), *flags]) == 0
    config = json.loads(capsys.readouterr().out)["config"]
    assert (config["method"]["preset"], config["method"]["selector"]) == ("adaroll", "cero")
    assert (config["trainer"], config["steps"]) == ({"beta": 0.1}, 3)


def test_any_setting_is_a_flag_also_one_that_the_help_does_not_list(capsys: pytest.CaptureFixture[str]) -> None:
    assert status_of(["train", "--method", "cero", "--name=mine", "--dry-run", "--json"]) == 0
    config = json.loads(capsys.readouterr().out)["config"]
    assert (config["method"]["preset"], config["name"]) == ("cero", "mine")


def test_a_reward_without_its_column_is_found_before_the_run(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    rows = tmp_path_factory.mktemp("data") / "rows.jsonl"
    rows.write_text(json.dumps({"prompt": "1+1=", "target": "2"}) + "\n")
    config = rows.with_name("run.yaml")
    config.write_text(f"data: {{source: {rows}}}\n")
    assert "answer" in complaint(capsys, "train", "--config", str(config))


def test_a_dry_run_checks_everything_and_writes_nothing(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert status_of(["train", "--dry-run"]) == 0
    out = capsys.readouterr().out
    assert "B = 32 prompts x G = 8 rollouts = N = 256 rollouts" in out
    assert "uniform: uniform" in out and "adaroll: adaroll (min_variance), 4 waves" in out
    assert list(tmp_path.iterdir()) == []


def test_a_dry_run_in_json_is_the_resolved_configuration(capsys: pytest.CaptureFixture[str]) -> None:
    assert status_of(["train", "--dry-run", "--json", "--steps", "7"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["dry_run"] is True and shown["config"]["steps"] == 7


def test_json_stands_alone_on_standard_output_whatever_a_users_module_prints(tmp_path: Path) -> None:
    (tmp_path / "loud.py").write_text(
        "import os\nprint('imported', flush=True)\nos.system('echo started')\n"
        "def curve(p):\n    print('called', flush=True)\n    return 1 + 0 * p\n"
    )
    command = "from rollwise.cli import main; main()"
    options = ("plan", "--rates", "0.5:1", "--method", "uniform", "--objective", "loud:curve", "--json")
    done = subprocess.run([sys.executable, "-c", command, *options], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["objective"]["name"] == "loud:curve"
    assert all(word in done.stderr for word in ("imported", "started", "called"))


def test_an_interrupt_inside_a_users_module_is_one_line(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "stopping.py").write_text("raise KeyboardInterrupt\n")
    assert status_of(["plan", "--objective", "stopping:curve"]) == 130
    assert capsys.readouterr() == ("", "rollwise: interrupted\n")


def test_what_cannot_be_printed_is_escaped(capsys: pytest.CaptureFixture[str]) -> None:
    assert "runs\\x00x" in complaint(capsys, "train", "--dry-run", "--set", 'output="runs\\0x"')


def test_solve_prints_the_optimum_and_uniform(capsys: pytest.CaptureFixture[str]) -> None:
    assert status_of(["solve", "--utility", "min_variance", "--prompts", "2", "--budget", "4", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["value"] == pytest.approx(1 / 36)
    assert result["uniform_value"] < result["value"]
    assert status_of(["solve", "--prompts", "2", "--budget", "4"]) == 0
    assert "0.027778" in capsys.readouterr().out


def test_solve_names_what_it_cannot_solve(capsys: pytest.CaptureFixture[str]) -> None:
    assert "did you mean 'sum_variance'?" in complaint(capsys, "solve", "--utility", "sum_varance")
    assert "prior" in complaint(capsys, "solve", "--prior", "0,1")


def test_doctor_finds_every_hook_in_the_installed_trl(capsys: pytest.CaptureFixture[str]) -> None:
    assert status_of(["doctor", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["hook _calculate_rewards"]["ok"] and found["hook _generate_and_score_completions"]["ok"]
    assert found["solver"]["ok"] and found["TRL adapter"]["ok"]
    assert found["rollwise"] == {"detail": metadata.version("rollwise")}
    assert {type(entry["ok"]) for entry in found.values() if "ok" in entry} == {bool}


def test_doctor_says_how_a_changed_hook_differs() -> None:
    class Changed:
        def _calculate_rewards(self, batch: object) -> None: ...

    changed = doctor.examine_hook(Changed, "_calculate_rewards", doctor.HOOKS["_calculate_rewards"])
    assert changed.ok is False and changed.detail.startswith("takes (self, batch), expected (self, inputs,")
    gone = doctor.examine_hook(Changed, "_generate_and_score_completions", ("self", "inputs"))
    assert gone.ok is False and "no such method" in gone.detail


def test_report_of_a_folder_that_is_no_run_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert "is not a run folder" in complaint(capsys, "report", "nowhere")


def test_settings_are_read_as_yaml() -> None:
    assert parse_settings(["trainer.beta=0.1", "output=x=y", "method.n_max=null"]) == {
        "trainer.beta": 0.1,
        "output": "x=y",
        "method.n_max": None,
    }
    with pytest.raises(RollwiseError, match="--set steps line 1: not valid YAML"):
        parse_settings(["steps=[1"])


def test_without_typer_the_command_says_what_to_install() -> None:
    code = (
        "import importlib.util, sys; found = importlib.util.find_spec;"
        "importlib.util.find_spec = lambda name, *rest: None if name == 'typer' else found(name, *rest);"
        "from rollwise.cli import main; main()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "rollwise: typer is not installed; the command line needs: pip install 'rollwise[cli]'\n"


def test_commands_of_plain_lines_load_no_library_they_do_not_use() -> None:
    code = (
        "import sys; from rollwise.cli.app import status_of;"
        "status = status_of(['solve', '--prompts', '2', '--budget', '4']);"
        "print(status, sorted({'pandas', 'torch', 'trl', 'matplotlib', 'rollwise.cli.config'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.splitlines()[-1] == "0 []"
