"""Gathers what may go into a request, and has it assembled."""

from collections.abc import Mapping, Sequence

from memory.assemble import Parts, assemble
from memory.conversation import Conversation
from memory.database import Database
from memory.errors import Refused
from memory.facts import Facts
from memory.language import LanguagePack, detect
from memory.limits import Limits
from memory.ports import TokenCounter
from memory.recall import Recall
from memory.signals import is_question
from memory.static import StaticPrompt
from memory.stores import context as rows
from memory.values import Context, RecallHit, Turn


class Contexts:
    """Requests, one after the other."""

    def __init__(
        self,
        *,
        conversation: Conversation,
        facts: Facts,
        recall: Recall,
        database: Database,
        packs: Mapping[str, LanguagePack],
        limits: Limits,
        count: TokenCounter,
        prompt: StaticPrompt,
    ) -> None:
        self._conversation = conversation
        self._facts = facts
        self._recall = recall
        self._database = database
        self._packs = packs
        self._limits = limits
        self._count = count
        self._prompt = prompt
        self._used: dict[int, tuple[tuple[str, str], ...]] = {}
        self.factor = limits.provider_factor

    async def assemble(
        self, session_id: int, recall_tokens: int | None, tools: Sequence[Mapping[str, object]]
    ) -> Context:
        """The request for the last user turn."""
        session = await self._conversation.session(session_id)
        turns = await self._conversation.window(session_id)
        place = max((place for place, turn in enumerate(turns) if turn.role == "user"), default=None)
        if place is None:
            raise Refused("There is nothing to answer: the session has no user turn.")
        message, window = turns[place], turns[:place]
        language = detect(message.content, await self._conversation.language(session_id), self._packs)
        facts = await self._facts.choose(message.content, [turn.content for turn in window], language)
        recalled = await self._recalled(message, window, language, recall_tokens)
        summaries = await rows.slots(self._database, session.channel, session.chat, self._limits.summary_slots)
        parts = Parts(
            static=self._prompt.text,
            message=message.content,
            summaries=tuple(summaries),
            window=tuple(window),
            recalled=tuple(recalled),
            facts=tuple(facts),
            tools=tuple(tools),
        )
        pack = self._packs[language]
        context = assemble(parts, limits=self._limits, count=self._count, factor=self.factor, pack=pack)
        self._used[session_id] = tuple(
            (name, item.id)
            for name, report in context.sections.items()
            if name in ("summaries", "recalled", "facts")
            for item in report.items
        )
        return context

    def last_used(self, session_id: int) -> tuple[tuple[str, str], ...]:
        """The memory items of the last request of a session, as (section, id)."""
        return self._used.get(session_id, ())

    async def _recalled(
        self, message: Turn, window: Sequence[Turn], language: str, recall_tokens: int | None
    ) -> list[RecallHit]:
        """Lines that answer the message, when it asks something; as many as the evidence and the budget allow."""
        room = self._limits.recall_tokens if recall_tokens is None else recall_tokens
        if room <= 0 or not is_question(message.content, self._packs[language]):
            return []
        if recall_tokens is None:
            room = min(room, self._limits.recall_ordinary_tokens)
        kinds = ("world", "experience", "opinion", "observation")
        hits = await self._recall(message.content[:2000], self._limits.recall_candidates, kinds=kinds)
        said = " ".join(turn.content for turn in window)
        kept: list[RecallHit] = []
        used = 0
        for hit in hits:
            tokens = self._count(hit.text) + 8  # its dash, and a date it may be the first of
            if used + tokens > room or tokens > self._limits.item_tokens + 8:
                continue
            if hit.text in said:
                continue
            used += tokens
            kept.append(hit)
        return kept
