"""What the benchmarks share: tables for people, JSON for programs, and leaving out what cannot be measured here."""

import argparse
import json
import statistics
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

Figures = Mapping[str, float]


class Skipped(Exception):
    """A benchmark cannot run here; the text says why and what would be needed."""


def arguments(description: str | None, *, full: str) -> argparse.ArgumentParser:
    """The options every benchmark has; `full` says what --full does beyond the quick version."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument("--full", action="store_true", help=full)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there as well")
    return parser


def program(main: Callable[[Sequence[str]], object]) -> None:
    """Runs a benchmark from the command line; one that cannot run here says why."""
    try:
        main(sys.argv[1:])
    except Skipped as reason:
        sys.exit(f"skipped: {reason}")


def progress(done: int, total: int, what: str) -> None:
    """A line now and then, for those who wait."""
    if done == total or done % max(1, total // 10) == 0:
        print(f"  {what} {done:,}/{total:,}", file=sys.stderr, flush=True)


def steady(times: Sequence[float]) -> float:
    """The lower quartile of some times: what ratios are made of, for what is slower is mostly the machine's doing."""
    return statistics.quantiles(times, n=4, method="inclusive")[0] if len(times) > 1 else times[0]


def table(headings: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """A plain table; the first column to the left, numbers to the right."""
    cells = [list(headings), *([_cell(value) for value in row] for row in rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(headings))]
    lines = [
        "  ".join(cell.ljust(width) if column == 0 else cell.rjust(width) for column, (cell, width) in enumerate(line))
        for line in (list(zip(row, widths, strict=True)) for row in cells)
    ]
    return "\n".join([lines[0], "  ".join("-" * width for width in widths), *lines[1:]])


def markdown(headings: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """The same for a document."""
    cells = [headings, ["---"] * len(headings), *([_cell(value) for value in row] for row in rows)]
    return "\n".join(f"| {' | '.join(row)} |" for row in cells)


def save(result: object, file: Path | None) -> None:
    """Writes figures as JSON, where a file was named."""
    if file is not None:
        file.write_text(json.dumps(result, indent=2, ensure_ascii=False) + "\n", "utf-8")


def _cell(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.3f}" if abs(value) < 10 else f"{value:,.1f}"
    return f"{value:,}" if isinstance(value, int) else str(value)
