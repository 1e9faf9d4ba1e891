"""What goes wrong on the way to Telegram: floods, blocks, conflicts, cut connections, other servers, secrets."""

import asyncio
import signal
from pathlib import Path

import pytest
from telegram_chats import ANA, BEN, World, becomes, world

from assistant.errors import ChannelFailed
from assistant.testing import says, start_olvido
from assistant.testing_telegram import BotServer, Fault


@pytest.fixture
async def here(tmp_path):
    async with world(tmp_path) as created:
        yield created


def texts(here: World, chat: int = ANA) -> list[str]:
    return [shown.text for shown in here.bot.chat(chat)]


@pytest.mark.parametrize("method", ["sendMessage", "editMessageText"])
async def test_a_flood_is_waited_out_and_the_reply_arrives_once(here, method):
    async with here.serving(streaming="off") as daemon:
        here.bot.fail(Fault(method=method, status=429, description="Too Many Requests: retry after 1", retry_after=1))
        (reply,) = await here.ask(daemon, "note #1#")
        assert "#1#" in reply.text
    assert here.bot.impatient == []


async def test_a_long_flood_puts_the_reply_off_and_others_are_served_meanwhile(here):
    async with here.serving(streaming="off", flood_wait_seconds=0.1) as daemon:
        here.bot.fail(Fault(method="sendMessage", status=429, description="Too Many Requests", retry_after=2))
        here.bot.say(ANA, "note #1#")
        await here.until(lambda: here.bot.count("sendMessage") >= 1)
        await here.ask(daemon, "note #2#", BEN)
        assert texts(here) == [] and "#2#" in texts(here, BEN)[0]
        await here.shows("#1#")
        await here.idle(daemon)
    assert len(texts(here)) == 1 and here.bot.impatient == [] and here.model.calls == 2


async def test_floods_while_a_reply_is_shown_stop_the_showing_not_the_reply(tmp_path):
    async with world(tmp_path, drafts=False) as here:
        here.model.enqueue(says("one two three", hang_seconds=0.5))
        async with here.serving() as daemon:
            flood = Fault(method="editMessageText", status=429, description="Too Many Requests", retry_after=1)
            here.bot.fail(flood)
            (reply,) = await here.ask(daemon, "hello")
            assert reply.text == "one two three"
        assert here.bot.impatient == []


async def test_whoever_blocked_the_bot_is_given_up_and_nobody_waits_for_it(here):
    async with here.serving(streaming="off") as daemon:
        here.bot.blocked.add(ANA)
        assert await here.ask(daemon, "note #1#") == []
        here.bot.blocked.clear()
        (reply,) = await here.ask(daemon, "note #2#")
        assert "#2#" in reply.text


@pytest.mark.parametrize("cut", ["before", "after"])
@pytest.mark.parametrize("method", ["sendMessage", "editMessageText", "getUpdates"])
async def test_a_cut_connection_loses_nothing_and_repeats_nothing(tmp_path, method, cut):
    async with world(tmp_path) as here, here.serving(streaming="off") as daemon:
        here.bot.fail(Fault(method=method, cut=cut))
        await here.ask(daemon, "note #1#")
        await here.ask(daemon, "note #2#")
        assert ["#1#" in texts(here)[0], "#2#" in texts(here)[1], len(texts(here))] == [True, True, 2]
        assert here.model.calls == 2


async def test_slow_answers_and_server_errors_are_got_over(here):
    async with here.serving(streaming="off", timeout_seconds=0.4) as daemon:
        here.bot.fail(
            Fault(method="editMessageText", delay_seconds=1.0),
            Fault(method="sendMessage", status=502, description="Bad Gateway"),
            Fault(method="getUpdates", status=500, description="Internal Server Error"),
        )
        await here.ask(daemon, "note #1#")
        assert len(texts(here)) == 1 and "#1#" in texts(here)[0]


async def test_a_message_deleted_while_it_was_written_comes_anew(tmp_path):
    async with world(tmp_path, drafts=False) as here:
        here.model.enqueue(says("one two three", hang_seconds=0.5))
        async with here.serving() as daemon:
            here.bot.say(ANA, "hello")
            shown = await here.shows("o")
            shown.deleted = True
            await here.idle(daemon)
            assert texts(here) == ["one two three"]


async def test_another_poller_is_put_up_with_then_explained_and_the_daemon_ends(here):
    conflict = Fault(method="getUpdates", status=409, description="Conflict: terminated by other getUpdates request")
    here.bot.fail(*[conflict] * 2)
    async with here.serving() as daemon:
        await here.ask(daemon, "note #1#")  # twice it was somebody else's
        assert len(texts(here)) == 1
    here.bot.fail(*[conflict] * 50)
    with pytest.raises(ExceptionGroup) as raised:
        async with here.serving(conflict_seconds=0.3) as daemon:
            await becomes(lambda: not any(daemon.status()["parts"].values()))
            await asyncio.sleep(0.2)  # until the daemon has told why
    assert raised.group_contains(ChannelFailed, match="Another program")


async def test_a_refused_token_is_explained_without_it(here, tmp_path):
    environment = here.environment(token="999999:AAwrongwrongwrongwrongwrongwrongwrong")
    process = start_olvido("--data-dir", tmp_path, "serve", environment=environment)
    _, errors = await asyncio.to_thread(process.communicate)
    assert process.returncode == 1 and "@BotFather" in errors
    assert "wrongwrong" not in errors + written(tmp_path)


async def test_a_server_that_is_not_there_yet_is_waited_for_and_told_in_the_status(tmp_path):
    with BotServer() as gone:
        address = gone.base_url
    async with world(tmp_path) as here, here.serving(base_url=address) as daemon:
        await becomes(lambda: daemon.status()["problems"])
        assert "Telegram" in daemon.status()["problems"][0] and all(daemon.status()["parts"].values())


async def test_the_token_is_in_no_log_line_error_or_process_title(here, tmp_path):
    here.bot.fail(
        Fault(method="getMe", cut="before"),
        Fault(method="getUpdates", status=500, description=f"error at /bot{here.bot.token}/getUpdates"),
        Fault(method="sendMessage", status=500, description=f"error at /bot{here.bot.token}/sendMessage"),
        Fault(method="editMessageText", status=400, description=f"Bad Request: /bot{here.bot.token}"),
    )
    here.bot.fail(*[Fault(method="editMessageText", status=400, description=f"Bad Request: {here.bot.token}")] * 3)
    environment = {**here.environment(), "OLVIDO_LOGS__LEVEL": "debug"}
    process = start_olvido("--verbose", "--data-dir", tmp_path, "serve", environment=environment)
    here.bot.say(ANA, "note #1#")
    await here.until(lambda: here.bot.count("editMessageText") >= 1 and not here.bot.unconfirmed)
    titles = [Path(f"/proc/{process.pid}/{name}") for name in ("cmdline", "comm")]
    shown = b"".join(title.read_bytes() for title in titles if title.exists()).decode()
    process.send_signal(signal.SIGTERM)
    output, errors = await asyncio.to_thread(process.communicate)
    assert process.returncode == 0
    secret = here.bot.token.split(":")[1]
    logged = written(tmp_path)
    assert "telegram" in logged and secret not in shown + output + errors + logged


async def test_a_proxy_is_used(here):
    async with here.serving(base_url="http://telegram.invalid", proxy=here.bot.base_url) as daemon:
        (reply,) = await here.ask(daemon, "note #1#")
        assert "#1#" in reply.text and here.bot.asked_for == {"telegram.invalid"}


def written(folder: Path) -> str:
    return b"".join(file.read_bytes() for file in folder.rglob("*") if file.is_file()).decode("utf-8", "replace")
