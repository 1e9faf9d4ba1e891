"""What the recall benchmarks share: when evidence counts as covered, and the simple ways to choose raw turns."""

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from memory.embeddings import EmbeddedEmbedder
from memory.language import load_packs
from memory.stores.index import stems
from memory.tokens import count_tokens

COVERED = 0.7  # share of a key sentence's content words that one item must hold


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """A raw turn."""

    speaker: str
    text: str
    day: str = ""


def words(text: str, language: str = "en") -> frozenset[str]:
    """The content words of a text, stemmed."""
    return frozenset(stems(text, load_packs()[language]))


def key_sentence(turn: str, question: str, answer: str, language: str = "en") -> frozenset[str]:
    """The content words of the sentence of a turn that shares most with question and answer."""
    asked = words(f"{question} {answer}", language)
    sentences = [words(text, language) for text in re.split(r"(?<=[.!?])\s+|(?<=[。！？])", turn) if text]
    return max(sentences, key=lambda found: len(found & asked), default=frozenset())


def covers(keys: Sequence[frozenset[str]], items: Sequence[frozenset[str]]) -> bool:
    """Whether each key sentence is held by one item."""
    return all(any(len(key & item) >= COVERED * len(key) for item in items) for key in keys if key)


def fill(order: Sequence[int], tokens: Sequence[int], budget: int) -> list[int]:
    """As many as fit, in that order."""
    chosen, used = [], 0
    for place in order:
        if used + tokens[place] <= budget:
            used += tokens[place]
            chosen.append(place)
    return chosen


class Baselines:
    """Recency, vectors, BM25 and their plain fusion over all raw turns of a dialogue, every one of them kept.

    Each turn has its date before it, without which no "when" could be answered; it costs tokens and is not searched.
    """

    NAMES = ("most recent turns", "vectors", "BM25", "fusion")

    def __init__(self, turns: Sequence[Said]) -> None:
        self._embedder = EmbeddedEmbedder()
        self._texts = [f"{turn.speaker}: {turn.text}" for turn in turns]
        self.tokens = [count_tokens(f"[{turn.day}] {text}") for turn, text in zip(turns, self._texts, strict=True)]
        self.words = [words(text) for text in self._texts]
        self._vectors = self._embedder.embed_now(self._texts)
        self._counts = [Counter(stems(text, load_packs()["en"])) for text in self._texts]
        self._lengths = [sum(count.values()) for count in self._counts]
        self._in = Counter(word for count in self._counts for word in count)

    def orders(self, question: str) -> dict[str, list[int]]:
        """The turns for a question, best first, by each way."""
        meaning = self._sorted([float(value) for value in self._vectors @ self._embedder.embed_now([question])[0]])
        by_words = self._sorted(self._bm25(question))
        ranks = dict.fromkeys(range(len(self._texts)), 0.0)
        for order in (meaning, by_words):
            for rank, place in enumerate(order, 1):
                ranks[place] += 1 / (60 + rank)
        fusion = sorted(ranks, key=lambda place: (-ranks[place], place))
        recent = list(range(len(self._texts) - 1, -1, -1))
        return dict(zip(self.NAMES, (recent, meaning, by_words, fusion), strict=True))

    def _bm25(self, question: str) -> list[float]:
        mean = sum(self._lengths) / max(1, len(self._lengths))
        scores = [0.0] * len(self._texts)
        for word in words(question):
            found = self._in[word]
            weight = math.log(1 + (len(scores) - found + 0.5) / (found + 0.5))
            for place, count in enumerate(self._counts):
                if count[word]:
                    norm = 1.2 * (0.25 + 0.75 * self._lengths[place] / mean)
                    scores[place] += weight * count[word] * 2.2 / (count[word] + norm)
        return scores

    def _sorted(self, scores: Sequence[float]) -> list[int]:
        return [int(place) for place in np.argsort(-np.asarray(scores), kind="stable")]
