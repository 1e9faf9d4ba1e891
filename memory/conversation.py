"""The conversation: sessions, turns, and the window that slides over them (W, T), with what each turn teaches."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta, tzinfo

from memory.calibrate import Calibrator
from memory.database import Database
from memory.decay import state_of
from memory.errors import NotFound, Refused
from memory.facts import Facts
from memory.journal import Also
from memory.language import LanguagePack, chat_language, detect, fold, well_formed
from memory.learn import KIND
from memory.limits import Limits
from memory.outcomes import only_reacts
from memory.ports import Clock, TokenCounter, Vectors
from memory.signals import extract, is_question, own_words, without_quoted
from memory.similarity import Cuts
from memory.stores import context as context_rows
from memory.stores import facts as fact_rows
from memory.stores import turns as rows
from memory.stores.index import Index, stems
from memory.tokens import both_ends
from memory.topics import Said, domain_changed, is_explicit, shift_chance
from memory.values import Fact, Role, Session, Turn
from memory.window import asks, closing, leaving

_SPEAKER_CHARACTERS = 80  # a name; every statement carries it


@dataclass(frozen=True, slots=True, kw_only=True)
class Flow:
    """How a turn hangs together with what precedes it."""

    continuity: float | None
    shift: bool
    explicit: bool = False


class Conversation:
    """All that was said, as far as it is still there."""

    def __init__(
        self,
        *,
        database: Database,
        index: Index,
        calibrator: Calibrator,
        facts: Facts,
        packs: Mapping[str, LanguagePack],
        clock: Clock,
        zone: tzinfo,
        limits: Limits,
        count: TokenCounter,
    ) -> None:
        self._database = database
        self._index = index
        self._calibrator = calibrator
        self._facts = facts
        self._packs = packs
        self._clock = clock
        self._zone = zone
        self._limits = limits
        self._count = count
        self._windows: dict[int, tuple[int, list[Turn]]] = {}
        self._vectors: dict[int, Vectors] = {}
        self._vectors_model = ""

    async def open_session(self, channel: str, chat: str, language: str) -> Session:
        """A new session; what is left in the window of the previous one leaves it."""
        async with self._database.transaction() as tx:
            before = await rows.open_window(tx, channel, chat)
            if before:
                segments = closing(before[1], self._limits)
                await context_rows.queue(tx, before[0], segments, self._clock())
            return await rows.open_session(tx, channel, chat, language, self._clock())

    async def resume_session(self, channel: str, chat: str, language: str, idle: timedelta | None) -> Session:
        """The open session of a chat; a new one when there is none, or nothing was said for longer than `idle`."""
        found = await rows.open_window(self._database, channel, chat)
        if found is None:
            return await self.open_session(channel, chat, language)
        session = await self.session(found[0])
        last = found[1][-1].timestamp if found[1] else session.opened_at
        if idle is not None and self._clock() - last > idle:
            return await self.open_session(channel, chat, language)
        return session

    async def unanswered(self, channel: str, chat: str, idle: timedelta) -> Turn | None:
        """The last message of a chat, when it was not answered and is not older than that; its session is open."""
        found = await rows.open_window(self._database, channel, chat)
        last = found[1][-1] if found and found[1] else None
        return last if last and last.role == "user" and self._clock() - last.timestamp <= idle else None

    async def close_idle(self, idle: timedelta) -> int:
        """Closes sessions in which nothing was said for so long; returns how many."""
        now = self._clock()
        if not await rows.idle_sessions(self._database, now - idle):
            return 0
        async with self._database.transaction() as tx:
            return await rows.close_idle(tx, now - idle, now)

    async def add_turn(
        self,
        session_id: int,
        role: Role,
        content: str,
        speaker: str | None,
        used: Sequence[tuple[str, str]],
        also: Also | None = None,
    ) -> Turn:
        """Stores a message, learns from it, and lets turns leave the window; all in one transaction."""
        if role not in ("user", "assistant"):
            raise Refused(f"A turn is said by “user” or “assistant”, not by “{role}”.")
        language = await rows.session_language(self._database, session_id)
        if language is None:
            raise NotFound(f"There is no session {session_id}. Open one first.")
        content = well_formed(content)  # half a character cannot be stored
        said_by = " ".join((speaker or "").encode("utf-8", "replace").decode().split())[:_SPEAKER_CHARACTERS] or role
        looked_at = both_ends(content, self._limits.looked_at_characters)
        spoken = detect(looked_at, language, self._packs)
        said_in = chat_language(without_quoted(looked_at), language, self._packs) if role == "user" else language
        drafts = await asyncio.to_thread(extract, content, spoken, self._packs, self._limits) if role == "user" else []
        insisted = self._packs[spoken].insists(content)
        ready = await self._facts.learner.prepare([draft for draft in drafts if not draft.secret or insisted])
        asked = await self._asked_about(own_words(looked_at), spoken) if role == "user" and not drafts else []
        vector = await self._index.vector(content)
        flow = await self._flow(session_id, role, looked_at, vector, spoken)
        tokens = self._count(content) if looked_at is content else await asyncio.to_thread(self._count, content)
        now = self._clock()
        if ready:
            await self._facts.settle()
        async with self._database.transaction() as tx:
            turn = await rows.insert(
                tx,
                session_id,
                role=role,
                speaker=said_by,
                content=content,
                at=now,
                token_count=tokens,
                semantic_continuity=flow.continuity,
                topic_shift=flow.shift,
            )
            if role == "user":
                await rows.reopen(tx, session_id)
                await context_rows.use_day(tx, now.astimezone(self._zone).date().isoformat())
            if said_in != language:
                await rows.set_session_language(tx, session_id, said_in)
            window = await rows.window(tx, session_id)
            await context_rows.queue(tx, session_id, leaving(window, self._limits, flush=flow.explicit), now)
            await context_rows.record_used(tx, turn.id, used)
            learned = await self._facts.learner.write(tx, ready, turn.id, "learned")
            confirmed = tuple(replace(fact, last_confirmed_at=now) for fact in asked if fact.state != "stale")
            turn = replace(
                turn,
                language=spoken,
                chat_language=said_in,
                learned=learned.facts,
                confirmed=(*learned.confirmed, *confirmed),
                superseded=learned.superseded,
                unclear=learned.unclear,
                stale=tuple(fact for fact in asked if fact.state == "stale"),
                refused=tuple(draft.secret for draft in drafts if draft.secret and not insisted),
                reminder_asked=role == "user" and bool(self._packs[spoken].blocks["reminder"].search(fold(looked_at))),
            )
            if also is not None:
                await also(tx, turn)
        self._facts.confirmations.note(confirmed, now)
        if vector is not None:
            self._vectors[turn.id] = vector
        return turn

    async def window(self, session_id: int) -> list[Turn]:
        """The turns in the window, held in memory until anybody writes to the file."""
        version = int(await self._database.fetch_value("PRAGMA data_version"))
        held = self._windows.get(session_id)
        if held and held[0] == version:
            return held[1]
        turns = await rows.window(self._database, session_id)
        self._windows = {session_id: (version, turns), **dict(list(self._windows.items())[-31:])}
        self._windows[session_id] = (version, turns)
        return turns

    async def session(self, session_id: int) -> Session:
        """One session, or an error."""
        session = await rows.session(self._database, session_id)
        if session is None:
            raise NotFound(f"There is no session {session_id}. Open one first.")
        return session

    async def language(self, session_id: int) -> str:
        """The language of a session so far."""
        return await rows.session_language(self._database, session_id) or "en"

    async def _flow(self, session_id: int, role: Role, content: str, vector: Vectors | None, language: str) -> Flow:
        """Continuity with what precedes and whether the topic changes; of a first turn neither."""
        window = await self.window(session_id)
        if not window:
            return Flow(continuity=None, shift=False)
        pack = self._packs[language]
        explicit = role == "user" and is_explicit(content, pack)
        scale = await self._calibrator.current()
        segment = await self._segment(window, scale.model) if scale else []
        if vector is None or scale is None or not segment:  # without a model only words tell
            return Flow(continuity=None, shift=explicit, explicit=explicit)
        cuts = scale.cuts.get(language, scale.cuts["*"])
        continuity = max(cuts.scale(float(said.vector @ vector)) for said in segment)
        reacts = role == "user" and only_reacts(content, pack)  # "that worked": what it is about was said before
        new = Said(text=content, vector=vector)
        shift = explicit or (not reacts and self._shifts(new, segment, window, pack, cuts))
        return Flow(continuity=round(continuity, 4), shift=shift, explicit=explicit)

    def _shifts(
        self, new: Said, segment: Sequence[Said], window: Sequence[Turn], pack: LanguagePack, cuts: Cuts
    ) -> bool:
        chance = shift_chance(new, segment, pack, cuts)
        if asks(window[-1]) and chance < self._limits.topic_shift_chance_of_reply:
            return False  # a reply to a question
        return chance > self._limits.topic_shift_chance or domain_changed(new.text, segment, pack, self._limits)

    async def _segment(self, window: Sequence[Turn], model: str) -> list[Said]:
        """The running segment: the turns since the topic last changed, as far as they are in the window."""
        start = max((place for place, turn in enumerate(window) if turn.topic_shift), default=0)
        if self._vectors_model != model:  # vectors of different models are never compared
            self._vectors, self._vectors_model = {}, model
        turns = window[start:]
        for turn in turns:
            if turn.id not in self._vectors and (vector := await self._index.vector(turn.content)) is not None:
                self._vectors[turn.id] = vector
        if len(self._vectors) > self._limits.turn_embeddings_held:
            known = {turn.id for turn in window}
            self._vectors = {ref: vector for ref, vector in self._vectors.items() if ref in known}
        return [
            Said(text=both_ends(turn.content, self._limits.looked_at_characters), vector=self._vectors[turn.id])
            for turn in turns
            if turn.id in self._vectors
        ]

    async def _asked_about(self, content: str, language: str) -> list[Fact]:
        """The facts a question is about: most of its words are theirs."""
        pack = self._packs[language]
        if not is_question(content, pack):
            return []
        asked = _asked_words(content, pack)
        hits = await self._index.by_words(content, language, [KIND], self._limits.fact_candidates)
        found = []
        for fact in await fact_rows.with_ids(self._database, [hit.ref for hit in hits]):
            words = stems(fact.fact, self._packs.get(fact.language))
            if asked and sum(_among(word, words) for word in asked) / len(asked) >= self._limits.fact_asked_words:
                found.append(replace(fact, state=state_of(fact, self._clock(), self._limits)))
        return found


def _asked_words(text: str, pack: LanguagePack) -> set[str]:
    """The stems of what a question is about, without the words that make it a question."""
    skipped = pack.words["question_words"] | pack.words["time_words"] | pack.words["filler"]
    if pack.script != "han":
        return set(stems(text, pack, skipped))
    folded = fold(text)  # words are not set apart here: they are cut out
    for word in sorted(skipped | pack.words["function_words"], key=len, reverse=True):
        folded = folded.replace(word, " ")
    return set(stems(folded, pack))


def _among(stem: str, others: Sequence[str]) -> bool:
    """Whether a stem is there; without accents the forms of one verb end a letter apart (decidí, decidimos)."""
    return any(stem == other or (min(len(stem), len(other)) > 4 and _begins(stem, other)) for other in others)


def _begins(stem: str, other: str) -> bool:
    return stem.startswith(other) or other.startswith(stem)
