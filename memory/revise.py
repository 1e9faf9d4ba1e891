"""Revising: a message was edited, so what was learnt from it is learnt from its new words.

Facts the new words do not state any more are taken back, and what they had replaced holds again. Of a message that
is compressed already the statements are made anew; the summary, what its episode tells and the lines of the reply to
it that rest on words it has no more go. Every step may be repeated: a revision that was cut off is done anew from its
beginning.
"""

import asyncio
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from memory.compress import Compressor, stored, without_secrets
from memory.corrections import says_the_same
from memory.database import Database, Transaction
from memory.episodes import Episodes, rendered, tags_of
from memory.errors import EngineError, NotFound
from memory.forget import without
from memory.language import LanguagePack, detect, well_formed, words_of
from memory.limits import Limits
from memory.ports import TokenCounter
from memory.signals import extract
from memory.statements import said_by
from memory.stores import context as context_rows
from memory.stores import episodes as episode_rows
from memory.stores import facts as fact_rows
from memory.stores import turns as rows
from memory.stores.index import Entry, Index, Prepared, stems
from memory.tokens import both_ends
from memory.values import Corrected, Episode, Fact, Note, Statement, Summary, Turn

if TYPE_CHECKING:
    from memory.facts import Facts

_MOST_UNDONE = 50  # things done to a fact since it was learnt


@dataclass(frozen=True, slots=True, kw_only=True)
class Anew:
    """What a compressed message states now, and what has to go for it; made before the transaction."""

    turn: Turn
    statements: Sequence[Statement]
    prepared: Prepared
    gone: frozenset[str]  # stems that only its old words had
    episodes: Sequence[tuple[Episode, Episode | None]]
    ready: Mapping[str, tuple[Entry, Prepared]]


class Revision:
    """Corrects turns of the user."""

    def __init__(
        self,
        *,
        database: Database,
        index: Index,
        facts: "Facts",
        episodes: Episodes,
        compressor: Compressor,
        packs: Mapping[str, LanguagePack],
        limits: Limits,
        count: TokenCounter,
    ) -> None:
        self._database = database
        self._index = index
        self._facts = facts
        self._episodes = episodes
        self._compressor = compressor
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
        undone = [fact for fact in undone if not any(says_the_same(draft, fact, self._packs) for draft in drafts)]
        kept = [fact for fact in before if fact not in gone]
        new = [draft for draft in drafts if not any(says_the_same(draft, fact, self._packs) for fact in kept)]
        ready = await self._facts.learner.prepare(new)
        anew = None if turn.content else await self._anew(turn, content, spoken)
        async with self._database.transaction() as tx:
            now = await rows.with_id(tx, turn_id)
            compressed_meanwhile = anew is None and now is not None and not now.content
            if not compressed_meanwhile:
                if anew is None:
                    await rows.rewrite(tx, turn_id, content, self._count(content))
                else:
                    await self._state_anew(tx, anew)
                await self._drop_naming(tx, turn_id, undone)
                learned = await self._facts.learner.write(tx, ready, turn_id, "learned", kept)
                return Corrected(learned=learned.facts, withdrawn=tuple(withdrawn))
        again = await self.correct(turn_id, content)
        return replace(again, withdrawn=(*withdrawn, *again.withdrawn))

    async def _anew(self, turn: Turn, content: str, spoken: str) -> Anew:
        """What the new words of a compressed message state, against what is kept of the old ones."""
        pack = self._packs[spoken]
        told = replace(turn, content=both_ends(content, self._limits.statements_characters), language=spoken)
        statements = await self._compressor.statements(turn.session_id, turn.id, turn.id, [told])
        lines = await context_rows.statements_of_turns(self._database, [turn.id])
        traces = await episode_rows.traces(self._database)
        said = [one for session, _, spoken_ in traces if session == turn.session_id for one in spoken_]
        before = " ".join(
            [*(said_by(line) for line in lines), *(one.content for one in said if one.turn_id == turn.id)]
        )
        others = " ".join(one.content for one in said if one.role == "user" and one.turn_id != turn.id)
        gone = set(stems(before, pack)) - set(stems(content, pack))
        if _negations(before, pack) != _negations(content, pack):
            gone = set(stems(before, pack))  # the same words say something else
        gone -= set(stems(others, pack))
        episode = await episode_rows.of_turn(self._database, turn.id)
        pairs: list[tuple[Episode, Episode | None]] = []
        if episode is not None:
            left = self._without(episode, gone, pack)
            pairs += [(episode, left)] if left != episode else []
        return Anew(
            turn=replace(turn, content=content),
            statements=statements,
            prepared=await self._index.prepare([said_by(statement) for statement in statements]),
            gone=frozenset(gone),
            episodes=pairs,
            ready=await self._episodes.ready_to_rewrite(pairs, {line.id for line in lines}),
        )

    async def _state_anew(self, tx: Transaction, anew: Anew) -> None:
        turn, kept = anew.turn, {statement.gist for statement in anew.statements}
        pack = self._packs[detect(turn.content, turn.language, self._packs)]
        old = await context_rows.statements_of_turns(tx, [turn.id])
        replied = await context_rows.statements_of_reply(tx, turn.session_id, turn.id)
        wrong = [line for line in old if line.gist not in kept]
        wrong += [line for line in replied if _has(said_by(line), anew.gone, pack)]
        await self._drop(tx, wrong)
        entries = [await stored(tx, statement) for statement in anew.statements]
        await self._index.add(tx, entries, anew.prepared)
        summaries = await context_rows.summaries_of_turn(tx, turn.id)
        await self._drop_summaries(tx, [one for one in summaries if _has(one.rendered, anew.gone, pack)])
        await self._episodes.rewrite(tx, anew.episodes, anew.ready)
        safe = without_secrets(turn).content
        for session_id, first, spoken in await episode_rows.traces(tx):
            new = [replace(one, content=safe) if one.turn_id == turn.id else one for one in spoken]
            if new != spoken:
                await episode_rows.rewrite_trace(tx, session_id, first, new)

    def _without(self, episode: Episode, gone: Set[str], pack: LanguagePack) -> Episode | None:
        """An episode without the phrases that have a word that is gone; None when nothing is left of it."""

        def left(texts: Sequence[str]) -> tuple[str, ...]:
            return tuple(text for text in texts if not _has(text, gone, pack))

        notes = [
            Note(
                topic=", ".join(left(note.topic.split(", "))),
                discussed=left(note.discussed),
                outcome="".join(left([note.outcome])),
                decisions=left(note.decisions),
                open_questions=left(note.open_questions),
            )
            for note in episode.notes
        ]
        notes = [note for note in notes if note != Note(topic="")]
        if not notes:
            return None
        trouble, entities = "".join(left([episode.trouble])), left(episode.entities)
        if (tuple(notes), trouble, entities) == (episode.notes, episode.trouble, episode.entities):
            return episode
        topic, text = rendered(notes, self._limits)
        return replace(
            episode,
            notes=tuple(notes),
            topic=topic,
            text=text,
            tags=tags_of(notes),
            entities=entities,
            trouble=trouble,
        )

    async def _drop_naming(self, tx: Transaction, turn_id: int, facts: Sequence[Fact]) -> None:
        """Statements and summaries that name a fact which was taken back."""
        lines = await context_rows.statements_of_turns(tx, [turn_id])
        await self._drop(tx, [line for line in lines if _names(line.text, facts)])
        summaries = await context_rows.summaries_of_turn(tx, turn_id)
        await self._drop_summaries(tx, [summary for summary in summaries if _names(summary.rendered, facts)])

    async def _drop_summaries(self, tx: Transaction, summaries: Sequence[Summary]) -> None:
        await self._index.remove(tx, "summary", [summary.id for summary in summaries])
        await context_rows.delete_summaries(tx, summaries)

    async def _drop(self, tx: Transaction, lines: Sequence[Statement]) -> None:
        for line in lines:
            await self._index.remove(tx, line.kind, [line.id])
        await context_rows.delete_statements(tx, lines)

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


def _has(text: str, gone: Set[str], pack: LanguagePack) -> bool:
    return not gone.isdisjoint(stems(text, pack))


def _negations(text: str, pack: LanguagePack) -> set[str]:
    return {word for word in words_of(text) if word in pack.words["negations"]}
