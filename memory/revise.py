"""Revising: a message was edited, so what was learnt from it is learnt from its new words.

Facts the new words do not state any more are taken back, and what they had replaced holds again; statements and
summaries that name them go. Every step may be repeated: a revision that was cut off is done anew from its beginning.
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from memory.corrections import says_the_same
from memory.database import Database
from memory.errors import EngineError, NotFound
from memory.forget import without
from memory.language import LanguagePack, detect, well_formed
from memory.limits import Limits
from memory.ports import TokenCounter
from memory.signals import extract
from memory.stores import context as context_rows
from memory.stores import facts as fact_rows
from memory.stores import turns as rows
from memory.stores.index import Index
from memory.values import Corrected, Fact

if TYPE_CHECKING:
    from memory.facts import Facts

_MOST_UNDONE = 50  # things done to a fact since it was learnt


class Revision:
    """Corrects turns of the user."""

    def __init__(
        self,
        *,
        database: Database,
        index: Index,
        facts: "Facts",
        packs: Mapping[str, LanguagePack],
        limits: Limits,
        count: TokenCounter,
    ) -> None:
        self._database = database
        self._index = index
        self._facts = facts
        self._packs = packs
        self._limits = limits
        self._count = count

    async def correct(self, turn_id: int, content: str) -> Corrected:
        """A turn of the user has these words from now on."""
        turn = await rows.with_id(self._database, turn_id)
        if turn is None or turn.role != "user":
            raise NotFound("There is no such message any more.")
        content = well_formed(content)
        language = await rows.session_language(self._database, turn.session_id)
        spoken = detect(content, language, self._packs)
        insisted = self._packs[spoken].insists(content)
        found = await asyncio.to_thread(extract, content, spoken, self._packs, self._limits)
        drafts = [draft for draft in found if not draft.secret or insisted]
        await self._facts.settle()
        before = [fact for fact in await fact_rows.all_of_turn(self._database, turn_id) if fact.status == "current"]
        gone = [fact for fact in before if not any(says_the_same(draft, fact, self._packs) for draft in drafts)]
        withdrawn = [fact for fact in gone if await self._withdraw(fact)]
        undone = [fact for fact in await fact_rows.all_of_turn(self._database, turn_id) if fact.status == "undone"]
        kept = [fact for fact in before if fact not in gone]
        new = [draft for draft in drafts if not any(says_the_same(draft, fact, self._packs) for fact in kept)]
        ready = await self._facts.learner.prepare(new)
        async with self._database.transaction() as tx:
            if turn.content:  # not compressed yet
                await rows.rewrite(tx, turn_id, content, self._count(content))
            lines = await context_rows.statements_of_turns(tx, [turn_id])
            named = [line for line in lines if _names(line.text, undone)]
            for line in named:
                await self._index.remove(tx, line.kind, [line.id])
            await context_rows.delete_statements(tx, named)
            summaries = await context_rows.summaries_of_turn(tx, turn_id)
            wrong = [summary for summary in summaries if _names(summary.rendered, undone)]
            await self._index.remove(tx, "summary", [summary.id for summary in wrong])
            await context_rows.delete_summaries(tx, wrong)
            learned = await self._facts.learner.write(tx, ready, turn_id, "learned", kept)
        return Corrected(learned=learned.facts, withdrawn=tuple(withdrawn))

    async def _withdraw(self, fact: Fact) -> bool:
        """Takes back all that was done to a fact, its learning included; whether that could be done."""
        try:
            for _ in range(_MOST_UNDONE):
                await self._facts.undo(fact.id)
                left = await fact_rows.get(self._database, fact.id)
                if left is None or left.status == "undone":
                    return True
        except EngineError:  # something newer rests on it: it stays
            pass
        return False


def _names(text: str, facts: Sequence[Fact]) -> bool:
    return without(text, [words for fact in facts for words in (fact.fact, fact.quote, fact.value)]) != text
