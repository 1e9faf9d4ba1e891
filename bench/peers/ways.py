"""The ways to remember that are compared; each keeps what it keeps in files of its own, and says what it would send."""

import json
from abc import ABC, abstractmethod
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any, Protocol

import pysqlite3
import sqlite_vec

from bench.coverage import Said, fill
from bench.peers.dialogues import Dialogue, Session
from bench.recall import MEMORY, items, put
from memory import Memory
from memory.embeddings import EmbeddedEmbedder
from memory.language import load_packs
from memory.stores.index import stems
from memory.testing import FakeClock
from memory.tokens import count_tokens

HISTORY_TOKENS = 4000


def line(turn: Said) -> str:
    """A raw turn as it would be sent: without its date no "when" could be answered."""
    return f"[{turn.day}] {searched(turn)}"


def searched(turn: Said) -> str:
    """A raw turn as it is searched."""
    return f"{turn.speaker}: {turn.text}"


class Way(Protocol):
    """What is measured."""

    async def remember(self, session: Session) -> None:
        """Takes in one session, with all the work it makes."""

    async def ask(self, question: str, budget: int) -> list[str]:
        """The texts that would be sent for a question."""

    async def close(self) -> None:
        """Writes what is not written yet."""


class Olvido:
    """Our own."""

    def __init__(self, folder: Path, dialogue: Dialogue) -> None:
        self._clock = FakeClock()
        self._opening = Memory.open(folder / "person.db", clock=self._clock)
        self._asked_at = dialogue.sessions[-1].at + timedelta(days=1)
        self._memory: Memory | None = None
        self._other: dict[str, int] = {}  # tokens of what is not recalled, by question

    async def _open(self) -> Memory:
        if self._memory is None:
            self._memory = await self._opening.__aenter__()
        return self._memory

    async def remember(self, session: Session) -> None:
        """Every turn, and the compression of those that left the window."""
        memory = await self._open()
        self._clock.now = session.at
        opened = await memory.open_session(channel="bench", chat="talk")
        for role, turn in session.turns:
            self._clock.advance(seconds=30)
            await memory.add_turn(opened.id, role, turn.text, speaker=turn.speaker)  # type: ignore[arg-type]
        await memory.run_pending()

    async def ask(self, question: str, budget: int) -> list[str]:
        """What memory puts into the request: summaries, what is recalled, facts."""
        memory = await self._open()
        if self._clock.now < self._asked_at:
            self._clock.now = self._asked_at
            await memory.open_session(channel="bench", chat="talk")
            await memory.run_pending()
        session = await put(memory, question)
        if question not in self._other:
            bare = await memory.assemble(session, recall_tokens=0)
            self._other[question] = sum(bare.sections[name].tokens for name in MEMORY if name != "recalled")
        return items(await memory.assemble(session, recall_tokens=max(0, budget - self._other[question])))

    async def close(self) -> None:
        """Closes the file."""
        await self._opening.__aexit__(None, None, None)


class LastTokens:
    """A file of all turns; what is sent is its end, 4,000 tokens whatever the budget."""

    def __init__(self, folder: Path, _: Dialogue) -> None:
        self._file = folder / "history.jsonl"

    async def remember(self, session: Session) -> None:
        """Appends."""
        with self._file.open("a", encoding="utf-8") as file:
            for role, turn in session.turns:
                file.write(json.dumps({"role": role, "text": line(turn)}, ensure_ascii=False) + "\n")

    async def ask(self, question: str, budget: int) -> list[str]:  # noqa: ARG002 (neither changes what is sent)
        """The end of the file."""
        texts = [json.loads(row)["text"] for row in self._file.read_text("utf-8").splitlines()]
        chosen: list[str] = []
        left = HISTORY_TOKENS
        for text in reversed(texts):
            left -= count_tokens(text)
            if left < 0:
                break
            chosen.append(text)
        return chosen

    async def close(self) -> None:
        """Nothing is open."""


class _Stored(ABC):
    """All turns in a table, with their lengths in tokens, and an index beside."""

    INDEX = ""

    def __init__(self, folder: Path, dialogue: Dialogue) -> None:
        self._pack = load_packs()[dialogue.language]
        self._db = pysqlite3.connect(folder / "turns.db")
        self._db.enable_load_extension(True)
        sqlite_vec.load(self._db)
        self._db.execute("CREATE TABLE turns (id INTEGER PRIMARY KEY, text TEXT, tokens INTEGER)")
        self._db.execute(self.INDEX)
        self._db.execute("PRAGMA journal_mode = WAL")

    async def remember(self, session: Session) -> None:
        """A transaction a turn, as a chat would write them."""
        for _, turn in session.turns:
            with self._db:
                text = line(turn)
                row = self._db.execute("INSERT INTO turns (text, tokens) VALUES (?, ?)", (text, count_tokens(text)))
                self._index(row.lastrowid, searched(turn))

    async def ask(self, question: str, budget: int) -> list[str]:
        """As many of the best as fit."""
        found = self._search(question)
        chosen = fill(range(len(found)), [tokens for _, tokens in found], budget)
        return [found[place][0] for place in chosen]

    async def close(self) -> None:
        """Closes the file, which writes what is in its log."""
        self._db.close()

    @abstractmethod
    def _index(self, number: int, text: str) -> None:
        """Puts a turn into the index."""

    @abstractmethod
    def _search(self, question: str) -> list[tuple[str, int]]:
        """Turns and their lengths, best first."""


class Vectors(_Stored):
    """Vector search over raw turns, with the embedder Olvido uses."""

    INDEX = "CREATE VIRTUAL TABLE found USING vec0 (embedding float[256] distance_metric=cosine)"

    def __init__(self, folder: Path, dialogue: Dialogue) -> None:
        super().__init__(folder, dialogue)
        self._embedder = EmbeddedEmbedder()

    def _index(self, number: int, text: str) -> None:
        self._db.execute("INSERT INTO found (rowid, embedding) VALUES (?, ?)", (number, self._vector(text)))

    def _search(self, question: str) -> list[tuple[str, int]]:
        nearest = "SELECT rowid, distance FROM found WHERE embedding MATCH ? AND k = 200"
        rows: Sequence[Any] = self._db.execute(
            f"SELECT text, tokens FROM ({nearest}) AS near JOIN turns ON turns.id = near.rowid ORDER BY distance",
            (self._vector(question),),
        ).fetchall()
        return [(row[0], row[1]) for row in rows]

    def _vector(self, text: str) -> bytes:
        return bytes(self._embedder.embed_now([text])[0].tobytes())


class Words(_Stored):
    """BM25 over the stemmed words of raw turns."""

    INDEX = "CREATE VIRTUAL TABLE found USING fts5 (stems)"

    def _index(self, number: int, text: str) -> None:
        self._db.execute("INSERT INTO found (rowid, stems) VALUES (?, ?)", (number, " ".join(stems(text, self._pack))))

    def _search(self, question: str) -> list[tuple[str, int]]:
        asked = " OR ".join(f'"{word}"' for word in sorted(set(stems(question, self._pack))))
        if not asked:
            return []
        rows: Sequence[Any] = self._db.execute(
            "SELECT text, tokens FROM found JOIN turns ON turns.id = found.rowid WHERE found MATCH ? ORDER BY rank",
            (asked,),
        ).fetchall()
        return [(row[0], row[1]) for row in rows]


WAYS: dict[str, type[Olvido] | type[LastTokens] | type[Vectors] | type[Words]] = {
    "Olvido": Olvido,
    "last 4,000 tokens": LastTokens,
    "vectors": Vectors,
    "BM25": Words,
}
