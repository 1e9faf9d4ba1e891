"""The use of tools: which are offered and how briefly (O1), and the calls of a reply, made at once and within bounds.

Whatever a tool does, the model reads a short text: its result, the relevant fragment of a long one, or one line that
says what went wrong (L2). Results of one message share a budget.
"""

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import cache
from importlib import resources

from pydantic import ValidationError

from assistant.logs import get_logger
from assistant.reply import ToolCall
from assistant.said import Said
from assistant.talk import CachedResult, Talk
from assistant.tools import Result, ToolError, all_tools
from memory.assemble import relevant_fragments
from memory.errors import EngineError
from memory.marks import neutralise
from memory.tokens import count_tokens, cut_to_tokens

_ARGUMENT_TOKENS = 60  # of one call, as it is shown to the model again
_LONGEST_READ = 200_000  # characters of a result that are looked at


@dataclass(frozen=True, slots=True, kw_only=True)
class Offered:
    """What a request says of tools."""

    schemas: tuple[dict[str, object], ...] = ()
    addendum: str = ""


def offered(talk: Talk) -> Offered:
    """The tools for a request: those used before in few words, the rules of their format only while they are needed."""
    if not talk.model.calls_tools:
        return Offered()
    schemas, spared = [], 0
    for tool in all_tools(talk.model.tools).values():
        short = tool.name in talk.used_tools
        schemas.append(tool.schema(short=short))
        spared += _tokens(tool.schema(short=False)) - _tokens(schemas[-1]) if short else 0
    talk.saved["tools"] = spared
    talk.saved["format"] = count_tokens(_rules()) if talk.format_known else 0
    return Offered(schemas=tuple(schemas), addendum="" if talk.format_known else _rules())


async def use_tools(talk: Talk, calls: Sequence[ToolCall]) -> list[Said]:
    """Makes the calls of a reply at once; they and their results follow in the next request. What to tell the user."""
    calls = calls[: talk.model.tools.calls]
    talk.format_known = True  # unless one of them shows otherwise
    results = await asyncio.gather(*(_answered(talk, call) for call in calls))
    asked: dict[str, object] = {
        "role": "assistant",
        "content": "",
        "tool_calls": [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": _shortened(call.arguments)},
            }
            for call in calls
        ],
    }
    told: list[dict[str, object]] = [
        {"role": "tool", "tool_call_id": call.id, "content": result.text}
        for call, result in zip(calls, results, strict=True)
    ]
    talk.pending = fitted([*talk.pending, asked, *told], talk.model.tools.result_tokens, _question(talk), talk)
    return [result.notice for result in results if result.notice is not None]


async def last_problem(talk: Talk) -> list[dict[str, object]]:
    """What went wrong with a tool the last time, for another attempt at the same message; nothing else is told (L2)."""
    found = await talk.memory.last_problem(talk.session.id, talk.turn.timestamp) if talk.turn else None
    if found is None:
        return []
    return [{"role": "system", "content": f"At the last attempt {found.source} failed: {found.text}"}]


def fitted(messages: list[dict[str, object]], tokens: int, question: str, talk: Talk) -> list[dict[str, object]]:
    """The messages with the results of tools cut to what all of them may have together; short ones stay whole."""
    places = [place for place, message in enumerate(messages) if message["role"] == "tool"]
    sizes = {place: count_tokens(str(messages[place]["content"])) for place in places}
    left, room = tokens, dict[int, int]()
    for number, place in enumerate(sorted(places, key=lambda place: sizes[place])):
        room[place] = min(sizes[place], left // (len(places) - number))
        left -= room[place]
    cut = [dict(message) for message in messages]
    for place in places:
        if sizes[place] > room[place]:
            cut[place]["content"] = relevant_fragments(
                str(messages[place]["content"]), question, room[place], count_tokens, talk.pack
            )
    return cut


async def _answered(talk: Talk, call: ToolCall) -> Result:
    """What a call gives, whatever happens; a problem is recorded and told in one line."""
    try:
        result = await _called(talk, call)
        return replace(result, text=neutralise(result.text[:_LONGEST_READ]))
    except ToolError as error:
        problem = str(error)
    except TimeoutError:
        problem = "it took too long and was stopped"
    except EngineError as error:
        problem = f"it failed ({type(error).__name__})"
    except Exception as error:  # noqa: BLE001 (a tool's failure is not the message's; logged, and told to the model)
        get_logger(part="tools").exception("tool_failed", tool=call.name)
        problem = f"it failed ({type(error).__name__})"
    await talk.memory.note_problem(talk.session.id, call.name[:80], problem)
    return Result(text=f"error: {problem}")


async def _called(talk: Talk, call: ToolCall) -> Result:
    tool = all_tools(talk.model.tools).get(call.name)
    if tool is None:
        talk.format_known = False
        raise ToolError("there is no such tool")
    try:
        given = tool.parameters.model_validate_json(call.arguments or "{}")
    except ValidationError as error:
        talk.format_known = False  # the rules come back (O1)
        wrong = ", ".join(sorted({str(part["loc"][0]) if part["loc"] else "all of it" for part in error.errors()}))
        raise ToolError(f"the arguments are not as described: {wrong}") from None
    talk.used_tools.add(tool.name)
    key = f"{tool.name} {given.model_dump_json()}" + (f" {await talk.memory.state()}" if tool.reads_memory else "")
    if tool.idempotent and (kept := _kept(talk, key)) is not None:
        return kept
    async with asyncio.timeout(min(tool.timeout_seconds, talk.model.tools.timeout_seconds)):
        result = await tool.run(talk, given)
    if tool.idempotent:
        talk.results[key] = CachedResult(at=talk.memory.now(), text=result.text)
    return result


def _kept(talk: Talk, key: str) -> Result | None:
    """The result of the same call within the hour (C2); older ones go."""
    oldest = talk.memory.now() - timedelta(seconds=talk.model.tools.cache_seconds)
    talk.results = {name: result for name, result in talk.results.items() if result.at > oldest}
    return Result(text=talk.results[key].text) if key in talk.results else None


def _question(talk: Talk) -> str:
    return talk.turn.content if talk.turn else ""


def _shortened(arguments: str) -> str:
    """Arguments as valid JSON, not longer than need be."""
    short = cut_to_tokens(arguments, _ARGUMENT_TOKENS)
    if short == arguments and _is_json(arguments):
        return arguments
    return json.dumps({"shortened": short}, ensure_ascii=False)


def _is_json(text: str) -> bool:
    try:
        return isinstance(json.loads(text or "{}"), dict)
    except ValueError:
        return False


def _tokens(schema: dict[str, object]) -> int:
    return count_tokens(json.dumps(schema, ensure_ascii=False, separators=(",", ":")))


@cache
def _rules() -> str:
    return resources.files("prompts").joinpath("tasks", "tools.md").read_text("utf-8").strip()
