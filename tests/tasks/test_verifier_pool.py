"""The pool: whatever a verifier does, a verdict comes, the pool goes on, and unknown is not wrong."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path

import pytest

from rollwise.tasks.pool import VerifierPool, shared_pool
from rollwise.tasks.verdict import Verdict
from rollwise.tasks.verifiers import judge_all, resolve_verifier
from rollwise.types import Outcome, RollwiseError

HERE = "judges:misbehave"


@pytest.fixture(scope="module")
def pool() -> Iterator[VerifierPool]:
    """One process, a short limit."""
    patch = pytest.MonkeyPatch()
    patch.syspath_prepend(Path(__file__).parent)
    with VerifierPool(1, time_limit=0.5, memory_limit=1 << 29) as made:
        yield made
    patch.undo()


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ("loop", "out of time (over 0.5 s)"),
        ("deaf", "out of time (over 0.5 s)"),
        ("sleep", "out of time (over 3 s on the clock)"),
        ("hoard", "out of memory"),
        ("die", "the verifier's process ended with status -9"),
        ("exit", "the verifier raised SystemExit: 3"),
        ("deep", "the verifier recursed too deep"),
        ("dict", "the function returned dict, not a list of one value"),
        ("none", "the function returned NoneType, not a list of one value"),
        ("huge", "not 0, 1 or None"),
        ("text", "the function returned '1', not 0, 1 or None"),
        ("two", "the function returned list, not a list of one value"),
        ("abstain", "the function abstained"),
    ],
)
def test_a_verifier_that_misbehaves_leaves_the_outcome_unknown_and_the_pool_alive(
    said: str, reason: str, pool: VerifierPool
) -> None:
    bad, right, wrong = (pool.submit(HERE, text, {"answer": "1"}) for text in (said, "right", "wrong"))
    assert bad.result(120).outcome is Outcome.UNKNOWN
    assert reason in bad.result().reason
    assert right.result(120).outcome is Outcome.SUCCESS
    assert wrong.result(120).outcome is Outcome.FAILURE


def test_what_a_verifier_prints_is_not_taken_for_a_verdict(pool: VerifierPool) -> None:
    assert pool.submit(HERE, "print", {}).result(120).outcome is Outcome.FAILURE


def test_coroutine_functions_are_awaited(pool: VerifierPool) -> None:
    assert pool.submit("judges:judge_slowly", "x", {}).result(120).outcome is Outcome.SUCCESS


def test_a_verifier_that_does_not_exist_is_unknown_with_its_name(pool: VerifierPool) -> None:
    assert "no built-in 'nothing'" in pool.submit("nothing", "x", {}).result(120).reason


def test_threads_share_a_pool_and_each_gets_its_own_verdicts(pool: VerifierPool) -> None:
    found: dict[int, list[Verdict]] = {}

    def ask(thread: int) -> None:
        futures = [pool.submit("math_verify", f"\\boxed{{{thread}/7}}", {"answer": f"{n}/7"}) for n in range(1, 5)]
        found[thread] = [future.result(120) for future in futures]

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    right = {
        number: [verdict.outcome is Outcome.SUCCESS for verdict in verdicts] for number, verdicts in found.items()
    }
    assert right == {number: [number == n for n in range(1, 5)] for number in range(1, 5)}


def test_a_forked_process_has_a_pool_of_its_own() -> None:
    mathematics = resolve_verifier("math_verify")
    assert judge_all(mathematics, ["\\boxed{2/4}"], [{"answer": "\\frac{x}{2x}"}])[0].outcome is not Outcome.UNKNOWN
    before = shared_pool()
    child = os.fork()
    if child == 0:  # pragma: no cover
        signal.alarm(60)
        fine = shared_pool() is not before and judge_all(mathematics, ["\\boxed{x}"], [{"answer": "y"}])[0].reward == 0
        os._exit(0 if fine else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_closing_finishes_what_was_submitted_and_refuses_more() -> None:
    made = VerifierPool(1)
    futures: list[Future[Verdict]] = [made.submit("numeric", str(n), {"answer": 1}) for n in range(3)]
    made.close()
    made.close()
    assert [future.result(1).reward for future in futures] == [0.0, 1.0, 0.0]
    with pytest.raises(RollwiseError, match="closed"):
        made.submit("numeric", "1", {"answer": 1})


@pytest.mark.parametrize("given", [{"workers": 0}, {"time_limit": 0}, {"memory_limit": -1}])
def test_a_pool_without_room_is_refused(given: dict[str, int]) -> None:
    with pytest.raises(RollwiseError, match="must be positive"):
        VerifierPool(**given)  # type: ignore[arg-type]
