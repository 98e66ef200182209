"""Tasks: every answer is right by an independent account of it, and grading means what it says."""

from __future__ import annotations

import numpy as np
import pytest

from rollwise.lab.model import END, PAD
from rollwise.lab.tasks import TASKS, get_task
from rollwise.tasks.chains import solve_chain
from rollwise.types import RollwiseError


def remainders(prompt: str) -> str:
    divisor, number = int(prompt[0]), prompt[1:]
    return "".join(str(int(number[: place + 1]) % divisor) for place in range(len(number)))


def rewritten(prompt: str) -> str:
    rules, digits = prompt[:2].strip(), prompt[2:]
    for rule in rules:
        half = len(digits) // 2
        digits = {
            "r": "".join(reversed(digits)),
            "s": "".join(str((int(digit) + 3) % 10) for digit in digits),
            "w": "".join(digits[k + 1] + digits[k] for k in range(0, len(digits), 2)),
            "h": digits[half:] + digits[:half],
        }[rule]
    return digits


def completed(prompt: str) -> str:
    closing, stack = dict(zip("([{<", ")]}>", strict=True)), []
    for bracket in prompt:
        if bracket in closing:
            stack.append(closing[bracket])
        else:
            assert stack.pop() == bracket
    return "".join(reversed(stack))


SOLVERS = {
    "chains": solve_chain,
    "chains-final": solve_chain,
    "division": remainders,
    "division-final": remainders,
    "sort": lambda prompt: "".join(sorted(prompt[1:], reverse=prompt[0] == "v")),
    "rewrite": rewritten,
    "brackets": completed,
}


@pytest.mark.parametrize("name", TASKS)
def test_every_answer_of_every_class_is_right(name: str) -> None:
    task, rng = get_task(name), np.random.default_rng(0)
    for label in task.classes:
        prompts, answers = task.draw(label, 40, rng)
        assert prompts.shape == (40, task.prompt_tokens) and answers.shape == (40, task.answer_tokens)
        assert (prompts >= 2).all() and max(prompts.max(), answers.max()) < len(task.words)
        for prompt, answer in zip(prompts, answers, strict=True):
            text = task.text(prompt)
            assert text.endswith("=")
            assert task.text(answer) == SOLVERS[name](text[:-1].rstrip())
            assert (answer == END).sum() == 1 and (answer[answer.tolist().index(END) + 1 :] == PAD).all()


@pytest.mark.parametrize("name", TASKS)
def test_the_right_answer_passes_and_another_problem_s_does_not(name: str) -> None:
    task = get_task(name)
    _, answers = task.draw(task.classes[-1], 200, np.random.default_rng(1))
    assert task.grade(answers, answers).all()
    shifted = np.roll(answers, 1, axis=0)
    assert task.grade(shifted, answers).mean() < 0.4


def test_strict_asks_for_the_whole_answer_and_final_for_the_last_word() -> None:
    strict, final = get_task("chains"), get_task("chains-final")
    answers = np.array([[5, 7, 9, END, PAD]] * 5)
    completions = np.array(
        [
            [5, 7, 9, END, PAD],
            [6, 7, 9, END, PAD],
            [9, END, PAD, PAD, PAD],
            [5, 7, 9, 9, 9],
            [END, PAD, PAD, PAD, PAD],
        ]
    )
    assert strict.grade(completions, answers).tolist() == [True, False, False, False, False]
    assert final.grade(completions, answers).tolist() == [True, True, True, False, False]


def test_an_unknown_task_names_the_nearest() -> None:
    with pytest.raises(RollwiseError, match="task: no 'chain'; did you mean 'chains'"):
        get_task("chain")


def test_votes_are_on_what_is_graded_and_a_completion_without_end_has_none() -> None:
    task, final = get_task("chains"), get_task("chains-final")
    rows = np.array([[5, 9, END, PAD], [4, 9, END, PAD], [5, 9, 9, 9], [END, PAD, PAD, PAD]])
    assert task.answers(rows) == ["26", "16", "", ""]
    assert final.answers(rows) == ["6", "6", "", ""]
