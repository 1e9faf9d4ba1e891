"""The search index: one list of searchable texts, found by their words (FTS5) and by their meaning (sqlite-vec).

Vectors belong to a generation: all were made by one embedding model. When the model changes, a new generation is
built beside the active one, which stays in force until the new one is complete.
"""

import hashlib
import json
import logging
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache, lru_cache
from typing import Any

from memory.database import Database, Transaction, View
from memory.errors import EmbedderError
from memory.language import LanguagePack, words_of
from memory.limits import Limits
from memory.ports import Clock, Embedder, Vectors

Progress = Callable[[int, int], None]

_LOG = logging.getLogger(__name__)
_FEW_WORDS = 2
_WORDS_TABLES = ("entries_fts", "episodes_fts")


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A text to be found; ref names the row of its kind."""

    kind: str
    ref: str
    text: str
    language: str
    at: datetime
    context: Sequence[str] = ()  # stems of what was said around it, by which it is found as well


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """An entry that was found, with the score of the way it was found: higher is nearer."""

    kind: str
    ref: str
    score: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Among:
    """The entries a search is confined to: a query for their ids."""

    sql: str
    parameters: tuple[Any, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """Vectors made before a transaction, to be stored inside it."""

    generation: int | None
    vectors: Vectors


@dataclass(frozen=True, slots=True, kw_only=True)
class Generation:
    """One set of vectors."""

    id: int
    model: str
    dimension: int

    @property
    def table(self) -> str:
        """Where its vectors are."""
        return f"vectors_{self.id:d}"


class Index:
    """Searchable texts of one person."""

    def __init__(
        self,
        database: Database,
        wanted: Embedder,
        embedders: Sequence[Embedder],
        packs: Mapping[str, LanguagePack],
        clock: Clock,
        limits: Limits,
    ) -> None:
        self._database = database
        self._wanted = wanted
        self._embedders = {embedder.model: embedder for embedder in (*embedders, wanted)}
        self._packs = packs
        self._clock = clock
        self._limits = limits
        self._queries: dict[tuple[str, bytes], tuple[Vectors, datetime]] = {}

    # -- writing

    async def prepare(self, texts: Sequence[str]) -> Prepared:
        """The vectors of texts about to be stored; those of texts stored before are reused (C4).

        A model that is gone or fails makes none: the texts are found by their words until they are re-embedded.
        """
        import numpy as np

        words_only = Prepared(generation=None, vectors=np.zeros((len(texts), 0), dtype=np.float32))
        if not texts:
            return words_only
        try:
            generation, known = await self._generation_for(texts)
            embedder = self._embedders.get(generation.model)
            if embedder is None:
                return words_only
            unknown = [text for text in dict.fromkeys(texts) if text not in known]
            if unknown:
                known.update(zip(unknown, await embed(embedder, unknown, generation.dimension), strict=True))
        except EmbedderError:
            _LOG.warning("%d texts are stored without vectors", len(texts), exc_info=True)
            return words_only
        return Prepared(generation=generation.id, vectors=np.stack([known[text] for text in texts]))

    async def _generation_for(self, texts: Sequence[str]) -> tuple[Generation, dict[str, Vectors]]:
        """The generation in force and what it knows of these texts; the first texts of a memory start one."""
        generation = await self._active()
        if generation is not None:
            return generation, await self._known_vectors(generation, texts)
        distinct = list(dict.fromkeys(texts))
        vectors = await embed(self._wanted, distinct)
        generation = await self._first_generation(vectors.shape[1])
        ours = generation.model == self._wanted.model  # another process may have been faster, with another model
        return generation, dict(zip(distinct, vectors, strict=True)) if ours else {}

    async def add(self, tx: Transaction, entries: Sequence[Entry], prepared: Prepared) -> None:
        """Makes entries findable; one with the same kind and ref is replaced."""
        active = await tx.fetch_value("SELECT id FROM generations WHERE state = 'active'")
        known = await self._known(tx, entries)
        for entry in known:
            await self.remove(tx, entry.kind, [entry.ref])
        first = 1 + int(
            await tx.fetch_value("SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'entries'")
        )
        places = {(entry.kind, entry.ref): place for place, entry in enumerate(entries)}  # the last of each
        rows = [(first + place, entries[place]) for place in places.values()]
        await tx.execute_many(
            "INSERT INTO entries (id, kind, ref, text, text_hash, language, at) VALUES (?, ?, ?, ?, ?, ?, ?)",
            [(row, e.kind, e.ref, e.text, _hash(e.text), e.language, e.at.isoformat()) for row, e in rows],
        )
        for table in _WORDS_TABLES:
            await tx.execute_many(
                f"INSERT INTO {table} (rowid, stems, context) VALUES (?, ?, ?)",
                [
                    (row, " ".join(stems(e.text, self._packs.get(e.language))), " ".join(e.context))
                    for row, e in rows
                    if _words_table(e.kind) == table
                ],
            )
        if prepared.generation is not None and prepared.generation == active:
            table = Generation(id=prepared.generation, model="", dimension=0).table
            await tx.execute_many(
                f"INSERT INTO {table} (rowid, embedding, kind) VALUES (?, ?, ?)",
                [(row, prepared.vectors[row - first].tobytes(), entry.kind) for row, entry in rows],
            )

    async def _known(self, tx: Transaction, entries: Sequence[Entry]) -> list[Entry]:
        """Those that are in the list already."""
        refs = json.dumps([entry.ref for entry in entries])
        kinds = json.dumps(sorted({entry.kind for entry in entries}))
        rows = await tx.fetch_all(
            "SELECT kind, ref FROM entries WHERE kind IN (SELECT value FROM json_each(?)) "
            "AND ref IN (SELECT value FROM json_each(?))",
            (kinds, refs),
        )
        there = {(row["kind"], row["ref"]) for row in rows}
        return [entry for entry in entries if (entry.kind, entry.ref) in there]

    async def remove(self, tx: Transaction, kind: str, refs: Sequence[str]) -> None:
        """Takes entries out of the list, the word index and every generation of vectors."""
        generations = [int(row["id"]) for row in await tx.fetch_all("SELECT id FROM generations")]
        for ref in refs:
            row = await tx.fetch_value("SELECT id FROM entries WHERE kind = ? AND ref = ?", (kind, ref))
            if row is None:
                continue
            await tx.execute(f"DELETE FROM {_words_table(kind)} WHERE rowid = ?", (row,))
            for generation in generations:
                await tx.execute(f"DELETE FROM vectors_{generation:d} WHERE rowid = ?", (row,))
            await tx.execute("DELETE FROM entries WHERE id = ?", (row,))

    async def strip_context(self, tx: Transaction, words: Iterable[str], refs: Sequence[str] | None = None) -> None:
        """Takes stems out of what entries, all or some, are found by beside their own words."""
        gone = {word for word in words if word.isalnum()}
        if not gone:
            return
        match = "context : (" + " OR ".join(f'"{word}"' for word in sorted(gone)) + ")"
        some = "" if refs is None else "AND e.ref IN (SELECT value FROM json_each(?))"
        for table in _WORDS_TABLES:
            rows = await tx.fetch_all(
                f"SELECT e.id, f.stems, f.context FROM {table} f JOIN entries e ON e.id = f.rowid "
                f"WHERE {table} MATCH ? {some}",
                (match,) if refs is None else (match, json.dumps([*refs])),
            )
            for row in rows:
                left = " ".join(word for word in row["context"].split() if word not in gone)
                await tx.execute(f"DELETE FROM {table} WHERE rowid = ?", (row["id"],))
                await tx.execute(
                    f"INSERT INTO {table} (rowid, stems, context) VALUES (?, ?, ?)", (row["id"], row["stems"], left)
                )

    async def forget_queries(self, tx: Transaction) -> None:
        """Drops what is kept of past queries."""
        self._queries.clear()
        await tx.execute("DELETE FROM query_embeddings")

    # -- searching

    async def by_words(
        self,
        query: str,
        language: str,
        kinds: Sequence[str],
        limit: int,
        view: View | Database | None = None,
        among: Among | None = None,
    ) -> list[Hit]:
        """Entries that share words with the query, best first; the score is BM25's."""
        words = [word for word in self._searched(query, language) if word.isalnum()]
        if not words or not kinds:
            return []
        match = " OR ".join(f'"{word}"' for word in dict.fromkeys(words))
        found: list[Hit] = []
        for table in sorted({_words_table(kind) for kind in kinds}):
            own = [kind for kind in kinds if _words_table(kind) == table]
            rows = await (view or self._database).fetch_all(
                f"SELECT e.kind, e.ref, bm25({table}, 1.0, ?) AS rank "
                f"FROM {table} JOIN entries e ON e.id = {table}.rowid "
                f"WHERE {table} MATCH ? AND e.kind IN ({', '.join('?' * len(own))}){_within('e.id', among)} "
                "ORDER BY rank, e.id LIMIT ?",
                (self._limits.recall_context_weight, match, *own, *(among.parameters if among else ()), limit),
            )
            found += [Hit(kind=row["kind"], ref=row["ref"], score=-row["rank"]) for row in rows]
        return sorted(found, key=lambda hit: -hit.score)[:limit]

    def _searched(self, query: str, language: str) -> list[str]:
        """The stems of a query; one of few words may be in any language, so it is stemmed in all."""
        found = stems(query, self._packs.get(language))
        if len(found) > _FEW_WORDS:
            return found
        return found + [stem for pack in self._packs.values() if pack.code != language for stem in stems(query, pack)]

    async def said(self, words: Iterable[str], kind: str = "") -> tuple[dict[str, int], int]:
        """In how many entries each stem occurs, and how many there are: of episodes, or of all others."""
        table = _words_table(kind)
        wanted = json.dumps(sorted(words), ensure_ascii=False)
        rows = await self._database.fetch_all(
            f"SELECT term, doc FROM {table.replace('_fts', '_vocabulary')} "
            "WHERE term IN (SELECT value FROM json_each(?))",
            (wanted,),
        )
        lines = await self._database.fetch_value(f"SELECT count(*) FROM {table}_docsize")
        return {row["term"]: row["doc"] for row in rows}, int(lines)

    async def by_meaning(
        self,
        vector: Vectors | None,
        kinds: Sequence[str],
        limit: int,
        view: View | Database | None = None,
        among: Among | None = None,
    ) -> list[Hit]:
        """The entries nearest to a query vector; the score is the raw cosine."""
        generation = await self._active()
        if generation is None or vector is None or not kinds:
            return []
        marks = ", ".join("?" * len(kinds))
        rows = await (view or self._database).fetch_all(
            f"SELECT e.kind, e.ref, v.distance FROM {generation.table} v JOIN entries e ON e.id = v.rowid "
            f"WHERE v.embedding MATCH ? AND v.k = ? AND v.kind IN ({marks}){_within('v.rowid', among)} "
            "ORDER BY v.distance, e.id",
            (vector.tobytes(), limit, *kinds, *(among.parameters if among else ())),
        )
        return [Hit(kind=row["kind"], ref=row["ref"], score=1.0 - row["distance"]) for row in rows]

    async def cosines(self, vector: Vectors, kind: str, refs: Sequence[str]) -> dict[str, float]:
        """How near entries are to a vector, by ref."""
        generation = await self._active()
        if generation is None:
            return {}
        marks = ", ".join("?" * len(refs))
        rows = await self._database.fetch_all(
            f"SELECT e.ref, vec_distance_cosine(v.embedding, ?) AS distance FROM entries e "
            f"JOIN {generation.table} v ON v.rowid = e.id WHERE e.kind = ? AND e.ref IN ({marks})",
            (vector.tobytes(), kind, *refs),
        )
        return {row["ref"]: 1.0 - row["distance"] for row in rows}

    async def stems_of(
        self, kinds: Sequence[str], refs: Sequence[str], view: View | Database | None = None
    ) -> dict[str, tuple[set[str], set[str]]]:
        """The stems entries are found by, by ref: their own, and those said around them."""
        found: dict[str, tuple[set[str], set[str]]] = {}
        for table in sorted({_words_table(kind) for kind in kinds}):
            rows = await (view or self._database).fetch_all(
                f"SELECT e.ref, f.stems, f.context FROM entries e JOIN {table} f ON f.rowid = e.id "
                "WHERE e.kind IN (SELECT value FROM json_each(?)) AND e.ref IN (SELECT value FROM json_each(?))",
                (json.dumps([*kinds]), json.dumps([*refs])),
            )
            found |= {row["ref"]: (set(row["stems"].split()), set(row["context"].split())) for row in rows}
        return found

    async def vector(self, text: str) -> Vectors | None:
        """The vector of a text in the active model, not kept; None while that model is gone or fails."""
        generation = await self._active()
        embedder = self._embedders.get(generation.model if generation else self._wanted.model)
        if embedder is None:
            return None
        try:
            vector: Vectors = (await embed(embedder, [text], generation.dimension if generation else None))[0]
        except EmbedderError:  # what is said must not be lost for want of a vector
            _LOG.warning("a text has no vector: only its words count", exc_info=True)
            return None
        return vector

    async def query_vector(self, text: str) -> Vectors | None:
        """The same for a query, kept for a day (C4): at once in memory, in the file with `keep_queries`."""
        generation = await self._active()
        embedder = self._embedders.get(generation.model if generation else self._wanted.model)
        if embedder is None:
            return None
        key, now = (embedder.model, _hash(text)), self._clock()
        kept = self._queries.get(key)
        if kept and kept[1] > now:
            return kept[0]
        stored = await self._database.fetch_value(
            "SELECT vector FROM query_embeddings WHERE model = ? AND text_hash = ? AND expires_at > ?",
            (*key, now.isoformat()),
        )
        if stored is not None:
            return _as_vector(stored)
        vector = await self.vector(text)
        if vector is None:
            return None
        self._queries[key] = (vector, now + timedelta(seconds=self._limits.query_embedding_ttl_seconds))
        while len(self._queries) > self._limits.query_embeddings_held:
            del self._queries[next(iter(self._queries))]
        return vector

    async def keep_queries(self) -> None:
        """Writes the query vectors made since the last time, and drops those that expired."""
        rows = [(*key, vector.tobytes(), expires.isoformat()) for key, (vector, expires) in self._queries.items()]
        now = self._clock().isoformat()
        expired = await self._database.fetch_value(
            "SELECT 1 FROM query_embeddings WHERE expires_at <= ? LIMIT 1", (now,)
        )
        if not rows and not expired:
            return
        async with self._database.transaction() as tx:
            await tx.execute("DELETE FROM query_embeddings WHERE expires_at <= ?", (now,))
            await tx.execute_many("INSERT OR REPLACE INTO query_embeddings VALUES (?, ?, ?, ?)", rows)
        self._queries.clear()

    async def model(self) -> str:
        """The model whose vectors are in force."""
        generation = await self._active()
        return generation.model if generation else self._wanted.model

    def embedder(self, model: str) -> Embedder | None:
        """The embedder of a model, if it is at hand."""
        return self._embedders.get(model)

    # -- changing the model

    async def needs_reembedding(self) -> bool:
        """Whether the vectors in force were made by another model than the one wanted, or some are missing."""
        generation = await self._active()
        if generation is None:
            return await self._count() > 0
        return generation.model != self._wanted.model or await self._missing_count(generation) > 0

    async def reembed(self, progress: Progress | None = None) -> int:
        """Makes all vectors anew with the wanted model and switches to them; goes on where it was cut off."""
        generation = await self._building()
        done = 0
        while True:
            total = await self._count()
            rows = await self._missing(generation, self._limits.embed_batch_texts)
            if not rows:
                if await self._switch_to(generation):
                    return done
                continue
            vectors = await embed(self._wanted, [row["text"] for row in rows], generation.dimension)
            await self._store(generation, rows, vectors)
            done += len(rows)
            if progress:
                progress(total - await self._missing_count(generation), total)

    async def _store(self, generation: Generation, rows: Sequence[Any], vectors: Vectors) -> None:
        async with self._database.transaction() as tx:
            for row, vector in zip(rows, vectors, strict=True):
                current = await tx.fetch_value("SELECT text_hash FROM entries WHERE id = ?", (row["id"],))
                if current == row["text_hash"]:  # it may have been forgotten meanwhile
                    await tx.execute(f"DELETE FROM {generation.table} WHERE rowid = ?", (row["id"],))
                    await tx.execute(
                        f"INSERT INTO {generation.table} (rowid, embedding, kind) VALUES (?, ?, ?)",
                        (row["id"], vector.tobytes(), row["kind"]),
                    )

    async def _switch_to(self, generation: Generation) -> bool:
        """Puts a complete generation in force; False when an entry has come in meanwhile."""
        async with self._database.transaction() as tx:
            if await self._missing_count(generation):
                return False
            for row in await tx.fetch_all("SELECT id FROM generations WHERE id != ?", (generation.id,)):
                await tx.execute(f"DROP TABLE vectors_{row['id']:d}")
                await tx.execute("DELETE FROM generations WHERE id = ?", (row["id"],))
            await tx.execute("UPDATE generations SET state = 'active' WHERE id = ?", (generation.id,))
        return True

    async def _building(self) -> Generation:
        """The generation under construction for the wanted model: the active one if only some are missing."""
        active = await self._active()
        if active and active.model == self._wanted.model:
            return active
        dimension = int((await embed(self._wanted, ["dimension"])).shape[1])
        async with self._database.transaction() as tx:
            row = await tx.fetch_one("SELECT * FROM generations WHERE state = 'building'")
            if row and row["model"] == self._wanted.model and row["dimension"] == dimension:
                return _generation(row)
            if row:
                await tx.execute(f"DROP TABLE vectors_{row['id']:d}")
                await tx.execute("DELETE FROM generations WHERE id = ?", (row["id"],))
            return await self._create(tx, dimension, "building")

    async def _first_generation(self, dimension: int) -> Generation:
        async with self._database.transaction() as tx:
            return await self._active() or await self._create(tx, dimension, "active")

    async def _create(self, tx: Transaction, dimension: int, state: str) -> Generation:
        written = await tx.execute(
            "INSERT INTO generations (model, dimension, state, created_at) VALUES (?, ?, ?, ?)",
            (self._wanted.model, dimension, state, self._clock().isoformat()),
        )
        generation = Generation(id=int(written.lastrowid or 0), model=self._wanted.model, dimension=dimension)
        await tx.execute(
            f"CREATE VIRTUAL TABLE {generation.table} "
            f"USING vec0(embedding float[{dimension:d}] distance_metric=cosine, kind text)"
        )
        return generation

    async def _active(self) -> Generation | None:
        row = await self._database.fetch_one("SELECT * FROM generations WHERE state = 'active'")
        return _generation(row) if row else None

    async def _known_vectors(self, generation: Generation, texts: Sequence[str]) -> dict[str, Vectors]:

        known: dict[str, Vectors] = {}
        for text in dict.fromkeys(texts):
            vector = await self._database.fetch_value(
                f"SELECT v.embedding FROM entries e JOIN {generation.table} v ON v.rowid = e.id "
                "WHERE e.text_hash = ? AND e.text = ? LIMIT 1",
                (_hash(text), text),
            )
            if vector is not None:
                known[text] = _as_vector(vector)
        return known

    async def _missing(self, generation: Generation, limit: int) -> list[Any]:
        return await self._database.fetch_all(
            f"SELECT id, kind, text, text_hash FROM entries WHERE id NOT IN (SELECT rowid FROM {generation.table}) "
            "ORDER BY id LIMIT ?",
            (limit,),
        )

    async def _missing_count(self, generation: Generation) -> int:
        return int(
            await self._database.fetch_value(
                f"SELECT count(*) FROM entries WHERE id NOT IN (SELECT rowid FROM {generation.table})"
            )
        )

    async def _count(self) -> int:
        return int(await self._database.fetch_value("SELECT count(*) FROM entries"))


async def embed(embedder: Embedder, texts: Sequence[str], dimension: int | None = None) -> Vectors:
    """The vectors of texts; an embedder from outside may answer anything, and only vectors get past here."""
    import numpy as np

    vectors = np.ascontiguousarray(await embedder.embed(texts), dtype=np.float32)
    right = vectors.ndim == 2 and len(vectors) == len(texts) and vectors.shape[1] == (dimension or vectors.shape[1])
    if not right or not np.isfinite(vectors).all():
        raise EmbedderError(
            f"The embedding model {embedder.model} answered with something that is no embedding. "
            "Check the model, or choose another one."
        )
    return vectors


def _words_table(kind: str) -> str:
    return "episodes_fts" if kind == "episode" else "entries_fts"


def _within(column: str, among: Among | None) -> str:
    return f" AND {column} IN ({among.sql})" if among else ""


def _generation(row: Any) -> Generation:
    return Generation(id=row["id"], model=row["model"], dimension=row["dimension"])


def _as_vector(stored: bytes) -> Vectors:
    import numpy as np

    return np.frombuffer(stored, dtype=np.float32)


def _hash(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()


def stems(text: str, pack: LanguagePack | None, skip: frozenset[str] = frozenset()) -> list[str]:
    """The content words of a text but those to skip, stemmed; of Chinese the characters and their pairs."""
    words = words_of(text)
    function_words = pack.words["function_words"] if pack else frozenset()
    stemmer = pack.stemmer if pack else None
    found: list[str] = []
    for index, word in enumerate(words):
        if _is_han(word):
            after = words[index + 1] if index + 1 < len(words) else ""
            found += [word] if word not in function_words and word not in skip else []
            found += [word + after] if _is_han(after) else []
        elif word not in function_words and word not in skip:
            found.append(_stem(stemmer, word) if stemmer else word)
    return found


def _is_han(word: str) -> bool:
    return "\u3400" <= word[:1] <= "\u9fff" or "\uf900" <= word[:1] <= "\ufaff"


_stemming = threading.Lock()


@lru_cache(maxsize=100_000)  # the same words come again and again, and the stemmers are slow
def _stem(stemmer: str, word: str) -> str:
    with _stemming:  # a stemmer holds the word it is at, and threads share it
        return str(_stemmer(stemmer).stemWord(word))


@cache
def _stemmer(name: str) -> Any:
    import snowballstemmer

    return snowballstemmer.stemmer(name)
