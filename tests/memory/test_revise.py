"""An edited message: what was learnt from it is learnt from its new words (F2, F7)."""

import pytest

from memory.errors import NotFound, Refused

KINDS = ("world", "experience", "opinion", "observation")


async def _said(memory, text):
    session = await memory.resume_session("line", "x")
    return await memory.add_turn(session.id, "user", text)


async def _facts(memory):
    return sorted(fact.fact for fact in await memory.facts.list())


async def test_facts_the_new_words_do_not_state_are_taken_back_and_what_they_replaced_holds_again(open_memory):
    async with open_memory() as memory:
        await _said(memory, "I live in Rome.")
        turn = await _said(memory, "I live in Lyon. I'm allergic to nuts.")
        done = await memory.correct_turn(turn.id, "I live in Lima. I'm allergic to nuts.")
        assert [fact.fact for fact in done.learned] == ["I live in Lima"]
        assert [fact.fact for fact in done.withdrawn] == ["I live in Lyon"]
        assert await _facts(memory) == ["I live in Lima", "I'm allergic to nuts"]
        again = await memory.correct_turn(turn.id, "I live in Lima. I'm allergic to nuts.")  # as after a crash
        assert again.learned == again.withdrawn == ()
        await memory.correct_turn(turn.id, "Nice weather.")
        assert await _facts(memory) == ["I live in Rome"]
        last = await memory.last_turn(turn.session_id)
        assert last is not None and last.content == "Nice weather."


async def test_a_fact_confirmed_since_is_taken_back_too_and_quoted_words_teach_nothing(open_memory):
    async with open_memory() as memory:
        turn = await _said(memory, "I live in Lyon.")
        await memory.facts.confirm("f1")
        await memory.facts.pin("f1")
        done = await memory.correct_turn(turn.id, "Hello.\n\n> I live in Oslo.")
        assert len(done.withdrawn) == 1 and await _facts(memory) == []


async def test_statements_and_the_summary_of_a_compressed_message_that_name_it_go(open_memory):
    async with open_memory() as memory:
        await _said(memory, "The train to Paris was late yesterday.")
        turn = await _said(memory, "I live in Lyon now.")
        await memory.open_session("line", "x")
        await memory.run_pending()
        assert any("Lyon" in hit.text for hit in await memory.recall("Lyon", kinds=KINDS))
        await memory.correct_turn(turn.id, "Never mind.")
        left = [hit.text for hit in await memory.recall("Lyon train", kinds=KINDS)]
        assert left and not any("Lyon" in text for text in left)


async def _compressed(memory, *texts):
    """The turns of a closed and compressed conversation."""
    turns = [await _said(memory, text) for text in texts]
    await memory.open_session("line", "x")
    await memory.run_pending()
    return turns


async def test_the_statements_of_a_compressed_message_are_made_anew_from_its_new_words(open_memory):
    async with open_memory() as memory:
        said = ("My sister Zora visited the museum in Lyon.", "The gardener planted three olive trees on Monday.")
        first, _ = await _compressed(memory, *said)
        for text, wanted, unwanted in (
            ("My sister Zora visited the castle in Oslo.", "castle", ("museum", "Lyon")),
            ("My sister Zora did not visit the castle in Oslo.", "not visit", ("Zora visited",)),
            ("Hm.", "", ("castle", "Oslo", "Zora")),
        ):
            await memory.correct_turn(first.id, text)
            again = await memory.correct_turn(first.id, text)  # as after a crash
            assert again.learned == again.withdrawn == ()
            found = [hit.text for hit in await memory.recall("Zora museum castle Lyon Oslo olive trees", k=20)]
            assert any("olive" in text for text in found)  # what was said beside it stays
            assert any(wanted in text for text in found)
            assert not [text for text in found if any(word in text for word in unwanted)]
            assert await memory.database.fetch_value("SELECT count(*) FROM statements WHERE text LIKE '%Zora%'") <= 1
        kept = await memory.database.fetch_all("SELECT text FROM statements")
        assert [row["text"] for row in kept if "olive" in row["text"]] and len(kept) == 1


async def test_words_that_come_back_with_a_second_edit_are_stated_again(open_memory):
    async with open_memory() as memory:
        (turn,) = await _compressed(memory, "I live in Lyon, beside the old museum.")
        for city in ("Oslo", "Lyon"):
            await memory.correct_turn(turn.id, f"I live in {city}, beside the old museum.")
            lines = await memory.database.fetch_all("SELECT text FROM statements")
            assert len(lines) == 1 and city in lines[0]["text"] and city in str(await _facts(memory))


async def test_what_the_reply_repeated_and_the_episode_tells_of_the_old_words_goes_too(open_memory):
    async with open_memory() as memory:
        turn = await _said(memory, "The meeting with Ruth about the bakery is in Lyon on Friday.")
        await memory.add_turn(turn.session_id, "assistant", "Trains to Lyon leave every hour from the main station.")
        await _said(memory, "The oven of the bakery needs a new door before winter.")
        await memory.open_session("line", "x")
        await memory.run_pending()
        assert any(hit.kind == "episode" for hit in await memory.recall("bakery", k=20))
        await memory.correct_turn(turn.id, "The meeting with Ruth about the bakery is in Oslo on Friday.")
        found = [hit.text for hit in await memory.recall("Lyon Oslo meeting trains bakery oven", k=20)]
        assert any("Oslo" in text for text in found) and any("oven" in text for text in found)
        assert not any("Lyon" in text for text in found)
        for table in ("statements", "summaries", "episodes", "entries"):
            rows = await memory.database.fetch_all(f"SELECT * FROM {table}")
            assert not any("Lyon" in str(tuple(row)) for row in rows), table


async def test_only_turns_of_the_user_can_be_corrected(open_memory):
    async with open_memory() as memory:
        turn = await _said(memory, "Hello.")
        reply = await memory.add_turn(turn.session_id, "assistant", "I live in Oslo.")
        for number in (reply.id, 99):
            with pytest.raises(NotFound):
                await memory.correct_turn(number, "I live in Lima.")


async def test_choosing_between_two_facts_supersedes_and_can_be_undone_f7(open_memory):
    async with open_memory() as memory:
        await memory.facts.add("I decided to paint the wall green")
        await memory.facts.add("I like tea")
        await memory.facts.supersede("f1", "f2")
        assert await _facts(memory) == ["I like tea"]
        with pytest.raises(Refused):
            await memory.facts.supersede("f1", "f2")
        await memory.facts.undo("f1")
        assert len(await _facts(memory)) == 2
