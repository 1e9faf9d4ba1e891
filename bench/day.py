"""A written day of messages: how much is answered without a model, what each mechanism saves, and what is wrong.

The file is JSON, a list of messages in their order:

    {"say": "...", "minutes": 4, "answer": "...", "id": "a", "same_as": ["a"], "known": ["Lyon"], "never": ["Rome"]}

Only "say" is needed. "minutes" pass before it (1). "answer" is what the model says if it is asked. A message may be
given an earlier answer only if "same_as" names the "id" of the message that one was for; it may be answered from memory
only if it has "known", and then with all of these words. "never" are words no answer to it may have, the model's
included. Everything else counts as wrong.
"""

import asyncio
import json
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from assistant.model import ChatModel
from assistant.settings import load_settings
from assistant.talk import Talk, open_talk
from assistant.testing import OpenAIServer, says, settings_for
from assistant.turn import take_turn
from bench.report import Skipped, arguments, program, progress, save, table
from memory import Memory
from memory.accounts import Totals, totals
from memory.testing import FakeClock

TEXTS = Path(__file__).parent / "day_texts"
Message = Mapping[str, Any]


async def play(messages: Sequence[Message]) -> tuple[Totals, list[str]]:
    """The account of the day, and what was answered wrongly."""
    clock, wrong, given = FakeClock(), [], dict[str, set[str]]()
    with tempfile.TemporaryDirectory() as folder, OpenAIServer() as server:
        settings = load_settings(None, settings_for(server), Path(folder)).settings
        opening = Memory.open(Path(folder) / "me.db", clock=clock)
        async with opening as memory, ChatModel.open(settings) as model:
            talk = await open_talk(memory, model, "repl", "me")
            for number, message in enumerate(messages, 1):
                clock.advance(minutes=message.get("minutes", 1))
                server.default = says(message.get("answer") or f"Answer {number} to that.")
                asked = server.calls
                said = await _answer(talk, message["say"])
                problem = judge(message, said, given, by_model=server.calls > asked)
                if problem:
                    wrong.append(f"{number}. {message['say']} -> {said!r}: {problem}")
                await memory.run_pending()
                progress(number, len(messages), "message")
            requests = await memory.accounts.between()
        return totals(requests, settings.limits.aggressive_tokens), wrong


async def _answer(talk: Talk, text: str) -> str:
    parts = [said async for said in take_turn(talk, text)]
    return "".join(said.text for said in parts if said.kind in ("piece", "command"))


def judge(message: Message, said: str, given: dict[str, set[str]], *, by_model: bool) -> str:
    """What is wrong with an answer; nothing when it is right. Notes what the model answered."""
    if any(word in said for word in message.get("never", ())):
        return "it has words it must not have"
    if by_model or message["say"].startswith("/"):
        given.setdefault(message.get("id", message["say"]), set()).add(said)
        return ""
    if "known" in message:
        return "" if all(word in said for word in message["known"]) else f"it lacks some of {message['known']}"
    allowed = set().union(*(given.get(name, set()) for name in message.get("same_as", ())))
    return "" if said in allowed else "nothing but the model should have answered that"


def main(argv: Sequence[str]) -> dict[str, float]:
    """Play every day; print what was saved."""
    parser = arguments(__doc__, full="the same: the whole day is played anyway")
    parser.add_argument("files", nargs="*", type=Path, help="days as JSON; those in bench/day_texts if none")
    options = parser.parse_args(argv)
    files = options.files or sorted(TEXTS.glob("*.json"))
    if not files or not all(file.is_file() for file in files):
        raise Skipped("there is no day in bench/day_texts; name a file")
    result: dict[str, float] = {}
    rows: list[list[object]] = []
    for file in files:
        figures, wrong = asyncio.run(play(json.loads(file.read_text("utf-8"))))
        print("\n".join(wrong))
        unasked = sum(count for kind, count in figures.by_kind.items() if kind in ("known", "cached", "repeated"))
        answers = unasked + figures.by_kind.get("model", 0)
        shown: dict[str, float] = {
            "answers": answers,
            **{kind: count for kind, count in figures.by_kind.items() if kind != "model"},
            "share without a model": unasked / max(1, answers),
            "tokens sent": figures.tokens,
            **{f"tokens saved: {how}": tokens for how, tokens in figures.saved.items()},
            "wrong answers": len(wrong),
        }
        rows += [[file.stem, name, value] for name, value in shown.items()]
        result |= {f"{file.stem} {name}": round(value, 4) for name, value in shown.items()}
    print(table(["day", "figure", "value"], rows))
    save(result, options.json)
    return result


if __name__ == "__main__":
    program(main)
