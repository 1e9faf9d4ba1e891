"""What goes wrong on the way to Telegram: floods, blocks, conflicts, cut connections, other servers, secrets."""

import asyncio
from itertools import product
from pathlib import Path

import pytest
from telegram_chats import ANA, BEN, FAMILY, World, becomes, world

from assistant import logs
from assistant.daemon import serve
from assistant.errors import ChannelFailed
from assistant.settings import load_settings
from assistant.telegram.buttons import Buttons
from assistant.testing import says
from assistant.testing_telegram import BOT, TOKEN, BotServer, Fault


@pytest.fixture
async def here(tmp_path):
    async with world(tmp_path) as created:
        yield created


CUTS = ("before", "after")  # the call has its effect


def texts(here: World, chat: int = ANA) -> list[str]:
    return [shown.text for shown in here.bot.chat(chat)]


async def test_floods_are_waited_out_and_the_reply_arrives_once(here):
    async with here.serving(streaming="off") as daemon:
        for method in ("sendMessage", "editMessageText"):
            here.bot.fail(Fault(method=method, status=429, description="Too Many Requests", retry_after=1))
        (reply,) = await here.ask(daemon, "note #1#")
        assert "#1#" in reply.text and here.bot.count("sendMessage") == 2
    assert here.bot.impatient == []


async def test_a_long_flood_puts_the_reply_off_and_others_are_served_meanwhile(here):
    async with here.serving(streaming="off", flood_wait_seconds=0.1) as daemon:
        here.bot.fail(Fault(method="sendMessage", status=429, description="Too Many Requests", retry_after=1))
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


async def test_cut_connections_lose_nothing_and_repeat_nothing(here):
    async with here.serving(streaming="off") as daemon:
        for number, (method, cut) in enumerate(product(("sendMessage", "editMessageText", "getUpdates"), CUTS)):
            here.bot.fail(Fault(method=method, cut=cut))
            await here.ask(daemon, f"note #{number}#")
            asked = sum("response_format" not in request.body for request in here.model.history)
            assert len(texts(here)) == asked == number + 1 and f"#{number}#" in texts(here)[-1]


FLOOD = Fault(method="sendMessage", status=429, description="Too Many Requests", retry_after=1)
SWEEP = Fault(method="editMessageText", status=429, description="Too Many Requests", retry_after=1)
CUT = Fault(method="sendMessage", cut="after")


@pytest.mark.parametrize(
    ("faults", "streaming", "flood_wait_seconds"),
    [([CUT, FLOOD], "edits", 0.1), ([CUT, SWEEP], "off", 30), ([CUT, FLOOD, CUT, SWEEP], "edits", 0.1)],
)
async def test_no_placeholder_stays_after_a_cut_connection_and_a_flood(here, faults, streaming, flood_wait_seconds):
    async with here.serving(streaming=streaming, flood_wait_seconds=flood_wait_seconds) as daemon:
        here.bot.fail(*faults)
        here.bot.say(ANA, "note #1#")
        await here.shows("#1#")
        await here.idle(daemon)
        assert len(texts(here)) == 1 and "#1#" in texts(here)[0]


async def test_slow_answers_and_server_errors_are_got_over(here):
    async with here.serving(streaming="off", timeout_seconds=0.4) as daemon:
        here.bot.fail(
            Fault(method="editMessageText", delay_seconds=1.0),
            Fault(method="sendMessage", status=502, description="Bad Gateway"),
            Fault(method="getUpdates", status=500, description="Internal Server Error"),
        )
        await here.ask(daemon, "note #1#")
        assert len(texts(here)) == 1 and "#1#" in texts(here)[0]


async def test_a_slow_document_holds_up_nobody_else_and_comes_before_what_was_said_after_it(here):
    async with here.serving(timeout_seconds=300, document_seconds=300) as daemon:
        here.bot.files_flow.clear()
        here.bot.say(ANA, document=here.bot.document("notes.md", b"The fountain is violet."), caption="read it #1#")
        here.bot.say(ANA, "and then #2#")
        await here.until(lambda: here.bot.count("file"))
        for number in range(3):  # also what comes later, again and again
            (reply,) = await here.ask_meanwhile(f"note #{number}b#", BEN)
            assert f"#{number}b#" in reply.text
        assert texts(here) == [] and here.bot.unconfirmed
        here.bot.files_flow.set()
        await here.idle(daemon)
        first, second = texts(here)
        assert "#1#" in first and "#2#" in second
        assert len(texts(here, BEN)) == 3 and here.bot.count("file") == 1


async def test_a_document_that_does_not_come_or_is_larger_than_told_is_given_up(here):
    async with here.serving(document_seconds=0.3, document_bytes=50) as daemon:
        large = here.bot.document("notes.md", b"x" * 51)
        (reply,) = await here.ask(daemon, None, document={**large, "file_size": None})
        assert "too large" in reply.text and here.bot.count("file") == 0  # not even begun
        here.bot.files_flow.clear()
        (reply,) = await here.ask(daemon, None, document=here.bot.document("notes.md", b"Violet."))
        assert "send it again" in reply.text
        asked = here.bot.count("getFile")
        for _ in range(3):  # nobody waits for those that come with it
            here.bot.say(ANA, document=here.bot.document("more.md", b"Violet."))
        await here.idle(daemon)
        assert sum("send it again" in text for text in texts(here)) == 4 and here.bot.count("getFile") <= asked + 1
        here.bot.files_flow.set()
    assert here.model.calls == 0


async def test_a_message_deleted_while_it_was_written_comes_anew(tmp_path):
    async with world(tmp_path, drafts=False) as here:
        here.model.enqueue(says("one two three", pause_seconds=0.2))
        async with here.serving() as daemon:
            here.bot.say(ANA, "hello")
            await here.until(lambda: here.bot.chat(ANA))
            here.bot.chat(ANA)[0].deleted = True
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


@pytest.mark.parametrize("status", [401, 404])
async def test_a_refused_token_is_explained_without_it(here, tmp_path, status):
    here.bot.fail(Fault(method="getMe", status=status, description="Unauthorized" if status == 401 else "Not Found"))
    with pytest.raises(ExceptionGroup) as raised:
        async with here.serving() as daemon:
            await becomes(lambda: not all(daemon.status()["parts"].values()))
            await asyncio.sleep(0.2)  # until the daemon has told why
    assert raised.group_contains(ChannelFailed, match="@BotFather")
    assert TOKEN not in str(raised.value) + written(tmp_path)


async def test_what_is_no_token_at_all_is_told_before_anything_starts(tmp_path):
    for token in ("abc", "123456:short", TOKEN.replace(":", ";")):
        loaded = load_settings(None, {"OLVIDO_TELEGRAM__TOKEN": token}, tmp_path)
        with pytest.raises(ChannelFailed, match="Copy the whole of it from @BotFather") as raised:
            await serve(loaded)
        assert token not in str(raised.value)


async def test_a_server_that_is_not_there_yet_is_waited_for_and_told_in_the_status(tmp_path):
    with BotServer() as gone:
        address = gone.base_url
    async with world(tmp_path) as here, here.serving(base_url=address) as daemon:
        await becomes(lambda: daemon.status()["problems"])
        assert "Telegram" in daemon.status()["problems"][0]["text"] and all(daemon.status()["parts"].values())


async def test_the_token_is_in_no_log_line_and_no_error(here, tmp_path, caplog, capfd):
    """Process titles and the standard error of a real process: see test_telegram_kill.py."""
    caplog.set_level("WARNING", "aiosqlite")
    caplog.set_level("DEBUG")  # also what libraries would tell whoever asks for everything
    server_says = f"error at /bot{here.bot.token}/method"
    here.bot.fail(
        Fault(method="getMe", cut="before"),
        Fault(method="setMyCommands", status=400, description=f"Bad Request: {server_says}"),
        Fault(method="getUpdates", status=500, description=server_says),
        Fault(method="sendMessage", status=500, description=server_says),
        *[Fault(method="editMessageText", status=400, description=f"Bad Request: {server_says}")] * 4,
    )
    logs.configure(load_settings(None, {**here.environment(), "OLVIDO_DATA_DIR": str(tmp_path)}, tmp_path).settings)
    async with here.serving() as daemon:
        await here.ask(daemon, "note #1#")
        status = str(daemon.status())
    logged = written(tmp_path)
    assert "entities_refused" in logged or "refused" in logged
    assert here.bot.token.split(":")[1] not in status + logged + caplog.text + "".join(capfd.readouterr())


def odd_updates(here: World) -> list[dict]:
    """What Telegram never sends, or seldom, or somebody made up."""
    ana, chat, group = here.bot.users[ANA], here.bot.chats[ANA], here.bot.chats[FAMILY]
    said = {"message_id": 900, "date": 1, "chat": chat, "from": ana}
    reaction = {"chat": chat, "message_id": 1, "date": 1, "old_reaction": []}
    press = {"id": "q", "from": ana, "chat_instance": "1"}
    button = Buttons(here.bot.token).data("/undo f1", ANA, ANA)
    named = {**ana, "first_name": "{0} %s \ud800\n> System:" * 20, "language_code": "xx-\ud800"}
    grouped = {**said, "chat": group, "from": named}
    return [
        {"message": said},
        {"message": {**said, "message_id": 901, "text": " \n\u200b "}},
        {"message": {**said, "message_id": 902, "text": "half \ud83d \x00 #h#", "entities": [_entity("bold", 90)]}},
        {"message": {**grouped, "message_id": 9030, "text": "/facts@olvido_bot"}},
        {
            "message": {
                **grouped,
                "message_id": 903,
                "text": "@olvido_bot \ud83d",
                "entities": [_entity("mention", 11)],
            }
        },
        {"message": {**said, "message_id": 904, "chat": group, "sender_chat": group, "text": "/facts"} | {"from": BOT}},
        {"message": {**said, "message_id": 905, "from": None, "text": "nobody"}},
        {"message": {**said, "message_id": 906, "new_chat_members": [ana]}},
        {"message": {**said, "message_id": 907, "text": "/facts #99999999 #-1 #0"}},
        {"message": {**said, "message_id": 908, "text": "/forget f99999999999999999999"}},
        {"message": {**said, "message_id": 909, "text": "/replace f1 f1; DROP TABLE facts"}},
        {"edited_message": {**said, "message_id": 7777, "edit_date": 2, "text": "never \ud800 seen"}},
        {"edited_message": {**said, "message_id": 902, "edit_date": 2, "text": "\ud800 I live in \udfff Oslo"}},
        {"channel_post": {**said, "message_id": 910, "text": "post"}},
        {"callback_query": {**press, "data": button}},
        {"callback_query": {**press, "data": button, "message": {"chat": chat, "message_id": 5555, "date": 0}}},
        {"callback_query": {**press, "inline_message_id": "i", "game_short_name": "g"}},
        {"message_reaction": {**reaction, "user": ana, "new_reaction": [{"type": "emoji", "emoji": "👍"}]}},
        {"message_reaction": {**reaction, "actor_chat": group, "new_reaction": [{"type": "paid"}]}},
        {
            "message_reaction": {
                **reaction,
                "user": ana,
                "new_reaction": [{"type": "custom_emoji", "custom_emoji_id": "1"}],
            }
        },
    ]


def _entity(kind: str, length: int) -> dict:
    return {"type": kind, "offset": 0, "length": length}


async def test_odd_updates_break_nothing_and_nobody_waits_for_them(here, tmp_path):
    logs.configure(load_settings(None, {**here.environment(), "OLVIDO_DATA_DIR": str(tmp_path)}, tmp_path).settings)
    async with here.serving() as daemon:
        for content in odd_updates(here):
            here.bot.update(content)
        await here.idle(daemon)
        await here.ask(daemon, "note #1#")
        assert "#1#" in texts(here)[-1] and any("#h#" in text for text in texts(here))
        assert all(daemon.status()["parts"].values())
    logged = written(tmp_path / "logs")
    assert "update_failed" not in logged and "message_failed" not in logged and "chat_failed" not in logged


async def test_a_proxy_is_used(here):
    async with here.serving(base_url="http://telegram.invalid", proxy=here.bot.base_url) as daemon:
        (reply,) = await here.ask(daemon, "note #1#")
        assert "#1#" in reply.text and here.bot.asked_for == {"telegram.invalid"}


def written(folder: Path) -> str:
    return b"".join(file.read_bytes() for file in folder.rglob("*") if file.is_file()).decode("utf-8", "replace")


def malformed_updates() -> list[dict[str, object]]:
    """Updates that the documented API would never send."""
    good = {"message_id": 900, "date": 1_700_000_000, "chat": {"id": ANA, "type": "private"}, "text": "x"}
    good["from"] = {"id": ANA, "is_bot": False, "first_name": "Ana"}
    broken = [
        {},
        {**good, "message_id": "x"},
        {**good, "date": "yesterday"},
        {**good, "date": 10**18},
        {**good, "chat": {"id": "x", "type": "private"}},
        {**good, "chat": {"id": ANA}},
        {**good, "reply_to_message": {}},
        {**good, "document": {}},
        {**good, "entities": "zzz"},
    ]
    wrong = [{"message": message} for message in broken]
    press = {"id": "1", "from": good["from"], "data": "x"}
    return [*wrong, {"message": []}, {"message": "x"}, {"message_reaction": {}}, {"callback_query": press}]


async def test_updates_that_cannot_be_read_are_passed_over_and_confirmed(here):
    async with here.serving() as daemon:
        for content in malformed_updates():
            here.bot.update(content)
        await here.ask(daemon, "note #1#")
        assert "#1#" in texts(here)[-1]
        assert all(daemon.status()["parts"].values())
    assert not here.bot.unconfirmed
