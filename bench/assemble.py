"""Time of add_turn and assemble with 100, 1,000 and 10,000 stored statements: median, 95th percentile, growth."""

import asyncio
import tempfile
import time
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from statistics import median

from bench.phrases import Line, conversation
from bench.report import arguments, program, progress, save, steady, table
from memory import Memory
from memory.language import load_packs
from memory.stores import context as rows
from memory.stores.index import Entry
from memory.testing import FakeClock
from memory.values import Statement

BATCH = 500
LENGTHS = (1, 1, 2)
VARIES = ("ms",)
RATIOS = ("by 100 rows",)


async def fill(memory: Memory, clock: FakeClock, count: int) -> None:
    """Stores so many statements, each found by its words and its meaning."""
    session = await memory.open_session()
    first = await memory.add_turn(session.id, "user", "This is where it begins.")
    lines = conversation(2, (1,))
    for start in range(0, count, BATCH):
        statements = [
            _statement(number, next(lines), session.id, first.id, clock)
            for number in range(start, min(start + BATCH, count))
        ]
        prepared = await memory.index.prepare([statement.text for statement in statements])
        async with memory.database.transaction() as tx:
            stored = [await rows.insert_statement(tx, statement) for statement in statements]
            entries = [
                Entry(kind=each.kind, ref=each.id, text=each.text, language=each.language, at=each.at)
                for each in stored
            ]
            await memory.index.add(tx, entries, prepared)
        clock.advance(days=1)
        progress(min(start + BATCH, count), count, "stored")


def _statement(number: int, line: Line, session_id: int, turn_id: int, clock: FakeClock) -> Statement:
    return Statement(
        id="",
        kind="world" if line.role == "user" else "observation",
        text=f"{line.role} {number}: {line.content}",
        speaker=line.role,
        session_id=session_id,
        turn_id=turn_id,
        language=line.language,
        entities=(),
        at=clock(),
    )


async def measure(folder: Path, stored: int, samples: int) -> dict[str, list[float]]:
    """Milliseconds of every call in a conversation on top of what is stored; the first few calls are not counted."""
    clock = FakeClock()
    spent: dict[str, list[float]] = {"add_turn": [], "assemble": []}
    async with Memory.open(folder / f"{stored}.db", clock=clock) as memory:
        await fill(memory, clock, stored)
        session = await memory.open_session()
        for line in islice(conversation(1, LENGTHS), 2 * (samples + 5)):
            clock.advance(minutes=1)
            began = time.perf_counter()
            await memory.add_turn(session.id, line.role, line.content)  # type: ignore[arg-type]
            added = time.perf_counter()
            if line.role == "user":
                await memory.assemble(session.id)
                spent["add_turn"].append((added - began) * 1000)
                spent["assemble"].append((time.perf_counter() - added) * 1000)
            else:
                await memory.run_pending()
    return {name: values[5:] for name, values in spent.items()}


def warm_up() -> dict[str, float]:
    """Compiles every language's patterns; milliseconds each, which the first message in a language has to wait."""
    spent = {}
    for code, pack in load_packs().items():
        began = time.perf_counter()
        pack.check()
        spent[code] = (time.perf_counter() - began) * 1000
    return spent


def main(argv: Sequence[str]) -> dict[str, float]:
    """Measure at every size; print the times and how they grow."""
    parser = arguments(__doc__, full="200 samples a size, not 40, and 30,000 rows as well")
    options = parser.parse_args(argv)
    sizes = (100, 1_000, 10_000, *((30_000,) if options.full else ()))
    samples = 200 if options.full else 40
    rows_: list[list[object]] = []
    usual: dict[str, float] = {}  # at the smallest size
    result = {f"first message in {code}, ms": spent for code, spent in warm_up().items()}
    print(table(["once in a process", "ms"], list(result.items())) + "\n")
    with tempfile.TemporaryDirectory() as folder:
        for size in sizes:
            for name, values in asyncio.run(measure(Path(folder), size, samples)).items():
                middle, slow = median(values), sorted(values)[int(len(values) * 0.95)]
                result |= {f"{name}, {size} rows, median ms": middle, f"{name}, {size} rows, 95% ms": slow}
                usual.setdefault(name, steady(values))
                growth = steady(values) / usual[name]
                result[f"{name}, {size} rows by {sizes[0]} rows"] = growth
                rows_.append([name, size, middle, slow, growth])
    rows_.sort(key=lambda row: str(row[0]))
    print(table(["call", "rows", "median ms", "95% ms", f"by {sizes[0]} rows"], rows_))
    result = {name: round(value, 3) for name, value in result.items()}
    save(result, options.json)
    return result


if __name__ == "__main__":
    program(main)
