"""The inbox of the daemon: takes messages, answers them, and has the replies delivered, each exactly once.

The journal in each person's file is the only queue. A chat with something waiting has one task, which answers its
messages in order; chats wait for a place in turn, so that none is passed over for long.
"""

import asyncio
import time
from collections.abc import Mapping
from contextlib import aclosing
from math import ceil
from typing import TYPE_CHECKING

from assistant.channels import Channel, Inbound
from assistant.commands import command_name
from assistant.edited import correct
from assistant.errors import AssistantError, NotDelivered
from assistant.logs import bound, get_logger
from assistant.open_people import Person
from assistant.problems import Problem
from assistant.rate import MINUTE, Rate
from assistant.said import Said, from_json, joined, to_json
from assistant.talk import Talk
from assistant.turn import resume_turn, take_turn
from memory.errors import DatabaseError, EngineError
from memory.values import Received

if TYPE_CHECKING:
    from assistant.open_people import People
    from assistant.settings import Settings

Key = tuple[str, str, str]  # owner, channel, chat
RUN_ONCE = frozenset({"undo", "replace"})  # to run these twice is not the same as once


class Inbox:
    """Messages on their way through the daemon."""

    def __init__(
        self, people: "People", channels: Mapping[str, Channel], settings: "Settings", tasks: asyncio.TaskGroup
    ) -> None:
        self._people = people
        self._channels = channels
        self._settings = settings.serve
        self._places = asyncio.Semaphore(self._settings.turns_at_once)
        self._chats: dict[Key, asyncio.Task[None]] = {}
        self._again: set[Key] = set()  # chats to look at once more
        self._private: dict[tuple[str, ...], str] = {}  # words that may not be written down, until they are answered
        self._rate = Rate(self._settings.messages_per_minute)
        self._tasks = tasks
        self._log = get_logger(part="inbox")
        self.stopping = False
        self.under_way = 0
        self.answered = 0
        self.last_problem: Problem | None = None
        self.quiet = asyncio.Event()  # set while nobody waits for an answer
        self.quiet.set()
        self.spoken: dict[str, None] = {}  # whose memory may have work to do, the one that waits longest first
        self.somebody_spoke = asyncio.Event()

    @property
    def chats(self) -> int:
        """How many chats are being looked after now."""
        return len(self._chats)

    async def look_at(self, owner: str) -> int:
        """Wakes every chat of a person that something waits in; how much does."""
        try:
            async with self._people.using(owner) as person:
                waiting = await person.memory.journal.waiting()
        except EngineError as exc:  # one damaged file is not everybody's
            self._problem(exc, owner)
            return 0
        for channel, chat, _ in waiting:
            self.wake(owner, channel, chat)
        return sum(count for _, _, count in waiting)

    async def take(self, channel: str, message: Inbound) -> bool:
        """Journals a message and has it answered; whether it is a new one."""
        if self.stopping:
            raise AssistantError("Olvido is being stopped. Send it again when it runs.")
        try:
            written = await self._write_down(channel, message)
        except EngineError as exc:
            self._problem(exc, message.owner)
            raise
        if written is None:
            return False
        entry, new = written
        if not entry.sent:
            self.wake(message.owner, channel, message.chat)
        return new

    async def _write_down(self, channel: str, message: Inbound) -> tuple[Received, bool] | None:
        """The message in the journal, and whether it is new; None for the correction of one that never came."""
        async with self._people.using(message.owner) as person:
            if message.known_only and not await person.memory.journal.find(channel, message.chat, message.corrects):
                return None
            known = await person.memory.journal.find(channel, message.chat, message.message)
            language = await self._language(person, channel, message)
            refusal = None if known else await self._refusal(person, channel, message, language)
            words = (message.owner, channel, message.chat, message.message)
            self._private.setdefault(words, message.content)  # before anybody can see that it is there
            entry: Received | None = None
            try:
                entry, new = await person.memory.journal.receive(
                    channel=channel,
                    chat=message.chat,
                    message=message.message,
                    content="" if refusal is not None else message.content,
                    speaker=message.speaker,
                    toggles_private=refusal is None and command_name(message.text) == "private",
                    corrects=message.corrects or None,
                    refusal=None if refusal is None else to_json(refusal),
                )
            finally:
                waits = known if entry is None else entry
                if waits is None or waits.answered or not waits.private:
                    self._private.pop(words, None)
        return entry, new

    def wake(self, owner: str, channel: str, chat: str) -> None:
        """Has a chat looked at, now or once more."""
        key = (owner, channel, chat)
        if self.stopping or channel not in self._channels:
            return
        self._again.add(key)
        if key in self._chats:
            return
        serving = self._serve_chat(key)
        try:
            self._chats[key] = self._tasks.create_task(serving, name=f"chat {channel} {chat}")
        except RuntimeError:  # the daemon is ending; the journal has it
            serving.close()

    async def places(self, owner: str, message: Received) -> dict[int, str]:
        """Where the parts of a reply are in their channel."""
        async with self._people.using(owner) as person:
            return await person.memory.journal.places(message)

    async def note(self, owner: str, message: Received, part: int, place: str | None) -> None:
        """Notes where a part of a reply will be."""
        async with self._people.using(owner) as person:
            await person.memory.journal.note(message, part, place)

    async def knows(self, owner: str, message: Received, place: str) -> bool:
        """Whether a place in the same chat is that of any reply."""
        async with self._people.using(owner) as person:
            return await person.memory.journal.knows(message, place)

    async def react(self, owner: str, channel: str, chat: str, place: str, value: int | None) -> None:
        """What somebody thinks of the reply at a place; what is no reply to a message is passed over."""
        async with self._people.using(owner) as person:
            turn_id = await person.memory.journal.turn_at(channel, chat, place)
            if turn_id is not None:
                await person.memory.react(turn_id, value)

    async def drain(self, grace_seconds: float) -> int:
        """Takes nothing more and lets replies under way come to their end; those that do not stay in the journal."""
        self.stopping = True
        if self._chats:
            await asyncio.wait(self._chats.values(), timeout=grace_seconds)
        left = list(self._chats.values())
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)
        return len(left)

    # -- one chat

    async def _serve_chat(self, key: Key) -> None:
        owner, channel, chat = key
        try:
            with bound(channel=channel, chat=chat, owner=owner):
                while key in self._again and not self.stopping:
                    self._again.discard(key)
                    while await self._serve_next(key):
                        pass
        finally:
            del self._chats[key]

    async def _serve_next(self, key: Key) -> bool:
        """Answers and delivers the next message of a chat; whether to go on."""
        owner, channel, _ = key
        entry: Received | None = None
        try:
            async with self._places:
                if self.stopping:
                    return False
                async with self._people.using(owner) as person:
                    entry = await person.memory.journal.next(channel, key[2])
                    if entry is None:
                        return False
                    reply = await self._reply(person, entry)
            await self._channels[channel].send(entry, reply)
            async with self._people.using(owner) as person:
                await person.memory.journal.sent(entry)
        except NotDelivered:  # the channel wakes the chat when it can be reached
            self._log.info("not_delivered")
            return False
        except EngineError as exc:  # the disk is full, or somebody holds the file: it stays in the journal
            self._problem(exc, owner)
            if entry is not None:
                await self._channels[channel].stream(entry, Said(text=str(exc), kind="error"))
            self._wake_later(key)
            return False
        except Exception:  # noqa: BLE001 (one chat's trouble is not everybody's; logged, and tried again)
            self._log.exception("chat_failed")
            self._wake_later(key)
            return False
        self._private.pop((owner, channel, entry.chat, entry.message), None)
        self.answered += 1
        self.spoken[owner] = None
        self.somebody_spoke.set()
        return True

    def _wake_later(self, key: Key) -> None:
        asyncio.get_running_loop().call_later(self._settings.retry_seconds, self.wake, *key)

    async def _reply(self, person: Person, entry: Received) -> list[Said]:
        if entry.answered:
            return from_json(entry.said)
        self.under_way += 1
        self.quiet.clear()
        try:
            return await self._answer(person, entry)
        finally:
            self.under_way -= 1
            if not self.under_way:
                self.quiet.set()

    async def _answer(self, person: Person, entry: Received) -> list[Said]:
        talk = await self._people.talk(person, entry)
        words = (person.owner, entry.channel, entry.chat, entry.message)
        text = entry.content or (self._private.get(words, "") if entry.private else "")
        talk.entry, talk.said, talk.speaker = entry, [], entry.speaker
        channel = self._channels[entry.channel]
        talk.facts_a_page, talk.endless = getattr(channel, "facts_a_page", 0), getattr(channel, "endless", False)
        talk.private = (talk.private or []) if entry.private else None
        began = time.perf_counter()
        try:
            if entry.private and not text:
                talk.said.append(Said(text=talk.say("private_lost"), kind="error"))
            elif entry.begun:
                talk.said.append(Said(text=talk.say("interrupted", command=text.split()[0]), kind="error"))
            else:
                await self._say(talk, entry, text)
        except DatabaseError:
            raise
        except EngineError as exc:
            talk.said.append(Said(text=str(exc), kind="error"))
        except Exception:  # noqa: BLE001 (a message that cannot be worked on is answered so, not tried for ever)
            self._log.exception("message_failed", message=entry.message)
            talk.said.append(Said(text=talk.say("internal_error"), kind="error"))
        whole = joined(talk.said)
        stored = talk.entry is not None and talk.entry.answered
        if not entry.private and not stored:
            await person.memory.journal.answer(entry, to_json(whole))
        self._log.info("answered", message=entry.message, seconds=round(time.perf_counter() - began, 3))
        talk.entry, talk.said = None, []
        return whole

    async def _say(self, talk: Talk, entry: Received, text: str) -> None:
        """Answers a message, or goes on where a crash cut the answer off."""
        if command_name(text) in RUN_ONCE:
            await talk.memory.journal.begin(entry)
        turn = take_turn(talk, text) if entry.turn_id is None else resume_turn(talk)
        if entry.corrects is not None:
            turn = correct(talk, entry, text)
        async with aclosing(turn) as parts:  # type: ignore[type-var]
            async for said in parts:
                talk.said.append(said)
                await self._channels[entry.channel].stream(entry, said)

    async def _language(self, person: Person, channel: str, message: Inbound) -> str:
        """The language of our own words: that of the chat; one that begins is in that of the user's application."""
        talk = person.talks.get((channel, message.chat))
        if talk is not None or self._people.language:
            return talk.language if talk else self._people.language or ""
        first = message.language if message.language in person.memory.packs else "en"
        session = await person.memory.resume_session(channel, message.chat, first)
        return await person.memory.session_language(session.id)

    # -- what is not taken

    async def _refusal(self, person: Person, channel: str, message: Inbound, language: str) -> list[Said] | None:
        """What to say to a message that is too long, or one too many; of those in a row only to the first."""
        if not message.content.strip() and not message.answer:
            return []
        key = (person.owner, channel, message.chat)
        waiting = await person.memory.journal.unanswered(channel, message.chat)
        wait = self._rate.wait_seconds(key)
        if wait is not None or waiting >= self._settings.waiting_messages:
            told = not self._rate.first_refusal(key)
            return [] if told else [self._sentence(person, language, "too_many", seconds=max(1, ceil(wait or MINUTE)))]
        self._rate.welcome(key)
        length = len(message.content)
        if length > self._settings.message_characters:
            return [self._sentence(person, language, "too_long", count=length, limit=self._settings.message_characters)]
        return [self._sentence(person, language, message.answer)] if message.answer else None

    def _sentence(self, person: Person, language: str, key: str, **values: object) -> Said:
        packs = person.memory.packs
        pack = packs[language]
        text = pack.answers.get(key) or pack.notices.get(key) or packs["en"].answers[key]
        return Said(text=text.format(**values), kind="error")

    def _problem(self, exc: Exception, owner: str) -> None:
        self.last_problem = Problem(str(exc))
        self._log.warning("not_stored", owner=owner, reason=str(exc))
