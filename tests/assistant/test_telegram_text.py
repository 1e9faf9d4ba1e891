"""Long and broken replies: whole, readable, accepted by a strict server; no character of text is lost."""

import json
from random import Random

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from telegram_chats import ANA, world

from assistant.settings import load_settings
from assistant.telegram.api import entities, open_bot
from assistant.telegram.markdown import Rich, lost, render, units
from assistant.telegram.split import MOST_UNITS, split
from assistant.testing import says
from assistant.testing_telegram_checks import checked_entities

BLOCK = """## Chapter {n}

- first **point {n}**
  - nested with `code_{n}` and 👨‍👩‍👧‍👦🇪🇸
    1. deeper, [a link](https://example.org/{n})
- second *point*

| city | number |
|---|---:|
| Lyon {n} | **{n}** |
| 東京 | 3 |

```python
def chapter_{n}():
    return "{code}"
```

> quoted wisdom {n}

Broken **bold, a lone ` tick, [half a link](http://x and List<int> & more_{n}.
"""


async def test_a_reply_of_30000_characters_arrives_whole_and_readable(tmp_path):
    reply = "\n".join(BLOCK.format(n=number, code="x" * 300) for number in range(48))
    assert len(reply) > 30_000
    async with world(tmp_path) as here:
        here.model.enqueue(says(reply))
        async with here.serving() as daemon:
            shown = await here.ask(daemon, "tell me everything")
        texts = [one.text for one in shown]
        assert len(texts) > 5 and all(units(text) <= MOST_UNITS for text in texts)
        urls = " ".join(entity.get("url", "") for one in shown for entity in one.entities)
        assert not lost(reply, Rich(text="\n".join(texts) + urls + "python" * 48))
        assert [text for text in texts if "def chapter_" in text]  # code is code, whole
        for one in shown:
            codes = [entity for entity in one.entities if entity["type"] == "pre"]
            data = one.text.encode("utf-16-le")
            bounds = [(2 * code["offset"], 2 * (code["offset"] + code["length"])) for code in codes]
            whole = [data[first:last].decode("utf-16-le") for first, last in bounds]
            assert all("return" in code for code in whole if "def " in code)
        assert "```" not in "".join(texts) and "**point" not in "".join(texts)


def accepted(messages: list[Rich]) -> None:
    """By the strict server, as it would get them."""
    for message in messages:
        given_ones = [json.loads(json.dumps(entity.to_dict())) for entity in entities(message)]
        checked_entities(message.text, given_ones)


def letters(text: str) -> list[str]:
    return [char for char in text if not char.isspace()]


EMOJI = ["👨‍👩‍👧‍👦", "🇪🇸", "👍🏽", "e\u0301", "x", "中", "🏴\U000e0067\U000e007f", "❤️"]
MARKS = "** * _ __ ~~ ` ``` ```py [ ]( ) ](http://a.b) ![ < > <b> </b> <!-- --> &amp; & # \\ || $ $$ [^1] --- === ' { ~"
LINES = ["> ", "# ", "- ", "+ ", "1. ", "7) ", "    ", "\t", "[^1]: ", "[x]: http://c.d", "- [x] ", "- [ ] ", "2024. "]
WORDS = [
    "é",
    "中文",
    "👍",
    "👨‍👩‍👧",
    "🇮🇹",
    "e\u0301",
    "\u200d",
    "word ",
    "http://e.f/g_h ",
    "snake_case_name",
    "x<y ",
    "| a | b |",
    "**a `b` c**",
    "[*d* `e`](http://f.g)",
    "> `h` i\n",
]
FRAGMENTS = [*MARKS.split(), *LINES, *WORDS, "\n", "\n\n", "  \n"]
fragments = st.sampled_from(FRAGMENTS)
markdown = st.lists(st.one_of(fragments, fragments, st.text(max_size=8)), max_size=40).map("".join)


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(markdown, st.integers(8, 200))
@example("**a [b](http://c.d) `e", 8)
@example("**use `x` now** and [`y`](http://z.z)", 200)
@example("> a `b`\n> ```\n> c\n> ```", 200)
@example("1999. foo\n2024. bar\n- [x] done", 10)
@example("> > q\n\n```py title\nx\n", 9)
def test_random_markdown_is_accepted_and_loses_no_character(source, most):
    rich = render(source)
    plain = source.encode("utf-8", "replace").decode()
    assert rich.text == plain or not lost(plain, rich)
    for limit in (most, MOST_UNITS):
        messages = split(rich, limit)
        assert all(units(message.text) <= limit for message in messages)
        assert letters("".join(message.text for message in messages)) == letters(rich.text)
        accepted(messages)


async def test_random_markdown_through_the_library_is_never_refused(tmp_path):
    async with world(tmp_path) as here:
        given_settings = load_settings(None, here.environment(), tmp_path).settings.telegram
        async with open_bot(given_settings) as bot:
            for number in range(40):
                chance = Random(number)
                source = "".join(chance.choices(FRAGMENTS, k=chance.randrange(1, 60)))
                for message in split(render(source), most=chance.randrange(50, 500)):
                    await bot.send_message(ANA, message.text, entities=entities(message))
        assert len(here.bot.chat(ANA)) > 40  # and `world` looks whether anything was refused


@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    st.lists(st.sampled_from(EMOJI)),
    st.integers(24, 60),
)
def test_no_emoji_is_ever_cut(parts, most):
    for message in split(Rich(text="".join(parts)), most):
        rest = message.text
        while rest:
            found = next(part for part in sorted(set(parts), key=len, reverse=True) if rest.startswith(part))
            rest = rest.removeprefix(found)


def test_code_that_fits_moves_to_the_next_message_and_code_that_does_not_is_code_in_both():
    short = render("word " * 700 + "\n\n```py\n" + "line = 1\n" * 100 + "```")
    first, second = split(short)
    assert first.spans == () and second.spans[0].type == "pre" and second.spans[0].language == "py"
    assert second.text.startswith("line = 1")
    long = split(render("```py\n" + "    indented = 1\n" * 500 + "```"))
    assert len(long) > 1 and all(message.spans[0].type == "pre" for message in long)
    assert all(message.text.splitlines()[1] == "    indented = 1" for message in long)
    assert long[1].text.startswith("    indented")


def test_many_links_are_cut_where_a_message_can_hold_no_more_and_styles_are_missed_first():
    links = split(render("[a](http://b.c/1) " * 250))
    assert [len(message.spans) for message in links] == [100, 100, 50]
    (mixed,) = split(render("**a** " * 200 + "[a](http://b.c)"))
    assert len(mixed.spans) == 100 and mixed.spans[-1].type == "text_link"


def test_a_list_of_nothing_but_levels_does_not_become_a_thousand_messages():
    assert len(split(render("- " * 3000 + "x"))) < 4


def test_a_reply_is_the_same_whoever_sends_it_again():
    text = "**a** " * 2000
    assert split(render(text)) == split(render(text))
