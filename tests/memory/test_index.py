"""The search index: words, meaning, removal to the last byte, what is embedded when (C4), and a change of model."""

import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory.database import Database
from memory.errors import EmbedderError
from memory.language import LanguagePack, load_packs
from memory.limits import Limits
from memory.ports import Embedder, Vectors
from memory.stores.index import Entry, Index, embed, stems
from memory.testing import FakeClock, HashEmbedder, start_python


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ana.db"


@asynccontextmanager
async def opened(
    path: Path, embedder: Embedder, *others: Embedder, clock: FakeClock | None = None, batch: int = 256
) -> AsyncIterator[Index]:
    async with Database.open(path) as database:
        yield Index(
            database,
            wanted=embedder,
            embedders=others,
            packs=load_packs(),
            clock=clock or FakeClock(),
            limits=Limits(embed_batch_texts=batch),
        )


def entry(ref: str, text: str, kind: str = "fact", language: str = "en") -> Entry:
    return Entry(kind=kind, ref=ref, text=text, language=language, at=FakeClock().now)


def content(path: Path) -> bytes:
    """All that lies in the folder: the file, its log, copies."""
    return b"".join(file.read_bytes() for file in path.parent.iterdir() if file.is_file())


async def add(index: Index, *entries: Entry) -> None:
    prepared = await index.prepare([found.text for found in entries])
    async with index._database.transaction() as tx:
        await index.add(tx, entries, prepared)


async def remove(index: Index, *refs: str, kind: str = "fact") -> None:
    async with index._database.transaction() as tx:
        await index.remove(tx, kind, refs)


async def by_words(index: Index, query: str, language: str = "en", kinds: tuple[str, ...] = ("fact",)) -> list[str]:
    return [hit.ref for hit in await index.by_words(query, language, kinds, 10)]


async def by_meaning(index: Index, query: str, kinds: tuple[str, ...] = ("fact",), limit: int = 10) -> list[str]:
    return [hit.ref for hit in await index.by_meaning(await index.query_vector(query), kinds, limit)]


async def vectors_of(index: Index) -> dict[str, bytes]:
    """The vectors in force by ref; an entry without one is not there."""
    generation = await index._active()
    assert generation is not None
    rows = await index._database.fetch_all(
        f"SELECT e.ref, v.embedding FROM entries e JOIN {generation.table} v ON v.rowid = e.id"
    )
    return {row["ref"]: row["embedding"] for row in rows}


# --- words


@pytest.mark.parametrize(
    ("language", "text", "query"),
    [
        ("en", "I was running three marathons", "who runs a marathon?"),
        ("en", "My naïve café order", "naive cafe"),
        ("es", "Me gustan las canciones de niños", "cancion de nino"),
        ("es", "Vivo en Málaga", "MALAGA"),
        ("it", "Perché le città sono grandi", "citta grande"),
        ("zh", "我喜欢喝咖啡", "咖啡"),
        ("zh", "我喜歡喝咖啡", "我喜欢"),
        ("zh", "我在北京工作", "北京的天气"),
    ],
)
async def test_texts_are_found_by_their_words_in_any_form(path: Path, language: str, text: str, query: str) -> None:
    if language not in load_packs():
        pytest.skip(f"no pack for {language} yet")
    async with opened(path, HashEmbedder()) as index:
        await add(index, entry("f1", text, language=language), entry("f2", "zzz qqq", language=language))
        assert await by_words(index, query, language) == ["f1"]


async def test_the_text_that_shares_more_words_comes_first(path: Path) -> None:
    async with opened(path, HashEmbedder()) as index:
        await add(index, entry("f1", "a red car"), entry("f2", "a red bicycle"), entry("f3", "a green tree"))
        assert await by_words(index, "red bicycle") == ["f2", "f1"]


async def test_a_language_without_a_pack_is_searched_by_its_bare_words(path: Path) -> None:
    async with opened(path, HashEmbedder()) as index:
        await add(index, entry("f1", "ninapenda kahawa", language="sw"))
        assert await by_words(index, "kahawa", "sw") == ["f1"]


async def test_a_query_without_words_or_kinds_finds_nothing(path: Path) -> None:
    async with opened(path, HashEmbedder()) as index:
        await add(index, entry("f1", "a red car"))
        assert await by_words(index, "?!") == []
        assert await by_words(index, "") == []
        assert await by_words(index, "red", kinds=()) == []
        assert await by_meaning(index, "red", kinds=()) == []


async def test_any_query_can_be_asked(path: Path) -> None:
    async with opened(path, HashEmbedder()) as index:
        await add(index, entry("f1", 'NEAR "red" AND (car* OR x:y) ^z'))
        for query in ['"', "red AND", "NEAR(red, 2)", "stems:red", "red*", "a\0b", "²³ ½", "ʰ 𝒳", "''", ") OR ("]:
            await by_words(index, query)

        @settings(max_examples=100, deadline=None)
        @given(st.text(max_size=20))
        def words_are_harmless(query: str) -> None:
            assert all(stems(query, pack) is not None for pack in load_packs().values())

        words_are_harmless()
        assert await by_words(index, "Near red") == ["f1"]


# --- meaning


async def test_texts_are_found_by_meaning_nearest_first(path: Path) -> None:
    async with opened(path, HashEmbedder()) as index:
        await add(index, entry("f1", "alpha beta gamma"), entry("f2", "alpha beta"), entry("f3", "delta"))
        hits = await index.by_meaning(await index.query_vector("alpha beta"), ["fact"], 2)
        assert [hit.ref for hit in hits] == ["f2", "f1"]
        assert hits[0].score == pytest.approx(1.0, abs=1e-5)


async def test_only_the_kinds_asked_for_are_found(path: Path) -> None:
    async with opened(path, HashEmbedder()) as index:
        await add(index, entry("1", "red car"), entry("1", "red car", kind="a kind with a long name"))
        for kinds, expected in ((("fact",), 1), (("a kind with a long name",), 1), (("fact", "x"), 1), (("x",), 0)):
            assert len(await by_words(index, "red", kinds=kinds)) == expected
            assert len(await by_meaning(index, "red", kinds=kinds)) == expected
        both = ("fact", "a kind with a long name")
        assert len(await by_words(index, "red", kinds=both)) == len(await by_meaning(index, "red", kinds=both)) == 2


# --- replacing and removing


async def test_an_entry_with_the_same_kind_and_ref_is_replaced(path: Path) -> None:
    async with opened(path, HashEmbedder()) as index:
        await add(index, entry("f1", "red car"), entry("f2", "blue car"))
        await add(index, entry("f1", "green bicycle"))
        assert await by_words(index, "red") == []
        assert await by_words(index, "bicycles") == ["f1"]
        assert (await by_meaning(index, "green bicycle"))[0] == "f1"
        assert len(await vectors_of(index)) == 2


async def test_a_removed_entry_leaves_no_byte_in_the_file(path: Path) -> None:
    embedder = HashEmbedder(dimension=64)
    text = "Zyxwvut quibbled marvellously"
    async with opened(path, embedder) as index:
        others = [entry(f"f{number}", f"another text number {number}") for number in range(40)]
        await add(index, *others[:20], entry("gone", text), *others[20:])
        vector = (await embed(embedder, [text]))[0].tobytes()
        traces = [text.encode(), vector, vector[:32], vector[-32:]]
        traces += [stem.encode() for stem in stems(text, load_packs()["en"])]
        await index._database.checkpoint()
        assert all(trace in content(path) for trace in traces)
        await remove(index, "gone")
        assert await index._database.checkpoint()
        assert [trace for trace in traces if trace in content(path)] == []
        assert (await by_words(index, text), len(await vectors_of(index))) == ([], 40)


async def test_removing_what_is_not_there_is_no_error(path: Path) -> None:
    async with opened(path, HashEmbedder()) as index:
        await remove(index, "f1")
        await add(index, entry("f1", "red"))
        await remove(index, "f1", "f1", "f2")
        assert await by_words(index, "red") == []


# --- what is embedded when (C4)


async def test_c4_the_text_of_a_stored_row_is_embedded_once(path: Path) -> None:
    embedder = HashEmbedder()
    async with opened(path, embedder) as index:
        await add(index, entry("f1", "red car"), entry("f2", "red car"))
        await add(index, entry("f3", "red car"), entry("f4", "blue car"))
        assert sorted(embedder.embedded) == ["blue car", "red car"]
    again = HashEmbedder()
    async with opened(path, again) as index:
        await add(index, entry("f5", "red car"))
        vectors = await vectors_of(index)
    assert again.embedded == []
    assert vectors["f1"] == vectors["f2"] == vectors["f3"] == vectors["f5"] != vectors["f4"]


async def test_c4_a_query_is_embedded_once_in_24_hours_and_again_after(path: Path) -> None:
    clock, embedder = FakeClock(), HashEmbedder()
    async with opened(path, embedder, clock=clock) as index:
        first = await index.query_vector("where is my car?")
        clock.advance(hours=24, microseconds=-1)
        assert np.array_equal(await index.query_vector("where is my car?"), first)
        assert len(embedder.embedded) == 1
        clock.advance(microseconds=1)
        assert np.array_equal(await index.query_vector("where is my car?"), first)
        assert len(embedder.embedded) == 2


async def test_c4_query_vectors_outlive_the_process_for_their_day_and_no_longer(path: Path) -> None:
    clock = FakeClock()
    async with opened(path, HashEmbedder(), clock=clock) as index:
        first = await index.query_vector("where is my car?")
        await index.keep_queries()
    clock.advance(hours=23)
    later = HashEmbedder()
    async with opened(path, later, clock=clock) as index:
        assert np.array_equal(await index.query_vector("where is my car?"), first)
        assert later.embedded == []
        clock.advance(hours=1)
        await index.keep_queries()
        assert await index._database.fetch_value("SELECT count(*) FROM query_embeddings") == 0


async def test_forgotten_queries_are_gone_from_memory_and_file(path: Path) -> None:
    embedder = HashEmbedder()
    async with opened(path, embedder) as index:
        await index.query_vector("one")
        await index.keep_queries()
        await index.query_vector("two")
        async with index._database.transaction() as tx:
            await index.forget_queries(tx)
        await index.keep_queries()
        assert await index._database.fetch_value("SELECT count(*) FROM query_embeddings") == 0
        await index.query_vector("one")
        await index.query_vector("two")
        assert embedder.embedded == ["one", "two", "one", "two"]


# --- a change of model

OLD, NEW = ("old", 32), ("new", 48)


async def filled(path: Path, count: int = 30) -> None:
    async with opened(path, HashEmbedder(*OLD)) as index:
        await add(index, *(entry(f"f{number}", f"text number {number}") for number in range(count)))


async def test_after_a_change_of_model_the_old_vectors_stay_in_force_until_the_new_ones_are_complete(
    path: Path,
) -> None:
    await filled(path)
    old, new = HashEmbedder(*OLD), HashEmbedder(*NEW)
    async with opened(path, new, old, batch=7) as index:
        assert await index.needs_reembedding()
        seen: list[tuple[int, int]] = []
        found: list[str] = []

        class Watching(HashEmbedder):
            async def embed(self, texts):  # type: ignore[no-untyped-def]
                found.append(await index.model())
                assert (await by_meaning(index, "text number 7"))[0] == "f7"
                return await super().embed(texts)

        index._wanted = Watching(*NEW)
        assert await index.reembed(lambda done, total: seen.append((done, total))) == 30
        assert set(found) == {old.model}
        assert seen == [(7, 30), (14, 30), (21, 30), (28, 30), (30, 30)]
        assert await index.model() == new.model
        assert not await index.needs_reembedding()
        assert {len(vector) for vector in (await vectors_of(index)).values()} == {4 * 48}
        assert (await by_meaning(index, "text number 7"))[0] == "f7"
        generations = await index._database.fetch_all("SELECT name FROM sqlite_master WHERE name GLOB 'vectors_[0-9]'")
        assert len(generations) == 1


async def test_entries_added_replaced_and_removed_during_a_change_of_model_are_right_in_the_end(path: Path) -> None:
    await filled(path)
    old = HashEmbedder(*OLD)
    changes = [
        lambda index: add(index, entry("f99", "a new text")),
        lambda index: remove(index, "f2", "f20"),
        lambda index: add(index, entry("f1", "first text, replaced"), entry("f25", "later text, replaced")),
    ]

    class Meanwhile(HashEmbedder):
        async def embed(self, texts: list[str]) -> Vectors:  # type: ignore[override]
            vectors = await super().embed(texts)
            if changes and len(texts) > 1:
                await changes.pop()(index)
            return vectors

    new = Meanwhile(*NEW)
    async with opened(path, new, old, batch=8) as index:
        await index.reembed()
        assert not changes
        texts = {row["ref"]: row["text"] for row in await index._database.fetch_all("SELECT ref, text FROM entries")}
        expected = await embed(HashEmbedder(*NEW), list(texts.values()))
        assert await vectors_of(index) == dict(zip(texts, (row.tobytes() for row in expected), strict=True))
        assert texts["f1"] == "first text, replaced"
        assert "f99" in texts
        assert not {"f2", "f20"} & set(texts)


REEMBED = """
import asyncio, sys
sys.path.insert(0, sys.argv[2])
from memory.database import Database
from memory.language import load_packs
from memory.limits import Limits
from memory.stores.index import Index
from memory.testing import FakeClock, HashEmbedder

def report(done, total):
    print(done, flush=True)
    if done >= 10:
        sys.stdin.read()  # until it is killed

async def main():
    async with Database.open(sys.argv[1]) as database:
        index = Index(database, wanted=HashEmbedder("new", 48), embedders=[HashEmbedder("old", 32)],
                      packs=load_packs(), clock=FakeClock(), limits=Limits(embed_batch_texts=5))
        await index.reembed(report)

asyncio.run(main())
"""


async def test_a_reembedding_killed_half_way_goes_on_with_the_rest(path: Path) -> None:
    await filled(path)
    with start_python(REEMBED, path, Path(__file__).parents[2]) as process:
        assert process.stdout is not None
        assert [process.stdout.readline() for _ in range(2)] == ["5\n", "10\n"]
        process.send_signal(signal.SIGKILL)
    old, new = HashEmbedder(*OLD), HashEmbedder(*NEW)
    async with opened(path, new, old, batch=5) as index:
        assert await index.model() == old.model
        assert (await by_meaning(index, "text number 7"))[0] == "f7"
        assert await index.reembed() == 20
        assert len([text for text in new.embedded if text.startswith("text number")]) == 20
        assert len(await vectors_of(index)) == 30


def cut_off(done: int, _: int) -> None:
    if done >= 10:
        raise ZeroDivisionError


async def test_a_third_model_drops_what_the_second_had_begun(path: Path) -> None:
    await filled(path)
    old, second, third = HashEmbedder(*OLD), HashEmbedder(*NEW), HashEmbedder("third", 16)
    async with opened(path, second, old, batch=5) as index:
        with pytest.raises(ZeroDivisionError):
            await index.reembed(cut_off)
    async with opened(path, third, old) as index:
        assert await index.reembed() == 30
        assert {len(vector) for vector in (await vectors_of(index)).values()} == {4 * 16}
        assert await index._database.fetch_value("SELECT count(*) FROM generations") == 1


async def test_a_model_that_is_gone_leaves_word_search_working(path: Path) -> None:
    await filled(path)
    async with opened(path, HashEmbedder(*NEW)) as index:
        assert await index.query_vector("number") is None
        assert await by_meaning(index, "number") == []
        assert len(await by_words(index, "number")) == 10
        await add(index, entry("f99", "a red bicycle"))
        assert await by_words(index, "bicycle") == ["f99"]
        assert await index.reembed() == 31
        assert (await by_meaning(index, "red bicycle"))[0] == "f99"


class Odd(HashEmbedder):
    """Answers with what it was given."""

    def __init__(self, answer: object) -> None:
        super().__init__()
        self.answer = answer

    async def embed(self, texts):  # type: ignore[no-untyped-def] # noqa: ARG002 (whatever it is asked)
        return self.answer


@pytest.mark.parametrize(
    "answer",
    [np.ones(4), np.ones((2, 4)), np.full((1, 4), np.nan), np.full((1, 4), np.inf), np.ones((1, 2, 2))],
    ids=["one row", "too many rows", "not a number", "infinite", "a cube"],
)
async def test_an_answer_that_is_no_embedding_is_refused_and_the_text_stored_with_its_words(
    path: Path, answer: object
) -> None:
    with pytest.raises(EmbedderError, match="no embedding"):
        await embed(Odd(answer), ["text"])
    async with opened(path, Odd(answer)) as index:
        await add(index, entry("f1", "red car"))
        assert await by_words(index, "red") == ["f1"]
        assert await index.query_vector("red") is None
        assert await index.needs_reembedding()


async def test_vectors_of_another_precision_are_converted(path: Path) -> None:
    async with opened(path, Odd(np.array([[0.6, 0.8]], dtype=np.float64))) as index:
        await add(index, entry("f1", "red car"))
        assert await by_meaning(index, "red car") == ["f1"]


async def test_a_model_that_fails_leaves_texts_findable_by_words_and_the_gap_is_filled_later(path: Path) -> None:
    embedder = HashEmbedder()
    async with opened(path, embedder) as index:
        await add(index, entry("f1", "red car"))
        embedder.fails = True
        await add(index, entry("f2", "blue car"))
        assert await by_words(index, "blue") == ["f2"]
        assert await by_meaning(index, "blue car") == []
        assert await index.needs_reembedding()
        embedder.fails = False
        assert await index.reembed() == 1
        assert (await by_meaning(index, "blue car"))[0] == "f2"


# --- stems


def pack(code: str) -> LanguagePack:
    return load_packs()[code]


def test_stems_are_words_without_function_words_and_endings() -> None:
    assert stems("The runners were running", pack("en")) == ["runner", "run"]
    assert stems("The runners were running", None) == ["the", "runners", "were", "running"]


def test_words_to_skip_are_skipped_before_they_are_stemmed() -> None:
    assert stems("why switching?", pack("en"), frozenset({"why", "switching"})) == []


def test_chinese_is_found_by_characters_and_their_pairs() -> None:
    assert stems("咖啡 tea", None) == ["咖", "咖啡", "啡", "tea"]
