"""F11: forgetting is complete, cannot be undone, and nothing brings back what was forgotten but the user."""

import json
import re
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory import Memory
from memory.errors import NotFound
from memory.forget import CUT, without
from memory.language import fold
from memory.learn import normalised
from memory.limits import Limits
from memory.stores import facts as rows
from memory.testing import FakeClock
from memory.values import Turn

OpenMemory = Callable[..., AbstractAsyncContextManager[Memory]]


async def say(memory: Memory, text: str, role: str = "user", session: int | None = None) -> Turn:
    number = session or (await memory.open_session()).id
    return await memory.add_turn(number, role=role, content=text)  # type: ignore[arg-type]


def content(path: Path) -> bytes:
    """All that lies in the folder: the file, its log, copies."""
    return b"".join(file.read_bytes() for file in sorted(path.parent.rglob("*")) if file.is_file())


async def turns(memory: Memory) -> list[str]:
    return [row["content"] for row in await memory.database.fetch_all("SELECT content FROM turns ORDER BY id")]


async def buried(memory: Memory, text: str) -> bool:
    async with memory.database.transaction() as tx:
        return await rows.is_buried(tx, normalised(text, memory.packs["en"]))


async def test_f11_no_byte_of_a_forgotten_fact_is_left_in_the_files(open_memory: OpenMemory) -> None:
    async with open_memory() as memory:
        path = memory.database.path
        await say(memory, "I love coffee")
        turn = await say(memory, "Hello there. I live in Xylophonia. Nice day.")
        (fact,) = turn.learned
        vector = (await memory.index.prepare([fact.fact])).vectors[0].tobytes()
        await memory.facts.pin(fact.id)
        query = await memory.index.query_vector("do I live in Xylophonia?")
        assert query is not None
        await memory.index.keep_queries()
        await memory.database.checkpoint()
        assert query.tobytes() in content(path)
        assert b"Xylophonia" in content(path)
        assert vector in content(path)
        forgotten = await memory.facts.forget(fact.id)
        assert forgotten.complete
        assert b"xylophonia" not in content(path).lower()
        assert b"xylophon" not in content(path).lower()
        assert vector not in content(path)
        assert query.tobytes() not in content(path)
        assert await turns(memory) == ["I love coffee", f"Hello there. {CUT} Nice day."]
        assert [found.fact for found in await memory.facts.list(None)] == ["I love coffee"]
    assert b"xylophon" not in content(path).lower()


async def test_f11_a_fact_is_forgotten_with_all_it_replaced_and_was_replaced_by(open_memory: OpenMemory) -> None:
    async with open_memory() as memory:
        for city in ("Xanadu", "Yarrowby", "Zembla"):
            await say(memory, f"I moved to {city}")
        await say(memory, "I love coffee")
        preview = await memory.facts.preview_forget("f2")
        assert [fact.id for fact in preview.facts] == ["f1", "f2", "f3"]
        assert len(preview.turns) == 3
        assert len(await memory.facts.list(None)) == 4  # a look changes nothing
        forgotten = await memory.facts.forget("f2")
        assert (forgotten.facts, forgotten.turns) == (preview.facts, preview.turns)
        assert [fact.id for fact in await memory.facts.list(None)] == ["f4"]
        for city in (b"xanadu", b"yarrowby", b"zembla"):
            assert city not in content(memory.database.path).lower()


async def test_f11_the_history_keeps_id_time_and_action_only(open_memory: OpenMemory) -> None:
    clock = FakeClock()
    async with open_memory(clock) as memory:
        await say(memory, "I live in Xanadu")
        clock.advance(days=1)
        await memory.facts.pin("f1")
        await memory.facts.forget("f1")
        history = await memory.facts.history("f1")
        assert [(event.id, event.action, event.fact) for event in history] == [
            ("f1", "learned", None),
            ("f1", "pinned", None),
            ("f1", "forgotten", None),
        ]
        assert history[2].at == clock.now
        images = await memory.database.fetch_all("SELECT before, after FROM fact_events")
        assert {tuple(row) for row in images} == {(None, None)}


async def test_f11_forgetting_cannot_be_undone_and_says_so(open_memory: OpenMemory) -> None:
    async with open_memory() as memory:
        await say(memory, "I live in Xanadu")
        await memory.facts.forget("f1")
        for fact_id in ("f1", None):
            with pytest.raises(NotFound, match="cannot come back"):
                await memory.facts.undo(fact_id)
        for call in (memory.facts.get, memory.facts.forget, memory.facts.preview_forget):
            with pytest.raises(NotFound):
                await call("f1")


async def test_f11_ids_are_not_given_out_twice(open_memory: OpenMemory) -> None:
    async with open_memory() as memory:
        await memory.facts.add("The cat is called Tom")
        await memory.facts.forget("f1")
        assert (await memory.facts.add("The dog is called Rex")).id == "f2"


async def test_f11_earlier_wordings_of_a_corrected_fact_go_too(open_memory: OpenMemory) -> None:
    async with open_memory() as memory:
        await say(memory, "I live in Xanadu")
        await memory.facts.edit("f1", "I live in Yarrowby")
        await memory.facts.edit("f1", "I live in Zembla")
        await memory.facts.forget("f1")
        for city in ("xanadu", "yarrowby", "zembla"):
            assert city.encode() not in content(memory.database.path).lower()
            assert await buried(memory, f"I live in {city}")


async def test_f11_what_was_undone_before_goes_with_what_says_the_same(open_memory: OpenMemory) -> None:
    async with open_memory() as memory:
        await memory.facts.add("The code name is Xanadu")
        await memory.facts.undo()
        await memory.facts.add("The code name is Xanadu")
        await memory.facts.forget("f2")
        assert b"xanadu" not in content(memory.database.path).lower()


async def test_f11_a_fact_whose_learning_was_undone_can_be_forgotten(open_memory: OpenMemory) -> None:
    async with open_memory() as memory:
        await memory.facts.add("The code name is Xanadu")
        await memory.facts.undo()
        await memory.facts.forget("f1")
        assert b"xanadu" not in content(memory.database.path).lower()


async def test_f11_a_fact_of_the_same_sentence_stays_without_the_forgotten_words(open_memory: OpenMemory) -> None:
    async with open_memory() as memory:
        turn = await say(memory, "I live in Rome and I love xylophones")
        assert [fact.fact for fact in turn.learned] == ["I live in Rome", "I love xylophones"]
        await memory.facts.forget("f2")
        (left,) = await memory.facts.list(None)
        assert (left.fact, left.quote) == ("I live in Rome", "I live in Rome")
        assert b"xylophon" not in content(memory.database.path).lower()
        await memory.facts.confirm("f1")
        await memory.facts.undo()
        assert (await memory.facts.get("f1")).quote == "I live in Rome"


async def test_f11_the_words_go_from_every_turn_whoever_said_them_and_however(open_memory: OpenMemory) -> None:
    async with open_memory() as memory:
        session = (await memory.open_session()).id
        await say(memory, "I live in Málaga", session=session)
        await say(memory, "Noted: you live in Málaga. Anything else?", "assistant", session)
        await say(memory, "i  LIVE in\nmalaga, as I said", session=session)
        await say(memory, "Is the weather good? My team is there.", session=session)
        await memory.facts.forget("f1")
        left = await turns(memory)
        assert "laga" not in json.dumps(left).lower().replace("\\u00e1", "a")
        assert left[1].endswith("Anything else?")
        assert left[3] == "Is the weather good? My team is there."


async def test_f11_only_whole_words_are_cut(open_memory: OpenMemory) -> None:
    async with open_memory() as memory:
        await say(memory, "I love tea. My team is great, and teapots are nice.")
        await memory.facts.forget("f1")
        assert await turns(memory) == [f"{CUT} My team is great, and teapots are nice."]


async def test_f11_another_fact_with_other_small_words_stays(open_memory: OpenMemory) -> None:
    async with open_memory() as memory:
        await memory.facts.add("The shop opens before nine")
        await memory.facts.add("The shop opens after nine")
        await memory.facts.forget("f1")
        assert [fact.fact for fact in await memory.facts.list(None)] == ["The shop opens after nine"]


async def test_f11_a_tombstone_tells_background_work_and_the_user_takes_it_away(open_memory: OpenMemory) -> None:
    async with open_memory() as memory:
        await say(memory, "I live in Xanadu")
        assert not await buried(memory, "I live in Xanadu")
        await memory.facts.forget("f1")
        assert await buried(memory, "I live in Xanadu")
        assert await buried(memory, "i live in XANADU!")
        assert not await buried(memory, "I live in Rome")
        turn = await say(memory, "I live in Xanadu")
        assert [fact.id for fact in turn.learned] == ["f2"]
        assert not await buried(memory, "I live in Xanadu")


async def test_f11_the_tombstone_is_keyed_so_that_guessing_needs_the_key(open_memory: OpenMemory) -> None:
    hashes = []
    for _ in range(2):
        async with open_memory() as memory:
            await say(memory, "I live in Xanadu")
            await memory.facts.forget("f1")
            hashes.append(await memory.database.fetch_value("SELECT hash FROM tombstones"))
    assert hashes[0] != hashes[1]


async def test_f11_while_somebody_reads_forgetting_says_that_it_is_not_complete(open_memory: OpenMemory) -> None:
    async with open_memory(limits=Limits(busy_timeout_ms=100)) as memory:
        await say(memory, "I live in Xanadu")
        async with open_memory(path=memory.database.path) as other, other.database.snapshot() as view:
            await view.fetch_all("SELECT * FROM facts")
            forgotten = await memory.facts.forget("f1")
            assert not forgotten.complete
        assert await memory.database.checkpoint()
        assert b"xanadu" not in content(memory.database.path).lower()


# --- cutting words out


words = st.text("abcABCéÉ", min_size=3, max_size=6)


@given(st.lists(words | st.text(" \n.,!中文", min_size=1, max_size=3), max_size=12), words)
def test_what_is_to_be_cut_is_not_left_as_a_whole_word(pieces: list[str], word: str) -> None:
    content = " ".join([*pieces, word, *reversed(pieces)])
    left = re.findall(r"[a-z]+", fold(without(content, [word])))
    assert fold(word) not in left
    assert left == [piece for piece in re.findall(r"[a-z]+", fold(content)) if piece != fold(word)]


@pytest.mark.parametrize(
    ("content", "texts", "left"),
    [
        ("I live in Rome.", ["i  live in\tROME"], f"{CUT}."),
        ("Vivo en Málaga", ["malaga"], f"Vivo en {CUT}"),
        ("我住在罗马。你呢", ["我住在罗马"], f"{CUT}。你呢"),
        ("a tea, teapot, tea", ["tea"], f"a {CUT}, teapot, {CUT}"),
        ("C++ (really)", ["C++ (really)"], CUT),
        ("to be or", ["", " ", "   ", "be"], "to be or"),
    ],
)
def test_words_are_cut_whatever_their_case_accents_and_spacing(content: str, texts: list[str], left: str) -> None:
    assert without(content, texts) == left
