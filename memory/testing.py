"""Real, small classes and programs for tests and benchmarks; nothing here replaces a part of the engine."""

import hashlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from memory.embeddings import unit_length
from memory.errors import EmbedderError
from memory.language import words_of
from memory.ports import Vectors

# Opens the file named by its argument and writes for ever, printing each id once it is acknowledged. Rows of several
# pages, deletions and checkpoints, so that a kill can fall into any of them.
_WRITER = """
import asyncio, os, sys
from memory.database import Database

async def main():
    async with Database.open(sys.argv[1]) as db:
        while True:
            async with db.transaction() as tx:
                written = await tx.execute(
                    "INSERT INTO entries (kind, ref, text, text_hash, language, at) VALUES (?, hex(randomblob(16)), "
                    "?, x'00', 'en', '')", ("kept", "words " * 1500))
                await tx.execute("INSERT INTO entries_fts (rowid, stems) VALUES (?, 'word')", (written.lastrowid,))
                await tx.execute("DELETE FROM settings")
                await tx.execute("INSERT INTO settings VALUES ('last', ?)", (str(written.lastrowid),))
            os.write(1, f"{written.lastrowid}\\n".encode())
            if written.lastrowid % 25 == 0:
                await db.checkpoint()

asyncio.run(main())
"""


class FakeClock:
    """A clock that stands still until it is told to move."""

    def __init__(self, now: datetime = datetime(2026, 1, 1, 12, tzinfo=UTC)) -> None:
        self.now = now

    def __call__(self) -> datetime:
        return self.now

    def advance(self, **units: float) -> None:
        """Move by what ``timedelta`` understands: ``days=1, hours=2``."""
        self.now += timedelta(**units)


def start_python(script: str, *arguments: object, **environment: str) -> subprocess.Popen[str]:
    """Run a script that can import the engine in a process of its own; its output and errors are pipes."""
    root = str(Path(__file__).parents[1])
    path = os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH", "")]))
    return subprocess.Popen(
        [sys.executable, "-c", script, *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": path, **environment},
    )


def write_until_killed(path: Path, seconds: float) -> list[int]:
    """Let a process write to a file, kill it that long after its first write, and return the ids it acknowledged."""
    with start_python(_WRITER, path) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        first = process.stdout.readline()
        time.sleep(seconds)
        process.send_signal(signal.SIGKILL)
        lines = [first, *process.stdout.read().splitlines()]
        errors = process.stderr.read()
    if process.returncode != -signal.SIGKILL:
        raise RuntimeError(f"the writer ended by itself: {errors}")
    return [int(line) for line in lines]


class HashEmbedder:
    """A model that knows words only by their letters: deterministic, of any dimension; remembers what it embedded."""

    def __init__(self, name: str = "hash", dimension: int = 32) -> None:
        self.model = f"{name}-{dimension}"
        self.dimension = dimension
        self.embedded: list[str] = []
        self.fails = False

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """One unit vector per text: the sum of what its words hash to."""
        import numpy as np

        if self.fails:
            raise EmbedderError(f"The embedding model {self.model} does not answer.")
        self.embedded.extend(texts)
        vectors = np.zeros((len(texts), self.dimension), dtype=np.float32)
        for place, text in enumerate(texts):
            for word in words_of(text) or [text]:
                seed = hashlib.sha256(f"{self.model} {word}".encode("utf-8", "replace")).digest()[:8]
                vectors[place] += np.random.default_rng(int.from_bytes(seed)).standard_normal(self.dimension)
        return unit_length(vectors)
