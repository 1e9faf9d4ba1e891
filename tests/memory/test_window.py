"""The window (W1 to W4): how many turns it holds, which leave it together, and that it survives a restart."""

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import fields
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory import Memory
from memory.errors import NotFound, Refused
from memory.limits import Limits
from memory.stores import context as context_rows
from memory.stores import turns as turn_rows
from memory.testing import FakeClock
from memory.values import Turn
from memory.window import asks, closing, leaving, window_size

OpenMemory = Callable[..., AbstractAsyncContextManager[Memory]]
LIMITS = Limits()
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def turn(
    number: int,
    role: str = "user",
    content: str = "words",
    tokens: int = 40,
    continuity: float | None = 0.5,
    shift: bool = False,
) -> Turn:
    return Turn(
        id=number,
        session_id=1,
        turn_number=number,
        role=role,  # type: ignore[arg-type]
        speaker=role,
        content=content,
        timestamp=NOON,
        token_count=tokens,
        semantic_continuity=continuity,
        topic_shift=shift,
    )


def turns_with(*continuities: float | None) -> list[Turn]:
    return [turn(number, continuity=value) for number, value in enumerate(continuities, 1)]


# -- W1: the size


@pytest.mark.parametrize(
    ("continuities", "size"),
    [
        ((0.9, 0.5, 0.5), 6),
        ((0.5, 0.71, 0.9), 8),
        ((0.9, 0.9, 0.7), 6),  # 0.7 does not exceed 0.7
        ((0.9, 0.1, 0.29), 4),
        ((0.1, 0.1, 0.3), 6),  # 0.3 is not below 0.3
        ((0.9, 0.2), 6),
        ((None, 0.9), 6),
        ((None,), 6),
        ((), 6),
    ],
)
def test_w1_the_last_two_continuities_decide_the_size(continuities: tuple[float | None, ...], size: int) -> None:
    assert window_size(turns_with(*continuities), LIMITS) == size


@pytest.mark.parametrize(("continuity", "most"), [(0.5, 6), (0.9, 8), (0.1, 4)])
def test_w1_turns_leave_in_threes_once_there_are_more_than_the_window_holds(continuity: float, most: int) -> None:
    full = turns_with(*[continuity] * most)
    assert leaving(full, LIMITS) == []
    one_more = turns_with(*[continuity] * (most + 1))
    assert leaving(one_more, LIMITS) == [one_more[:3]]


# -- what leaves, whatever the turns are


SEQUENCES = st.lists(
    st.tuples(
        st.sampled_from(["user", "assistant"]),
        st.sampled_from(["Fine.", "Shall I?", "走吗？", "**Which one?**"]),
        st.sampled_from([1, 40, 400, 1199, 5000]),
        st.one_of(st.none(), st.floats(0, 1)),
        st.booleans(),
    ),
    min_size=1,
    max_size=14,
).map(
    lambda rows: [
        turn(number, role, content, tokens, continuity, shift)
        for number, (role, content, tokens, continuity, shift) in enumerate(rows, 1)
    ]
)


def answers_a_question(turns: Sequence[Turn]) -> bool:
    return len(turns) > 1 and turns[-1].role == "user" and turns[-2].role == "assistant" and asks(turns[-2])


@settings(max_examples=300, deadline=None)
@given(turns=SEQUENCES, flush=st.booleans())
def test_turns_leave_oldest_first_in_segments_of_one_topic_and_never_the_newest(turns: list[Turn], flush: bool) -> None:
    segments = leaving(turns, LIMITS, flush=flush)
    gone = [each for segment in segments for each in segment]
    rest = turns[len(gone) :]
    assert gone + rest == turns
    assert rest, "the newest turn stays"
    if answers_a_question(turns):
        assert turns[-2] in rest, "W3: a question stays with its answer"
    for segment in segments:
        assert 1 <= len(segment) <= 3
        assert not any(each.topic_shift for each in segment[1:]), "S1: a topic shares no segment with the next"
    least = 2 if answers_a_question(turns) else 1
    within = len(rest) <= window_size(turns, LIMITS) and sum(each.token_count for each in rest) <= 1200
    assert within or len(rest) == least
    if flush:
        assert len(rest) == least
    for last in segments[-1:]:  # the last segment left because it had to
        before = last + rest
        assert flush or len(before) > window_size(turns, LIMITS) or sum(t.token_count for t in before) > 1200


@settings(max_examples=100, deadline=None)
@given(turns=SEQUENCES)
def test_a_closed_session_leaves_entirely(turns: list[Turn]) -> None:
    segments = closing(turns, LIMITS)
    assert [each for segment in segments for each in segment] == turns
    assert all(1 <= len(segment) <= 3 for segment in segments)
    assert not any(each.topic_shift for segment in segments for each in segment[1:])


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("Shall I?", True),
        ("**Shall I?**", True),
        ("你要去吗？", True),
        ("(or not?) ", True),
        ("You asked “why?”", True),
        ("What a day!", False),
        ("Why? Because.", False),
        ("", False),
    ],
)
def test_a_turn_asks_when_it_ends_in_a_question(content: str, expected: bool) -> None:
    assert asks(turn(1, content=content)) is expected


# -- in the file


async def talk(memory: Memory, session_id: int, *contents: str) -> list[Turn]:
    roles = ("user", "assistant")
    return [
        await memory.add_turn(session_id, roles[number % 2], content)  # type: ignore[arg-type]
        for number, content in enumerate(contents)
    ]


async def test_w4_a_turn_has_its_fields(open_memory: OpenMemory) -> None:
    assert {field.name for field in fields(Turn)} >= {
        "id",
        "session_id",
        "turn_number",
        "role",
        "content",
        "timestamp",
        "token_count",
        "semantic_continuity",
        "summarized_at",
    }
    clock = FakeClock()
    async with open_memory(clock) as memory:
        session = await memory.open_session()
        first, second = await talk(memory, session.id, "hello there", "hello to you")
        stored = await turn_rows.window(memory.database, session.id)
    assert [each.turn_number for each in stored] == [1, 2]
    assert [(each.role, each.speaker) for each in stored] == [("user", "user"), ("assistant", "assistant")]
    assert (first.timestamp, first.token_count, first.semantic_continuity) == (clock.now, 2, None)
    assert second.semantic_continuity is not None
    assert 0 <= second.semantic_continuity <= 1
    assert all(each.summarized_at is None for each in stored)


async def test_a_speaker_is_kept_with_the_turn_and_is_one_short_line(open_memory: OpenMemory) -> None:
    async with open_memory() as memory:
        session = await memory.open_session()
        ana = await memory.add_turn(session.id, "user", "hello", speaker="Ana")
        odd = await memory.add_turn(session.id, "user", "hello", speaker=" A\nna \ud800" + "x" * 500)
        blank = await memory.add_turn(session.id, "user", "hello", speaker="  ")
    assert ana.speaker == "Ana"
    assert odd.speaker == ("A na ?" + "x" * 500)[:80]
    assert blank.speaker == "user"


async def test_only_a_user_and_an_assistant_speak_and_only_in_a_session_there_is(open_memory: OpenMemory) -> None:
    async with open_memory() as memory:
        session = await memory.open_session()
        with pytest.raises(Refused, match="system"):
            await memory.add_turn(session.id, "system", "obey")  # type: ignore[arg-type]
        with pytest.raises(NotFound, match="session 99"):
            await memory.add_turn(99, "user", "hello")
        with pytest.raises(NotFound, match="session 99"):
            await memory.assemble(99)
        with pytest.raises(Refused, match="nothing to answer"):
            await memory.assemble(session.id)


async def test_a_new_session_has_an_empty_window_and_closes_the_one_before(open_memory: OpenMemory) -> None:
    async with open_memory() as memory:
        old = await memory.open_session()
        other = await memory.open_session(chat="another")
        await talk(memory, old.id, "The boiler leaks again.", "Since when?")
        await talk(memory, other.id, "Hello from elsewhere.")
        new = await memory.open_session()
        assert await turn_rows.window(memory.database, new.id) == []
        assert await turn_rows.window(memory.database, old.id) == []
        assert len(await turn_rows.window(memory.database, other.id)) == 1  # a chat of its own
        with pytest.raises(Refused):
            await memory.assemble(new.id)


async def test_a_turn_that_leaves_is_owed_its_compression_in_the_same_transaction(open_memory: OpenMemory) -> None:
    async with open_memory() as memory:
        session = await memory.open_session()
        await talk(
            memory, session.id, *[f"The roof has {number} loose tiles and the gutter leaks." for number in range(12)]
        )
        left = await memory.database.fetch_value("SELECT count(*) FROM turns WHERE left_window = 1")
        owed = await memory.database.fetch_all("SELECT first_turn, last_turn FROM segments ORDER BY id")
        assert left == sum(row["last_turn"] - row["first_turn"] + 1 for row in owed) > 0


MANY = [
    "I am planning the garden: tomatoes along the south wall.",
    "Tomatoes like that wall. How many plants do you want?",
    "Six plants, and basil between them.",
    "Basil is a good neighbour. Plant it two weeks later.",
    "Does the basil need as much water?",
    "About the same, but it hates cold water.",
    "By the way, can you help me with my tax return?",
    "Gladly. Are you employed or self-employed?",
    "Self-employed since March, with two clients.",
    "Then you need the income statement of both. Do you have them?",
    "One is still missing.",
    "Ask for it in writing.",
]


async def test_a_restart_finds_the_same_window_and_makes_the_same_decisions(
    open_memory: OpenMemory, tmp_path: Path
) -> None:
    """One memory runs through; another is closed and opened again before every turn."""
    straight, reopened = [], []
    async with open_memory() as memory:
        session = await memory.open_session()
        for number, content in enumerate(MANY):
            straight.append(await memory.add_turn(session.id, ("user", "assistant")[number % 2], content))  # type: ignore[arg-type]
        window = await memory._conversation.window(session.id)
        assert window == await turn_rows.window(memory.database, session.id), "held in memory as the file says"
    path = tmp_path / "again.db"
    async with open_memory(path=path) as memory:
        session = await memory.open_session()
    for number, content in enumerate(MANY):
        async with open_memory(path=path) as memory:
            reopened.append(await memory.add_turn(session.id, ("user", "assistant")[number % 2], content))  # type: ignore[arg-type]
    async with open_memory(path=path) as memory:
        assert await turn_rows.window(memory.database, session.id) == window
        assert await memory._conversation.window(session.id) == window
    assert reopened == straight


async def test_the_window_held_in_memory_follows_another_process(open_memory: OpenMemory, tmp_path: Path) -> None:
    path = tmp_path / "shared.db"
    async with open_memory(path=path) as first, open_memory(path=path) as second:
        session = await first.open_session()
        await talk(first, session.id, "The first one speaks.")
        assert len(await second._conversation.window(session.id)) == 1
        await talk(second, session.id, "The second one answers.")
        assert len(await first._conversation.window(session.id)) == 2
        await first.open_session()
        assert await second._conversation.window(session.id) == []


async def test_a_reply_that_comes_after_its_session_was_closed_is_compressed_too(open_memory: OpenMemory) -> None:
    async with open_memory() as memory:
        old = await memory.open_session()
        await talk(memory, old.id, "How do I descale the kettle?")
        await memory.open_session()
        await memory.run_pending()
        await memory.add_turn(old.id, "assistant", "Boil vinegar in the kettle and rinse it twice.")
        assert await memory.run_pending() == 1
        assert await turn_rows.with_content(memory.database) == []
        summaries = await context_rows.slots(memory.database, "repl", "me", 4)
        assert len(summaries) == 2


async def test_a_talk_without_end_holds_no_more_embeddings_of_turns_than_it_may(open_memory: OpenMemory) -> None:
    limits = Limits(turn_embeddings_held=10)
    async with open_memory(limits=limits) as memory:
        session = await memory.open_session()
        held = []
        for number in range(40):
            await memory.add_turn(session.id, "user", f"The train number {number} was late.")
            held.append(len(memory._conversation._vectors))
    assert max(held) <= limits.turn_embeddings_held + 1
    assert held[-1] > 1  # those of the window are there
