"""Nothing acknowledged is lost: a process that writes is killed (SIGKILL) at random moments, and the file reopened."""

import asyncio
import json
import random
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from bench import report
from memory.database import Database
from memory.errors import DatabaseCorrupt
from memory.testing import write_until_killed

ROUNDS, FULL_ROUNDS = 5, 50
VARIES = ("acknowledged", "seconds")


async def stored(path: Path) -> tuple[set[int], bool]:
    """The ids in the file after opening it, and whether the opening noticed the unclean stop."""
    async with Database.open(path) as db:
        rows = await db.fetch_all("SELECT id FROM entries JOIN entries_fts ON entries_fts.rowid = entries.id")
        return {row["id"] for row in rows}, db.recovered


def main(argv: Sequence[str]) -> dict[str, float]:
    """Run the rounds on one file that grows; print a table and a JSON line."""
    parser = report.arguments(__doc__, full="50 rounds, not 5")
    parser.add_argument("--rounds", type=int, metavar="N", help="so many instead")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(argv)
    rounds = options.rounds or (FULL_ROUNDS if options.full else ROUNDS)
    moments = random.Random(options.seed)
    acknowledged: set[int] = set()
    lost = corrupt = unnoticed = 0
    began = time.perf_counter()
    print(f"{'round':>5} {'killed after':>12} {'acknowledged':>12} {'in file':>8} {'lost':>5}")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "person.db"
        for number in range(1, rounds + 1):
            seconds = moments.uniform(0, 0.2)
            ids = write_until_killed(path, seconds)
            acknowledged.update(ids)
            try:
                found, recovered = asyncio.run(stored(path))
            except DatabaseCorrupt as exc:
                print(f"{number:>5} {seconds * 1000:>9.0f} ms {exc}")
                corrupt += 1
                break
            lost = len(acknowledged - found)
            unnoticed += not recovered
            print(f"{number:>5} {seconds * 1000:>9.0f} ms {len(ids):>12} {len(found):>8} {lost:>5}")
    result = {
        "rounds": number,
        "acknowledged": len(acknowledged),
        "lost": lost,
        "corrupt": corrupt,
        "unclean_stops_not_noticed": unnoticed,
        "seconds": round(time.perf_counter() - began, 1),
    }
    print(json.dumps(result))
    report.save(result, options.json)
    return result


if __name__ == "__main__":
    report.program(main)
