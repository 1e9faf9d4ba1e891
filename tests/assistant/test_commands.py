"""The /commands of a conversation: their texts in every language, and what they do with what people wrote."""

import re
from pathlib import Path
from textwrap import wrap

import pytest
from wcwidth import wcswidth

from assistant.commands import HANDLERS, plain, unmarked
from assistant.embedded import NOTICE
from assistant.model import ChatModel
from assistant.settings import load_settings
from assistant.talk import Talk, open_talk
from assistant.testing import OpenAIServer
from assistant.turn import take_turn
from memory import Memory
from memory.language import load_packs

PACKS = load_packs()


async def answer(talk: Talk, text: str) -> str:
    return "".join([said.text async for said in take_turn(talk, text) if said.kind == "command"])


@pytest.fixture
async def talk(tmp_path: Path):
    with OpenAIServer() as server:
        environ = {
            "OLVIDO_MODEL__PROVIDER": "custom",
            "OLVIDO_MODEL__BASE_URL": server.base_url,
            "OLVIDO_MODEL__NAME": "m",
        }
        settings = load_settings(None, environ, tmp_path).settings
        async with Memory.open(tmp_path / "me.db") as memory, ChatModel.open(settings) as model:
            yield await open_talk(memory, model, "repl", "me")


@pytest.mark.parametrize("language", sorted(PACKS))
def test_every_pack_has_every_text_with_the_same_names_to_fill_in(language):
    english, pack = PACKS["en"], PACKS[language]
    assert pack.commands.keys() == HANDLERS.keys()
    for ours, theirs in ((english.answers, pack.answers), (english.notices, pack.notices)):
        assert ours.keys() == theirs.keys()
        for key, text in ours.items():
            assert sorted(re.findall(r"{\w+}", theirs[key])) == sorted(re.findall(r"{\w+}", text)), key


@pytest.mark.parametrize("language", sorted(PACKS))
def test_the_first_run_greets_in_five_lines(language):
    """The name, hello, two lines on the model of the demonstration, and the keys, at 80 columns."""
    said = PACKS[language].answers
    lines = ["Olvido", said["welcome"], *wrap(NOTICE, 80), said["keys"]]
    assert len(lines) == 5
    assert max(map(wcswidth, lines)) <= 80


def test_the_spanish_texts_speak_to_everybody():
    pack = PACKS["es"]
    texts = " ".join([*pack.commands.values(), *pack.answers.values(), *pack.notices.values()]).lower()
    assert not re.search(r"\b(vos|hablame|contame|decime|decímelo|usá|escribí|tenés|podés|querés|recordá)\b", texts)


@pytest.mark.parametrize("language", sorted(PACKS))
async def test_every_command_answers_in_every_language(talk, language):
    talk.language, talk.follows = language, False
    async for _ in take_turn(talk, "I live in Lyon."):
        pass
    for command in HANDLERS:
        for argument in ("", "f1", "f99", "{odd} *text*"):
            assert await answer(talk, f"/{command} {argument}") or command == "retry"


@pytest.mark.parametrize("language", sorted(PACKS))
async def test_help_names_every_command_with_what_it_does(talk, language):
    talk.language, talk.follows = language, False
    shown = unmarked(await answer(talk, "/help"))
    for name in HANDLERS:
        assert f"/{name}" in shown
        assert PACKS[language].commands[name] in shown


async def test_a_configured_language_stays_whatever_the_user_writes(talk):
    talk.language, talk.follows = "it", False
    notices = [said.text async for said in take_turn(talk, "I live in Lyon.") if said.kind == "notice"]
    assert notices[0].startswith("Annotato come f1")


async def test_an_id_that_does_not_exist_is_named_and_undo_says_what_is_the_matter(talk):
    assert "f99" in await answer(talk, "/forget f99")
    assert await answer(talk, "/undo") == "There is no change to take back."
    assert await answer(talk, "/undo f99") == "There is no change of f99 to take back. /facts lists what I know."


@pytest.mark.parametrize("text", ["a *b* _c_ `d`", "<b>|x|</b> [l](u)", "# no heading", "back\\slash", "~~s~~"])
def test_markup_of_others_is_shown_and_not_obeyed(text):
    assert unmarked(plain(text)) == text


async def test_the_private_request_is_measured_for_the_model_in_use(talk):
    """B6: what the provider's usage taught holds in a private stretch as well."""
    await talk.memory.calibrate_provider("m", 1000, 1700)
    await answer(talk, "/private")
    async for _ in take_turn(talk, "word " * 200):
        pass
    assert talk.context.provider_tokens > talk.context.tokens * 1.5


@pytest.mark.parametrize("language", ["en", "es", "it", "zh"])
async def test_in_private_nothing_is_remembered_even_when_asked_to(talk, language):
    """The sentence that ends a private stretch says that nothing was stored."""
    talk.language, talk.follows = language, False
    await answer(talk, "/private")
    refused = await answer(talk, "/remember I live in Zebraquartz")
    assert "/private" in refused and "/remember" in refused and "Zebraquartz" not in refused
    await answer(talk, "/private")
    assert await talk.memory.facts.list(None) == []
    assert "f1" in await answer(talk, "/remember I live in Rome")


@pytest.mark.parametrize("language", sorted(PACKS))
async def test_a_credential_is_kept_only_when_the_same_is_asked_for_at_once_again(talk, language):
    """Section 6: secrets are not stored as facts, unless the user insists."""
    talk.language, talk.follows = language, False
    asked = "/remember my wifi password: Tr0ub4dor&3xyz"
    for between in ("/facts", "hello there"):
        assert "/remember" in await answer(talk, asked)
        await answer(talk, between)
    assert "/remember" in await answer(talk, asked)
    assert not await talk.memory.facts.list()
    assert "f1" in await answer(talk, asked)
    (fact,) = await talk.memory.facts.list()
    assert "Tr0ub4dor" in fact.fact
