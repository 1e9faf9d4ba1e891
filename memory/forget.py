"""Forgetting, complete (F11): rows, index, vectors, history, the words in turns; a keyed hash is all that stays."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from memory.database import Database
from memory.language import LanguagePack
from memory.learn import KIND, normalised
from memory.ports import Clock
from memory.stores import facts as rows
from memory.stores import turns as turn_rows
from memory.stores.index import Index
from memory.tokens import count_tokens
from memory.values import Fact, Turn

CUT = "[…]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Forgotten:
    """What goes, or went: facts, and the turns whose words were cut; whether no byte is left in the files."""

    facts: tuple[Fact, ...]
    turns: tuple[Turn, ...]
    complete: bool = False


class Forgetting:
    """Removes facts and every trace of their words."""

    def __init__(self, *, database: Database, index: Index, packs: Mapping[str, LanguagePack], clock: Clock) -> None:
        self._database = database
        self._index = index
        self._packs = packs
        self._clock = clock

    async def preview(self, fact_id: str) -> Forgotten:
        """What forgetting would remove; the chain of a fact is one thing, so all of it."""
        facts = await rows.chain(self._database, fact_id)
        return Forgotten(facts=tuple(facts), turns=tuple(await self._turns(facts)))

    async def forget(self, fact_id: str) -> Forgotten:
        """Removes a fact with its chain."""
        facts = await rows.chain(self._database, fact_id)
        turns = await self._turns(facts)
        now = self._clock()
        texts = [text for fact in facts for text in (fact.fact, fact.quote, fact.value)]
        async with self._database.transaction() as tx:
            await self._index.remove(tx, KIND, [fact.id for fact in facts])
            await self._index.forget_queries(tx)
            await rows.bury(tx, [normalised(fact.fact, self._packs.get(fact.language)) for fact in facts], now)
            for turn in turns:
                content = without(turn.content, texts)
                await turn_rows.rewrite(tx, turn.id, content, count_tokens(content))
            await rows.erase(tx, [fact.id for fact in facts], now)
        complete = await self._database.checkpoint()
        return Forgotten(facts=tuple(facts), turns=tuple(turns), complete=complete)

    async def _turns(self, facts: Sequence[Fact]) -> list[Turn]:
        found: dict[int, Turn] = {}
        for fact in facts:
            for text in (fact.quote, fact.fact):
                found |= {turn.id: turn for turn in await turn_rows.containing(self._database, text)}
            own = await turn_rows.with_id(self._database, fact.turn_id) if fact.turn_id is not None else None
            if own and without(own.content, [fact.quote, fact.fact]) != own.content:
                found[own.id] = own
        return list(found.values())


def without(content: str, texts: Sequence[str]) -> str:
    """A text with every occurrence of others cut out, whatever their case and spacing."""
    for text in sorted({text for text in texts if len(text) > 2}, key=len, reverse=True):
        pattern = r"\s+".join(re.escape(word) for word in text.split())
        content = re.sub(pattern, CUT, content, flags=re.IGNORECASE)
    return content
