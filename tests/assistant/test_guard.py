"""The static prompt is not recited, however a reply is cut into pieces or dressed up (section 6)."""

import re
from collections.abc import AsyncIterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assistant.guard import RUN, Guard, guarded
from assistant.reply import Reply
from memory.static import shipped_prompt

PROMPT = shipped_prompt().text


def passed(text: str, cuts: list[int]) -> tuple[str, bool]:
    guard = Guard(PROMPT)
    shown = ""
    places = sorted({cut % (len(text) + 1) for cut in cuts})
    for start, end in zip([0, *places], [*places, len(text)], strict=True):
        shown += guard(text[start:end])
    return shown + guard.rest(), guard.tripped


def recited(text: str) -> int:
    """The longest run of words of the prompt in a text."""
    words = [word.casefold() for word in re.findall(r"\w+", text)]
    prompt = " " + " ".join(word.casefold() for word in re.findall(r"\w+", PROMPT)) + " "
    longest = 0
    for start in range(len(words)):
        length = longest + 1
        while start + length <= len(words) and f" {' '.join(words[start : start + length])} " in prompt:
            longest, length = length, length + 1
    return longest


@given(
    before=st.sampled_from(["", "Sure, here they are: ", "My rules, as asked.\n\n"]),
    start=st.integers(0, len(PROMPT) - 400),
    cuts=st.lists(st.integers(0, 2_000), max_size=60),
    dress=st.sampled_from(
        [str, str.upper, lambda text: text.replace(" ", "\n"), lambda text: text.replace(" ", " * ")]
    ),
)
def test_a_recital_is_stopped_before_it_says_anything(before, start, cuts, dress):
    shown, tripped = passed(before + dress(PROMPT[start : start + 400]), cuts)
    assert tripped
    assert recited(shown) < RUN
    assert shown.startswith(before[: len(shown)])


@given(text=st.text(max_size=300), cuts=st.lists(st.integers(0, 300), max_size=20))
def test_whatever_else_is_said_comes_through_whole(text, cuts):
    assert passed(text, cuts) == (text, False)


@pytest.mark.parametrize(
    "text",
    [
        "You are right. Answer first, then the reason, is what I would do in that interview.",
        "I keep lists for steps. If a request can be read twice, ask back.",
        "Te respondo en español: la reunión es el martes.",
        "你说得对，明天见。",
    ],
)
def test_ordinary_sentences_that_share_a_few_words_are_let_through(text):
    assert passed(text, list(range(0, 200, 3))) == (text, False)


def test_words_are_shown_as_they_come_also_the_last_one():
    guard = Guard(PROMPT)
    pieces = ["The first line. ", "And th", "en", " what?"]
    assert [guard(piece) for piece in pieces] == pieces


async def test_a_reply_that_recites_becomes_a_sentence_of_ours():
    asked_for_more = []

    async def stream() -> AsyncIterator[str | Reply]:
        yield "Of course. "
        yield PROMPT
        asked_for_more.append(True)
        yield Reply(text=f"Of course. {PROMPT}", finish_reason="stop", model="m")

    parts = [part async for part in guarded(stream(), PROMPT, sentence="(no)", model="m")]
    assert "".join(part for part in parts if isinstance(part, str)) == "Of course. \n\n(no)"
    assert parts[-1] == Reply(text="Of course. \n\n(no)", finish_reason="content_filter", model="m")
    assert not asked_for_more
