"""The tools a model may call: one file a tool, and the list of them.

A tool has typed parameters, says in one line what it is for, and answers in plain text. A new one is a file here with a
`TOOL`, and a name in `all_tools`.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict

if TYPE_CHECKING:
    from assistant.said import Said
    from assistant.settings import ToolsSettings
    from assistant.talk import Talk


class Parameters(BaseModel):
    """What a model hands in; anything else is refused."""

    model_config = ConfigDict(extra="forbid", strict=True)


class ToolError(Exception):
    """A tool cannot do what it was asked; the text is one line for the model, without anybody's words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What a tool answers, and what the user has to know of it."""

    text: str
    notice: "Said | None" = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """Something a model may have done."""

    name: str
    description: str
    short: str  # once it was used (O1)
    parameters: type[Parameters]
    run: Callable[["Talk", Any], Awaitable[Result]]
    idempotent: bool = True  # the same call has the same result for an hour, and need not be made again (C2)
    reads_memory: bool = False  # ... as long as nothing is said or learnt
    timeout_seconds: float = 10.0

    def schema(self, *, short: bool) -> dict[str, object]:
        """As it is offered."""
        function = {
            "name": self.name,
            "description": self.short if short else self.description,
            "parameters": _plain(_schema_of(self.parameters), short=short),
        }
        return {"type": "function", "function": function}


@cache
def _schema_of(parameters: type[Parameters]) -> dict[str, Any]:
    return parameters.model_json_schema()


def _plain(schema: dict[str, Any], *, short: bool) -> dict[str, Any]:
    """A JSON schema without what a model does not need: titles, and once it was used descriptions."""
    left_out = ("title", "description", "additionalProperties") if short else ("title", "additionalProperties")
    properties = {
        name: {key: value for key, value in field.items() if key not in left_out}
        for name, field in schema.get("properties", {}).items()
    }
    return {"type": "object", "properties": properties, "required": schema.get("required", [])}


def all_tools(settings: "ToolsSettings") -> dict[str, Tool]:
    """The tools that the settings allow, by name."""
    from assistant.tools import calculate, fetch_url, forget, list_facts, now, recall, remember

    modules = [now, calculate, remember, forget, recall, list_facts, *([fetch_url] if settings.fetch_hosts else [])]
    return {module.TOOL.name: module.TOOL for module in modules}
