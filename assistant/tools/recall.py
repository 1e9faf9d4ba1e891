"""The tool `recall`: searches what was said before."""

from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from assistant.tools import Parameters, Result, Tool

if TYPE_CHECKING:
    from assistant.talk import Talk

_LINES = 8


class Query(Parameters):
    """What to look for."""

    query: Annotated[str, Field(min_length=1, max_length=500, description="a question or a few words")]


async def run(talk: "Talk", given: Query) -> Result:
    """The best lines, each with its date."""
    hits = await talk.memory.recall(given.query, k=_LINES)
    return Result(text="\n".join(f"{hit.at:%Y-%m-%d} {hit.text}" for hit in hits) or "nothing found")


TOOL = Tool(
    name="recall",
    description="Search what the user told you in the past, when the answer is not in this request.",
    short="Search the past.",
    parameters=Query,
    run=run,
    reads_memory=True,
)
