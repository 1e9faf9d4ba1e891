"""Many episodes: what searching in each of the five ways takes, and how much one more adds to the file.

The full run stores 100 thousand episodes (27 years of ten a day); the quick one 2 thousand. Half of them are measured
first, so that growth shows: a search that is linear in them takes twice as long.
"""

import asyncio
import random
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from pathlib import Path

from bench.report import arguments, program, progress, save, steady, table
from memory import Memory
from memory.episodes import entry_of, rendered, tags_of
from memory.limits import Limits
from memory.stores import episodes as rows
from memory.stores.index import Prepared
from memory.testing import FakeClock
from memory.values import OUTCOMES, TASK_TYPES, Episode, Note

EPISODES, FULL = 2_000, 100_000
RUNS, FULL_RUNS = 5, 15
VARIES = ("ms",)
RATIOS = ("by the time for half",)
LIMITS = Limits()
THINGS = (
    *("boiler", "garden", "invoice", "bicycle", "wedding", "laptop", "thesis", "puppy", "kitchen", "lease", "piano"),
    *("marathon", "passport", "newsletter", "roof", "contract", "sourdough", "headphones", "camper", "allotment"),
    *("grant", "podcast", "insurance", "mortgage", "printer", "router", "aquarium", "vaccine", "luggage", "orchestra"),
    *("bakery", "battery", "violin", "pension", "visa", "warranty", "courier", "recipe", "telescope", "compost"),
)
DOINGS = (
    *("leaks", "stalls", "repair", "budget", "draft", "schedule", "compare", "cancel", "renew", "review", "translate"),
    *("order", "deliver", "measure", "paint", "install", "sell", "collect", "insure", "postpone", "explain", "plant"),
    *("rehearse", "test", "borrow", "return", "upgrade", "clean", "label", "archive"),
)
PEOPLE = ("Nadia", "Bruno", "Celeste", "Dario", "Marta", "Luca", "Walter", "Karen", "Ortiz", "Brandt", "Chen", "Wang")
DOMAINS = ("work", "personal", "projects", "")


def episode(number: int, session: int, clock: FakeClock, chance: random.Random, days: int) -> Episode:
    """One of many: a few words drawn from a small vocabulary, some time in the past."""
    at = clock() - timedelta(days=chance.random() * days)
    thing, other = chance.sample(THINGS, 2)
    doing, more = chance.sample(DOINGS, 2)
    who, mark = chance.choice(PEOPLE), f"{thing[:3]}{chance.randrange(10_000)}"
    note = Note(
        topic=f"{thing} {doing}, {other}, {mark}",
        discussed=(f"{more} {other}", who, chance.choice(THINGS)),
        decisions=(f"we decided to {more} the {thing} with {who}",) if number % 3 == 0 else (),
    )
    topic, text = rendered([note], LIMITS)
    return Episode(
        id="",
        session_id=session,
        channel="bench",
        chat="many",
        first_turn=number * 10,
        last_turn=number * 10 + 5,
        turns=6,
        began_at=at - timedelta(minutes=10),
        ended_at=at,
        language="en",
        topic=topic,
        text=text,
        notes=(note,),
        domain=chance.choice(DOMAINS),
        task_type=chance.choice(TASK_TYPES),
        tags=tags_of([note]),
        entities=(who,),
        outcome=chance.choice(OUTCOMES),
    )


async def store(memory: Memory, clock: FakeClock, first: int, count: int, chance: random.Random) -> None:
    """Episodes in bulk, with their vectors and words, as they are stored one by one."""
    session = await memory.open_session(channel="bench", chat="many")
    embedder = memory.index.embedder(await memory.index.model())
    assert embedder is not None
    generation = (await memory.index.prepare(["the first text of a memory makes its vectors"])).generation
    for start in range(first, first + count, 1000):
        batch = [
            episode(number, session.id, clock, chance, 364) for number in range(start, min(start + 1000, first + count))
        ]
        vectors = await embedder.embed([entry_of(one).text for one in batch])
        async with memory.database.transaction() as tx:
            stored = [await rows.insert(tx, one) for one in batch]
            await rows.set_compared(tx, [one.id for one in stored])
            entries = [entry_of(one) for one in stored]
            await memory.index.add(tx, entries, Prepared(generation=generation, vectors=vectors))
        progress(start - first + len(batch), count, "stored")


async def timed(work: Callable[[str], Awaitable[object]], queries: Sequence[str]) -> float:
    """What one of some searches takes, each for the first time, in milliseconds."""
    taken = []
    for query in queries:
        began = time.perf_counter()
        found = await work(query)
        taken.append((time.perf_counter() - began) * 1000)
        if not found:
            raise RuntimeError(f"nothing was found for {query!r}")
    return steady(taken)


async def measure(memory: Memory, clock: FakeClock, runs: int, chance: random.Random) -> dict[str, float]:
    """Each way of searching."""
    search = memory.episodes.search
    queries = [
        f"{chance.choice(DOINGS)} the {chance.choice(THINGS)} with {chance.choice(PEOPLE)}" for _ in range(runs * 5)
    ]
    week = timedelta(days=7)
    ways: dict[str, Callable[[str], Awaitable[object]]] = {
        "semantic": search,
        "structured": lambda _: search(domain="work", task_type="fix", outcome="success"),
        "hybrid": lambda query: search(query, domain="work", outcome="success"),
        "temporal": lambda _: search(since=clock() - week * 10, until=clock() - week * 9, k=10),
        "failures": lambda query: search(query, failures=True),
    }
    await search("warm up the model")
    return {
        name: await timed(work, queries[place * runs : (place + 1) * runs])
        for place, (name, work) in enumerate(ways.items())
    }


async def run(count: int, runs: int, folder: Path) -> dict[str, float]:
    """Half of the episodes, then all of them."""
    clock, chance = FakeClock(), random.Random(7)
    path = folder / "many.db"
    figures: dict[str, float] = {}
    lines: list[list[object]] = []
    async with Memory.open(path, clock=clock) as memory:
        await memory.calibrator.current()
        await memory.database.checkpoint()
        size = [path.stat().st_size]
        for first, more in ((0, count // 2), (count // 2, count - count // 2)):
            began = time.perf_counter()
            await store(memory, clock, first, more, chance)
            await memory.database.checkpoint()
            seconds = time.perf_counter() - began
            size.append(path.stat().st_size)
            total = first + more
            taken = await measure(memory, clock, runs, chance)
            each = (size[-1] - size[-2]) / more
            lines.append([f"{total:,} episodes", *taken.values(), each, size[-1] / 1e6, seconds])
            figures |= {f"{total:,} episodes, {name}, ms": round(value, 1) for name, value in taken.items()}
            figures[f"{total:,} episodes, bytes each"] = round(each)
    ways = ("semantic", "structured", "hybrid", "temporal", "failures")
    growth = [
        figures[f"{count:,} episodes, {way}, ms"] / figures[f"{count // 2:,} episodes, {way}, ms"] for way in ways
    ]
    figures["the way that grows most: time by the time for half"] = round(max(growth), 2)
    print(table(["", *(f"{way} ms" for way in ways), "bytes each", "file MB", "stored in s"], lines))
    return figures


def main(argv: Sequence[str]) -> dict[str, float]:
    """Store many episodes and search them."""
    parser = arguments(__doc__, full=f"{FULL:,} of them; takes some minutes")
    parser.add_argument("--episodes", type=int, metavar="N", help="so many instead")
    parser.add_argument("--runs", type=int, metavar="N", help="so many searches of each way instead")
    options = parser.parse_args(argv)
    count = options.episodes or (FULL if options.full else EPISODES)
    runs = options.runs or (FULL_RUNS if options.full else RUNS)
    with tempfile.TemporaryDirectory() as folder:
        result = asyncio.run(run(count, runs, Path(folder)))
    save(result, options.json)
    return result


if __name__ == "__main__":
    program(main)
