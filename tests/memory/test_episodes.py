"""Episodes (E1 to E5): how topics become episodes, how they are found, how they age, merge and are forgotten."""

import asyncio
import math
import shutil
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pysqlite3
import pytest

from memory import Memory
from memory.episodes import parts_of, phase_of, rendered
from memory.errors import NotFound, Refused
from memory.language import shipped_packs
from memory.limits import Limits
from memory.outcomes import only_reacts, outcome_of, verdict
from memory.stores import context as context_rows
from memory.testing import FakeClock
from memory.tokens import count_tokens
from memory.values import Episode, Note
from tests.memory.history import DAYS, LANGUAGES, Talk, live_through

OpenMemory = Callable[..., AbstractAsyncContextManager[Memory]]
LEAK = (
    "The dishwasher leaks water on the kitchen floor, how do I fix it?",
    "Check the door gasket first.",
    "The gasket looks fine, the water comes from below.",
    "Then tighten the hose clamp below the tub.",
    "I tightened the clamp and the dishwasher is dry. That worked, thanks!",
)
TRIP = (
    "Changing the subject: I want to plan a trip to Lisbon with Marta.",
    "Lovely. For how many days?",
    "Four days. We decided to take the night train from Madrid.",
)


async def talk(memory: Memory, session_id: int, contents: Sequence[str], clock: FakeClock | None = None) -> list[int]:
    turns = []
    for number, content in enumerate(contents):
        if clock:
            clock.advance(seconds=20)
        role = "assistant" if number % 2 else "user"
        turns.append((await memory.add_turn(session_id, role, content)).id)  # type: ignore[arg-type]
    return turns


async def one_sitting(memory: Memory, contents: Sequence[str], clock: FakeClock | None = None) -> Episode:
    """A conversation from its beginning to its end, as the episode it becomes."""
    session = await memory.open_session()
    await talk(memory, session.id, contents, clock)
    await memory.open_session()
    await memory.run_pending()
    [episode] = [one for one in await memory.episodes.list(k=1000) if one.session_id == session.id]
    return episode


def bytes_of(path: Path) -> bytes:
    """All that is in the files of a memory, traces unpacked."""
    found = b""
    for file in path.parent.glob(path.name + "*"):
        found += file.read_bytes()
    connection = pysqlite3.connect(f"file:{path}?mode=ro", uri=True)
    for (words,) in connection.execute("SELECT words FROM traces"):
        found += zlib.decompress(words)
    connection.close()
    return found.lower()


# -- E1: a closed topic becomes an episode


async def test_e1_a_shift_closes_a_topic_and_the_end_of_the_session_the_next(open_memory: OpenMemory) -> None:
    clock = FakeClock()
    async with open_memory(clock) as memory:
        session = await memory.open_session()
        await talk(memory, session.id, LEAK, clock)
        await memory.run_pending()
        assert await memory.episodes.list() == [], "the topic is still open"
        await memory.add_turn(session.id, "assistant", "Glad to hear it.")
        await talk(memory, session.id, TRIP, clock)
        await memory.run_pending()
        [leak] = await memory.episodes.list()
        assert leak.turns == 6
        assert "dishwasher" in leak.topic
        assert (leak.outcome, leak.task_type, leak.language) == ("success", "fix", "en")
        assert leak.ended_at - leak.began_at == timedelta(seconds=80)
        await memory.open_session()
        await memory.run_pending()
        trip, same = await memory.episodes.list()
        assert same == leak
        assert trip.first_turn == leak.last_turn + 1
        assert (trip.outcome, trip.task_type) == ("unknown", "plan")
        assert {"Lisbon", "Marta", "Madrid"} <= set(trip.entities)
        assert any("night train from Madrid" in text for note in trip.notes for text in note.decisions)
        assert "night train from Madrid" in trip.text


async def test_e1_an_idle_session_becomes_an_episode_when_the_caller_closes_it(open_memory: OpenMemory) -> None:
    clock = FakeClock()
    async with open_memory(clock) as memory:
        session = await memory.open_session()
        await talk(memory, session.id, LEAK, clock)
        clock.advance(hours=5)
        assert await memory.close_idle(timedelta(hours=6)) == 0
        clock.advance(hours=2)
        assert await memory.close_idle(timedelta(hours=6)) == 1
        await memory.run_pending()
        assert len(await memory.episodes.list()) == 1


async def test_e1_who_goes_on_after_a_long_silence_goes_on_in_the_same_session(open_memory: OpenMemory) -> None:
    clock = FakeClock()
    async with open_memory(clock) as memory:
        session = await memory.open_session()
        await talk(memory, session.id, LEAK)
        clock.advance(hours=9)
        assert await memory.close_idle(timedelta(hours=8)) == 1
        assert await memory.close_idle(timedelta(hours=8)) == 0
        await memory.run_pending()
        await talk(memory, session.id, TRIP[:2])
        await memory.run_pending()
        assert "trip to Lisbon" in str((await memory.assemble(session.id)).messages), (
            "what is said now is in the window"
        )
        assert len(await memory.episodes.list()) == 1
        clock.advance(hours=9)
        assert await memory.close_idle(timedelta(hours=8)) == 1
        await memory.run_pending()
        assert len(await memory.episodes.list()) == 2


async def test_e1_an_episode_is_never_changed(open_memory: OpenMemory) -> None:
    async with open_memory() as memory:
        await one_sitting(memory, LEAK)
        with pytest.raises(Exception, match="never changed"):
            async with memory.database.transaction() as tx:
                await tx.execute("UPDATE episodes SET topic = 'other'")


async def test_s3_a_summary_leaves_the_slots_only_as_part_of_its_episode(open_memory: OpenMemory) -> None:
    async with open_memory() as memory:
        session = await memory.open_session()
        about = "the tomatoes along the south wall of the garden"
        talked = [f"Let us talk of bed {number} and {about}." for number in range(22)]
        await talk(memory, session.id, talked)
        await memory.run_pending()
        kept = await context_rows.slots(memory.database, "repl", "me", 100)
        if not await memory.episodes.list():
            assert len(kept) > memory.limits.summary_slots, "no episode has them yet"
        await memory.open_session()
        await memory.run_pending()
        left = await context_rows.slots(memory.database, "repl", "me", 100)
        assert len(left) == memory.limits.summary_slots
        notes = [note.topic for one in await memory.episodes.list() for note in one.notes]
        assert all(summary.topic in notes for summary in kept)
        indexed = await memory.database.fetch_all("SELECT ref FROM entries WHERE kind = 'summary'")
        assert {row["ref"] for row in indexed} == {summary.id for summary in left}


async def test_e1_thanks_before_a_new_topic_belong_to_the_one_before(open_memory: OpenMemory) -> None:
    async with open_memory() as memory:
        session = await memory.open_session()
        await talk(memory, session.id, (*LEAK[:4], f"That worked, thanks! {TRIP[0]}", *TRIP[1:]))
        await memory.open_session()
        await memory.run_pending()
        trip, leak = await memory.episodes.list()
        assert (leak.outcome, trip.outcome) == ("success", "unknown")


async def test_e1_thumbs_and_tools_tell_how_it_went(open_memory: OpenMemory) -> None:
    async with open_memory() as memory:
        session = await memory.open_session()
        turns = await talk(memory, session.id, LEAK[:4])
        await memory.episodes.used_tool(turns[1], "search_web", failed=True)
        await memory.open_session()
        await memory.run_pending()
        [episode] = await memory.episodes.list()
        assert (episode.outcome, episode.tools) == ("failure", ("search_web",))
        await memory.episodes.react(turns[3], 1)
        assert (await memory.episodes.get(episode.id)).outcome == "success"
        await memory.episodes.react(turns[3], -1)
        assert (await memory.episodes.get(episode.id)).outcome == "failure"
        with pytest.raises(NotFound):
            await memory.episodes.react(999, 1)
        with pytest.raises(Refused):
            await memory.episodes.react(turns[3], 5)


@pytest.mark.parametrize(
    ("language", "text", "said"),
    [
        ("en", "That worked, thanks!", "success"),
        ("en", "Thanks!", "thanks"),
        ("en", "No, that's wrong.", "failure"),
        ("en", "Thanks, but it still doesn't work.", "failure"),
        ("en", "It works but the logs are still broken", "partial"),
        ("en", "The first one didn't work, but now it works perfectly.", "success"),
        ("en", "I give up, thanks anyway", "failure"),
        ("en", "No thanks", ""),
        ("en", "Did it work?", ""),
        ("en", "I work in a hospital", ""),
        ("es", "¡Ya funciona, gracias!", "success"),
        ("es", "Sigue sin funcionar", "failure"),
        ("es", "Mejoró, pero sigue goteando un poco", "partial"),
        ("es", "no, gracias", ""),
        ("it", "È andata benissimo", "success"),
        ("it", "No, non ha funzionato.", "failure"),
        ("it", "Funziona solo in parte", "partial"),
        ("it", "Grazie mille", "thanks"),
        ("zh", "解决了,谢谢!", "success"),
        ("zh", "没有用", "failure"),
        ("zh", "好了一点,但是还有问题", "partial"),
        ("zh", "行不行?", ""),
    ],
)
def test_e1_reactions_in_four_languages(language: str, text: str, said: str) -> None:
    assert verdict(text, shipped_packs()[language])[0] == said


def test_e1_a_bare_reaction_opens_no_topic() -> None:
    pack = shipped_packs()["en"]
    assert only_reacts("Perfect, that worked.", pack)
    assert not only_reacts("That worked. Now help me plan the garden party in June.", pack)


def test_e1_the_last_word_counts_and_a_thumb_more() -> None:
    assert outcome_of(["failure", "success"], [], []) == "success"
    assert outcome_of(["success", "failure"], [], []) == "failure"
    assert outcome_of(["failure", "thanks"], [], []) == "partial"
    assert outcome_of(["thanks"], [], []) == "success"
    assert outcome_of([], [], [True, False]) == "partial"
    assert outcome_of([], [], [False, True]) == "failure"
    assert outcome_of(["success"], [], [True]) == "partial"
    assert outcome_of(["success"], [-1], []) == "failure"
    assert outcome_of([], [], [False]) == "unknown"


def test_b1_an_episode_fits_into_a_request_whatever_it_holds() -> None:
    long = "万里长城永不倒千里黄河水滔滔" * 4
    notes = [Note(topic=long, discussed=(long,) * 3, decisions=(long,) * 3, open_questions=(long,))] * 30
    topic, text = rendered(notes, Limits())
    assert count_tokens(text) <= Limits().episode_tokens
    assert topic in text


# -- E4: a year


async def test_e4_the_life_of_an_episode_through_a_year(open_memory: OpenMemory) -> None:
    clock = FakeClock()
    async with open_memory(clock) as memory:
        episode = await one_sitting(memory, LEAK, clock)
        ended = episode.ended_at
        near, far = "dishwasher leaks on the kitchen floor", "water the plants below the window"

        async def after(days: float) -> tuple[str, int, int, int, int]:
            """Its phase, whether it is found by a near and by a far question, on request, and the messages kept."""
            clock.now = ended + timedelta(days=days)
            await memory.run_pending()
            found = [len(await memory.episodes.search(query)) for query in (near, far)]
            asked = len(await memory.recall(near, kinds=["episode"]))
            now = await memory.episodes.get(episode.id)
            assert replace(now, accesses=0, accessed_at=None) == episode, "what was written once stays"
            return memory.episodes.phase(now), *found, asked, len(await memory.episodes.trace(episode.id))

        assert await after(1) == ("active", 1, 1, 1, 5)
        assert await after(29.9) == ("active", 1, 1, 1, 5)
        assert await after(31) == ("mature", 1, 1, 1, 0), "the words are kept for 30 days"
        assert await after(179) == ("mature", 1, 1, 1, 0)
        assert await after(181) == ("aged", 1, 0, 1, 0), "only if highly relevant"
        assert await after(364) == ("aged", 1, 0, 1, 0)
        assert await after(366) == ("archived", 0, 0, 1, 0), "only on explicit request"
        assert len(await memory.episodes.search(near, archived=True)) == 1
        assert [one.id for one in await memory.episodes.list("archived")] == [episode.id]
        deleted = await memory.episodes.delete(episode.id)
        assert memory.episodes.phase(deleted) == "deleted"
        assert await memory.episodes.search(near, archived=True) == []
        assert await memory.recall(near, kinds=["episode"]) == []
        assert [one.id for one in await memory.episodes.list("deleted")] == [episode.id]
        assert await memory.episodes.list() == []
        clock.advance(days=29)
        await memory.run_pending()
        await memory.episodes.restore(episode.id)
        assert len(await memory.episodes.search(near, archived=True)) == 1
        await memory.episodes.delete(episode.id)
        clock.advance(days=31)
        await memory.run_pending()
        with pytest.raises(NotFound):
            await memory.episodes.get(episode.id)
        assert await memory.database.fetch_value("SELECT count(*) FROM entries WHERE kind = 'episode'") == 0


async def test_e4_phases_turn_on_the_day(open_memory: OpenMemory) -> None:
    async with open_memory() as memory:
        episode = await one_sitting(memory, LEAK)
    for days, phase in (
        (30, "active"),
        (31, "mature"),
        (180, "mature"),
        (181, "aged"),
        (365, "aged"),
        (366, "archived"),
    ):
        assert phase_of(episode, episode.ended_at + timedelta(days=days), Limits()) == phase


async def test_e4_no_trace_is_kept_when_the_user_wants_none(open_memory: OpenMemory) -> None:
    async with open_memory(limits=Limits(episode_trace_days=0)) as memory:
        episode = await one_sitting(memory, LEAK)
        assert await memory.episodes.trace(episode.id) == []
        assert await memory.database.fetch_value("SELECT count(*) FROM traces") == 0


async def test_e4_a_trace_is_what_was_said_without_credentials_and_is_never_searched(open_memory: OpenMemory) -> None:
    async with open_memory() as memory:
        said = (*LEAK[:3], "Noted.", "The water valve of the dishwasher is a zorblax. My password is hunter2xyz.")
        episode = await one_sitting(memory, said)
        spoken = [one.content for one in await memory.episodes.trace(episode.id)]
        assert spoken[:4] == list(said[:4])
        assert "hunter2xyz" not in spoken[4]
        assert "zorblax" in spoken[4]
        texts = await memory.database.fetch_all("SELECT text FROM entries WHERE kind = 'episode'")
        assert not any(LEAK[3] in row["text"] for row in texts)


async def test_e4_archived_episodes_are_deleted_where_that_is_configured(open_memory: OpenMemory) -> None:
    clock = FakeClock()
    async with open_memory(clock, limits=Limits(episode_archived_days=10)) as memory:
        episode = await one_sitting(memory, LEAK)
        clock.advance(days=374)
        await memory.run_pending()
        assert memory.episodes.phase(await memory.episodes.get(episode.id)) == "archived"
        clock.advance(days=2)
        await memory.run_pending()
        assert memory.episodes.phase(await memory.episodes.get(episode.id)) == "deleted"


# -- E2, E3: five ways to find one, on a written history of 300 episodes in four languages


@pytest.fixture(scope="module")
def history(calibrated_file: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, dict[str, Talk]]]:
    path = tmp_path_factory.mktemp("history") / "person.db"
    shutil.copy(calibrated_file, path)

    async def make() -> dict[str, Talk]:
        clock = FakeClock()
        async with Memory.open(path, clock=clock) as memory:
            return await live_through(memory, clock)

    yield path, asyncio.run(make())


def after_history() -> FakeClock:
    return FakeClock(FakeClock().now + timedelta(days=DAYS))


async def test_e1_the_outcomes_of_the_history_are_what_the_users_said(history: tuple[Path, dict[str, Talk]]) -> None:
    path, told = history
    async with Memory.open(path, clock=after_history()) as memory:
        episodes = await memory.episodes.list(k=1000)
        assert len(episodes) == 300
        assert {one.language for one in episodes} == set(LANGUAGES)
        wrong = [told[one.id].asked for one in episodes if one.outcome != told[one.id].outcome]
        assert not wrong


async def test_e2_semantic(history: tuple[Path, dict[str, Talk]]) -> None:
    """By meaning alone; most of the queries share no word, or one, with what they look for."""
    path, told = history
    async with Memory.open(path, clock=after_history()) as memory:
        found = {language: [] for language in LANGUAGES}
        for ref, talked in told.items():
            if talked.query:
                hits = await memory.episodes.search(talked.query, k=3)
                assert {hit.way for hit in hits} <= {"semantic"}
                found[talked.language].append(ref in [hit.episode.id for hit in hits])
        shares = {language: sum(results) / len(results) for language, results in found.items()}
        assert sum(map(len, found.values())) > 100
        assert all(share >= 0.6 for share in shares.values()), shares
        assert sum(shares.values()) / 4 >= 0.75, shares


async def test_e3_the_score_is_taken_apart_in_why(history: tuple[Path, dict[str, Talk]]) -> None:
    path, _ = history
    clock = after_history()
    async with Memory.open(path, clock=clock) as memory:
        [hit, *_] = await memory.episodes.search("brakes squeal when braking the car", domain=None)
        episode = hit.episode
        days = (clock() - episode.ended_at) / timedelta(days=1)
        assert hit.parts["recency"] == pytest.approx(0.2 * math.exp(-days / 30))
        assert hit.parts["success"] == (0.15 if episode.outcome == "success" else 0)
        assert 0 < hit.parts["similarity"] <= 0.5
        assert hit.score == pytest.approx(sum(hit.parts.values()), abs=1e-5)
        for name, value in hit.parts.items():
            assert (f"{name} {value:.3f}" in hit.why) == (value >= 0.0005)
        read = parts_of(replace(episode, accesses=20_000), 1.0, episode.domain or "", clock(), memory.limits)
        assert read["similarity"] == 0.5
        assert read["accesses"] == pytest.approx(0.1 * math.log(20_001) / 10)
        assert parts_of(replace(episode, accesses=10**6), 1.0, "", clock(), memory.limits)["accesses"] == 0.1
        own = replace(episode, domain="work", outcome="success")
        assert parts_of(own, 0.0, "work", own.ended_at, memory.limits) == {
            "similarity": 0.0,
            "recency": 0.2,
            "success": 0.15,
            "accesses": 0.0,
            "domain": 0.05,
        }


async def test_e2_structured(history: tuple[Path, dict[str, Talk]]) -> None:
    path, _ = history
    async with Memory.open(path, clock=after_history()) as memory:
        hits = await memory.episodes.search(task_type="fix", outcome="success", k=1000)
        assert len(hits) > 5
        assert {(hit.way, hit.episode.task_type, hit.episode.outcome) for hit in hits} == {
            ("structured", "fix", "success")
        }
        assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
        everything = await memory.episodes.list(k=1000)
        wanted = {one.id for one in everything if (one.task_type, one.outcome) == ("fix", "success")}
        assert {hit.episode.id for hit in hits} == wanted
        some = next(one for one in everything if one.language == "es" and one.tags)
        assert some.id in [hit.episode.id for hit in await memory.episodes.search(tag=some.tags[0].upper(), k=1000)]
        with pytest.raises(Refused, match="There is no domain"):
            await memory.episodes.search(domain="garden")


async def test_e2_hybrid(history: tuple[Path, dict[str, Talk]]) -> None:
    """Meaning among those that are what is asked for: the failure with the sourdough, not the success."""
    path, told = history
    async with Memory.open(path, clock=after_history()) as memory:
        for outcome in ("success", "failure", "partial"):
            hits = await memory.episodes.search("sourdough bread", outcome=outcome)  # type: ignore[arg-type]
            assert {(hit.way, hit.episode.outcome) for hit in hits} == {("hybrid", outcome)}
        [best, *_] = await memory.episodes.search("sourdough starter", outcome="failure")
        assert told[best.episode.id].asked == "My sourdough starter does not rise"


async def test_e2_temporal(history: tuple[Path, dict[str, Talk]]) -> None:
    path, told = history
    clock = after_history()
    async with Memory.open(path, clock=clock) as memory:
        since, until = clock() - timedelta(days=20), clock() - timedelta(days=10)
        hits = await memory.episodes.search(since=since, until=until, k=1000)
        assert {hit.way for hit in hits} == {"temporal"}
        moments = [hit.episode.ended_at for hit in hits]
        assert moments == sorted(moments, reverse=True)
        assert len(hits) == sum(DAYS - 20 <= talked.day < DAYS - 10 for talked in told.values())
        newest = await memory.episodes.search(k=3)
        assert [hit.episode for hit in newest] == await memory.episodes.list(k=3)


async def test_e2_similar_failures(history: tuple[Path, dict[str, Talk]]) -> None:
    path, told = history
    async with Memory.open(path, clock=after_history()) as memory:
        for query, asked in (
            ("the bread starter stays flat and does not rise", "My sourdough starter does not rise"),
            ("el coche no arranca", "El coche no arranca por las mañanas"),
            ("la pasta non lievita", "La pasta madre non lievita"),
            ("面团不膨胀", "面包发酵失败面团不膨胀"),
        ):
            hits = await memory.episodes.search(query, failures=True, archived=True)
            assert {hit.way for hit in hits} == {"failures"}
            assert {hit.episode.outcome for hit in hits} <= {"failure", "partial"}
            assert told[hits[0].episode.id].asked == asked
            assert hits[0].episode.trouble, "what the user said of it is kept"


# -- E5: near-identical episodes


def report(week: int) -> tuple[str, ...]:
    """The same request week after week, with a detail of its own."""
    return (
        "Write the weekly report for the sales team about the open invoices and the new contracts.",
        "The weekly report lists the open invoices and the new contracts of the sales team.",
        "Add the delivery dates and the discounts for the spring fair to the weekly report.",
        "The weekly report has the delivery dates and the discounts for the spring fair now.",
        f"Perfect. Send the weekly report with the delivery dates to {('Nadia', 'Bruno', 'Celeste')[week]}.",
    )


async def three_weeks(memory: Memory, clock: FakeClock) -> list[Episode]:
    made = []
    for week in range(3):
        made.append(await one_sitting(memory, report(week), clock))
        clock.advance(days=5)
    await one_sitting(memory, LEAK, clock)
    return made


async def test_e5_a_cluster_is_consolidated_and_reversed_and_nothing_is_lost(open_memory: OpenMemory) -> None:
    clock = FakeClock()
    async with open_memory(clock) as memory:
        originals = await three_weeks(memory, clock)
        assert len(await memory.episodes.list()) == 4, "while they are active they stand for themselves"
        await memory.episodes.read(originals[1].id)
        before = [await memory.episodes.get(one.id) for one in originals]
        clock.advance(days=40)
        await memory.run_pending()
        leak, whole = sorted(await memory.episodes.list(), key=lambda one: "times" in one.text)
        assert "dishwasher" in leak.topic
        made, members = await memory.episodes.consolidation(whole.id)  # type: ignore[misc]
        assert [one.id for one in members] == [one.id for one in originals]
        assert all(replace(one, merged_into=None) == old for one, old in zip(members, before, strict=True))
        assert made.statistics["instances"] == 3
        assert made.statistics["success_rate"] == 1
        assert made.statistics["mean_turns"] == 5
        assert made.representative == originals[-1].id
        assert (whole.began_at, whole.ended_at) == (originals[0].began_at, originals[-1].ended_at)
        assert whole.accesses == 1
        assert "times: 3" in whole.text
        told = {ref: " ".join(lines) for ref, lines in made.variations}
        names = dict(zip(told, ("Nadia", "Bruno", "Celeste"), strict=True))
        assert all(names[ref] in text for ref, text in told.items() if text), told
        for query in ("weekly report open invoices", "send the report to Nadia", "send the report to Celeste"):
            [best, *_] = await memory.episodes.search(query)
            assert best.episode.id == whole.id
        [hit] = [hit for hit in await memory.recall("weekly report", kinds=["episode"]) if "report" in hit.text]
        assert hit.id == whole.id
        await memory.episodes.read(whole.id)

        again = await memory.episodes.separate(whole.id)
        assert [one.id for one in again] == [one.id for one in originals]
        assert [one.text for one in again] == [one.text for one in originals]
        assert sum(one.accesses for one in again) == 2, "what was read of the whole is kept"
        with pytest.raises(NotFound):
            await memory.episodes.get(whole.id)
        found = {hit.episode.id for hit in await memory.episodes.search("weekly report open invoices")}
        assert found >= {one.id for one in originals}
        await memory.run_pending()
        assert len(await memory.episodes.list()) == 4, "what the user took apart stays apart"
        with pytest.raises(Refused, match="nothing to take apart"):
            await memory.episodes.separate(originals[0].id)


async def test_e5_a_cluster_grows_under_its_id(open_memory: OpenMemory) -> None:
    clock = FakeClock()
    async with open_memory(clock) as memory:
        await one_sitting(memory, report(0), clock)
        await one_sitting(memory, report(1), clock)
        clock.advance(days=8)
        late = await one_sitting(memory, report(2), clock)
        clock.advance(days=24)
        await memory.run_pending()
        [whole] = [one for one in await memory.episodes.list() if "times: 2" in one.text]
        clock.advance(days=20)
        await memory.run_pending()
        [grown] = await memory.episodes.list()
        assert grown.id == whole.id
        assert "times: 3" in grown.text
        assert late.id in [one.id for one in (await memory.episodes.consolidation(grown.id) or ((), []))[1]]


@pytest.mark.parametrize("change", ["outcome", "type", "time"])
async def test_e5_what_differs_in_kind_or_is_far_in_time_is_not_merged(open_memory: OpenMemory, change: str) -> None:
    clock = FakeClock()
    async with open_memory(clock) as memory:
        first = report(0)
        other = {
            "outcome": (*first[:4], "No, that is wrong. Send the weekly report with the delivery dates to Nadia."),
            "type": (first[0].replace("Write", "Find"), *first[1:]),
            "time": first,
        }[change]
        await one_sitting(memory, first, clock)
        clock.advance(days=15 if change == "time" else 1)
        await one_sitting(memory, other, clock)
        clock.advance(days=60)
        await memory.run_pending()
        assert len(await memory.episodes.list()) == 2


# -- F11: forgetting


async def test_f11_forgetting_an_episode_leaves_no_byte_of_it(open_memory: OpenMemory, tmp_path: Path) -> None:
    path = tmp_path / "bytes.db"
    words = (b"quillonbury", b"theremin", b"vraskelund", b"zorblax")
    async with open_memory(path=path) as memory:
        session = await memory.open_session()
        await talk(memory, session.id, LEAK[:4])
        await talk(
            memory,
            session.id,
            (
                "Changing the subject: the theremin of Quillonbury hums, how do I repair the theremin?",
                "Ask Vraskelund to tune the theremin with a zorblax coil.",
                "The theremin with the zorblax coil from Vraskelund still hums, that did not work.",
                "Then replace the zorblax coil of the theremin.",
            ),
        )
        await talk(memory, session.id, TRIP)
        await memory.open_session()
        await memory.run_pending()
        [episode] = [one for one in await memory.episodes.list() if "theremin" in one.text]
        assert len(await memory.episodes.list()) == 3
        await memory.episodes.search("theremin zorblax")
        await memory.index.keep_queries()
        await memory.database.checkpoint()
        assert all(word in bytes_of(path) for word in words)
        blobs = [row["words"] for row in await memory.database.fetch_all("SELECT words FROM traces")]
        plan = await memory.episodes.preview_forget(episode.id)
        assert plan.traces == 4
        gone = await memory.episodes.forget(episode.id)
        assert gone.complete
        left = bytes_of(path)
        assert not any(word in left for word in words), [word for word in words if word in left]
        remaining = [row["words"] for row in await memory.database.fetch_all("SELECT words FROM traces")]
        raw = b"".join(file.read_bytes() for file in path.parent.glob(path.name + "*"))
        assert all((blob in raw) == (blob in remaining) for blob in blobs), "the compressed words too"
        with pytest.raises(NotFound):
            await memory.episodes.get(episode.id)
        await memory.run_pending()
        assert len(await memory.episodes.list()) == 2, "nothing brings it back, and the others stay"
        assert len(await memory.recall("dishwasher gasket clamp")) > 0


async def test_f11_a_consolidated_episode_is_forgotten_with_its_originals(
    open_memory: OpenMemory, tmp_path: Path
) -> None:
    clock = FakeClock()
    path = tmp_path / "cluster.db"
    async with open_memory(clock, path) as memory:
        originals = await three_weeks(memory, clock)
        clock.advance(days=40)
        await memory.run_pending()
        [whole] = [one for one in await memory.episodes.list() if "times" in one.text]
        await memory.episodes.forget(originals[0].id)
        left = {one.id for one in await memory.episodes.list()}
        assert {originals[1].id, originals[2].id} <= left, "forgetting one takes the cluster apart"
        assert whole.id not in left
        assert b"nadia" not in bytes_of(path)
        await memory.run_pending()
        [whole] = [one for one in await memory.episodes.list() if "times" in one.text]
        await memory.episodes.forget(whole.id)
        assert b"invoices" not in bytes_of(path)
        assert b"dishwasher" in bytes_of(path)


async def test_f11_a_forgotten_fact_leaves_episodes_traces_and_open_topics(
    open_memory: OpenMemory, tmp_path: Path
) -> None:
    path = tmp_path / "fact.db"
    secret = "Remember that my neighbour Quillonbury repairs theremins."
    async with open_memory(path=path) as memory:
        session = await memory.open_session()
        await talk(memory, session.id, (secret, "Noted.", "My neighbour Quillonbury repairs theremins at night."))
        await memory.open_session()
        await one_sitting(memory, LEAK)
        assert b"quillonbury" in bytes_of(path)
        [fact] = [one for one in await memory.facts.list() if "Quillonbury" in one.fact]
        preview = await memory.facts.preview_forget(fact.id)
        assert preview.episodes
        await memory.facts.forget(fact.id)
        assert b"quillonbury" not in bytes_of(path)
        assert [one.topic for one in await memory.episodes.list() if "dishwasher" in one.topic]


async def test_f11_the_rest_of_an_episode_survives_a_forgotten_fact(open_memory: OpenMemory, tmp_path: Path) -> None:
    path = tmp_path / "rest.db"
    async with open_memory(path=path) as memory:
        said = (*LEAK[:3], "I see.", "My plumber is called Vraskelund and the dishwasher hose is his work.", "Fine.")
        episode = await one_sitting(memory, said)
        [fact] = [one for one in await memory.facts.list() if "Vraskelund" in one.fact] or [
            await memory.facts.add("My plumber is called Vraskelund")
        ]
        before = await memory.episodes.get(episode.id)
        await memory.facts.forget(fact.id)
        assert b"vraskelund" not in bytes_of(path)
        after = await memory.episodes.get(episode.id)
        assert after.notes[0] == before.notes[0]
        [best, *_] = await memory.episodes.search("dishwasher leak gasket")
        assert best.episode.id == episode.id


# -- in recall and in requests


@pytest.mark.parametrize(
    ("language", "said", "question", "decided"),
    [
        ("en", (*TRIP, "Booked."), "What did we decide yesterday about the trip to Lisbon?", "night train"),
        (
            "es",
            (
                "Quiero planear el viaje a Bariloche con Marta.",
                "¿Cuántos días?",
                "Cinco días. Decidimos ir en tren desde Viedma.",
                "Buen plan.",
            ),
            "¿Qué decidimos ayer sobre el viaje a Bariloche?",
            "tren desde Viedma",
        ),
        (
            "it",
            (
                "Voglio organizzare il viaggio a Matera con Luca.",
                "Per quanti giorni?",
                "Tre giorni. Abbiamo deciso di andare in treno da Bari.",
                "Ottimo.",
            ),
            "Cosa abbiamo deciso ieri sul viaggio a Matera?",
            "treno da Bari",
        ),
        (
            "zh",
            ("我想计划去云南的旅行。", "去几天?", "五天。我们决定从昆明坐火车。", "好的。"),
            "我们昨天决定怎么去云南旅行?",
            "火车",
        ),
    ],
)
async def test_what_did_we_decide_finds_the_decision_and_its_context(
    open_memory: OpenMemory, language: str, said: Sequence[str], question: str, decided: str
) -> None:
    clock = FakeClock()
    async with open_memory(clock) as memory:
        episode = await one_sitting(memory, said, clock)
        await one_sitting(memory, LEAK, clock)
        clock.advance(days=1)
        session = await memory.open_session(chat="another", language=language)
        await memory.add_turn(session.id, "user", question)
        context = await memory.assemble(session.id)
        recalled = {item.id: item.text for item in context.sections["recalled"].items}
        assert episode.id in recalled
        assert decided in recalled[episode.id]
        assert all(count_tokens(text) <= memory.limits.item_tokens for text in recalled.values())
        assert context.tokens < 4000
        assert all(text in context.messages[-1]["content"] for text in recalled.values())
        assert sum(ref.startswith("e") for ref in recalled) <= memory.limits.episodes_recalled
        await memory.add_turn(session.id, "assistant", "By train.")
        await memory.run_pending()
        assert (await memory.episodes.get(episode.id)).accesses == 1, "a request that used it counts"
        hits = await memory.recall(question)
        assert {"episode"} < {hit.kind for hit in hits}, "one ranking"
        [best, *_] = await memory.recall(question, kinds=["episode"])
        assert (best.id, best.source) == (episode.id, f"episode {episode.id}")


async def test_recall_and_search_change_no_ranking(open_memory: OpenMemory) -> None:
    async with open_memory() as memory:
        episode = await one_sitting(memory, LEAK)
        first = await memory.recall("dishwasher"), await memory.episodes.search("dishwasher")
        await memory.run_pending()
        assert (await memory.recall("dishwasher"), await memory.episodes.search("dishwasher")) == first
        assert (await memory.episodes.get(episode.id)).accesses == 0


async def test_an_ordinary_question_recalls_no_episode(open_memory: OpenMemory) -> None:
    async with open_memory() as memory:
        await one_sitting(memory, LEAK)
        session = await memory.open_session(chat="another")
        await memory.add_turn(session.id, "user", "Which gasket does a dishwasher need?")
        items = (await memory.assemble(session.id)).sections["recalled"].items
        assert not [item.id for item in items if item.id.startswith("e")]


async def test_e4_an_archived_episode_enters_no_request(open_memory: OpenMemory) -> None:
    clock = FakeClock()
    async with open_memory(clock) as memory:
        await one_sitting(memory, TRIP)
        clock.advance(days=400)
        session = await memory.open_session(chat="another")
        await memory.add_turn(session.id, "user", "What did we decide about the trip to Lisbon?")
        items = (await memory.assemble(session.id)).sections["recalled"].items
        assert not [item.id for item in items if item.id.startswith("e")]
        assert await memory.recall("trip to Lisbon", kinds=["episode"]), "but explicit recall finds it"


ASKED_TOGETHER = {
    "en": "What did we decide about this: {}?",
    "es": "¿Qué decidimos sobre esto: {}?",
    "it": "Che cosa abbiamo deciso su questo: {}?",
    "zh": "我们上次决定了什么：{}？",
}


async def test_b1_b5_requests_with_episodes_among_300_keep_to_the_budget(
    history: tuple[Path, dict[str, Talk]], tmp_path: Path
) -> None:
    path, told = history
    recalled = 0
    async with Memory.open(shutil.copy(path, tmp_path / "asked.db"), clock=after_history()) as memory:
        for talk_of_it in [talk for talk in told.values() if talk.number % 15 == 0]:
            session = await memory.open_session(chat=f"asks {talk_of_it.language} {talk_of_it.number}")
            question = ASKED_TOGETHER[talk_of_it.language].format(talk_of_it.asked)
            await memory.add_turn(session.id, "user", question)
            request = await memory.assemble(session.id)
            episodes = [item for item in request.sections["recalled"].items if item.id.startswith("e")]
            assert request.provider_tokens < memory.limits.request_tokens
            assert request.sections["recalled"].tokens <= memory.limits.recall_tokens
            assert len(episodes) <= memory.limits.episodes_recalled
            recalled += any(told[item.id] == talk_of_it for item in episodes)
    assert recalled >= 14, "of 20 questions"
