"""Calibrated similarity: cosines of any embedding model on one scale from 0 to 1 (design, section 5).

Raw cosines mean something else for every model and every language. A labelled set of pairs is embedded once per
model, and three cosines per language are fitted from it: the typical one of unrelated texts, the one that best parts
unrelated texts from the rest, and the one that best parts texts that say the same from the rest. They become 0.2,
0.4 and 0.85; in between the map is linear, so it is monotone.
"""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any, Literal

from memory.errors import EmbedderError
from memory.ports import Embedder

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
else:
    Floats = Any

ANY = "*"  # the map for a pair of two languages, or of one that has no pairs
TYPICAL_UNRELATED, LOW, HIGH = 0.2, 0.4, 0.85
_LEAST_GAP = 0.02

Label = Literal["same", "related", "unrelated", "swapped"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """Two texts and how alike they are; trap says what was swapped between texts that only look the same."""

    language: str
    label: Label
    trap: str | None
    a: str
    b: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Cuts:
    """Three cosines of one model in one language."""

    unrelated: float
    low: float
    high: float

    def scale(self, cosine: float) -> float:
        """The place of a cosine on the common scale."""
        import numpy as np

        points = (-1.0, self.unrelated, self.low, self.high, 1.0)
        return float(np.interp(cosine, points, (0.0, TYPICAL_UNRELATED, LOW, HIGH, 1.0)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """How one embedding model is read."""

    model: str
    pairs_sha256: str
    cuts: dict[str, Cuts]

    def __call__(self, cosine: float, language: str = ANY) -> float:
        """The calibrated similarity of two texts of a language."""
        return self.cuts.get(language, self.cuts[ANY]).scale(cosine)


@cache
def calibration_pairs() -> tuple[Pair, ...]:
    """The shipped labelled pairs that maps are fitted on."""
    return read_pairs(_pairs_text())


def read_pairs(text: str) -> tuple[Pair, ...]:
    """Pairs from JSON lines."""
    return tuple(Pair(**json.loads(line)) for line in text.splitlines() if line.strip())


@cache
def pairs_sha256() -> str:
    """Which set of pairs a map was fitted on."""
    return hashlib.sha256(_pairs_text().encode()).hexdigest()


@cache
def _pairs_text() -> str:
    return resources.files("memory").joinpath("calibration_pairs.jsonl").read_text("utf-8")


async def cosines(pairs: Sequence[Pair], embedder: Embedder) -> Floats:
    """The raw cosine of each pair."""
    import numpy as np

    first = await embedder.embed([pair.a for pair in pairs])
    second = await embedder.embed([pair.b for pair in pairs])
    raw = np.asarray((first * second).sum(axis=1), dtype=np.float64)
    if not np.isfinite(raw).all():
        raise EmbedderError(f"The embedding model {embedder.model} answered with something that is no embedding.")
    return raw


async def calibrate(embedder: Embedder) -> Calibration:
    """Fits the maps of a model on the shipped pairs."""
    pairs = calibration_pairs()
    return fit(embedder.model, pairs, await cosines(pairs, embedder))


def fit(model: str, pairs: Sequence[Pair], raw: Floats) -> Calibration:
    """The maps of a model, one per language of the pairs and one for all."""
    languages = sorted({pair.language for pair in pairs})
    cuts = {ANY: _cuts(pairs, raw)}
    for language in languages:
        mine = [index for index, pair in enumerate(pairs) if pair.language == language]
        cuts[language] = _cuts([pairs[index] for index in mine], raw[mine])
    return Calibration(model=model, pairs_sha256=pairs_sha256(), cuts=cuts)


def _cuts(pairs: Sequence[Pair], raw: Floats) -> Cuts:
    import numpy as np

    by_label: dict[str, Floats] = {
        label: raw[[index for index, pair in enumerate(pairs) if pair.label == label]]
        for label in ("same", "related", "unrelated")
    }
    same, related, unrelated = by_label["same"], by_label["related"], by_label["unrelated"]
    low = _parting(np.concatenate([same, related]), unrelated)
    high = max(_parting(same, np.concatenate([related, unrelated])), low + _LEAST_GAP)
    typical = min(float(np.median(unrelated)), low - _LEAST_GAP)
    return Cuts(
        unrelated=float(np.clip(typical, -0.98, 0.94)),
        low=float(np.clip(low, -0.96, 0.96)),
        high=float(np.clip(high, -0.94, 0.98)),
    )


def _parting(above: Floats, below: Floats) -> float:
    """Where a logistic curve that weighs both sides alike crosses one half."""
    import numpy as np

    x = np.concatenate([above, below])
    wanted = np.concatenate([np.ones(len(above)), np.zeros(len(below))])
    weight = np.concatenate([np.full(len(above), 0.5 / len(above)), np.full(len(below), 0.5 / len(below))]) * len(x)
    design = np.column_stack([x, np.ones(len(x))])
    slope_and_bias = np.zeros(2)
    for _ in range(50):
        chance = 1 / (1 + np.exp(-design @ slope_and_bias))
        gradient = design.T @ (weight * (wanted - chance)) - 1e-3 * slope_and_bias
        curvature = (design * (weight * chance * (1 - chance))[:, None]).T @ design + 1e-3 * np.eye(2)
        slope_and_bias += np.linalg.solve(curvature, gradient)
    slope, bias = slope_and_bias
    if slope <= 0:  # an embedder that knows nothing of this language
        return float((above.mean() + below.mean()) / 2)
    return float(-bias / slope)
