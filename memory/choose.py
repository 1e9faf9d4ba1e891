"""Which facts go into a request (F8, F9): pinned ones first, then those the message is about, each with its reason."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from memory.language import LanguagePack, fold
from memory.limits import Limits
from memory.ports import TokenCounter
from memory.signals import is_question
from memory.stores.index import stems
from memory.values import ChosenFact, Fact

_BEAR_ON_ADVICE = ("diet", "allergy", "health", "religion", "dislike", "like")
_DATE_TOKENS = 8
LINE_TOKENS = 2  # what a line of the request costs beside the fact itself: its dash and its end


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A fact that may be relevant, with its calibrated similarity to the message."""

    fact: Fact
    similarity: float
    old: bool = False  # not learnt lately: it is shown with its date


def choose(
    message: str,
    language: str,
    candidates: Sequence[Candidate],
    recent: Sequence[str],
    *,
    packs: Mapping[str, LanguagePack],
    limits: Limits,
    count: TokenCounter,
) -> list[ChosenFact]:
    """The facts for a message, within the budget; `recent` are the last turns sent, whose facts are not repeated."""
    pack = packs[language]
    asked = set(stems(message, pack, pack.words["question_words"] | pack.words["time_words"]))
    domains = {domain for domain, pattern in pack.domain_words.items() if pattern.search(fold(message))}
    advice = is_question(message, pack) and bool(pack.advice.search(fold(message)))
    sent = recent[max(0, len(recent) - limits.fact_repeat_turns) :]
    said = {code: [set(stems(text, packs[code])) for text in sent] for code in packs} if sent else {}
    scored = [
        (score, why, candidate)
        for candidate in candidates
        if candidate.fact.state == "active"
        for score, why in [_relevance(candidate, asked, domains, advice, packs, limits)]
        if why and not _already_said(candidate.fact, said.get(candidate.fact.language, ()), packs)
    ]
    scored.sort(key=lambda item: (-item[2].fact.pinned, -item[0], item[2].fact.id))
    return _within_budget(scored, limits, count)


def _relevance(
    candidate: Candidate,
    asked: set[str],
    domains: set[str],
    advice: bool,
    packs: Mapping[str, LanguagePack],
    limits: Limits,
) -> tuple[float, str]:
    """A score and the reason for it; no reason means that the fact does not apply."""
    fact = candidate.fact
    shared = sorted(asked & set(stems(fact.fact, packs.get(fact.language))))
    similarity = candidate.similarity
    same_domain = fact.domain in domains
    score = similarity + 0.3 * len(shared) + (0.1 if same_domain else 0.0)
    if fact.pinned:
        return score, "pinned"
    if shared:
        return score, "shares the words " + ", ".join(shared)
    if similarity >= limits.fact_relevance:
        return score, f"similar in meaning, {similarity:.2f}"
    if same_domain and similarity >= limits.fact_domain_relevance:
        return score, f"same domain ({fact.domain}) and similar, {similarity:.2f}"
    bears = fact.domain == "preferences" or fact.attribute in _BEAR_ON_ADVICE
    if advice and bears and similarity >= limits.fact_advice_relevance:
        return score, f"bears on what is asked for, {similarity:.2f}"
    return score, ""


def is_said(fact: Fact, lines: Sequence[str], packs: Mapping[str, LanguagePack]) -> bool:
    """Whether one of these lines says a fact."""
    return _already_said(fact, [set(stems(line, packs.get(fact.language))) for line in lines], packs)


def _already_said(fact: Fact, said: Sequence[set[str]], packs: Mapping[str, LanguagePack]) -> bool:
    words = set(stems(fact.fact, packs.get(fact.language)))
    return not fact.pinned and bool(words) and any(words <= turn for turn in said)


def _within_budget(
    scored: Sequence[tuple[float, str, Candidate]], limits: Limits, count: TokenCounter
) -> list[ChosenFact]:
    chosen: list[ChosenFact] = []
    used = pinned_used = 0
    for score, why, candidate in scored:
        fact = candidate.fact
        since = fact.created_at if candidate.old and not fact.pinned else None
        tokens = count(fact.fact) + LINE_TOKENS + (_DATE_TOKENS if since else 0)
        if used + tokens > limits.facts_tokens or (fact.pinned and pinned_used + tokens > limits.pinned_tokens):
            continue
        used += tokens
        pinned_used += tokens if fact.pinned else 0
        chosen.append(ChosenFact(fact=fact, score=round(score, 4), why=why, tokens=tokens, since=since))
    return chosen
