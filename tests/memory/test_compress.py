"""Compression (S1 to S5): turns become statements and a key-value summary, wholly or not at all."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memory import Memory
from memory.errors import DatabaseError
from memory.limits import Limits
from memory.stores import context as context_rows
from memory.stores import turns as turn_rows
from memory.summarise import Notes, render
from memory.testing import FakeClock, start_python
from memory.tokens import count_tokens
from memory.values import Note, Summary, Turn

OpenMemory = Callable[..., AbstractAsyncContextManager[Memory]]
KEYS = ("topic", "discussed", "outcome", "decisions", "open_questions")
GARDEN = (
    "I am planning the garden: tomatoes along the south wall.",
    "Tomatoes like that wall. How many plants do you want?",
    "Let's go with six plants, and basil between them.",
    "Basil is a good neighbour. Plant it two weeks later.",
    "Does the basil need as much water as the tomatoes?",
    "About the same, but it hates cold water in the evening.",
    "The tomatoes need stakes, I will buy bamboo ones.",
    "Bamboo lasts three seasons, then it rots.",
    "Where do I get good bamboo for the tomatoes?",
)


async def talk(memory: Memory, session_id: int, contents: Sequence[str]) -> list[Turn]:
    roles = ("user", "assistant")
    return [
        await memory.add_turn(session_id, roles[number % 2], content)  # type: ignore[arg-type]
        for number, content in enumerate(contents)
    ]


async def all_summaries(memory: Memory) -> list[Summary]:
    return await context_rows.slots(memory.database, "repl", "me", 10_000)


def note_of(summary: Summary) -> Note:
    return Note(
        topic=summary.topic,
        discussed=summary.discussed,
        outcome=summary.outcome,
        decisions=summary.decisions,
        open_questions=summary.open_questions,
    )


async def statement_texts(memory: Memory) -> list[str]:
    return [row["text"] for row in await memory.database.fetch_all("SELECT text FROM statements ORDER BY id")]


async def dump(memory: Memory) -> list[str]:
    """Every text in every table of the file but statements and what repeats them in the index."""
    texts: list[str] = []
    tables = await memory.database.fetch_all("SELECT name FROM sqlite_master WHERE type = 'table'")
    for table in (row["name"] for row in tables):
        if table == "statements":
            continue
        where = " WHERE kind NOT IN ('world', 'experience', 'opinion', 'observation')" if table == "entries" else ""
        for row in await memory.database.fetch_all(f'SELECT * FROM "{table}"{where}'):
            texts += [value for value in tuple(row) if isinstance(value, str)]
    return texts


# -- S1, S2: the form


async def test_s1_turns_are_compressed_three_together(open_memory: OpenMemory) -> None:
    async with open_memory() as memory:
        session = await memory.open_session()
        turns = await talk(memory, session.id, GARDEN)
        assert not any(turn.topic_shift for turn in turns), "one topic"
        await memory.run_pending()
        rows = await memory.database.fetch_all("SELECT first_turn, last_turn FROM summaries ORDER BY id")
        assert [row["last_turn"] - row["first_turn"] + 1 for row in rows] == [3] * len(rows) != []


async def test_s1_a_shift_closes_a_shorter_segment(open_memory: OpenMemory) -> None:
    async with open_memory() as memory:
        session = await memory.open_session()
        await talk(memory, session.id, [*GARDEN[:4], "Changing the subject: where can I buy running shoes?"])
        await memory.run_pending()
        rows = await memory.database.fetch_all("SELECT first_turn, last_turn FROM summaries ORDER BY id")
        assert [row["last_turn"] - row["first_turn"] + 1 for row in rows] == [3, 1]


def assert_key_value(summary: Summary, limits: Limits) -> None:
    assert summary.topic
    assert count_tokens(summary.rendered) == summary.token_count <= limits.summary_tokens
    assert "\n" not in summary.rendered
    values = {
        "topic": summary.topic,
        "discussed": ", ".join(summary.discussed),
        "outcome": summary.outcome,
        "decisions": " / ".join(summary.decisions),
        "open_questions": " / ".join(summary.open_questions),
    }
    # the line is nothing but its keys and values, and an empty key is not there
    assert summary.rendered == "; ".join(f"{key}: {values[key]}" for key in KEYS if values[key])


TEXTS = st.one_of(
    st.sampled_from([*GARDEN, "", "记住我们决定用这个", "¿Qué hacemos con el jardín?", "ok", "🙂", "x" * 3000]),
    st.text(max_size=200),
    st.builds(lambda text, times: text * times, st.text(min_size=1, max_size=20), st.integers(1, 200)),
)


@settings(
    max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(contents=st.lists(TEXTS, min_size=1, max_size=9))
async def test_s2_summaries_of_anything_are_keys_and_values_of_at_most_50_tokens(
    open_memory: OpenMemory, contents: list[str]
) -> None:
    limits = Limits()
    async with open_memory() as memory:
        session = await memory.open_session()
        await talk(memory, session.id, contents)
        await memory.open_session()
        await memory.run_pending()
        for summary in await all_summaries(memory):
            assert_key_value(summary, limits)
        assert await turn_rows.with_content(memory.database) == []
        for text in await statement_texts(memory):
            assert count_tokens(text) <= limits.item_tokens
            assert "\n" not in text


WORDS = st.text(max_size=300)


@settings(max_examples=150, deadline=None)
@given(
    notes=st.builds(
        Notes,
        topic=WORDS,
        discussed=st.lists(WORDS, max_size=6).map(tuple),
        outcome=WORDS,
        decisions=st.lists(WORDS, max_size=4).map(tuple),
        open_questions=st.lists(WORDS, max_size=4).map(tuple),
    )
)
def test_s2_any_notes_are_rendered_in_50_tokens_on_one_line(notes: Notes) -> None:
    kept, line = render(notes, Limits())
    assert count_tokens(line) <= 50
    assert line.startswith("topic: ")
    assert len(line.splitlines()) == 1
    assert kept.topic


async def test_s3_a_summary_is_written_once_and_never_changes(open_memory: OpenMemory) -> None:
    clock = FakeClock()
    async with open_memory(clock) as memory:
        session = await memory.open_session()
        seen: dict[str, Summary] = {}
        for round_ in range(4):
            await talk(memory, session.id, GARDEN)
            clock.advance(days=30)
            if round_ == 2:
                session = await memory.open_session()
            await memory.run_pending()
            await memory.assemble(session.id) if round_ != 2 else None
            now = {summary.id: summary for summary in await all_summaries(memory)}
            notes = {note for episode in await memory.episodes.list() for note in episode.notes}
            assert all(seen[ref] == now[ref] if ref in now else note_of(seen[ref]) in notes for ref in seen)
            seen |= now
        assert len(seen) > 8
        assert any(ref not in now for ref in seen), "some left the slots and live on in their episode"


# -- S4: what is left


async def test_s4_no_raw_words_of_a_compressed_turn_are_left_but_in_statements(
    open_memory: OpenMemory, tmp_path: Path
) -> None:
    path = tmp_path / "left.db"
    raw = "Zanzibar harbours forty-one purple elephants near the lighthouse, they say, every single quiet winter."
    async with open_memory(path=path) as memory:
        session = await memory.open_session()
        await talk(memory, session.id, [raw, "How curious. Tell me more about the lighthouse?", *GARDEN[:3]])
        await memory.open_session()
        assert any(raw in text for text in await dump(memory)), "the raw words are there before"
        await memory.run_pending()
        assert not any(raw in text for text in await dump(memory))
        assert any("Zanzibar harbours forty-one purple elephants" in text for text in await statement_texts(memory))
        rows = await memory.database.fetch_all("SELECT content, summarized_at FROM turns")
        assert {row["content"] for row in rows} == {""}
        assert all(row["summarized_at"] for row in rows)
        assert await memory.database.fetch_value("SELECT count(*) FROM segments") == 0
        indexed = await memory.database.fetch_all("SELECT DISTINCT kind FROM entries")
        assert {row["kind"] for row in indexed} <= {
            "world",
            "experience",
            "opinion",
            "observation",
            "summary",
            "fact",
            "episode",
        }
        refs = await memory.database.fetch_value(
            "SELECT count(*) FROM entries WHERE kind NOT IN ('summary', 'fact', 'episode') AND ref NOT IN "
            "(SELECT 's' || id FROM statements)"
        )
        assert refs == 0
        await memory.database.fetch_all("SELECT 1")
        await memory.database.checkpoint()
        statements = await statement_texts(memory)
    # in the bytes of the file too: only as often as statements and their index entries say it
    held = path.read_bytes().count(raw.rstrip(".").encode())
    assert held <= 2 * sum(raw.rstrip(".") in text for text in statements)


async def test_s4_what_turns_say_is_found_after_compression(open_memory: OpenMemory) -> None:
    async with open_memory() as memory:
        session = await memory.open_session()
        await memory.add_turn(session.id, "user", "The plumber comes on the ninth at half past two.", speaker="Ana")
        await memory.add_turn(session.id, "assistant", "Hello!")
        await memory.open_session()
        assert await memory.recall("When does the plumber come?") == []
        await memory.run_pending()
        hits = await memory.recall("When does the plumber come?", kinds=["world", "experience", "opinion"])
        assert hits[0].text == "Ana: plumber comes on ninth at half past two."
        assert hits[0].source == "turn 1"


async def test_a_closed_session_is_compressed_to_its_end(open_memory: OpenMemory) -> None:
    async with open_memory() as memory:
        session = await memory.open_session()
        await talk(memory, session.id, GARDEN[:5])
        assert await memory.run_pending() == 0, "five turns are in the window"
        await memory.open_session()
        assert await memory.run_pending() == 2
        assert await turn_rows.with_content(memory.database) == []
        assert await memory.run_pending() == 0


async def test_forgotten_words_do_not_come_back_through_a_compression_under_way(open_memory: OpenMemory) -> None:
    """F11: a summariser takes its time, and meanwhile the user forgets."""

    class Slow:
        memory: Memory

        async def __call__(self, turns: Sequence[Turn], _: str) -> Notes:
            facts = await self.memory.facts.list()
            for fact in facts:
                await self.memory.facts.forget(fact.id)
            return Notes(topic=" ".join(turn.content for turn in turns)[:40])

    summariser = Slow()
    async with open_memory(summariser=summariser) as memory:
        summariser.memory = memory
        session = await memory.open_session()
        turn = await memory.add_turn(session.id, "user", "I live in Zanzibar.")
        assert turn.learned
        await memory.open_session()
        await memory.run_pending()
        assert await memory.facts.list() == []
        assert not any("Zanzibar" in text for text in [*await dump(memory), *await statement_texts(memory)])


# -- S5: a summariser from outside


class Fixed:
    """A summariser that answers with what it was given, or raises it."""

    def __init__(self, answer: object) -> None:
        self.answer = answer
        self.calls = 0

    async def __call__(self, _: Sequence[Turn], __: str) -> Notes:
        self.calls += 1
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer  # type: ignore[return-value]


class Late:
    """A summariser that never answers."""

    async def __call__(self, _: Sequence[Turn], __: str) -> Notes:
        await asyncio.Event().wait()
        raise AssertionError


async def summarised(open_memory: OpenMemory, summariser: object, limits: Limits | None = None) -> list[Summary]:
    async with open_memory(summariser=summariser, limits=limits) as memory:
        session = await memory.open_session()
        await talk(memory, session.id, GARDEN[:3])
        await memory.open_session()
        assert await memory.run_pending() == 1
        return await all_summaries(memory)


async def test_s5_a_configured_summariser_writes_the_summary(open_memory: OpenMemory) -> None:
    notes = Notes(topic="garden", discussed=("tomatoes", "basil"), outcome="six plants", decisions=("six plants",))
    (summary,) = await summarised(open_memory, Fixed(notes))
    assert summary.rendered == "topic: garden; discussed: tomatoes, basil; outcome: six plants; decisions: six plants"


@pytest.mark.parametrize(
    "answer",
    [
        RuntimeError("no connection"),
        KeyError("choices"),
        TimeoutError(),
        None,
        "We talked about tomatoes.",
        {"topic": "garden"},
        Notes(topic=""),
        Notes(topic="  \n "),
        Notes(topic=7),  # type: ignore[arg-type]
        Notes(topic="garden", discussed="tomatoes"),  # type: ignore[arg-type]
        Notes(topic="garden", decisions=(None,)),  # type: ignore[arg-type]
        Notes(topic="In this conversation the user told the assistant at some length about the plans for tomatoes"),
    ],
    ids=repr,
)
async def test_s5_a_summariser_that_fails_or_answers_nonsense_is_replaced(
    open_memory: OpenMemory, answer: object
) -> None:
    expected = await summarised(open_memory, None)
    summariser = Fixed(answer)
    assert [each.rendered for each in await summarised(open_memory, summariser)] == [each.rendered for each in expected]
    assert summariser.calls == 1


async def test_s5_compression_never_waits_for_a_late_summariser(open_memory: OpenMemory) -> None:
    expected = await summarised(open_memory, None)
    late = await summarised(open_memory, Late(), Limits(summariser_seconds=0.02))
    assert [each.rendered for each in late] == [each.rendered for each in expected]


async def test_s5_a_cancelled_compression_is_cancelled_and_stays_owed(open_memory: OpenMemory) -> None:
    async with open_memory(summariser=Late()) as memory:
        session = await memory.open_session()
        await talk(memory, session.id, GARDEN[:3])
        await memory.open_session()
        task = asyncio.create_task(memory.run_pending())
        await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await memory.database.fetch_value("SELECT count(*) FROM segments") == 1
        assert len(await turn_rows.with_content(memory.database)) == 3


async def test_two_that_compress_at_once_write_everything_once(open_memory: OpenMemory, tmp_path: Path) -> None:
    path = tmp_path / "two.db"
    async with open_memory(path=path) as first, open_memory(path=path) as second:
        session = await first.open_session()
        await talk(first, session.id, GARDEN)
        await first.open_session()
        done = await asyncio.gather(first.run_pending(), second.run_pending(), first.run_pending())
        assert sum(done) == len(await all_summaries(first)) == 3
        texts = await statement_texts(first)
        assert len(texts) == len(set(texts))


# -- killed at every statement

# Compresses a copy of the file in a fork of its own and dies (SIGKILL) when SQLite begins its n-th statement; then
# opens what is left, looks, and lets the work be done. Prints a line for each n until a fork lives to the end.
_KILLED_AT_EVERY_STATEMENT = """
import asyncio, os, shutil, signal, sys
from pathlib import Path
os.environ["TOKENIZERS_PARALLELISM"] = "false"
from memory import Memory
from memory.testing import FakeClock

source, work = Path(sys.argv[1]), Path(sys.argv[2])

async def compress(path, deadly):
    seen = 0
    def trace(_):
        nonlocal seen
        seen += 1
        if seen == deadly:
            os.kill(os.getpid(), signal.SIGKILL)
    async with Memory.open(path, clock=FakeClock()) as memory:
        await memory.database._writer.set_trace_callback(trace)
        await memory.run_pending()
        await memory.database._writer.set_trace_callback(None)

async def look(path):
    async with Memory.open(path, clock=FakeClock()) as memory:
        found = []
        for _ in range(2):
            row = [await memory.database.fetch_value(sql) for sql in (
                "SELECT count(*) FROM turns WHERE content != ''",
                "SELECT count(*) FROM segments",
                "SELECT count(*) FROM summaries",
                "SELECT count(*) FROM statements",
                "SELECT count(*) FROM entries e JOIN entries_fts f ON f.rowid = e.id "
                "JOIN vectors_1 v ON v.rowid = e.id WHERE e.kind NOT IN ('fact', 'episode')",
                "SELECT count(*) FROM traces",
                "SELECT count(*) FROM episodes",
                "SELECT count(*) FROM entries e JOIN vectors_1 v ON v.rowid = e.id WHERE e.kind = 'episode'",
            )]
            found.append(" ".join(map(str, row)))
            await memory.run_pending()
        print(*found, sep=" | ", flush=True)

def fork(work):
    child = os.fork()
    if child == 0:
        try:
            asyncio.run(work)
            os._exit(0)
        except BaseException:
            import traceback
            traceback.print_exc()
            os._exit(1)
    work.close()
    return os.waitpid(child, 0)[1]

def anew():
    for old in work.parent.glob(work.name + "*"):
        old.unlink()
    shutil.copy(source, work)

anew()
asyncio.run(compress(work, 0))  # loads what the work needs, before it forks
for deadly in range(int(sys.argv[3]), 10_000, 2):
    anew()
    status = fork(compress(work, deadly))
    if os.WIFSIGNALED(status):
        print(deadly, end=" | ", flush=True)
        asyncio.run(look(work))
    else:
        assert status == 0
        print("end", end=" | ", flush=True)
        asyncio.run(look(work))
        break
"""


@pytest.mark.long
async def test_killed_at_every_statement_a_restart_finds_the_turn_or_its_summary_and_statements(
    open_memory: OpenMemory, tmp_path: Path
) -> None:
    path = tmp_path / "owed.db"
    async with open_memory(path=path) as memory:
        await memory.facts.add("I live in Rome")  # so that the vectors are there
        session = await memory.open_session()
        await talk(memory, session.id, GARDEN[:2])
        await memory.open_session()
    programs = [start_python(_KILLED_AT_EVERY_STATEMENT, path, tmp_path / f"copy{first}.db", first) for first in (1, 2)]
    lines = []
    for program in programs:  # the odd statements and the even ones
        output, errors = program.communicate()
        assert program.returncode == 0, errors
        lines.append([line.split(" | ") for line in output.splitlines()])
    (*odd, (end, before_end, _)), (*even, other_end) = lines
    assert end == other_end[0] == "end"
    killed = odd + even
    assert sorted(int(each[0]) for each in killed) == list(range(1, len(killed) + 1))
    assert len(killed) > 20, "compression has many statements"
    turns_left, segments_left, summaries, statements, indexed, *episode = map(int, before_end.split())
    assert (turns_left, segments_left, summaries) == (0, 0, 1)
    assert statements > 0
    assert indexed == summaries + statements
    assert episode == [1, 1, 1], "the trace, the episode and what it is found by"
    untouched, open_topic = "2 1 0 0 0 0 0 0", before_end.removesuffix("1 1") + "0 0"
    for _, found, afterwards in killed:
        assert found in (untouched, open_topic, before_end), "the turns or what was made of them, never a part"
        assert afterwards == before_end


async def test_a_disk_that_fails_in_the_middle_leaves_the_turns_and_the_work_owed(open_memory: OpenMemory) -> None:
    """SQLite itself refuses to grow the file; later there is room again."""
    async with open_memory() as memory:
        await memory.facts.add("I live in Rome")  # so that the vectors are there
        session = await memory.open_session()
        long = "The inventory lists " + ", ".join(
            f"crate {number} with spare part {number * 7}" for number in range(900)
        )
        await talk(memory, session.id, [long, "Noted."])
        await memory.open_session()
        writer = memory.database._writer
        assert writer is not None
        pages = int(await memory.database.fetch_value("PRAGMA page_count"))
        await writer.execute_fetchall(f"PRAGMA max_page_count = {pages + 2}")
        with pytest.raises(DatabaseError):
            await memory.run_pending()
        assert len(await turn_rows.with_content(memory.database)) == 2
        assert await all_summaries(memory) == []
        assert await statement_texts(memory) == []
        await writer.execute_fetchall("PRAGMA max_page_count = 1000000")
        assert await memory.run_pending() > 0
        assert await turn_rows.with_content(memory.database) == []
        assert len(await statement_texts(memory)) > 10
