"""Compression (S4): a segment becomes statements and a summary and loses its words, all in one transaction."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from memory.database import Database
from memory.language import LanguagePack
from memory.limits import Limits
from memory.ports import Clock
from memory.statements import statements_of
from memory.stores import context as rows
from memory.stores import turns as turn_rows
from memory.stores.index import Entry, Index
from memory.summarise import Notes, Summariser, render
from memory.tokens import count_tokens
from memory.values import Statement, Summary, Turn


class Compressor:
    """Does the work that is owed; called when nobody waits."""

    def __init__(
        self,
        *,
        database: Database,
        index: Index,
        summariser: Summariser,
        packs: Mapping[str, LanguagePack],
        clock: Clock,
        limits: Limits,
    ) -> None:
        self._database = database
        self._index = index
        self._summariser = summariser
        self._packs = packs
        self._clock = clock
        self._limits = limits

    async def run(self) -> int:
        """Compresses every waiting segment, oldest first; returns how many."""
        done = 0
        while segment := await rows.next_segment(self._database):
            await self._compress(segment)
            done += 1
        return done

    async def _compress(self, segment: rows.Segment) -> None:
        turns = await turn_rows.between(self._database, segment.session_id, segment.first_turn, segment.last_turn)
        spoken = [replace(turn, language=segment.language) for turn in turns if turn.content.strip()]
        statements = statements_of(spoken, self._packs, self._limits)
        summary = await self._summary(spoken, segment.language) if spoken else None
        texts = [statement.text for statement in statements] + ([summary.rendered] if summary else [])
        prepared = await self._index.prepare(texts)
        async with self._database.transaction() as tx:
            if not await rows.is_waiting(tx, segment):
                return
            entries = [_statement_entry(await rows.insert_statement(tx, statement)) for statement in statements]
            if summary:
                entries.append(_summary_entry(await rows.insert_summary(tx, segment, summary)))
            await self._index.add(tx, entries, prepared)
            await rows.finish(tx, segment, self._clock())

    async def _summary(self, turns: Sequence[Turn], language: str) -> Summary:
        notes, line = render(await self._summariser(turns, language), self._limits)
        return _summary_value(notes, line, language, turns)


def _summary_value(notes: Notes, line: str, language: str, turns: Sequence[Turn]) -> Summary:
    return Summary(
        id="",
        topic=notes.topic,
        discussed=notes.discussed,
        outcome=notes.outcome,
        decisions=notes.decisions,
        open_questions=notes.open_questions,
        rendered=line,
        token_count=count_tokens(line),
        language=language,
        at=turns[-1].timestamp,
    )


def _statement_entry(statement: Statement) -> Entry:
    return Entry(
        kind=statement.kind, ref=statement.id, text=statement.text, language=statement.language, at=statement.at
    )


def _summary_entry(summary: Summary) -> Entry:
    return Entry(kind="summary", ref=summary.id, text=summary.rendered, language=summary.language, at=summary.at)
