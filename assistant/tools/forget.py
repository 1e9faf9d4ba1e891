"""The tool `forget`: proposes to forget a fact. It cannot be undone, so only the user's own command does it (F11)."""

from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from assistant.said import Said
from assistant.tools import Parameters, Result, Tool, ToolError
from memory.errors import NotFound

if TYPE_CHECKING:
    from assistant.talk import Talk


class FactId(Parameters):
    """Which fact."""

    id: Annotated[str, Field(description="id of a fact, such as f12; see list_facts")]


async def run(talk: "Talk", given: FactId) -> Result:
    """Shows the user what would go, and how to have it done."""
    try:
        preview = await talk.memory.facts.preview_forget(given.id)
    except NotFound:
        raise ToolError("there is no such fact; look it up with list_facts") from None
    fact = next(fact for fact in preview.facts if fact.id == given.id.strip().lower())
    talk.forgetting = fact.id
    words = "; ".join(f"“{known.fact}”" for known in preview.facts)
    return Result(
        text=f"not gone yet: the user is asked to confirm it by saying /forget {fact.id}",
        notice=Said(text=talk.say("forget_preview", id=fact.id, facts=words), kind="notice"),
    )


TOOL = Tool(
    name="forget",
    description="Forget a fact for good, when the user asks for it; they confirm it themselves.",
    short="Forget a fact.",
    parameters=FactId,
    run=run,
    idempotent=False,
)
