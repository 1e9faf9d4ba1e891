"""One message, top to bottom: command, receive, known, assemble, ask, keep. Each stage is timed."""

import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial

from assistant.accounting import account, account_unasked, check_ceiling
from assistant.commands import answer_command, is_command
from assistant.errors import ModelError
from assistant.guard import guarded
from assistant.known import Known, find_known
from assistant.private import private_context
from assistant.reply import Reply
from assistant.said import Said, due_notice, from_json, notices, to_json
from assistant.talk import Talk
from assistant.tool_use import Offered, last_problem, offered, use_tools
from memory.database import Transaction
from memory.static import shipped_prompt
from memory.values import Context, Turn

_MOST_RECOUNTS = 3


async def take_turn(talk: Talk, text: str) -> AsyncIterator[Said]:
    """Answers one message; what the user said is stored before anything else can fail."""
    if is_command(text):
        async for said in run_command(talk, text):
            yield said
        return
    with timed(talk, "receive"):
        await receive(talk, text)
    for notice in notices(talk, talk.turn) if talk.turn else ():
        yield notice
    if talk.entry and talk.facts_a_page and (due := await due_notice(talk)):
        yield due
    async for said in answer(talk):
        yield said


async def resume_turn(talk: Talk) -> AsyncIterator[Said]:
    """Goes on with a message that was stored when the process ended: its notices, then the answer."""
    for notice in from_json(talk.entry.said) if talk.entry else ():
        yield notice
    async for said in answer(talk):
        yield said


async def answer(talk: Talk, *, anew: bool = False) -> AsyncIterator[Said]:
    """Answers the last message: from what is known, unless it is asked `anew`, or else by the model."""
    with timed(talk, "known"):
        known = None if anew or talk.turn is None else await find_known(talk, talk.turn)
    async for said in ask_model(talk, again=anew) if known is None else give_known(talk, known):
        yield said


async def give_known(talk: Talk, known: Known) -> AsyncIterator[Said]:
    """Says what needs no model, and keeps it as a reply; our notice before it is kept nowhere."""
    talk.context, talk.reply, talk.unasked = None, None, True
    if known.notice:
        yield Said(text=known.notice, kind="notice")
    yield Said(text=known.text, kind="piece")
    with timed(talk, "keep"):
        await keep_known(talk, known)
    await account_unasked(talk, known.kind)


async def ask_model(talk: Talk, *, again: bool = False) -> AsyncIterator[Said]:
    """Asks the model about the last message, makes the calls of tools it wants, and asks again with their results."""
    talk.pending = await last_problem(talk) if again else []
    for left in range(talk.model.tools.rounds, -1, -1):
        async for said in ask_once(talk, tools=left > 0 and talk.private is None):
            yield said
        if talk.reply is None or not talk.reply.tool_calls or not (talk.context and talk.context.tools):
            return
        with timed(talk, "tools"):
            told = await use_tools(talk, talk.reply.tool_calls)
        for notice in told:
            yield notice


async def ask_once(talk: Talk, *, tools: bool) -> AsyncIterator[Said]:
    """One request: assemble, ask, keep, count."""
    talk.reply, talk.saved, talk.unasked = None, {}, False
    on_offer = offered(talk) if tools else Offered()
    with timed(talk, "assemble"):
        context = await assemble(talk, on_offer)
    if context.message_cut and not talk.pending:
        yield Said(text=talk.say("message_cut"), kind="notice")
    try:
        await check_ceiling(talk)
        with timed(talk, "ask"):
            async for said in ask(talk, context):
                yield said
    except ModelError as error:
        yield Said(text=str(error), kind="error")
        return
    finally:
        with timed(talk, "keep"):
            await keep(talk, context)
        if talk.reply is not None:
            await account(talk, context, talk.reply)


async def run_command(talk: Talk, text: str) -> AsyncIterator[Said]:
    """A /command is answered here; only /retry reaches the model."""
    result = await answer_command(talk, text)
    if result.text:
        yield Said(text=result.text, kind="command", verbatim=result.verbatim, offers=result.offers)
    if result.ask_again:
        async for said in answer(talk, anew=True):
            yield said


async def receive(talk: Talk, text: str) -> None:
    """Stores the message and what it teaches, durably; in private nothing is stored."""
    talk.reply = talk.forgetting = talk.insisting = None
    if talk.private is not None:
        talk.private.append({"role": "user", "content": text})
        talk.turn = None
        return
    also = partial(_taken, talk)
    talk.turn = await talk.memory.add_turn(talk.session.id, "user", text, talk.speaker, also=also)


async def _taken(talk: Talk, tx: Transaction, turn: Turn) -> None:
    """With the message: our words follow its language, and the journal keeps the notices it gives rise to."""
    if talk.follows:
        talk.language = turn.chat_language
    if talk.entry:
        await talk.memory.journal.take(tx, talk.entry, turn, to_json(notices(talk, turn)))


async def assemble(talk: Talk, on_offer: Offered) -> Context:
    """The request for the message, under the budget: also in the model's own tokens, where it can be asked (B6)."""
    context = await _assembled(talk, on_offer)
    for _ in range(_MOST_RECOUNTS):
        counted = await talk.model.count_tokens(context.messages)
        if counted is None or counted < talk.memory.limits.request_tokens:
            break
        await talk.memory.calibrate_provider(talk.model.name, context.provider_tokens, counted)
        context = await _assembled(talk, on_offer)
    talk.context = context
    return context


async def _assembled(talk: Talk, on_offer: Offered) -> Context:
    if talk.private is not None:
        return private_context(talk)
    return await talk.memory.assemble(
        talk.session.id, tools=on_offer.schemas, addendum=on_offer.addendum, pending=talk.pending
    )


async def ask(talk: Talk, context: Context) -> AsyncIterator[Said]:
    """The model's reply, piece by piece; what came before an interruption counts, unless it is asked for again."""
    pieces: list[str] = []
    try:
        stream = talk.model.stream(context.messages, tools=context.tools)
        sentence, model = talk.say("withheld"), talk.model.name
        async for part in guarded(stream, shipped_prompt().text, sentence=sentence, model=model):
            if isinstance(part, Reply):
                talk.reply = part
            else:
                pieces.append(part)
                yield Said(text=part, kind="piece")
    finally:
        if talk.reply is None and talk.entry is None and "".join(pieces).strip():
            talk.reply = Reply(text="".join(pieces), finish_reason="stopped", model=talk.model.name)
    calls_tools = talk.reply is not None and bool(talk.reply.tool_calls and context.tools)
    if talk.reply and not talk.reply.text.strip() and not calls_tools:  # called what it was not offered
        yield Said(text=talk.say("no_words"), kind="error")
    for note in talk.reply.notes if talk.reply else ():
        yield Said(text=note, kind="notice")
    if talk.reply and talk.reply.finish_reason in ("length", "cut"):
        yield Said(text=talk.say("cut_off"), kind="notice")


async def keep(talk: Talk, context: Context) -> None:
    """Stores the reply and what the provider counted; a reply that never came leaves the message for /retry."""
    reply = talk.reply
    if reply is None or not reply.text.strip() or (reply.tool_calls and context.tools):
        return
    if talk.private is not None:
        talk.private.append({"role": "assistant", "content": reply.text})
        return
    also = partial(_answered, talk)
    stored = await talk.memory.add_turn(talk.session.id, "assistant", reply.text, also=also)
    talk.answer_turn = stored.id
    if talk.turn is not None and reply.finish_reason == "stop" and not talk.pending:  # what tools say may change (C3)
        await talk.memory.answers.keep(talk.turn, stored)
    if reply.prompt_tokens:
        await talk.memory.calibrate_provider(reply.model, context.provider_tokens, reply.prompt_tokens)


async def keep_known(talk: Talk, known: Known) -> None:
    """Stores an answer that needed no model."""
    also = partial(_answered, talk)
    stored = await talk.memory.add_turn(talk.session.id, "assistant", known.text, also=also)
    talk.answer_turn = stored.id
    if known.answer is not None:
        await talk.memory.answers.served(known.answer, stored)


async def _answered(talk: Talk, tx: Transaction, _: Turn) -> None:
    """With the reply: the journal keeps all that was said in answer, until it is sent."""
    if talk.entry:
        await talk.memory.journal.keep_answer(tx, talk.entry, to_json(talk.said))
        talk.entry = replace(talk.entry, answered=True)


@contextmanager
def timed(talk: Talk, stage: str) -> Iterator[None]:
    """How long a stage took, for /stats."""
    start = time.perf_counter()
    try:
        yield
    finally:
        talk.stages[stage] = time.perf_counter() - start
