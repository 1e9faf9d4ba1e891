"""The programs in examples/ do what they say."""

from importlib import util
from pathlib import Path
from types import ModuleType

import pytest
from openai import AsyncOpenAI

from assistant.testing import OpenAIServer, says
from memory import Memory

EXAMPLES = Path(__file__).parents[2] / "examples"


def example(name: str) -> ModuleType:
    spec = util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_there_are_three_and_each_is_tried_here() -> None:
    there = {file.stem for file in EXAMPLES.glob("*.py")}
    assert there == {"remember_and_recall", "bounded_chat", "inspect_context"}


async def test_remember_and_recall(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    await example("remember_and_recall").main(tmp_path / "example.db")
    shown = capsys.readouterr().out
    learned, _, rest = shown.partition("known now:")
    known, _, rest = rest.partition("What did the repair of the sink cost?")
    sink, _, bicycle = rest.partition("Where is the bicycle of Marta?")
    assert "I live in Lyon" in learned
    assert "Rome" in known and "Lyon" not in known
    assert "85 euros" in sink
    assert "cellar" in bicycle


async def test_bounded_chat(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with OpenAIServer() as server:
        server.default = says("That is good to know.")
        client = AsyncOpenAI(base_url=server.base_url, api_key="any")
        async with Memory.open(tmp_path / "example.db") as memory, client:
            lines = [f"Note {number}: {'the bus was late again. ' * 40}\n" for number in range(12)]
            await example("bounded_chat").chat(memory, client, "m", lines)
    sent = [int(line.split()[0][1:]) for line in capsys.readouterr().out.splitlines() if line.endswith("tokens sent)")]
    assert len(sent) == 12
    assert max(sent) < 4000
    assert all(len(request.body["messages"]) <= 10 for request in server.history)


async def test_inspect_context(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    await example("inspect_context").main(tmp_path / "example.db")
    shown = capsys.readouterr().out
    for section in ("static", "summaries", "window", "facts", "message"):
        assert f"\n{section} " in shown
    assert "vegetarian" in shown
    assert shown.rstrip().endswith("What could I cook for Marta?")
