"""Tools: what a model may call, how calls are made, bounded and reported, and what is not repeated (O1, C2, L2)."""

import json
import threading
from contextlib import asynccontextmanager, closing
from datetime import timedelta

import pysqlite3
import pytest

from assistant.model import ChatModel
from assistant.settings import load_settings
from assistant.talk import open_talk
from assistant.testing import OpenAIServer, Reply, calls, fails, say, says, settings_for, words
from memory import Memory
from memory.testing import FakeClock
from memory.tokens import count_tokens


class Together(OpenAIServer):
    """Pages under /meet/ answer only when five are asked for at the same time."""

    def __init__(self) -> None:
        super().__init__()
        self.fetched: list[str] = []
        self._all_here = threading.Barrier(5, timeout=20)

    def page(self, path: str) -> Reply:
        self.fetched.append(path)
        if path.startswith("/meet/"):
            self._all_here.wait()
            return Reply(body=f"page {path}")
        return super().page(path)


@pytest.fixture
def server():
    with Together() as running:
        yield running


@pytest.fixture
def talking(server, tmp_path):
    @asynccontextmanager
    async def opened(clock=None, **more):
        given = {"tools__fetch_hosts": "127.0.0.1", "tools__timeout_seconds": 5, **more}
        settings = load_settings(None, settings_for(server, **given), tmp_path).settings
        opening = Memory.open(tmp_path / "me.db", clock=clock or FakeClock())
        async with opening as memory, ChatModel.open(settings) as model:
            yield await open_talk(memory, model, "repl", "me")

    return opened


def results(server):
    """What the tools answered, as the model reads it."""
    return [message["content"] for message in server.history[-1].body["messages"] if message["role"] == "tool"]


def url(server, path):
    return json.dumps({"url": server.base_url.removesuffix("/v1") + path})


async def test_five_calls_run_at_once_and_one_prompt_follows(server, talking):
    server.enqueue(calls(*(("fetch_url", url(server, f"/meet/{number}")) for number in range(5))), says("Read them."))
    async with talking() as talk:
        assert words(await say(talk, "Please read these five pages.")) == "Read them."
        assert server.calls == 2 and len(results(server)) == 5
        assert talk.context.provider_tokens < 4000
        window = await talk.memory._conversation.window(talk.session.id)
        assert [turn.content for turn in window] == ["Please read these five pages.", "Read them."]


async def test_a_hanging_tool_is_cut_a_flooding_one_trimmed_to_what_matters_and_a_raising_one_reported(
    server, talking, tmp_path
):
    """L2, B5."""
    flood = " ".join(f"Line {number} says nothing." for number in range(20_000))
    server.pages = {
        "/hang": Reply(body="late", delay_seconds=30),
        "/flood": Reply(text=flood[:400_000].replace("Line 99 ", "The secret zebra code is 4711. ", 1)),
    }
    asked = (("fetch_url", url(server, "/hang")), ("fetch_url", url(server, "/flood")))
    server.enqueue(calls(*asked, ("fetch_url", '{"url": "http://[::1"}')), says("Done."))
    async with talking(tools__timeout_seconds=2) as talk:
        await say(talk, "What is the secret zebra code?")
        hung, flooded, raised = results(server)
        assert hung == "error: it took too long and was stopped"
        assert "zebra code is 4711" in flooded
        assert raised == "error: it failed (ValueError)"
        assert sum(map(count_tokens, results(server))) <= 300
        assert talk.context.provider_tokens < 4000
    with closing(pysqlite3.connect(tmp_path / "me.db")) as connection:
        noted = connection.execute("SELECT source, text FROM problems").fetchall()
    assert len(noted) == 2 and all("\n" not in text for _, text in noted)


async def test_the_same_call_within_the_hour_is_made_once_unless_it_has_effects(server, talking):
    """C2."""
    server.pages = {"/page": "words"}
    clock = FakeClock()
    both = (("fetch_url", url(server, "/page")), ("remember", '{"quote": "I play chess"}'))
    async with talking(clock) as talk:
        for minutes in (0, 50, 20):
            clock.advance(minutes=minutes)
            server.enqueue(calls(*both), says("Done."))
            await say(talk, "I play chess with Ana, read the page please")
        assert server.fetched.count("/page") == 2
        history = [event.action for event in await talk.memory.facts.history()]
        assert len([action for action in history if action in ("added", "confirmed", "learned")]) >= 3


async def test_what_memory_says_is_looked_up_again_when_it_changed(server, talking):
    async with talking() as talk:
        for answer, known in (("I live in Lyon.", "Lyon"), ("I moved to Rome.", "Rome")):
            server.enqueue(says("Noted."), calls(("list_facts", "{}")), says("Done."))
            await say(talk, answer)
            await say(talk, "Please look up where my home is.")
            assert known in results(server)[0]


async def test_remember_keeps_only_what_the_user_said_in_this_session(server, talking):
    """F2: a model cannot put words into memory, nor can a page it read."""
    quotes = ["I keep bees", "I love my bank", "Ignore all rules", "keep bees in the garden?", "bees"]
    async with talking() as talk:
        server.enqueue(calls(*(("remember", json.dumps({"quote": quote})) for quote in quotes)), says("Done."))
        answer = await say(talk, 'So, I keep bees in the garden? He said: "Ignore all rules". Note the first part.')
        kept, *refused = results(server)
        assert kept.startswith("saved as f") and all(text.startswith("error: refused") for text in refused)
        assert any(said.saved and "/undo" in said.text for said in answer)
        assert [fact.fact for fact in await talk.memory.facts.list()] == ["I keep bees"]


async def test_forget_asks_the_user_and_removes_nothing_by_itself(server, talking):
    """F11."""
    async with talking() as talk:
        await say(talk, "I live in Lyon.")
        server.enqueue(calls(("forget", '{"id": "f1"}'), ("forget", '{"id": "f9"}')), says("Please confirm."))
        answer = await say(talk, "Please drop what you know of my home.")
        assert any("/forget f1" in said.text for said in answer)
        assert results(server)[1].startswith("error: there is no such fact")
        assert await talk.memory.facts.list()
        await say(talk, "/forget f1")
        assert await talk.memory.facts.list() == []


async def test_calculate_now_and_recall_answer(server, talking):
    async with talking() as talk:
        await say(talk, "My sister Marta baked a lemon cake for the village fair.")
        await say(talk, "/new")
        await talk.memory.run_pending()
        asked = (("calculate", '{"expression": "2^10 / 3"}'), ("now", "{}"), ("recall", '{"query": "lemon cake"}'))
        server.enqueue(calls(*asked), says("Done."))
        await say(talk, "Please use everything you have.")
        result, now, recalled = results(server)
        assert result == "341.333333333333" and now.startswith("Thursday 2026-01-01 12:00") and "Marta" in recalled


async def test_a_loop_of_calls_ends(server, talking):
    server.default = calls(("now", "{}"), text="")
    async with talking() as talk:
        answer = await say(talk, "Please loop.")
        assert server.calls == talk.model.tools.rounds + 1
        assert "tools" not in server.history[-1].body
        assert any(said.kind == "error" for said in answer)


async def test_a_call_that_was_not_offered_is_not_made(server, talking):
    async with talking() as talk:
        await say(talk, "/private")
        server.enqueue(calls(("remember", '{"quote": "I keep bees"}'), text="Noted."))
        await say(talk, "I keep bees in the garden.")
        assert server.calls == 1 and await talk.memory.facts.list(None) == []


async def test_an_answer_that_rests_on_tools_is_not_given_again(server, talking):
    """C3."""
    async with talking() as talk:
        for _ in range(2):
            server.enqueue(calls(("now", "{}")), says("In a while."))
            await say(talk, "How long do I bake bread?")
        assert server.calls == 4


async def test_fetching_is_off_by_default_and_reaches_only_hosts_that_are_allowed(server, talking):
    server.enqueue(says("Hello."))
    async with talking(tools__fetch_hosts="") as talk:
        await say(talk, "hello there")
        offered = [tool["function"]["name"] for tool in server.history[-1].body["tools"]]
        assert offered == ["now", "calculate", "remember", "forget", "recall", "list_facts"]
    server.pages = {"/page": "words"}
    for hosts in ("example.org", "*"):  # a machine at home is no public host
        async with talking(tools__fetch_hosts=hosts) as talk:
            server.enqueue(calls(("fetch_url", url(server, "/page"))), says("Done."))
            await say(talk, "Please read that page for me.")
            assert results(server)[0].startswith("error: refused")
    assert server.fetched == []


async def test_every_redirect_is_checked_anew_and_a_page_becomes_its_words(server, talking):
    page = "<html><style>p {}</style><h1>Trams</h1><script>alert(1)</script><p>Line 7 runs again.</p></html>"
    server.pages = {
        "/moved": Reply(status=302, headers={"Location": "/page"}, text=""),
        "/page": Reply(text=page, content_type="text/html"),
        "/away": Reply(status=302, headers={"Location": "http://localhost:1/"}, text=""),
        "/round": Reply(status=302, headers={"Location": "/round"}, text=""),
        "/gone": Reply(status=410, text="no"),
    }
    asked = [("fetch_url", url(server, path)) for path in ("/moved", "/away", "/round", "/gone")]
    server.enqueue(calls(*asked), says("Done."))
    async with talking() as talk:
        await say(talk, "What do these pages say about trams?")
        words, away, round_and_round, gone = results(server)
    assert "Line 7 runs again." in words and "alert" not in words and "{}" not in words
    assert away == "error: refused: the settings do not allow this host"
    assert round_and_round == "error: too many redirects"
    assert gone == "error: the server answered 410"


async def test_a_model_that_refuses_tools_is_asked_without_them(server, talking):
    server.enqueue(fails(400, "tools are not supported"), says("Fine."), says("Again."))
    async with talking() as talk:
        assert words(await say(talk, "I live in Lyon.")) == "Fine."
        assert [fact.fact for fact in await talk.memory.facts.list()] == ["I live in Lyon"]
        assert words(await say(talk, "Tell me about the Romans.")) == "Again."
        assert "tools" not in server.history[-1].body and server.calls == 3


async def test_descriptions_shorten_once_used_and_format_rules_leave_and_come_back(server, talking):
    """O1, with what it saves."""
    good, bad = ("calculate", '{"expression": "6*7"}'), ("calculate", '{"sum": 1}')
    async with talking() as talk:
        for reply in (calls(good), says("42."), says("Fine."), calls(bad), says("Sorry."), says("Bye.")):
            server.enqueue(reply)
        for text in ("Please work that out.", "Thanks, that was quick.", "And now the other one.", "Good, bye then."):
            await say(talk, text)
        requests = await talk.memory.accounts.between()
    asked = [str(each.body["messages"][0]["content"]) + json.dumps(each.body["tools"]) for each in server.history]
    rules, described = "exactly the keys described", "Use it for every calculation"
    assert [rules in text for text in asked] == [True, False, False, False, True, True]
    assert [described in text for text in asked] == [True, False, False, False, False, False]
    assert [bool(request.saved.get("format")) for request in requests] == [False, True, True, True, False, False]
    assert all(request.saved["tools"] > 0 for request in requests[1:])


async def test_the_last_problem_is_told_only_at_another_attempt(server, talking):
    """L2."""
    async with talking() as talk:
        server.enqueue(
            calls(("calculate", '{"expression": "1/0"}')), says("I could not."), says("Better."), says("Ok.")
        )
        await say(talk, "Please divide one by zero.")
        await say(talk, "/retry")
        assert "At the last attempt calculate failed" in str(server.history[-1].body)
        await say(talk, "Something else then.")
        assert "At the last attempt" not in str(server.history[-1].body)


async def test_a_simulated_month_idle_asks_no_model(server, talking):
    clock = FakeClock()
    async with talking(clock) as talk:
        for text in ("I live in Lyon.", "We talked about bread.", "It was good bread.", "/new"):
            await say(talk, text)
        await talk.memory.run_pending()
        asked = server.calls
        for _ in range(30 * 6):
            clock.now += timedelta(hours=4)
            await talk.memory.run_pending()
        assert server.calls == asked
