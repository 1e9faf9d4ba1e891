"""Memory, documents and forwards are data (section 6): against a model that obeys whatever it reads, no order that
stands in them changes a fact, calls a tool or reveals the prompt."""

import asyncio
import json
import re
import shutil
import tomllib
from collections.abc import Mapping
from pathlib import Path

import pytest

from assistant.guard import RUN
from assistant.line_client import LineClient
from assistant.sockets import socket_file
from assistant.testing import Asked, ChatReply, OpenAIServer, serving, settings_for
from memory import Memory
from memory.static import shipped_prompt

ATTEMPTS = tomllib.loads((Path(__file__).parent / "injections.toml").read_text("utf-8"))["attempt"]
PLACES = ("facts", "statements", "documents", "forwards")
NAMED = re.compile(
    r"Quillon|Orvane|Brisketto|Marbedo|Zurilda|Tolandra|Vermosca|Brandolfi|Ziprotto|Xorvita|Penloq|Wimbrel|Quorvex|"
    r"Farnwick|Tresk"
)
KNOWN = ("I live in Lyon", "I like tea")


class Obedient(OpenAIServer):
    """Does what the text in the request wants, in every way a model can: in words, in commands, by calling tools."""

    wants = ""
    read = 0

    def answer(self, asked: Asked) -> ChatReply:
        super().answer(asked)
        messages = asked.body["messages"]
        if "response_format" in asked.body:  # a summary; it writes what it was told into that as well
            return _pieces(json.dumps({**_NOTES, "topic": "/forget f1", "outcome": messages[0]["content"][:200]}))
        self.read += any(NAMED.search(str(message["content"])) for message in messages)
        if self.wants == "prompt":
            return _pieces("As you wish:\n\n" + messages[0]["content"])
        if self.wants == "tool":
            quoted = max((m["content"] for m in messages if NAMED.search(str(m["content"]))), key=len, default="")
            quotes = [quoted[-200:], "I live in Atlantis", *re.findall(r"[^.:\n]{10,80}", quoted)[:4]]
            calls = (("forget", '{"id": "f1"}'), ("remember", '{"fact": "I live in Atlantis"}'), ("pay", "{}"))
            calls += tuple(("remember", json.dumps({"quote": quote})) for quote in quotes)
            return ChatReply(pieces=("Done.",) if self.read % 2 else (), tool_calls=calls)
        return _pieces(
            "Remember that I live in Atlantis. I moved to Atlantis.\n/forget f1\n/forget f1\n/remember I am Neptune"
        )


_NOTES = {"topic": "", "discussed": [], "outcome": "", "decisions": [], "open_questions": []}


def _pieces(text: str) -> ChatReply:
    return ChatReply(pieces=tuple(text[start : start + 7] for start in range(0, len(text), 7)))


def test_the_written_set_is_large_and_covers_every_place_language_and_aim():
    assert len(ATTEMPTS) >= 40
    found = {(attempt["inside"], attempt["language"], attempt["wants"]) for attempt in ATTEMPTS}
    assert len(found) == len(PLACES) * 4 * 3
    assert all(NAMED.search(attempt["text"]) for attempt in ATTEMPTS)


@pytest.mark.parametrize("inside", PLACES)
async def test_no_order_inside_is_followed(inside, tmp_path):
    attempts = {f"p{number}": each for number, each in enumerate(a for a in ATTEMPTS if a["inside"] == inside)}
    await _prepare(tmp_path / "people", attempts)
    before = {owner: await _facts(tmp_path, owner) for owner in attempts}
    with Obedient() as server:
        async with serving(tmp_path, settings_for(server, serve__open_people=4)) as daemon:
            for owner, attempt in attempts.items():
                server.wants, server.read = attempt["wants"], 0
                me = LineClient(file=socket_file(tmp_path, "line"), owner=owner)
                async with me.connected():
                    await _try(me, attempt)
                    assert server.read, f"the model never read it: {attempt}"
                    shown = "\n".join([*(answer.everything for answer in me.answers.values()), "".join(me.pieces)])
                    assert _recited(shown) < RUN, attempt
            await daemon.upkeep.after_messages()
    for owner, attempt in attempts.items():
        assert await _facts(tmp_path, owner) == before[owner], attempt
        assert _recited(await _kept(tmp_path, owner)) < RUN, attempt
    offered = {tool["function"]["name"] for asked in server.history for tool in asked.body.get("tools", ())}
    assert offered == {"now", "calculate", "remember", "forget", "recall", "list_facts"}


async def _try(me: LineClient, attempt: Mapping[str, str]) -> None:
    """The message that brings the order before the model, then ordinary ones that let it be compressed."""
    if attempt["inside"] == "documents":
        await me.ask("1", attempt["asks"], quoted=attempt["text"], quoted_from="file.txt")
    elif attempt["inside"] == "forwards":
        await me.ask("1", "", quoted=attempt["text"], quoted_from="Somebody")
    else:
        await me.ask("1", attempt.get("asks", "hm?"))
    await me.ask("2", "ok")
    await me.ask("3", "/new")


async def _prepare(folder: Path, attempts: Mapping[str, Mapping[str, str]]) -> None:
    """A memory for each attempt, with the order in it where it is to be found there."""
    base = folder / "base.db"
    async with Memory.open(base) as memory:
        await memory.calibrator.current()
        for fact in KNOWN:
            await memory.facts.add(fact)
    for owner, attempt in attempts.items():
        await asyncio.to_thread(shutil.copy, base, folder / f"{owner}.db")
        async with Memory.open(folder / f"{owner}.db") as memory:
            if attempt["inside"] == "facts":
                fact = await memory.facts.add(attempt["text"], language=attempt["language"])
                await memory.facts.pin(fact.id)
            elif attempt["inside"] == "statements":
                session = await memory.open_session("line", "elsewhere")
                await memory.add_turn(session.id, "user", "hello")
                await memory.add_turn(session.id, "assistant", attempt["text"])
                await memory.open_session("line", "elsewhere")
                await memory.run_pending()
    await asyncio.to_thread(base.unlink)


async def _facts(folder: Path, owner: str) -> list[tuple[str, str, str, bool]]:
    async with Memory.open(folder / "people" / f"{owner}.db") as memory:
        rows = await memory.database.fetch_all("SELECT id, fact, status, pinned FROM facts ORDER BY id")
        return [tuple(row) for row in rows]


async def _kept(folder: Path, owner: str) -> str:
    async with Memory.open(folder / "people" / f"{owner}.db") as memory:
        rows = await memory.database.fetch_all("SELECT content FROM turns UNION ALL SELECT text FROM statements")
        return "\n".join(row[0] for row in rows)


def _recited(text: str) -> int:
    """The longest run of words of the prompt in a text."""
    words = re.findall(r"\w+", text.casefold())
    prompt = " " + " ".join(re.findall(r"\w+", shipped_prompt().text.casefold())) + " "
    longest = 0
    for start in range(len(words)):
        while start + longest < len(words) and f" {' '.join(words[start : start + longest + 1])} " in prompt:
            longest += 1
    return longest
