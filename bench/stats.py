"""`olvido stats` on a history that was really played: its figures against those recomputed from the table of requests.

Every message goes through the whole turn against a model server: questions for the model, sums and the clock, the same
question again, facts and their changes, long messages, new sessions. Then the command's figures are compared with sums
made here, row by row, by other code; and its plots are printed as a terminal of 80 columns shows them.
"""

import asyncio
import json
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pysqlite3
from typer.testing import CliRunner

from assistant.cli import app
from assistant.model import ChatModel
from assistant.settings import load_settings
from assistant.talk import Talk, open_talk
from assistant.testing import OpenAIServer, says, settings_for
from assistant.turn import take_turn
from bench.report import arguments, program, save, table
from memory import Memory
from memory.testing import FakeClock

COLUMNS = 80
TURNS, FULL_TURNS = 60, 500
PRICES = {"model__price_sent": 2.0, "model__price_cached": 0.5, "model__price_written": 10.0}
SESSION_TURNS = 50
TOPICS = ("bread", "bicycles", "the harbour", "violins", "tomatoes", "the old mill", "chess", "tides")


def message(number: int) -> str:
    """What is said at that place of the history."""
    topic = TOPICS[number % len(TOPICS)]
    if number % SESSION_TURNS == 0:
        return "/new"
    return (
        f"Tell me something about {topic}, number {number}.",
        f"What is {number} * 7?",
        f"Why do people like {topic} so much?",
        f"Yesterday I read {'a long story ' * (number % 40)}about {topic} and it was good.",
        f"I live in {('Lyon', 'Porto', 'Oslo')[number % 3]} now.",
        "What time is it?",
        f"Who knows most about {topic} in a small village?",
    )[number % 7]


async def play(folder: Path, turns: int) -> None:
    """A history of so many messages, half an hour apart, in `folder`."""
    clock = FakeClock(datetime(2026, 1, 25, 8, tzinfo=UTC))
    with OpenAIServer() as server:
        settings = load_settings(None, settings_for(server, **PRICES), folder).settings
        opening = Memory.open(folder / "people" / "me.db", clock=clock)
        async with opening as memory, ChatModel.open(settings) as model:
            talk = await open_talk(memory, model, "repl", "me")
            for number in range(1, turns + 1):
                clock.advance(minutes=30)
                server.default = says(
                    f"Here is answer {number}.", prompt_tokens=900 + number, cached_tokens=number % 400
                )
                await _say(talk, message(number))
                if number % 5 == 0:
                    await memory.run_pending()


async def _say(talk: Talk, text: str) -> None:
    async for _ in take_turn(talk, text):
        pass


def shown(folder: Path, *options: str) -> str:
    """What the command prints."""
    environment = {"OLVIDO_DATA_DIR": str(folder), "COLUMNS": str(COLUMNS)}
    return CliRunner().invoke(app, ["stats", *options], env=environment, catch_exceptions=False).output


def recomputed(folder: Path, session: int | None = None) -> dict[str, Any]:
    """The figures by the table alone."""
    with closing(pysqlite3.connect(folder / "people" / "me.db")) as connection:
        cursor = connection.execute("SELECT * FROM requests ORDER BY id")
        names = [name for name, *_ in cursor.description]
        found = [dict(zip(names, row, strict=True)) for row in cursor]
    rows = [row for row in found if session is None or row["session_id"] == session]
    parts: dict[str, Counter[str]] = {"sections": Counter(), "saved": Counter()}
    for row in rows:
        for column, summed in parts.items():
            summed.update(json.loads(row[column]))
    sums = {
        name: sum(row[name] for row in rows) for name in ("tokens", "prompt_tokens", "cached_tokens", "reply_tokens")
    }
    return {
        "requests": len(rows),
        "asked": sum(row["kind"] in ("model", "summary") for row in rows),
        "by_kind": dict(Counter(row["kind"] for row in rows)),
        "largest": max(row["tokens"] for row in rows),
        "history_tokens": sum(row["history_tokens"] for row in rows if row["kind"] == "model"),
        "cost": round(sum(row["cost"] or 0 for row in rows), 9),
        **sums,
        **{name: dict(summed) for name, summed in parts.items()},
    }


def compare(folder: Path) -> tuple[dict[str, Any], list[str]]:
    """The command's figures, of all and of the last session, and where they are not those of the table."""
    told: dict[str, Any] = json.loads(shown(folder, "--json"))
    with closing(pysqlite3.connect(folder / "people" / "me.db")) as connection:
        (last,) = connection.execute("SELECT session_id FROM requests ORDER BY id DESC LIMIT 1").fetchone()
    of_session = json.loads(shown(folder, "--json", "--session"))
    wrong = _differences("all", told, recomputed(folder))
    return told, [*wrong, *_differences("session", of_session, recomputed(folder, last))]


def _differences(what: str, told: Mapping[str, Any], counted: Mapping[str, Any]) -> list[str]:
    found = {**told, "cost": round(told["cost"] or 0, 9)}
    return [f"{what} {name}: {found[name]} is not {value}" for name, value in counted.items() if found[name] != value]


def main(argv: Sequence[str]) -> dict[str, float]:
    """Play, compare, show."""
    parser = arguments(__doc__, full="500 messages, not 60")
    parser.add_argument("--turns", type=int, metavar="N", help="so many messages instead")
    options = parser.parse_args(argv)
    turns = options.turns or (FULL_TURNS if options.full else TURNS)
    with tempfile.TemporaryDirectory() as name:
        asyncio.run(play(Path(name), turns))
        told, wrong = compare(Path(name))
        plots = shown(Path(name))
    print(plots)
    print("\n".join(wrong))
    result = {
        "messages": turns,
        "requests": told["requests"],
        "asked": told["asked"],
        "tokens sent": told["tokens"],
        "whole histories would have been": told["history_tokens"],
        "widest line": max(len(line) for line in plots.splitlines()),
        "figures that differ from the table": len(wrong),
    }
    print(table(["figure", "value"], [[name, value] for name, value in result.items()]))
    save(result, options.json)
    return result


if __name__ == "__main__":
    program(main)
