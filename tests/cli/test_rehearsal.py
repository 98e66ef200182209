"""Whatever a run would refuse when it starts, a dry run refuses: status 2, one line that names it, nothing written."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from transformers import AutoConfig, AutoModelForCausalLM, LlamaConfig, LlamaForCausalLM

from rollwise.cli.app import status_of
from rollwise.cli.config import read_config
from rollwise.cli.preflight import check_prompts, load_inputs, name_of
from rollwise.cli.rehearsal import UNTRIED
from rollwise.cli.train import plan
from rollwise.cli.train_flags import parse_settings
from rollwise.cli.trainer_settings import training_settings
from rollwise.tasks.models import load_model_and_tokenizer
from rollwise.types import RollwiseError

REWARDS = """
import torch
def fine(completions, **columns):
    return [1.0] * len(completions)
def soft_overlong_punishment_reward(completions, **columns):
    return [0.0] * len(completions)
def narrow(completions):
    return [1.0] * len(completions)
def placed(completions, /, **columns):
    return [1.0] * len(completions)
def needy(completions, target, **columns):
    return [1.0] * len(completions)
class Judge:
    def __call__(self, completions, **columns):
        return [1.0] * len(completions)
judge = Judge()
class Failing:
    name, saves = "failing", False
    def next_wave(self, view, rng):
        return {}["prompt"]
    def metrics(self):
        return {}
class Unborn(Failing):
    def __init__(self):
        raise OSError("no table")
class Unmeasured(Failing):
    def metrics(self):
        return 1 / 0
model = torch.nn.Linear(1, 1)
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "own_rewards.py").write_text(REWARDS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


def rehearse(*settings: str) -> None:
    small = ["prompts_per_step=4", "rollouts_per_prompt=4", "data.limit=20", "eval_data=null", "compare_uniform=false"]
    plan(read_config(None, parse_settings([*small, *settings])))


@pytest.mark.parametrize(
    ("settings", "line"),
    [
        (["method.n_min=5"], "n_min: 5"),
        (["method.n_max=3"], "n_max: 3"),
        (["method.allocator=builtins:print"], "allocator: builtins:print gives no allocator"),
        (
            ["method.allocator=own_rewards:Failing"],
            ":Failing raised KeyError: 'prompt' (own_rewards.py, line",
        ),
        (["method.allocator=own_rewards:Unborn"], "allocator: own_rewards:Unborn raised OSError: no table"),
        (["method.allocator=own_rewards:Unmeasured"], "allocator: own_rewards:Unmeasured raised ZeroDivisionError"),
        (["method.advantage=krppo"], "advantage: no estimator 'krppo'"),
        (["loss_type=dappo"], "loss_type: no 'dappo'; did you mean 'dapo'?"),
        (["reward_weights=[1.0e39]"], "reward_weights.0: input should be less than"),
        (["method=tic_grpo", "trainer.beta=0.1"], "importance_sampling_level: trajectory does not go with beta 0.1"),
        (["trainer.sync_ref_model=true"], "trainer: You passed `sync_ref_model=True` while `beta=0.0`"),
        (["trainer.beta=high"], "trainer.beta: 'high' does not fit; it takes float"),
        (["trainer.logging_steps=true"], "trainer.logging_steps: true is a switch and no number"),
        (["lora={r: true}"], "lora.r: true is a switch and no number"),
        (["trainer.beta=-0.1"], "trainer.beta: -0.1; give 0 or more"),
        (["trainer.beta=.nan"], "trainer.beta: nan; give a finite number"),
        (["trainer.max_grad_norm=.inf"], "trainer.max_grad_norm: inf; give a finite number"),
        (["trainer.lr_scheduler_kwargs={a: [.inf]}"], "trainer.lr_scheduler_kwargs.a.0: inf"),
        (["trainer.num_iterations=0"], "trainer.num_iterations: 0; give 1 or more"),
        (["trainer.per_device_train_batch_size=many"], "trainer.per_device_train_batch_size: 'many' does not fit"),
        (["trainer.importance_sampling_level=word"], "trainer.importance_sampling_level: no 'word'"),
        (["trainer.top_p=2"], "trainer.top_p: 2; give a number from 0 to 1"),
        (["trainer.generation_kwargs={num_return_sequences: 2}"], "num_return_sequences: set rollouts_per_prompt"),
        (["trainer.push_to_hub=true"], "trainer.push_to_hub: a run uploads nothing"),
        (["trainer.resume_from_checkpoint=there"], "trainer.resume_from_checkpoint: a run starts anew"),
        (["trainer.num_train_epochs=0"], "trainer.num_train_epochs: set steps"),
        (["arms=[{name: config.yaml}]"], "config.yaml is a file of every run folder"),
        (["trainer.optim=adamx"], "trainer: adamx is not a valid OptimizerNames"),
        (["trainer.report_to=wandb"], "trainer: WandbCallback requires wandb"),
        (["trainer.use_vllm=true"], "trainer.use_vllm: vllm is not installed"),
        (["trainer.eval_strategy=steps"], "trainer.eval_strategy: a run is evaluated before and after"),
        (["trainer.router_aux_loss_coef=0.1"], "trainer: `router_aux_loss_coef` is set"),
        (["trainer.model_init_kwargs={dtype: foo}"], "trainer.model_init_kwargs.dtype: 'foo'; valid: auto"),
        (["trainer.fsdp=full_shard"], "trainer: Using fsdp only works in distributed training"),
        (["lora={r: 0}"], "lora.r: 0; give 1 or more"),
        (["lora={alhpa: 8}"], "lora.alhpa: peft's LoraConfig has no such field; did you mean 'alpha'?"),
        (["lora={r: eight}"], "lora.r: 'eight' does not fit; it takes int"),
        (["lora={alpha: .inf}"], "lora.alpha: inf; give a finite number"),
        (["lora={alpha: 8, lora_alpha: 8}"], "lora.lora_alpha: set twice"),
        (["lora={task_type: SEQ_CLS}"], "lora.task_type: is CAUSAL_LM in a run"),
        (["lora={target_modules: [nothing]}"], "lora: Target modules {'nothing'} not found"),
        (["lora={target_modules: [lm_head]}"], "lora: Applying a PEFT adapter to `lm_head` is not supported"),
        (["rewards=[builtins:print]"], "rewards: print: got an unexpected keyword argument 'prompts'"),
        (["rewards=[builtins:max]"], "rewards: max does not say which arguments it takes"),
        (["rewards=[own_rewards:narrow]"], "rewards: narrow: got an unexpected keyword argument 'prompts'"),
        (["rewards=[own_rewards:placed]"], "rewards: placed: "),
        (["rewards=[own_rewards:needy]"], "rewards: needy needs a column 'target'; data has answer"),
        (["rewards=[own_rewards:Judge]"], "rewards: Judge is a class"),
        (["rewards=[own_rewards:model]"], "rewards: Linear is a torch module"),
        (
            ["rewards=[own_rewards:soft_overlong_punishment_reward]", "overlong={cache: 4}"],
            "rewards: two functions are called 'soft_overlong_punishment_reward'",
        ),
        (["rewards=[own_rewards:fine, own_rewards:fine]"], "rewards: two functions are called 'fine'"),
        (["outcome=nothing"], "outcome: "),
        (["outcome=builtins:print"], "outcome: print: got an unexpected keyword argument"),
        (["data.chat=true"], "data: the prompts are conversations, and the tokenizer of "),
        (["output=own_rewards.py/out"], "output: own_rewards.py/out cannot be "),
        (['output="a\\0b"'], "output: "),
        ([f"output={'x' * 300}"], "File name too long"),
    ],
)
def test_it_is_refused_in_one_line_and_nothing_is_written(folder: Path, settings: list[str], line: str) -> None:
    before = sorted(path.name for path in folder.iterdir() if path.name != "__pycache__")
    with pytest.raises(RollwiseError) as caught:
        rehearse(*settings)
    assert str(caught.value).startswith(line) or line in str(caught.value)
    assert "\n" not in str(caught.value)
    assert sorted(path.name for path in folder.iterdir() if path.name != "__pycache__") == before


@pytest.mark.parametrize(
    "settings",
    [
        ["trainer.beta=0.1", "trainer.sync_ref_model=true"],
        ["trainer.weight_decay=1e-3", "trainer.num_iterations=2"],
        ["method.sequential=true", "method.n_min=0"],
        ["lora={r: 4, alpha: 8, dropout: 0.1}"],
        ["rewards=[own_rewards:judge, own_rewards:fine]", "outcome=judge"],
        ["method=dapo", "overlong={cache: 4}", "reward_weights=[2]"],
        ["output=deep/er/out", "trainer.lr_scheduler_type=cosine"],
    ],
)
def test_what_a_run_accepts_the_rehearsal_accepts_and_leaves_nothing(folder: Path, settings: list[str]) -> None:
    rehearse(*settings)
    assert sorted(path.name for path in folder.iterdir() if path.name != "__pycache__") == ["own_rewards.py"]


def test_a_penalty_on_length_comes_last_weighs_1_and_leaves_the_outcome_to_the_verifier() -> None:
    settings = ["method=dapo", "overlong={cache: 4}", "reward_weights=[2]"]
    config = read_config(None, parse_settings(settings))
    inputs = load_inputs(config)
    assert list(map(name_of, inputs.rewards)) == ["exact_match", "soft_overlong_punishment_reward"]
    assert inputs.outcome == "exact_match"
    assert training_settings(config, config.planned_arms()[-1], Path("x"))["reward_weights"] == [2.0, 1.0]
    longest = config.max_completion_length
    lengths = [[1] * length for length in (longest - 4, longest - 2, longest)]
    assert inputs.rewards[1](completion_ids=lengths) == [0.0, -0.5, -1.0]


def test_prompts_alone_are_enough_where_answers_vote_or_texts_foretell(folder: Path) -> None:
    rows = [json.dumps({"prompt": f"{k}+{k}="}) for k in range(12)]
    (folder / "prompts.jsonl").write_text("\n".join(rows) + "\n")
    shape = {"prompts_per_step": 4, "rollouts_per_prompt": 4, "steps": 1, "data.source": "prompts.jsonl"}
    (folder / "run.yaml").write_text("max_completion_length: 9\n")
    for method, said in (
        (VOTES, "optpo: optpo, 4 waves, n_min 2, prior 1,1"),
        (FORETOLD, "vip: vip, 4 waves, n_min 2"),
    ):
        lines = " ".join(" ".join(plan(read_config(folder / "run.yaml", shape | method))).split())
        assert said in lines and ("labels majority (marked)" in lines) == (method is VOTES)


def test_prompts_alone_without_a_vote_are_refused_with_a_way_out(folder: Path) -> None:
    (folder / "prompts.jsonl").write_text("\n".join(json.dumps({"prompt": f"{k}+{k}="}) for k in range(12)) + "\n")
    (folder / "run.yaml").write_text("data: {source: prompts.jsonl}\n")
    with pytest.raises(RollwiseError) as caught:
        plan(read_config(folder / "run.yaml", {}))
    assert str(caught.value) == (
        "rewards: exact_match needs a column 'answer'; data has prompt; without labels, set method: optpo, or "
        "method.labels: majority"
    )


VOTES = {"method": "optpo"}
FORETOLD = {"method": "vip", "rewards": ["own_rewards:fine"]}


def test_a_dry_run_says_it_with_status_2(capsys: pytest.CaptureFixture[str]) -> None:
    assert status_of(["train", "--dry-run", "--set", "method.n_min=9"]) == 2
    out, err = capsys.readouterr()
    assert out == "" and err.startswith("rollwise: n_min: 9") and err.count("\n") == 1


@pytest.mark.parametrize(
    ("prompt", "fault"),
    [
        ("", "row 1: the prompt is empty"),
        (7, "row 1: the prompt is no text"),
        ([], "row 1: the prompt is no text and no list of messages"),
        (["user"], "row 1: a message has no role"),
        ([{"content": "hello"}], "row 1: a message has no role"),
        ([{"role": "user"}], "row 1: the message of role 'user' has no content"),
        ([{"role": "user", "content": None}], "row 1: the message of role 'user' has no content"),
    ],
)
def test_a_malformed_prompt_is_named_by_its_row(prompt: object, fault: str) -> None:
    with pytest.raises(RollwiseError, match=fault):
        check_prompts([[{"role": "user", "content": "1+1="}], prompt], "data")


def test_a_file_of_malformed_conversations_is_refused(folder: Path) -> None:
    rows = [
        {"prompt": [{"role": "user", "content": "1"}], "answer": "1"},
        {"prompt": [{"role": "user"}], "answer": "1"},
    ]
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows * 4))
    with pytest.raises(RollwiseError, match="data: row 1: the message of role 'user' has no content"):
        rehearse("data={source: rows.jsonl}")


@pytest.mark.parametrize("template", ["{prompt:>999999999}", "{prompt!r:99999}", "{prompt:{answer}}"])
def test_a_template_that_would_fill_the_memory_with_blanks_is_refused(template: str) -> None:
    with pytest.raises(RollwiseError, match=r"^data\.prompt_template: .* asks for a width"):
        rehearse(f"data.prompt_template='{template}'")


def test_templates_may_format_numbers_and_hold_braces() -> None:
    rehearse("data.prompt_template='{{x}} {prompt:.60} ='")


def test_a_model_that_computes_with_its_weights_is_said_to_be_untried(tmp_path: Path) -> None:
    class WeightyConfig(LlamaConfig):
        model_type = "weighty"

    class Weighty(LlamaForCausalLM):
        config_class = WeightyConfig

        def __init__(self, config: WeightyConfig) -> None:
            super().__init__(config)
            self.scale = self.lm_head.weight.sum().item()

    AutoConfig.register("weighty", WeightyConfig)
    AutoModelForCausalLM.register(WeightyConfig, Weighty)
    folder = tmp_path / "weighty"
    model, tokenizer = load_model_and_tokenizer("embedded")
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    written = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(written | {"model_type": "weighty"}))
    lines = plan(read_config(None, parse_settings([f"model={folder}", "eval_data=null", "compare_uniform=false"])))
    assert lines[-1] == f"note         {UNTRIED}"
