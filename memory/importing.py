"""Importing facts: new ones join, known ones are left alone, forgotten ones stay forgotten; in one transaction."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime
from typing import Any

from memory.database import Database, Transaction
from memory.errors import Refused
from memory.language import LanguagePack, fold, well_formed
from memory.learn import KIND, entry_of, normalised
from memory.portable import Written
from memory.ports import Clock
from memory.stores import facts as rows
from memory.stores.index import Index, Prepared
from memory.values import Fact, FactDraft

Change = tuple[str, Fact | None, Fact | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """What an import did; `renamed` pairs the id in the file with the one given."""

    facts: tuple[Fact, ...]
    superseded: tuple[Fact, ...]
    known: int
    forgotten: int
    renamed: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sorted:
    """The facts of a file that are new here, and where the others are to be found: id in the file to id here."""

    new: tuple[Fact, ...]
    known: dict[str, str]
    known_count: int
    forgotten: int


class Importer:
    """Brings facts from a file into one memory."""

    def __init__(
        self,
        *,
        database: Database,
        index: Index,
        packs: Mapping[str, LanguagePack],
        clock: Clock,
        draft: Callable[[str], FactDraft],
    ) -> None:
        self._database = database
        self._index = index
        self._packs = packs
        self._clock = clock
        self._draft = draft

    async def run(self, written: Sequence[Written]) -> Imported:
        """Stores what is new, under its id where that is free; all of it or nothing."""
        now = self._clock()
        facts = [_stored(item.fact) if item.fact else self._stated(item, now) for item in written]
        texts = list(dict.fromkeys(fact.fact for fact in facts if fact.status == "current"))
        prepared = await self._index.prepare(texts) if texts else None
        async with self._database.transaction() as tx:
            stored = await rows.all_with_status(tx, ("current", "superseded", "undone"))
            found = await self._sort(tx, facts, stored)
            placed = await self._place(tx, found.new, stored)
            chained = await self._chain(tx, placed, found.known)
            settled, replaced = await self._settle(tx, chained, stored)
            for fact in settled:
                if prepared and fact.status == "current":
                    place = texts.index(fact.fact)
                    own = Prepared(generation=prepared.generation, vectors=prepared.vectors[place : place + 1])
                    await self._index.add(tx, [entry_of(fact)], own)
            changes: list[Change] = [(fact.id, None, fact) for fact in settled]
            await self._record(tx, changes, replaced, now)
        return Imported(
            facts=tuple(settled),
            superseded=tuple(after for _, after in replaced),
            known=found.known_count,
            forgotten=found.forgotten,
            renamed=tuple((old.id, new.id) for old, new in placed if old.id and old.id != new.id),
        )

    def _stated(self, item: Written, now: datetime) -> Fact:
        """A fact from its words alone, as if the user had just said it."""
        try:
            draft = self._draft(item.text)
        except Refused as exc:
            raise Refused(f"{item.place}: {exc} Nothing was imported.") from None
        shared: dict[str, Any] = {
            field.name: getattr(draft, field.name) for field in fields(Fact) if hasattr(draft, field.name)
        }
        shared["domain"] = item.domain or draft.domain
        return Fact(
            id="",
            created_at=now,
            last_confirmed_at=now,
            source="explicit",
            turn_id=None,
            status="current",
            superseded_by=None,
            **shared,
        )

    async def _sort(self, tx: Transaction, facts: Sequence[Fact], stored: Sequence[Fact]) -> _Sorted:
        there = [fact for fact in stored if fact.status != "undone"]
        same = {(fact.created_at, _folded(fact.fact)): fact.id for fact in there}
        current = {_folded(fact.fact): fact.id for fact in there if fact.status == "current"}
        new: list[Fact] = []
        known: dict[str, str] = {}
        known_count = forgotten = 0
        for fact in facts:
            folded = _folded(fact.fact)
            match = same.get((fact.created_at, folded))
            if match is None and fact.status == "current":
                match = current.get(folded)
            if match:
                known_count += 1
                known |= {fact.id: match} if fact.id else {}
            elif await self._is_buried(tx, fact):
                forgotten += 1
            else:
                new.append(fact)
        return _Sorted(new=tuple(new), known=known, known_count=known_count, forgotten=forgotten)

    async def _is_buried(self, tx: Transaction, fact: Fact) -> bool:
        """In whatever language it is read: that of the file may be another than it was forgotten in."""
        forms = {normalised(fact.fact, pack) for pack in (self._packs.get(fact.language), *self._packs.values())}
        return any([await rows.is_buried(tx, form) for form in sorted(forms)])

    async def _place(self, tx: Transaction, new: Sequence[Fact], stored: Sequence[Fact]) -> list[tuple[Fact, Fact]]:
        """Each new fact as in the file and as stored; those that keep their ids first, so that none is taken."""
        taken = {fact.id: fact for fact in stored}
        placed: list[tuple[Fact, Fact]] = []
        homeless: list[Fact] = []
        for fact in new:
            before = taken.get(fact.id)
            if before and before.status == "undone" and before.fact == fact.fact:  # an import that was undone
                await rows.update(tx, replace(fact, superseded_by=None))
                placed.append((fact, fact))
            elif fact.id and before is None and not await rows.events(tx, [fact.id], 1):
                placed.append((fact, await rows.insert(tx, replace(fact, superseded_by=None))))
            else:
                homeless.append(fact)
        for fact in homeless:
            placed.append((fact, await rows.insert(tx, replace(fact, id="", superseded_by=None))))
        return placed

    async def _chain(
        self, tx: Transaction, placed: Sequence[tuple[Fact, Fact]], known: Mapping[str, str]
    ) -> list[Fact]:
        """Points each superseded fact to its successor's id here."""
        here = {**known, **{old.id: new.id for old, new in placed if old.id}}
        chained = []
        for old, new in placed:
            fact = replace(new, superseded_by=here.get(old.superseded_by) if old.superseded_by else None)
            await rows.update(tx, fact)
            chained.append(fact)
        return chained

    async def _settle(
        self, tx: Transaction, facts: Sequence[Fact], stored: Sequence[Fact]
    ) -> tuple[list[Fact], list[tuple[Fact, Fact]]]:
        """Of two homes or names the one confirmed last stays current (F7); also what was replaced, before and after."""
        current = {fact.id: fact for fact in stored if fact.status == "current" and fact.single and fact.attribute}
        settled: list[Fact] = []
        replaced: list[tuple[Fact, Fact]] = []
        for fact in facts:
            after = fact
            for rival in [other for other in current.values() if _same_slot(fact, other)]:
                if rival.last_confirmed_at > fact.last_confirmed_at:
                    after = replace(fact, status="superseded", superseded_by=rival.id)
                    await rows.update(tx, after)
                    break
                gone = replace(current.pop(rival.id), status="superseded", superseded_by=fact.id)
                await rows.update(tx, gone)
                await self._index.remove(tx, KIND, [rival.id])
                replaced.append((rival, gone))
            settled.append(after)
        return settled, replaced

    async def _record(
        self, tx: Transaction, changes: Sequence[Change], replaced: Sequence[tuple[Fact, Fact]], now: datetime
    ) -> None:
        """One act, which one undo reverts."""
        if changes:
            batch = await rows.record(tx, "imported", changes, now)
            gone: list[Change] = [(before.id, before, after) for before, after in replaced]
            await rows.record(tx, "superseded", gone, now, batch)


def _same_slot(fact: Fact, other: Fact) -> bool:
    if fact.status != "current" or not fact.single:
        return False
    return fact.attribute == other.attribute and fact.key == other.key


def _stored(fact: Fact) -> Fact:
    """A fact from a file, its texts as the engine keeps them."""
    return replace(fact, fact=well_formed(fact.fact), quote=well_formed(fact.quote), value=well_formed(fact.value))


def _folded(text: str) -> str:
    return " ".join(fold(text).split())
