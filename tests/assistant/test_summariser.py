"""Summaries by a configured model (S5): used when they are sound, replaced when they are not; compression goes on."""

import json
from pathlib import Path

import pytest

from assistant.model import ChatModel
from assistant.settings import load_settings
from assistant.summariser import summariser_for
from assistant.testing import ChatReply, OpenAIServer, fails, says
from memory import Memory
from memory.limits import Limits
from memory.testing import FakeClock

NOTES = {
    "topic": "the leaking roof",
    "discussed": ["tiles", ""],
    "outcome": "a roofer comes on Monday",
    "decisions": ["repair it before winter"],
    "open_questions": [],
}
SAID = [
    ("user", "The roof of the house leaks and I want it repaired before winter."),
    ("assistant", "A roofer could look at the tiles on Monday."),
    ("user", "Good, Monday it is."),
]


@pytest.fixture
def server():
    with OpenAIServer() as running:
        yield running


def settings_of(server: OpenAIServer, tmp_path: Path, **changes: str):
    given = {"PROVIDER": "custom", "BASE_URL": server.base_url, "NAME": "m", "RETRIES": "0", **changes}
    return load_settings(None, {f"OLVIDO_MODEL__{name}": value for name, value in given.items()}, tmp_path).settings


async def summary(server: OpenAIServer, tmp_path: Path, seconds: float = 20.0, **changes: str) -> str:
    """What stands in the next request of the chat after a talk was compressed."""
    async with ChatModel.open(settings_of(server, tmp_path, **changes)) as model:
        limits = Limits(summariser_seconds=seconds)
        async with Memory.open(
            tmp_path / "ana.db", clock=FakeClock(), summariser=summariser_for(model), limits=limits
        ) as memory:
            session = await memory.open_session()
            for role, text in SAID:
                await memory.add_turn(session.id, role, text)
            session = await memory.open_session()
            assert await memory.run_pending() == 1
            calls = server.calls
            assert await memory.run_pending() == 0
            assert server.calls == calls  # nothing new was said
            await memory.add_turn(session.id, "user", "Hello again.")
            [item] = (await memory.assemble(session.id)).sections["summaries"].items
            return item.text


async def test_the_notes_of_the_model_become_the_summary(server, tmp_path):
    server.enqueue(says(json.dumps(NOTES)))
    line = await summary(server, tmp_path)
    assert "topic: the leaking roof" in line
    assert "repair it before winter" in line
    assert "open_questions" not in line
    asked = server.history[0].body["messages"]
    assert "user: Good, Monday it is." in asked[-1]["content"]


@pytest.mark.parametrize(
    "reply",
    [
        says("They talked about a roof, and it was lovely."),
        says(json.dumps({**NOTES, "topic": ""})),
        says(json.dumps({**NOTES, "mood": "good"})),
        says(json.dumps(NOTES)[:40], finish_reason="length"),
        says(json.dumps(NOTES), cut=True),
        says(""),
        ChatReply(delay_seconds=3),
        fails(401),
        fails(500),
    ],
)
async def test_whatever_is_wrong_with_them_compression_completes(server, tmp_path, reply):
    server.enqueue(reply, reply)
    line = await summary(server, tmp_path, seconds=0.5 if isinstance(reply, ChatReply) and not reply.pieces else 20.0)
    assert line.startswith("topic: ")
    assert "the leaking roof" not in line


async def test_the_settings_can_keep_the_model_out_of_it(server, tmp_path):
    assert "roof" in await summary(server, tmp_path, SUMMARIES="extracted")
    assert server.calls == 0
