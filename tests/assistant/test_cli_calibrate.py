"""``olvido calibrate`` and ``olvido reembed``, with the embedded embedder and with a server on loopback."""

import asyncio
import json
import os

import pytest
from typer.testing import CliRunner

from assistant.cli import app
from assistant.testing import OpenAIServer, Reply
from memory import Memory

FILE = "data/people/me.db"


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    for name in [*os.environ]:
        if name.startswith(("OLVIDO_", "OPENAI_", "XDG_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def server(monkeypatch):
    """A server that embeds, configured."""
    with OpenAIServer() as running:
        monkeypatch.setenv("OLVIDO_EMBEDDINGS__PROVIDER", "openai")
        monkeypatch.setenv("OLVIDO_EMBEDDINGS__BASE_URL", running.base_url)
        monkeypatch.setenv("OLVIDO_EMBEDDINGS__MODEL", "tiny")
        yield running


def run(*arguments: str):
    return CliRunner().invoke(app, arguments)


def out(*arguments: str) -> str:
    done = run(*arguments)
    assert done.exit_code == 0, done.output
    return done.stdout


def remember(*texts: str) -> None:
    async def store() -> None:
        async with Memory.open(FILE) as memory:
            for text in texts:
                await memory.facts.add(text)

    asyncio.run(store())


def model_in_force() -> str:
    async def ask() -> str:
        async with Memory.open(FILE) as memory:
            return await memory.index.model()

    return asyncio.run(ask())


def test_calibrate_shows_model_date_cuts_and_shares_beside_raw_cosine():
    shown = json.loads(out("calibrate", "--json"))
    assert shown["model"].startswith("wordllama")
    assert set(shown["cuts"]) == {"*", "en", "es", "it", "zh"}
    for cut in shown["cuts"].values():
        assert -1 < cut["unrelated"] < cut["low"] < cut["high"] < 1
    overall = shown["shares"][0]
    assert overall["language"] == "*"
    assert overall["same_calibrated"] > 0.6
    assert overall["same_raw"] < 0.2
    assert overall["unrelated_calibrated"] >= 0.6
    table = out("calibrate")
    assert "same above 0.85\tby raw cosine\tunrelated below 0.4\tby raw cosine" in table
    assert shown["model"] in table


def test_calibrate_keeps_what_was_fitted_until_it_is_redone():
    first = json.loads(out("calibrate", "--json"))
    assert json.loads(out("calibrate", "--json"))["fitted_at"] == first["fitted_at"]
    again = json.loads(out("calibrate", "--redo", "--json"))
    assert again["fitted_at"] > first["fitted_at"]
    assert again["cuts"] == first["cuts"]


def test_reembed_has_nothing_to_do_when_all_is_up_to_date():
    assert "nothing to do" in out("reembed")
    remember("I like tea")
    assert "nothing to do" in out("reembed")
    assert json.loads(out("reembed", "--json"))["reembedded"] == 0


def test_another_model_embeds_everything_anew_and_is_calibrated(server):
    remember("I like tea", "I live in Lyon")
    assert model_in_force().startswith("wordllama")
    assert "2 texts were embedded with 127.0.0.1" in out("reembed")
    assert "nothing to do" in out("reembed")
    shown = json.loads(out("calibrate", "--json"))
    assert shown["model"].endswith("/tiny")
    assert server.history


def test_a_server_that_fails_leaves_the_old_vectors_in_force_and_it_goes_on_later(server):
    remember("I like tea")
    server.enqueue(Reply(status=401, body={}))
    done = run("reembed")
    assert done.exit_code == 1
    assert "Correct embeddings.api_key" in done.stderr
    assert model_in_force().startswith("wordllama")
    assert "1 texts were embedded" in out("reembed")


def test_calibrate_tells_when_the_model_in_force_is_not_configured_any_more(server, monkeypatch):
    remember("I like tea")
    out("reembed")
    monkeypatch.setenv("OLVIDO_EMBEDDINGS__MODEL", "other")
    done = run("calibrate")
    assert done.exit_code == 1
    assert "olvido reembed" in done.stderr
    assert "Traceback" not in done.output
    assert server.history
