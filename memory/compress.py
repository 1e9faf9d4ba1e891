"""Compression (S4): a segment becomes statements and a summary and loses its words, all in one transaction."""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import tzinfo

from memory.database import Database, Transaction
from memory.language import LanguagePack
from memory.limits import Limits
from memory.outcomes import Signals, signals_of
from memory.ports import Clock
from memory.secrets import find_secret
from memory.signals import sentences
from memory.statements import Setting, said_by, statements_of, words_in
from memory.stores import context as rows
from memory.stores import episodes as episode_rows
from memory.stores import turns as turn_rows
from memory.stores.index import Entry, Index
from memory.summarise import Notes, Summariser, render
from memory.tokens import both_ends, count_tokens
from memory.values import Statement, Summary, Turn
from memory.window import closing

_LOG = logging.getLogger(__name__)
_TOPIC_WORDS = 12
_CUT = "[…]"


class Compressor:
    """Does the work that is owed; called when nobody waits."""

    def __init__(
        self,
        *,
        database: Database,
        index: Index,
        summariser: Summariser | None,
        extractive: Summariser,
        packs: Mapping[str, LanguagePack],
        clock: Clock,
        zone: tzinfo,
        limits: Limits,
    ) -> None:
        self._database = database
        self._index = index
        self._summariser = summariser
        self._extractive = extractive
        self._packs = packs
        self._clock = clock
        self._zone = zone
        self._limits = limits

    async def run(self, *, ask_model: bool = True) -> int:
        """Compresses every waiting segment, oldest first, and closed sessions to their end; returns how many."""
        await self._queue_closed()
        done = 0
        while segment := await rows.next_segment(self._database):
            done += await self._compress(segment, ask_model)
        return done

    async def _queue_closed(self) -> None:
        if not await turn_rows.closed_windows(self._database):
            return
        async with self._database.transaction() as tx:
            for session_id, window in await turn_rows.closed_windows(tx):
                await rows.queue(tx, session_id, closing(window, self._limits), self._clock())

    async def _compress(self, segment: rows.Segment, ask_model: bool) -> bool:
        """Whether the segment was compressed now; when its words changed meanwhile it goes on waiting."""
        turns = await self._turns(self._database, segment)
        spoken = [self._bounded(turn, segment.language) for turn in turns if turn.content.strip()]
        statements = await self.statements(segment.session_id, segment.first_turn, segment.last_turn, spoken)
        summary = await self._summary(spoken, segment.language, ask_model) if spoken else None
        signals = await self._signals(segment, spoken)
        texts = [said_by(statement) for statement in statements] + ([summary.rendered] if summary else [])
        prepared = await self._index.prepare(texts)
        async with self._database.transaction() as tx:
            # another process may have compressed it, or the user may have had some of its words forgotten
            if not await rows.is_waiting(tx, segment) or await self._turns(tx, segment) != turns:
                return False
            entries = [await stored(tx, said) for said in statements]
            if summary:
                entries.append(_summary_entry(await rows.insert_summary(tx, segment, summary, signals.dumps())))
            if spoken and self._limits.episode_trace_days > 0:
                await episode_rows.insert_trace(tx, segment, [without_secrets(turn) for turn in turns])
            await self._index.add(tx, entries, prepared)
            await rows.finish(tx, segment, self._clock())
        return True

    async def statements(self, session_id: int, first: int, last: int, turns: Sequence[Turn]) -> list[Statement]:
        """What the turns from one to another state, in sight of what was said around them and is stored already."""
        if not turns:
            return []
        said, lines = await self._index.said(words_in(turns, self._packs))
        before, after = await turn_rows.beside(self._database, session_id, first, last)
        if not before:  # it is compressed already
            kept = await rows.statements_before(self._database, session_id, first)
            before = " ".join(one.text for one in kept)
        setting = Setting(said=said, lines=lines, before=before, after=after)
        return await asyncio.to_thread(statements_of, turns, setting, self._packs, self._limits, self._zone)

    async def _signals(self, segment: rows.Segment, turns: Sequence[Turn]) -> Signals:
        """How a segment went (E1): what it takes to tell is gone with its words."""
        after = await episode_rows.turn_after(self._database, segment.session_id, segment.last_turn)
        turned = after is not None and after["role"] == "user" and bool(after["topic_shift"])
        then = after["content"][: self._limits.looked_at_characters] if after and turned else ""
        return await asyncio.to_thread(signals_of, turns, self._packs, then)

    async def _turns(self, reader: turn_rows.Reader, segment: rows.Segment) -> list[Turn]:
        return await turn_rows.between(reader, segment.session_id, segment.first_turn, segment.last_turn)

    def _bounded(self, turn: Turn, language: str) -> Turn:
        """What is longer than anybody says was pasted: its beginning and end stand for it."""
        content = both_ends(turn.content, self._limits.statements_characters)
        return replace(turn, language=language, content=content)

    async def _summary(self, turns: Sequence[Turn], language: str, ask_model: bool) -> Summary:
        notes = await self._asked_for(turns, language) if ask_model else None
        notes = notes or await self._extractive(turns, language)
        notes, line = render(notes, self._limits)
        return _summary_value(notes, line, language, turns)

    async def _asked_for(self, turns: Sequence[Turn], language: str) -> Notes | None:
        """The notes of the configured summariser; None when there is none, it fails, is late or answers nonsense."""
        if self._summariser is None:
            return None
        try:
            async with asyncio.timeout(self._limits.summariser_seconds):
                notes = await self._summariser(turns, language)
        except Exception:  # noqa: BLE001 (whatever it raises, compression goes on: S5)
            _LOG.warning("the summariser failed; the extractive summary takes its place", exc_info=True)
            return None
        if _are_notes(notes):
            return notes
        _LOG.warning("the summariser answered with something that is no summary; the extractive one takes its place")
        return None


async def stored(tx: Transaction, statement: Statement) -> Entry:
    """Stores a statement; one that says the same is said again, not stored twice (M3). What it is found by."""
    same = await rows.same_statement(tx, statement)
    row = await (rows.said_again(tx, same, statement) if same else rows.insert_statement(tx, statement))
    return _statement_entry(row, statement.context)


def without_secrets(turn: Turn) -> Turn:
    """A turn as it may be kept: credentials are not."""
    content = turn.content
    if find_secret(content):
        for sentence in sentences(content):
            content = content.replace(sentence, _CUT) if find_secret(sentence) else content
    return replace(turn, content=_CUT if find_secret(content) else content)


def _are_notes(notes: object) -> bool:
    """Whether an answer from outside has the shape of notes; prose for a topic is none (S1)."""
    if not isinstance(notes, Notes):
        return False
    texts: tuple[object, ...] = (notes.topic, notes.outcome)
    for part in (notes.discussed, notes.decisions, notes.open_questions):
        if not isinstance(part, tuple):
            return False
        texts += part
    return (
        all(isinstance(text, str) for text in texts)
        and bool(notes.topic.strip())
        and len(notes.topic.split()) <= _TOPIC_WORDS
    )


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


def _statement_entry(statement: Statement, context: Sequence[str]) -> Entry:
    return Entry(
        kind=statement.kind,
        ref=statement.id,
        text=said_by(statement),
        language=statement.language,
        at=statement.at,
        context=context,
    )


def _summary_entry(summary: Summary) -> Entry:
    return Entry(kind="summary", ref=summary.id, text=summary.rendered, language=summary.language, at=summary.at)
