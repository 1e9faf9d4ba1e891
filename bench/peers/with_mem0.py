"""mem0 from the registry, without a model: it stores each turn as it is, and searches with our embedder's vectors.

It runs in an environment and a process of its own (`mem0_process.py`), which is handed the vector of every text, so
that nothing of ours has to be installed beside it. What a vector takes to make is therefore not in its times.
"""

import json
import os
import subprocess
import sys
import tempfile
import venv
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bench.coverage import fill
from bench.peers.dialogues import Dialogue, Session
from bench.peers.ways import line, searched
from bench.report import Skipped
from memory.embeddings import EmbeddedEmbedder
from memory.tokens import count_tokens

PROGRAM = Path(__file__).with_name("mem0_process.py")
VERSION = "mem0ai==2.2.1"
_INHERITED = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}


@contextmanager
def environment() -> Iterator[Path]:
    """An interpreter that has mem0, or the reason why there is none; gone afterwards."""
    with tempfile.TemporaryDirectory() as folder:
        print(f"  installing {VERSION} into an environment of its own", file=sys.stderr, flush=True)
        venv.create(folder, with_pip=True)
        python = Path(folder) / "bin" / "python"
        command = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", VERSION]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise Skipped(f"{VERSION} could not be installed: {_last_line(done.stderr)}")
        yield python


def _last_line(text: str) -> str:
    return (text.strip().splitlines() or ["no reason was given"])[-1]


class Mem0:
    """The process, a line of JSON each way for every call."""

    def __init__(self, folder: Path, dialogue: Dialogue, python: Path) -> None:
        turns = [turn for session in dialogue.sessions for _, turn in session.turns]
        self._lines = {searched(turn): line(turn) for turn in turns}
        self._embedder = EmbeddedEmbedder()
        self._errors = tempfile.TemporaryFile("w+", encoding="utf-8")  # noqa: SIM115 (closed by close)
        self._process = subprocess.Popen(
            [python, PROGRAM, folder],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            encoding="utf-8",
            env={**_INHERITED, "MEM0_TELEMETRY": "False", "MEM0_DIR": str(folder), "OPENAI_API_KEY": "none is used"},
        )

    async def remember(self, session: Session) -> None:
        """Each turn as it is."""
        self._call({"add": [[role, searched(turn), self._vector(searched(turn))] for role, turn in session.turns]})

    async def ask(self, question: str, budget: int) -> list[str]:
        """As many of the best as fit."""
        found = self._call({"search": question, "vector": self._vector(question)})
        texts = [self._lines[text] for text in found]
        return [texts[place] for place in fill(range(len(texts)), [count_tokens(text) for text in texts], budget)]

    async def close(self) -> None:
        """Ends the process, which writes what is not written yet."""
        self._process.communicate()
        self._errors.close()

    def _call(self, request: dict[str, Any]) -> list[str]:
        assert self._process.stdin is not None and self._process.stdout is not None
        try:
            self._process.stdin.write(json.dumps(request) + "\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            pass  # the answer that does not come says why
        answer = self._process.stdout.readline()
        if not answer:
            self._errors.seek(0)
            raise Skipped(f"mem0 ended: {_last_line(self._errors.read())}")
        return list(json.loads(answer))

    def _vector(self, text: str) -> list[float]:
        return [float(value) for value in self._embedder.embed_now([text])[0]]
