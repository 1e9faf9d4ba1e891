"""Follow-ups that look like an earlier question but are another one are never served; true rewordings may be.

Each file is JSON: {"different": [[asked, follow-up], ...], "same": [[asked, reworded], ...]}. Every pair is asked in a
new session of one memory, through the whole turn, against a model server that counts: all that was asked before could
be taken for the same question as well.
"""

import asyncio
import json
import tempfile
from collections.abc import Sequence
from pathlib import Path

from assistant.model import ChatModel
from assistant.settings import load_settings
from assistant.talk import Talk, open_talk
from assistant.testing import OpenAIServer, says, settings_for
from assistant.turn import take_turn
from bench.report import Skipped, arguments, program, progress, save, table
from memory import Memory

TEXTS = Path(__file__).parent / "look_alike_texts"
QUICK_EVERY = 3  # pairs written one after the other are alike: not the first ones


async def served(talk: Talk, server: OpenAIServer, first: str, second: str) -> bool:
    """Whether the second question gets the answer of the first, or any other one that was given before."""
    server.enqueue(says(f"The answer to “{first}”."))
    await _say(talk, "/new")
    await _say(talk, first)
    asked = server.calls
    await _say(talk, second)
    return server.calls == asked and not talk.known_question


async def _say(talk: Talk, text: str) -> None:
    async for _ in take_turn(talk, text):
        pass


async def measure(files: Sequence[Path], every: int, show: bool) -> dict[str, dict[str, float]]:
    """Of each file the share served, of both kinds."""
    found: dict[str, dict[str, float]] = {}
    for file in files:
        pairs = {kind: written[::every] for kind, written in json.loads(file.read_text("utf-8")).items()}
        with tempfile.TemporaryDirectory() as folder, OpenAIServer() as server:
            settings = load_settings(None, settings_for(server), Path(folder)).settings
            async with Memory.open(Path(folder) / "me.db") as memory, ChatModel.open(settings) as model:
                talk = await open_talk(memory, model, "repl", "me")
                calls: dict[str, list[bool]] = {"different": [], "same": []}
                for kind, results in calls.items():
                    wanted = pairs.get(kind, ())
                    for number, pair in enumerate(wanted, 1):
                        results.append(await served(talk, server, *pair))
                        progress(number, len(wanted), f"{file.stem}, {kind}")
        for kind, results in calls.items():
            for pair, was_served in zip(pairs.get(kind, ()), results, strict=True):
                if show and was_served == (kind == "different"):
                    print(f"{file.stem} {kind}: {pair[0]} | {pair[1]}")
        found[file.stem] = {
            "look-alikes": len(calls["different"]),
            "of these served": sum(calls["different"]),
            "rewordings": len(calls["same"]),
            "share served": sum(calls["same"]) / max(1, len(calls["same"])),
        }
    return found


def main(argv: Sequence[str]) -> dict[str, float]:
    """Measure every file; print a table."""
    parser = arguments(__doc__, full="every pair, not every third one")
    parser.add_argument("files", nargs="*", type=Path, help="pairs as JSON; those in bench/look_alike_texts if none")
    parser.add_argument("--show", action="store_true", help="print look-alikes that were served and rewordings not")
    options = parser.parse_args(argv)
    files = options.files or sorted(TEXTS.glob("*.json"))
    if not files or not all(file.is_file() for file in files):
        raise Skipped("there are no texts in bench/look_alike_texts; name files of pairs")
    found = asyncio.run(measure(files, 1 if options.full else QUICK_EVERY, options.show))
    print(table(["pairs", *next(iter(found.values()))], [[name, *values.values()] for name, values in found.items()]))
    save(found, options.json)
    return {f"{name} {figure}": round(value, 4) for name, values in found.items() for figure, value in values.items()}


if __name__ == "__main__":
    program(main)
