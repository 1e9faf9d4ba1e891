"""The tool `remember`: keeps a fact, in words the user said in this session; nothing else can be kept (F2)."""

from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from assistant import offers
from assistant.said import Said
from assistant.tools import Parameters, Result, Tool, ToolError
from memory.errors import Refused
from memory.language import detect, words_of
from memory.signals import is_question
from memory.tokens import count_tokens

if TYPE_CHECKING:
    from assistant.talk import Talk

_LEAST_WORDS = 2


class Quote(Parameters):
    """What to keep."""

    quote: Annotated[str, Field(description="the user's own words of this conversation, copied exactly")]


async def run(talk: "Talk", given: Quote) -> Result:
    """Stores the quoted words as a fact, if the user said them."""
    if talk.private is not None:
        raise ToolError("refused: the conversation is private, nothing is kept")
    wanted = words_of(given.quote)
    language = detect(given.quote, talk.language, talk.memory.packs)
    if len(wanted) < _LEAST_WORDS or count_tokens(given.quote) > talk.memory.limits.fact_tokens:
        raise ToolError("refused: quote one short statement")
    if is_question(given.quote, talk.memory.packs[language]):
        raise ToolError("refused: that is a question, not a fact")
    said = await talk.memory.own_words_of(talk.session.id)
    if not any(_stands_in(wanted, words_of(text)) for text in said):
        raise ToolError("refused: the user did not say these words; copy a span of their own words exactly")
    try:
        fact = await talk.memory.facts.add(given.quote, language=language)
    except Refused:
        raise ToolError("refused: it looks like a credential") from None
    text = talk.say("saved_undo", id=fact.id, fact=fact.fact)
    notice = Said(text=text, kind="notice", saved=True, offers=offers.undo(talk, fact.id))
    return Result(text=f"saved as {fact.id}", notice=notice)


def _stands_in(wanted: list[str], said: list[str]) -> bool:
    return any(said[start : start + len(wanted)] == wanted for start in range(len(said) - len(wanted) + 1))


TOOL = Tool(
    name="remember",
    description="Keep a lasting fact about the user, who must have said it in this conversation.",
    short="Keep what the user said.",
    parameters=Quote,
    run=run,
    idempotent=False,
)
