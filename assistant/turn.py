"""One message, top to bottom: command, receive, assemble, ask, keep. Each stage is timed."""

import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal

from assistant.commands import answer_command, is_command
from assistant.errors import ModelError
from assistant.private import private_context
from assistant.reply import Reply
from assistant.talk import Talk
from memory.values import Context, Turn

_MOST_RECOUNTS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """What goes back to the user: a piece of the model's reply, or a sentence of our own."""

    text: str
    kind: Literal["piece", "notice", "command", "error"]
    saved: bool = False  # a notice that something is really stored
    verbatim: bool = False  # what a command says, to be copied: no Markdown


async def take_turn(talk: Talk, text: str) -> AsyncIterator[Said]:
    """Answers one message; what the user said is stored before anything else can fail."""
    if is_command(text):
        async for said in run_command(talk, text):
            yield said
        return
    with timed(talk, "receive"):
        await receive(talk, text)
    for notice in notices(talk):
        yield notice
    async for said in answer(talk):
        yield said


async def answer(talk: Talk) -> AsyncIterator[Said]:
    """Asks the model about the last message and keeps what it says."""
    with timed(talk, "assemble"):
        context = await assemble(talk)
    if context.message_cut:
        yield Said(text=talk.say("message_cut"), kind="notice")
    try:
        with timed(talk, "ask"):
            async for said in ask(talk, context):
                yield said
    except ModelError as error:
        yield Said(text=str(error), kind="error")
        return
    finally:
        with timed(talk, "keep"):
            await keep(talk, context)


async def run_command(talk: Talk, text: str) -> AsyncIterator[Said]:
    """A /command is answered here; only /retry reaches the model."""
    result = await answer_command(talk, text)
    if result.text:
        yield Said(text=result.text, kind="command", verbatim=result.verbatim)
    if result.ask_again:
        async for said in answer(talk):
            yield said


async def receive(talk: Talk, text: str) -> None:
    """Stores the message and what it teaches, durably; in private nothing is stored."""
    talk.reply = None
    if talk.private is not None:
        talk.private.append({"role": "user", "content": text})
        talk.turn = None
        return
    talk.turn = await talk.memory.add_turn(talk.session.id, "user", text, talk.speaker)
    if talk.follows:
        talk.language = talk.turn.language


def notices(talk: Talk) -> Iterator[Said]:
    """What the user has to know of what was just stored: saved, replaced, refused, unclear."""
    turn: Turn | None = talk.turn
    if turn is None:
        return
    replaced = {fact.superseded_by: fact for fact in turn.superseded}
    for fact in turn.learned:
        before = replaced.get(fact.id)
        key, values = ("updated", {"before": before.fact}) if before else ("saved_undo", {})
        yield Said(text=talk.say(key, id=fact.id, fact=fact.fact, **values), kind="notice", saved=True)
    for new, old in turn.unclear:
        yield Said(text=talk.say("unclear", fact=new.fact, before=old.fact), kind="notice")
    for fact in turn.stale:
        yield Said(text=talk.say("stale", fact=fact.fact, id=fact.id), kind="notice")
    for kind in turn.refused:
        yield Said(text=talk.say("not_saved_secret", kind=kind), kind="notice")
    if turn.reminder_asked:
        yield Said(text=talk.say("reminders_not_there"), kind="notice")


async def assemble(talk: Talk) -> Context:
    """The request for the message, under the budget: also in the model's own tokens, where it can be asked (B6)."""
    context = await _assembled(talk)
    for _ in range(_MOST_RECOUNTS):
        counted = await talk.model.count_tokens(context.messages)
        if counted is None or counted < talk.memory.limits.request_tokens:
            break
        await talk.memory.calibrate_provider(talk.model.name, context.provider_tokens, counted)
        context = await _assembled(talk)
    talk.context = context
    return context


async def _assembled(talk: Talk) -> Context:
    return private_context(talk) if talk.private is not None else await talk.memory.assemble(talk.session.id)


async def ask(talk: Talk, context: Context) -> AsyncIterator[Said]:
    """The model's reply, piece by piece; what came before an interruption counts."""
    pieces: list[str] = []
    try:
        async for part in talk.model.stream(context.messages):
            if isinstance(part, Reply):
                talk.reply = part
            else:
                pieces.append(part)
                yield Said(text=part, kind="piece")
    finally:
        if talk.reply is None and "".join(pieces).strip():
            talk.reply = Reply(text="".join(pieces), finish_reason="stopped", model=talk.model.name)
    for note in talk.reply.notes if talk.reply else ():
        yield Said(text=note, kind="notice")
    if talk.reply and talk.reply.finish_reason in ("length", "cut"):
        yield Said(text=talk.say("cut_off"), kind="notice")


async def keep(talk: Talk, context: Context) -> None:
    """Stores the reply and what the provider counted; a reply that never came leaves the message for /retry."""
    reply = talk.reply
    if reply is None or not reply.text.strip():
        return
    if talk.private is not None:
        talk.private.append({"role": "assistant", "content": reply.text})
        return
    stored = await talk.memory.add_turn(talk.session.id, "assistant", reply.text)
    talk.answer_turn = stored.id
    if reply.prompt_tokens:
        await talk.memory.calibrate_provider(reply.model, context.provider_tokens, reply.prompt_tokens)


@contextmanager
def timed(talk: Talk, stage: str) -> Iterator[None]:
    """How long a stage took, for /stats."""
    start = time.perf_counter()
    try:
        yield
    finally:
        talk.stages[stage] = time.perf_counter() - start
