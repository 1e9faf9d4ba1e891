"""Whether two questions are the same (D1): precision and recall on labelled pairs, and how often swapped words fool it.

The pairs are not shipped: name the files. Each is a JSON list of [same?, a, b]: questions (such as Quora's pairs), and
sentences of mostly the same words in another order (such as PAWS-X), one file a language.
"""

import asyncio
import json
import tempfile
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

from bench.report import Skipped, arguments, program, progress, save, table
from memory import Memory
from memory.embeddings import EmbeddedEmbedder

RAW_COSINE = 0.85
QUICK_PAIRS = 1000
Pairs = Sequence[tuple[int, str, str]]
Judge = Callable[[str, str], Awaitable[bool]]


async def judged(pairs: Pairs, same: Judge) -> dict[str, float]:
    """Precision, recall, and the share of different pairs called the same."""
    called = []
    for number, (_, a, b) in enumerate(pairs, 1):
        called.append(await same(a, b))
        progress(number, len(pairs), "pair")
    labels = [bool(label) for label, _, _ in pairs]
    right = sum(label and call for label, call in zip(labels, called, strict=True))
    wrong = sum(call and not label for label, call in zip(labels, called, strict=True))
    return {
        "precision": right / max(1, right + wrong),
        "recall": right / max(1, sum(labels)),
        "false": wrong / max(1, len(labels) - sum(labels)),
    }


async def measure(files: Sequence[Path], most: int | None) -> dict[str, dict[str, float]]:
    """Each file, by the engine's judgement and by raw cosines."""
    embedder = EmbeddedEmbedder()

    async def by_cosine(a: str, b: str) -> bool:
        vectors = await embedder.embed([a, b])
        return float(vectors[0] @ vectors[1]) > RAW_COSINE

    found: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        async with Memory.open(Path(folder) / "person.db") as memory:
            for file in files:
                pairs = json.loads(file.read_text("utf-8"))[:most]
                found[f"{file.stem} same_question"] = await judged(pairs, memory.same_question)
                found[f"{file.stem} raw cosine"] = await judged(pairs, by_cosine)
    return found


def main(argv: Sequence[str]) -> dict[str, float]:
    """Measure every file named; print a table."""
    parser = arguments(__doc__, full="every pair, not the first 1,000 of each file")
    parser.add_argument("files", nargs="*", type=Path, help="pairs as JSON: [[same?, a, b], ...]")
    options = parser.parse_args(argv)
    missing = [file.name for file in options.files if not file.is_file()]
    if missing or not options.files:
        named = f"not there: {', '.join(missing)}" if missing else "labelled pairs are not shipped"
        raise Skipped(f"{named}. Name files of pairs: python -m bench.same_question FILE...")
    found = asyncio.run(measure(options.files, None if options.full else QUICK_PAIRS))
    print(
        table(
            ["pairs", "precision", "recall", "different called the same"], [[n, *v.values()] for n, v in found.items()]
        )
    )
    save(found, options.json)
    return {f"{name} {figure}": round(value, 4) for name, values in found.items() for figure, value in values.items()}


if __name__ == "__main__":
    program(main)
