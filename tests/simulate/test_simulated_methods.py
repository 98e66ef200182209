"""Methods as words."""

from __future__ import annotations

import pytest

from rollwise.allocators.adaroll import AdaRoll
from rollwise.simulate.methods import parse_method, parse_methods
from rollwise.types import RollwiseError


def test_a_utility_stands_for_adaroll_with_it():
    method = parse_method("sum_variance@sequential=true@waves=8@prior=0.3/0.7")
    rule = method.build()
    assert isinstance(rule, AdaRoll)
    assert rule.utility.name == "sum_variance"
    assert rule.sequential is True
    assert dict(method.step) == {"waves": 8, "prior": "0.3,0.7"}


def test_a_label_is_what_was_written():
    assert [method.label for method in parse_methods("uniform, min_variance@n_min=0")] == [
        "uniform",
        "min_variance@n_min=0",
    ]


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("unifrom", "uniform"),
        ("min_varience", "min_variance"),
        ("uniform@waves", "key=value"),
        ("uniform@sequential=true", "sequential"),
        ("", "at least one"),
        ("uniform,uniform", "twice"),
    ],
)
def test_what_is_no_method_is_one_clear_line(text, part):
    with pytest.raises(RollwiseError, match=part):
        parse_methods(text)


@pytest.mark.parametrize(
    "text", ["vip", "preset.vip", "vip_dr_grpo", "vip@form=dr_grpo", "vip@prior=gaussian_process"]
)
def test_prompts_without_texts_cannot_be_foretold_by_them(text):
    with pytest.raises(RollwiseError, match="the simulator has not; use vip_beta"):
        parse_method(text)
    assert dict(parse_method("vip_beta").step)["prior"] == dict(parse_method("vip@prior=carried").step)["prior"]


def test_an_unknown_setting_of_a_rule_is_named():
    with pytest.raises(RollwiseError, match="depth"):
        parse_method("min_variance@depth=3").build()


def test_a_rule_of_ones_own_is_named_by_its_address(tmp_path, monkeypatch):
    (tmp_path / "my_simulated_rules.py").write_text(
        "from rollwise.allocators.uniform import Uniform\n\n\n"
        "class Mine(Uniform):\n    def __init__(self, share=1.0):\n        self.share = share\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    assert parse_method("my_simulated_rules:Mine@share=0.5@waves=2").build().share == 0.5
    with pytest.raises(RollwiseError, match="Mine"):
        parse_method("my_simulated_rules:Mime").build()
    with pytest.raises(RollwiseError, match="nowhere"):
        parse_method("nowhere:Mine").build()
