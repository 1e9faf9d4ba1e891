"""The embedded embedder: offline, unit vectors for whatever text, off the event loop."""

import asyncio
import threading
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory.database import Database
from memory.embeddings import DIMENSION, EmbeddedEmbedder, unit_length
from memory.language import LanguagePack, load_packs
from memory.limits import Limits
from memory.testing import start_python

OFFLINE = """
import asyncio, socket
def refuse(*arguments, **options):
    raise AssertionError("a socket was opened")
real = socket.socket
class Refused(real):
    def connect(self, *arguments):
        refuse()
    connect_ex = sendto = connect
socket.socket = Refused
socket.create_connection = socket.getaddrinfo = refuse
from memory.embeddings import EmbeddedEmbedder
print(asyncio.run(EmbeddedEmbedder().embed(["hello world"])).shape)
"""


@pytest.fixture(scope="module")
def embedder() -> EmbeddedEmbedder:
    return EmbeddedEmbedder()


def test_it_opens_no_connection() -> None:
    with start_python(OFFLINE, HF_HUB_OFFLINE="0") as process:
        out, errors = process.communicate()
    assert (out.strip(), errors) == (f"(1, {DIMENSION})", "")


@settings(max_examples=50)
@given(st.lists(st.text(st.characters(exclude_categories=())), max_size=5))
def test_every_text_has_a_vector_of_unit_length(embedder: EmbeddedEmbedder, texts: list[str]) -> None:
    vectors = embedder.embed_now(texts)
    assert vectors.shape == (len(texts), DIMENSION)
    assert vectors.dtype == np.float32
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1.0, atol=1e-5)


@pytest.mark.parametrize(
    "text", ["", " ", "\n\t ", "\0", "\ud83d", "?!", "😀", "the", "x" * 1_000_000, "word " * 200_000, "中" * 300_000]
)
async def test_odd_texts_have_a_vector_of_unit_length(embedder: EmbeddedEmbedder, text: str) -> None:
    vectors = await embedder.embed([text])
    assert np.isfinite(vectors).all()
    assert np.linalg.norm(vectors[0]) == pytest.approx(1.0, abs=1e-5)


async def test_of_a_long_text_only_the_beginning_is_embedded() -> None:
    short = EmbeddedEmbedder(limits=Limits(embed_max_tokens=4))
    vectors = await short.embed(["red green blue yellow", "red green blue yellow " + "bicycle " * 1000])
    assert np.allclose(vectors[0], vectors[1])


async def test_the_vector_of_a_text_does_not_depend_on_its_company(embedder: EmbeddedEmbedder) -> None:
    alone = await embedder.embed(["I live in Rome"])
    among = await embedder.embed(["x", "I live in Rome", "something much longer than the other texts of this batch"])
    assert np.allclose(alone[0], among[1], atol=1e-6)


async def test_what_means_the_same_is_nearer_than_what_does_not(embedder: EmbeddedEmbedder) -> None:
    first, second, other = await embedder.embed(["my dog is ill", "the puppy is sick", "stock prices fell in Tokyo"])
    assert first @ second > first @ other


async def test_accents_typed_in_two_ways_make_one_vector(embedder: EmbeddedEmbedder) -> None:
    composed, decomposed = await embedder.embed(["caf\u00e9 m\u00fasica", "cafe\u0301 mu\u0301sica"])
    assert np.allclose(composed, decomposed)


def test_a_row_of_nothing_or_of_nonsense_still_gets_unit_length() -> None:
    rows = np.array([[0, 0, 0], [np.nan, np.inf, 0], [3, 4, 0]], dtype=np.float32)
    assert np.allclose(np.linalg.norm(unit_length(rows), axis=1), 1.0)


def test_the_model_is_loaded_and_used_off_the_event_loop() -> None:
    script = """
import asyncio, threading
from memory import embeddings

async def main():
    ticks = 0
    done = asyncio.Event()
    async def tick():
        nonlocal ticks
        while not done.is_set():
            ticks += 1
            await asyncio.sleep(0)
    ticking = asyncio.create_task(tick())
    await asyncio.sleep(0)
    before = ticks
    await embeddings.EmbeddedEmbedder().embed(["hello"] * 100)
    during = ticks - before
    done.set()
    await ticking
    print(during)

asyncio.run(main())
"""
    with start_python(script) as process:
        out, errors = process.communicate()
    assert errors == ""
    assert int(out) > 10  # loading takes many times as long as a turn of an idle loop


async def test_many_callers_at_once_load_the_model_once_and_agree(embedder: EmbeddedEmbedder) -> None:
    answers = await asyncio.gather(*(embedder.embed(["I live in Rome"]) for _ in range(8)))
    assert all(np.array_equal(answers[0], answer) for answer in answers)
    assert threading.active_count() < 100


async def test_embedding_inside_a_transaction_is_an_error(embedder: EmbeddedEmbedder, tmp_path: object) -> None:
    async with Database.open(f"{tmp_path}/ana.db") as database, database.transaction():
        with pytest.raises(RuntimeError, match="inside a transaction"):
            await embedder.embed(["hello"])


def with_function_words(pack: LanguagePack, *words: str) -> LanguagePack:
    source = {**pack._source, "words": {**pack._source["words"]}}
    source["words"]["function_words"] = [*source["words"]["function_words"], *words]
    return LanguagePack(source, "a test")


def test_the_name_of_the_model_changes_with_the_function_words(embedder: EmbeddedEmbedder) -> None:
    packs = load_packs()
    other = EmbeddedEmbedder({**packs, "en": with_function_words(packs["en"], "gizmo")})
    assert other.model != embedder.model
    assert EmbeddedEmbedder(packs).model == embedder.model
    assert EmbeddedEmbedder(dict(reversed(packs.items()))).model == embedder.model


async def test_function_words_do_not_count_but_negations_do(embedder: EmbeddedEmbedder) -> None:
    bare, dressed, negated = await embedder.embed(["coffee", "the coffee", "not coffee"])
    assert np.allclose(bare, dressed)
    assert not np.allclose(bare, negated)


def test_texts_are_not_kept_by_the_tokenizer():
    """It takes each for one word, and has a store of words: 2.7 KB of memory for every text that was ever embedded."""
    statm = Path("/proc/self/statm")
    if not statm.exists():
        pytest.skip("this system does not tell how much memory a process has")
    embedder = EmbeddedEmbedder()
    texts = [f"note {number}, about trains, tea and the harbour in town {number * 7}" for number in range(8000)]
    embedder.embed_now(texts[:2000])
    before = int(statm.read_text().split()[1])
    for start in range(2000, 8000, 100):
        embedder.embed_now(texts[start : start + 100])
    assert (int(statm.read_text().split()[1]) - before) * 4096 < 6_000_000  # kept they would have 12 MB and more
