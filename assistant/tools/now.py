"""The tool `now`: the date and time where the user lives."""

from typing import TYPE_CHECKING

from assistant.tools import Parameters, Result, Tool

if TYPE_CHECKING:
    from assistant.talk import Talk


async def run(talk: "Talk", _: Parameters) -> Result:
    """Date, weekday, time and time zone."""
    return Result(text=f"{talk.memory.now():%A %Y-%m-%d %H:%M} ({talk.memory.timezone.key})")


TOOL = Tool(
    name="now",
    description="The date and time where the user lives.",
    short="Date and time.",
    parameters=Parameters,
    run=run,
    idempotent=False,
)
