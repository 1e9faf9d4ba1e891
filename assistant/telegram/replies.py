"""Replies on their way: shown while they are made, then delivered whole, each part in a place of its own.

A part's place, a message of ours, is noted in the journal before the words are put there. Sent anew after a crash or a
broken connection, a reply takes the same places: what was there already is changed into itself.
"""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from assistant.channels import Mailbox
from assistant.errors import AssistantError
from assistant.logs import get_logger
from assistant.offers import Offer
from assistant.said import Said, joined
from assistant.telegram.api import Api, GroupMoved, NeverDelivered, PlaceGone
from assistant.telegram.markdown import Rich, render
from assistant.telegram.split import split
from assistant.telegram.target import Target
from memory.errors import EngineError
from memory.language import well_formed
from memory.values import Received

OPENING = "?"  # noted while a place is being opened, with the newest id known then
SWEPT = 20  # ids after that one among which a place that nobody knows of is looked for


@dataclass(frozen=True, slots=True)
class Part:
    """One message of a reply."""

    rich: Rich
    offers: tuple[Offer, ...] = ()


@dataclass(slots=True, kw_only=True, eq=False)
class Showing:
    """A reply in the making."""

    message: Received
    target: Target
    said: list[Said] = field(default_factory=list)
    places: dict[int, str] | None = None  # None: not looked up yet
    shown: dict[int, Part] = field(default_factory=dict)
    opening: int | None = None  # a place may have been opened that was not noted, after this id
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    ending: asyncio.Event = field(default_factory=asyncio.Event)
    task: "asyncio.Task[None] | None" = None


class Replies:
    """All replies on their way."""

    def __init__(
        self,
        api: Api,
        mailbox: Mailbox,
        pause_seconds: Callable[[Target, bool], float],
        target_of: Callable[[Received], Target],
    ) -> None:
        self._api = api
        self._mailbox = mailbox
        self._pause = pause_seconds
        self._target_of = target_of
        self._showing: dict[tuple[str, int], Showing] = {}
        self._log = get_logger(part="telegram")

    def stream(self, message: Received, said: Said) -> None:
        """Something was said; it is shown when there is time."""
        key = (message.chat, message.id)
        showing = self._showing.get(key)
        if showing is None:
            showing = self._showing[key] = Showing(message=message, target=self._target_of(message))
            showing.task = asyncio.create_task(self._show(showing), name=f"telegram reply {message.id}")
        showing.said.append(said)
        showing.changed.set()

    async def send(self, message: Received, reply: Sequence[Said]) -> None:
        """Delivers a whole reply."""
        showing = self._showing.pop((message.chat, message.id), None)
        if showing is None:
            showing = Showing(message=message, target=self._target_of(message))
        elif showing.task is not None:
            showing.ending.set()
            await showing.task  # what it is doing just now is not cut off: a place would be lost
        parts = await asyncio.to_thread(parts_of, reply)
        await self._deliver(showing, parts)
        for number in sorted(part for part in showing.places or {} if part >= len(parts)):
            if not (showing.target.pressed and number == 0):
                await self._api.take_away(showing.target, (showing.places or {})[number])
                await self._mailbox.note(showing.target.owner, message, number, None)

    async def close(self) -> None:
        """Nothing is shown any more."""
        tasks = [showing.task for showing in self._showing.values() if showing.task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._showing.clear()

    # -- while it is made

    async def _show(self, showing: Showing) -> None:
        """Shows the newest state, now and then, until the reply is whole."""
        while not showing.ending.is_set():
            await _either(showing.changed, showing.ending)
            if showing.ending.is_set():
                return
            showing.changed.clear()
            drafts = False
            if not self._api.flooded(showing.target.chat):
                drafts = await self._show_once(showing)
            pause = max(self._pause(showing.target, drafts), self._api.flooded(showing.target.chat))
            with suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await showing.ending.wait()

    async def _show_once(self, showing: Showing) -> bool:
        """Whether it is shown as a draft."""
        from telegram.error import RetryAfter, TelegramError

        from assistant.telegram.api import wait_seconds

        try:
            said = joined(showing.said)
            parts = await asyncio.to_thread(parts_of, said)
            growing = bool(said) and said[-1].kind == "piece" and bool(parts)
            if growing and await self._api.draft(showing.target, showing.message.id, parts[-1].rich):
                if parts[:-1]:  # what does not fit into a draft
                    await self._deliver(showing, parts[:-1], patient=False)
                return True
            await self._deliver(showing, parts, patient=False)
        except RetryAfter as exc:
            self._api.note_flood(showing.target.chat, wait_seconds(exc))
        except (TelegramError, NeverDelivered, GroupMoved, AssistantError, EngineError) as exc:
            self._log.info("not_shown", reason=type(exc).__name__)
        return False

    # -- places

    async def _deliver(self, showing: Showing, parts: Sequence[Part], *, patient: bool = True) -> None:
        """Each part in its place; in no hurry (`patient`) until all are there."""
        target, message = showing.target, showing.message
        if showing.places is None:
            noted = await self._mailbox.places(target.owner, message)
            opening = [int(place[1:]) for place in noted.values() if place.startswith(OPENING)]
            showing.opening = min(opening, default=None)
            showing.places = {number: place for number, place in noted.items() if not place.startswith(OPENING)}
            if target.pressed and target.message is not None:  # the answer to a press takes the place of the button
                showing.places.setdefault(0, str(target.message))
        for number, part in enumerate(parts):
            if showing.shown.get(number) == part:
                continue
            if number not in showing.places:
                await self._open(showing, number)
            if showing.ending.is_set() and not patient:
                return
            try:
                await self._api.fill(target, showing.places[number], part.rich, part.offers)
            except PlaceGone:  # somebody deleted it
                await self._open(showing, number)
                await self._api.fill(target, showing.places[number], part.rich, part.offers)
            showing.shown[number] = part

    async def _open(self, showing: Showing, number: int) -> None:
        """A place for a part. Where an earlier try may have made one without our hearing of it, that is removed before
        the new one is noted: whatever happens until then, the next try begins at the same id and finds both."""
        target, message = showing.target, showing.message
        assert showing.places is not None
        tried = showing.opening is not None
        if showing.opening is None:
            showing.opening = self._api.newest(target)
        before = showing.opening
        await self._mailbox.note(target.owner, message, number, f"{OPENING}{before}")
        place, again = await self._api.open_place(target)
        if again or tried:
            for near in range(before + 1, min(place, before + 1 + SWEPT)):
                if not await self._mailbox.knows(target.owner, message, str(near)):
                    await self._api.sweep(target, near)
        showing.opening = None
        showing.places[number] = str(place)
        await self._mailbox.note(target.owner, message, number, str(place))


def parts_of(reply: Sequence[Said]) -> list[Part]:
    """The messages a reply becomes: each thing said begins one, and has its buttons under its last."""
    parts: list[Part] = []
    for said in joined(reply):
        marked_up = said.kind == "piece" or (said.kind == "command" and not said.verbatim)
        pieces = split(render(said.text) if marked_up else Rich(text=well_formed(said.text)))
        parts += [Part(rich) for rich in pieces[:-1]]
        parts += [Part(pieces[-1], said.offers)] if pieces else []
    return parts


async def _either(*events: asyncio.Event) -> None:
    waits = [asyncio.ensure_future(event.wait()) for event in events]
    try:
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for wait in waits:
            wait.cancel()
