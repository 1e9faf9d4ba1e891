"""What a request cost and what was saved, for the account; and whether the day's ceiling is reached."""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from assistant.errors import CeilingReached
from assistant.logs import get_logger
from assistant.reply import JsonReply, Reply
from assistant.talk import Talk
from memory.tokens import count_tokens
from memory.values import Context, Request, RequestKind

if TYPE_CHECKING:
    from assistant.settings import ModelSettings
    from memory import Memory

_MILLION = 1_000_000


async def account(talk: Talk, context: Context, reply: Reply) -> None:
    """Counts a request the model answered, or began to; of what was private only what it cost."""
    request = Request(
        at=talk.memory.now(),
        kind="model",
        model=reply.model,
        tokens=context.tokens,
        prompt_tokens=reply.prompt_tokens,
        cached_tokens=reply.cached_tokens,
        reply_tokens=reply.reply_tokens or count_tokens(reply.text),
        cost=_cost(talk.model.settings, reply, context),
    )
    if talk.private is None:
        history = await talk.memory.accounts.history_tokens(talk.session.id)
        repeated = sum(gone.tokens for gone in context.left_out if gone.section == "facts")
        saved = {"history": max(0, history - context.tokens), "facts": repeated, **talk.saved}
        request = replace(
            request,
            session_id=talk.session.id,
            history_tokens=history,
            cut=context.message_cut,
            sections={name: section.tokens for name, section in context.sections.items()},
            stages=dict(talk.stages),
            saved={how: tokens for how, tokens in saved.items() if tokens},
        )
    await _count(talk, request)


async def account_unasked(talk: Talk, kind: RequestKind) -> None:
    """Counts an answer that needed no model; what it saved is what a request costs as a rule."""
    saved: dict[str, int] = {kind: await talk.memory.accounts.usual_tokens()}
    history = await talk.memory.accounts.history_tokens(talk.session.id)
    request = Request(
        at=talk.memory.now(),
        kind=kind,
        session_id=talk.session.id,
        history_tokens=history,
        stages=dict(talk.stages),
        saved=saved,
    )
    await talk.memory.accounts.record(request)


async def account_summary(memory: "Memory", settings: "ModelSettings", reply: JsonReply[Any]) -> None:
    """Counts what a summary cost."""
    request = Request(
        at=memory.now(),
        kind="summary",
        model=reply.model,
        tokens=reply.prompt_tokens,
        prompt_tokens=reply.prompt_tokens,
        cached_tokens=reply.cached_tokens,
        reply_tokens=reply.reply_tokens,
        cost=_price(settings, reply.prompt_tokens, reply.cached_tokens, reply.reply_tokens),
    )
    await memory.accounts.record(request)


async def is_spent(memory: "Memory", settings: "ModelSettings") -> bool:
    """Whether what may be spent today is spent."""
    return settings.daily_ceiling is not None and await memory.accounts.spent_today() >= settings.daily_ceiling


async def check_ceiling(talk: Talk) -> None:
    """Raises when the day's money is spent: no model is asked then."""
    if await is_spent(talk.memory, talk.model.settings):
        raise CeilingReached(talk.say("ceiling", ceiling=f"{talk.model.settings.daily_ceiling:g}"))


async def _count(talk: Talk, request: Request) -> None:
    if request.cut or max(request.tokens, request.prompt_tokens) > talk.memory.limits.aggressive_tokens:
        get_logger(part="accounting").warning("request_large", tokens=request.tokens, cut=request.cut)
    await talk.memory.accounts.record(request)


def _cost(settings: "ModelSettings", reply: Reply, context: Context) -> float | None:
    """By the provider's own count, or by our estimate where it tells none."""
    written = reply.reply_tokens or count_tokens(reply.text)
    return _price(settings, reply.prompt_tokens or context.provider_tokens, reply.cached_tokens, written)


def _price(settings: "ModelSettings", sent: int, cached: int, written: int) -> float | None:
    if settings.price_sent is None or settings.price_written is None:
        return None
    price_cached = settings.price_sent if settings.price_cached is None else settings.price_cached
    fresh = max(0, sent - cached)
    return (fresh * settings.price_sent + cached * price_cached + written * settings.price_written) / _MILLION
