"""Real, small servers for tests and benchmarks: sockets on loopback that answer as they are told."""

import json
import random
import threading
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """One answer: a body that becomes JSON, or a text sent as it is; `delay_seconds` before it is sent."""

    status: int = 200
    body: object = None
    text: str | None = None
    content_type: str = "application/json"
    delay_seconds: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One request that came in; the names of its headers are in lower case."""

    path: str
    headers: Mapping[str, str]
    body: Any = field(default=None)


class OpenAIServer:
    """Speaks OpenAI's API on loopback; gives the replies enqueued, then sensible ones of its own."""

    def __init__(self, *, dimension: int = 8) -> None:
        self.history: list[Asked] = []
        self.dimension = dimension
        self._replies: deque[Reply] = deque()
        self._closing = threading.Event()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), name="openai-server")

    @property
    def base_url(self) -> str:
        """The address to configure."""
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def enqueue(self, *replies: Reply) -> None:
        """Answers for the next requests, in order."""
        self._replies.extend(replies)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def answer(self, asked: Asked) -> Reply:
        """What to say to a request."""
        self.history.append(asked)
        if self._replies:
            return self._replies.popleft()
        if asked.path == "/v1/embeddings":
            return Reply(body=embeddings(asked.body["input"], asked.body.get("dimensions") or self.dimension))
        return Reply(status=404, body={"error": {"message": f"no {asked.path} here"}})

    def wait(self, seconds: float) -> None:
        """A slow answer; cut short when the server closes."""
        self._closing.wait(seconds)

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        scripted = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            timeout = 10

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"] or 0))
                headers = {name.lower(): value for name, value in self.headers.items()}
                reply = scripted.answer(Asked(path=self.path, headers=headers, body=json.loads(body)))
                scripted.wait(reply.delay_seconds)
                data = (json.dumps(reply.body) if reply.text is None else reply.text).encode()
                try:
                    self.send_response(reply.status)
                    self.send_header("Content-Type", reply.content_type)
                    self.send_header("Content-Length", str(len(data)))
                    self.end_headers()
                    self.wfile.write(data)
                except ConnectionError:  # the client lost its patience
                    self.close_connection = True

            def log_message(self, format: str, *args: object) -> None:
                """Nothing to stderr."""

        return Handler


def embeddings(texts: list[str], dimension: int) -> dict[str, object]:
    """An answer of the embeddings API: the same text always has the same vector."""
    data = []
    for index, text in enumerate(texts):
        chance = random.Random(text)
        vector = [chance.gauss(0, 1) for _ in range(dimension)]
        data.append({"object": "embedding", "index": index, "embedding": vector})
    usage = {"prompt_tokens": len(texts), "total_tokens": len(texts)}
    return {"object": "list", "model": "scripted", "data": data, "usage": usage}
