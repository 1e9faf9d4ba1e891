"""The command line in processes that start at once: forks of one that has loaded what each of them would load anew.

Real processes, with signals, files and terminals of their own. Run as a program, this module is what they fork from.
"""

import atexit
import itertools
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any


@dataclass(slots=True)
class _Ending:
    """When a child ended, and how."""

    pid: int
    code: int | None = None
    seen: threading.Event = field(default_factory=threading.Event)


class Forked:
    """One run of the command line; speaks like `subprocess.Popen`. Its output can be read once it has ended."""

    def __init__(self, ending: _Ending, written: Sequence[str]) -> None:
        self.pid = ending.pid
        self._ending = ending
        self._written = written

    @property
    def returncode(self) -> int | None:
        """The exit code; None while it runs."""
        return self._ending.code

    def poll(self) -> int | None:
        """The same."""
        return self._ending.code

    def wait(self, timeout: float | None = None) -> int:
        """The exit code, once it has ended."""
        if not self._ending.seen.wait(timeout):
            raise subprocess.TimeoutExpired("olvido", timeout or 0.0)
        assert self._ending.code is not None
        return self._ending.code

    def communicate(self, timeout: float | None = None) -> tuple[str, str]:
        """What it wrote, once it has ended."""
        self.wait(timeout)
        out, err = (Path(name).read_text("utf-8") for name in self._written)
        return out, err

    def send_signal(self, number: int) -> None:
        """Sends a signal, if it still runs."""
        if self.poll() is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def kill(self) -> None:
        """Ends it at once."""
        self.send_signal(signal.SIGKILL)


def fork_olvido(
    arguments: Sequence[object], environment: Mapping[str, str], *, terminal: str = "", errors: Path | None = None
) -> Forked:
    """Starts the command line with an environment: on a terminal, or with its output in files of its own."""
    order = {
        "arguments": [str(argument) for argument in arguments],
        "environment": dict(environment),
        "folder": str(Path.cwd()),
        "terminal": terminal,
    }
    return _nursery().fork(order, () if terminal else (str(errors), str(errors)) if errors else None)


class _Nursery:
    """The process to fork from, and what it tells about its children."""

    def __init__(self) -> None:
        root = str(Path(__file__).parents[1])
        path = os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH", "")]))
        self._process = subprocess.Popen(
            [sys.executable, "-m", "assistant.testing_forks"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=root,
            env={**os.environ, "PYTHONPATH": path, "LANG": "C.UTF-8", "TOKENIZERS_PARALLELISM": "false"},
        )
        self._folder = tempfile.TemporaryDirectory()
        self._numbers = itertools.count()
        self._endings: dict[int, _Ending] = {}
        self._started: list[_Ending] = []
        self._told = threading.Condition()
        self._one_at_a_time = threading.Lock()
        self._listening = threading.Thread(target=self._listen, name="forks", daemon=True)
        self._listening.start()
        atexit.register(self._close)

    def fork(self, order: Mapping[str, object], written: Sequence[str] | None) -> Forked:
        assert self._process.stdin is not None
        if written is None:
            number = next(self._numbers)
            written = [str(Path(self._folder.name) / f"{number}.{name}") for name in ("out", "err")]
        order = {**order, "written": written}
        with self._one_at_a_time:
            self._process.stdin.write(json.dumps(order) + "\n")
            self._process.stdin.flush()
            with self._told:
                while not self._started:
                    if not self._told.wait(300):
                        raise RuntimeError("the process to fork from does not answer")
                return Forked(self._started.pop(), written)

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            what, pid, code = line.split()
            if what == "ended":
                ending = self._endings.pop(int(pid))
                ending.code = int(code)
                ending.seen.set()
                continue
            with self._told:
                self._endings[int(pid)] = _Ending(int(pid))
                self._started.append(self._endings[int(pid)])
                self._told.notify_all()

    def _close(self) -> None:
        assert self._process.stdin is not None and self._process.stdout is not None
        with suppress(OSError):
            self._process.stdin.close()  # it ends what still runs, and itself
        self._process.wait()
        self._listening.join()
        self._process.stdout.close()
        self._folder.cleanup()


@cache
def _nursery() -> _Nursery:
    return _Nursery()


# -- the process they fork from


def _load() -> None:
    """What every run of the command line would load anew, used once."""
    import asyncio

    import openai  # noqa: F401
    import prompt_toolkit  # noqa: F401
    import telegram.ext  # noqa: F401

    import assistant.daemon
    import assistant.model
    import assistant.repl
    import assistant.settings
    import assistant.telegram.channel  # noqa: F401
    from memory import Memory

    async def once() -> None:
        with tempfile.TemporaryDirectory() as folder:
            async with Memory.open(f"{folder}/warm.db") as memory:
                session = await memory.open_session("none", "none")
                await memory.add_turn(session.id, "user", "What is this about, and do I live in Lyon?")
                await memory.assemble(session.id)

    asyncio.run(once())


def _tell(what: str, pid: int, code: int = 0) -> None:
    with suppress(OSError):  # nobody listens any more
        os.write(1, f"{what} {pid} {code}\n".encode())


_running: set[int] = set()


def _reap(*_: object) -> None:
    with suppress(ChildProcessError):
        while True:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                return
            _running.discard(pid)
            _tell("ended", pid, os.waitstatus_to_exitcode(status))


def _become(order: Mapping[str, Any]) -> None:
    """In the child: its own files or terminal, folder, environment and arguments."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGCHLD})
    os.setsid()
    if terminal := order["terminal"]:
        place = os.open(terminal, os.O_RDWR)
        if sys.platform != "linux":
            import fcntl
            import termios

            fcntl.ioctl(place, termios.TIOCSCTTY, 0)  # so that Ctrl-C arrives; Linux does it by itself
        files = (place, place, place)
    else:
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        written = [os.open(name, flags, 0o600) for name in order["written"]]
        files = (os.open(os.devnull, os.O_RDONLY), written[0], written[1])
    for number, file in enumerate(files):
        os.dup2(file, number)
    for file in set(files) - {0, 1, 2}:
        os.close(file)
    sys.stdin = os.fdopen(0, encoding="utf-8", closefd=False)
    sys.stdout = os.fdopen(1, "w", encoding="utf-8", closefd=False, buffering=1)
    sys.stderr = os.fdopen(2, "w", encoding="utf-8", closefd=False, buffering=1)
    os.chdir(order["folder"])
    os.environ.clear()
    os.environ.update(order["environment"])
    sys.argv = ["olvido", *order["arguments"]]


def _main() -> None:
    from assistant.cli import main

    _load()
    signal.signal(signal.SIGCHLD, _reap)
    while line := sys.stdin.readline():
        order = json.loads(line)
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})  # none ends before it is known to have started
        child = os.fork()
        if child == 0:
            _become(order)
            main()
            sys.exit(0)
        _running.add(child)
        _tell("started", child)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGCHLD})
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    for child in tuple(_running):  # nobody is left to end them
        with suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)


if __name__ == "__main__":
    _main()
