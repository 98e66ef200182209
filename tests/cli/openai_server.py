"""A server that speaks the OpenAI protocol: `python openai_server.py FOLDER [DELAY]`.

It writes its port to FOLDER/port and every request to FOLDER/requests.jsonl. A prompt "a+b?" is answered rightly or
wrongly by a hash of prompt and seed (`is_right`); "busy", "refuse", "list", "page", "short" (a reply cut off)
and "silent" in a prompt do as they say.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path


def is_right(prompt: str, seed: int, temperature: float) -> bool:
    """Whether the server answers rightly; greedy answers don't depend on the seed."""
    drawn = hashlib.sha256(f"{prompt}|{seed if temperature else 'greedy'}".encode()).digest()[0]
    return drawn < 128


def reply(prompt: str, seed: int, temperature: float) -> str:
    """The server's answer to "a+b?"."""
    found = re.search(r"(\d+)\+(\d+)\?", prompt)
    if found is None:
        return "I can't say"
    total = int(found[1]) + int(found[2])
    return f"So\n#### {total if is_right(found[0], seed, temperature) else total + 1}"


class Handler(BaseHTTPRequestHandler):
    folder = Path()
    delay = 0.0
    busy: dict[str, int] = {}
    lock = threading.Lock()

    def do_GET(self) -> None:
        self.answer(200, {"data": [{"id": "tiny"}]})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        prompt = body["messages"][-1]["content"] if "messages" in body else body["prompt"]
        with self.lock, (self.folder / "requests.jsonl").open("a") as log:
            print(json.dumps(body | {"path": self.path, "key": self.headers.get("Authorization")}), file=log)
            self.busy[prompt] = self.busy.get(prompt, 0) + 1
        time.sleep(self.delay)
        if "busy" in prompt and self.busy[prompt] < 3:
            return self.answer(503, {"error": "busy"})
        if "refuse" in prompt:
            return self.answer(400, {"error": "max_tokens\nis too large"})
        if "silent" in prompt:
            time.sleep(600)
        if "list" in prompt:
            return self.answer(200, [1, 2])
        if "page" in prompt or "short" in prompt:
            return self.write(200, b"<html>proxy</html>", missing=9_000 if "short" in prompt else 0)
        text = reply(prompt, body["seed"], body["temperature"])
        content = {"message": {"role": "assistant", "content": text}} if "messages" in body else {"text": text}
        self.answer(200, {"choices": [content | {"finish_reason": "stop"}], "usage": {"completion_tokens": 7}})

    def answer(self, status: int, data: object) -> None:
        self.write(status, json.dumps(data).encode())

    def write(self, status: int, text: bytes, missing: int = 0) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(text) + missing))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *arguments: object) -> None:
        """Nothing on standard error."""


def main() -> None:
    Handler.folder, Handler.delay = Path(sys.argv[1]), float(sys.argv[2] if len(sys.argv) > 2 else 0)
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    draft = Handler.folder / "port.part"
    draft.write_text(str(server.server_port))
    os.replace(draft, Handler.folder / "port")
    server.serve_forever()


if __name__ == "__main__":
    main()
