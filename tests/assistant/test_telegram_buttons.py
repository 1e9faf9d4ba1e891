"""Buttons and reactions: undo, keep or replace, keep what fades, pages; after restarts, for their owner only."""

from datetime import timedelta

import pytest
from telegram_chats import ANA, BEN, EVE, FAMILY, World, world

from assistant.telegram.buttons import MOST_BYTES, Buttons
from assistant.testing_telegram import TOKEN
from memory import Memory
from memory.testing import FakeClock


@pytest.fixture
async def here(tmp_path):
    async with world(tmp_path) as created:
        yield created


async def facts(here: World, owner: str = "ana", clock=None) -> list[str]:
    more = {"clock": clock} if clock else {}
    async with Memory.open(here.folder / "people" / f"{owner}.db", **more) as memory:
        return [fact.fact for fact in await memory.facts.list("active")]


async def thumbs(here: World, owner: str) -> list[tuple[str, int]]:
    async with Memory.open(here.folder / "people" / f"{owner}.db") as memory:
        query = "SELECT content, value FROM reactions JOIN turns ON turns.id = turn_id"
        return [tuple(row) for row in await memory.database.fetch_all(query)]


async def press(here: World, daemon, shown, label: str, user: int = ANA) -> None:
    here.bot.press(user, shown, label)
    await here.idle(daemon)


async def test_undo_under_saved_works_after_a_restart_in_place_and_once(here):
    async with here.serving() as daemon:
        await here.ask(daemon, "I live in Lyon. #1#")
    saved = here.bot.chat(ANA)[0]
    assert saved.labels == ["Undo"] and "f1" in saved.text
    keyboard = saved.keyboard
    async with here.serving() as daemon:
        await press(here, daemon, saved, "Undo")
        assert "Taken back" in saved.text and saved.labels == []  # the answer takes the place of the button
        saved.keyboard = keyboard
        await here.ask(daemon, "I live in Oslo. #2#")
        await press(here, daemon, saved, "Undo")  # by somebody whose screen was slow
        assert len(here.bot.answers) == 2
    assert await facts(here) == ["I live in Oslo"]


async def test_keep_or_replace_under_a_contradiction(here):
    async with here.serving() as daemon:
        await here.ask(daemon, "I live in Lyon. #1#")
        await here.ask(daemon, "I live in Oslo now. #2#")
        updated = await here.shows("Updated")
        assert updated.labels == ["Keep the old one", "Take the new one"]
        await press(here, daemon, updated, "Keep the old one")
        (listed,) = await here.ask(daemon, "/facts")
        assert "Lyon" in listed.text and "Oslo" not in listed.text
        await here.ask(daemon, "I live in Oslo now. #3#")
        again = await here.shows("Updated")
        await press(here, daemon, again, "Take the new one")
        (listed,) = await here.ask(daemon, "/facts")
        assert "Oslo" in listed.text and "Lyon" not in listed.text


async def test_of_two_facts_held_in_doubt_the_chosen_one_stays_f7(here):
    async with here.serving() as daemon:
        await here.ask(daemon, "I decided to paint the kitchen wall green. #1#")
        await here.ask(daemon, "I decided to paint the kitchen wall blue. #2#")
        doubt = await here.shows("Which one is right?")
        assert doubt.labels == ["Keep the old one", "Take the new one"]
        await press(here, daemon, doubt, "Take the new one")
        assert "blue" in doubt.text and doubt.labels == []
    assert await facts(here) == ["I decided to paint the kitchen wall blue"]


async def test_a_fact_about_to_fade_is_offered_once_and_kept_with_one_tap_f12(here):
    clock = FakeClock()
    async with here.serving(clock) as daemon:
        await here.ask(daemon, "I live in Lyon. #1#")
    clock.advance(days=178)
    async with here.serving(clock) as daemon:
        await here.ask(daemon, "hello #2#")
        offer = await here.shows("Keep it?")
        assert offer.labels == ["Keep", "Forget"]
        await here.ask(daemon, "hello again #3#")
        assert sum("Keep it?" in shown.text for shown in here.bot.chat(ANA)) == 1
        await press(here, daemon, offer, "Keep")
        assert "Lyon" in offer.text and offer.labels == []
    async with Memory.open(here.folder / "people" / "ana.db", clock=clock) as memory:
        (fact,) = await memory.facts.list()
        assert clock() - fact.last_confirmed_at < timedelta(minutes=1)


async def test_facts_has_pages_and_each_fact_can_be_kept_or_forgotten(here):
    async with here.serving(facts_a_page=2) as daemon:
        for city in ("Lyon", "Oslo", "Lima"):
            await here.ask(daemon, f"/remember my cousin in {city} is called C{city}")
        (page,) = await here.ask(daemon, "/facts")
        assert "1/2" in page.text and page.labels == ["✓ Keep f3", "✕ Forget f3", "✓ Keep f2", "✕ Forget f2", "▶"]
        await press(here, daemon, page, "▶")
        assert "2/2" in page.text and "CLyon" in page.text and page.labels[-1] == "◀"
        await press(here, daemon, page, "◀")
        assert "1/2" in page.text
        await press(here, daemon, page, "▶")  # there and back again is no repetition
        assert "2/2" in page.text
        await press(here, daemon, page, "Forget f1")
        assert page.labels == ["Forget for good", "Back to the list"] and "CLyon" in page.text
        await press(here, daemon, page, "Back")
        assert "2/2" in page.text
        await press(here, daemon, page, "Forget f1")
        await press(here, daemon, page, "Forget for good")
        assert "Forgotten: f1" in page.text and page.labels == ["Back to the list"]
        await press(here, daemon, page, "Back")
        assert "CLyon" not in page.text and "COslo" in page.text and "✓ Keep f2" in page.labels
        await press(here, daemon, page, "Keep f2")
        assert "Still true" in page.text
    assert len(await facts(here)) == 2


async def test_buttons_refuse_other_peoples_presses_and_made_up_ones(here):
    async with here.serving() as daemon:
        replies = await here.ask(daemon, "@olvido_bot remember that the party is in Turin. #1#", chat=FAMILY)
        saved = next(shown for shown in replies if shown.labels)
        await press(here, daemon, saved, "Undo", BEN)
        assert here.bot.answers[-1]["show_alert"] is True and "somebody else" in here.bot.answers[-1]["text"]
        assert "Taken back" not in saved.text
        await here.ask(daemon, "I live in Lyon. #2#")
        mine = await here.shows("Saved")
        data = Buttons("another token").data("/undo f1", ANA, ANA)
        for made_up in ("", "x", "/undo f1", "abcdefgh101/undo f1", data):
            here.bot.press(ANA, mine, "Undo", data=made_up or "y")
        await here.idle(daemon)
        assert "any more" in here.bot.answers[-1]["text"]
        await press(here, daemon, saved, "Undo", ANA)
        assert "Taken back" in saved.text
    assert await facts(here) == ["I live in Lyon"] and await facts(here, "family") == []


def test_a_button_carries_little_and_belongs_to_one_chat_and_person():
    buttons = Buttons(TOKEN)
    data = buttons.data("/forget f123456 #12", -(10**13), 10**15)
    assert len(data.encode()) <= MOST_BYTES
    assert buttons.command(data, -(10**13)) == ("/forget f123456 #12", 10**15)
    assert buttons.command(data, 5) is None
    assert buttons.command(data.replace("f123456", "f123457"), -(10**13)) is None


async def test_reactions_to_a_reply_are_kept_with_the_turn_it_answered(here):
    async with here.serving() as daemon:
        (reply,) = await here.ask(daemon, "note #1#")
        here.bot.react(ANA, reply, "👎")
        here.bot.react(ANA, reply, "👍", "👎")
        (other,) = await here.ask(daemon, "note #2#")
        here.bot.react(ANA, other, "👎")
        here.bot.react(ANA, other, "", "👎")
        here.bot.react(BEN, reply, "👎")  # not his
        topic = {"message_thread_id": 7, "is_topic_message": True}
        (shared,) = await here.ask(daemon, "@olvido_bot note #3#", chat=FAMILY, **topic)
        here.bot.react(EVE, shared, "👍")  # nobody
        here.bot.react(BEN, shared, "👎")
        await here.idle(daemon)
    assert await thumbs(here, "family") == [("note #3#", -1)]
    assert await thumbs(here, "ana") == [("note #1#", 1)]
