"""The command line starts fast: what `olvido --help` and `olvido facts list` take beyond the interpreter itself."""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from bench.report import arguments, program, save, table

RUNS, FULL_RUNS = 3, 10
VARIES = (" modules",)
RATIOS = ("times the interpreter",)
_OLVIDO = "from assistant.cli import main; main()"
_COUNTING = "import atexit, sys; atexit.register(lambda: print(*sys.modules, file=sys.stderr)); "
_HEAVY = (
    "numpy",
    "wordllama",
    "tiktoken",
    "py3langid",
    "pydantic",
    "aiosqlite",
    "openai",
    "telegram",
    "rich",
    "structlog",
)


def run(code: str, *parameters: str, folder: str) -> subprocess.CompletedProcess[str]:
    """One run of the interpreter in a home of its own."""
    root = str(Path(__file__).parents[1])
    environment = {**os.environ, "PYTHONPATH": root, "HOME": folder, "XDG_DATA_HOME": folder, "XDG_CONFIG_HOME": folder}
    command = [sys.executable, "-c", code, *parameters]
    done = subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"olvido {' '.join(parameters)} failed: {done.stderr.strip()}")
    return done


def best(code: str, *parameters: str, runs: int, folder: str) -> float:
    """The fastest of several runs, in milliseconds: what is slower is the machine's doing."""
    times = []
    for _ in range(runs):
        began = time.perf_counter()
        run(code, *parameters, folder=folder)
        times.append(time.perf_counter() - began)
    return min(times) * 1000


def main(argv: Sequence[str]) -> dict[str, float]:
    """Time the commands against an interpreter that does nothing, and look at what they import."""
    parser = arguments(__doc__, full="10 runs of each command, not 3")
    parser.add_argument("--runs", type=int, metavar="N", help="so many instead")
    options = parser.parse_args(argv)
    runs = options.runs or (FULL_RUNS if options.full else RUNS)
    result: dict[str, float] = {}
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        nothing = best("pass", runs=runs, folder=folder)
        rows.append(["python -c pass", nothing, 1.0, 0, ""])
        for parameters in (("--help",), ("facts", "list")):
            given = ("--data-dir", str(Path(folder) / "data"), *parameters) if parameters[0] == "facts" else parameters
            run(_OLVIDO, *given, folder=folder)  # the first one makes the file
            taken = best(_OLVIDO, *given, runs=runs, folder=folder)
            modules = run(_COUNTING + _OLVIDO, *given, folder=folder).stderr.split()
            heavy = [name for name in _HEAVY if name in modules]
            name = f"olvido {' '.join(parameters)}"
            print(f"  {name}", file=sys.stderr, flush=True)
            rows.append([name, taken, taken / nothing, len(modules), " ".join(heavy) or "none of the heavy ones"])
            result |= {
                f"{name}, times the interpreter": round(taken / nothing, 2),
                f"{name}, modules": len(modules),
                f"{name}, heavy imports": len(heavy),
            }
    print(table(["command", "best ms", "ratio", "modules", "heavy imports"], rows))
    save(result, options.json)
    return result


if __name__ == "__main__":
    program(main)
