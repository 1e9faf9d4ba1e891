"""Forgetting, complete (F11): rows, index, vectors, history, the words in turns; a keyed hash is all that stays."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from memory.database import Database, View
from memory.errors import NotFound
from memory.language import LanguagePack, fold, words_of
from memory.learn import KIND, normalised
from memory.ports import Clock
from memory.signals import sentences
from memory.stores import facts as rows
from memory.stores import turns as turn_rows
from memory.stores.index import Index, stems
from memory.tokens import count_tokens
from memory.values import Fact, Turn

CUT = "[…]"
_LETTER = r"[^\W_\u3400-\u9fff\uf900-\ufaff]"


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
        async with self._database.snapshot() as view:
            facts = await self._facts(view, fact_id)
            turns = await self._turns(view, await self._wordings(view, facts))
        return Forgotten(facts=tuple(facts), turns=tuple(turns))

    async def forget(self, fact_id: str) -> Forgotten:
        """Removes a fact with its chain."""
        now = self._clock()
        async with self._database.transaction() as tx:
            facts = await self._facts(tx, fact_id)
            wordings = await self._wordings(tx, facts)
            turns = await self._turns(tx, wordings)
            await self._index.remove(tx, KIND, [fact.id for fact in facts])
            await self._index.forget_queries(tx)
            await rows.bury(tx, [normalised(fact.fact, self._packs.get(fact.language)) for fact in wordings], now)
            for turn in turns:
                content = self._cut(turn.content, wordings)
                await turn_rows.rewrite(tx, turn.id, content, count_tokens(content))
            await rows.erase(tx, [fact.id for fact in facts], now)
            await rows.narrow_quotes(tx, {fact.quote for fact in wordings})
        complete = await self._database.checkpoint()
        return Forgotten(facts=tuple(facts), turns=tuple(turns), complete=complete)

    async def _facts(self, view: View, fact_id: str) -> list[Fact]:
        """The chain of a fact, and whatever row says the same: one whose learning was undone still has its words."""
        chain = await rows.chain(view, fact_id)
        if not chain:
            raise NotFound(f"There is no fact {fact_id}. See the ids with: olvido facts list --state all")
        ids = {fact.id for fact in chain}
        said = {_words(fact) for fact in await self._wordings(view, chain)}
        everything = await rows.all_with_status(view, ("current", "superseded", "undone"))
        return [fact for fact in everything if fact.id in ids or _words(fact) in said]

    async def _wordings(self, view: View, facts: Sequence[Fact]) -> list[Fact]:
        """Facts as they are and as they were before they were corrected."""
        all_of_them = [*facts, *await rows.images(view, [fact.id for fact in facts])]
        return list({(fact.fact, fact.quote, fact.value): fact for fact in all_of_them}.values())

    async def _turns(self, view: View, wordings: Sequence[Fact]) -> list[Turn]:
        return [
            turn for turn in await turn_rows.with_content(view) if self._cut(turn.content, wordings) != turn.content
        ]

    def _cut(self, content: str, wordings: Sequence[Fact]) -> str:
        """The words of a turn without those that say one of the facts, in its own words or in others."""
        cut = content
        for sentence in sentences(content):
            if any(self._says(sentence, fact) for fact in wordings):
                cut = cut.replace(sentence, CUT)
        cut = without(cut, [text for fact in wordings for text in (fact.quote, fact.fact)])
        return cut if cut == content else without(cut, [fact.value for fact in wordings])

    def _says(self, sentence: str, fact: Fact) -> bool:
        """Whether all content words of a fact stand in a sentence; a single one may stand there by chance."""
        pack = self._packs.get(fact.language)
        wanted = set(stems(fact.fact, pack))
        return len(wanted) > 1 and wanted <= set(stems(sentence, pack))


def _words(fact: Fact) -> tuple[str, ...]:
    return tuple(words_of(fact.fact)) or (fact.fact,)


def without(content: str, texts: Sequence[str]) -> str:
    """A text with every occurrence of others cut out, whatever their case, accents and spacing."""
    for text in sorted({text for text in texts if len(text.strip()) > 2}, key=len, reverse=True):
        # folding keeps every character at its place
        for match in reversed(list(re.finditer(_pattern(text), fold(content)))):
            content = content[: match.start()] + CUT + content[match.end() :]
    return content


def _pattern(text: str) -> str:
    """A text as whole words; Chinese has none."""
    inner = r"\s+".join(re.escape(word) for word in fold(text).split())
    return rf"(?<!{_LETTER}){inner}(?!{_LETTER})"
