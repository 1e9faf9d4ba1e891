"""The background worker of the daemon: compresses, expires, copies. It calls no model when nothing new was said."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from typing import TYPE_CHECKING

from assistant.backups import Backup, back_up, due
from assistant.logs import expire_logs, get_logger
from assistant.people import known_people
from assistant.problems import Problem
from memory.errors import EngineError

if TYPE_CHECKING:
    from assistant.inbox import Inbox
    from assistant.open_people import People
    from assistant.settings import Settings
    from memory.ports import Clock


class Upkeep:
    """Does what is owed after messages were answered, and now and then what is owed anyway."""

    def __init__(self, people: "People", inbox: "Inbox", settings: "Settings", clock: "Clock") -> None:
        self._people = people
        self._inbox = inbox
        self._settings = settings
        self._clock = clock
        self._log = get_logger(part="upkeep")
        self.last_backup: Backup | None = None
        self.last_problem: Problem | None = None

    async def run(self) -> None:
        """Until cancelled."""
        loop = asyncio.get_running_loop()
        for owner in known_people(self._settings):
            await self._inbox.look_at(owner)
        next_round = loop.time()
        while True:
            if loop.time() >= next_round:
                await self.round()
                next_round = loop.time() + self._settings.serve.upkeep_seconds
            with suppress(TimeoutError):
                async with asyncio.timeout(next_round - loop.time()):
                    await self._inbox.somebody_spoke.wait()
                    await self._quiet()
            await self.after_messages()

    async def after_messages(self) -> int:
        """Compresses for everybody who said something since; how many people that were."""
        self._inbox.somebody_spoke.clear()
        spoken, self._inbox.spoken = list(self._inbox.spoken), {}
        for owner in spoken:
            with self._reported(owner):
                async with self._people.using(owner) as person:
                    await person.memory.run_pending()
                    await person.memory.journal.expire(self._settings.serve.known_message_days)
        return len(spoken)

    async def round(self) -> None:
        """Logs that are old go, silent chats become episodes, things age, and memories that changed are copied."""
        now = self._clock()
        folder = self._settings.data_dir / "logs"
        await asyncio.to_thread(expire_logs, folder, now, self._settings.logs.retention_hours)
        for owner in known_people(self._settings):
            with self._reported(owner):
                await self._age(owner)
        for owner in await asyncio.to_thread(due, self._settings, now):
            with self._reported(owner):
                self.last_backup = await asyncio.to_thread(back_up, self._settings, owner, now)
                self._log.info("backed_up", owner=owner, file=self.last_backup.file.name)

    async def _age(self, owner: str) -> None:
        """What time alone brings about in a memory: a chat silent for long is over, what is past its time goes."""
        async with self._people.using(owner) as person:
            if not await person.memory.journal.waiting():  # what was begun is finished in its own session
                await person.memory.close_idle(timedelta(hours=self._settings.serve.session_idle_hours))
            await person.memory.run_pending(ask_model=False)  # nothing new was said

    async def _quiet(self) -> None:
        """Until nobody waits for an answer, but not for ever."""
        with suppress(TimeoutError):
            async with asyncio.timeout(self._settings.serve.quiet_seconds):
                await self._inbox.quiet.wait()

    @contextmanager
    def _reported(self, owner: str) -> Iterator[None]:
        """What the engine cannot do for one person is told by the status; the work for the others goes on."""
        try:
            yield
        except EngineError as exc:
            self.last_problem = Problem(str(exc))
            self._log.warning("upkeep_failed", owner=owner, reason=str(exc))
