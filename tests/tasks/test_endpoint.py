"""An endpoint in trouble: what is asked again, how long it waits, and what it says in the end."""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from rollwise.tasks import endpoint as module
from rollwise.tasks.endpoint import Endpoint
from rollwise.tasks.generation import Completion, Sampling
from rollwise.types import RollwiseError

Step = tuple[int, dict[str, str], bytes | None]
"""Status, headers and body of one answer; None for a body that drips."""

RIGHT = {"choices": [{"text": "7", "finish_reason": "stop"}], "usage": {"completion_tokens": 3}}
GOOD: Step = (200, {}, json.dumps(RIGHT).encode())


class Script:
    """A server whose answers are given, the last one for good."""

    def __init__(self, steps: Sequence[Step]) -> None:
        script = self
        self.asked = 0
        self.over = threading.Event()

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.give(GOOD)

            def do_POST(self) -> None:
                self.rfile.read(int(self.headers["Content-Length"]))
                step = steps[min(script.asked, len(steps) - 1)]
                script.asked += 1
                self.give(step)

            def give(self, step: Step) -> None:
                status, headers, text = step
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(100_000 if text is None else len(text)))
                self.end_headers()
                while text is None and not script.over.wait(0.05):
                    self.wfile.write(b" ")
                self.wfile.write(text or b"")

            def log_message(self, *arguments: object) -> None:
                """Nothing on standard error."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self.server.server_port}/v1"
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()

    def close(self) -> None:
        """End it, and what still drips."""
        self.over.set()
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture
def serve() -> Iterator[Callable[..., Script]]:
    started: list[Script] = []

    def start(*steps: Step) -> Script:
        started.append(Script(steps))
        return started[-1]

    yield start
    for script in started:
        script.close()


def ask(script: Script, timeout: float = 60.0, waits: Sequence[float] = (0.0, 0.0)) -> Completion:
    endpoint = Endpoint(script.address, "tiny", timeout=timeout, waits=waits, concurrency=1)
    try:
        (completion,) = endpoint.complete(["3+4?"], Sampling(), [1])
        return completion
    finally:
        endpoint.close()


NONSENSE = {
    "no choice": b'{"choices": []}',
    "null choices": b'{"choices": null}',
    "null": b"null",
    "an error": b'{"error": {"message": "overloaded"}}',
    "half": b'{"choices": [',
    "deep": b"[" * 100_000,
    "number": b'{"choices": [{"text": 7}]}',
    "no object": b'{"choices": [7]}',
}


@pytest.mark.parametrize("text", NONSENSE.values(), ids=NONSENSE)
def test_nonsense_is_asked_again_and_a_completion_then_taken(serve: Callable[..., Script], text: bytes) -> None:
    script = serve((200, {}, text), GOOD)
    assert ask(script) == Completion("7", 3, True)
    assert script.asked == 2


@pytest.mark.parametrize("status", ["408", "425", "429", "500", "503", "529"])
def test_trouble_that_passes_is_asked_again(serve: Callable[..., Script], status: str) -> None:
    script = serve((int(status), {}, b"wait"), GOOD)
    assert ask(script) == Completion("7", 3, True)


def test_trouble_without_end_ends_after_the_last_wait_and_is_quoted(serve: Callable[..., Script]) -> None:
    for step, said in [
        ((429, {}, b"slow\ndown"), "status 429: slow down"),
        ((200, {}, NONSENSE["an error"]), "no completion in the answer {'message': 'overloaded'}"),
    ]:
        script = serve(step)
        with pytest.raises(RollwiseError, match=re.escape(said) + ".*; finished work is kept"):
            ask(script)
        assert script.asked == 3


def test_a_wait_is_as_long_as_the_server_asks_if_that_is_longer(
    serve: Callable[..., Script], monkeypatch: pytest.MonkeyPatch
) -> None:
    slept: list[float] = []
    monkeypatch.setattr(module, "sleep", slept.append)
    busy = [(status, {"Retry-After": asked}, b"") for status, asked in [(429, "30"), (503, "0"), (500, "soon")]]
    assert ask(serve(*busy, GOOD), waits=(1.0, 2.0, 3.0)).text == "7"
    assert slept == [30.0, 2.0, 3.0]


def test_an_answer_that_drips_is_given_up_when_its_time_is_over(serve: Callable[..., Script]) -> None:
    script = serve((200, {}, None))
    with pytest.raises(RollwiseError, match=r"no whole answer within 0\.3 s"):
        ask(script, timeout=0.3, waits=())
    # also without the other thread's help: the one that reads ends too, and closes the connection
    until = time.monotonic() + 60
    while any(thread.name.startswith("request") for thread in threading.enumerate()):
        assert time.monotonic() < until
        time.sleep(0.02)


@pytest.mark.parametrize("address", ["localhost", "http://", "http://[::1", "http://h:99999/v1", "http://h:x/v1"])
def test_an_address_that_is_none_is_refused(address: str) -> None:
    with pytest.raises(RollwiseError, match="is no address; give http://host:port/v1"):
        Endpoint(address, "tiny")


def test_a_key_that_no_header_can_hold_is_refused_unshown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sec\nret")
    with pytest.raises(RollwiseError, match="^OPENAI_API_KEY: it holds characters that no key has; set it anew$"):
        Endpoint("http://127.0.0.1:9/v1", "tiny")
