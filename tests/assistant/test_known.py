"""Answers without a model (C1, C3, D1): what is served, what never is, and what becomes of it when a fact changes."""

from contextlib import asynccontextmanager
from datetime import UTC, datetime
from decimal import Decimal

import pytest

from assistant.arithmetic import NoSum, calculate, shown
from assistant.model import ChatModel
from assistant.settings import load_settings
from assistant.talk import open_talk
from assistant.testing import OpenAIServer, say, says, settings_for, stored, words
from memory import Memory
from memory.testing import FakeClock


@pytest.fixture
def server():
    with OpenAIServer() as running:
        yield running


@pytest.fixture
def talking(server, tmp_path):
    @asynccontextmanager
    async def opened(clock=None):
        settings = load_settings(None, settings_for(server), tmp_path).settings
        opening = Memory.open(tmp_path / "me.db", clock=clock or FakeClock(), timezone="Europe/Rome")
        async with opening as memory, ChatModel.open(settings) as model:
            yield await open_talk(memory, model, "repl", "me")

    return opened


def notice(answer):
    return "".join(said.text for said in answer if said.kind == "notice")


# -- from the clock, arithmetic and memory

TIMES = ["What time is it?", "hi, what's the time please?", "¿Qué hora es?", "Che ore sono?", "现在几点了？"]
DATES = ["What day is it today?", "¿A qué fecha estamos?", "Che giorno è oggi?", "今天几号？"]
SUMS = {
    "What is 12 * 7?": "84",
    "how much is 15% of 80?": "12",
    "what's 2.5 times 4": "10",
    "(3 + 4) * 2 =": "14",
    "2 * (3 + 4)": "14",
    "What is 10 divided by 4?": "2.5",
    "¿Cuánto es 12 por 7?": "84",
    "cuánto es 2,5 más 1": "3.5",
    "Quanto fa 100 diviso 8?": "12.5",
    "quanto fa 9 al quadrato": "81",
    "12乘以7等于多少？": "84",
    "100减去58是多少": "42",
}
NO_SUMS = [
    *("What is 9/11?", "What is 24/7?", "what is 2026-11-16", "How much is 1,234 * 2?", "What is 3D printing?"),
    *("10:30", "What is 5?", "7 wonders", "¿Cuánto es 1.234 más 1?", "what is 2+2 in binary?", "3 * 2 apples"),
]


async def test_the_time_and_the_date_come_from_the_clock(server, talking):
    clock = FakeClock(datetime(2026, 11, 16, 8, 5, tzinfo=UTC))
    async with talking(clock) as talk:
        for text in (*TIMES, *DATES):
            assert ("09:05" if text in TIMES else "2026-11-16") in words(await say(talk, text)), text
    assert server.calls == 0


async def test_simple_sums_are_done_without_a_model_and_doubtful_ones_are_not(server, talking):
    async with talking() as talk:
        for text, result in SUMS.items():
            assert words(await say(talk, text)).endswith(f"= {result}"), text
        assert server.calls == 0
        for number, text in enumerate(NO_SUMS, 1):
            await say(talk, text)
            assert server.calls == number, text


def test_arithmetic_needs_no_eval_and_has_bounds():
    assert calculate("2 + 3 * 4 ^ 2 / -8") == Decimal(-4)
    assert shown(calculate("1/3")) == "0.333333333333"
    assert shown(calculate("0.1 + 0.2")) == "0.3"
    assert shown(calculate("√(16) + 50%")) == "4.5"
    bad = ("1/0", "9^9999", "2^-", "__import__('os')", "(1", "1)", "", "(" * 100 + "1", "9" * 300, "1e5", "9^999^999")
    for text in bad:
        with pytest.raises(NoSum):
            calculate(text)


async def test_what_is_known_about_the_user_is_listed_with_dates_in_every_language(server, talking):
    async with talking() as talk:
        await say(talk, "I live in Lyon.")
        calls = server.calls
        for text in ("What do you know about me?", "¿Qué sabés de mí?", "Che cosa sai di me?", "你知道我什么？"):
            said = words(await say(talk, text))
            assert "Lyon" in said and "2026-01-01" in said, text
        assert server.calls == calls


async def test_decisions_are_found_by_their_topic_and_without_one_the_model_is_asked(server, talking):
    async with talking() as talk:
        await say(talk, "I decided to move the deployment to Friday.")
        calls = server.calls
        said = words(await say(talk, "What did I decide about the deployment?"))
        assert "Friday" in said and "2026-01-01" in said and server.calls == calls
        await say(talk, "What did I decide about the kitchen?")
        assert server.calls == calls + 1


async def test_the_last_mention_is_dated_and_quoted_also_when_it_left_the_window(server, talking):
    clock = FakeClock()
    async with talking(clock) as talk:
        await say(talk, "My sister Marta came to dinner with a huge lemon cake.")
        clock.advance(days=3)
        await say(talk, "/new")
        await talk.memory.run_pending()
        calls = server.calls
        said = words(await say(talk, "When did I last mention Marta?"))
        assert "2026-01-01" in said and "lemon cake" in said and server.calls == calls
        await say(talk, "When did I last mention Giovanni?")
        assert server.calls == calls + 1


async def test_commands_say_that_no_model_was_asked(talking):
    async with talking() as talk:
        await say(talk, "What do you know about me?")
        for command in ("/why", "/context", "/stats"):
            (said,) = await say(talk, command)
            assert "no model" in said.text


async def test_asked_twice_in_a_row_the_model_answers(server, talking):
    async with talking() as talk:
        await say(talk, "What do you know about me?")
        await say(talk, "What do you know about me?")
        assert server.calls == 1
        await say(talk, "what is 2 + 2?")
        assert words(await say(talk, "no, really")) == "All right."
        assert server.calls == 2


# -- the same question again


async def test_the_same_question_within_a_day_gets_the_earlier_answer_with_a_notice_kept_nowhere(server, talking):
    """D1."""
    server.enqueue(says("Bake it for forty minutes."), says("Sure."), says("At 180 degrees."))
    clock = FakeClock()
    async with talking(clock) as talk:
        await say(talk, "How do I bake sourdough bread?")
        await say(talk, "Thanks, that helps a lot.")
        clock.advance(hours=3)
        again = await say(talk, "How can I bake sourdough bread?")
        assert words(again) == "Bake it for forty minutes." and "2026-01-01" in notice(again)
        assert server.calls == 2
        await say(talk, "And what about rye?")
        assert "asked this before" not in str(server.history[-1].body)
        assert words(await say(talk, "How can I bake sourdough bread?")) == "All right."  # asked once more
        assert server.calls == 4


async def test_after_a_day_the_model_is_asked(server, talking):
    clock = FakeClock()
    async with talking(clock) as talk:
        await say(talk, "How do I bake sourdough bread?")
        clock.advance(hours=25)
        await talk.memory.run_pending()
        await say(talk, "How do I bake sourdough bread?")
        assert server.calls == 2


async def test_retry_reaches_the_model_and_a_rejected_answer_is_never_served_again(server, talking):
    server.enqueue(says("The wrong one."), says("The wrong one."), says("The right one."))
    async with talking() as talk:
        await say(talk, "Who painted the Mona Lisa?")
        assert words(await say(talk, "/retry")) == "The wrong one."  # the model insists: it is not kept
        assert words(await say(talk, "Who painted the Mona Lisa?")) == "The right one."
        assert words(await say(talk, "Who painted the Mona Lisa?")) == "The right one."
        assert server.calls == 3
        await say(talk, "That's wrong.")
        await say(talk, "Who painted the Mona Lisa?")
        assert server.calls == 5


async def test_a_thumb_down_rejects_an_answer_too(server, talking):
    async with talking() as talk:
        await say(talk, "Who painted the Mona Lisa?")
        await talk.memory.react(talk.turn.id, -1)
        await say(talk, "Who painted the Mona Lisa?")
        assert server.calls == 2


NEVER = [
    *("What is the weather like in Lyon?", "How do I calm down when I am so sad?", "What should I eat today?"),
    *("Can you send Ana an email?", "What did he say about the house?", "And in winter?", "Who won the match?"),
    *("Can you tell me a joke about cats?", "¿Qué tiempo hace en Madrid ahora?", "¿Cómo lo arreglo?"),
    *("Che notizie ci sono?", "今天天气怎么样？", "你能帮我写一封信吗？"),
]


async def test_what_depends_on_time_feeling_acts_or_context_is_never_served(server, talking):
    """C3."""
    async with talking() as talk:
        for number, text in enumerate(NEVER, 1):
            await say(talk, text)
            await say(talk, text)
            assert server.calls == 2 * number, text


# -- facts


async def test_a_changed_fact_takes_its_answers_along_also_across_a_restart(server, talking):
    """C1, with a server that counts."""
    question = "Is the town where I live by the sea?"
    clock = FakeClock()
    async with talking(clock) as talk:
        await say(talk, "I live in Lyon.")
        await say(talk, question)
        await say(talk, "/new")
        await say(talk, question)
        assert server.calls == 2  # served
    for change in ("I moved to Rome.", "/undo f2", "/remember I live in Oslo"):
        async with talking(clock) as talk:
            await say(talk, question)  # reaches the model: it was served, or is gone
            calls = server.calls
            await say(talk, change)
        async with talking(clock) as talk:
            calls = server.calls
            await say(talk, question)
            assert server.calls == calls + 1, change


async def test_an_answer_survives_what_has_nothing_to_do_with_it(server, talking):
    async with talking() as talk:
        await say(talk, "I live in Lyon.")
        await say(talk, "Is the town where I live by the sea?")
        await say(talk, "My favourite colour is green.")
        calls = server.calls
        assert notice(await say(talk, "Is the town where I live by the sea?")) and server.calls == calls


async def test_a_new_fact_that_belongs_to_the_question_or_words_said_since_make_the_model_answer(server, talking):
    async with talking() as talk:
        await say(talk, "Is the town where I live by the sea?")
        await say(talk, "I live in Lyon.")
        calls = server.calls
        await say(talk, "Is the town where I live by the sea?")
        assert server.calls == calls + 1
        await say(talk, "What did Ana bring to the picnic?")
        await say(talk, "Ana brought olives to the picnic, by the way.")
        calls = server.calls
        await say(talk, "What did Ana bring to the picnic?")
        assert server.calls == calls + 1


async def test_forgetting_empties_the_cache(server, talking, tmp_path):
    """F11."""
    server.enqueue(says("Nice."), says("You live in Zebraquartz."))
    async with talking() as talk:
        await say(talk, "I live in Zebraquartz.")
        await say(talk, "Is the town where I live by the sea?")
        await say(talk, "/forget f1")
        await say(talk, "/forget f1")
    assert b"ebraquartz" not in stored(tmp_path)


OF_ME = {
    "en": [
        ("We live in Lisbon, up in Graça.", "Where do I live?", "Lisbon"),
        ("My name is Nora.", "What's my name?", "Nora"),
        ("My birthday is on May 3.", "When is my birthday?", "May 3"),
        ("I have two cats.", "How many cats do I have?", "two"),
        ("My favourite colour is green.", "What is my favourite colour?", "green"),
    ],
    "es": [
        ("Yo vivo en Madrid desde siempre.", "¿Dónde vivo?", "Madrid"),
        ("Me llamo Nora, por cierto.", "¿Cómo me llamo?", "Nora"),
        ("Mi cumpleaños es el 3 de mayo.", "¿Cuándo es mi cumpleaños?", "3 de mayo"),
        ("Tengo dos gatos en casa.", "¿Cuántos gatos tengo?", "dos"),
    ],
    "it": [
        ("Il mio compleanno è il 3 maggio.", "Quando è il mio compleanno?", "3 maggio"),
        ("Io abito a Roma con mia sorella.", "Dove abito?", "Roma"),
        ("Io mi chiamo Nora.", "Come mi chiamo?", "Nora"),
        ("Ho due gatti in casa.", "Quanti gatti ho?", "due"),
    ],
    "zh": [
        ("我住在上海", "我住在哪里？", "上海"),
        ("我叫诺拉", "我叫什么名字？", "诺拉"),
        ("我的生日是5月3日", "我的生日是哪天？", "5月3日"),
        ("我有两只猫", "我有几只猫？", "两"),
    ],
}


@pytest.mark.parametrize("language", sorted(OF_ME))
async def test_what_one_fact_says_of_the_user_is_told_with_its_words_and_day(server, talking, language):
    """Section 2: plainly asked, and exactly one current fact says it: no model. In doubt the model."""
    async with talking() as talk:
        for told, _, _ in OF_ME[language]:
            await say(talk, told)
        asked = server.calls
        for _, question, value in OF_ME[language]:
            answer = words(await say(talk, question))
            assert value in answer and f"{talk.memory.now():%Y-%m-%d}" in answer, (question, answer)
        assert server.calls == asked


async def test_what_no_fact_or_no_one_fact_says_is_asked_of_the_model(server, talking):
    async with talking() as talk:
        for told in ("I live near the sea.", "My brother lives in Rome.", "I was born in Oslo.", "I have two cats."):
            await say(talk, told)
        asked = server.calls
        for question in ("Where do I live?", "When is my birthday?", "What's my name?", "How many dogs do I have?"):
            await say(talk, question)
        assert server.calls == asked + 4


async def test_the_old_value_is_no_part_of_what_is_told(talking):
    """F7: an aside about having said it otherwise is no part of the fact."""
    async with talking() as talk:
        await say(talk, "We live in Lisbon.")
        await say(talk, "Small confession: we actually moved to Porto three weeks ago, I said Lisbon out of habit.")
        for question in ("where do I live?", "what do you know about me?"):
            answer = words(await say(talk, question))
            assert "Porto" in answer and "Lisbon" not in answer
