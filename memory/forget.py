"""Forgetting, complete (F11): rows, index, vectors, history, the words in turns; a keyed hash is all that stays."""

import json
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from memory.database import Database, Transaction, View
from memory.episodes import Episodes, rendered, tags_of
from memory.errors import NotFound
from memory.language import LanguagePack, fold, words_of
from memory.learn import KIND, normalised
from memory.limits import Limits
from memory.ports import Clock
from memory.signals import sentences
from memory.stores import answers as answer_rows
from memory.stores import context as context_rows
from memory.stores import episodes as episode_rows
from memory.stores import facts as rows
from memory.stores import inbox as inbox_rows
from memory.stores import turns as turn_rows
from memory.stores.index import Index, stems
from memory.tokens import count_tokens
from memory.values import Episode, Fact, Note, Statement, Summary, Turn

CUT = "[…]"
STATEMENT_KINDS = ("world", "experience", "opinion", "observation")
_AROUND = 3  # turns before and after whose lines may be found by the words of a turn
_MOST_STATEMENTS = 500
_LETTER = r"[^\W_\u3400-\u9fff\uf900-\ufaff]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Forgotten:
    """What goes, or went: facts, statements, summaries and parts of episodes; the turns whose words are cut."""

    facts: tuple[Fact, ...]
    wordings: tuple[Fact, ...]  # the facts as they are and as they ever were
    turns: tuple[Turn, ...]
    statements: tuple[Statement, ...] = ()
    summaries: tuple[Summary, ...] = ()
    episodes: tuple[Episode, ...] = ()
    complete: bool = False  # whether no byte is left


class Forgetting:
    """Removes facts and every trace of their words."""

    def __init__(
        self,
        *,
        database: Database,
        index: Index,
        episodes: Episodes,
        packs: Mapping[str, LanguagePack],
        clock: Clock,
        limits: Limits,
    ) -> None:
        self._database = database
        self._index = index
        self._episodes = episodes
        self._limits = limits
        self._packs = packs
        self._clock = clock

    async def preview(self, fact_id: str) -> Forgotten:
        """What forgetting would remove; the chain of a fact is one thing, so all of it."""
        async with self._database.snapshot() as view:
            return await self._concerned(view, await self._facts(view, fact_id))

    async def forget(self, fact_id: str) -> Forgotten:
        """Removes a fact with its chain."""
        return await self._remove(lambda view: self._facts(view, fact_id))

    async def forget_again(self, said: Sequence[Fact]) -> Forgotten:
        """Removes what was forgotten in another file: the facts that say it, and its words where no fact was learnt."""
        return await self._remove(lambda view: self._facts_saying(view, said), said)

    async def _remove(self, find: Callable[[View], Awaitable[list[Fact]]], said: Sequence[Fact] = ()) -> Forgotten:
        now = self._clock()
        async with self._database.snapshot() as view:
            before = await self._concerned(view, await find(view), said)
        lines = {line.id for line in before.statements}
        ready = await self._episodes.ready_to_rewrite(self._pairs(before), lines)
        async with self._database.transaction() as tx:
            gone = await self._concerned(tx, await find(tx), said)
            facts, wordings = gone.facts, gone.wordings
            await self._episodes.rewrite(tx, self._pairs(gone), ready)
            await self._cut_traces(tx, wordings)
            await self._index.remove(tx, KIND, [fact.id for fact in facts])
            for statement in gone.statements:
                await self._index.remove(tx, statement.kind, [statement.id])
            await self._index.remove(tx, "summary", [summary.id for summary in gone.summaries])
            await context_rows.delete_statements(tx, gone.statements)
            await context_rows.delete_summaries(tx, gone.summaries)
            await self._index.strip_context(tx, {stem for fact in wordings for stem in self._telling(fact)})
            await self._strip_neighbours(tx, wordings)
            await self._index.forget_queries(tx)
            await answer_rows.delete_all(tx)
            await rows.bury(tx, [normalised(fact.fact, self._packs.get(fact.language)) for fact in wordings], now)
            for turn in gone.turns:
                content = self._cut(turn.content, wordings)
                await turn_rows.rewrite(tx, turn.id, content, count_tokens(content))
            await self._cut_waiting(tx, wordings)
            await rows.erase(tx, [fact.id for fact in facts], now)
            await rows.narrow_quotes(tx, {fact.quote for fact in wordings})
        return replace(gone, complete=await self._database.checkpoint())

    async def _concerned(self, view: View, facts: Sequence[Fact], said: Sequence[Fact] = ()) -> Forgotten:
        """All that says one of the facts, or what is said elsewhere."""
        wordings = await self._wordings(view, facts, said)
        return Forgotten(
            facts=tuple(facts),
            wordings=tuple(wordings),
            turns=tuple(await self._turns(view, wordings)),
            statements=tuple(await self._statements(view, wordings)),
            summaries=tuple(await self._summaries(view, wordings)),
            episodes=tuple(await self._episodes_saying(view, wordings)),
        )

    async def _statements(self, view: View, wordings: Sequence[Fact]) -> list[Statement]:
        """Statements that say one of the facts; of the turn that stated it also those that name its value (F13)."""
        texts = [text for fact in wordings for text in (fact.fact, fact.quote, fact.value) if len(text) > 2]
        found = {line.id: line for line in await context_rows.statements_containing(view, texts)}
        for fact in wordings:
            hits = await self._index.by_words(fact.fact, fact.language, STATEMENT_KINDS, _MOST_STATEMENTS, view)
            lines = await context_rows.statements_with_ids(view, [hit.ref for hit in hits])
            found |= {line.id: line for line in lines}
        own = {fact.turn_id for fact in wordings}
        values = [fact.value for fact in wordings]
        return [
            line
            for line in found.values()
            if self._cut(line.text, wordings) != line.text
            or (line.turn_id in own and without(line.text, values) != line.text)
        ]

    async def _summaries(self, view: View, wordings: Sequence[Fact]) -> list[Summary]:
        """Summaries that say one of the facts, or name its value: they are too short to tell what they meant."""
        texts = [text for fact in wordings for text in (fact.fact, fact.value) if len(text) > 2]
        found = {summary.id: summary for summary in await context_rows.summaries_containing(view, texts)}
        for fact in wordings:
            hits = await self._index.by_words(fact.fact, fact.language, ["summary"], _MOST_STATEMENTS, view)
            near = await context_rows.summaries_with_ids(view, [hit.ref for hit in hits])
            found |= {
                summary.id: summary for summary in near if self._cut(summary.rendered, wordings) != summary.rendered
            }
        return list(found.values())

    async def _episodes_saying(self, view: View, wordings: Sequence[Fact]) -> list[Episode]:
        """Episodes that say one of the facts; of a consolidated one its originals."""
        texts = [text for fact in wordings for text in (fact.fact, fact.quote, fact.value) if len(text) > 2]
        found = {one.id: one for one in await episode_rows.containing(view, texts)}
        for fact in wordings:
            hits = await self._index.by_words(fact.fact, fact.language, ["episode"], _MOST_STATEMENTS, view)
            found |= {one.id: one for one in await episode_rows.with_ids(view, [hit.ref for hit in hits])}
        originals = [each for one in found.values() for each in await episode_rows.members(view, one.id)]
        found |= {one.id: one for one in originals}
        whole = {one.merged_into for one in originals}
        return [one for ref, one in found.items() if ref not in whole and self._narrowed(one, wordings) != one]

    def _narrowed(self, episode: Episode, wordings: Sequence[Fact]) -> Episode | None:
        """An episode without the notes that say one of the facts; None when nothing else is left of it."""
        notes = [note for note in episode.notes if not self._tells(_joined(note), wordings)]
        if len(notes) == len(episode.notes) and not any(
            self._tells(text, wordings) for text in (episode.trouble, *episode.entities)
        ):
            return episode
        if not notes:
            return None
        topic, text = rendered(notes, self._limits)
        named = [fold(text) for fact in wordings for text in (fact.fact, fact.quote)]
        return replace(
            episode,
            notes=tuple(notes),
            topic=topic,
            text=text,
            tags=tags_of(notes),
            entities=tuple(name for name in episode.entities if not any(fold(name) in text for text in named)),
            trouble="" if self._tells(episode.trouble, wordings) else episode.trouble,
        )

    def _tells(self, text: str, wordings: Sequence[Fact]) -> bool:
        return self._cut(text, wordings) != text or without(text, [fact.value for fact in wordings]) != text

    def _pairs(self, gone: Forgotten) -> list[tuple[Episode, Episode | None]]:
        return [(one, self._narrowed(one, gone.wordings)) for one in gone.episodes]

    async def _cut_traces(self, tx: Transaction, wordings: Sequence[Fact]) -> None:
        """The words kept of compressed turns, and those noted of a topic that is not closed."""
        for session_id, first, spoken in await episode_rows.traces(tx):
            cut = [replace(one, content=self._cut(one.content, wordings)) for one in spoken]
            if cut != spoken:
                await episode_rows.rewrite_trace(tx, session_id, first, cut)
        for one in await episode_rows.waiting(tx):
            if self._tells(one.signals.get("trouble", ""), wordings):
                await episode_rows.rewrite_signals(tx, one.id, {**one.signals, "trouble": ""})

    async def _facts(self, view: View, fact_id: str) -> list[Fact]:
        """The chain of a fact, and whatever row says the same: one whose learning was undone still has its words."""
        chain = await rows.chain(view, fact_id)
        if not chain:
            raise NotFound(f"There is no fact {fact_id}. See the ids with: olvido facts list --state all")
        ids = {fact.id for fact in chain}
        said = {_words(fact) for fact in await self._wordings(view, chain)}
        everything = await rows.all_with_status(view, ("current", "superseded", "undone"))
        return [fact for fact in everything if fact.id in ids or _words(fact) in said]

    async def _facts_saying(self, view: View, said: Sequence[Fact]) -> list[Fact]:
        """The facts, with their chains, that have a wording of these."""
        wanted = {_folded(text) for fact in said for text in (fact.fact, fact.quote)} - {""}
        found: dict[str, Fact] = {}
        for fact in await rows.all_with_status(view, ("current", "superseded", "undone")):
            if fact.id not in found and {_folded(fact.fact), _folded(fact.quote)} & wanted:
                found |= {each.id: each for each in await self._facts(view, fact.id)}
        return list(found.values())

    async def _wordings(self, view: View, facts: Sequence[Fact], said: Sequence[Fact] = ()) -> list[Fact]:
        """Facts as they are and as they were before they were corrected."""
        all_of_them = [*facts, *said, *await rows.images(view, [fact.id for fact in facts])]
        return list({(fact.fact, fact.quote, fact.value): fact for fact in all_of_them}.values())

    async def _turns(self, view: View, wordings: Sequence[Fact]) -> list[Turn]:
        return [
            turn for turn in await turn_rows.with_content(view) if self._cut(turn.content, wordings) != turn.content
        ]

    async def _cut_waiting(self, tx: Transaction, wordings: Sequence[Fact]) -> None:
        """Takes the words out of messages and replies that wait in the journal."""
        for entry in await inbox_rows.with_words(tx):
            said = [{**part, "text": self._cut(part["text"], wordings)} for part in json.loads(entry.said)]
            content = self._cut(entry.content, wordings)
            await inbox_rows.rewrite(tx, entry.id, content, json.dumps(said, ensure_ascii=False))

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
        # statements leave these out
        slight = pack.statements["intensifiers"] | pack.statements["lead_ins"] if pack else frozenset()
        wanted = set(stems(fact.fact, pack, slight))
        return len(wanted) > 1 and wanted <= set(stems(sentence, pack))

    async def _strip_neighbours(self, tx: Transaction, wordings: Sequence[Fact]) -> None:
        """The lines said around a fact are no longer found by any word of it."""
        for fact in wordings:
            if fact.turn_id is None:
                continue
            around = range(fact.turn_id - _AROUND, fact.turn_id + _AROUND + 1)
            refs = [line.id for line in await context_rows.statements_of_turns(tx, list(around))]
            words = {stem for text in (fact.fact, fact.quote) for stem in stems(text, self._packs.get(fact.language))}
            await self._index.strip_context(tx, words, refs)

    def _telling(self, fact: Fact) -> set[str]:
        """The stems that would tell the fact: those of its value, if it has one."""
        return set(stems(fact.value or fact.fact, self._packs.get(fact.language)))


def _joined(note: Note) -> str:
    return ", ".join((note.topic, *note.discussed, note.outcome, *note.decisions, *note.open_questions))


def _words(fact: Fact) -> tuple[str, ...]:
    return tuple(words_of(fact.fact)) or (fact.fact,)


def _folded(text: str) -> str:
    return " ".join(fold(text).split())


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
