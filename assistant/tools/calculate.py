"""The tool `calculate`: arithmetic, exactly."""

from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from assistant.arithmetic import NoSum, calculate, shown
from assistant.tools import Parameters, Result, Tool, ToolError

if TYPE_CHECKING:
    from assistant.talk import Talk


class Expression(Parameters):
    """What to work out."""

    expression: Annotated[str, Field(description="such as (3 + 4.5) * 2 ^ 3 / 5%; decimals with a point")]


async def run(_: "Talk", given: Expression) -> Result:
    """The result of the expression."""
    try:
        return Result(text=shown(calculate(given.expression)))
    except NoSum as error:
        raise ToolError(str(error)) from None


TOOL = Tool(
    name="calculate",
    description="Work out arithmetic exactly: + - * / ^ % √ and parentheses. Use it for every calculation.",
    short="Arithmetic.",
    parameters=Expression,
    run=run,
)
