"""How facts fade (F3 to F5, F12): pure functions of age, confidence and confirmation."""

from datetime import datetime, timedelta

from memory.limits import Limits
from memory.values import Fact, FactState


def state_of(fact: Fact, now: datetime, limits: Limits) -> FactState:
    """Where a fact stands: injected when relevant, found on explicit request, stale, or replaced."""
    if fact.status != "current":
        return "superseded"
    age = now - fact.last_confirmed_at
    if age > timedelta(days=limits.fact_stale_days):
        return "stale"
    if fact.confidence != "high" and age > timedelta(days=limits.fact_explicit_only_days):
        return "explicit-only"
    if fact.confidence == "low" and age > timedelta(days=limits.fact_low_confidence_days):
        return "explicit-only"
    return "active"


def fades_at(fact: Fact, limits: Limits) -> datetime:
    """When an unconfirmed fact next loses its place: of high confidence becomes stale, others explicit-only first."""
    days = {
        "high": limits.fact_stale_days,
        "medium": limits.fact_explicit_only_days,
        "low": limits.fact_low_confidence_days,
    }[fact.confidence]
    return fact.last_confirmed_at + timedelta(days=days)


def is_due(fact: Fact, now: datetime, limits: Limits) -> bool:
    """Whether a fact is about to become stale and should be offered for keeping (F12)."""
    stale_at = fact.last_confirmed_at + timedelta(days=limits.fact_stale_days)
    soon = timedelta(days=limits.fact_due_days)
    return fact.status == "current" and stale_at - soon <= now <= stale_at
