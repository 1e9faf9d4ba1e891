"""Confirmations of facts the user asked about (F6): held for a while, visible at once, written in one go.

What the user said again is written with the words themselves; only that somebody asked may be lost in a crash.
"""

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime

from memory.database import Transaction
from memory.stores import facts as rows
from memory.values import Fact


class Confirmations:
    """When facts were last asked about, as far as it is not written yet."""

    def __init__(self) -> None:
        self.held: dict[str, datetime] = {}

    def note(self, facts: Iterable[Fact], at: datetime) -> tuple[Fact, ...]:
        """Holds that these were asked about; returns them as they are now."""
        confirmed = tuple(replace(fact, last_confirmed_at=at) for fact in facts)
        self.held |= {fact.id: at for fact in confirmed}
        return confirmed

    def applied(self, fact: Fact) -> Fact:
        """A fact as it is with what is held."""
        at = self.held.get(fact.id)
        if at is None or fact.status != "current" or at <= fact.last_confirmed_at:
            return fact
        return replace(fact, last_confirmed_at=at)

    async def write(self, tx: Transaction) -> dict[str, datetime]:
        """Writes what is held, and returns it; facts that are gone or replaced by now stay so."""
        held = dict(self.held)
        for fact in await rows.with_ids(tx, held):
            after = self.applied(fact)
            if after is not fact:
                await rows.update(tx, after)
                await rows.record(tx, "confirmed", [(fact.id, fact, after)], held[fact.id])
        return held

    def written(self, done: dict[str, datetime]) -> None:
        """What is on the disk is held no longer."""
        self.held = {name: at for name, at in self.held.items() if done.get(name) != at}
