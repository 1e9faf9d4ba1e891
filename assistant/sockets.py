"""The daemon's sockets: files beside the data that only their owner may open, JSON lines on them."""

import asyncio
import hashlib
import json
import os
import socket
import stat
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from assistant.errors import AssistantError

LONGEST_PATH = 100  # bytes; systems allow 104 to 108
LONGEST_LINE = 1 << 16  # bytes, unless told

Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


def socket_file(data_dir: Path, name: str) -> Path:
    """Where a socket is: in the data folder, or where its name would be too long, in a folder of our own."""
    file = data_dir / f"{name}.sock"
    if len(os.fsencode(file)) <= LONGEST_PATH:
        return file
    place = hashlib.sha256(os.fsencode(data_dir.resolve())).hexdigest()[:16]
    return Path(tempfile.gettempdir()) / f"olvido-{os.getuid()}-{place}" / f"{name}.sock"


@asynccontextmanager
async def listening(file: Path, handler: Handler, *, longest_line: int = LONGEST_LINE) -> AsyncIterator[None]:
    """Serves a socket; the data folder's lock is held, so whatever lies there is what a dead process left."""
    _make_place(file)
    handlers: set[asyncio.Task[None]] = set()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        handlers.add(task)
        try:
            await handler(reader, writer)
        except (OSError, asyncio.CancelledError):
            pass  # the other side went away, or we do
        finally:
            handlers.discard(task)
            writer.close()

    bound, mine = _bound(file)
    server = await asyncio.start_unix_server(connected, sock=bound, limit=longest_line)
    try:
        yield
    finally:
        server.close()
        for task in list(handlers):
            task.cancel()
        await asyncio.gather(*handlers, return_exceptions=True)
        _remove(file, mine)


def _make_place(file: Path) -> None:
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    place = file.parent.lstat()
    if not stat.S_ISDIR(place.st_mode) or place.st_uid != os.getuid():
        raise AssistantError(f"{file.parent} belongs to somebody else. Remove it, or move the data folder.")
    file.unlink(missing_ok=True)


def _bound(file: Path) -> tuple[socket.socket, os.stat_result]:
    """A socket only its owner may open: nobody can connect before it listens, and then its rights are set."""
    bound = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        bound.bind(os.fspath(file))
        file.chmod(0o600)
        return bound, file.lstat()
    except BaseException:
        bound.close()
        raise


def _remove(file: Path, mine: os.stat_result) -> None:
    """Only our own: the folder may have been made anew, and another daemon listens there."""
    with suppress(OSError):
        if os.path.samestat(mine, file.lstat()):
            file.unlink()


async def read_json(reader: asyncio.StreamReader) -> dict[str, Any] | None:
    """The next line; None at the end. ValueError for one that is no JSON object, or too long."""
    line = await reader.readline()
    if not line:
        return None
    value = json.loads(line)
    if not isinstance(value, dict):
        raise ValueError("not an object")
    return value


async def write_json(writer: asyncio.StreamWriter, value: object) -> None:
    """One line; waits while the other side does not read."""
    writer.write(json_line(value))
    await writer.drain()


def json_line(value: object) -> bytes:
    """As it goes over a socket."""
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "backslashreplace") + b"\n"
