"""The thresholds 0.85 and 0.4 mean the same in every language: calibrated similarity against raw cosines."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from bench.report import Skipped, arguments, program, save, table
from memory.embeddings import EmbeddedEmbedder
from memory.similarity import HIGH, LOW, Pair, calibrate, calibration_pairs, cosines, read_pairs

KEPT = Path(__file__).parents[1] / "tests" / "memory" / "calibration_pairs_kept.jsonl"


def shares(pairs: Sequence[Pair], values: Sequence[float]) -> dict[str, float]:
    """Of each label, the share that falls on its side of the thresholds."""

    def share(label: str, right: Callable[[float], bool]) -> float:
        found = [right(value) for pair, value in zip(pairs, values, strict=True) if pair.label == label]
        return sum(found) / max(1, len(found))

    same, unrelated = share("same", lambda value: value > HIGH), share("unrelated", lambda value: value < LOW)
    return {
        "same": same,
        "related": share("related", lambda value: LOW <= value <= HIGH),
        "unrelated": unrelated,
        "swapped": share("swapped", lambda value: value <= HIGH),
        "balanced": (same + unrelated) / 2,
    }


async def measure(halves: Mapping[str, Sequence[Pair]]) -> dict[str, dict[str, float]]:
    """Shares by half, language and way of reading."""
    embedder = EmbeddedEmbedder()
    scale = await calibrate(embedder)
    found: dict[str, dict[str, float]] = {}
    for half, pairs in halves.items():
        raw = await cosines(pairs, embedder)
        for language in sorted({pair.language for pair in pairs}):
            mine = [place for place, pair in enumerate(pairs) if pair.language == language]
            chosen = [pairs[place] for place in mine]
            found[f"{half} {language} raw"] = shares(chosen, [float(raw[place]) for place in mine])
            found[f"{half} {language} calibrated"] = shares(
                chosen, [scale(float(raw[place]), language) for place in mine]
            )
    return found


def main(argv: Sequence[str]) -> dict[str, float]:
    """Measure the half that maps are fitted on and the half kept apart; print a table."""
    parser = arguments(__doc__, full="the same: every pair is measured anyway")
    parser.add_argument("--kept", type=Path, default=KEPT, help="pairs that the maps were not fitted on, as JSON lines")
    options = parser.parse_args(argv)
    if not options.kept.is_file():
        raise Skipped(f"the kept pairs are not at {options.kept.name}; name them with --kept")
    halves = {"fitted": calibration_pairs(), "kept": read_pairs(options.kept.read_text("utf-8"))}
    found = asyncio.run(measure(halves))
    headings = ["pairs", "same > 0.85", "related between", "unrelated < 0.4", "swapped <= 0.85", "balanced"]
    print(table(headings, [[name, *values.values()] for name, values in found.items()]))
    result = {f"{name} balanced": round(values["balanced"], 4) for name, values in found.items()}
    for language in sorted({pair.language for pair in halves["kept"]}):
        gain = result[f"kept {language} calibrated balanced"] - result[f"kept {language} raw balanced"]
        result[f"kept {language} gain"] = round(gain, 4)
    save(found, options.json)
    return result


if __name__ == "__main__":
    program(main)
