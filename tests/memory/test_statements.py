"""Statements (M1 to M3, F13): what is kept of turns, how it reads, and how it fades."""

from datetime import UTC, datetime

from memory.testing import FakeClock
from tests.memory.conftest import OpenMemory

NOON = datetime(2023, 5, 8, 12, tzinfo=UTC)


async def kept(memory: object, *turns: tuple[str, str]) -> list[str]:
    """The statements made of some turns."""
    session = await memory.open_session()  # type: ignore[attr-defined]
    for role, text in turns:
        await memory.add_turn(session.id, role, text, speaker="Ana" if role == "user" else "assistant")  # type: ignore[attr-defined]
    await memory.open_session()  # type: ignore[attr-defined]
    await memory.run_pending()  # type: ignore[attr-defined]
    return [row["text"] for row in await memory.database.fetch_all("SELECT text FROM statements ORDER BY id")]  # type: ignore[attr-defined]


async def test_m1_greetings_praise_and_thanks_are_not_kept(open_memory: OpenMemory) -> None:
    async with open_memory(clock=FakeClock(NOON)) as memory:
        lines = await kept(
            memory,
            ("user", "Hey there! Good morning!"),
            ("assistant", "Hello! That sounds great, you're awesome!"),
            ("user", "My sister Clara opened a bakery in Porto with two ovens."),
            ("assistant", "Wow, that's so lovely! Thanks for sharing."),
        )
    assert lines == ["Ana: My sister Clara opened bakery in Porto with two ovens."]


async def test_m1_relative_times_carry_their_date(open_memory: OpenMemory) -> None:
    async with open_memory(clock=FakeClock(NOON)) as memory:
        lines = await kept(
            memory,
            ("user", "Yesterday I sold the piano to Mr Kowalski."),
            ("user", "La semana pasada compré una bicicleta roja en Sevilla."),
            ("user", "昨天我把钢琴卖给了王先生。"),
        )
    assert "Yesterday (2023-05-07) I sold piano" in lines[0]
    assert "La semana pasada (2023-05-01..05-07) compré" in lines[1]
    assert "昨天 (2023-05-07)" in lines[2]


async def test_m1_a_bare_answer_comes_with_its_question(open_memory: OpenMemory) -> None:
    async with open_memory(clock=FakeClock(NOON)) as memory:
        lines = await kept(
            memory,
            ("user", "I adopted kittens from the shelter in Leeds on Monday."),
            ("assistant", "How many kittens did you adopt from the shelter?"),
            ("user", "Two of them."),
        )
    assert any("How many kittens" in line and line.endswith("Two of them.") for line in lines)


async def test_m1_a_condition_stays_a_condition(open_memory: OpenMemory) -> None:
    async with open_memory(clock=FakeClock(NOON)) as memory:
        lines = await kept(memory, ("user", "Si Marta vende la casa de Cádiz, compro un barco de doce metros."))
    assert lines[0].startswith("Ana: Si Marta vende")


async def test_m1_forwarded_lines_and_code_are_nobodys_words(open_memory: OpenMemory) -> None:
    async with open_memory(clock=FakeClock(NOON)) as memory:
        lines = await kept(
            memory, ("user", "> I robbed the bank in Lisbon in 2019\n```\nsecret = 'Zanzibar 1984'\n```")
        )
    assert not any("Lisbon" in line or "Zanzibar" in line for line in lines)


async def test_m3_the_same_said_again_is_one_statement_with_the_newer_date(open_memory: OpenMemory) -> None:
    clock = FakeClock(NOON)
    async with open_memory(clock=clock) as memory:
        await kept(memory, ("user", "The plumber Ruben charges 80 euros an hour in Rosario."))
        clock.advance(days=9)
        lines = await kept(memory, ("user", "the plumber Ruben really charges 80 euros an hour in Rosario!"))
        assert len(lines) == 1
        assert (await memory.timeline())[0].at == clock()


async def test_m3_another_number_name_or_negation_is_never_a_duplicate(open_memory: OpenMemory) -> None:
    async with open_memory(clock=FakeClock(NOON)) as memory:
        lines = await kept(
            memory,
            ("user", "The plumber Ruben charges 80 euros an hour in Rosario."),
            ("user", "The plumber Ruben charges 90 euros an hour in Rosario."),
            ("user", "The plumber Anselmo charges 80 euros an hour in Rosario."),
            ("user", "The plumber Ruben never charges 80 euros an hour in Rosario."),
        )
    assert len(lines) == 4


async def test_m2_what_nobody_reads_is_dropped_after_365_days_of_use_and_a_holiday_counts_for_nothing(
    open_memory: OpenMemory,
) -> None:
    clock = FakeClock(NOON)
    async with open_memory(clock=clock) as memory:
        lines = await kept(memory, ("user", "The lighthouse keeper Bruno paints boats in Cadaqués."))
        assert len(lines) == 1
        clock.advance(days=3000)  # nobody talks to it for years
        await memory.run_pending()
        assert len(await memory.timeline()) == 1
        session = await memory.open_session()
        for _ in range(364):
            clock.advance(days=1)
            await memory.add_turn(session.id, "user", "ok")
        await memory.run_pending()
        assert len(await memory.timeline()) == 1
        for _ in range(3):
            clock.advance(days=1)
            await memory.add_turn(session.id, "user", "ok")
        await memory.run_pending()
        assert await memory.timeline() == []
        assert await memory.recall("the lighthouse keeper", kinds=["world", "experience"]) == []


async def test_m2_what_a_request_contained_counts_as_read(open_memory: OpenMemory) -> None:
    clock = FakeClock(NOON)
    async with open_memory(clock=clock) as memory:
        await kept(memory, ("user", "The lighthouse keeper Bruno paints boats in Cadaqués."))
        session = await memory.open_session()
        for _ in range(200):
            clock.advance(days=1)
            await memory.add_turn(session.id, "user", "ok")
        await memory.add_turn(session.id, "user", "What did the lighthouse keeper Bruno do?")
        context = await memory.assemble(session.id)
        assert context.sections["recalled"].items
        await memory.add_turn(session.id, "assistant", "He paints boats.")
        await memory.run_pending()
        row = await memory.database.fetch_one("SELECT read_on FROM statements")
        days = await memory.database.fetch_value("SELECT max(number) FROM days")
        assert row is not None
        assert row["read_on"] == days


async def test_f13_a_statement_shares_the_state_of_the_fact_it_says(open_memory: OpenMemory) -> None:
    clock = FakeClock(NOON)
    async with open_memory(clock=clock) as memory:
        session = await memory.open_session()
        turn = await memory.add_turn(session.id, "user", "I live in Wellington.")
        assert turn.learned
        session = await memory.open_session()
        await memory.run_pending()
        assert any("Wellington" in hit.text for hit in await memory.recall("Where do I live?", kinds=["experience"]))
        await memory.add_turn(session.id, "user", "I moved to Auckland.")
        await memory.add_turn(session.id, "user", "Where do I live?")
        context = await memory.assemble(session.id)
        assert not any("Wellington" in item.text for item in context.sections["recalled"].items)


async def test_f13_a_statement_of_a_stale_fact_is_not_found(open_memory: OpenMemory) -> None:
    clock = FakeClock(NOON)
    async with open_memory(clock=clock) as memory:
        assert await kept(memory, ("user", "I live in Wellington."))
        clock.advance(days=179)
        assert await memory.recall("Who lives in Wellington?", kinds=["experience"])
        clock.advance(days=2)
        assert await memory.recall("Who lives in Wellington?", kinds=["experience"]) == []
