"""Runs the quick version of every benchmark, writes bench/results.json and prints a table for the documentation."""

import importlib
import pkgutil
import sys
import time
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.report import Skipped, arguments, markdown, save

FOLDER = Path(__file__).parent
_NOT_PROGRAMS = {"__main__", "report"}


def programs() -> list[str]:
    """Every module of this folder that measures something."""
    names = [module.name for module in pkgutil.iter_modules([str(FOLDER)]) if module.name not in _NOT_PROGRAMS]
    return [name for name in names if hasattr(importlib.import_module(f"bench.{name}"), "main")]


def run(name: str, number: int, total: int) -> dict[str, Any]:
    """One program with the options it names as quick; what cannot be measured here says why."""
    module = importlib.import_module(f"bench.{name}")
    print(f"\n[{number}/{total}] {name}: {(module.__doc__ or '').splitlines()[0]}\n", flush=True)
    began = time.perf_counter()
    try:
        found = {"figures": dict(module.main(list(getattr(module, "QUICK", ()))))}
    except Skipped as exc:
        print(f"skipped: {exc}")
        return {"skipped": str(exc)}
    except (Exception, SystemExit) as exc:  # noqa: BLE001 (one broken benchmark does not hide the others)
        traceback.print_exc()
        return {"failed": f"{type(exc).__name__}: {exc}"}
    return {**found, "seconds": round(time.perf_counter() - began, 1)}


def lines(results: dict[str, dict[str, Any]]) -> list[list[object]]:
    """The rows of the table: one per figure, one per program that has none."""
    rows: list[list[object]] = []
    for name, result in results.items():
        if "figures" in result:
            rows += [[name, figure, value] for figure, value in result["figures"].items()]
        else:
            kind = "skipped" if "skipped" in result else "failed"
            rows.append([name, kind, result[kind]])
    return rows


def main(argv: Sequence[str]) -> int:
    """Run them all; 1 when one failed."""
    parser = arguments(__doc__)
    parser.set_defaults(json=FOLDER / "results.json")
    parser.add_argument("names", nargs="*", metavar="NAME", help="only these")
    options = parser.parse_args(argv)
    names = [name for name in programs() if not options.names or name in options.names]
    results = {name: run(name, number, len(names)) for number, name in enumerate(names, 1)}
    save(results, options.json)
    print("\n" + markdown(["program", "figure", "value"], lines(results)))
    return int(any("failed" in result for result in results.values()))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
