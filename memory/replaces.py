"""Which known fact a new one takes the place of, weighed (F7): for changes told in other words.

No single sign is enough: what both are about, words they share, likeness, whether the new one tells a change, or
says "also". `bench/opinion.py` fits the weights on the written pairs of messages.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache

from memory import opinion
from memory.language import LanguagePack, fold
from memory.values import Fact, FactDraft

SIGNS = (
    "topic", "likeness", "shared", "same attribute", "other attribute", "change", "told change", "replacing",
    "additive", "same slot", "opposite", "given up", "other key", "ruled", "same topic", "strength",
)  # fmt: skip
TOGETHER = (
    ("topic", "strength"), ("likeness", "strength"), ("shared", "strength"), ("same attribute", "strength"),
    ("topic", "additive"), ("shared", "same attribute"),
)  # fmt: skip
_COMMON = frozenset("我的了是在不")


def chances(rows: Sequence[Sequence[float]]) -> list[float] | None:
    """How likely each fact is the one replaced, 0 to 1; None when there are no weights."""
    weights = opinion.stored("replaces")
    if weights is None:
        return None
    bias, *rest = map(float, weights)
    return [opinion.chance(bias + sum(a * b for a, b in zip(rest, row, strict=True))) for row in rows]


def rows(
    draft: FactDraft,
    facts: Sequence[Fact],
    signs: Sequence[Mapping[str, float]],
    packs: Mapping[str, LanguagePack],
) -> list[list[float]]:
    """The signs for each fact as numbers; the last one says how far ahead of the other facts it is."""
    pack = packs[draft.language]
    found = [{**_common(draft, fact, pack, packs), **more} for fact, more in zip(facts, signs, strict=True)]
    for each in found:
        each["strength"] = max(each["change"], 0.8 * each["told change"], 0.6 * each["replacing"])
    nearness = [
        each["topic"] + 0.5 * each["likeness"] + each["shared"] + 0.5 * each["same attribute"] for each in found
    ]
    result = []
    for place, each in enumerate(found):
        others = nearness[:place] + nearness[place + 1 :]
        ahead = nearness[place] - max(others) if others else 0.5
        pairs = [each[first] * each[second] for first, second in TOGETHER]
        result.append([*(each[name] for name in SIGNS), *pairs, max(-1.5, min(1.5, ahead))])
    return result


def tells_change(draft: FactDraft, pack: LanguagePack, surely: float) -> bool:
    """Whether a new fact sounds like a change of something, by its rule or by what the opinion learnt."""
    if draft.kind == "change":
        return True
    return draft.kind != "statement" and _topics(draft.quote, pack).get(opinion.CHANGE, 0.0) >= surely


def about_the_same(draft: FactDraft, fact: Fact, packs: Mapping[str, LanguagePack], surely: float) -> bool:
    """Whether both are surely about one thing: who tells what happened next has not changed what was before."""
    mine = _about(draft.attribute, draft.quote, packs[draft.language], surely)
    return mine != "" and mine == _about(
        fact.attribute, fact.fact, packs.get(fact.language, packs[draft.language]), surely
    )


def _about(attribute: str, text: str, pack: LanguagePack, surely: float) -> str:
    """What a rule says a fact is about; where that may be anything, what the opinion says."""
    if attribute not in _BROAD:
        return attribute
    topics = _topics(text, pack)
    top = _top(text, pack)
    return top if top not in _BROAD and topics.get(top, 0.0) >= surely else ""


_BROAD = frozenset({"", "habit", "like", "dislike", "favourite", "identity", "decision"})


def _common(draft: FactDraft, fact: Fact, pack: LanguagePack, packs: Mapping[str, LanguagePack]) -> dict[str, float]:
    """What the texts themselves tell."""
    whole, part = _topics(draft.quote, pack), _topics(draft.fact, pack)
    their_pack = packs.get(fact.language, pack)
    theirs = _topics(fact.fact, their_pack)
    known = bool(draft.attribute and fact.attribute)
    return {
        "topic": max(_overlap(whole, theirs), _overlap(part, theirs)),
        "same topic": float(bool(theirs) and _top(draft.quote, pack) == _top(fact.fact, their_pack)),
        "change": max(whole.get(opinion.CHANGE, 0.0), part.get(opinion.CHANGE, 0.0)),
        "told change": float(draft.kind == "change"),
        "same attribute": float(known and draft.attribute == fact.attribute),
        "other attribute": float(known and draft.attribute != fact.attribute),
        "other key": float(bool(draft.key and fact.key and draft.key != fact.key)),
    }


def _overlap(first: Mapping[str, float], second: Mapping[str, float]) -> float:
    """What both are about; the topics stand in one order in all of them."""
    shared = sum(map(min, first.values(), second.values()))
    return shared - min(first.get(opinion.CHANGE, 0.0), second.get(opinion.CHANGE, 0.0))


@lru_cache(maxsize=512)
def _top(text: str, pack: LanguagePack) -> str:
    topics = _topics(text, pack)
    return max((name for name in topics if name != opinion.CHANGE), key=lambda name: topics[name], default="")


@lru_cache(maxsize=512)
def _topics(text: str, pack: LanguagePack) -> Mapping[str, float]:
    return opinion.topics(text, pack)


def shared_pairs(first: str, second: str) -> int:
    """Pairs of characters two Chinese texts have in common, but those of the commonest."""
    return len(_pairs(first) & _pairs(second))


def _pairs(text: str) -> set[str]:
    folded = fold(text)
    found = {folded[place : place + 2] for place in range(len(folded) - 1)}
    return {pair for pair in found if pair.isalnum() and not _COMMON & set(pair)}
