"""Topic shift (T1, T2): when a turn opens a new topic, what that does to the window, and what it never does."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

import pytest

from memory import Memory
from memory.language import load_packs
from memory.limits import Limits
from memory.stores import turns as turn_rows
from memory.testing import HashEmbedder
from memory.topics import domain_changed, is_explicit
from memory.values import Turn

OpenMemory = Callable[..., AbstractAsyncContextManager[Memory]]

CHANGES = {
    "en": (
        "Changing the subject: where can I buy shoes?",
        "On another note, my sister is coming.",
        "Let's talk about something else.",
        "I wanted to ask you about the garden.",
        "Leaving that aside, how is the weather?",
    ),
    "es": (
        "Otra cosa: ¿dónde compro zapatos?",
        "Cambiando de tema, viene mi hermana.",
        "Cambiemos de tema, por favor.",
        "Te quería preguntar sobre el jardín.",
        "Dejando eso de lado, ¿cómo está el tiempo?",
    ),
    "it": (
        "Cambiando argomento, dove compro le scarpe?",
        "Un'altra cosa: arriva mia sorella.",
        "Cambiamo discorso.",
        "Volevo chiederti del giardino.",
        "Lasciando da parte questo, che tempo fa?",
    ),
    "zh": (
        "换个话题，哪里可以买鞋？",
        "还有一件事，我妹妹要来。",
        "我们聊点别的吧。",
        "对了，我想问你关于花园的事。",
        "先不说这个，天气怎么样？",
    ),
}
STAYS = {
    "en": ("I put the other thing in the box.", "He changed the tyres of the car."),
    "es": ("Compré otras cosas para el baño nuevo.", "Cambié las ruedas del coche."),
    "it": ("Ho cambiato le gomme della macchina.", "Il signore dell'altro piano arriva domani."),
    "zh": ("我把车的轮胎换了。", "妹妹明天来我家。"),
}
QUESTIONS = {
    "en": ("I want to paint the kitchen.", "Good idea. Which colour do you have in mind?", "Something like olive."),
    "es": ("Quiero pintar la cocina.", "Buena idea. ¿En qué color pensaste?", "Verde oliva."),
    "it": ("Voglio dipingere la cucina.", "Buona idea. A che colore pensavi?", "Verde oliva."),
    "zh": ("我想把厨房重新刷一遍。", "好主意。你想要什么颜色？", "橄榄绿吧。"),
}


def shipped(sentences: dict[str, tuple[str, ...]]) -> list[tuple[str, str]]:
    return [(code, text) for code, texts in sentences.items() if code in load_packs() for text in texts]


def test_every_shipped_pack_is_tried_here() -> None:
    assert set(load_packs()) <= set(CHANGES)


@pytest.mark.parametrize(("language", "text"), shipped(CHANGES))
def test_t1_a_user_who_says_so_changes_the_subject(language: str, text: str) -> None:
    assert is_explicit(text, load_packs()[language])
    assert is_explicit(text.upper(), load_packs()[language])


@pytest.mark.parametrize(("language", "text"), shipped(STAYS))
def test_t1_sentences_that_only_look_alike_do_not(language: str, text: str) -> None:
    assert not is_explicit(text, load_packs()[language])


async def talk(memory: Memory, session_id: int, *contents: str) -> list[Turn]:
    roles = ("user", "assistant")
    return [
        await memory.add_turn(session_id, roles[number % 2], content)  # type: ignore[arg-type]
        for number, content in enumerate(contents)
    ]


async def test_the_first_turn_has_no_continuity_and_is_no_shift(open_memory: OpenMemory) -> None:
    async with open_memory() as memory:
        for first in ("Changing the subject: where can I buy shoes?", "Hello."):
            session = await memory.open_session()
            (turn,) = await talk(memory, session.id, first)
            assert turn.semantic_continuity is None
            assert turn.topic_shift is False


@pytest.mark.parametrize("language", [code for code in CHANGES if code in load_packs()])
async def test_t2_an_explicit_change_is_flagged_and_flushes_the_window(open_memory: OpenMemory, language: str) -> None:
    async with open_memory() as memory:
        session = await memory.open_session(language=language)
        opening, question, answer = QUESTIONS[language]
        await talk(memory, session.id, opening, question, answer, "👍")
        turn = await memory.add_turn(session.id, "user", CHANGES[language][1])
        assert turn.topic_shift
        assert [each.content for each in await turn_rows.window(memory.database, session.id)] == [turn.content]
        await memory.run_pending()
        context = await memory.assemble(session.id)
        assert context.sections["summaries"].items, "what was flushed is there as summaries"


async def test_t2_the_flush_leaves_the_assistants_last_question_with_the_turn_after_it(
    open_memory: OpenMemory,
) -> None:
    async with open_memory() as memory:
        session = await memory.open_session()
        question = "Noted. And which colour for the doors?"
        await talk(memory, session.id, "I want to paint the kitchen.", question)
        await memory.add_turn(session.id, "user", "Changing the subject: where can I buy shoes?")
        assert [turn.content for turn in await turn_rows.window(memory.database, session.id)] == [
            question,
            "Changing the subject: where can I buy shoes?",
        ]
        context = await memory.assemble(session.id)
        assert context.messages[-2] == {"role": "assistant", "content": question}


async def test_an_assistant_that_says_so_flushes_nothing(open_memory: OpenMemory) -> None:
    async with open_memory() as memory:
        session = await memory.open_session()
        await talk(
            memory, session.id, "I want to paint the kitchen.", "Changing the subject: which colour for the doors"
        )
        assert len(await turn_rows.window(memory.database, session.id)) == 2


@pytest.mark.parametrize("language", [code for code in QUESTIONS if code in load_packs()])
async def test_a_reply_to_a_question_is_no_shift(open_memory: OpenMemory, language: str) -> None:
    async with open_memory() as memory:
        session = await memory.open_session(language=language)
        turns = await talk(memory, session.id, *QUESTIONS[language])
        assert not turns[-1].topic_shift


async def test_the_same_words_again_are_no_shift_and_hang_together(open_memory: OpenMemory) -> None:
    async with open_memory() as memory:
        session = await memory.open_session()
        again = await talk(memory, session.id, *["The washing machine stops in the middle of the programme."] * 3)
        assert not any(turn.topic_shift for turn in again)
        assert [turn.semantic_continuity for turn in again] == [None, 1.0, 1.0]


async def test_a_request_from_elsewhere_after_a_closing_is_a_shift_and_keeps_the_window(
    open_memory: OpenMemory,
) -> None:
    """Only an explicit change flushes: a false shift must not lose the thread."""
    async with open_memory() as memory:
        session = await memory.open_session()
        turns = await talk(
            memory,
            session.id,
            "The washing machine stops in the middle of the programme.",
            "Clean the filter behind the flap, then run a rinse.",
            "That worked, thank you!",
            "You are welcome, glad the washing machine runs again.",
            "I need a train from London to Cambridge on Saturday evening, before eight if there is one.",
        )
        assert [turn.topic_shift for turn in turns] == [False, False, False, False, True]
        assert len(await turn_rows.window(memory.database, session.id)) == 5


def test_t1_the_domain_changes_only_when_both_sides_are_clear() -> None:
    from memory.embeddings import EmbeddedEmbedder
    from memory.topics import Said

    pack, limits = load_packs()["en"], Limits()
    work = "My boss wants the client meeting moved to the office."
    home = "My daughter and my sister want a dog for her birthday."

    def said(text: str) -> list[Said]:
        return [Said(text=text, vector=EmbeddedEmbedder().embed_now([text])[0])]

    assert domain_changed(home, said(work), pack, limits)
    assert domain_changed(work, said(home), pack, limits)
    assert not domain_changed(work, said(work), pack, limits)
    assert not domain_changed("The sky is blue.", said(work), pack, limits)
    assert not domain_changed(home, said("The sky is blue."), pack, limits)
    assert not domain_changed(f"{home} My boss knows.", said(work), pack, limits)


async def test_a_model_that_fails_costs_the_continuity_and_never_the_turn(open_memory: OpenMemory) -> None:
    embedder = HashEmbedder()
    async with open_memory(embedder=embedder) as memory:
        await memory.reembed()
        embedder.fails = True
        session = await memory.open_session()
        turns = await talk(memory, session.id, "I want to paint the kitchen.", "Good idea.", "I live in Rome.")
        assert [turn.semantic_continuity for turn in turns] == [None, None, None]
        assert not any(turn.topic_shift for turn in turns)
        assert [fact.fact for fact in turns[-1].learned] == ["I live in Rome"]
        turn = await memory.add_turn(session.id, "user", "Changing the subject: where do I live?")
        assert turn.topic_shift, "words alone still tell"
        assert len(await turn_rows.window(memory.database, session.id)) == 1
        context = await memory.assemble(session.id)
        assert [item.text for item in context.sections["facts"].items] == ["I live in Rome"]
        assert await memory.run_pending() > 0


async def test_a_change_of_the_embedding_model_in_the_middle_of_a_session_is_survived(open_memory: OpenMemory) -> None:
    async with open_memory(embedder=HashEmbedder(dimension=48)) as memory:
        await memory.facts.add("I live in Rome")
        session = await memory.open_session()
        await talk(memory, session.id, "I want to paint the kitchen.", "Good idea, paint it olive.")
        await memory.reembed()
        (turn,) = await talk(memory, session.id, "I want to paint the kitchen.")
        assert turn.semantic_continuity == 1.0
