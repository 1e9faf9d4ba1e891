"""How facts fade: F3, F4, F5 and F12 at every age, the boundaries included."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from memory.decay import fades_at, is_due, state_of
from memory.limits import Limits
from memory.values import Confidence, Fact

LIMITS = Limits()
NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
TICK = timedelta(microseconds=1)
CONFIDENCES: tuple[Confidence, ...] = ("high", "medium", "low")
FACT = Fact(
    id="f1",
    domain="personal",
    fact="I live in Rome",
    confidence="high",
    created_at=NOW - timedelta(days=1000),
    last_confirmed_at=NOW,
    source="explicit",
    quote="I live in Rome",
    turn_id=None,
    language="en",
    status="current",
    superseded_by=None,
    pinned=False,
    kind="declaration",
    attribute="home",
    key="",
    value="rome",
    single=True,
    polarity=0,
)

near_boundaries = st.builds(
    lambda days, ticks: timedelta(days=days) + ticks * TICK, st.sampled_from([0, 30, 90, 166, 180]), st.integers(-2, 2)
)
ages = near_boundaries | st.timedeltas(timedelta(days=-5), timedelta(days=2000))


def aged(age: timedelta, confidence: Confidence = "high") -> Fact:
    return replace(FACT, last_confirmed_at=NOW - age, confidence=confidence)


@given(ages, st.sampled_from(CONFIDENCES))
@example(timedelta(days=30), "low")
@example(timedelta(days=90), "medium")
@example(timedelta(days=180), "high")
def test_f3_f4_f5_the_state_follows_from_age_and_confidence(age: timedelta, confidence: Confidence) -> None:
    state = state_of(aged(age, confidence), NOW, LIMITS)
    older_than = {days for days in (30, 90, 180) if age > timedelta(days=days)}
    assert (state == "stale") == (180 in older_than)  # F4
    if 180 not in older_than:
        explicit_only = (confidence != "high" and 90 in older_than) or (confidence == "low" and 30 in older_than)
        assert state == ("explicit-only" if explicit_only else "active")  # F3, F5


@pytest.mark.parametrize(
    ("rule", "days", "confidence", "after"),
    [
        ("F3", 90, "medium", "explicit-only"),
        ("F4", 180, "high", "stale"),
        ("F5", 30, "low", "explicit-only"),
    ],
)
def test_exactly_so_many_days_are_not_more_than_so_many(
    rule: str, days: int, confidence: Confidence, after: str
) -> None:
    boundary = timedelta(days=days)
    assert state_of(aged(boundary, confidence), NOW, LIMITS) == "active", rule
    assert state_of(aged(boundary + TICK, confidence), NOW, LIMITS) == after, rule


def test_f3_a_fact_of_high_confidence_stays_active_until_it_is_stale() -> None:
    assert state_of(aged(timedelta(days=91)), NOW, LIMITS) == "active"


@given(ages, st.lists(st.timedeltas(timedelta(0), timedelta(days=400)), max_size=6), st.sampled_from(CONFIDENCES))
def test_f6_only_the_last_confirmation_counts(
    age: timedelta, confirmations: list[timedelta], confidence: Confidence
) -> None:
    fact = aged(age, confidence)
    for confirmed in confirmations:
        fact = replace(fact, last_confirmed_at=max(fact.last_confirmed_at, NOW - confirmed))
    youngest = min([age, *confirmations])
    assert state_of(fact, NOW, LIMITS) == state_of(aged(youngest, confidence), NOW, LIMITS)


@given(ages, ages, st.sampled_from(CONFIDENCES))
def test_an_older_fact_never_stands_better_than_a_younger_one(
    first: timedelta, second: timedelta, confidence: Confidence
) -> None:
    order = ["active", "explicit-only", "stale"]
    younger, older = sorted((first, second))
    states = [state_of(aged(age, confidence), NOW, LIMITS) for age in (younger, older)]
    assert order.index(states[0]) <= order.index(states[1])


@given(ages, st.sampled_from(CONFIDENCES), st.sampled_from(["superseded", "undone"]))
def test_f7_what_was_replaced_is_superseded_at_any_age(age: timedelta, confidence: Confidence, status: str) -> None:
    gone = replace(aged(age, confidence), status=status)  # type: ignore[arg-type]
    assert state_of(gone, NOW, LIMITS) == "superseded"
    assert not is_due(gone, NOW, LIMITS)


@given(ages, st.sampled_from(CONFIDENCES))
def test_a_fact_is_active_until_it_fades_and_no_longer(age: timedelta, confidence: Confidence) -> None:
    fact = aged(age, confidence)
    assert (state_of(fact, NOW, LIMITS) == "active") == (fades_at(fact, LIMITS) >= NOW)


@given(ages, st.sampled_from(CONFIDENCES))
@example(timedelta(days=166), "high")
@example(timedelta(days=166) - TICK, "high")
@example(timedelta(days=180), "low")
@example(timedelta(days=180) + TICK, "low")
def test_f12_a_fact_close_to_its_180_days_is_offered_for_keeping(age: timedelta, confidence: Confidence) -> None:
    fact = aged(age, confidence)
    assert is_due(fact, NOW, LIMITS) == (timedelta(days=166) <= age <= timedelta(days=180))
    if is_due(fact, NOW, LIMITS):
        assert state_of(fact, NOW, LIMITS) != "stale"


@given(ages, st.integers(1, 500), st.integers(1, 500), st.integers(1, 500))
def test_the_figures_come_from_the_limits(age: timedelta, low: int, explicit: int, stale: int) -> None:
    limits = Limits(fact_low_confidence_days=low, fact_explicit_only_days=explicit, fact_stale_days=stale)
    state = state_of(aged(age, "low"), NOW, limits)
    assert (state == "stale") == (age > timedelta(days=stale))
    assert (state == "active") == (age <= timedelta(days=min(low, explicit, stale)))
