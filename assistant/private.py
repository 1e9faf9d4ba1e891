"""A private stretch of a talk: answered by the model, kept nowhere."""

from datetime import UTC, datetime

from assistant.talk import Talk
from memory.assemble import Parts, assemble
from memory.static import shipped_prompt
from memory.tokens import count_tokens
from memory.values import Context, Turn

_NEVER = datetime(1970, 1, 1, tzinfo=UTC)


def private_context(talk: Talk) -> Context:
    """The request for the last private message: no memory in it, the same budget."""
    said = talk.private or []
    limits = talk.memory.limits
    window = tuple(_turn(number, message) for number, message in enumerate(said[-limits.window_max_turns : -1]))
    parts = Parts(static=shipped_prompt().text, message=said[-1]["content"], window=window)
    return assemble(parts, limits=limits, count=count_tokens, factor=talk.memory.provider_factor, pack=talk.pack)


def _turn(number: int, message: dict[str, str]) -> Turn:
    return Turn(
        id=number,
        session_id=0,
        turn_number=number,
        role="user" if message["role"] == "user" else "assistant",
        speaker=message["role"],
        content=message["content"],
        timestamp=_NEVER,
        token_count=0,
    )
