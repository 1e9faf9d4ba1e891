"""The calibration is kept with the file and fitted anew when the pairs or the model change."""

from pathlib import Path

import pytest

from memory import Memory
from memory.similarity import calibration_pairs
from memory.stores import calibrations
from memory.testing import FakeClock, HashEmbedder


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ana.db"


def embedded_pairs(embedder: HashEmbedder) -> int:
    """How many texts of the calibration pairs a model was asked for."""
    texts = {text for pair in calibration_pairs() for text in (pair.a, pair.b)}
    return sum(text in texts for text in embedder.embedded)


async def test_the_fitted_scale_is_kept_in_the_file(path: Path) -> None:
    clock = FakeClock()
    async with Memory.open(path, clock=clock, embedder=HashEmbedder()) as memory:
        first = await memory.calibrator.current()
        assert await memory.calibrator.current() is first
    clock.advance(days=1)
    again = HashEmbedder()
    async with Memory.open(path, clock=clock, embedder=again) as memory:
        assert await memory.calibrator.current() == first
        assert (await calibrations.fitted_at(memory.database, again.model)) == FakeClock().now
    assert embedded_pairs(again) == 0


async def test_other_pairs_make_another_fit(path: Path) -> None:
    async with Memory.open(path, embedder=HashEmbedder()) as memory:
        fitted = await memory.calibrator.current()
        async with memory.database.transaction() as tx:  # as an older version with other pairs left it
            await tx.execute("UPDATE calibrations SET pairs_sha256 = 'older', low = 0.9")
    again = HashEmbedder()
    async with Memory.open(path, embedder=again) as memory:
        assert await memory.calibrator.current() == fitted
        rows = await memory.database.fetch_all("SELECT DISTINCT model, pairs_sha256 FROM calibrations")
        assert fitted is not None
        assert [tuple(row) for row in rows] == [(fitted.model, fitted.pairs_sha256)]
    assert embedded_pairs(again) == 2 * len(calibration_pairs())


async def test_another_model_makes_another_fit_when_its_vectors_come_into_force(path: Path) -> None:
    old, new = HashEmbedder("old"), HashEmbedder("new", 48)
    async with Memory.open(path, embedder=old) as memory:
        await memory.facts.add("My cat is called Tom")
        before = await memory.calibrator.current()
    async with Memory.open(path, embedder=new) as memory:
        # the old model is gone, and the new one has no vectors yet
        assert await memory.similarity("my cat", "the cat of mine") == 0.0
        await memory.reembed()
        after = await memory.calibrator.current()
        assert before is not None
        assert after is not None
        assert (before.model, after.model) == (old.model, new.model)
        assert await memory.similarity("my cat", "my cat and me") > 0.4


async def test_a_scale_in_use_follows_a_change_of_model_made_by_another_process(path: Path) -> None:
    old, new = HashEmbedder("old"), HashEmbedder("new", 48)
    async with Memory.open(path, embedder=old) as first:
        await first.facts.add("My cat is called Tom")
        before = await first.calibrator.current()
        async with Memory.open(path, embedder=new) as second:
            await second.reembed()
        assert before is not None
        assert await first.similarity("my cat", "my cats") == 0.0


async def test_equal_texts_are_alike_whatever_the_model(path: Path) -> None:
    async with Memory.open(path, embedder=HashEmbedder()) as memory:
        assert await memory.similarity("qwerty", "qwerty") == 1.0
        assert await memory.similarity("qwerty", "asdf") == await memory.similarity("asdf", "qwerty")


async def test_a_model_that_fails_leaves_the_rest_working_and_is_tried_again(path: Path) -> None:
    embedder = HashEmbedder()
    embedder.fails = True
    async with Memory.open(path, embedder=embedder) as memory:
        session = await memory.open_session()
        turn = await memory.add_turn(session.id, role="user", content="I live in Rome")
        assert [fact.fact for fact in turn.learned] == ["I live in Rome"]
        assert [chosen.fact.id for chosen in await memory.facts.choose("Rome")] == [turn.learned[0].id]
        embedder.fails = False
        assert await memory.reembed() > 0
        assert not await memory.index.needs_reembedding()
        assert await memory.calibrator.current() is not None
