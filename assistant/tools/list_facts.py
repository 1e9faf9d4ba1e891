"""The tool `list_facts`: the facts known about the user, with their ids."""

from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from assistant.tools import Parameters, Result, Tool

if TYPE_CHECKING:
    from assistant.talk import Talk


class Filter(Parameters):
    """Which facts."""

    text: Annotated[str, Field(max_length=200, description="only those with these words; empty for all")] = ""


async def run(talk: "Talk", given: Filter) -> Result:
    """A line a fact."""
    facts = await talk.memory.facts.list("active", text=given.text or None)
    lines = [f"{fact.id} {fact.fact} ({fact.last_confirmed_at:%Y-%m-%d})" for fact in facts]
    return Result(text="\n".join(lines) or "none")


TOOL = Tool(
    name="list_facts",
    description="List the facts known about the user, with their ids.",
    short="List facts.",
    parameters=Filter,
    run=run,
    reads_memory=True,
)
