"""Gathers what may go into a request, and has it assembled."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

from memory.assemble import Parts, assemble
from memory.choose import is_said
from memory.conversation import Conversation
from memory.database import Database
from memory.errors import Refused
from memory.facts import Facts
from memory.language import LanguagePack, detect
from memory.limits import Limits
from memory.marks import neutralise
from memory.ports import TokenCounter
from memory.recall import Recall
from memory.signals import is_question
from memory.static import StaticPrompt
from memory.stores import context as rows
from memory.tokens import both_ends
from memory.values import Context, LeftOut, RecallHit, Turn

_DASH_TOKENS, _DATE_TOKENS = 2, 7  # what a recalled line costs beside its text, and the first of a day


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
        self.factor = limits.provider_factor  # what the model in use needs, and at most: see memory.providers
        self.ceiling = limits.provider_factor

    async def assemble(
        self,
        session_id: int,
        recall_tokens: int | None,
        tools: Sequence[Mapping[str, object]],
        addendum: str,
        pending: Sequence[Mapping[str, object]],
    ) -> Context:
        """The request for the last user turn."""
        session = await self._conversation.session(session_id)
        turns = await self._conversation.window(session_id)
        place = max((place for place, turn in enumerate(turns) if turn.role == "user"), default=None)
        if place is None:
            raise Refused("There is nothing to answer: the session has no user turn.")
        message, window = turns[place], turns[:place]
        asked = both_ends(message.content, self._limits.looked_at_characters)
        language = detect(asked, await self._conversation.language(session_id), self._packs)
        recalled, left_out = await self._recalled(asked, language, recall_tokens)
        summaries = await rows.slots(self._database, session.channel, session.chat, self._limits.summary_slots)
        parts = Parts(
            static=self._prompt.text,
            message=message.content,
            summaries=tuple(summaries),
            window=tuple(window),
            recalled=tuple(recalled),
            tools=tuple(tools),
            addendum=addendum,
            pending=tuple(pending),
            recall_tokens=recall_tokens,
            left_out=tuple(left_out),
        )
        context = await self._with_facts(parts, message, asked, language)
        if len(context.messages) > 2:
            context = replace(context, left_out=(*context.left_out, *await self._spared(context, asked, language)))
        self._used[session_id] = tuple(
            (name, item.id)
            for name, report in context.sections.items()
            if name in ("summaries", "recalled", "facts")
            for item in report.items
        )
        return replace(context, messages=[*context.messages, *(dict(message) for message in pending)])

    def last_used(self, session_id: int) -> tuple[tuple[str, str], ...]:
        """The memory items of the last request of a session, as (section, id); told once, to the turn it led to."""
        return self._used.pop(session_id, ())

    async def _with_facts(self, parts: Parts, message: Turn, asked: str, language: str) -> Context:
        """The request with its facts: F9 goes by the turns really sent, and only the finished request tells them."""
        sent = [neutralise(turn.content) for turn in parts.window]
        context = await self._built(parts, message, asked, language, sent)
        for _ in parts.window:  # a fact more may cost a turn, never the other way round: this ends
            before, sent = sent, [text["content"] for text in context.messages[1:-1]]
            if sent == before:
                break
            context = await self._built(parts, message, asked, language, sent)
        return context

    async def _spared(self, context: Context, asked: str, language: str) -> list[LeftOut]:
        """The facts that stay out because they were said in the last turns sent, and what that saves (O1)."""
        noted = {item.id for item in context.sections["facts"].items} | {gone.id for gone in context.left_out}
        return [
            LeftOut(section="facts", id=one.fact.id, why="said in the last turns (F9)", tokens=one.tokens)
            for one in await self._facts.choose(asked, (), language)
            if one.fact.id not in noted
        ]

    async def _built(self, parts: Parts, message: Turn, asked: str, language: str, sent: Sequence[str]) -> Context:
        chosen = await self._facts.choose(asked, sent, language)
        repeated = [c.fact for c in chosen if c.fact.turn_id == message.id and not c.fact.pinned]
        notes = [LeftOut(section="facts", id=fact.id, why="the message itself says it (F9)") for fact in repeated]
        lines = [hit.text for hit in parts.recalled]  # among them an old fact stands in the order of time
        dated = [c.fact for c in chosen if c.since and is_said(c.fact, lines, self._packs)]
        notes += [LeftOut(section="facts", id=fact.id, why="recalled with its date (F9)") for fact in dated]
        parts = replace(
            parts,
            facts=tuple(c for c in chosen if c.fact not in repeated and c.fact not in dated),
            left_out=(*parts.left_out, *notes),
        )
        build = partial(
            assemble,
            parts,
            limits=self._limits,
            count=self._count,
            factor=self.factor,
            ceiling=self.ceiling,
            pack=self._packs[language],
        )
        # to count and cut a very long message takes a while, in which others are served
        return build() if asked is message.content else await asyncio.to_thread(build)

    async def _recalled(
        self, asked: str, language: str, recall_tokens: int | None
    ) -> tuple[list[RecallHit], list[LeftOut]]:
        """Lines that answer the message, when it asks something; as many as the evidence and the budget allow."""
        if recall_tokens == 0 or not is_question(asked, self._packs[language]):
            return [], []
        found, room = await self._recall.evidence(asked[:2000], language)
        room = room if recall_tokens is None else recall_tokens
        kept: list[RecallHit] = []
        left_out: list[LeftOut] = []
        used, days = 0, set[str]()
        for hit in found:
            day = f"{hit.at:%Y-%m-%d}"
            tokens = self._count(hit.text) + _DASH_TOKENS + (0 if day in days else _DATE_TOKENS)
            if used + tokens > room:
                left_out.append(LeftOut(section="recalled", id=hit.id, why="no room among what is recalled (B5)"))
                continue
            used += tokens
            days.add(day)
            kept.append(hit)
        return kept, left_out
