"""What a new fact does to a known one: F6 and F7, as pure decisions."""

import pytest

from memory.corrections import Known, Verdict, judge
from memory.language import load_packs
from memory.learn import plain_draft
from memory.limits import Limits
from memory.signals import extract
from memory.testing import FakeClock
from memory.values import Fact, FactDraft

PACKS = load_packs()
NOW = FakeClock().now


def draft(text: str, language: str = "en") -> FactDraft:
    found = extract(text, language, PACKS)
    return found[0] if len(found) == 1 else plain_draft(text, language, PACKS)


def known(*texts: str, similarity: float = 0.0) -> list[Known]:
    return [
        Known(fact=stored(draft(text), f"f{number}"), similarity=similarity) for number, text in enumerate(texts, 1)
    ]


def stored(draft: FactDraft, fact_id: str) -> Fact:
    return Fact(
        id=fact_id,
        domain=draft.domain,
        fact=draft.fact,
        confidence=draft.confidence,
        created_at=NOW,
        last_confirmed_at=NOW,
        source="explicit",
        quote=draft.quote,
        turn_id=None,
        language=draft.language,
        status="current",
        superseded_by=None,
        pinned=draft.pinned,
        kind=draft.kind,
        attribute=draft.attribute,
        key=draft.key,
        value=draft.value,
        single=draft.single,
        polarity=draft.polarity,
    )


def verdict(new: str, *old: str, similarity: float = 0.0) -> Verdict:
    return judge(draft(new), known(*old, similarity=similarity), PACKS, Limits())


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("I live in Rome", "I live in Rome."),
        ("I live in Rome", "i LIVE in rome"),
        ("I live in Rome, near the river", "I live in Rome"),
        ("I live in Lyon", "I moved to Lyon"),
        ("The cat is called Tom", "the cat is called tom!"),
        ("The cat is called Tom", "A cat called Tom"),
        ("Our boxes are in the cellar", "Our box is in the cellar"),
    ],
)
def test_f6_the_same_again_confirms(old: str, new: str) -> None:
    found = verdict(new, old)
    assert found.confirms is not None
    assert found.supersedes == ()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Tom owes Ana 20 euros", "Ana owes Tom 20 euros"),
        ("The shop opens before nine", "The shop opens after nine"),
        ("The code of the gate is blue 7", "The code of the gate is blue 8"),
        ("The cat is called Tom", "The dog is called Tom"),
        ("The alarm is on", "The alarm is not on"),
        ("I love coffee", "I don't love coffee"),
    ],
)
def test_another_order_number_name_or_negation_never_confirms(old: str, new: str) -> None:
    assert verdict(new, old, similarity=1.0).confirms is None


@pytest.mark.parametrize(
    ("old", "new"),
    [("I live in Rome", "I moved to Lyon"), ("I live in Rome", "I live in Lyon"), ("I love coffee", "I hate coffee")],
)
def test_f7_another_value_of_the_same_thing_supersedes(old: str, new: str) -> None:
    assert [fact.fact for fact in verdict(new, old, "The cat is called Tom").supersedes] == [old]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("I live in Rome", "I love Rome"),
        ("I love coffee", "I love tea"),
        ("The cat is called Tom", "The dog is called Rex"),
    ],
)
def test_facts_about_different_things_stand_side_by_side(old: str, new: str) -> None:
    assert verdict(new, old) == Verdict()


def test_nothing_known_means_a_new_fact() -> None:
    assert verdict("I live in Rome") == Verdict()


def test_all_values_of_one_place_give_way_at_once() -> None:
    assert [fact.id for fact in verdict("I moved to Oslo", "I live in Rome", "I live in Lyon").supersedes] == [
        "f1",
        "f2",
    ]


def test_what_says_that_it_replaces_something_supersedes_what_it_is_most_like() -> None:
    found = verdict(
        "The spare key is now under the blue pot", "The spare key is under the mat", "The cat is called Tom"
    )
    assert [fact.id for fact in found.supersedes] == ["f1"]


def test_a_fact_of_a_language_whose_pack_is_gone_is_left_alone() -> None:
    (entry,) = known("The cat is called Tom")
    foreign = Known(fact=stored(draft("Il gatto si chiama Tom"), "f1"), similarity=1.0)
    object.__setattr__(foreign.fact, "language", "xx")
    assert judge(draft("The cat is called Tom"), [foreign], PACKS, Limits()).confirms is None
    assert judge(draft("The cat is called Tom"), [entry], PACKS, Limits()).confirms == entry.fact
