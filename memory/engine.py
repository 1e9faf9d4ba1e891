"""Memory: the one door to everything remembered about one person."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Self
from zoneinfo import ZoneInfo

from memory.calibrate import Calibrator
from memory.database import Database
from memory.decay import state_of
from memory.embeddings import EmbeddedEmbedder
from memory.errors import NotFound, Refused
from memory.facts import Facts
from memory.language import LanguagePack, detect, fold, load_packs
from memory.limits import Limits
from memory.ports import Clock, Embedder, TokenCounter, system_clock
from memory.signals import extract, is_question
from memory.stores import facts as fact_rows
from memory.stores import turns as rows
from memory.stores.index import Index, Progress, stems
from memory.tokens import count_tokens
from memory.values import Fact, FactDraft, Role, Session, Turn


class Memory:
    """All that is remembered about one person, in one file."""

    def __init__(
        self,
        database: Database,
        *,
        clock: Clock,
        timezone: str,
        embedder: Embedder | None,
        packs: Mapping[str, LanguagePack],
        limits: Limits,
        count: TokenCounter,
    ) -> None:
        embedded = EmbeddedEmbedder(packs, limits)
        self.database = database
        self.timezone = ZoneInfo(timezone)
        self.packs = packs
        self._clock = clock
        self._limits = limits
        self._count = count
        self.index = Index(
            database, wanted=embedder or embedded, embedders=[embedded], packs=packs, clock=clock, limits=limits
        )
        self.calibrator = Calibrator(database, self.index, packs, clock)
        self.facts = Facts(
            database=database,
            index=self.index,
            calibrator=self.calibrator,
            packs=packs,
            clock=clock,
            limits=limits,
            count=count,
        )

    @classmethod
    @asynccontextmanager
    async def open(
        cls,
        path: Path | str,
        *,
        clock: Clock = system_clock,
        timezone: str = "UTC",
        embedder: Embedder | None = None,
        packs: Mapping[str, LanguagePack] | None = None,
        limits: Limits | None = None,
        count: TokenCounter = count_tokens,
    ) -> AsyncIterator[Self]:
        """Opens a person's file; its folder is created. Nothing runs but what is called."""
        limits = limits or Limits()
        async with Database.open(path, clock=clock, limits=limits) as database:
            yield cls(
                database,
                clock=clock,
                timezone=timezone,
                embedder=embedder,
                packs=packs or load_packs(),
                limits=limits,
                count=count,
            )

    async def open_session(self, channel: str = "repl", chat: str = "me", language: str = "en") -> Session:
        """Starts a session with an empty window; the previous one of that chat is closed."""
        async with self.database.transaction() as tx:
            return await rows.open_session(tx, channel, chat, language, self._clock())

    async def add_turn(self, session_id: int, role: Role, content: str, speaker: str | None = None) -> Turn:
        """Stores a message; one of the user teaches its facts in the same transaction."""
        if role not in ("user", "assistant"):
            raise Refused(f"A turn is said by “user” or “assistant”, not by “{role}”.")
        language = await rows.session_language(self.database, session_id)
        if language is None:
            raise NotFound(f"There is no session {session_id}.")
        spoken = detect(content, language, self.packs)
        drafts = extract(content, spoken, self.packs) if role == "user" else []
        asked = await self._asked_about(content, spoken) if role == "user" and not drafts else []
        insisted = self.packs[spoken].insists(content)
        kept = [draft for draft in drafts if not draft.secret or insisted]
        ready = await self.facts.learner.prepare(kept)
        tokens = self._count(content)
        async with self.database.transaction() as tx:
            turn = await rows.insert(tx, session_id, role, speaker or role, content, self._clock(), tokens)
            if role == "user" and spoken != language:
                await rows.set_session_language(tx, session_id, spoken)
            learned = await self.facts.learner.write(tx, ready, turn.id, "learned")
            fresh = [fact.id for fact in asked if fact.state != "stale"]
            confirmed = await self.facts.learner.confirm_asked(tx, fresh)
        return replace(
            turn,
            language=spoken,
            learned=learned.facts,
            confirmed=(*learned.confirmed, *confirmed),
            superseded=learned.superseded,
            unclear=learned.unclear,
            stale=tuple(fact for fact in asked if fact.state == "stale"),
            refused=tuple(draft.secret for draft in drafts if draft.secret and not insisted),
            reminder_asked=role == "user" and bool(self.packs[spoken].blocks["reminder"].search(fold(content))),
        )

    async def _asked_about(self, content: str, language: str) -> list[Fact]:
        """The facts a question is about: most of its words are theirs."""
        pack = self.packs[language]
        if not is_question(content, pack):
            return []
        skipped = pack.words["question_words"] | pack.words["time_words"] | pack.words["filler"]
        asked = {stem for stem in stems(content, pack) if stem not in skipped}
        hits = await self.index.by_words(content, language, ["fact"], self._limits.fact_candidates)
        found = []
        for fact in await fact_rows.with_ids(self.database, [hit.ref for hit in hits]):
            words = set(stems(fact.fact, self.packs.get(fact.language)))
            if asked and len(asked & words) / len(asked) >= self._limits.fact_asked_words:
                found.append(replace(fact, state=state_of(fact, self._clock(), self._limits)))
        return found

    def extract_facts(self, text: str, language: str | None = None) -> list[FactDraft]:
        """The facts a message of the user states; nothing is stored."""
        return extract(text, language, self.packs)

    async def similarity(self, first: str, second: str) -> float:
        """How alike two texts are, calibrated: above 0.85 they say the same, below 0.4 they are unrelated."""
        return await self.calibrator.similarity(first, second)

    async def reembed(self, progress: Progress | None = None) -> int:
        """Makes all vectors anew after a change of the embedding model; goes on where it was cut off."""
        return await self.index.reembed(progress)
