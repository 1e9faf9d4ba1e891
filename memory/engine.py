"""Memory: the one door to everything remembered about one person."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from datetime import datetime, timedelta
from pathlib import Path
from typing import Self
from zoneinfo import ZoneInfo

from memory.accounts import Accounts
from memory.answers import Answers
from memory.calibrate import Calibrator
from memory.compress import Compressor
from memory.context import Contexts
from memory.conversation import Conversation
from memory.database import Database
from memory.embeddings import EmbeddedEmbedder
from memory.episode_life import EpisodeLife
from memory.episodes import Episodes
from memory.errors import DatabaseError
from memory.facts import Facts
from memory.fading import Fading
from memory.journal import Also, Journal
from memory.language import LanguagePack, detect, load_packs
from memory.limits import Limits
from memory.misspelt import respelt
from memory.ports import Clock, Embedder, TokenCounter, system_clock
from memory.providers import Providers
from memory.recall import Recall
from memory.revise import Revision
from memory.same_question import differs, form
from memory.signals import extract, own_words
from memory.static import StaticPrompt, shipped_prompt
from memory.stores import facts as fact_rows
from memory.stores import problems as problem_rows
from memory.stores import turns as turn_rows
from memory.stores.index import Index, Progress
from memory.summarise import ExtractiveSummariser, Summariser
from memory.times import moment
from memory.tokens import count_tokens
from memory.values import Context, Corrected, FactDraft, Problem, RecallHit, Role, Session, Turn


class Memory:
    """All that is remembered about one person, in one file."""

    def __init__(
        self,
        database: Database,
        *,
        clock: Clock,
        timezone: str,
        embedder: Embedder | None,
        summariser: Summariser | None,
        prompt: StaticPrompt,
        packs: Mapping[str, LanguagePack],
        limits: Limits,
        count: TokenCounter,
    ) -> None:
        embedded = EmbeddedEmbedder(packs, limits)
        wanted = embedder or embedded
        self.database = database
        self._clock = clock
        self.timezone = ZoneInfo(timezone)
        self.packs = packs
        self.limits = limits
        self.index = Index(database, wanted=wanted, embedders=[embedded], packs=packs, clock=clock, limits=limits)
        self.calibrator = Calibrator(database, self.index, packs, clock)
        index, calibrator = self.index, self.calibrator
        self.facts = Facts(
            database=database,
            index=index,
            calibrator=calibrator,
            packs=packs,
            clock=clock,
            limits=limits,
            count=count,
        )
        self.episodes = Episodes(
            database=database, index=index, calibrator=calibrator, packs=packs, clock=clock, limits=limits
        )
        self._recall = Recall(
            database=database,
            index=index,
            episodes=self.episodes,
            packs=packs,
            clock=clock,
            zone=self.timezone,
            limits=limits,
        )
        self._conversation = Conversation(
            database=database,
            index=index,
            calibrator=calibrator,
            facts=self.facts,
            packs=packs,
            clock=clock,
            zone=self.timezone,
            limits=limits,
            count=count,
        )
        self._contexts = Contexts(
            conversation=self._conversation,
            facts=self.facts,
            recall=self._recall,
            database=database,
            packs=packs,
            limits=limits,
            count=count,
            prompt=prompt,
        )
        self._providers = Providers(database=database, contexts=self._contexts, clock=clock, limits=limits)
        self.accounts = Accounts(
            database=database,
            providers=self._providers,
            confirmations=self.facts.confirmations,
            clock=clock,
            zone=self.timezone,
            limits=limits,
            prompt=prompt,
        )
        self.answers = Answers(
            database=database,
            facts=self.facts,
            same_question=self.same_question,
            packs=packs,
            clock=clock,
            zone=self.timezone,
            limits=limits,
        )
        self.journal = Journal(database=database, clock=clock)
        self._compressor = Compressor(
            database=database,
            index=index,
            summariser=summariser,
            extractive=ExtractiveSummariser(embedded, packs),
            packs=packs,
            clock=clock,
            zone=self.timezone,
            limits=limits,
        )
        self._revision = Revision(
            database=database,
            index=index,
            facts=self.facts,
            episodes=self.episodes,
            compressor=self._compressor,
            packs=packs,
            limits=limits,
            count=count,
        )
        self._episode_life = EpisodeLife(
            database=database,
            index=index,
            calibrator=calibrator,
            episodes=self.episodes,
            packs=packs,
            clock=clock,
            limits=limits,
        )
        self._fading = Fading(database=database, index=index, limits=limits)

    @classmethod
    @asynccontextmanager
    async def open(
        cls,
        path: Path | str,
        *,
        clock: Clock = system_clock,
        timezone: str = "UTC",
        embedder: Embedder | None = None,
        summariser: Summariser | None = None,
        prompt: StaticPrompt | None = None,
        packs: Mapping[str, LanguagePack] | None = None,
        limits: Limits | None = None,
        count: TokenCounter = count_tokens,
    ) -> AsyncIterator[Self]:
        """Opens a person's file; its folder is created. Nothing runs but what is called."""
        limits = limits or Limits()
        async with Database.open(path, clock=clock, limits=limits) as database:
            memory = cls(
                database,
                clock=clock,
                timezone=timezone,
                embedder=embedder,
                summariser=summariser,
                prompt=prompt or shipped_prompt(),
                packs=packs or load_packs(),
                limits=limits,
                count=count,
            )
            try:
                yield memory
            finally:
                with suppress(DatabaseError):  # numbers only: what was said is on the disk
                    await memory.accounts.flush()

    async def open_session(self, channel: str = "repl", chat: str = "me", language: str = "en") -> Session:
        """Starts a session with an empty window; the previous one of that chat is closed and will be compressed."""
        return await self._conversation.open_session(channel, chat, language)

    async def resume_session(
        self, channel: str, chat: str, language: str = "en", idle: timedelta | None = None
    ) -> Session:
        """The open session of a chat; a new one when there is none, or nothing was said for longer than `idle`."""
        return await self._conversation.resume_session(channel, chat, language, idle)

    async def add_turn(
        self, session_id: int, role: Role, content: str, speaker: str | None = None, *, also: Also | None = None
    ) -> Turn:
        """Stores a message; one of the user teaches its facts, and `also` is run, in the same transaction."""
        used = self._contexts.last_used(session_id) if role == "assistant" else ()
        return await self._conversation.add_turn(session_id, role, content, speaker, used, also)

    async def correct_turn(self, turn_id: int, content: str) -> Corrected:
        """A message of the user was edited: what was learnt from it is learnt from its new words."""
        await self.answers.drop_all()  # one may rest on the words that are gone
        return await self._revision.correct(turn_id, content)

    async def react(self, turn_id: int, value: int | None) -> None:
        """The user's thumb on the answer to a turn: 1 up, -1 down, None taken back (E1)."""
        await self.episodes.react(turn_id, value)
        if value is not None and value < 0:
            await self.answers.reject_answer_to(turn_id)

    async def last_turn(self, session_id: int) -> Turn | None:
        """The newest turn of a session that is still in its window."""
        window = await self._conversation.window(session_id)
        return window[-1] if window else None

    async def unanswered(self, channel: str, chat: str, idle: timedelta) -> Turn | None:
        """The last message of a chat, when it was not answered and is not older than that; its session is open."""
        return await self._conversation.unanswered(channel, chat, idle)

    async def session_language(self, session_id: int) -> str:
        """The language of a session so far."""
        return await self._conversation.language(session_id)

    async def assemble(
        self,
        session_id: int,
        recall_tokens: int | None = None,
        tools: Sequence[Mapping[str, object]] = (),
        *,
        addendum: str = "",
        pending: Sequence[Mapping[str, object]] = (),
    ) -> Context:
        """The request for the last user turn of a session; reads only, and twice gives identical bytes.

        `addendum` follows the static text; `pending` are messages that follow the last one: calls of tools and what
        they answered.
        """
        return await self._contexts.assemble(session_id, recall_tokens, tools, addendum, pending)

    async def note_problem(self, session_id: int, source: str, text: str) -> None:
        """Keeps what went wrong while a message was answered, in one line (L2)."""
        problem = Problem(at=self._clock(), source=source, text=" ".join(text.split()))
        async with self.database.transaction() as tx:
            await problem_rows.insert(tx, session_id, problem)

    async def last_problem(self, session_id: int, since: datetime) -> Problem | None:
        """What last went wrong in a session since then."""
        return await problem_rows.last(self.database, session_id, since)

    async def own_words_of(self, session_id: int) -> list[str]:
        """What the user said in a session in their own voice, as far as it is still there as it was said."""
        turns = await turn_rows.with_content(self.database)
        return [own_words(turn.content) for turn in turns if turn.session_id == session_id and turn.role == "user"]

    async def state(self) -> str:
        """Changes with every turn and every fact: what was read in one state holds in it."""
        return await fact_rows.state(self.database)

    async def run_pending(self, *, ask_model: bool = True) -> int:
        """Does all the work that is owed: compresses what left the window, makes episodes, lets things fade.

        Returns how many segments were compressed. Without `ask_model` no configured model is asked for a summary.
        """
        done = await self._compressor.run(ask_model=ask_model)
        await self.accounts.flush()
        await self.answers.expire()
        await self._fading.run()
        await self._episode_life.run()
        await self.index.keep_queries()
        return done

    def now(self) -> datetime:
        """The time by the clock of this memory, where the user lives."""
        return self._clock().astimezone(self.timezone)

    async def close_idle(self, idle: timedelta) -> int:
        """Closes sessions in which nothing was said for so long: `run_pending` makes episodes of them (E1)."""
        return await self._conversation.close_idle(idle)

    async def recall(
        self,
        query: str,
        k: int = 10,
        *,
        since: datetime | None = None,
        until: datetime | None = None,
        kinds: Sequence[str] | None = None,
        entity: str | None = None,
    ) -> list[RecallHit]:
        """The k best lines for a query; `since` is inclusive, `until` exclusive. Changes no ranking."""
        return await self._recall(query, k, since=since, until=until, kinds=kinds, entity=entity)

    async def last_mention(self, topic: str, language: str, before: int) -> RecallHit | None:
        """What the user last said about something, before a turn; None where not all its words are found."""
        return await self._recall.last_mention(topic, language, before)

    async def timeline(
        self, since: datetime | None = None, until: datetime | None = None, limit: int = 200
    ) -> list[RecallHit]:
        """What was said in a stretch of time and is still kept, oldest first; of more than `limit` the last ones."""
        return await self._recall.timeline(since, until, limit)

    def moment(self, text: str, *, end: bool = False) -> datetime:
        """The moment a person means by "2025-03-01", "30d" or "yesterday"; with `end` the end of that time."""
        return moment(text, self._clock(), self.timezone, self.packs, end=end)

    async def same_question(self, first: str, second: str) -> bool:
        """Whether an answer to one question answers the other; in doubt not."""
        if first.strip() == second.strip():
            return True
        first, second = sorted((first, second))  # whichever was asked before, the answer is the same
        language = detect(first, None, self.packs)
        if language != detect(second, language, self.packs):
            return False
        pack = self.packs[language]
        one, other = form(first, pack), form(second, pack)
        if differs(one, other):
            spelt = respelt(first, second, pack)
            if spelt is None or one.stressed != other.stressed:
                return False
            one, other = (form(text, pack) for text in spelt)
            if differs(one, other):
                return False
        return one.text == other.text or await self.similarity(first, second) > self.limits.same_similarity

    def extract_facts(self, text: str, language: str | None = None) -> list[FactDraft]:
        """The facts a message of the user states; nothing is stored."""
        return extract(text, language, self.packs, self.limits)

    async def use_model(self, model: str) -> None:
        """Requests are measured in the tokens of this model from now on (B6)."""
        await self._providers.use(model)

    async def calibrate_provider(self, model: str, estimated: int, used: int) -> None:
        """A model made `used` tokens of a request whose `provider_tokens` were `estimated`; kept for good (B6)."""
        await self._providers.observe(model, estimated, used)

    @property
    def provider_factor(self) -> float:
        """How many tokens of the model in use one of ours is, as far as is known (B6)."""
        return self._contexts.factor

    async def similarity(self, first: str, second: str) -> float:
        """How alike two texts are, calibrated: above 0.85 they say the same, below 0.4 they are unrelated."""
        return await self.calibrator.similarity(first, second)

    async def reembed(self, progress: Progress | None = None) -> int:
        """Makes all vectors anew after a change of the embedding model; goes on where it was cut off."""
        return await self.index.reembed(progress)
