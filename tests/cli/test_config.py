"""The configuration of a run: defaults, flags over the file, and errors that name the setting."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from rollwise.cli.config import EvaluationSpec, MethodSpec, RunConfig, read_config
from rollwise.cli.yaml_input import load_yaml
from rollwise.tasks.datasets import DataSpec
from rollwise.types import RollwiseError

MINIMAL = "data: {source: rows.jsonl}\n"


def read(tmp_path: Path, text: str, **overrides: object) -> RunConfig:
    path = tmp_path / "run.yaml"
    path.write_text(text)
    return read_config(path, {key.replace("__", "."): value for key, value in overrides.items()})


def fault(tmp_path: Path, text: str, **overrides: object) -> str:
    with pytest.raises(RollwiseError) as caught:
        read(tmp_path, text, **overrides)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_only_the_data_must_be_given(tmp_path: Path) -> None:
    config = read(tmp_path, MINIMAL)
    assert config.model == "embedded"
    assert (config.prompts_per_step, config.rollouts_per_prompt, config.budget) == (8, 8, 64)
    assert [arm.name for arm in config.planned_arms()] == ["adaroll"]


def test_the_demo_compares_uniform_with_adaptive_at_the_same_budget() -> None:
    config = read_config(None, {})
    uniform, adaptive = config.planned_arms()
    assert (uniform.allocator, adaptive.allocator) == ("uniform", "adaroll")
    assert uniform.weighting == adaptive.weighting


def test_flags_win_over_the_file_also_inside_a_mapping(tmp_path: Path) -> None:
    text = MINIMAL + "steps: 5\nmethod: {utility: sum_variance, waves: 2}\n"
    config = read(tmp_path, text, steps=7, method__waves=3, trainer__beta=0.1)
    assert (config.steps, config.method.waves, config.method.utility) == (7, 3, "sum_variance")
    assert config.trainer == {"beta": 0.1}


def test_a_configuration_reads_back_as_itself(tmp_path: Path) -> None:
    config = read(tmp_path, MINIMAL + "method: {prior: '2,3'}\n")
    assert config.method.prior == "2,3"
    assert read(tmp_path, yaml.safe_dump(config.model_dump(mode="json"))) == config


def test_listed_arms_are_trained_as_listed(tmp_path: Path) -> None:
    text = MINIMAL + "arms:\n- {name: a, allocator: uniform}\n- {name: b, utility: sum_variance, waves: 8}\n"
    assert [(arm.name, arm.allocator, arm.waves) for arm in read(tmp_path, text).planned_arms()] == [
        ("a", "uniform", 4),
        ("b", "adaroll", 8),
    ]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("stpes: 3\n", "stpes: unknown setting; did you mean 'steps'?"),
        ("method: {utilty: sum_variance}\n", "method.utilty: unknown setting; did you mean 'utility'?"),
        ("arms: [{name: a, wave: 2}]\n", "arms.0.wave: unknown setting; did you mean 'waves'?"),
        ("steps: many\n", "steps: 'many' does not fit; give a whole number, such as 100"),
        ("steps: 0\n", "steps: input should be greater than or equal to 1, got 0"),
        ("method: {prior: caried}\n", "method.prior: no 'caried'; did you mean 'carried'?"),
        ("method: {objective: pas@4}\n", "method.objective: no 'pas@4'"),
        ("method: {prior: [1]}\n", "method.prior: [1] is not a Beta prior; give two positive numbers, such as 1,1"),
        ("method: {weighting: rows}\n", "method.weighting: input should be 'per_rollout' or 'per_prompt', got 'rows'"),
        ("rewards: [exact_match]\nreward_weights: [1, 2]\n", "reward_weights has 2 entries for 1 rewards"),
        ("arms: [{name: a}, {name: a}]\n", "two arms are called 'a'; give each its own name"),
        ("arms: [{name: ../a}]\n", "arms.0.name: string should match pattern"),
        ("compare_uniform: true\narms: [{name: a}]\n", "give either arms or compare_uniform"),
        ("overlong: {cache: 4, weight: 2}\n", "overlong.weight: unknown setting; valid: cache"),
        ("overlong: {cache: 300}\n", "overlong.cache: 300 tokens are more than max_completion_length 256; give fewer"),
        ("rewards: [numeric, yes_no]\noverlong: {cache: 9}\n", "outcome: overlong lowers the summed reward"),
        ("rewards: []\n", "rewards: none given; name one, such as exact_match, or set method.labels: majority"),
        ("method: optpo\neval_data: {source: e.jsonl}\n", "rewards: eval_data is measured by one; name it"),
        ("method: optpo\noverlong: {cache: 2}\n", "overlong: under labels: majority only agreement trains"),
        ("method: {preset: optpo, answers: boxd}\n", "method.answers: no 'boxd'; did you mean 'boxed'?"),
        (
            "method: {allocator: adaroll, selector_settings: {foo: 5}}\n",
            "method.selector_settings: foo would have no effect, as no selector is set",
        ),
        (
            "method: {preset: replay, curator_settings: {pods: {share: .5}}}\n",
            "method.curator_settings: pods is no curator of this run (valid: replay); name it in curators",
        ),
        (
            "method: {preset: vip, prior_settings: {own: much}}\n",
            "method.prior_settings.own: 'much' does not fit; give a number, such as 0.1",
        ),
        (
            "method: {preset: vip, prior_settings: {embedding: 3}}\n",
            "embedding: 3 is no address; give module:function",
        ),
        ("method: {prior_settings: {own: 0.1}}\n", "prior_settings: are for prior gaussian_process"),
        ("method: {answers: boxed}\n", "method.answers: boxed would have no effect, as nothing votes; set labels"),
        ("arms: [{name: a, selector_settings: {foo: 5}}]\n", "arms.0.selector_settings: foo would have no effect"),
        ("reward_weights: [0]\n", "reward_weights: all are 0, so that nothing trains; give one that is not"),
        ("output: ''\n", "output: no folder has an empty name; give one, or leave it out for runs/"),
        ("output: '  '\n", "output: no folder has an empty name"),
        ("steps: true\n", "steps: true is a switch and no number; give a number, such as 1"),
        ("learning_rate: no\n", "learning_rate: false is a switch and no number"),
        ("reward_weights: [yes]\n", "reward_weights.0: true is a switch and no number"),
        ("method: {n_max: true}\n", "method.n_max: true is a switch and no number"),
        ("arms: [{name: a, waves: true}]\n", "arms.0.waves: true is a switch and no number"),
        ("evaluation: {samples: false}\n", "evaluation.samples: false is a switch and no number"),
        ("eval_data: {source: e.jsonl, limit: true}\n", "eval_data.limit: true is a switch and no number"),
    ],
)
def test_what_does_not_fit_is_named(tmp_path: Path, text: str, line: str) -> None:
    assert line in fault(tmp_path, MINIMAL + text)


@pytest.mark.parametrize(
    ("method", "line"),
    [
        ("{preset: gvm, allocator_settings: {first: eight}}", "first: 'eight' does not fit; it takes int | None"),
        (
            "{preset: gvm, allocator_settings: {first: true}}",
            "first: true is a switch and no number",
        ),
        ("{preset: gvm, allocator_settings: {first: 0}}", "gvm: first 0 is out of range; give a whole number of 1"),
        ("{preset: gvm, allocator_settings: {frist: 4}}", "frist: gvm has no such setting; did you mean 'first'?"),
        ("{preset: gvm, allocator_settings: {alpha: .nan}}", "alpha: nan; give a finite number"),
        ("{preset: dars, allocator_settings: {form: hv}}", "dars: no form 'hv'; valid: et, hw"),
        ("{allocator: optpo, allocator_settings: {most: 2.5}}", "most: 2.5 does not fit; it takes int"),
        ("{selector: mopps, selector_settings: {candidates: many}}", "does not fit; it takes float | None"),
        (
            "{curators: [replay], curator_settings: {replay: {share: half}}}",
            "share: 'half' does not fit; it takes float",
        ),
    ],
)
def test_settings_of_a_lever_are_checked_when_the_file_is_read(tmp_path: Path, method: str, line: str) -> None:
    said = fault(tmp_path, f"{MINIMAL}method: {method}\n")
    assert said.startswith("method.") and "_settings: " in said and line in said


def test_answers_are_read_by_the_rule_that_votes_and_not_by_the_uniform_arm_beside_it(tmp_path: Path) -> None:
    config = read(tmp_path, MINIMAL + "method: {allocator: optpo, answers: boxed}\ncompare_uniform: true\n")
    assert [(arm.name, arm.answers) for arm in config.planned_arms()] == [("uniform", "marked"), ("optpo", "boxed")]


@pytest.mark.parametrize(
    "given", ["{preset: cero, curators: [live]}", "{preset: dapo, curators: []}", "adaroll", "cero"]
)
def test_a_method_reads_back_as_itself(tmp_path: Path, given: str) -> None:
    config = read(tmp_path, f"{MINIMAL}method: {given}\n")
    assert read(tmp_path, yaml.safe_dump(config.model_dump(mode="json"))) == config


def test_a_number_that_yaml_reads_as_text_is_one_for_a_lever_too(tmp_path: Path) -> None:
    config = read(tmp_path, MINIMAL + "method: {preset: gvm, allocator_settings: {alpha: 1e-4, first: '4'}}\n")
    assert config.method.allocator_settings == {"alpha": 1e-4, "first": 4}


def test_a_flag_adds_to_a_method_of_one_word(tmp_path: Path) -> None:
    mixed = read(tmp_path, MINIMAL + "method: adaroll\n", method__selector="cero", method__waves=2)
    spelled = read(tmp_path, MINIMAL + "method: {preset: adaroll, selector: cero, waves: 2}\n")
    assert mixed == spelled
    assert (mixed.method.allocator, mixed.method.selector, mixed.method.waves) == ("adaroll", "cero", 2)


def test_a_method_without_labels_needs_no_reward_function(tmp_path: Path) -> None:
    config = read(tmp_path, MINIMAL + "method: optpo\ncompare_uniform: true\n")
    assert config.rewards == []
    assert {(arm.name, arm.labels) for arm in config.planned_arms()} == {
        ("uniform", "majority"),
        ("optpo", "majority"),
    }
    assert read(tmp_path, yaml.safe_dump(config.model_dump(mode="json"))) == config
    assert read(tmp_path, MINIMAL + "method: optpo\nrewards: [exact_match]\n").rewards == ["exact_match"]


def test_several_faults_show_the_first_and_count_the_rest(tmp_path: Path) -> None:
    assert fault(tmp_path, MINIMAL + "steps: 0\nbudgt: 3\nseed: x\n").endswith("(and 2 more)")


def test_missing_data_is_named(tmp_path: Path) -> None:
    assert fault(tmp_path, "steps: 3\n") == "data: missing; give it in the file or as a flag"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a: [1\nb: 2\n", "line 2: not valid YAML"),
        ("- 1\n", "holds no settings"),
        ("", "holds no settings"),
    ],
)
def test_a_file_that_is_no_mapping_is_one_clear_line(tmp_path: Path, text: str, line: str) -> None:
    assert line in fault(tmp_path, text)


def test_an_absent_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(RollwiseError, match=r"--config .*absent.yaml: No such file or directory; give a YAML file"):
        read_config(tmp_path / "absent.yaml", {})


def test_binary_content_is_named(tmp_path: Path) -> None:
    path = tmp_path / "run.yaml"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(RollwiseError, match="it is not text"):
        read_config(path, {})


def test_a_flag_inside_something_that_is_no_mapping_is_named(tmp_path: Path) -> None:
    assert "steps is not a mapping of settings" in fault(tmp_path, MINIMAL + "steps: 3\n", steps__x=1)


NUMBERS = [
    f"{prefix}{name}"
    for prefix, model in (
        ("", RunConfig),
        ("method.", MethodSpec),
        ("evaluation.", EvaluationSpec),
        ("data.", DataSpec),
    )
    for name, field in model.model_fields.items()
    if field.annotation in (int, float, int | None, float | None)
]


@pytest.mark.parametrize("name", NUMBERS)
@pytest.mark.parametrize("value", [".inf", "-.inf", ".nan", "inf", "nan", "[1]", "{a: 1}", "many"])
def test_no_setting_takes_a_number_that_is_none(tmp_path: Path, name: str, value: str) -> None:
    assert fault(tmp_path, MINIMAL, **{name.replace(".", "__"): load_yaml(value, "value")}).startswith(f"{name}: ")


def test_the_numbers_tried_above_are_those_of_the_configuration() -> None:
    assert {"steps", "learning_rate", "outcome_threshold", "method.n_max", "evaluation.batch", "data.limit"} <= set(
        NUMBERS
    )


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("reward_weights: [.nan]\n", "reward_weights.0: input should be a finite number, got nan"),
        ("seed: -1\n", "seed: input should be greater than or equal to 0, got -1"),
        ("rollouts_per_prompt: 1000000000\n", "rollouts_per_prompt: input should be less than or equal to 1000000"),
        ("rollouts_per_prompt: 1000000\n", "rollouts_per_prompt: 8 x 1000000 = 8,000,000 rollouts a step"),
        ("temperature: 0\n", "temperature: input should be greater than or equal to 0.01, got 0"),
        ("method: {prior: null}\n", "method.prior: give a Beta a,b"),
        ("method: {prior: {a: 1}}\n", "method.prior: "),
        ("method: null\n", "method: nothing is given; give a name or settings, such as cero, or {allocator: adaroll"),
        ("method: [cero]\n", "method: ['cero'] does not fit; give a name or settings, such as cero"),
        ("method: 5\n", "method: 5 does not fit; give a name or settings, such as cero"),
        ("overlong: 8\n", "overlong: 8 does not fit; give settings, such as {cache: 64}"),
        ("overlong: {cach: 8}\n", "overlong.cach: unknown setting; did you mean 'cache'? (and 1 more)"),
        ("overlong: {}\n", "overlong.cache: missing; give it in the file or as a flag"),
        ("method: {waves: four}\n", "method.waves: 'four' does not fit; give a whole number, such as 4"),
        ("method: {waves: 2.5}\n", "method.waves: 2.5 does not fit; give a whole number, such as 4"),
        ("method: {n_max: four}\n", "method.n_max: 'four' does not fit; give a whole number, such as 4"),
        ("method: {curators: [3]}\n", "method.curators.0: 3 does not fit; give text, such as replay"),
        ("method: {curators: 3}\n", "method.curators: 3 does not fit; give a list, such as [replay]"),
        ("method: {allocator: 3}\n", "method.allocator: 3 does not fit; give text, such as adaroll"),
        (
            "method: {sequential: maybe}\n",
            "method.sequential: 'maybe' does not fit; give true or false, such as false",
        ),
        (
            "arms: [{name: a}, 3]\n",
            "arms.1: 3 does not fit; give settings, such as [{name: plain, allocator: uniform}]",
        ),
        ("evaluation: 3\n", "evaluation: 3 does not fit; give settings, such as {samples: 4}"),
        ("trainer: 3\n", "trainer: 3 does not fit; give settings, such as {beta: 0.0}"),
        ("learning_rate: low\n", "learning_rate: 'low' does not fit; give a number, such as 1e-06"),
        ("eval_data: 3\n", "eval_data: 3 does not fit; give settings, such as {source: test.jsonl}"),
        ("1: 2\n", "1: "),
        ("rewards: exact_match\n", "rewards: 'exact_match' does not fit; give a list, such as [exact_match]"),
        ("seed: 0x" + "f" * 9000 + "\n", "seed: "),
    ],
)
def test_wrong_numbers_and_types_are_named(tmp_path: Path, text: str, line: str) -> None:
    assert line in fault(tmp_path, MINIMAL + text)


def test_a_flag_changes_one_setting_where_the_file_gives_two_the_same_mapping(tmp_path: Path) -> None:
    config = read(tmp_path, "data: &rows {source: a.jsonl}\neval_data: *rows\n", data__source="b.jsonl")
    assert config.eval_data is not None
    assert (config.data.source, config.eval_data.source) == ("b.jsonl", "a.jsonl")


NAMES = [*RunConfig.model_fields, "method.prior", "method.objective", "arms.0", "data.columns", "unheard_of"]
VALUES = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.floats(),
        st.dates(),
        st.binary(max_size=4),
        st.text(max_size=8),
        st.sampled_from(["1,1", "chains", "exact_match", "none", "a:b", "uniform"]),
    ),
    lambda below: (
        st.lists(below, max_size=3)
        | st.dictionaries(st.one_of(st.sampled_from(NAMES), st.text(max_size=4), st.integers()), below, max_size=3)
    ),
    max_leaves=8,
)


@given(place=st.sampled_from(NAMES), value=VALUES)
def test_any_tree_of_values_is_a_configuration_or_one_line_that_names_a_setting(place: str, value: object) -> None:
    given: dict[str, object] = {"data": {"source": "chains"}}
    if place == "arms.0":
        given["arms"] = [value]
    elif "." in place:
        parent, name = place.split(".")
        given[parent] = {"source": "chains", name: value} if parent == "data" else {name: value}
    else:
        given[place] = value
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "run.yaml")
        path.write_text(yaml.safe_dump(given, allow_unicode=True), encoding="utf-8")
        try:
            read_config(path, {})
        except RollwiseError as error:
            assert "\n" not in str(error) and len(str(error)) < 600
            assert place.split(".")[0] in str(error) or str(error).startswith("two arms")
