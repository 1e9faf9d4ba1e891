"""The public contract of the engine (design, section 3): more may be added, nothing here may change its shape."""

import inspect
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import fields
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import memory as package
from memory import Memory
from memory.errors import Refused
from memory.facts import Facts
from memory.testing import FakeClock
from memory.values import (
    SECTIONS,
    Context,
    Fact,
    FactDraft,
    FactEvent,
    Item,
    LeftOut,
    RecallHit,
    SectionReport,
    Session,
    Turn,
)

OpenMemory = Callable[..., AbstractAsyncContextManager[Memory]]
REQUIRED = inspect.Parameter.empty

# name -> (parameters in order with their defaults, whether it is awaited)
METHODS: dict[str, tuple[dict[str, object], bool]] = {
    "open_session": ({"channel": "repl", "chat": "me"}, True),
    "add_turn": ({"session_id": REQUIRED, "role": REQUIRED, "content": REQUIRED, "speaker": None}, True),
    "assemble": ({"session_id": REQUIRED, "recall_tokens": None, "tools": ()}, True),
    "run_pending": ({}, True),
    "recall": ({"query": REQUIRED, "k": 10, "since": None, "until": None, "kinds": None, "entity": None}, True),
    "same_question": ({"first": REQUIRED, "second": REQUIRED}, True),
    "extract_facts": ({"text": REQUIRED, "language": None}, False),
}
FACT_METHODS: dict[str, dict[str, object]] = {
    "list": {"state": "active"},
    "add": {"fact": REQUIRED, "domain": None, "confidence": "high"},
    "confirm": {"fact_id": REQUIRED},
    "forget": {"fact_id": REQUIRED},
    "history": {"fact_id": None},
}
VALUES: dict[type, tuple[str, ...]] = {
    Session: ("id", "channel", "chat", "opened_at"),
    Turn: (
        "id",
        "session_id",
        "turn_number",
        "role",
        "speaker",
        "content",
        "timestamp",
        "token_count",
        "semantic_continuity",
        "topic_shift",
        "summarized_at",
        "learned",
    ),
    Context: ("messages", "tokens", "provider_tokens", "sections", "left_out", "message_cut", "tools"),
    SectionReport: ("name", "tokens", "items"),
    Item: ("id", "text", "rank", "why"),
    LeftOut: ("section", "id", "why"),
    RecallHit: ("id", "kind", "text", "at", "entities", "score", "why", "source"),
    FactDraft: ("fact", "domain", "confidence", "quote", "language"),
    Fact: (
        "id",
        "domain",
        "fact",
        "confidence",
        "created_at",
        "last_confirmed_at",
        "source",
        "quote",
        "turn_id",
        "language",
        "status",
        "superseded_by",
        "state",
    ),
    FactEvent: ("id", "at", "action", "fact"),
}


def assert_parameters(function: Any, wanted: Mapping[str, object]) -> None:
    """The wanted parameters come first, under their names and with their defaults; what was added has a default."""
    parameters = [each for each in inspect.signature(function).parameters.values() if each.name not in ("self", "cls")]
    found = {each.name: each.default for each in parameters[: len(wanted)]}
    assert list(found.items()) == list(wanted.items())
    assert all(each.default is not REQUIRED for each in parameters[len(wanted) :])


def test_the_package_offers_memory() -> None:
    assert package.Memory is Memory
    assert package.__all__ == ["Memory"]


def test_opening_needs_a_path_and_has_defaults_for_all_else() -> None:
    parameters = inspect.signature(Memory.open).parameters
    assert list(parameters)[:3] == ["path", "clock", "timezone"]
    assert parameters["path"].default is REQUIRED
    assert parameters["timezone"].default == "UTC"
    assert all(each.default is not REQUIRED for name, each in parameters.items() if name != "path")
    assert parameters["clock"].kind is inspect.Parameter.KEYWORD_ONLY


@pytest.mark.parametrize("name", METHODS)
def test_a_method_keeps_its_name_parameters_and_defaults(name: str) -> None:
    parameters, awaited = METHODS[name]
    assert_parameters(getattr(Memory, name), parameters)
    assert inspect.iscoroutinefunction(getattr(Memory, name)) is awaited


@pytest.mark.parametrize("name", FACT_METHODS)
def test_a_method_of_facts_keeps_its_name_parameters_and_defaults(name: str) -> None:
    assert_parameters(getattr(Facts, name), FACT_METHODS[name])
    assert inspect.iscoroutinefunction(getattr(Facts, name))


@pytest.mark.parametrize("value", VALUES, ids=lambda value: value.__name__)
def test_a_value_keeps_its_fields(value: type) -> None:
    assert set(VALUES[value]) <= {field.name for field in fields(value)}
    assert value.__dataclass_params__.frozen  # type: ignore[attr-defined]


def test_the_sections_are_named() -> None:
    assert SECTIONS == ("static", "tools", "summaries", "window", "recalled", "facts", "message")


async def test_the_contract_as_a_program(tmp_path: Path) -> None:
    """The lines of the design, each one run, and what they promise."""
    clock = FakeClock(datetime(2026, 3, 1, 12, tzinfo=UTC))
    path = tmp_path / "a folder" / "that is not there" / "person.db"
    async with Memory.open(path, clock=clock, timezone="UTC") as memory:
        assert path.is_file()
        session = await memory.open_session(channel="repl", chat="me")
        turn = await memory.add_turn(session.id, role="user", content="I live in Rome.", speaker="Ana")
        assert (turn.semantic_continuity, turn.topic_shift, turn.speaker) == (None, False, "Ana")
        assert [fact.fact for fact in turn.learned] == ["I live in Rome"]
        reply = await memory.add_turn(session.id, role="assistant", content="I live in Paris, I would say. And you?")
        assert isinstance(reply.semantic_continuity, float)
        assert reply.learned == ()
        await memory.add_turn(session.id, role="user", content="In Rome, I said. Where do I live?")
        context = await memory.assemble(session.id, recall_tokens=None, tools=())
        assert isinstance(context.messages, list)
        assert {frozenset(message) for message in context.messages} == {frozenset({"role", "content"})}
        assert isinstance(context.tokens, int)
        assert isinstance(context.provider_tokens, int)
        assert tuple(context.sections) == SECTIONS
        await memory.open_session(channel="repl", chat="me")
        clock.advance(days=1)
        await memory.run_pending()
        hits = await memory.recall("Rome", k=10, since=None, until=None, kinds=None, entity=None)
        assert hits
        assert all(hit.at.tzinfo is not None for hit in hits)
        (fact,) = await memory.facts.list(state="active")
        added = await memory.facts.add("I prefer tea", domain=None, confidence="high")
        confirmed = await memory.facts.confirm(fact.id)
        assert confirmed.last_confirmed_at == clock.now > fact.last_confirmed_at
        assert [event.action for event in await memory.facts.history(added.id)] == ["added"]
        await memory.facts.forget(added.id)
        assert [each.id for each in await memory.facts.list(state="active")] == [fact.id]
        assert await memory.same_question("Where do I live?", "Where do I live?")
        (draft,) = memory.extract_facts("I live in Rome.", language=None)
        assert (draft.fact, draft.domain, draft.confidence) == ("I live in Rome", "personal", "high")
        assert (draft.quote, draft.language) == ("I live in Rome.", "en")


async def test_recall_bounds_time_and_kinds_and_refuses_kinds_there_are_not(open_memory: OpenMemory) -> None:
    clock = FakeClock()
    async with open_memory(clock) as memory:
        start = clock.now
        for day in range(3):
            session = await memory.open_session()
            await memory.add_turn(session.id, "user", f"The plumber repaired tap number {day}.")
            clock.advance(days=1)
        await memory.open_session()
        await memory.run_pending()
        kinds = ["world", "experience", "opinion", "observation"]
        hits = await memory.recall("plumber tap", kinds=kinds)
        assert {hit.at for hit in hits} == {start + timedelta(days=day) for day in range(3)}
        assert {hit.kind for hit in hits} <= set(kinds)
        bounded = await memory.recall(
            "plumber tap", since=start + timedelta(days=1), until=start + timedelta(days=2), kinds=kinds
        )
        assert [hit.at for hit in bounded] == [start + timedelta(days=1)], "since is inclusive, until is not"
        assert len(await memory.recall("plumber tap", k=1, kinds=kinds)) == 1
        assert await memory.recall("plumber tap", k=0) == []
        assert await memory.recall("plumber tap", kinds=kinds) == hits, "recalling changes no ranking"
        with pytest.raises(Refused, match="gossip"):
            await memory.recall("plumber", kinds=["gossip"])


QUESTIONS = st.one_of(
    st.text(max_size=40),
    st.sampled_from(
        [
            "Where do I live?",
            "where do i live",
            "¿Dónde vivo?",
            "Dove vivo?",
            "我住在哪里？",
            "no",
            "si",
            "in",
            "What is 3 + 4?",
            "What is 4 + 3?",
        ]
    ),
)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(pairs=st.lists(st.tuples(QUESTIONS, QUESTIONS), min_size=5, max_size=20))
async def test_same_question_is_symmetric_and_true_for_equal_texts(
    open_memory: OpenMemory, pairs: list[tuple[str, str]]
) -> None:
    async with open_memory() as memory:
        for first, second in pairs:
            assert await memory.same_question(first, first)
            assert await memory.same_question(first, second) == await memory.same_question(second, first)


def test_extracting_is_synchronous_and_pure() -> None:
    from memory.signals import extract

    text = "I live in Rome and I prefer tea."
    assert extract(text) == extract(text) != []


async def test_the_engine_reads_no_clock_but_the_one_it_is_given(tmp_path: Path) -> None:
    clock = FakeClock(datetime(1999, 12, 31, 23, tzinfo=UTC))
    async with Memory.open(tmp_path / "old.db", clock=clock) as memory:
        session = await memory.open_session()
        turn = await memory.add_turn(session.id, "user", "I live in Rome.")
        await memory.assemble(session.id)
        await memory.open_session()
        await memory.run_pending()
        assert {session.opened_at, turn.timestamp, turn.learned[0].created_at} == {clock.now}
        for table, column in (
            ("turns", "summarized_at"),
            ("summaries", "at"),
            ("statements", "at"),
            ("entries", "at"),
            ("sessions", "opened_at"),
            ("fact_events", "at"),
            ("generations", "created_at"),
            ("calibrations", "fitted_at"),
        ):
            rows = await memory.database.fetch_all(f"SELECT {column} FROM {table}")
            assert {row[0][:4] for row in rows if row[0]} <= {"1999"}, table
