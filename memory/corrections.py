"""What a new fact does to those already known (F6, F7): confirms one, supersedes some, is unclear, or joins them."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache

from memory import replaces
from memory.language import LanguagePack, fold, words_of
from memory.limits import Limits
from memory.stores.index import stems
from memory.values import Fact, FactDraft


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """A fact that may be concerned, and its calibrated similarity with the new one."""

    fact: Fact
    similarity: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What is to be done with a new fact; nothing set means: store it beside the others."""

    confirms: Fact | None = None
    supersedes: tuple[Fact, ...] = ()
    unclear: tuple[Fact, ...] = field(default=())
    weighed: bool = False  # superseded on weighed signs, not because it holds the same slot


def judge(draft: FactDraft, known: Sequence[Known], packs: Mapping[str, LanguagePack], limits: Limits) -> Verdict:
    """Compares a draft with the current facts nearest to it; the clearest relation wins."""
    for entry in known:
        if says_the_same(draft, entry.fact, packs):
            return Verdict(confirms=entry.fact)
    pack = packs[draft.language]
    said_so = _has_word(draft.quote, pack, "replacing")
    ruled = by_rules(draft, known, packs, limits)
    chances = replaces.chances(signs(draft, known, ruled, packs))
    if not chances:
        return ruled
    best = max(range(len(chances)), key=lambda place: (chances[place], known[place].fact.id))
    if ruled.supersedes:
        kept = tuple(
            entry.fact
            for entry, chance in zip(known, chances, strict=True)
            if entry.fact in ruled.supersedes and (not ruled.weighed or chance >= limits.fact_replaces_chance_ruled)
        )
        if kept:
            return Verdict(supersedes=kept, weighed=ruled.weighed)
    told = said_so or replaces.tells_change(draft, pack, limits.fact_opinion_change)
    rival = max((chance for place, chance in enumerate(chances) if place != best), default=0.0)
    if told and chances[best] >= limits.fact_replaces_chance:
        if not replaces.about_the_same(draft, known[best].fact, packs, limits.fact_opinion_topic):
            return Verdict(unclear=ruled.unclear)
        fact = known[best].fact
        clear = rival <= chances[best] * limits.fact_replaces_rival
        return Verdict(supersedes=(fact,), weighed=True) if clear else Verdict(unclear=(fact,))
    return Verdict(unclear=ruled.unclear or ruled.supersedes[:1])


def signs(
    draft: FactDraft, known: Sequence[Known], ruled: Verdict, packs: Mapping[str, LanguagePack]
) -> list[list[float]]:
    """What speaks for and against each known fact being replaced, as numbers."""
    pack = packs[draft.language]
    mine = set(_content(draft.quote, pack))
    replacing, additive = _has_word(draft.quote, pack, "replacing"), _has_word(draft.quote, pack, "additive")
    found = []
    for entry in known:
        fact = entry.fact
        shared = len(mine & set(_content(fact.fact, packs.get(fact.language))))
        if pack.script == "han":
            shared = replaces.shared_pairs(draft.quote, fact.fact)
        found.append(
            {
                "likeness": entry.similarity,
                "shared": min(shared, 2) / 2,
                "replacing": float(replacing),
                "additive": float(additive),
                "same slot": float(_same_slot(draft, fact)),
                "opposite": float(bool(draft.polarity) and draft.polarity == -fact.polarity),
                "given up": float(_is_given_up(draft, fact, packs)),
                "ruled": float(fact in ruled.supersedes),
            }
        )
    return replaces.rows(draft, [entry.fact for entry in known], found, packs)


def by_rules(draft: FactDraft, known: Sequence[Known], packs: Mapping[str, LanguagePack], limits: Limits) -> Verdict:
    """What the attributes of the rules alone say."""
    pack = packs[draft.language]
    mine = set(_content(draft.fact, pack))
    said_so = _has_word(draft.quote, pack, "replacing")
    replacing = draft.kind == "change" or said_so
    facts = [entry.fact for entry in known]
    gone = [fact for fact in facts if _is_given_up(draft, fact, packs)]
    if not gone and draft.kind != "change" and _has_word(draft.fact, pack, "additive"):
        return Verdict()
    gone = gone or [fact for fact in facts if _same_slot(draft, fact) and (replacing or not _other_facet(draft, fact))]
    gone = gone or [fact for fact in facts if _opposite(draft, mine, fact, packs)]
    if gone:
        return Verdict(supersedes=tuple(gone))
    if replacing and draft.kind in ("change", "decision", "instruction") and draft.attribute:
        clear = said_so or draft.attribute not in _SEVERAL
        changed = _changed(draft, mine, known, packs, limits) if clear else Verdict()
        return replace(changed, weighed=bool(changed.supersedes))
    likely = _by_likeness(draft, mine, known, packs, limits, replacing=replacing)
    return replace(likely, weighed=bool(likely.supersedes))


# of these one has several: a new one takes nobody's place unless the user says so
_SEVERAL = frozenset({"pet", "child", "family", "allergy", "health", "spoken language", "project"})


def _changed(
    draft: FactDraft, mine: set[str], known: Sequence[Known], packs: Mapping[str, LanguagePack], limits: Limits
) -> Verdict:
    """A change of something one has several of: the fact about it that is clearly the nearest gives way."""
    same = [
        entry
        for entry in known
        if entry.fact.attribute == draft.attribute and (not draft.key or entry.fact.key in ("", draft.key))
    ]
    scored = sorted(
        ((entry.similarity + _SHARED * _shares(mine, entry.fact, packs), entry.fact) for entry in same),
        key=lambda pair: (-pair[0], pair[1].id),
    )
    if not scored or (draft.kind != "change" and scored[0][0] < limits.fact_changed_similarity):
        return Verdict()
    if len(scored) == 1 or scored[0][0] - scored[1][0] >= limits.fact_clear_margin:
        return Verdict(supersedes=(scored[0][1],))
    return Verdict(unclear=(scored[0][1],))


_SHARED = 0.5  # what sharing a content word adds to the similarity of two facts about the same thing


def _shares(mine: set[str], fact: Fact, packs: Mapping[str, LanguagePack]) -> bool:
    return bool(mine & set(_content(fact.fact, packs.get(fact.language))))


def _by_likeness(
    draft: FactDraft,
    mine: set[str],
    known: Sequence[Known],
    packs: Mapping[str, LanguagePack],
    limits: Limits,
    *,
    replacing: bool,
) -> Verdict:
    """Without a slot: a draft that says it replaces something supersedes the fact most like it."""
    pack = packs[draft.language]
    alike: list[tuple[float, Fact]] = []
    for entry in known:
        if not _comparable(draft, entry.fact):
            continue
        theirs = set(_content(entry.fact.fact, packs.get(entry.fact.language, pack)))
        common = len(mine & theirs)
        shared = common / max(1, min(len(mine), len(theirs)))
        if (common > 1 and shared >= limits.fact_replaces_words) or entry.similarity >= limits.fact_replaces_similarity:
            alike.append((shared + entry.similarity, entry.fact))
    alike.sort(key=lambda pair: (-pair[0], pair[1].id))
    if not alike:
        return Verdict()
    if replacing:
        return Verdict(supersedes=(alike[0][1],))
    both_decisions = draft.domain == "decisions" and alike[0][1].domain == "decisions"
    return Verdict(unclear=(alike[0][1],)) if both_decisions else Verdict()


def _comparable(draft: FactDraft, fact: Fact) -> bool:
    """Facts with different known subjects never replace each other by mere likeness."""
    if draft.attribute and fact.attribute and draft.attribute != fact.attribute:
        return False
    return draft.domain == fact.domain


@lru_cache(maxsize=2048)  # a draft is compared with twenty facts, in several ways
def _content(text: str, pack: LanguagePack | None) -> tuple[str, ...]:
    skipped = pack.words["additive"] | pack.words["replacing"] | pack.words["hedges"] if pack else frozenset()
    return tuple(stems(text, pack, skipped))


def says_the_same(draft: FactDraft, fact: Fact, packs: Mapping[str, LanguagePack]) -> bool:
    """Whether a draft only repeats a fact, perhaps in other words."""
    if fold(draft.fact) == fold(fact.fact):
        return True
    pack = packs.get(fact.language)
    if pack is None or _negated(draft.fact, packs[draft.language]) != _negated(fact.fact, pack):
        return False
    if draft.polarity != fact.polarity:
        return False
    mine = _content(draft.fact, packs[draft.language])
    if mine and mine == _content(fact.fact, pack):  # in this order: who owes whom is in the order
        return not _turned(draft.fact, packs[draft.language], fact.fact, pack)
    same_slot = draft.attribute == fact.attribute != "" and draft.key == fact.key
    if same_slot and _named(draft.fact) - set(words_of(fact.fact)):
        return False  # a brother called Jim is not the brother called Tom
    return bool(same_slot and _same_value(_lasting(draft.value, packs[draft.language]), _lasting(fact.value, pack)))


_NAMED = re.compile(r"(?<=\w[\s,;:]|['’(]\s)[A-ZÀ-ÖØ-Þ][\w-]+|\d+")


def _named(text: str) -> set[str]:
    """The names and numbers of a fact, but a name at its beginning."""
    return {word for found in _NAMED.findall(text) for word in words_of(found)}


def _turned(new: str, new_pack: LanguagePack, old: str, old_pack: LanguagePack) -> bool:
    """Whether one small word stands in the place of another: "before six" and "after six" share their content."""
    mine, theirs = _small_words(new, new_pack), _small_words(old, old_pack)
    return bool(mine - theirs) and bool(theirs - mine)


def _small_words(text: str, pack: LanguagePack) -> set[str]:
    """Function words but the shortest, which change with the wording: I'm, I am."""
    shortest = 1 if pack.script == "han" else 3
    return {word for word in words_of(text) if len(word) >= shortest and word in pack.words["function_words"]}


def _lasting(value: str, pack: LanguagePack) -> list[str]:
    """The words of a value but "now" and the like: "Lyon now" is Lyon."""
    passing = pack.words["additive"] | pack.words["replacing"] | pack.words["time_words"]
    return [word for word in words_of(value) if word not in passing]


def _same_value(mine: list[str], theirs: list[str]) -> bool:
    """Whether a value is the same or says less: "Lyon" after "Lyon, near the river"."""
    return bool(mine) and theirs[: len(mine)] == mine


def _is_given_up(draft: FactDraft, fact: Fact, packs: Mapping[str, LanguagePack]) -> bool:
    """Whether the draft names what it replaces ("from Slack to Teams") and the fact is about that."""
    if not draft.replaces:
        return False
    gone = set(_content(draft.replaces, packs[draft.language]))
    theirs = set(_content(fact.fact, packs.get(fact.language)))
    fits = draft.attribute in ("", fact.attribute) or not fact.attribute
    return bool(gone) and gone <= theirs and fits


def _same_slot(draft: FactDraft, fact: Fact) -> bool:
    return draft.single and fact.single and draft.attribute == fact.attribute != "" and draft.key == fact.key


def _other_facet(draft: FactDraft, fact: Fact) -> bool:
    """Whether two statements about work look at different sides of it: what one is, and where one works."""
    if draft.attribute not in ("job", "studies"):
        return False
    mine, theirs = words_of(draft.fact)[:2], words_of(fact.fact)[:2]
    return mine != theirs and not (mine[:1] == theirs[:1] and len(mine[0]) > 2)


def _opposite(draft: FactDraft, mine: set[str], fact: Fact, packs: Mapping[str, LanguagePack]) -> bool:
    """Liked before and disliked now, or the other way round, and the same thing."""
    if not draft.polarity or draft.polarity != -fact.polarity:
        return False
    pack = packs.get(fact.language)
    new = set(_content(draft.value, packs[draft.language])) or mine
    old = set(_content(fact.value, pack) or _content(fact.fact, pack))
    return bool(new & old) and len(new & old) / min(len(new), len(old)) >= 0.5


def _negated(text: str, pack: LanguagePack) -> bool:
    return _has_word(text, pack, "negations")


@lru_cache(maxsize=2048)
def _has_word(text: str, pack: LanguagePack, group: str) -> bool:
    folded = fold(text)
    if pack.script == "han":
        return any(word in folded for word in pack.words[group])
    padded = f" {' '.join(words_of(text))} "
    return any(phrase in padded for phrase in _phrases(pack.words[group]))


@cache
def _phrases(words: frozenset[str]) -> tuple[str, ...]:
    return tuple(f" {' '.join(words_of(word))} " for word in words)
