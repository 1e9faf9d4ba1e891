"""The memories that are open in the daemon: at most so many at once; the one unused for longest is closed first."""

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Self

from assistant.people import language_packs, open_memory
from assistant.summariser import summariser_for
from assistant.talk import Talk, resume_talk

if TYPE_CHECKING:
    from assistant.model import ChatModel
    from assistant.settings import LoadedSettings
    from memory import Memory
    from memory.language import LanguagePack
    from memory.ports import Clock
    from memory.values import Received


@dataclass(slots=True, kw_only=True, eq=False)
class Person:
    """Somebody whose memory is open, and the chats that go on."""

    owner: str
    memory: "Memory"
    closing: AsyncExitStack
    users: int = 0
    talks: OrderedDict[tuple[str, str], Talk] = field(default_factory=OrderedDict)


class People:
    """Opens memories as they are needed, and closes them when others are."""

    def __init__(self, loaded: "LoadedSettings", model: "ChatModel", clock: "Clock") -> None:
        self._loaded = loaded
        self._settings = loaded.settings.serve
        self._model = model
        self._clock = clock
        self._packs = language_packs(loaded)
        self._open: OrderedDict[str, Person] = OrderedDict()
        self._moving: set[str] = set()  # being opened or closed just now
        self._held: set[str] = set()  # kept closed, for somebody who works on the file itself
        self._changed = asyncio.Condition()

    @classmethod
    @asynccontextmanager
    async def open(cls, loaded: "LoadedSettings", model: "ChatModel", clock: "Clock") -> AsyncIterator[Self]:
        """All that is open is closed with the block."""
        people = cls(loaded, model, clock)
        try:
            yield people
        finally:
            for person in people._open.values():
                await person.closing.aclose()

    @property
    def packs(self) -> "Mapping[str, LanguagePack]":
        """The languages in force."""
        return self._packs

    @property
    def language(self) -> str | None:
        """The configured language of our own words; without one it is that of what is said."""
        wanted = self._loaded.settings.language
        return wanted if wanted in self._packs else None

    @property
    def names(self) -> list[str]:
        """Whose memories are open."""
        return sorted(self._open)

    @asynccontextmanager
    async def using(self, owner: str) -> AsyncIterator[Person]:
        """A person's memory, open for as long as the block takes; waits while too many others are in use."""
        person = await self._enter(owner)
        try:
            yield person
        finally:
            person.users -= 1
            async with self._changed:
                self._changed.notify_all()

    @asynccontextmanager
    async def held(self, owner: str) -> AsyncIterator[None]:
        """A person's file, closed, and not opened for as long as the block takes."""
        async with self._changed:
            await self._changed.wait_for(lambda: owner not in self._held)
            self._held.add(owner)
            try:
                await self._changed.wait_for(lambda: owner not in self._moving and not self._users(owner))
            except BaseException:
                self._held.discard(owner)
                raise
            person = self._open.pop(owner, None)
        try:
            if person is not None:
                await person.closing.aclose()
            yield
        finally:
            self._held.discard(owner)
            async with self._changed:
                self._changed.notify_all()

    async def talk(self, person: Person, entry: "Received") -> Talk:
        """The chat a message belongs to, as it was left; one that was silent for long begins anew."""
        key = (entry.channel, entry.chat)
        idle = timedelta(hours=self._settings.session_idle_hours)
        begun = entry.turn_id is not None  # and is finished where it was begun
        session = await person.memory.resume_session(*key, self.language or "en", None if begun else idle)
        talk = person.talks.pop(key, None)
        if talk is None or talk.session.id != session.id:
            data_dir = self._loaded.settings.data_dir
            talk = await resume_talk(person.memory, self._model, session, language=self.language, data_dir=data_dir)
        person.talks[key] = talk
        while len(person.talks) > self._settings.open_chats:
            person.talks.popitem(last=False)
        return talk

    def _users(self, owner: str) -> int:
        return self._open[owner].users if owner in self._open else 0

    def _spare(self) -> Person | None:
        return next((person for person in self._open.values() if person.users == 0), None)

    def _can_enter(self, owner: str) -> bool:
        if owner in self._held or owner in self._moving:
            return False
        room = len(self._open) + len(self._moving) < self._settings.open_people
        return owner in self._open or room or self._spare() is not None

    async def _enter(self, owner: str) -> Person:
        async with self._changed:
            await self._changed.wait_for(lambda: self._can_enter(owner))
            if person := self._open.get(owner):
                self._open.move_to_end(owner)
                person.users += 1
                return person
            full = len(self._open) + len(self._moving) >= self._settings.open_people
            spare = self._spare() if full else None
            moving = {owner, *([spare.owner] if spare else [])}
            self._moving |= moving
            if spare:
                del self._open[spare.owner]
        try:
            if spare:
                await spare.closing.aclose()
            person = await self._opened(owner)
            self._open[owner] = person
            return person
        finally:
            self._moving -= moving
            async with self._changed:
                self._changed.notify_all()

    async def _opened(self, owner: str) -> Person:
        async with AsyncExitStack() as stack:
            summariser = summariser_for(self._model)
            opening = open_memory(
                self._loaded, owner=owner, clock=self._clock, summariser=summariser, packs=self._packs
            )
            memory = await stack.enter_async_context(opening)
            return Person(owner=owner, memory=memory, closing=stack.pop_all(), users=1)
