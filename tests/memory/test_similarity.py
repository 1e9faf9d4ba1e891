"""Calibrated similarity: one scale for every model and language (section 5)."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.embeddings import EmbeddedEmbedder
from memory.errors import EmbedderError
from memory.similarity import (
    ANY,
    HIGH,
    LOW,
    Calibration,
    Cuts,
    Floats,
    Pair,
    calibrate,
    calibration_pairs,
    cosines,
    fit,
    read_pairs,
)
from memory.testing import HashEmbedder

KEPT = Path(__file__).with_name("calibration_pairs_kept.jsonl")
LANGUAGES = ("en", "es", "it", "zh")
LABELS = ("same", "related", "unrelated")


@pytest.fixture(scope="module")
def kept_pairs() -> tuple[Pair, ...]:
    return read_pairs(KEPT.read_text("utf-8"))


def cuts() -> st.SearchStrategy[Cuts]:
    """As they are fitted: none too near to the next."""
    three = st.lists(st.floats(-0.98, 0.94), min_size=3, max_size=3).map(sorted)
    return three.map(lambda found: Cuts(unrelated=found[0], low=found[1] + 0.02, high=found[2] + 0.04))


@given(cuts(), st.floats(-1, 1), st.floats(-1, 1))
def test_the_map_is_monotone_and_stays_on_the_scale(cuts: Cuts, first: float, second: float) -> None:
    low, high = sorted((first, second))
    assert 0.0 <= cuts.scale(low) <= cuts.scale(high) <= 1.0


@given(cuts())
def test_the_cuts_become_the_thresholds_of_the_design(cuts: Cuts) -> None:
    assert cuts.scale(cuts.low) == pytest.approx(LOW)
    assert cuts.scale(cuts.high) == pytest.approx(HIGH)
    assert (cuts.scale(-1.0), cuts.scale(1.0)) == (0.0, 1.0)


def made_up(rows: list[tuple[str, float]]) -> tuple[list[Pair], Floats]:
    pairs = [Pair(language="en", label=label, trap=None, a="", b="") for label, _ in rows]  # type: ignore[arg-type]
    return pairs, np.array([cosine for _, cosine in rows])


@given(st.lists(st.tuples(st.sampled_from(LABELS), st.floats(-1, 1)), max_size=60))
def test_whatever_the_cosines_are_the_fitted_cuts_are_in_order(rows: list[tuple[str, float]]) -> None:
    pairs, raw = made_up([*rows, ("same", 0.9), ("related", 0.5), ("unrelated", 0.1)])
    fitted = fit("a model", pairs, raw).cuts["en"]
    assert -1 < fitted.unrelated < fitted.low < fitted.high < 1


@pytest.mark.parametrize("value", [-1.0, 0.0, 0.99, 1.0])
def test_a_model_that_finds_all_texts_alike_still_gets_a_map(value: float) -> None:
    pairs, raw = made_up([(label, value) for label in LABELS for _ in range(10)])
    fitted = fit("a model", pairs, raw)
    assert 0.0 <= fitted(value) <= 1.0


def test_cosines_that_part_the_labels_cleanly_are_parted_cleanly() -> None:
    rows = [("same", 0.9), ("same", 0.95), ("related", 0.6), ("related", 0.65), ("unrelated", 0.1), ("unrelated", 0.2)]
    fitted = fit("a model", *made_up(rows * 10))
    assert all(fitted(cosine, "en") > HIGH for label, cosine in rows if label == "same")
    assert all(LOW < fitted(cosine, "en") < HIGH for label, cosine in rows if label == "related")
    assert all(fitted(cosine, "en") < LOW for label, cosine in rows if label == "unrelated")


def test_a_language_without_pairs_uses_the_map_for_all() -> None:
    scale = Calibration(
        model="m",
        pairs_sha256="",
        cuts={ANY: Cuts(unrelated=0, low=0.3, high=0.6), "en": Cuts(unrelated=0, low=0.5, high=0.8)},
    )
    assert scale(0.6, "sw") == scale(0.6) == pytest.approx(HIGH)
    assert scale(0.6, "en") < HIGH


async def test_a_model_that_answers_nonsense_is_not_calibrated() -> None:
    class Broken(HashEmbedder):
        async def embed(self, texts):  # type: ignore[no-untyped-def]
            return np.full((len(texts), self.dimension), np.nan, dtype=np.float32)

    with pytest.raises(EmbedderError):
        await calibrate(Broken())


# --- on the shipped pairs, and on the half kept apart


def test_the_shipped_and_the_kept_pairs_are_different_ones_in_four_languages(kept_pairs: tuple[Pair, ...]) -> None:
    shipped = {frozenset((pair.a, pair.b)) for pair in calibration_pairs()}
    assert not shipped & {frozenset((pair.a, pair.b)) for pair in kept_pairs}
    for pairs in (calibration_pairs(), kept_pairs):
        assert {(pair.language, pair.label) for pair in pairs} == {
            (language, label) for language in LANGUAGES for label in (*LABELS, "swapped")
        }


async def test_the_fit_covers_every_language_of_the_pairs() -> None:
    fitted = await calibrate(EmbeddedEmbedder())
    assert set(fitted.cuts) == {ANY, *LANGUAGES}
    assert fitted.model == EmbeddedEmbedder().model


def balanced(values: list[tuple[str, float]]) -> float:
    """The mean of two shares: of "same" above 0.85, and of "unrelated" below 0.4."""
    same = [value > HIGH for label, value in values if label == "same"]
    unrelated = [value < LOW for label, value in values if label == "unrelated"]
    return (sum(same) / len(same) + sum(unrelated) / len(unrelated)) / 2


@pytest.mark.parametrize("language", LANGUAGES)
async def test_on_kept_pairs_the_thresholds_hold_far_better_than_for_raw_cosines(
    kept_pairs: tuple[Pair, ...], language: str
) -> None:
    embedder = EmbeddedEmbedder()
    scale = await calibrate(embedder)
    pairs = [pair for pair in kept_pairs if pair.language == language]
    cosine = [float(value) for value in await cosines(pairs, embedder)]
    raw = balanced([(pair.label, value) for pair, value in zip(pairs, cosine, strict=True)])
    calibrated = balanced([(pair.label, scale(value, language)) for pair, value in zip(pairs, cosine, strict=True)])
    assert calibrated - raw >= 0.12  # one pair of the kept half moves it by about 0.02


async def test_a_model_of_another_kind_is_read_on_the_same_scale(kept_pairs: tuple[Pair, ...]) -> None:
    embedder = HashEmbedder(dimension=128)
    scale = await calibrate(embedder)
    raw = await cosines(kept_pairs, embedder)
    as_it_is = [(pair.label, float(cosine)) for pair, cosine in zip(kept_pairs, raw, strict=True)]
    read = [(pair.label, scale(float(cosine), pair.language)) for pair, cosine in zip(kept_pairs, raw, strict=True)]
    assert balanced(read) > balanced(as_it_is) + 0.1  # even words hashed to noise can be read
