"""Scale: time of recall and assembly, file and memory, as one file grows to a million statements.

Quick: 2,000 and 20,000 statements. --full: 10 thousand, 100 thousand and a million, which takes a while.
--episodes: searching 100 thousand episodes in each of the five ways, with half of them and with all.
"""

import asyncio
import random
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from bench import episodes
from bench.report import arguments, program, progress, save, steady, table
from memory import Memory
from memory.statements import said_by
from memory.stores import context as rows
from memory.stores.index import Entry
from memory.testing import FakeClock
from memory.values import Statement

QUICK_SIZES, FULL_SIZES = (2_000, 20_000), (10_000, 100_000, 1_000_000)
HEADINGS = ("statements", "inserted/s", "file MB", "memory MB", "recall ms", "at 95%", "assemble ms", "95%")
QUESTIONS = 30
BATCH = 1_000
RATIOS = ("by time at 2,000", "by time at 10,000", "by time at 100,000")
_PEOPLE = ("Ana", "Luis", "Marta", "Tom", "Irene", "Paolo", "Wei", "Sofia")
_THINGS = [
    "garden",
    "kitchen",
    "guitar",
    "bicycle",
    "dentist",
    "train",
    "novel",
    "recipe",
    "museum",
    "passport",
    "printer",
    "balcony",
    "tomato",
    "violin",
    "river",
    "mountain",
    "office",
    "meeting",
    "invoice",
    "contract",
    "dog",
    "cat",
    "sister",
    "brother",
    "neighbour",
    "birthday",
    "wedding",
    "holiday",
    "school",
    "exam",
    "doctor",
    "medicine",
    "kettle",
    "lamp",
    "window",
    "carpet",
    "market",
    "cheese",
    "bread",
    "coffee",
    "tea",
    "laptop",
    "phone",
    "camera",
    "film",
    "concert",
    "festival",
    "ticket",
    "flight",
    "hotel",
    "beach",
    "storm",
    "snow",
    "summer",
    "winter",
    "engine",
    "battery",
    "ladder",
    "hammer",
    "paint",
    "curtain",
    "sofa",
    "blanket",
]
_DOINGS = [
    "bought",
    "sold",
    "repaired",
    "painted",
    "visited",
    "forgot",
    "found",
    "lost",
    "planned",
    "cancelled",
    "moved",
    "cleaned",
    "cooked",
    "borrowed",
    "returned",
    "ordered",
    "measured",
    "photographed",
    "described",
    "finished",
    "started",
    "called",
    "met",
    "invited",
    "promised",
    "watched",
    "read",
]


def sentence(chance: random.Random, number: int) -> str:
    """A line like those people say; a number of its own makes it unlike all others."""
    things = chance.sample(_THINGS, 3)
    return (
        f"I {chance.choice(_DOINGS)} the {things[0]} near the {things[1]} with {chance.choice(_PEOPLE)}, "
        f"and the {things[2]} cost {chance.randint(2, 900)} euros, order {number}."
    )


async def fill(memory: Memory, clock: FakeClock, first: int, last: int) -> float:
    """Stores statements as compression does, many in one transaction; returns how many a second."""
    chance = random.Random(first)
    session = await memory.open_session(channel="bench", chat="scale")
    turn = await memory.add_turn(session.id, "user", "The statements of this benchmark belong to this turn.")
    began = time.perf_counter()
    for start in range(first, last, BATCH):
        said = []
        for number in range(start, min(start + BATCH, last)):
            text = f"user: {sentence(chance, number)}"
            at = clock() - timedelta(minutes=5 * (FULL_SIZES[-1] - number))
            said.append(
                Statement(
                    id="",
                    kind="experience",
                    text=text,
                    speaker="user",
                    session_id=session.id,
                    turn_id=turn.id,
                    language="en",
                    entities=(),
                    at=at,
                    gist=number.to_bytes(16, "big"),
                )
            )
        prepared = await memory.index.prepare([said_by(one) for one in said])
        async with memory.database.transaction() as tx:
            stored = [await rows.insert_statement(tx, one) for one in said]
            entries = [Entry(kind=one.kind, ref=one.id, text=said_by(one), language="en", at=one.at) for one in stored]
            await memory.index.add(tx, entries, prepared)
        progress(min(start + BATCH, last), last, "statement")
    return (last - first) / (time.perf_counter() - began)


async def measure(memory: Memory) -> dict[str, list[float]]:
    """Seconds of recall and of assembly, a question each."""
    chance = random.Random(7)
    found: dict[str, list[float]] = {"recall": [], "assemble": []}
    session = await memory.open_session(channel="bench", chat="questions")
    for _ in range(QUESTIONS):
        things = chance.sample(_THINGS, 2)
        question = f"What did I do with the {things[0]} and the {things[1]} that {chance.choice(_PEOPLE)} saw?"
        began = time.perf_counter()
        await memory.recall(question)
        found["recall"].append(time.perf_counter() - began)
        await memory.add_turn(session.id, "user", question)
        began = time.perf_counter()
        await memory.assemble(session.id)
        found["assemble"].append(time.perf_counter() - began)
    return found


async def run(sizes: Sequence[int], folder: Path) -> tuple[list[list[object]], dict[str, float]]:
    clock = FakeClock(datetime(2026, 1, 1, tzinfo=UTC))
    lines: list[list[object]] = []
    taken: dict[str, list[float]] = {"recall": [], "assemble": []}
    path = folder / "scale.db"
    async with Memory.open(path, clock=clock) as memory:
        stored = 0
        for size in sizes:
            rate = await fill(memory, clock, stored, size)
            stored = size
            times = await measure(memory)
            row: list[object] = [f"{size:,}", round(rate), round(path.stat().st_size / 1e6, 1)]
            row.append(round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024))
            for name, seconds in times.items():
                middle, high = statistics.median(seconds), statistics.quantiles(seconds, n=20)[-1]
                taken[name].append(steady(seconds))
                row += [round(middle * 1000, 1), round(high * 1000, 1)]
            lines.append(row)
            print(f"  {dict(zip(HEADINGS, row, strict=True))}", file=sys.stderr, flush=True)
    figures = {}
    for name, values in taken.items():
        for before, after, one, other in zip(values, values[1:], sizes, sizes[1:], strict=False):
            figures[f"{name}: time at {other:,} by time at {one:,}"] = round(after / before, 2)
    figures["bytes a statement"] = round(float(str(lines[-1][2])) * 1e6 / sizes[-1])
    return lines, figures


def main(argv: Sequence[str]) -> dict[str, float]:
    """Fill one file step by step and measure at each size."""
    parser = arguments(__doc__, full="up to a million statements")
    parser.add_argument("--sizes", type=int, nargs="+", metavar="N", help="these sizes instead")
    parser.add_argument(
        "--episodes", type=int, nargs="?", const=episodes.FULL, metavar="N", help="episodes instead, N of them"
    )
    options = parser.parse_args(argv)
    if options.episodes:
        saved = ["--json", str(options.json)] if options.json else []
        return episodes.main(["--episodes", str(options.episodes), *saved])
    sizes = options.sizes or (FULL_SIZES if options.full else QUICK_SIZES)
    with tempfile.TemporaryDirectory() as folder:
        lines, figures = asyncio.run(run(sizes, Path(folder)))
    print(table(HEADINGS, lines))
    print()
    print(table(["figure", "value"], [[name, value] for name, value in figures.items()]))
    save(figures, options.json)
    return figures


if __name__ == "__main__":
    program(main)
