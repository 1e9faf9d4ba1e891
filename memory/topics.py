"""Topic shift (T1, T2): whether a turn opens a new topic, judged online against the running segment.

A raw cosine says little (design, section 5). The chance of a shift is a logistic combination of how near the turn is
to the segment with what people do when they change the subject: they rarely do so when answering a question or
pointing back ("that one", "eso"), and often after a closing ("thanks, bye") or with a request.
"""

import math
from collections.abc import Sequence
from dataclasses import astuple, dataclass

from memory.language import LanguagePack, fold
from memory.limits import Limits
from memory.ports import Vectors
from memory.similarity import Cuts
from memory.stores.index import stems


@dataclass(frozen=True, slots=True, kw_only=True)
class Cues:
    """What is seen of one turn; nearness is 0 for unrelated texts and 0.5 where texts say the same."""

    previous: float  # nearness to the turn before
    before_previous: float  # to the one before that, if it is in the segment
    segment: float  # to the segment as a whole
    nearest: float  # to the nearest turn of the segment
    nearest_by_content: float  # the same, times the share of content words: of a short turn it says little
    shared_words: float  # share of its content words that the segment has
    after_question: float
    question_by_nearness: float
    asks: float
    points_back: float
    after_closing: float
    closes: float
    requests: float
    length: float  # words, in thirties, at most 1
    previous_length: float
    segment_length: float  # turns, in eights, at most 1
    few_words: float  # at most one content word
    new_segment: float  # the segment has one turn only


# Fitted by logistic regression on labelled task and small-talk dialogues (bench/topics.py measures them).
WEIGHTS = Cues(
    previous=-1.42,
    before_previous=-1.19,
    segment=-0.68,
    nearest=-0.54,
    nearest_by_content=-2.3,
    shared_words=-0.81,
    after_question=-0.92,
    question_by_nearness=-0.31,
    asks=0.53,
    points_back=-0.63,
    after_closing=1.43,
    closes=-2.53,
    requests=1.23,
    length=2.49,
    previous_length=1.02,
    segment_length=0.85,
    few_words=-0.75,
    new_segment=-0.86,
)
BIAS = -2.16


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """A turn as topic detection sees it."""

    text: str
    vector: Vectors


def is_explicit(text: str, pack: LanguagePack) -> bool:
    """Whether the user says that they change the subject."""
    return bool(pack.topic_phrases.search(fold(text)))


def shift_chance(new: Said, segment: Sequence[Said], pack: LanguagePack, cuts: Cuts) -> float:
    """The chance, from 0 to 1, that a turn opens a new topic; `segment` is the running one, newest last."""
    cues = _cues(new, segment, pack, cuts)
    total = sum(weight * cue for weight, cue in zip(astuple(WEIGHTS), astuple(cues), strict=True))
    return 1 / (1 + math.exp(-(total + BIAS)))


def domain_changed(new: str, segment: Sequence[Said], pack: LanguagePack, limits: Limits) -> bool:
    """Whether the domain changes and is clear on both sides: several words of one, none of the other."""
    here, there = _domains(new, pack), _domains(" ".join(said.text for said in segment), pack)
    clear_here = [domain for domain, count in here.items() if count >= limits.domain_clear_words]
    clear_there = [domain for domain, count in there.items() if count >= limits.domain_clear_words]
    return (
        len(clear_here) == 1 == len(clear_there)
        and clear_here != clear_there
        and not here[clear_there[0]]
        and not there[clear_here[0]]
    )


def _domains(text: str, pack: LanguagePack) -> dict[str, int]:
    folded = fold(text)
    return {domain: len(pattern.findall(folded)) for domain, pattern in pack.domain_words.items()}


def _cues(new: Said, segment: Sequence[Said], pack: LanguagePack, cuts: Cuts) -> Cues:
    import numpy as np

    def near(vector: Vectors) -> float:
        return (float(vector @ new.vector) - cuts.unrelated) / (cuts.high - cuts.unrelated) / 2

    words = set(stems(new.text, pack))
    segment_words = {stem for said in segment for stem in stems(said.text, pack)}
    content = min(len(words), 10) / 10
    middle = np.mean([said.vector for said in segment], axis=0)
    length = float(np.linalg.norm(middle))
    nearest = max(near(said.vector) for said in segment)
    previous = near(segment[-1].vector)
    after_question = float("?" in segment[-1].text or "？" in segment[-1].text)
    return Cues(
        previous=previous,
        before_previous=near(segment[-2].vector) if len(segment) > 1 else 0.0,
        segment=near(middle / length) if length > 1e-9 else 0.0,
        nearest=nearest,
        nearest_by_content=nearest * content,
        shared_words=len(words & segment_words) / max(1, len(words)),
        after_question=after_question,
        question_by_nearness=after_question * previous,
        asks=float("?" in new.text or "？" in new.text),
        points_back=float(bool(pack.pointers.search(fold(new.text)))),
        after_closing=float(bool(pack.closings.search(fold(segment[-1].text)))),
        closes=float(bool(pack.closings.search(fold(new.text)))),
        requests=float(bool(pack.requests.match(fold(new.text).lstrip()))),
        length=min(_length(new.text), 30) / 30,
        previous_length=min(_length(segment[-1].text), 30) / 30,
        segment_length=min(len(segment), 8) / 8,
        few_words=float(len(words) <= 1),
        new_segment=float(len(segment) == 1),
    )


def _length(text: str) -> int:
    """Words, or for Chinese, which has no spaces, characters by the usual two a word."""
    han = sum("\u3400" <= character <= "\u9fff" for character in text)
    return len(text.split()) + han // 2
