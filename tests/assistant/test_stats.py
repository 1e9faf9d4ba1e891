"""The account of requests: what is counted, how it is written and shown, and the ceiling of a day."""

import asyncio
import json
import random
from contextlib import asynccontextmanager, closing
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import pysqlite3
import pytest
from typer.testing import CliRunner

from assistant.cli import app
from assistant.cli.plot import bars, curve
from assistant.model import ChatModel
from assistant.settings import load_settings
from assistant.talk import open_talk
from assistant.testing import OpenAIServer, say, says, settings_for
from bench import stats as bench_stats
from memory import Memory
from memory.testing import FakeClock
from memory.values import Request


@pytest.fixture
def server():
    with OpenAIServer() as running:
        yield running


@pytest.fixture
def talking(server, tmp_path):
    @asynccontextmanager
    async def opened(clock=None, **more):
        settings = load_settings(None, settings_for(server, **more), tmp_path).settings
        path = tmp_path / "people" / "me.db"
        async with Memory.open(path, clock=clock or FakeClock()) as memory, ChatModel.open(settings) as model:
            yield await open_talk(memory, model, "repl", "me")

    return opened


def rows(folder: Path, sql: str = "SELECT * FROM requests ORDER BY id") -> list[dict[str, object]]:
    with closing(pysqlite3.connect(folder / "people" / "me.db")) as connection:
        cursor = connection.execute(sql)
        return [dict(zip([name for name, *_ in cursor.description], row, strict=True)) for row in cursor]


async def stats(folder: Path, *options: str) -> str:
    environ = {"OLVIDO_DATA_DIR": str(folder), "COLUMNS": "80"}
    run = partial(CliRunner().invoke, app, ["stats", *options], env=environ, catch_exceptions=False)
    done = await asyncio.to_thread(run)
    assert done.exit_code == 0
    return done.output


async def test_a_request_is_counted_by_section_model_cost_and_stage(server, talking, tmp_path):
    server.enqueue(says("Nice to know.", prompt_tokens=1000, cached_tokens=400))
    async with talking(model__price_sent=2.0, model__price_cached=0.5, model__price_written=10.0) as talk:
        await say(talk, "Good morning, how are you?")
        context = talk.context
    (row,) = rows(tmp_path)
    assert row["model"] == "scripted" and row["kind"] == "model"
    assert row["tokens"] == context.tokens
    assert json.loads(row["sections"]) == {name: section.tokens for name, section in context.sections.items()}
    assert (row["prompt_tokens"], row["cached_tokens"], row["reply_tokens"]) == (1000, 400, 3)
    assert row["cost"] == pytest.approx((600 * 2.0 + 400 * 0.5 + 3 * 10.0) / 1e6)
    assert {"receive", "assemble", "ask", "keep"} <= json.loads(row["stages"]).keys()


async def test_counters_wait_and_are_written_at_rest_after_five_minutes_and_at_the_end(talking, tmp_path):
    clock = FakeClock()
    async with talking(clock) as talk:
        await say(talk, "hello there")
        assert rows(tmp_path) == []
        await talk.memory.run_pending()
        assert len(rows(tmp_path)) == 1
        await say(talk, "how are things")
        clock.advance(minutes=6)
        await say(talk, "and you")
        assert len(rows(tmp_path)) == 3
        await say(talk, "bye then")
        assert len(rows(tmp_path)) == 3
    assert len(rows(tmp_path)) == 4


async def test_facts_of_the_last_turns_stay_out_and_that_is_counted(talking, tmp_path):
    """O1, F9."""
    async with talking() as talk:
        await say(talk, "I live in Lyon.")
        await say(talk, "How is the weather usually in Lyon in May?")
    assert json.loads(rows(tmp_path)[1]["saved"])["facts"] > 0


async def test_the_ceiling_of_a_day_stops_model_calls_with_a_sentence_until_midnight(server, talking):
    clock = FakeClock(datetime(2026, 3, 1, 20, tzinfo=UTC))
    prices = {"model__price_sent": 1.0, "model__price_written": 1.0, "model__daily_ceiling": 0.001}
    server.enqueue(says("An answer.", prompt_tokens=2000))
    async with talking(clock, **prices) as talk:
        await say(talk, "hello")
        (said,) = await say(talk, "¿Y qué me puedes contar de la historia de Roma?")
        assert said.kind == "error" and "0.001" in said.text and "medianoche" in said.text
        assert server.calls == 1
        clock.advance(hours=5)
        await say(talk, "hello again")
        assert server.calls == 2


async def test_a_request_above_3000_tokens_or_cut_is_an_alert(server, talking, tmp_path):
    """B2, B3."""
    server.enqueue(says("So many words.", prompt_tokens=3100))
    async with talking() as talk:
        await say(talk, "word " * 4500)
    shown = await stats(tmp_path)
    assert "had to cut" in shown and "passed 3,000" in shown


async def test_of_a_private_message_only_its_cost_is_on_record(talking, tmp_path):
    async with talking() as talk:
        await say(talk, "/private")
        await say(talk, "a secret thing")
    (row,) = rows(tmp_path)
    assert row["session_id"] is None and row["sections"] == "{}"


# -- olvido stats


async def fill(folder: Path, turns: int) -> list[Request]:
    chance, clock = random.Random(7), FakeClock(datetime(2026, 1, 25, 8, tzinfo=UTC))
    requests = []
    async with Memory.open(folder / "people" / "me.db", clock=clock) as memory:
        for number in range(turns):
            clock.advance(minutes=30)
            tokens = chance.randrange(900, 1900)
            asked = number % 5 != 3
            request = Request(
                at=clock(),
                kind="model" if asked else "known",
                session_id=number // 50 + 1,
                model="scripted" if asked else "",
                tokens=tokens if asked else 0,
                history_tokens=700 + number * 80,
                prompt_tokens=tokens + 100 if asked else 0,
                cached_tokens=300 if asked else 0,
                reply_tokens=60 if asked else 0,
                cost=0.001 if asked else None,
                sections={"static": 400, "window": tokens - 400} if asked else {},
                stages={"receive": 0.01, "ask": 0.5},
                saved={"history": 80 * number} if asked else {"known": 1400},
            )
            await memory.accounts.record(request)
            requests.append(request)
    return requests


async def test_the_figures_of_500_turns_equal_those_of_the_table(tmp_path):
    await fill(tmp_path, 500)
    shown = json.loads(await stats(tmp_path, "--json"))
    (summed,) = rows(
        tmp_path,
        "SELECT count(*) AS requests, sum(model != '') AS asked, sum(tokens) AS tokens, max(tokens) AS largest, "
        "sum(prompt_tokens) AS prompt_tokens, sum(cached_tokens) AS cached_tokens, sum(reply_tokens) AS reply_tokens, "
        "sum(cost) AS cost, sum(iif(kind = 'model', history_tokens, 0)) AS history_tokens FROM requests",
    )
    assert {name: shown[name] for name in summed} == pytest.approx(summed)
    for column in ("sections", "saved"):
        counted = rows(
            tmp_path, f"SELECT key, sum(value) AS tokens FROM requests, json_each({column}) GROUP BY key ORDER BY key"
        )
        assert shown[column] == {row["key"]: row["tokens"] for row in counted}
    last = json.loads(await stats(tmp_path, "--json", "--session"))
    assert last["requests"] == rows(tmp_path, "SELECT count(*) AS n FROM requests WHERE session_id = 10")[0]["n"]


async def test_a_history_that_was_played_has_the_figures_of_its_table_and_fits_80_columns(tmp_path):
    """The same through the whole turn, against a model server; `bench/stats.py` plays 500."""
    await bench_stats.play(tmp_path, 30)
    told, wrong = await asyncio.to_thread(bench_stats.compare, tmp_path)
    assert wrong == [] and told["requests"] >= 25 and {"model", "known"} <= told["by_kind"].keys()
    assert max(map(len, (await stats(tmp_path)).splitlines())) <= 80


async def test_day_and_month_are_those_of_the_users_clock(tmp_path):
    now = datetime.now(UTC)
    async with Memory.open(tmp_path / "people" / "me.db") as memory:
        for at in (now, now - timedelta(days=400), now.replace(hour=0, minute=0, second=0, microsecond=0)):
            await memory.accounts.record(Request(at=at, kind="known"))
    for options, count in (((), 3), (("--day",), 2), (("--month",), 2)):
        assert json.loads(await stats(tmp_path, "--json", *options))["requests"] == count


async def test_the_plot_fits_80_columns_and_shows_both_series(tmp_path):
    await fill(tmp_path, 500)
    shown = (await stats(tmp_path)).splitlines()
    assert all(len(line) <= 80 for line in shown)
    plot = [line for line in shown if "┤" in line]
    assert len(plot) == 10 and any("·" in line for line in plot) and "█" in plot[-1]
    dots = [
        next((row for row, line in enumerate(plot) if line[column : column + 1] == "·"), None) for column in (20, 75)
    ]
    assert dots[1] < dots[0]  # the history grows, so its dots rise


async def test_nothing_on_record_is_said_so(tmp_path):
    assert "Nothing is on record" in await stats(tmp_path)


def test_a_curve_of_equal_or_no_values_is_still_a_curve():
    assert len(curve([5, 5, 5], [5, 5, 5], 40)) == 11
    assert curve([0], [0], 40) == []


def test_bars_are_in_proportion_and_largest_first():
    one, two = bars({"a": 10, "b": 20}, 27)
    assert one.startswith("b") and one.count("█") == 2 * two.count("█")
