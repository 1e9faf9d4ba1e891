"""Facts: what is stored (F1), confirmed (F6), replaced (F7), undone, refused, and kept through whatever happens."""

import asyncio
import json
import os
import signal
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memory import Memory
from memory.errors import NotFound, Refused
from memory.limits import Limits
from memory.signals import extract, own_words
from memory.stores.index import stems
from memory.testing import FakeClock, HashEmbedder, start_python
from memory.tokens import count_tokens
from memory.values import Fact, Turn

OpenMemory = Callable[..., AbstractAsyncContextManager[Memory]]
FIXTURES = settings(
    max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)


async def say(memory: Memory, text: str, role: str = "user") -> Turn:
    session = await memory.open_session()
    return await memory.add_turn(session.id, role=role, content=text)  # type: ignore[arg-type]


async def texts(memory: Memory, state: str | None = "active") -> set[str]:
    return {fact.fact for fact in await memory.facts.list(state)}  # type: ignore[arg-type]


async def indexed(memory: Memory) -> dict[str, tuple[object, ...]]:
    """What the index holds for each fact: text, stems and vector."""
    generation = await memory.index._active()
    if generation is None:
        return {}
    rows = await memory.database.fetch_all(
        "SELECT e.ref, e.text, e.text_hash, e.language, e.at, s.stems, v.embedding FROM entries e "
        f"LEFT JOIN entries_fts s ON s.rowid = e.id LEFT JOIN {generation.table} v ON v.rowid = e.id "
        "WHERE e.kind = 'fact'"
    )
    return {row["ref"]: tuple(row)[1:] for row in rows}


async def assert_sound(memory: Memory) -> None:
    """Exactly the current facts are in the index, each with its own text, stems and vector; one value each."""
    every = await memory.facts.list(None)
    current = {fact.id: fact for fact in every if fact.status == "current"}
    held = await indexed(memory)
    assert set(held) == set(current)
    for fact_id, (text, _, _, _, stemmed, vector) in held.items():
        fact = current[fact_id]
        assert text == fact.fact
        assert stemmed == " ".join(stems(fact.fact, memory.packs[fact.language]))
        assert vector is not None
    single = [(fact.attribute, fact.key) for fact in current.values() if fact.single]
    assert len(single) == len(set(single)), "F7: exactly one current value"
    ids = {fact.id for fact in every}
    assert all(fact.superseded_by in ids for fact in every if fact.status == "superseded")


# --- F1: the fields


async def test_f1_a_learned_fact_has_all_its_fields(open_memory: OpenMemory) -> None:
    clock = FakeClock()
    async with open_memory(clock) as memory:
        turn = await say(memory, "Good news everyone! I moved to Lyon last month. It rains a lot.")
        (fact,) = turn.learned
        assert fact.id == "f1"
        assert fact.domain == "personal"
        assert "moved to Lyon" in fact.fact
        assert fact.confidence == "high"
        assert fact.created_at == fact.last_confirmed_at == clock.now
        assert fact.source == "explicit"
        assert fact.quote == "I moved to Lyon last month."
        assert fact.turn_id == turn.id
        assert (fact.language, fact.status, fact.superseded_by) == ("en", "current", None)
        assert (fact.attribute, fact.single, fact.kind) == ("home", True, "change")
        assert await memory.facts.get("f1") == fact
        assert await memory.facts.list() == [fact]


async def test_f1_an_added_fact_has_the_domain_and_confidence_it_is_given(open_memory: OpenMemory) -> None:
    async with open_memory() as memory:
        fact = await memory.facts.add("The boiler was serviced", domain="projects", confidence="low", pinned=True)
        assert (fact.domain, fact.confidence, fact.pinned, fact.turn_id) == ("projects", "low", True, None)
        assert fact.quote == fact.fact == "The boiler was serviced"


@pytest.mark.parametrize(
    "change",
    [
        lambda facts: facts.add("I love tea", domain="hobbies"),
        lambda facts: facts.add("I love tea", confidence="certain"),
        lambda facts: facts.add(" \n "),
        lambda facts: facts.add("\0"),
        lambda facts: facts.list("gone"),
        lambda facts: facts.list(domain="hobbies"),
    ],
)
async def test_what_is_no_fact_is_refused_with_a_reason(
    open_memory: OpenMemory, change: Callable[..., Awaitable[object]]
) -> None:
    async with open_memory() as memory:
        with pytest.raises(Refused):
            await change(memory.facts)
        assert await memory.facts.list(None) == []


@pytest.mark.parametrize("fact_id", ["f1", "f99", "x", "", "f", "-1", "f1; DROP TABLE facts", "f999999999999999999999"])
async def test_an_unknown_fact_is_not_found(open_memory: OpenMemory, fact_id: str) -> None:
    async with open_memory() as memory:
        for call in (
            memory.facts.get,
            memory.facts.confirm,
            memory.facts.pin,
            memory.facts.forget,
            memory.facts.preview_forget,
            memory.facts.history,
            memory.facts.chain,
            memory.facts.undo,
        ):
            with pytest.raises(NotFound):
                await call(fact_id)


async def test_ids_are_taken_as_people_write_them(open_memory: OpenMemory) -> None:
    async with open_memory() as memory:
        fact = await memory.facts.add("I love tea")
        assert [await memory.facts.get(written) for written in ("f1", "F1", "1", " f1 ")] == [fact] * 4


@pytest.mark.parametrize(
    "text", ["caf\u00e9 Ren\u00e9", "cafe\u0301 Rene\u0301", "caf\u00e9 \ud83d Ren\u00e9", "caf\u00e9 \0Ren\u00e9"]
)
async def test_odd_characters_are_stored_as_they_can_be_found_again(open_memory: OpenMemory, text: str) -> None:
    async with open_memory() as memory:
        fact = await memory.facts.add(text)
        assert [hit.ref for hit in await memory.index.by_words("RENE", fact.language, ["fact"], 5)] == ["f1"]
        assert "caf\u00e9" in fact.fact


# --- who teaches


async def test_f2_the_words_of_the_assistant_teach_nothing(open_memory: OpenMemory) -> None:
    async with open_memory() as memory:
        turn = await say(memory, "I live in Rome. Remember that I love coffee.", role="assistant")
        assert turn.learned == ()
        assert await memory.facts.list(None) == []


@pytest.mark.parametrize("role", ["system", "tool", "User", ""])
async def test_another_role_raises_and_stores_nothing(open_memory: OpenMemory, role: str) -> None:
    async with open_memory() as memory:
        session = await memory.open_session()
        with pytest.raises(Refused):
            await memory.add_turn(session.id, role=role, content="I live in Rome")  # type: ignore[arg-type]
        assert await memory.database.fetch_value("SELECT count(*) FROM turns") == 0


async def test_a_turn_of_an_unknown_session_is_an_error(open_memory: OpenMemory) -> None:
    async with open_memory() as memory:
        with pytest.raises(NotFound):
            await memory.add_turn(99, role="user", content="I live in Rome")


async def test_f2_quoted_forwarded_and_coded_words_teach_nothing(open_memory: OpenMemory) -> None:
    async with open_memory() as memory:
        for text in (
            '"I live in Berlin and I love coffee", he said',
            "> I live in Berlin",
            "```\nI live in Berlin\n```",
            "Do I live in Rome?",
        ):
            assert (await say(memory, text)).learned == (), text


@pytest.mark.parametrize(
    "text",
    [
        "For the record (this matters), I love coffee",
        "If it helps (I hope so), I live in Rome",
        "While I think of it (sorry, late), I live in Rome",
    ],
)
def test_prose_with_brackets_is_not_taken_for_code(text: str) -> None:
    assert len(extract(text, "en")) == 1


@pytest.mark.parametrize(
    "text", ["for i in range(3):", "if (x) {", "let x = 5;", "return x;", "print(x)", "const a = () => 1", "$ ls -l"]
)
def test_a_line_of_code_is_not_the_user_speaking(text: str) -> None:
    assert own_words(text).strip() == ""


# --- F6: mentioned again, or asked about


async def test_f6_a_fact_mentioned_again_is_confirmed_not_doubled(open_memory: OpenMemory) -> None:
    clock = FakeClock()
    async with open_memory(clock) as memory:
        await say(memory, "I live in Rome")
        clock.advance(days=100)
        turn = await say(memory, "By the way, I live in Rome.")
        assert turn.learned == ()
        assert [(fact.id, fact.last_confirmed_at) for fact in turn.confirmed] == [("f1", clock.now)]
        (fact,) = await memory.facts.list(None)
        assert fact.last_confirmed_at == clock.now
        assert fact.created_at == clock.now - timedelta(days=100)


@pytest.mark.parametrize("again", ["I still live in Rome", "I live in ROME now", "i live in rome!"])
async def test_f6_the_same_in_other_words_confirms(open_memory: OpenMemory, again: str) -> None:
    async with open_memory() as memory:
        await say(memory, "I live in Rome")
        assert [fact.id for fact in (await say(memory, again)).confirmed] == ["f1"]


@pytest.mark.parametrize("days", [10, 100, 179])
async def test_f6_a_fact_asked_about_is_confirmed(open_memory: OpenMemory, days: int) -> None:
    clock = FakeClock()
    async with open_memory(clock) as memory:
        await say(memory, "My sister's name is Carla")
        if not await memory.facts.list():
            await memory.facts.add("My sister is called Carla")
        clock.advance(days=days)
        turn = await say(memory, "What is my sister called?")
        assert [fact.last_confirmed_at for fact in turn.confirmed] == [clock.now]
        assert (await memory.facts.get("f1")).last_confirmed_at == clock.now


async def test_f4_a_stale_fact_asked_about_is_not_confirmed_but_named(open_memory: OpenMemory) -> None:
    clock = FakeClock()
    async with open_memory(clock) as memory:
        await memory.facts.add("My sister is called Carla")
        clock.advance(days=181)
        turn = await say(memory, "What is my sister called?")
        assert turn.confirmed == ()
        assert [fact.state for fact in turn.stale] == ["stale"]
        confirmed = await memory.facts.confirm("f1")
        assert (confirmed.state, confirmed.last_confirmed_at) == ("active", clock.now)


async def test_f6_saying_it_again_with_more_certainty_raises_the_confidence(open_memory: OpenMemory) -> None:
    async with open_memory() as memory:
        await memory.facts.add("My sister is called Carla", confidence="low")
        assert (await memory.facts.add("My sister is called Carla", confidence="medium")).confidence == "medium"
        assert (await memory.facts.add("My sister is called Carla", confidence="low")).confidence == "medium"


async def test_saying_it_twice_in_one_message_makes_one_fact(open_memory: OpenMemory) -> None:
    async with open_memory() as memory:
        turn = await say(memory, "I moved to Lyon. I live in Lyon now.")
        assert len(turn.learned) == 1
        await assert_sound(memory)


# --- F7: contradicted


async def test_f7_a_move_supersedes_the_old_home_and_leaves_the_rest_alone(open_memory: OpenMemory) -> None:
    async with open_memory() as memory:
        await say(memory, "I live in Rome")
        await say(memory, "I love coffee")
        turn = await say(memory, "I moved to Lyon")
        (new,) = turn.learned
        (old,) = turn.superseded
        assert (old.id, old.superseded_by, old.status) == ("f1", new.id, "superseded")
        assert {fact.id for fact in await memory.facts.list()} == {"f2", new.id}
        assert [fact.id for fact in await memory.facts.list("superseded")] == ["f1"]
        assert [fact.id for fact in await memory.facts.chain("f1")] == ["f1", "f3"]
        assert [(event.id, event.action) for event in await memory.facts.history(new.id)] == [
            ("f1", "learned"),
            ("f3", "learned"),
            ("f1", "superseded"),
        ]
        await assert_sound(memory)


async def test_f7_what_was_loved_and_is_hated_now_is_replaced(open_memory: OpenMemory) -> None:
    async with open_memory() as memory:
        await say(memory, "I love coffee")
        turn = await say(memory, "I hate coffee")
        assert [fact.fact for fact in turn.superseded] == ["I love coffee"]
        assert await texts(memory) == {"I hate coffee"}


async def test_f7_another_thing_loved_joins_the_first(open_memory: OpenMemory) -> None:
    async with open_memory() as memory:
        await say(memory, "I love coffee")
        await say(memory, "I love tea")
        assert await texts(memory) == {"I love coffee", "I love tea"}


async def test_a_replaced_fact_cannot_be_changed(open_memory: OpenMemory) -> None:
    async with open_memory() as memory:
        await say(memory, "I live in Rome")
        await say(memory, "I moved to Lyon")
        for call in (memory.facts.confirm, memory.facts.pin):
            with pytest.raises(Refused, match="f2"):
                await call("f1")
        with pytest.raises(Refused):
            await memory.facts.edit("f1", "I live in Milan")


CITIES = ("Rome", "Lyon", "Oslo", "Quito", "Lima")
acts = st.lists(
    st.tuples(st.sampled_from(["live", "moved", "undo", "undo one", "edit", "coffee", "forget"]), st.integers(0, 4)),
    min_size=2,
    max_size=10,
)


@FIXTURES
@given(acts)
async def test_f7_whatever_is_said_undone_and_corrected_exactly_one_value_is_current(
    open_memory: OpenMemory, acts: list[tuple[str, int]]
) -> None:
    async with open_memory(embedder=HashEmbedder()) as memory:
        for act, number in acts:
            every = await memory.facts.list(None)
            try:
                if act == "live":
                    await say(memory, f"I live in {CITIES[number]}")
                elif act == "moved":
                    await say(memory, f"I moved to {CITIES[number]}")
                elif act == "coffee":
                    await say(memory, "I love coffee")
                elif act == "undo":
                    await memory.facts.undo()
                elif act == "undo one" and every:
                    await memory.facts.undo(every[number % len(every)].id)
                elif act == "edit" and every:
                    await memory.facts.edit(every[number % len(every)].id, f"I live in {CITIES[number]}")
                elif act == "forget" and every:
                    await memory.facts.forget(every[number % len(every)].id)
            except (NotFound, Refused):
                pass
            await assert_sound(memory)
            homes = [fact for fact in await memory.facts.list() if fact.attribute == "home"]
            assert len(homes) <= 1
            if act in ("live", "moved"):
                assert CITIES[number] in homes[0].fact


# --- undo


async def state(memory: Memory) -> tuple[list[Fact], dict[str, tuple[object, ...]]]:
    every = await memory.facts.list(None)
    return sorted(every, key=lambda fact: fact.id), await indexed(memory)


@pytest.mark.parametrize(
    "act",
    [
        lambda memory: say(memory, "I love tea"),
        lambda memory: say(memory, "I moved to Lyon"),
        lambda memory: say(memory, "I live in Rome"),
        lambda memory: memory.facts.add("The cat is called Tom"),
        lambda memory: memory.facts.edit("f1", "I live in Milan, near the park"),
        lambda memory: memory.facts.edit("f1", domain="work", confidence="low"),
        lambda memory: memory.facts.edit("f2", "I live in Milan"),
        lambda memory: memory.facts.pin("f1"),
        lambda memory: memory.facts.confirm("f1"),
    ],
    ids=["learn", "supersede", "repeat", "add", "edit", "edit fields", "edit into a held place", "pin", "confirm"],
)
async def test_undo_restores_facts_and_index_exactly(
    open_memory: OpenMemory, act: Callable[[Memory], Awaitable[object]]
) -> None:
    clock = FakeClock()
    async with open_memory(clock) as memory:
        await say(memory, "I live in Rome")
        await say(memory, "I love coffee")
        before = await state(memory)
        clock.advance(days=1)
        await act(memory)
        assert await state(memory) != before
        clock.advance(days=1)
        await memory.facts.undo()
        assert await state(memory) == before
        await assert_sound(memory)


async def test_undo_of_one_fact_leaves_later_acts_on_others(open_memory: OpenMemory) -> None:
    async with open_memory() as memory:
        await say(memory, "I love coffee")
        await say(memory, "I love tea")
        (undone,) = await memory.facts.undo("f1")
        assert undone.id == "f1"
        assert await texts(memory) == {"I love tea"}
        with pytest.raises(NotFound):
            await memory.facts.get("f1")


async def test_f7_an_old_replacement_is_not_undone_under_a_newer_one(open_memory: OpenMemory) -> None:
    async with open_memory() as memory:
        await say(memory, "I live in Rome")
        await say(memory, "I moved to Lyon")
        await say(memory, "I moved to Oslo")
        with pytest.raises(Refused, match="f2"):
            await memory.facts.undo("f1")
        await memory.facts.undo("f2")
        assert "Lyon" in "".join(await texts(memory))
        await memory.facts.undo("f1")
        assert await texts(memory) == {"I live in Rome"}
        await assert_sound(memory)


async def test_an_act_is_undone_once(open_memory: OpenMemory) -> None:
    async with open_memory() as memory:
        await say(memory, "I love tea")
        await memory.facts.undo()
        with pytest.raises(NotFound, match="nothing to undo"):
            await memory.facts.undo()


async def test_history_tells_what_was_done_oldest_first_and_the_newest_of_it(open_memory: OpenMemory) -> None:
    clock = FakeClock()
    async with open_memory(clock) as memory:
        await memory.facts.add("I love tea")
        clock.advance(days=1)
        await memory.facts.pin("f1")
        await memory.facts.undo()
        history = await memory.facts.history("f1")
        assert [(event.action, event.undone) for event in history] == [
            ("added", False),
            ("pinned", True),
            ("reverted", False),
        ]
        assert history[1].at == clock.now
        assert [event.action for event in await memory.facts.history(limit=1)] == ["reverted"]


# --- changing


async def test_an_edit_keeps_the_id_and_counts_as_a_confirmation(open_memory: OpenMemory) -> None:
    clock = FakeClock()
    async with open_memory(clock) as memory:
        await say(memory, "I live in Rom")
        clock.advance(days=200)
        edited = await memory.facts.edit("f1", "I live in Rome")
        assert (edited.id, edited.fact, edited.state, edited.last_confirmed_at) == (
            "f1",
            "I live in Rome",
            "active",
            clock.now,
        )
        assert edited.value == "rome"
        await assert_sound(memory)
        assert (await say(memory, "I moved to Lyon")).superseded[0].id == "f1"


async def test_a_long_fact_is_cut_at_the_end_of_a_clause_and_fits_a_request_even_pinned(
    open_memory: OpenMemory,
) -> None:
    clauses = [f"the number {number} of the things I must never forget is rather long" for number in range(20)]
    async with open_memory() as memory:
        fact = await memory.facts.add(", ".join(clauses), pinned=True)
        limit = Limits().fact_tokens
        assert limit / 2 < count_tokens(fact.fact) < limit
        assert fact.fact.endswith("long")
        assert fact.quote == ", ".join(clauses)
        assert [chosen.fact.id for chosen in await memory.facts.choose("hello")] == ["f1"]


@pytest.mark.parametrize("text", ["supercalifragilistic" * 60, "中文没有空格" * 60, "word " * 300])
async def test_a_long_fact_without_clauses_is_cut_too(open_memory: OpenMemory, text: str) -> None:
    async with open_memory() as memory:
        fact = await memory.facts.add(text)
        assert 10 < count_tokens(fact.fact) < Limits().fact_tokens
        assert text.startswith(fact.fact)


async def test_facts_are_listed_by_state_domain_and_words_newest_first(open_memory: OpenMemory) -> None:
    clock = FakeClock()
    async with open_memory(clock) as memory:
        await memory.facts.add("My cat is Tom", domain="personal", confidence="low")
        clock.advance(days=31)
        await memory.facts.add("My dog is Rex", domain="work")
        await memory.facts.add("The plan is Zeta", domain="work")
        assert [fact.id for fact in await memory.facts.list()] == ["f3", "f2"]
        assert [fact.id for fact in await memory.facts.list("explicit-only")] == ["f1"]
        assert [fact.id for fact in await memory.facts.list(None, text="MY ")] == ["f2", "f1"]
        assert [fact.id for fact in await memory.facts.list(None, domain="personal")] == ["f1"]
        clock.advance(days=150)
        assert [fact.id for fact in await memory.facts.list("stale")] == ["f1"]
        clock.advance(days=20)
        assert [fact.id for fact in await memory.facts.due()] == ["f2", "f3"]


# --- secrets


@pytest.mark.parametrize("text", ["My password is hunter2", "My card is 4111 1111 1111 1111"])
async def test_a_credential_is_refused_unless_insisted_upon(open_memory: OpenMemory, text: str) -> None:
    async with open_memory() as memory:
        with pytest.raises(Refused, match="credential"):
            await memory.facts.add(text)
        kept = await memory.facts.add("I love tea")
        with pytest.raises(Refused, match="credential"):
            await memory.facts.edit(kept.id, text)
        assert await texts(memory) == {"I love tea"}
        assert (await memory.facts.add(text, insist=True)).fact == text
        assert (await memory.facts.edit(kept.id, f"{text}, really", insist=True)).id == kept.id


async def test_a_credential_in_a_message_is_named_by_kind_and_not_learned(open_memory: OpenMemory) -> None:
    async with open_memory() as memory:
        turn = await say(memory, "Remember that my password is hunter2")
        assert (turn.learned, turn.refused) == ((), ("password",))


async def test_a_credential_beside_a_fact_is_not_in_its_quote(open_memory: OpenMemory) -> None:
    async with open_memory() as memory:
        turn = await say(memory, "I live in Rome and remember that my password is hunter2")
        assert ([fact.fact for fact in turn.learned], turn.refused) == (["I live in Rome"], ("password",))
        stored = await memory.database.fetch_all("SELECT fact, quote, value FROM facts")
        events = await memory.database.fetch_all("SELECT before, after FROM fact_events")
        assert "hunter2" not in json.dumps([tuple(row) for row in (*stored, *events)])


# --- several at once, and kill -9

ADDER = """
import asyncio, sys
from memory import Memory

async def main():
    async with Memory.open(sys.argv[1]) as memory:
        print("ready", flush=True)
        sys.stdin.readline()
        for number in range(int(sys.argv[3])):
            await memory.facts.add(f"The {sys.argv[2]} number {number} is kept in drawer {number}")
            await memory.facts.add(f"The shared item {number} is kept in the cellar")
            await memory.facts.add(f"I live in {sys.argv[2]}ville{number}")

asyncio.run(main())
"""


async def test_two_processes_add_facts_at_once_and_none_is_lost_or_doubled(open_memory: OpenMemory) -> None:
    async with open_memory() as memory:
        path = memory.database.path
    both = [start_python(ADDER, path, name, 15) for name in ("left", "right")]
    for process in both:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in both:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    errors = [(await asyncio.to_thread(process.communicate))[1] for process in both]
    assert errors == ["", ""]
    async with open_memory(path=path) as memory:
        await assert_sound(memory)
        kept = [fact.fact for fact in await memory.facts.list(None) if "kept" in fact.fact]
        assert len(kept) == len(set(kept)) == 45
        homes = [fact for fact in await memory.facts.list(None) if fact.attribute == "home"]
        assert len(homes) == 30
        assert len(await memory.facts.chain(homes[0].id)) == 30


async def test_f7_facts_that_sound_alike_but_tell_no_change_stay_side_by_side(open_memory: OpenMemory) -> None:
    async with open_memory() as memory:
        for number in range(8):
            await memory.facts.add(f"The box {number} is kept in the cellar")
        assert {fact.status for fact in await memory.facts.list(None)} == {"current"}


async def test_tasks_of_one_process_adding_the_same_fact_store_it_once(open_memory: OpenMemory) -> None:
    async with open_memory() as memory:
        added = await asyncio.gather(*(memory.facts.add("The cat is called Tom") for _ in range(5)))
        assert {fact.id for fact in added} == {"f1"}


# For each number it reads, a fork tells facts from that number on until it is killed; then it says so.
TELLER = """
import asyncio, os, sys
from memory import Memory
from memory.testing import HashEmbedder

async def tell(path, number, end):
    async with Memory.open(path, embedder=HashEmbedder()) as memory:
        while number != end:
            fact = await memory.facts.add(f"Parcel {number} lies on shelf {number * 7}")
            os.write(1, f"{number} {fact.id}\\n".encode())
            number += 1

asyncio.run(tell(sys.argv[1] + ".warm", 0, 1))  # loads what each of them needs
for line in sys.stdin:
    child = os.fork()
    if child == 0:
        asyncio.run(tell(sys.argv[1], int(line), None))
    os.write(1, f"child {child}\\n".encode())
    os.write(1, f"ended {os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])}\\n".encode())
"""


@pytest.mark.long
async def test_f10_a_thousand_acknowledged_facts_survive_kill_9_each_with_vector_and_words(tmp_path: Path) -> None:
    path = tmp_path / "ana.db"
    acknowledged: dict[str, str] = {}
    with start_python(TELLER, path) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline() == "0 f1\n"
        for goal in (150, 400, 700, 1000):
            process.stdin.write(f"{1000 * goal}\n")
            process.stdin.flush()
            told: dict[str, str] = {}
            while "ended" not in told:
                name, value = process.stdout.readline().split()
                told[name] = value
                if len(acknowledged) + len(told) == goal + 1:
                    os.kill(int(told["child"]), signal.SIGKILL)
            assert int(told.pop("ended")) == -signal.SIGKILL
            del told["child"]
            acknowledged |= told
        process.stdin.close()
    async with Memory.open(path, embedder=HashEmbedder()) as memory:
        assert memory.database.recovered
        stored = {fact.id: fact.fact for fact in await memory.facts.list(None)}
        for number, fact_id in acknowledged.items():
            assert stored[fact_id] == f"Parcel {number} lies on shelf {int(number) * 7}"
        assert len(acknowledged) >= 1000
        await assert_sound(memory)
        assert await memory.database.fetch_value("PRAGMA integrity_check") == "ok"
