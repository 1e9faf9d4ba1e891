"""Day 1,000 costs what day 1 cost: choosing facts for a request, and adding one, as the number of facts grows."""

import asyncio
import tempfile
import time
import tracemalloc
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

from bench.report import arguments, program, progress, save, steady, table
from memory import Memory
from memory.learn import entry_of, new_fact, plain_draft
from memory.stores import facts as rows
from memory.stores.index import Prepared
from memory.testing import FakeClock

SIZES, FULL = (100, 1_000), (100, 1_000, 10_000, 50_000)
RATIOS = ("largest to smallest",)
_THINGS = ("dentist", "garden", "bicycle", "recipe", "invoice", "cousin", "novel", "boiler", "choir", "visa")
_MESSAGES = [f"what did I say about the {thing} and its {other}?" for thing in _THINGS for other in ("colour", "date")]
_BATCH = 500


def texts(start: int, end: int) -> list[str]:
    """Facts that are all different and share words as those of one life do."""
    return [
        f"My {_THINGS[n % 10]} number {n} has to do with {_THINGS[n // 10 % 10]} {n * 7919 % 997}"
        for n in range(start, end)
    ]


async def fill(memory: Memory, start: int, end: int) -> None:
    """Facts as if they had been learnt, many in a transaction: only what is there afterwards is measured."""
    for first in range(start, end, _BATCH):
        batch = texts(first, min(first + _BATCH, end))
        prepared = await memory.index.prepare(batch)
        async with memory.database.transaction() as tx:
            for place, text in enumerate(batch):
                fact = await rows.insert(tx, new_fact(plain_draft(text, "en", memory.packs), None, FakeClock().now))
                vector = Prepared(generation=prepared.generation, vectors=prepared.vectors[place : place + 1])
                await memory.index.add(tx, [entry_of(fact)], vector)


async def steady_ms(call: Callable[[str], Awaitable[object]], parameters: Sequence[str]) -> float:
    """What one of several calls takes, in milliseconds."""
    times = []
    for parameter in parameters:
        began = time.perf_counter()
        await call(parameter)
        times.append(time.perf_counter() - began)
    return steady(times) * 1000


async def measure(sizes: Sequence[int], folder: Path) -> list[dict[str, float]]:
    """One memory that grows from size to size."""
    found = []
    path = folder / "person.db"
    async with Memory.open(path, clock=FakeClock()) as memory:
        there = 0
        for size in sizes:
            await fill(memory, there, size)
            progress(size, sizes[-1], "facts stored")
            there = size
            await held(memory)  # what is slow the first time is not what grows
            await memory.facts.add(f"A fact to warm up with at {size}")
            choosing = await steady_ms(memory.facts.choose, [f"{text} ({size})" for text in _MESSAGES])
            adding = await steady_ms(
                memory.facts.add, [f"The {n}th letter of {size} is in the attic" for n in range(20)]
            )
            tokens, peak = await held(memory)
            await memory.database.checkpoint()
            found.append(
                {
                    "facts": size,
                    "choose ms": choosing,
                    "add ms": adding,
                    "most tokens": max(tokens),
                    "peak KB of choosing": peak / 1024,
                    "resident MB": resident_mb(),
                    "file MB": path.stat().st_size / 1e6,
                }
            )
    return found


async def held(memory: Memory) -> tuple[list[int], int]:
    """The tokens of the facts chosen for each message, and the bytes held at most while choosing, caches aside."""
    tracemalloc.start()
    tokens = [sum(choice.tokens for choice in await memory.facts.choose(text)) for text in _MESSAGES]
    before = tracemalloc.get_traced_memory()[0]
    tracemalloc.reset_peak()
    for text in _MESSAGES:
        await memory.facts.choose(text)
    peak = tracemalloc.get_traced_memory()[1] - before
    tracemalloc.stop()
    return tokens, peak


def resident_mb() -> float:
    """What the process holds; 0 where the system does not tell."""
    status = Path("/proc/self/status")
    lines = status.read_text().splitlines() if status.is_file() else []
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith("VmRSS")), 0.0)


def main(argv: Sequence[str]) -> dict[str, float]:
    """Measure at each size; print a table and how much the largest costs beside the smallest."""
    parser = arguments(__doc__, full=f"up to {FULL[-1]:,} facts")
    parser.add_argument("--sizes", type=int, nargs="+", metavar="N", help="these sizes instead")
    options = parser.parse_args(argv)
    sizes = sorted(options.sizes or (FULL if options.full else SIZES))
    with tempfile.TemporaryDirectory() as folder:
        found = asyncio.run(measure(sizes, Path(folder)))
    print(table(list(found[0]), [list(row.values()) for row in found]))
    first, last = found[0], found[-1]
    result = {
        "facts, smallest": first["facts"],
        "facts, largest": last["facts"],
        "choosing, largest to smallest": round(last["choose ms"] / first["choose ms"], 2),
        "adding, largest to smallest": round(last["add ms"] / first["add ms"], 2),
        "peak memory of choosing, largest to smallest": round(
            last["peak KB of choosing"] / first["peak KB of choosing"], 2
        ),
        "most tokens of facts in a request": max(row["most tokens"] for row in found),
    }
    save({"sizes": found, **result}, options.json)
    return result


if __name__ == "__main__":
    program(main)
