"""The model adapter against a real server on loopback: what is sent, what is kept, and every way it can fail."""

import asyncio
import time
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path

import pytest
from pydantic import BaseModel

from assistant import errors
from assistant.model import ChatModel, Reply
from assistant.settings import load_settings
from assistant.testing import ChatReply, OpenAIServer, fails, says
from assistant.testing import Reply as Answer
from assistant.thinking import WithoutThinking, settled
from memory import Memory
from memory.testing import FakeClock

KEY = "sk-zebra-quartz-0123456789"
ASKED = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hello?"}]


@pytest.fixture
def server():
    with OpenAIServer() as running:
        yield running


def settings_of(server: OpenAIServer | None, tmp_path: Path, **changes: object):
    """Settings as the user would write them; quick where waiting would prove nothing more."""
    given = {
        "provider": "custom",
        "base_url": server.base_url if server else None,
        "name": "first",
        "api_key": KEY,
        "backoff_seconds": 0.01,
        "backoff_max_seconds": 0.05,
        **changes,
    }
    environ = {
        f"OLVIDO_MODEL__{name.upper()}": ",".join(value) if isinstance(value, list) else str(value)
        for name, value in given.items()
        if value is not None
    }
    return load_settings(None, environ, tmp_path).settings


@pytest.fixture
def opened(server, tmp_path):
    return lambda **changes: ChatModel.open(settings_of(server, tmp_path, **changes))


async def answer(model: ChatModel, **arguments: object) -> tuple[list[str], Reply]:
    """The pieces as they came, and the reply at the end."""
    pieces: list[str] = []
    async for part in model.stream(ASKED, **arguments):
        if isinstance(part, Reply):
            assert "".join(pieces).strip() == part.text
            return pieces, part
        pieces.append(part)
    raise AssertionError("the stream ended without a reply")


async def failure(model: ChatModel) -> errors.ModelError:
    with pytest.raises(errors.ModelError) as caught:
        await answer(model)
    assert KEY not in str(caught.value)
    assert str(caught.value).endswith(".")
    return caught.value


# --- what is sent and kept


async def test_a_reply_comes_in_pieces_and_ends_with_its_account(server, opened):
    server.enqueue(says("Hello, Ana, how are you?", prompt_tokens=120, cached_tokens=100))
    async with opened() as model:
        pieces, reply = await answer(model, max_tokens=50)
    assert len(pieces) == 3
    assert reply == Reply(
        text="Hello, Ana, how are you?",
        finish_reason="stop",
        model="first",
        prompt_tokens=120,
        cached_tokens=100,
        reply_tokens=5,
    )
    [asked] = server.history
    assert asked.path == "/v1/chat/completions"
    assert asked.headers["authorization"] == f"Bearer {KEY}"
    assert asked.body == {
        "model": "first",
        "messages": ASKED,
        "stream": True,
        "stream_options": {"include_usage": True},
        "max_tokens": 50,
    }


async def test_the_first_piece_is_shown_before_the_last_is_written(server, opened):
    server.enqueue(says("one two three", hang_seconds=5))
    async with opened() as model:
        stream = model.stream(ASKED)
        began = time.monotonic()
        assert await anext(stream) == "one t"
        assert time.monotonic() - began < 4
        await stream.aclose()


@pytest.mark.parametrize(
    ("changes", "sent"),
    [
        ({"provider": "kimi", "name": None}, {"model": "kimi-k2.5", "thinking": {"type": "disabled"}}),
        ({"provider": "kimi", "name": "kimi-k2.5", "thinking": "default"}, {"model": "kimi-k2.5"}),
        ({"provider": "kimi", "name": "moonshot-v1-auto"}, {"model": "moonshot-v1-auto"}),
        ({"provider": "openai", "name": None}, {"model": "gpt-4.1-mini", "max_completion_tokens": 1024}),
        (
            {"provider": "openrouter", "name": None},
            {"model": "moonshotai/kimi-k2.5", "reasoning": {"enabled": False}},
        ),
        ({"provider": "ollama", "name": None}, {"model": "llama3.2"}),
        ({"provider": "llamacpp", "name": None}, {"model": "default"}),
        ({"temperature": 0.2, "max_reply_tokens": 77}, {"model": "first", "temperature": 0.2, "max_tokens": 77}),
    ],
)
async def test_each_provider_is_sent_what_it_wants(server, opened, changes, sent):
    async with opened(**changes) as model:
        await answer(model)
    body = server.history[-1].body
    known = {"messages", "stream", "stream_options", "max_tokens"} - set(sent)
    assert {name: value for name, value in body.items() if name not in known} == sent


async def test_without_a_name_the_first_model_of_the_server_is_asked(server, opened):
    listed = [{"id": name, "object": "model", "created": 1, "owned_by": "me"} for name in ("nomic-embed", "qwen")]
    server.pages["/v1/models"] = {"object": "list", "data": listed}
    async with opened(provider="lmstudio", name=None, context_tokens=9000) as model:
        assert model.name == "qwen"
        await answer(model)
    assert server.history[-1].body["model"] == "qwen"


async def test_another_company_is_not_told_the_openai_organization(server, opened, monkeypatch):
    monkeypatch.setenv("OPENAI_ORG_ID", "org-1")
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")  # nor is a server on this machine asked through a proxy
    async with opened() as model:
        await answer(model)
    assert "openai-organization" not in server.history[-1].headers


async def test_tools_are_offered_and_calls_of_them_returned(server, opened):
    tool = {"type": "function", "function": {"name": "weather", "parameters": {"type": "object", "properties": {}}}}
    server.enqueue(ChatReply(tool_calls=(("weather", '{"city": "Rome"}'), ("clock", "{}")), finish_reason="tool_calls"))
    async with opened() as model:
        _, reply = await answer(model, tools=[tool])
    assert server.history[-1].body["tools"] == [tool]
    assert (reply.text, reply.finish_reason) == ("", "tool_calls")
    assert [(call.id, call.name, call.arguments) for call in reply.tool_calls] == [
        ("call_0", "weather", '{"city": "Rome"}'),
        ("call_1", "clock", "{}"),
    ]


async def test_thinking_is_neither_shown_nor_kept(server, opened):
    server.enqueue(
        ChatReply(reasoning=("Let me ", "think."), pieces=("Four.",)),
        ChatReply(pieces=("<th", "ink>two and", " two\n</thi", "nk>\n\nFo", "ur.")),
    )
    async with opened() as model:
        for _ in range(2):
            pieces, reply = await answer(model)
            assert "".join(pieces) == reply.text == "Four."


@pytest.mark.parametrize("size", [1, 2, 5, 100])
@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("<think>a\nb</think>\n\nHello\nyou", "Hello\nyou"),
        ("The tag `<think>` opens it.", "The tag `<think>` opens it."),
        ("One.\n<THINKING>x</thinking>\nTwo.", "One.\nTwo."),
        ("<think>never ends", ""),
        ("<thi is no tag", "<thi is no tag"),
        ("a < b\n<", "a < b\n<"),
    ],
)
def test_thinking_is_found_wherever_the_pieces_are_cut(text, shown, size):
    without = WithoutThinking()
    pieces = [without(text[start : start + size]) for start in range(0, len(text), size)]
    assert "".join(pieces) + without.rest() == shown


def test_thinking_whose_beginning_was_swallowed_is_not_kept():
    assert settled("So the user wants\n</think>\n\nHello.") == "Hello."


# --- what can be tried again


async def test_two_failures_of_the_server_are_overcome(server, opened):
    server.enqueue(fails(500), fails(503), says("Here I am."))
    async with opened() as model:
        _, reply = await answer(model)
    assert reply.text == "Here I am."
    assert server.calls == 3
    assert server.history[0].body == server.history[2].body


@pytest.mark.parametrize("status", [408, 409, 429, 500, 502, 503, 529])
async def test_these_are_tried_again_and_then_explained(server, opened, status):
    server.enqueue(*[fails(status)] * 3)
    async with opened(retries=2) as model:
        error = await failure(model)
    assert server.calls == 3
    assert "again" in str(error)


@pytest.mark.parametrize("status", [400, 401, 402, 403, 404, 422])
async def test_these_are_not_tried_again(server, opened, status):
    server.enqueue(fails(status))
    async with opened() as model:
        await failure(model)
    assert server.calls == 1


async def test_retry_after_is_obeyed(server, opened):
    server.enqueue(fails(429, retry_after="0.5"), says("Now."))
    began = time.monotonic()
    async with opened() as model:
        _, reply = await answer(model)
    assert reply.text == "Now."
    assert time.monotonic() - began >= 0.5


@pytest.mark.parametrize("as_date", [False, True])
async def test_a_server_that_wants_an_hour_is_not_waited_for(server, opened, as_date):
    after = format_datetime(datetime.now(UTC) + timedelta(hours=1), usegmt=True) if as_date else "3600"
    server.enqueue(fails(429, retry_after=after))
    async with opened() as model:
        error = await failure(model)
    assert isinstance(error, errors.ModelBusy)
    assert "60 minutes" in str(error)
    assert server.calls == 1


async def test_a_used_up_account_is_not_tried_again(server, opened):
    server.enqueue(fails(429, "You exceeded your current quota", code="insufficient_quota"))
    async with opened() as model:
        assert "Add credit" in str(await failure(model))
    assert server.calls == 1


async def test_an_empty_reply_is_asked_for_once_more(server, opened):
    server.enqueue(says(""), says("Words."))
    async with opened() as model:
        _, reply = await answer(model)
    assert (reply.text, server.calls) == ("Words.", 2)


async def test_two_empty_replies_are_explained(server, opened):
    server.enqueue(says(""), says("  \n"), says("too late"))
    async with opened() as model:
        error = await failure(model)
    assert isinstance(error, errors.BadReply)
    assert "nothing" in str(error)
    assert server.calls == 2


async def test_a_reply_that_was_all_thinking_says_what_to_raise(server, opened):
    server.enqueue(ChatReply(reasoning=("Hm.",) * 3, finish_reason="length"))
    async with opened() as model:
        assert "model.max_reply_tokens" in str(await failure(model))
    assert server.calls == 1


async def test_a_connection_cut_before_the_first_word_is_tried_again(server, opened):
    server.enqueue(ChatReply(cut=True), ChatReply(finish_reason=None), says("Third time."))
    async with opened() as model:
        _, reply = await answer(model)
    assert (reply.text, server.calls) == ("Third time.", 3)


async def test_an_error_inside_a_stream_before_the_first_word_is_tried_again(server, opened):
    server.enqueue(ChatReply(error={"message": "overloaded", "code": 502}), says("Fine."))
    async with opened() as model:
        _, reply = await answer(model)
    assert (reply.text, server.calls) == ("Fine.", 2)


async def test_a_server_that_says_nothing_is_given_up(server, opened):
    server.enqueue(*[says("late", delay_seconds=3)] * 2)
    async with opened(first_token_timeout_seconds=0.2, retries=1) as model:
        began = time.monotonic()
        error = await failure(model)
    assert isinstance(error, errors.ModelTimeout)
    assert "model.first_token_timeout_seconds" in str(error)
    assert server.calls == 2
    assert time.monotonic() - began < 2.5


# --- what cannot


@pytest.mark.parametrize(
    ("reply", "kind", "advice"),
    [
        (fails(401, f"Incorrect API key provided: {KEY}"), errors.KeyRefused, "model.api_key"),
        (fails(403), errors.KeyRefused, "model.api_key"),
        (fails(404, "The model `first` does not exist"), errors.ModelUnknown, "model.name"),
        (fails(402), errors.ModelBusy, "credit"),
        (fails(400, "invalid temperature: only 1 is allowed"), errors.RequestRefused, "only 1 is allowed"),
        (fails(400, f"odd {KEY} thing"), errors.RequestRefused, "[redacted]"),
        (fails(400, "long", code="context_length_exceeded"), errors.ContextTooLong, "limits.request_tokens"),
        (
            fails(400, "request (9031 tokens) exceeds the available context size (5120 tokens)"),
            errors.ContextTooLong,
            "limits.request_tokens",
        ),
        (fails(413), errors.ContextTooLong, "limits.request_tokens"),
        (says("", finish_reason="content_filter"), errors.BadReply, "other words"),
        (Answer(text="<html>hello</html>", content_type="text/html"), errors.BadReply, "model.base_url"),
        (Answer(text="data: {half\n\n", content_type="text/event-stream"), errors.BadReply, "model.base_url"),
        (Answer(text='data: {"choices": "x"}\n\n', content_type="text/event-stream"), errors.ModelError, "."),
    ],
)
async def test_each_failure_is_a_sentence_that_says_what_to_do(server, opened, reply, kind, advice):
    server.enqueue(reply)
    async with opened(retries=0) as model:
        error = await failure(model)
    assert isinstance(error, kind)
    assert advice in str(error)


async def test_an_address_where_nobody_listens_is_named(tmp_path):
    with OpenAIServer() as gone:
        url = gone.base_url
    settings = settings_of(None, tmp_path, base_url=url.replace("http://", "http://me:hush@"), retries=1)
    async with ChatModel.open(settings) as model:
        error = await failure(model)
    assert isinstance(error, errors.ModelUnreachable)
    assert url in str(error)
    assert "hush" not in str(error)


# --- after the first word


@pytest.mark.parametrize(
    "broken",
    [
        says("Half of what I", cut=True),
        says("Half of what I", finish_reason=None),
        says("Half of what I", error={"message": "boom", "code": 500}),
        says("Half of what I", hang_seconds=3),
    ],
)
async def test_what_came_before_a_failure_is_kept_and_marked(server, opened, broken):
    server.enqueue(broken, says("never asked for"))
    async with opened(token_timeout_seconds=0.3) as model:
        _, reply = await answer(model)
    assert (reply.text, reply.finish_reason) == ("Half of what I", "cut")
    assert "again" in reply.notes[-1]
    assert server.calls == 1


async def test_a_reply_that_reached_its_limit_is_marked(server, opened):
    server.enqueue(says("And then there", finish_reason="length"))
    async with opened() as model:
        _, reply = await answer(model)
    assert reply.finish_reason == "length"


async def test_a_reply_nobody_waits_for_any_more_ends_at_once(server, opened):
    server.enqueue(says("a long story", hang_seconds=30), says("Next."))
    async with opened() as model:
        told = asyncio.Event()

        async def listen() -> None:
            async for _ in model.stream(ASKED):
                told.set()

        task = asyncio.create_task(listen())
        await told.wait()
        task.cancel()
        began = time.monotonic()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert time.monotonic() - began < 2
        _, reply = await answer(model)
    assert reply.text == "Next."


# --- other models


async def test_another_model_answers_where_the_first_fails(server, opened):
    server.enqueue(fails(404), fails(500), fails(500), says("I am third."))
    async with opened(fallbacks=["second", "third"], retries=1) as model:
        _, reply = await answer(model)
    assert [asked.body["model"] for asked in server.history] == ["first", "second", "second", "third"]
    assert (reply.text, reply.model) == ("I am third.", "third")
    assert reply.notes == ("first did not answer; third did.",)


async def test_when_all_fail_the_first_failure_is_told(server, opened):
    server.enqueue(fails(404), fails(500))
    async with opened(fallbacks=["second"], retries=0) as model:
        assert isinstance(await failure(model), errors.ModelUnknown)


async def test_a_refused_key_is_no_reason_to_ask_another_model(server, opened):
    server.enqueue(fails(401))
    async with opened(fallbacks=["second"]) as model:
        await failure(model)
    assert server.calls == 1


async def test_a_model_of_another_provider_answers_where_the_first_provider_refuses_the_key(server, opened):
    server.enqueue(fails(401))
    try:
        other = OpenAIServer(port=1234, default=says("I am elsewhere."))  # where LM Studio listens
    except OSError:
        pytest.skip("something else listens on port 1234")
    with other:
        async with opened(fallbacks=["second", "lmstudio:local"]) as model:
            _, reply = await answer(model)
    assert (server.calls, reply.text, reply.model) == (1, "I am elsewhere.", "local")
    asked = [asked for asked in other.history if asked.path == "/v1/chat/completions"]
    assert [question.body["model"] for question in asked] == ["local"]
    assert asked[0].headers["authorization"] == "Bearer none"  # the first provider's key stays with it


# --- JSON


class Verdict(BaseModel):
    sound: bool
    why: str


async def test_json_comes_as_the_value_asked_for(server, opened):
    server.enqueue(says('{"sound": true, "why": "it is"}', prompt_tokens=30))
    async with opened() as model:
        reply = await model.complete_json(ASKED, Verdict)
    assert reply.value == Verdict(sound=True, why="it is")
    assert (reply.model, reply.prompt_tokens) == ("first", 30)
    form = server.history[0].body["response_format"]
    assert form["type"] == "json_schema"
    assert form["json_schema"]["schema"] == Verdict.model_json_schema()


async def test_a_code_fence_and_thinking_around_json_are_no_harm(server, opened):
    server.enqueue(says('<think>Hm {</think>\n```json\n{"sound": false, "why": ""}\n```'))
    async with opened() as model:
        assert (await model.complete_json(ASKED, Verdict)).value == Verdict(sound=False, why="")


@pytest.mark.parametrize(
    "reply",
    [
        says("Of course! Here is what I think about it."),
        says('{"sound": "perhaps"}'),
        says('{"sound": true, "why": "it w', finish_reason="length"),
        says("[1, 2]"),
        says('{"sound": true, "wh', cut=True),
    ],
)
async def test_anything_else_than_the_json_asked_for_is_an_error(server, opened, reply):
    server.enqueue(*[reply] * 2)
    async with opened(retries=0) as model:
        with pytest.raises(errors.ModelError):
            await model.complete_json(ASKED, Verdict)


async def test_a_server_that_knows_no_schemas_is_told_the_schema_in_words(server, opened):
    good = says('{"sound": true, "why": ""}')
    server.enqueue(fails(400, "response_format json_schema is not supported"), good, good)
    async with opened() as model:
        for _ in range(2):
            assert (await model.complete_json(ASKED, Verdict)).value.sound
    forms = [asked.body["response_format"]["type"] for asked in server.history]
    assert forms == ["json_schema", "json_object", "json_object"]
    assert '"sound"' in server.history[1].body["messages"][-1]["content"]


# --- how much a server reads


@pytest.mark.parametrize(
    ("changes", "pages", "told"),
    [
        ({"provider": "ollama", "name": None}, {}, "OLLAMA_CONTEXT_LENGTH=5120"),
        (
            {"provider": "ollama", "name": None},
            {"/api/ps": {"models": [{"name": "llama3.2:latest", "context_length": 2048}]}},
            "at most 2048 tokens",
        ),
        (
            {"provider": "ollama", "name": None},
            {"/api/ps": {"models": [{"name": "llama3.2:latest", "context_length": 8192}]}},
            None,
        ),
        ({"provider": "llamacpp", "name": None}, {"/props": {"default_generation_settings": {"n_ctx": 4096}}}, "4096"),
        ({"provider": "llamacpp", "name": None}, {"/props": {"default_generation_settings": {"n_ctx": 16384}}}, None),
        ({"provider": "llamacpp", "name": None}, {}, None),
        (
            {"provider": "lmstudio"},
            {"/api/v0/models": {"data": [{"id": "first", "loaded_context_length": 4096}]}},
            "LM Studio",
        ),
        ({"provider": "ollama", "context_tokens": 32000}, {}, None),
        ({"context_tokens": 2000}, {}, "at most 2000 tokens"),
        ({}, {}, None),
    ],
)
async def test_the_user_is_told_when_a_server_reads_too_little(server, opened, changes, pages, told):
    server.pages |= pages
    async with opened(**changes) as model:
        notes = " ".join(model.notes)
    assert (told in notes) if told else notes == ""


# --- calibration (B6)


async def request(memory: Memory, text: str = "What did we say about the harbour in May?"):
    session = await memory.open_session()
    await memory.add_turn(session.id, "user", text)
    return await memory.assemble(session.id)


async def test_the_estimate_rises_at_once_to_what_a_model_needed_and_survives_a_restart(tmp_path):
    path = tmp_path / "ana.db"
    async with Memory.open(path, clock=FakeClock()) as memory:
        await memory.use_model("greedy")
        before = await request(memory)
        used = before.provider_tokens * 8 // 5
        await memory.calibrate_provider("greedy", before.provider_tokens, used)
        assert used <= (await request(memory)).provider_tokens < used * 1.1
    async with Memory.open(path, clock=FakeClock()) as memory:
        assert (await request(memory)).provider_tokens == before.provider_tokens
        await memory.use_model("greedy")
        assert (await request(memory)).provider_tokens >= used
        await memory.use_model("another")
        assert (await request(memory)).provider_tokens == before.provider_tokens


async def test_the_estimate_falls_slowly_and_the_ceiling_remembers_the_worst(tmp_path):
    async with Memory.open(tmp_path / "ana.db", clock=FakeClock()) as memory:
        await memory.use_model("m")
        long = "naïve words and more of them, " * 4000
        sizes = []
        for share in (1.5, *[0.9] * 30):
            context = await request(memory)
            used = int(context.tokens * share)
            await memory.calibrate_provider("m", context.provider_tokens, used)
            sizes.append((await request(memory)).provider_tokens)
            assert sizes[-1] >= used
        assert sizes[:5] == sorted(sizes[:5], reverse=True)
        assert sizes[1] > sizes[0] * 0.85
        assert sizes[-1] < sizes[0] * 0.7
        full = await request(memory, long)
        assert full.tokens * 1.5 < 4000  # what it once needed may be needed again
        assert full.message_cut


async def test_nonsense_in_usage_changes_nothing_much(tmp_path):
    async with Memory.open(tmp_path / "ana.db", clock=FakeClock()) as memory:
        await memory.use_model("m")
        before = await request(memory)
        await memory.calibrate_provider("m", before.provider_tokens, 0)
        await memory.calibrate_provider("m", 0, 500)
        assert (await request(memory)).provider_tokens == before.provider_tokens
        await memory.calibrate_provider("m", before.provider_tokens, 10**9)
        assert (await request(memory)).provider_tokens < 4000
