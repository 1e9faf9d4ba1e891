"""The /commands of a conversation: every channel has the same ones, with the same handlers and texts."""

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from difflib import get_close_matches

from assistant import offers
from assistant.offers import Offer
from assistant.people import copies_beside
from assistant.talk import Talk
from assistant.traces import scrub
from memory.copies import forget_in_copy
from memory.errors import EngineError, NotFound
from memory.secrets import find_secret
from memory.values import SECTIONS, Fact, Item


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a command says, and what the channel has to do beside."""

    text: str = ""
    verbatim: bool = False  # to be copied, not read: no Markdown
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
    name, argument = command_name(text), (*text.split(maxsplit=1), "")[1]
    handler = HANDLERS.get(name)
    if handler is not _forget:
        talk.forgetting = None  # the second word has to follow the first
    if handler is not _remember:
        talk.insisting = None
    if handler is None:
        close = get_close_matches(name, HANDLERS, n=1)
        meant = " " + talk.say("meant_command", command=f"/{close[0]}") if close else ""
        return Answer(text=talk.say("unknown_command", command=f"/{name}") + meant)
    try:
        return await handler(talk, argument.strip())
    except NotFound:
        return Answer(text=talk.say("not_found", id=plain(argument.strip())))
    except EngineError as error:
        return Answer(text=plain(str(error)))


_MARKUP = re.compile(r"[\\`*_<>\[\]|~#]")


def plain(text: str) -> str:
    """What somebody wrote, for an answer in Markdown: on one line, and nothing in it is markup."""
    return _MARKUP.sub(r"\\\g<0>", " ".join(text.split()))


def unmarked(text: str) -> str:
    """An answer for where Markdown is shown as it is: what `plain` did is taken back."""
    return re.sub(rf"\\({_MARKUP.pattern})", r"\1", text)


async def _help(talk: Talk, _: str) -> Answer:
    names = [name for name in HANDLERS if not (talk.endless and name in LEAVING)]
    return Answer(text="\n".join(f"- `/{name}` {plain(_usage(talk, name))}" for name in names))


async def _start(talk: Talk, _: str) -> Answer:
    return Answer(text=f"{talk.say('welcome')}\n\n{(await _help(talk, '')).text}")


async def _facts(talk: Talk, text: str) -> Answer:
    text, page = offers.page_of(text)
    facts = await talk.memory.facts.list("active", text=text or None)
    if not facts:
        return Answer(text=talk.say("no_facts_like", text=plain(text)) if text else talk.say("no_facts"))
    shown, where, offered = offers.paged(talk, facts, text, page or 1)
    lines = [_fact_line(talk, fact) for fact in shown]
    return Answer(text="\n".join([*lines, *([f"\n{where}"] if where else [])]), offers=offered)


def _fact_line(talk: Talk, fact: Fact) -> str:
    marks = [f"{fact.last_confirmed_at:%Y-%m-%d}"] + [talk.say("mark_pinned")] * fact.pinned
    return f"- `{fact.id}` {plain(fact.fact)} ({', '.join(marks)})"


async def _keep(talk: Talk, fact_id: str) -> Answer:
    fact_id, page = offers.page_of(fact_id)
    if not fact_id:
        return _needs_text(talk, "keep")
    fact = await talk.memory.facts.confirm(fact_id)
    return Answer(text=talk.say("confirmed", fact=plain(fact.fact)), offers=offers.back(talk, page))


async def _replace(talk: Talk, ids: str) -> Answer:
    old, _, new = ids.partition(" ")
    if not new.strip():
        return _needs_text(talk, "replace")
    fact = await talk.memory.facts.supersede(old, new.strip())
    return Answer(text=talk.say("confirmed", fact=plain(fact.fact)))


async def _remember(talk: Talk, text: str) -> Answer:
    if not text:
        return _needs_text(talk, "remember")
    if talk.private is not None:  # the end of it will say that nothing was kept
        return Answer(text=talk.say("private_remember"))
    secret, insisted = find_secret(text), talk.insisting == text
    talk.insisting = text if secret and not insisted else None
    if talk.insisting:
        return Answer(text=talk.say("remember_secret", kind=str(secret)))
    fact = await talk.memory.facts.add(text, language=talk.language, insist=insisted)
    return Answer(text=talk.say("saved_undo", id=fact.id, fact=plain(fact.fact)), offers=offers.undo(talk, fact.id))


async def _forget(talk: Talk, fact_id: str) -> Answer:
    fact_id, page = offers.page_of(fact_id)
    if not fact_id:
        return _needs_text(talk, "forget")
    fact = await talk.memory.facts.get(fact_id)
    if talk.forgetting != fact.id:
        preview = await talk.memory.facts.preview_forget(fact.id)
        talk.forgetting = fact.id
        words = [known.fact for known in preview.facts] + [line.text for line in preview.statements]
        gone = "; ".join(f"“{plain(text)}”" for text in words)
        offered = offers.really_forget(talk, fact.id, page)
        return Answer(text=talk.say("forget_preview", id=fact.id, facts=gone), offers=offered)
    talk.forgetting = None
    done = await talk.memory.facts.forget(fact.id)
    texts = [text for known in done.wordings for text in (known.fact, known.quote)]
    for copy in copies_beside(talk.memory.database.path):
        await forget_in_copy(copy, done.wordings, limits=talk.memory.limits)
    if talk.data_dir is not None:
        scrub(talk.data_dir, texts)
    talk.context = talk.reply = talk.turn = None  # the last request held it too
    return Answer(text=talk.say("forgotten", id=fact.id), offers=offers.back(talk, page))


async def _pin(talk: Talk, fact_id: str) -> Answer:
    if not fact_id:
        return _needs_text(talk, "pin")
    fact = await talk.memory.facts.pin(fact_id)
    return Answer(text=talk.say("pinned", id=fact.id, fact=plain(fact.fact)))


async def _why(talk: Talk, _: str) -> Answer:
    if talk.context is None:
        return Answer(text=talk.say("unasked" if talk.unasked else "no_request"))
    lines: list[str] = []
    for item in talk.context.sections["facts"].items:
        lines += [f"- `{item.id}` {plain(item.text)}", *await _quotes(talk, item.id)]
    for name in ("recalled", "summaries"):
        lines += [_dated(item) for item in talk.context.sections[name].items]
    return Answer(text="\n".join(lines) or talk.say("nothing_used"))


def _dated(item: Item) -> str:
    return f"- `{item.id}` {plain(item.text)}" + (f" ({item.at:%Y-%m-%d})" if item.at else "")


async def _quotes(talk: Talk, fact_id: str) -> list[str]:
    """The words a fact comes from, and those of what it replaced."""
    lines = []
    for fact in await talk.memory.facts.chain(fact_id):
        mark = f" ({talk.say('mark_replaced')})" if fact.superseded_by else ""
        lines.append(f"  - {fact.created_at:%Y-%m-%d} “{plain(fact.quote)}”{mark}")
    return lines


async def _context(talk: Talk, _: str) -> Answer:
    context = talk.context
    if context is None:
        return Answer(text=talk.say("unasked" if talk.unasked else "no_request"))
    rows = [f"| {' | '.join(talk.say(key) for key in ('part', 'tokens', 'items'))} |", "|---|---:|---:|"]
    for name in SECTIONS:
        section = context.sections[name]
        rows.append(f"| {talk.say(f'part_{name}')} | {section.tokens} | {len(section.items) or ''} |")
    limit, own = str(talk.memory.limits.request_tokens), str(context.provider_tokens)
    total = talk.say("context_total", tokens=str(context.tokens), own=own, limit=limit)
    left = [f"- `{gone.id}` {talk.say('left_out')}: {plain(gone.why)}" for gone in context.left_out]
    return Answer(text="\n".join([*rows, "", total, *([""] if left else []), *left]))


async def _recall(talk: Talk, text: str) -> Answer:
    if not text:
        return _needs_text(talk, "recall")
    hits = await talk.memory.recall(text)
    if not hits:
        return Answer(text=talk.say("nothing_found"))
    return Answer(text="\n".join(f"- `{hit.id}` {plain(hit.text)} ({hit.at:%Y-%m-%d})" for hit in hits))


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
        return Answer(text=talk.say("unasked" if talk.unasked else "no_request"))
    reply = talk.reply
    stages = [talk.say(f"stage_{name}", ms=f"{seconds * 1000:.0f}") for name, seconds in talk.stages.items()]
    lines = [talk.say("stats_request", tokens=str(talk.context.tokens))]
    if reply is not None and reply.prompt_tokens:
        counts = {"sent": reply.prompt_tokens, "cached": reply.cached_tokens, "written": reply.reply_tokens}
        lines.append(
            talk.say("stats_model", model=plain(reply.model), **{name: str(count) for name, count in counts.items()})
        )
    return Answer(text=" ".join([*lines, talk.say("stats_time", stages=", ".join(stages))]))


async def _retry(talk: Talk, _: str) -> Answer:
    if talk.turn is None:
        return Answer(text=talk.say("nothing_to_retry"))
    await talk.memory.answers.reject_last(talk.session.id)
    return Answer(ask_again=True)


async def _undo(talk: Talk, fact_id: str) -> Answer:
    try:
        facts = await talk.memory.facts.undo(fact_id or None)
    except NotFound:
        key = "nothing_to_undo_for" if fact_id else "nothing_to_undo"
        return Answer(text=talk.say(key, id=plain(fact_id)))
    return Answer(text=talk.say("undone", facts="; ".join(f"{fact.id} “{plain(fact.fact)}”" for fact in facts)))


async def _private(talk: Talk, _: str) -> Answer:
    if talk.private is None:
        talk.private = []
        return Answer(text=talk.say("private_on"))
    talk.private = talk.turn = talk.context = talk.reply = None
    return Answer(text=talk.say("private_off"))


async def _export(talk: Talk, _: str) -> Answer:
    return Answer(text=await talk.memory.facts.export("markdown"), verbatim=True)


async def _quit(talk: Talk, _: str) -> Answer:
    if talk.endless:
        return Answer(text=talk.say("nothing_to_quit"))
    return Answer(text=talk.say("goodbye"), leave=True)


def _needs_text(talk: Talk, name: str) -> Answer:
    return Answer(text=talk.say("needs_text", usage=plain(_usage(talk, name))))


def _usage(talk: Talk, name: str) -> str:
    return talk.pack.commands.get(name) or talk.memory.packs["en"].commands[name]


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
LEAVING = frozenset({"quit"})  # has no place in a chat that is always there
ALIASES = {"memory": "facts", "exit": "quit", "bye": "quit"}
