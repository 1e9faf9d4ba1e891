"""The journal: what came in through a channel is written down before it is worked on, and ticked off when answered.

A message is received (its words are here), taken (its turn is stored, in the same transaction), answered (its reply
is stored, in the same transaction as the assistant's turn) and sent (only ids and times are left). Whatever moment
the process ends at, the next one goes on from the last of these.
"""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import timedelta

from memory.database import Database, Transaction
from memory.language import well_formed
from memory.ports import Clock
from memory.stores import deliveries
from memory.stores import inbox as rows
from memory.values import Received, Turn

Also = Callable[[Transaction, Turn], Awaitable[None]]  # is run in the transaction that stores a turn


class Journal:
    """The messages of one person's chats, until they are answered."""

    def __init__(self, *, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def receive(
        self,
        *,
        channel: str,
        chat: str,
        message: str,
        content: str,
        speaker: str | None = None,
        toggles_private: bool = False,
        corrects: str | None = None,
        refusal: str | None = None,
    ) -> tuple[Received, bool]:
        """Writes a message down, unless it was delivered before; the entry, and whether it is new.

        One that is refused is answered with that at once, so that nobody ever works on it. The words of a message said
        in private are not written down: whoever calls has to hold them.
        """
        async with self._database.transaction() as tx:
            known = await rows.find(tx, channel, chat, message)
            if known:
                return known, False
            private = await rows.is_private(tx, channel, chat)
            await rows.insert(
                tx,
                channel=channel,
                chat=chat,
                message=message,
                speaker=speaker,
                content="" if private and not toggles_private else well_formed(content),
                private=private,
                at=self._clock(),
                corrects=corrects,
            )
            if toggles_private:  # counts from the next message on, also when that is here before this one is answered
                await rows.set_private(tx, channel, chat, not private)
            entry = await rows.find(tx, channel, chat, message)
            assert entry is not None
            if refusal is not None:
                await rows.answer(tx, entry.id, refusal, self._clock())
                entry = replace(entry, said=refusal, answered=True)
            return entry, True

    async def next(self, channel: str, chat: str) -> Received | None:
        """The oldest message of a chat whose reply was not sent."""
        return await rows.next_waiting(self._database, channel, chat)

    async def waiting(self) -> list[tuple[str, str, int]]:
        """Channel, chat and number of messages that wait."""
        return await rows.waiting_chats(self._database)

    async def unanswered(self, channel: str, chat: str) -> int:
        """How many messages of a chat are not answered."""
        return await rows.count_waiting(self._database, channel, chat)

    async def begin(self, entry: Received) -> None:
        """Notes that something is being done which must not be done twice."""
        async with self._database.transaction() as tx:
            await rows.begin(tx, entry.id, self._clock())

    async def take(self, tx: Transaction, entry: Received, turn: Turn, said: str) -> None:
        """In the transaction that stores the user's turn: the message is in good hands; `said` are its notices."""
        await rows.take(tx, entry.id, turn.id, said)

    async def keep_answer(self, tx: Transaction, entry: Received, said: str) -> None:
        """In the transaction that stores the assistant's turn: the reply is there."""
        await rows.answer(tx, entry.id, said, self._clock())

    async def answer(self, entry: Received, said: str) -> None:
        """The same for a reply that is no turn: that of a command, or an error."""
        async with self._database.transaction() as tx:
            await rows.answer(tx, entry.id, said, self._clock())

    async def sent(self, entry: Received) -> None:
        """The reply was delivered."""
        async with self._database.transaction() as tx:
            await rows.sent(tx, entry.id, self._clock())

    async def find(self, channel: str, chat: str, message: str) -> Received | None:
        """A message by the channel's own id, as long as it is recognised."""
        return await rows.find(self._database, channel, chat, message)

    async def places(self, entry: Received) -> dict[int, str]:
        """Where the parts of a reply are in their channel, as far as they were noted."""
        return await deliveries.places(self._database, entry.id)

    async def note(self, entry: Received, part: int, place: str | None) -> None:
        """A part of a reply has a place in its channel (None: no more); noted before the words are put there."""
        async with self._database.transaction() as tx:
            if place is None:
                await deliveries.drop(tx, entry.id, part)
            else:
                await deliveries.note(tx, entry.id, part, place)

    async def knows(self, entry: Received, place: str) -> bool:
        """Whether a place in the chat of a message, whatever its thread, is that of any reply."""
        chat = "/".join(entry.chat.split("/")[:2])
        return await deliveries.answered_at(self._database, entry.channel, chat, place) is not None

    async def turn_at(self, channel: str, chat: str, place: str) -> int | None:
        """The turn of the user whose reply is at a place; None where there is no such reply, or to no turn."""
        answered = await deliveries.answered_at(self._database, channel, chat, place)
        return answered[1] if answered else None

    async def expire(self, days: int) -> int:
        """Forgets the ids of what was answered longer ago than a channel delivers again; how many."""
        async with self._database.transaction() as tx:
            return await rows.delete_sent(tx, self._clock() - timedelta(days=days))
