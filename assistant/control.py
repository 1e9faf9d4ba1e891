"""What other processes may ask of the running daemon: how it is, and to leave a person's file alone for a while."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from assistant.errors import NotServing
from assistant.lock import sole_daemon
from assistant.sockets import listening, read_json, socket_file, write_json

if TYPE_CHECKING:
    from assistant.open_people import People

NAME = "control"
PATIENCE_SECONDS = 30.0
LONGEST_ANSWER = 1 << 20  # bytes


class Control:
    """The daemon's side: one question a connection; a file is left alone until the connection ends."""

    def __init__(self, data_dir: Path, people: "People", status: Callable[[], dict[str, Any]]) -> None:
        self._file = socket_file(data_dir, NAME)
        self._people = people
        self._status = status

    async def run(self) -> None:
        """Until cancelled."""
        async with listening(self._file, self._asked):
            await asyncio.get_running_loop().create_future()

    async def _asked(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            asked = await read_json(reader)
        except ValueError:
            return
        match asked:
            case {"ask": "status"}:
                await write_json(writer, self._status())
            case {"ask": "hold", "owner": str(owner)}:
                async with self._people.held(owner):
                    await write_json(writer, {"held": owner})
                    await reader.read()  # until the other side is done, or gone
            case _:
                await write_json(writer, {"error": "There is no such question."})


async def ask_status(data_dir: Path) -> dict[str, Any]:
    """How the daemon of a folder is; NotServing when there is none."""
    async with _asking(data_dir, {"ask": "status"}) as answer:
        return answer


@asynccontextmanager
async def file_to_ourselves(data_dir: Path, owner: str) -> AsyncIterator[None]:
    """For the block no daemon has the person's file open: the running one is asked, and none can start."""
    try:
        async with _asking(data_dir, {"ask": "hold", "owner": owner}):
            yield
        return
    except NotServing:
        pass
    with sole_daemon(data_dir):
        yield


@asynccontextmanager
async def _asking(data_dir: Path, question: dict[str, str]) -> AsyncIterator[dict[str, Any]]:
    try:
        reader, writer = await asyncio.open_unix_connection(socket_file(data_dir, NAME), limit=LONGEST_ANSWER)
    except OSError:
        raise NotServing(f"Olvido does not serve {data_dir}. Start it with: olvido serve") from None
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            await write_json(writer, question)
            answer = await read_json(reader)
    except (OSError, TimeoutError, ValueError):
        answer = None
    try:
        if answer is None:
            raise NotServing(f"Olvido serves {data_dir}, but does not answer. Look into its log, or restart it.")
        yield answer
    finally:
        writer.close()
