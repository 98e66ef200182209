"""Answers no model should be able to break a verifier with, drawn by seed."""

from __future__ import annotations

import random

PIECES = [
    "\\boxed{",
    "$",
    "\\frac{1}",
    "}",
    "\\begin{pmatrix}",
    "&",
    "\\\\",
    "\\text{",
    "#### ",
    "-",
    "\\int_0^",
    "\\left[",
]
CODE = ["__import__('os').system('true')", "exec('while 1: pass')", "lambda: 0", "10**10**10", "'a'*10**9"]
GOLDS = ["5", "\\frac{1}{2}", "x^2+1", "(1,2)", "[0,1)", "A", "yes", "1,000", "\\{1,2,3\\}", "\\text{red}"]


def draw_hostile(count: int, seed: int) -> list[str]:
    """`count` answers: megabytes, deep nesting, huge exponents, control characters, half-open LaTeX and random bytes."""
    rng = random.Random(seed)
    return [rng.choice(KINDS)(rng) for _ in range(count)]


def _long(rng: random.Random) -> str:
    return rng.choice(
        ["9", "a", " ", "1,", "\\boxed{", "####", "answer is ", "1/", "{", "$", "(A", "\n", "-", "1e"]
    ) * (10 ** rng.randint(3, 6) // 4)


def _nested(rng: random.Random) -> str:
    depth = rng.choice([5, 30, 100, 2000])
    left, right = rng.choice([("{", "}"), ("(", ")"), ("\\frac{", "}{2}"), ("\\sqrt{", "}"), ("\\left(", "\\right)")])
    return _dress(rng, left * depth + "1" + right * depth)


def _power(rng: random.Random) -> str:
    base, height = rng.randint(2, 99), rng.randint(1, 5)
    tower = "".join(f"{base}^{{" for _ in range(height)) + str(rng.randint(1, 10**6)) + "}" * height
    factorial = f"{rng.randint(1, 10**9)}{'!' * rng.randint(1, 4)}"
    return _dress(rng, rng.choice([tower, factorial, f"1e{10 ** rng.randint(1, 12)}", f"{'9' * 500}^{{{'9' * 50}}}"]))


def _control(rng: random.Random) -> str:
    marks = "\x00\x01\x1b\x7f\u200b\u202e\ufeff\ud800\U0001f600\u0663\u00bd\u221e"
    return _dress(rng, "".join(rng.choice(marks + "5.\\${}") for _ in range(rng.randint(1, 60))))


def _half_open(rng: random.Random) -> str:
    return "".join(rng.choice(PIECES) for _ in range(rng.randint(1, 30)))


def _random(rng: random.Random) -> str:
    return "".join(chr(rng.randint(1, 0x2FF)) for _ in range(rng.randint(0, 200)))


def _code(rng: random.Random) -> str:
    return _dress(
        rng,
        rng.choice(
            ["__import__('os').system('true')", "exec('while 1: pass')", "lambda: 0", "10**10**10", "'a'*10**9"]
        ),
    )


def _analysis(rng: random.Random) -> str:
    formulas = [
        "\\sum_{n=1}^{1000000} \\frac{1}{n^2}",
        "\\int_0^{\\infty} e^{-x^{x^x}} dx",
        "\\prod_{k=1}^{99999} k",
        "\\lim_{x \\to 0} \\frac{\\sin x}{x}",
        "\\sqrt[99999]{2}",
        "\\binom{100000}{50000}",
        "(x+y+z)^{300}",
        "\\begin{pmatrix}" + "&".join("1" * 60) + "\\end{pmatrix}",
        "\\{" + ",".join(str(n) for n in range(300)) + "\\}",
        "x" + "+x" * 400,
        "\\tan(\\cos(\\sin(\\exp(\\log(x^{99}+1)))))",
    ]
    return _dress(rng, rng.choice(formulas))


def _dress(rng: random.Random, text: str) -> str:
    return rng.choice(["{}", "\\boxed{{{}}}", "The answer is {}.", "#### {}", "${}$", "\\[{}\\]"]).format(text)


KINDS = (_long, _nested, _power, _control, _half_open, _random, _code, _analysis)
