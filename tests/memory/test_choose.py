"""Which facts go into a request: F8, F9, and never what faded (F3 to F5)."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory import Memory
from memory.choose import Candidate, choose
from memory.language import load_packs
from memory.limits import Limits
from memory.testing import FakeClock
from memory.tokens import count_tokens
from memory.values import ChosenFact, Fact, FactState

OpenMemory = Callable[..., AbstractAsyncContextManager[Memory]]
LIMITS = Limits()
NOW = FakeClock().now


def fact(number: int, text: str, *, pinned: bool = False, state: FactState = "active", language: str = "en") -> Fact:
    return Fact(
        id=f"f{number}",
        domain="personal",
        fact=text,
        confidence="high",
        created_at=NOW,
        last_confirmed_at=NOW,
        source="explicit",
        quote=text,
        turn_id=None,
        language=language,
        status="current",
        superseded_by=None,
        pinned=pinned,
        kind="statement",
        attribute="",
        key="",
        value="",
        single=False,
        polarity=0,
        state=state,
    )


def chosen(
    message: str, facts: list[tuple[Fact, float]], recent: list[str] | None = None, limits: Limits = LIMITS
) -> list[ChosenFact]:
    candidates = [Candidate(fact=found, similarity=similarity) for found, similarity in facts]
    return choose(message, "en", candidates, recent or [], packs=load_packs(), limits=limits, count=count_tokens)


def ids(found: list[ChosenFact]) -> list[str]:
    return [choice.fact.id for choice in found]


lengths = st.integers(1, 80)
states = st.sampled_from(["active", "active", "active", "explicit-only", "stale", "superseded"])


@given(st.lists(st.tuples(lengths, st.booleans(), st.floats(0, 1), states), max_size=25), st.booleans())
def test_f8_the_budgets_hold_whatever_there_is(
    rows: list[tuple[int, bool, float, FactState]], words_in_common: bool
) -> None:
    facts = [
        (fact(number, "zebra " * length, pinned=pinned, state=state), similarity)
        for number, (length, pinned, similarity, state) in enumerate(rows)
    ]
    found = chosen("my zebra" if words_in_common else "hello", facts)
    rendered = "".join(f"- {choice.fact.fact}\n" for choice in found)
    pinned = "".join(f"- {choice.fact.fact}\n" for choice in found if choice.fact.pinned)
    assert sum(choice.tokens for choice in found) <= 150
    assert sum(choice.tokens for choice in found if choice.fact.pinned) <= 60
    assert count_tokens(rendered) <= 150
    assert count_tokens(pinned) <= 60
    assert all(choice.fact.state == "active" and choice.why for choice in found)
    assert len(set(ids(found))) == len(found)
    kinds = [choice.fact.pinned for choice in found]
    assert kinds == sorted(kinds, reverse=True)  # pinned first
    fits = [
        choice for choice, _ in facts if choice.pinned and choice.state == "active" and count_tokens(choice.fact) < 50
    ]
    assert not fits or any(kinds)


def test_f8_none_when_none_applies_but_pinned_ones_always() -> None:
    facts = [(fact(1, "My dentist is Ruiz"), 0.1), (fact(2, "I am allergic to nuts", pinned=True), 0.0)]
    found = chosen("how tall is the Eiffel tower?", facts)
    assert [(choice.fact.id, choice.why) for choice in found] == [("f2", "pinned")]


def test_f8_every_choice_says_why() -> None:
    facts = [
        (fact(1, "My dentist is Ruiz"), 0.0),
        (fact(2, "Teeth hurt when it is cold"), 0.7),
        (fact(3, "My brother lives in Bath"), 0.45),
        (fact(4, "The bath tub leaks"), 0.3),
    ]
    why = {choice.fact.id: choice.why for choice in chosen("call my dentist and my family at home", facts)}
    assert why == {
        "f1": "shares the words dentist",
        "f2": "similar in meaning, 0.70",
        "f3": "same domain (personal) and similar, 0.45",
    }


def test_question_words_and_times_are_no_words_in_common() -> None:
    assert chosen("why today?", [(fact(1, "Why worry today, I say"), 0.0)]) == []


@pytest.mark.parametrize("state", ["explicit-only", "stale", "superseded"])
def test_f3_f4_f5_what_faded_is_never_chosen_not_even_pinned(state: FactState) -> None:
    assert chosen("dentist", [(fact(1, "My dentist is Ruiz", state=state, pinned=True), 1.0)]) == []


def test_f9_a_fact_whose_words_are_in_the_last_three_turns_is_not_repeated() -> None:
    facts = [(fact(1, "My dentist is Ruiz"), 0.9)]
    said = "By the way, my dentists are Ruiz and Co"
    assert chosen("dentist?", facts, [said, "a", "b"]) == []
    assert ids(chosen("dentist?", facts, [said, "a", "b", "c"])) == ["f1"]
    assert ids(chosen("dentist?", facts, ["my dentist", "is called", "Ruiz"])) == ["f1"]  # in no turn as a whole


def test_f9_pinned_facts_are_repeated() -> None:
    facts = [(fact(1, "My dentist is Ruiz", pinned=True), 0.9)]
    assert ids(chosen("dentist?", facts, ["My dentist is Ruiz"])) == ["f1"]


def test_f9_a_limit_of_no_turns_repeats_everything() -> None:
    facts = [(fact(1, "My dentist is Ruiz"), 0.9)]
    limits = replace(LIMITS, fact_repeat_turns=0)
    assert ids(chosen("dentist?", facts, ["My dentist is Ruiz"], limits)) == ["f1"]


@pytest.mark.skipif("es" not in load_packs(), reason="needs the Spanish pack")
def test_f9_a_fact_said_in_another_language_than_the_message_is_not_repeated() -> None:
    facts = [(fact(1, "Mis dentistas trabajan en Lyon", language="es"), 0.9)]
    assert chosen("Lyon?", facts, ["Mi dentista trabaja en Lyon"]) == []


@given(st.permutations(range(6)))
def test_the_order_in_which_facts_are_found_does_not_matter(order: list[int]) -> None:
    facts = [(fact(number, f"My dentist number {number} is far away"), 0.5 + number / 20) for number in range(6)]
    assert ids(chosen("dentist", [facts[place] for place in order])) == ids(chosen("dentist", facts))


async def test_f8_of_many_facts_the_ones_the_message_is_about_are_chosen(open_memory: OpenMemory) -> None:
    async with open_memory() as memory:
        for number in range(60):
            await memory.facts.add(f"Shelf {number} holds box {number * 7}")
        about = await memory.facts.add("My dentist is doctor Ruiz")
        pinned = await memory.facts.add("Always answer in Spanish")
        assert pinned.pinned
        found = await memory.facts.choose("When does my dentist open?")
        assert ids(found)[:2] == [pinned.id, about.id]
        assert ids(await memory.facts.choose("What is the tallest mountain of Peru?")) == [pinned.id]
        assert sum(choice.tokens for choice in await memory.facts.choose("shelf and box")) <= 150


async def test_f3_f5_facts_leave_the_request_when_they_fade(open_memory: OpenMemory) -> None:
    clock = FakeClock()
    async with open_memory(clock) as memory:
        for confidence in ("low", "medium", "high"):
            await memory.facts.add(f"My dentist is doctor {confidence}", confidence=confidence)
        left = []
        for days in (0, 30, 60, 90):  # at 0, 30, 90 and 180 days, and a microsecond after each
            clock.advance(days=days)
            left.append(len(await memory.facts.choose("my dentist")))
            clock.advance(microseconds=1)
            left.append(len(await memory.facts.choose("my dentist")))
            clock.advance(microseconds=-1)
        assert left == [3, 3, 3, 2, 2, 1, 1, 0]
