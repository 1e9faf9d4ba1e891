"""Runs the quick version of every benchmark, or of those named, and keeps what it finds.

bench/results.json    what does not depend on the machine: counts and shares, and of ratios of times a bound
bench/timings.json    everything, for this machine alone; not for the repository
README.md             with --write, the table of claims, made from results.json

What cannot be measured here (a file is not shipped, a model is missing) is left out and says why.
"""

import importlib
import json
import pkgutil
import sys
import time
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.claims import README, into_readme, table_of
from bench.report import Skipped, arguments, markdown, save

FOLDER = Path(__file__).parent
RESULTS, TIMINGS = FOLDER / "results.json", FOLDER / "timings.json"
BOUNDS = (1.5, 2, 3, 5, 10, 20, 50, 100, 200, 500, 1000, 10_000)  # so that another machine finds the same one

Result = dict[str, Any]


def programs() -> list[str]:
    """Every module of this folder that measures something."""
    names = [module.name for module in pkgutil.iter_modules([str(FOLDER)]) if module.name != "__main__"]
    return [name for name in names if hasattr(importlib.import_module(f"bench.{name}"), "main")]


def run(name: str, number: int, total: int, full: bool) -> Result:
    """One program; what cannot be measured here says why."""
    module = importlib.import_module(f"bench.{name}")
    print(f"\n[{number}/{total}] {name}: {(module.__doc__ or '').splitlines()[0]}\n", flush=True)
    began = time.perf_counter()
    try:
        found = {"figures": dict(module.main(["--full"] if full else []))}
    except Skipped as exc:
        print(f"skipped: {exc}")
        return {"skipped": str(exc)}
    except (Exception, SystemExit) as exc:  # noqa: BLE001 (one broken benchmark does not hide the others)
        traceback.print_exc()
        return {"failed": f"{type(exc).__name__}: {exc}"}
    return {**found, "seconds": round(time.perf_counter() - began, 1)}


def portable(name: str, result: Result) -> Result:
    """What another machine would find as well; each program names the ends of the figures that vary, and its ratios."""
    if "figures" not in result:
        return result
    module = importlib.import_module(f"bench.{name}")
    varies, ratios = tuple(getattr(module, "VARIES", ())), tuple(getattr(module, "RATIOS", ()))
    figures = {figure: value for figure, value in result["figures"].items() if not figure.endswith(varies)}
    return {
        "figures": {figure: value for figure, value in figures.items() if not figure.endswith(ratios)},
        "at most": {figure: bound(value) for figure, value in figures.items() if figure.endswith(ratios)},
    }


def bound(ratio: float) -> float:
    """The least of BOUNDS that is not below."""
    return next((step for step in BOUNDS if ratio <= step), float(round(ratio)))


def lines(results: Mapping[str, Result]) -> list[list[object]]:
    """The rows of a table of all that was found: one per figure, one per program that has none."""
    rows: list[list[object]] = []
    for name, result in results.items():
        if "figures" in result:
            rows += [[name, figure, value] for figure, value in result["figures"].items()]
        else:
            kind = "skipped" if "skipped" in result else "failed"
            rows.append([name, kind, result[kind]])
    return rows


def stored(file: Path) -> dict[str, Result]:
    """What an earlier run kept; a run of some programs replaces theirs only."""
    return dict(json.loads(file.read_text("utf-8"))) if file.is_file() else {}


def main(argv: Sequence[str]) -> int:
    """Run them; 1 when one failed."""
    parser = arguments(__doc__, full="the full version of each; takes hours")
    parser.add_argument("--write", action="store_true", help="write the table of claims into README.md")
    parser.add_argument("names", nargs="*", metavar="NAME", help="only these")
    options = parser.parse_args(argv)
    known = programs()
    if unknown := sorted(set(options.names) - set(known)):
        parser.error(f"there is no {', '.join(unknown)}; there are {', '.join(known)}")
    names = [name for name in known if name in options.names] or known
    results = {name: run(name, number, len(names), options.full) for number, name in enumerate(names, 1)}
    print("\n" + markdown(["program", "figure", "value"], lines(results)))
    save({**stored(TIMINGS), **results}, options.json or TIMINGS)
    failed = [name for name, result in results.items() if "failed" in result]
    if not options.full:  # claims are what anybody can have measured in minutes
        kept = {**stored(RESULTS), **{name: portable(name, result) for name, result in results.items()}}
        kept = {name: kept[name] for name in known if name in kept and name not in failed}
        print(f"\n{table_of(kept)}\n")
        save(kept, RESULTS)
        if options.write and not failed:
            README.write_text(into_readme(README.read_text("utf-8"), kept), "utf-8")
    print(f"failed: {', '.join(failed)}" if failed else f"{len(results)} programs, {_skipped(results)} skipped")
    return int(bool(failed))


def _skipped(results: Mapping[str, Result]) -> int:
    return sum("skipped" in result for result in results.values())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
