"""The /commands of a conversation: every channel has the same ones, with the same handlers and texts."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from assistant import offers
from assistant.offers import Offer
from assistant.people import copies_beside
from assistant.talk import Talk
from assistant.traces import scrub
from memory.copies import forget_in_copy
from memory.errors import EngineError
from memory.values import SECTIONS


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a command says, and what the channel has to do beside."""

    text: str = ""
    ask_again: bool = False
    leave: bool = False
    offers: tuple[Offer, ...] = ()


Handler = Callable[[Talk, str], Awaitable[Answer]]


def is_command(text: str) -> bool:
    """Whether a message is a command; a path like /etc/hosts is not."""
    first = text.strip().split(maxsplit=1)[0] if text.strip() else ""
    return first.startswith("/") and first[1:].split("@")[0].isalpha()


def command_name(text: str) -> str:
    """The command a message is, by its first name; "" for a message that is none."""
    if not is_command(text):
        return ""
    name = text.split(maxsplit=1)[0][1:].split("@", maxsplit=1)[0].lower()
    return ALIASES.get(name, name)


async def answer_command(talk: Talk, text: str) -> Answer:
    """Runs a command; what the engine refuses becomes a sentence."""
    argument = (*text.split(maxsplit=1), "")[1]
    handler = HANDLERS.get(command_name(text))
    if handler is not _forget:
        talk.forgetting = None  # the second word has to follow the first
    if handler is None:
        return Answer(text=talk.say("unknown_command", command=f"/{command_name(text)}"))
    try:
        return await handler(talk, argument.strip())
    except EngineError as error:
        return Answer(text=str(error))


async def _help(talk: Talk, _: str) -> Answer:
    lines = [
        f"- `/{name}` {talk.pack.commands.get(name) or talk.memory.packs['en'].commands[name]}" for name in HANDLERS
    ]
    return Answer(text="\n".join(lines))


async def _start(talk: Talk, _: str) -> Answer:
    return Answer(text=f"{talk.say('welcome')}\n\n{(await _help(talk, '')).text}")


async def _facts(talk: Talk, text: str) -> Answer:
    text, page = offers.page_of(text)
    facts = await talk.memory.facts.list("active", text=text or None)
    if not facts:
        return Answer(text=talk.say("no_facts_like", text=text) if text else talk.say("no_facts"))
    shown, where, offered = offers.paged(talk, facts, text, page or 1)
    lines = [
        f"- `{fact.id}` {fact.fact}{' 📌' if fact.pinned else ''} ({fact.last_confirmed_at:%Y-%m-%d})" for fact in shown
    ]
    return Answer(text="\n".join([*lines, *([f"\n{where}"] if where else [])]), offers=offered)


async def _keep(talk: Talk, fact_id: str) -> Answer:
    fact_id, page = offers.page_of(fact_id)
    if not fact_id:
        return _needs_text(talk, "keep")
    fact = await talk.memory.facts.confirm(fact_id)
    return Answer(text=talk.say("confirmed", fact=fact.fact), offers=offers.back(talk, page))


async def _replace(talk: Talk, ids: str) -> Answer:
    old, _, new = ids.partition(" ")
    if not new.strip():
        return _needs_text(talk, "replace")
    fact = await talk.memory.facts.supersede(old, new.strip())
    return Answer(text=talk.say("confirmed", fact=fact.fact))


async def _remember(talk: Talk, text: str) -> Answer:
    if not text:
        return _needs_text(talk, "remember")
    fact = await talk.memory.facts.add(text, language=talk.language)
    return Answer(text=talk.say("saved_undo", id=fact.id, fact=fact.fact), offers=offers.undo(talk, fact.id))


async def _forget(talk: Talk, fact_id: str) -> Answer:
    fact_id, page = offers.page_of(fact_id)
    if not fact_id:
        return _needs_text(talk, "forget")
    fact = await talk.memory.facts.get(fact_id)
    if talk.forgetting != fact.id:
        preview = await talk.memory.facts.preview_forget(fact.id)
        talk.forgetting = fact.id
        gone = [f"“{known.fact}”" for known in preview.facts] + [f"“{line.text}”" for line in preview.statements]
        offered = offers.really_forget(talk, fact.id, page)
        return Answer(text=talk.say("forget_preview", id=fact.id, facts="; ".join(gone)), offers=offered)
    talk.forgetting = None
    done = await talk.memory.facts.forget(fact.id)
    texts = [text for known in done.facts for text in (known.fact, known.quote)]
    for copy in copies_beside(talk.memory.database.path):
        await forget_in_copy(copy, texts, limits=talk.memory.limits)
    if talk.data_dir is not None:
        scrub(talk.data_dir, texts)
    talk.context = talk.reply = talk.turn = None  # the last request held it too
    return Answer(text=talk.say("forgotten", id=fact.id), offers=offers.back(talk, page))


async def _pin(talk: Talk, fact_id: str) -> Answer:
    if not fact_id:
        return _needs_text(talk, "pin")
    fact = await talk.memory.facts.pin(fact_id)
    return Answer(text=talk.say("pinned", id=fact.id, fact=fact.fact))


async def _why(talk: Talk, _: str) -> Answer:
    if talk.context is None:
        return Answer(text=talk.say("no_request"))
    lines: list[str] = []
    for name in ("facts", "recalled", "summaries"):
        for item in talk.context.sections[name].items:
            lines.append(f"- `{item.id}` {item.text} ({item.why})")
            if name == "facts":
                lines.extend(await _chain(talk, item.id))
    return Answer(text="\n".join(lines) or talk.say("nothing_used"))


async def _chain(talk: Talk, fact_id: str) -> list[str]:
    """Where a fact comes from, and what it replaced."""
    chain = await talk.memory.facts.chain(fact_id)
    return [f"  - {fact.created_at:%Y-%m-%d}: “{fact.quote}”" + (" ✗" if fact.superseded_by else "") for fact in chain]


async def _context(talk: Talk, _: str) -> Answer:
    context = talk.context
    if context is None:
        return Answer(text=talk.say("no_request"))
    rows = [
        f"| {name} | {context.sections[name].tokens} | {len(context.sections[name].items) or ''} |" for name in SECTIONS
    ]
    head = ["| section | tokens | items |", "|---|---:|---:|"]
    limit = talk.memory.limits.request_tokens
    total = f"\n{context.tokens} tokens (about {context.provider_tokens} of the model's own), limit {limit}."
    left = [f"- left out: {gone.section} `{gone.id}`: {gone.why}" for gone in context.left_out]
    return Answer(text="\n".join([*head, *rows, total, *left]))


async def _recall(talk: Talk, text: str) -> Answer:
    if not text:
        return _needs_text(talk, "recall")
    hits = await talk.memory.recall(text)
    if not hits:
        return Answer(text=talk.say("nothing_found"))
    return Answer(text="\n".join(f"- {hit.at:%Y-%m-%d} {hit.text} ({hit.kind}; {hit.why})" for hit in hits))


async def _topic(talk: Talk, _: str) -> Answer:
    await _start_session(talk)
    return Answer(text=talk.say("topic_started"))


async def _new(talk: Talk, _: str) -> Answer:
    await _start_session(talk)
    return Answer(text=talk.say("session_started"))


async def _start_session(talk: Talk) -> None:
    session = talk.session
    talk.session = await talk.memory.open_session(session.channel, session.chat, talk.language)
    talk.turn = talk.context = talk.reply = None


async def _stats(talk: Talk, _: str) -> Answer:
    if talk.context is None:
        return Answer(text=talk.say("no_request"))
    stages = ", ".join(f"{name} {seconds * 1000:.0f} ms" for name, seconds in talk.stages.items())
    reply = talk.reply
    counted = (
        f"; {reply.model}: {reply.prompt_tokens} in ({reply.cached_tokens} cached), {reply.reply_tokens} out"
        if reply
        else ""
    )
    return Answer(text=f"{talk.context.tokens} tokens{counted}. {stages}")


async def _retry(talk: Talk, _: str) -> Answer:
    if talk.turn is None:
        return Answer(text=talk.say("nothing_to_retry"))
    return Answer(ask_again=True)


async def _undo(talk: Talk, fact_id: str) -> Answer:
    facts = await talk.memory.facts.undo(fact_id or None)
    return Answer(text=talk.say("undone", facts="; ".join(f"{fact.id} “{fact.fact}”" for fact in facts)))


async def _private(talk: Talk, _: str) -> Answer:
    if talk.private is None:
        talk.private = []
        return Answer(text=talk.say("private_on"))
    talk.private = talk.turn = talk.context = talk.reply = None
    return Answer(text=talk.say("private_off"))


async def _export(talk: Talk, _: str) -> Answer:
    return Answer(text=await talk.memory.facts.export("markdown"))


async def _quit(talk: Talk, _: str) -> Answer:
    return Answer(text=talk.say("goodbye"), leave=True)


def _needs_text(talk: Talk, name: str) -> Answer:
    usage = talk.pack.commands.get(name) or talk.memory.packs["en"].commands[name]
    return Answer(text=talk.say("needs_text", usage=usage))


HANDLERS: dict[str, Handler] = {
    "start": _start,
    "help": _help,
    "facts": _facts,
    "remember": _remember,
    "keep": _keep,
    "replace": _replace,
    "forget": _forget,
    "pin": _pin,
    "why": _why,
    "context": _context,
    "recall": _recall,
    "topic": _topic,
    "new": _new,
    "stats": _stats,
    "retry": _retry,
    "undo": _undo,
    "private": _private,
    "export": _export,
    "quit": _quit,
}
ALIASES = {"memory": "facts", "exit": "quit", "bye": "quit"}
