"""Real, small parts for tests and recordings: servers on loopback that answer as they are told, and a terminal."""

import asyncio
import fcntl
import json
import os
import pty
import random
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import threading
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from assistant.testing_forks import Forked, fork_olvido

if TYPE_CHECKING:
    from assistant.daemon import Daemon
    from assistant.line_client import LineClient
    from assistant.said import Said
    from assistant.talk import Talk
    from memory.ports import Clock


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """One answer: a body that becomes JSON, or a text sent as it is; `delay_seconds` before it is sent."""

    status: int = 200
    body: object = None
    text: str | None = None
    content_type: str = "application/json"
    delay_seconds: float = 0.0
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatReply:
    """A model's answer, streamed piece by piece when a stream is asked for.

    `pause_seconds` is between two pieces. `cut` drops the connection after the last piece; `hang_seconds` is a pause
    there; `finish_reason` None ends the stream without saying so. `error` is an error told inside the stream, after
    the pieces.
    """

    pieces: tuple[str, ...] = ()
    reasoning: tuple[str, ...] = ()
    tool_calls: tuple[tuple[str, str], ...] = ()  # name, arguments as JSON
    finish_reason: str | None = "stop"
    prompt_tokens: int | None = None  # None: counted; 0: not told
    cached_tokens: int = 0
    delay_seconds: float = 0.0
    pause_seconds: float = 0.0
    hang_seconds: float = 0.0
    cut: bool = False
    error: Mapping[str, object] | None = None


def says(text: str, **changes: Any) -> ChatReply:
    """An answer in three pieces; nothing at all for an empty text."""
    third = len(text) // 3 + 1
    return ChatReply(pieces=tuple(text[start : start + third] for start in range(0, len(text), third)), **changes)


def calls(*tools: tuple[str, str], text: str = "") -> ChatReply:
    """An answer that calls tools: name and arguments as JSON of each."""
    return ChatReply(pieces=(text,) if text else (), tool_calls=tools, finish_reason="tool_calls")


def fails(status: int, message: str = "no", *, code: str | None = None, **headers: str) -> Reply:
    """An answer that is an error; `retry_after="1"` becomes the header Retry-After."""
    named = {name.replace("_", "-").title(): value for name, value in headers.items()}
    return Reply(status=status, body={"error": {"message": message, "code": code}}, headers=named)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One request that came in; the names of its headers are in lower case."""

    path: str
    headers: Mapping[str, str]
    body: Any = field(default=None)


class OpenAIServer:
    """Speaks OpenAI's API on loopback; gives the replies enqueued, then sensible ones of its own.

    `pages` answers GET by path. Requests come in threads: the history and the replies are behind one lock.
    """

    def __init__(self, *, dimension: int = 8, default: ChatReply | None = None, port: int = 0) -> None:
        self.history: list[Asked] = []
        self.dimension = dimension
        self.default = default or says("All right.")
        self.pages: dict[str, object] = {}
        self.asked = threading.Event()  # set by the first request; clear it to wait for the next one
        self._replies: deque[Reply | ChatReply] = deque()
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self._server = _Listener(self, port)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), name="openai-server")

    @property
    def base_url(self) -> str:
        """The address to configure."""
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    @property
    def calls(self) -> int:
        """How many requests came in."""
        with self._lock:
            return len(self.history)

    def enqueue(self, *replies: Reply | ChatReply) -> None:
        """Answers for the next requests, in order."""
        with self._lock:
            self._replies.extend(replies)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def answer(self, asked: Asked) -> Reply | ChatReply:
        """What to say to a request."""
        with self._lock:
            self.history.append(asked)
            self.asked.set()
            if self._replies:
                return self._replies.popleft()
        if asked.path == "/v1/chat/completions":
            return self.default
        if asked.path == "/v1/embeddings":
            return Reply(body=embeddings(asked.body["input"], asked.body.get("dimensions") or self.dimension))
        return Reply(status=404, body={"error": {"message": f"no {asked.path} here"}})

    def page(self, path: str) -> Reply:
        """What to say to a GET; a page that is a Reply is sent as it is."""
        page = self.pages.get(path)
        if page is None:
            return Reply(status=404, body={"error": "no"})
        return page if isinstance(page, Reply) else Reply(body=page)

    def wait(self, seconds: float) -> None:
        """A slow answer; cut short when the server closes."""
        self._closing.wait(seconds)


class EchoServer(OpenAIServer):
    """A model that repeats the last mark like #a-17# of the message it was asked about, so that a reply tells its
    message; `pause_seconds` before it begins."""

    def __init__(self, *, pause_seconds: float = 0.0) -> None:
        super().__init__()
        self.pause_seconds = pause_seconds

    def answer(self, asked: Asked) -> Reply | ChatReply:
        """The mark, or something else where there is none."""
        given = super().answer(asked)
        if given is not self.default:
            return given
        marks = re.findall(r"#\S+?#", str(asked.body["messages"][-1]["content"]))
        text = f"You said {marks[-1]}, and I heard it." if marks else "I heard nothing."
        return says(text, delay_seconds=self.pause_seconds)


def settings_for(server: OpenAIServer, **more: object) -> dict[str, str]:
    """The environment of an assistant that talks to a scripted server, and does not wait long for it."""
    given = {
        "model__provider": "custom",
        "model__base_url": server.base_url,
        "model__name": "scripted",
        "model__backoff_seconds": 0.01,
        "model__backoff_max_seconds": 0.05,
        **more,
    }
    return {f"OLVIDO_{name.upper()}": str(value) for name, value in given.items()}


@asynccontextmanager
async def serving(
    folder: Path, environment: Mapping[str, str], clock: "Clock | None" = None
) -> "AsyncIterator[Daemon]":
    """A daemon in this process, for as long as the block takes; ended as by a crash, without a goodbye."""
    from assistant.daemon import serve
    from assistant.settings import load_settings
    from memory.ports import system_clock

    loaded = load_settings(None, {**environment, "OLVIDO_DATA_DIR": str(folder)}, folder)
    began: asyncio.Future[Daemon] = asyncio.get_running_loop().create_future()
    task = asyncio.create_task(serve(loaded, clock=clock or system_clock, ready=began.set_result), name="daemon")
    waiting: set[asyncio.Future[Any]] = {task, began}
    await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    if task.done():
        await task
    try:
        yield began.result()
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


def client(folder: Path, chat: str = "me", **more: Any) -> "LineClient":
    """Somebody at the other end of a daemon's socket."""
    from assistant.line_client import LineClient
    from assistant.sockets import socket_file

    return LineClient(file=socket_file(folder, "line"), chat=chat, **more)


def stored(folder: Path) -> bytes:
    """All bytes of all files in a folder."""
    return b"".join(file.read_bytes() for file in folder.rglob("*") if file.is_file())


async def say(talk: "Talk", text: str) -> "list[Said]":
    """One turn of a talk: everything that is said back."""
    from assistant.turn import take_turn

    return [said async for said in take_turn(talk, text)]


def words(answer: "Sequence[Said]", kind: str = "piece") -> str:
    """What was said back of one kind; the reply itself by default."""
    return "".join(said.text for said in answer if said.kind == kind)


def start_olvido(*arguments: object, environment: Mapping[str, str]) -> Forked:
    """The command line in a process of its own, which starts at once."""
    return fork_olvido(arguments, {**os.environ, **environment})


def start_new_olvido(*arguments: object, environment: Mapping[str, str]) -> subprocess.Popen[str]:
    """The same by an interpreter of its own, as users start it; its output and errors are pipes."""
    root = str(Path(__file__).parents[1])
    path = os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH", "")]))
    return subprocess.Popen(
        [sys.executable, "-c", "from assistant.cli import main; main()", *map(str, arguments)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": path, **environment},
    )


class ForkedOlvido:
    """The command line in one process after the other."""

    def __init__(self, *arguments: object, environment: Mapping[str, str], errors: Path) -> None:
        self._arguments = arguments
        self._environment = {**os.environ, **environment}
        self._errors = errors
        self._child: Forked | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._child:
            self.end(signal.SIGKILL)

    def start(self) -> None:
        """Starts the next one."""
        self._child = fork_olvido(self._arguments, self._environment, errors=self._errors)

    def end(self, with_signal: int) -> int:
        """Ends the one that runs; its exit code."""
        assert self._child
        child, self._child = self._child, None
        child.send_signal(with_signal)
        return child.wait()

    def title(self) -> bytes:
        """How the one that runs is shown among the processes, where the system tells."""
        assert self._child
        files = [Path(f"/proc/{self._child.pid}/{name}") for name in ("cmdline", "comm")]
        return b" ".join(file.read_bytes() for file in files if file.exists())

    def check(self) -> None:
        """Raises RuntimeError when the one that should run does not."""
        if self._child is None or self._child.poll() is not None:
            raise RuntimeError(f"it ended by itself: {self._errors.read_text()}")


class _Listener(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, scripted: OpenAIServer, port: int) -> None:
        self.scripted = scripted
        super().__init__(("127.0.0.1", port), _Handler)

    def handle_error(self, request: object, client_address: object) -> None:
        """Nothing to stderr: clients that are killed are part of the tests."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 10

    @property
    def _scripted(self) -> OpenAIServer:
        assert isinstance(self.server, _Listener)
        return self.server.scripted

    def do_GET(self) -> None:
        reply = self._scripted.page(self.path)
        self._scripted.wait(reply.delay_seconds)
        try:
            self._send(reply)
        except OSError:  # the client lost its patience
            self.close_connection = True

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"] or 0))
        headers = {name.lower(): value for name, value in self.headers.items()}
        reply = self._scripted.answer(Asked(path=self.path, headers=headers, body=json.loads(body)))
        self._scripted.wait(reply.delay_seconds)
        try:
            if isinstance(reply, Reply):
                self._send(reply)
            else:
                self._chat(reply, json.loads(body))
        except OSError:  # the client lost its patience
            self.close_connection = True

    def _send(self, reply: Reply) -> None:
        data = (json.dumps(reply.body) if reply.text is None else reply.text).encode()
        self.send_response(reply.status)
        for name, value in {"Content-Type": reply.content_type, **reply.headers}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _chat(self, reply: ChatReply, body: dict[str, Any]) -> None:
        if not body.get("stream"):
            self._send(Reply(body=completion(reply, body)))
            return
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for event in events(reply, body):
            self._chunk(f"data: {json.dumps(event)}\n\n")
            self._scripted.wait(reply.pause_seconds)
        self._scripted.wait(reply.hang_seconds)
        if reply.cut:
            self.close_connection = True  # in the middle of the chunks
            return
        for event in last_events(reply, body):
            self._chunk(f"data: {json.dumps(event)}\n\n")
        if reply.finish_reason:
            self._chunk("data: [DONE]\n\n")
        self._chunk("")  # the last one

    def _chunk(self, text: str) -> None:
        data = text.encode()
        self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
        self.wfile.flush()

    def log_message(self, format: str, *args: object) -> None:
        """Nothing to stderr."""


def events(reply: ChatReply, body: dict[str, Any]) -> list[dict[str, object]]:
    """The stream of an answer up to its last word."""
    deltas: list[dict[str, object]] = [{"role": "assistant", "content": None}]
    deltas += [{"reasoning_content": piece} for piece in reply.reasoning]
    deltas += [{"content": piece} for piece in reply.pieces]
    for index, (name, arguments) in enumerate(reply.tool_calls):
        called = {"index": index, "id": f"call_{index}", "type": "function"}
        deltas.append({"tool_calls": [{**called, "function": {"name": name, "arguments": ""}}]})
        deltas.append({"tool_calls": [{"index": index, "function": {"arguments": arguments}}]})
    return [_event(body, choices=[{"index": 0, "delta": delta, "finish_reason": None}]) for delta in deltas]


def last_events(reply: ChatReply, body: dict[str, Any]) -> list[dict[str, object]]:
    """How a stream ends: with an error, or a reason and the usage."""
    if reply.error:
        return [{"error": dict(reply.error)}]
    if reply.finish_reason is None:
        return []
    end = _event(body, choices=[{"index": 0, "delta": {}, "finish_reason": reply.finish_reason}])
    wanted = (body.get("stream_options") or {}).get("include_usage") and reply.prompt_tokens != 0
    return [end, _event(body, choices=[], usage=usage(reply, body))] if wanted else [end]


def completion(reply: ChatReply, body: dict[str, Any]) -> dict[str, object]:
    """The same answer in one piece."""
    calls = [
        {"id": f"call_{index}", "type": "function", "function": {"name": name, "arguments": arguments}}
        for index, (name, arguments) in enumerate(reply.tool_calls)
    ]
    message = {"role": "assistant", "content": "".join(reply.pieces), "tool_calls": calls or None}
    choice = {"index": 0, "message": message, "finish_reason": reply.finish_reason}
    return {**_event(body, choices=[choice], usage=usage(reply, body)), "object": "chat.completion"}


def usage(reply: ChatReply, body: dict[str, Any]) -> dict[str, object]:
    """What such a request and its answer cost; a word is a token."""
    words = sum(len(str(message["content"]).split()) for message in body["messages"])
    prompt = words if reply.prompt_tokens is None else reply.prompt_tokens
    written = len("".join(reply.pieces).split())
    return {
        "prompt_tokens": prompt,
        "completion_tokens": written,
        "total_tokens": prompt + written,
        "prompt_tokens_details": {"cached_tokens": reply.cached_tokens},
    }


def _event(body: dict[str, Any], **fields: object) -> dict[str, object]:
    named = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": body["model"]}
    return {**named, **fields}


def embeddings(texts: list[str], dimension: int) -> dict[str, object]:
    """An answer of the embeddings API: the same text always has the same vector."""
    data = []
    for index, text in enumerate(texts):
        chance = random.Random(text)
        vector = [chance.gauss(0, 1) for _ in range(dimension)]
        data.append({"object": "embedding", "index": index, "embedding": vector})
    usage = {"prompt_tokens": len(texts), "total_tokens": len(texts)}
    return {"object": "list", "model": "scripted", "data": data, "usage": usage}


# -- a terminal


class Terminal:
    """The command line on a pseudo-terminal of its own: what a person types, and what they would see (by pyte)."""

    def __init__(
        self, arguments: Sequence[str], environ: Mapping[str, str], *, columns: int = 80, rows: int = 24
    ) -> None:
        import pyte

        self.screen = _screen(columns, rows)
        self.screen.write_process_input = self._answer  # where the cursor is, when the program asks
        self._stream = pyte.ByteStream(self.screen)
        self._keyboard, self._theirs = pty.openpty()
        fcntl.ioctl(self._theirs, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        given = {"TERM": "xterm-256color", "LANG": "C.UTF-8", **environ}
        self.process = fork_olvido(arguments, given, terminal=os.ttyname(self._theirs))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._keyboard)
        os.close(self._theirs)

    @property
    def lines(self) -> list[str]:
        """All that was shown, from what scrolled away to the last line on the screen."""
        rows = [*self.screen.history.top, *(self.screen.buffer[row] for row in range(self.screen.lines))]
        return ["".join(row[column].data for column in range(self.screen.columns)).rstrip() for row in rows]

    @property
    def text(self) -> str:
        """The same as one text."""
        return "\n".join(self.lines).rstrip("\n")

    def type(self, keys: str) -> None:
        """Presses keys."""
        os.write(self._keyboard, keys.encode())

    def read(self, seconds: float) -> bool:
        """Takes in what the program shows within that time; False when there was nothing, or it has gone."""
        if not select.select([self._keyboard], [], [], seconds)[0]:
            return False
        try:
            shown = os.read(self._keyboard, 65536)
        except OSError:  # Linux: nobody holds the other end any more
            return False
        self._stream.feed(shown)
        return bool(shown)

    def wait_until(self, seen: Callable[[str], bool], *, seconds: float = 60.0) -> None:
        """Reads until what is shown is as expected."""
        give_up = time.monotonic() + seconds
        while not seen(self.text):
            if not self.read(0.2) and (self.process.poll() is not None or time.monotonic() > give_up):
                raise AssertionError(f"this never came; the terminal shows:\n{self.text}")

    def wait_for_end(self, *, seconds: float = 60.0) -> int:
        """Reads until the program has ended; its exit code."""
        give_up = time.monotonic() + seconds
        while self.process.poll() is None:
            if not self.read(0.2) and time.monotonic() > give_up:
                raise AssertionError(f"it does not end; the terminal shows:\n{self.text}")
        while self.read(0.0):
            pass
        return self.process.wait()

    def _answer(self, data: str) -> None:
        os.write(self._keyboard, data.encode())


def _screen(columns: int, rows: int) -> Any:
    """A screen with what scrolled away; faint text, which pyte does not know, is kept as blinking."""
    import pyte

    class Screen(pyte.HistoryScreen):
        def select_graphic_rendition(self, *attributes: int, **more: Any) -> None:
            if not {38, 48} & {*attributes}:  # there a 2 is part of a colour
                attributes = tuple(5 if number == 2 else number for number in attributes)
            super().select_graphic_rendition(*attributes, **more)

    return Screen(columns, rows, history=10_000, ratio=0.5)
