"""``olvido serve``: one event loop in which everything lives, and ends together."""

import asyncio
import os
import signal
import sys
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from assistant.channels import Channel
from assistant.channels.lines import LineChannel
from assistant.control import Control
from assistant.errors import ChannelFailed, FolderGone, PartEnded
from assistant.inbox import Inbox
from assistant.lock import sole_daemon
from assistant.logs import get_logger
from assistant.model import ChatModel
from assistant.open_people import People
from assistant.sockets import socket_file
from assistant.upkeep import Upkeep
from memory.ports import Clock, system_clock

if TYPE_CHECKING:
    from assistant.settings import LoadedSettings, Settings
    from memory.language import LanguagePack


async def serve(
    loaded: "LoadedSettings", *, clock: Clock = system_clock, ready: Callable[["Daemon"], None] | None = None
) -> None:
    """Serves until a signal comes or a part fails; a second signal ends the process at once."""
    if problem := loaded.settings.telegram.token_problem:
        raise ChannelFailed(problem)
    stopping = asyncio.Event()
    task = asyncio.current_task()
    assert task is not None

    def told(number: int) -> None:
        if stopping.is_set():
            os._exit(128 + number)  # everything acknowledged is on the disk already
        stopping.set()
        if not daemon:
            task.cancel()  # still starting: there is nothing to finish

    daemon: list[Daemon] = []
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, told, number)
    try:
        async with AsyncExitStack() as stack:
            still_ours = stack.enter_context(sole_daemon(loaded.settings.data_dir))
            model = await stack.enter_async_context(ChatModel.open(loaded.settings))
            people = await stack.enter_async_context(People.open(loaded, model, clock))
            async with asyncio.TaskGroup() as tasks:
                daemon.append(Daemon(loaded.settings, model, people, tasks, clock, still_ours))
                daemon[0].start()
                if ready:
                    ready(daemon[0])
                await stopping.wait()
                await daemon[0].stop()
    except asyncio.CancelledError:
        if not stopping.is_set():
            raise
    finally:
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.remove_signal_handler(number)


class Daemon:
    """The parts of a running daemon."""

    def __init__(
        self,
        settings: "Settings",
        model: ChatModel,
        people: People,
        tasks: asyncio.TaskGroup,
        clock: Clock,
        still_ours: Callable[[], bool],
    ) -> None:
        self._settings = settings
        self._model = model
        self._people = people
        self._tasks = tasks
        self._clock = clock
        self._still_ours = still_ours  # whether the data folder is the one that was locked
        self._parts: dict[str, asyncio.Task[None]] = {}
        self._log = get_logger(part="daemon")
        self.started_at: datetime = clock()
        self.channels: dict[str, Channel] = {channel.name: channel for channel in open_channels(settings, people.packs)}
        self.inbox = Inbox(people, self.channels, settings, tasks)
        self.upkeep = Upkeep(people, self.inbox, settings, clock)
        self.control = Control(settings.data_dir, people, self.status)

    def start(self) -> None:
        """Every part begins."""
        for name, channel in self.channels.items():
            self._begin(f"channel {name}", channel.run(self.inbox))
        self._begin("control", self.control.run())
        self._begin("upkeep", self.upkeep.run())
        self._begin("data folder", self._watch_folder())
        self._log.info("started", model=self._model.name, channels=[*self.channels], pid=os.getpid())

    async def stop(self) -> None:
        """Replies under way come to their end or stay in the journal; then every part ends."""
        self._log.info("stopping", under_way=self.inbox.under_way)
        parked = await self.inbox.drain(self._settings.serve.grace_seconds)
        for task in self._parts.values():
            task.cancel()
        await asyncio.gather(*self._parts.values(), return_exceptions=True)
        self._log.info("stopped", parked=parked)

    def status(self) -> dict[str, Any]:
        """How it is, for people and programs; nothing anybody said."""
        backup = self.upkeep.last_backup
        channels = (getattr(channel, "last_problem", None) for channel in self.channels.values())
        problems = (self.inbox.last_problem, self.upkeep.last_problem, *channels)
        return {
            "pid": os.getpid(),
            "started_at": self.started_at.isoformat(timespec="seconds"),
            "uptime_seconds": max(0, round((self._clock() - self.started_at).total_seconds())),
            "data_dir": str(self._settings.data_dir),
            "model": self._model.name,
            "channels": [*self.channels],
            "parts": {name: not task.done() for name, task in self._parts.items()},
            "stopping": self.inbox.stopping,
            "people_open": len(self._people.names),
            "chats_under_way": self.inbox.chats,
            "turns_under_way": self.inbox.under_way,
            "answered": self.inbox.answered,
            "last_backup": backup.at.isoformat(timespec="seconds") if backup else None,
            "memory_bytes": resident_bytes(),
            "problems": [{"at": each.at.isoformat(timespec="seconds"), "text": each.text} for each in problems if each],
        }

    async def _watch_folder(self) -> None:
        """What is written into a deleted folder is lost, and its lock keeps no other daemon out."""
        while self._still_ours():  # noqa: ASYNC110 (no event tells of a folder that went)
            await asyncio.sleep(self._settings.serve.folder_check_seconds)
        raise FolderGone(
            f"{self._settings.data_dir} was deleted, moved or replaced while Olvido served it. "
            "Put it back, or bring back your copies, and start Olvido again."
        )

    def _begin(self, name: str, part: Awaitable[None]) -> None:
        self._parts[name] = self._tasks.create_task(self._live(name, part), name=name)

    async def _live(self, name: str, part: Awaitable[None]) -> None:
        """A part lives as long as the daemon: where one ends, all do."""
        try:
            await part
        except Exception:
            self._log.exception("part_failed", failed=name)
            raise
        raise PartEnded(f"The part “{name}” came to an end by itself.")


def open_channels(settings: "Settings", packs: "Mapping[str, LanguagePack]") -> list[Channel]:
    """The channels the settings ask for."""
    given = settings.serve
    messenger: list[Channel] = []
    if settings.telegram.token is not None:
        from assistant.telegram.channel import TelegramChannel

        messenger.append(TelegramChannel(settings, packs))
    return [
        *messenger,
        LineChannel(
            socket_file(settings.data_dir, LineChannel.name),
            owner=settings.owner,
            message_characters=given.message_characters,
            delivery_seconds=given.delivery_seconds,
        ),
    ]


def resident_bytes() -> int:
    """The memory the process really has, where the system tells."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError):
        import resource

        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak if sys.platform == "darwin" else peak * 1024
