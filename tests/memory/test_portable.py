"""Export and import: both formats are lossless, errors name the place, nothing forgotten comes back."""

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory import Memory
from memory.errors import Refused
from memory.language import well_formed
from memory.portable import DOMAINS, FORMATS, read, write
from memory.testing import FakeClock, HashEmbedder
from memory.values import Fact

START = datetime(2026, 1, 1, 12, tzinfo=UTC)


def fact(number: int, text: str, **changes: object) -> Fact:
    plain = Fact(
        id=f"f{number}",
        domain="personal",
        fact=text,
        confidence="high",
        created_at=START,
        last_confirmed_at=START,
        source="explicit",
        quote=text,
        turn_id=None,
        language="en",
        status="current",
        superseded_by=None,
        pinned=False,
        kind="statement",
        attribute="",
        key="",
        value="",
        single=False,
        polarity=0,
    )
    return replace(plain, **changes)  # type: ignore[arg-type]


MARKDOWN = [
    "- ",
    "* ",
    "\n",
    "`",
    "_",
    "**",
    "[x](y)",
    "{",
    "}",
    "<!--",
    "-->",
    "&#10;",
    "&amp;",
    "\\",
    "\\n",
    "#",
    "id=f1",
]
WORDS = st.lists(st.one_of(st.text(max_size=8), st.sampled_from(MARKDOWN)), max_size=8).map("".join)
TEXTS = WORDS.filter(lambda text: bool(text.strip()))
MOMENTS = st.datetimes(datetime(1990, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001 (made aware)


@st.composite
def facts_with_chains(draw: st.DrawFn) -> list[Fact]:
    numbers = sorted(draw(st.sets(st.integers(1, 999_999_999), max_size=5)))
    found: list[Fact] = []
    for place, number in enumerate(numbers):
        later = numbers[place + 1 :]
        successor = draw(st.sampled_from([None, *later])) if later else None
        found.append(
            fact(
                number,
                draw(TEXTS),
                domain=draw(st.sampled_from(DOMAINS)),
                confidence=draw(st.sampled_from(["high", "medium", "low"])),
                created_at=draw(MOMENTS),
                last_confirmed_at=draw(MOMENTS),
                source=draw(st.sampled_from(["explicit", "inferred"])),
                quote=draw(WORDS),
                language=draw(st.sampled_from(["en", "es", "zh", "pt-BR"])),
                status="superseded" if successor else "current",
                superseded_by=f"f{successor}" if successor else None,
                pinned=draw(st.booleans()),
                kind=draw(st.sampled_from(["statement", "instruction", "decision", "declaration", "change"])),
                attribute=draw(WORDS),
                key=draw(WORDS),
                value=draw(WORDS),
                single=draw(st.booleans()),
                polarity=draw(st.sampled_from([-1, 0, 1])),
            )
        )
    return found


# Round trips


@pytest.mark.parametrize("form", FORMATS)
@given(facts=facts_with_chains())
@settings(deadline=None, max_examples=60)
def test_every_field_survives_whatever_the_words_are(form, facts):
    text = write(facts, form)
    assert sorted((item.fact for item in read(text, form)), key=lambda each: int(each.id[1:])) == facts
    assert all(ord(char) >= 32 or char == "\n" for char in text)


@pytest.mark.parametrize("form", FORMATS)
@given(facts=facts_with_chains())
@settings(deadline=None, max_examples=8)
def test_export_import_into_an_empty_memory_and_export_gives_the_same_bytes(form, facts):
    stored = [
        replace(each, **{name: well_formed(getattr(each, name)) for name in ("fact", "quote", "value")})
        for each in facts
        if well_formed(each.fact).strip()
    ]
    ids = {each.id for each in stored}
    stored = [each for each in stored if each.superseded_by is None or each.superseded_by in ids]
    ids = {each.id for each in stored}
    text = write([each for each in stored if each.superseded_by is None or each.superseded_by in ids], form)
    try:
        read(text, form)
    except Refused:  # the filtering above cut a longer chain
        return

    async def through(first: str, second: str) -> tuple[str, str]:
        async with (
            Memory.open(first, embedder=HashEmbedder()) as one,
            Memory.open(second, embedder=HashEmbedder()) as two,
        ):
            await one.facts.import_(text, form)
            out = await one.facts.export(form)
            await two.facts.import_(out, form)
            return out, await two.facts.export(form)

    with TemporaryDirectory() as folder:
        out, again = asyncio.run(through(f"{folder}/a.db", f"{folder}/b.db"))
    assert out == text
    assert again == text


def test_markdown_is_grouped_by_domain_and_reads_well():
    text = write([fact(1, "I like *tea*", domain="preferences"), fact(2, "I live in Lyon", pinned=True)], "markdown")
    assert text.endswith(
        "## preferences\n\n- I like \\*tea\\*\n"
        "  `id=f1 confidence=high created_at=2026-01-01T12:00:00+00:00 language=en`\n"
        "\n## personal\n\n- I live in Lyon\n"
        "  `id=f2 confidence=high created_at=2026-01-01T12:00:00+00:00 language=en pinned=true`\n"
    )


# Errors


VALID = json.loads(write([fact(1, "I live in Lyon")], "json"))["facts"][0]


def as_json(*changed: dict[str, object]) -> str:
    return json.dumps({"format": "olvido-facts", "version": 1, "facts": [{**VALID, **change} for change in changed]})


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("{", "line 1, column 2"),
        ("[]", "needs the fields"),
        ('{"format": "olvido-facts", "version": 2, "facts": []}', "field version"),
        ('{"format": "olvido-facts", "version": 1, "facts": [7]}', "fact 1: this is not a table"),
        ("[" * 100_000, "not usable JSON"),
        (as_json({}, {"id": "f2", "domain": "food"}), "fact 2 (f2): field domain: use one of 'work'"),
        (as_json({"fact": " "}), "field fact"),
        (as_json({"fact": "x" * 2001}), "field fact"),
        (as_json({"fact": "\ud800"}), "field fact"),
        (as_json({"id": "12"}), "field id"),
        (as_json({"id": "f1234567890"}), "field id"),
        (as_json({}, {}), "field id: f1 is used at fact 1"),
        (as_json({"created_at": "2026-01-01"}), "field created_at: use a date with its time zone"),
        (as_json({"last_confirmed_at": "9999-12-31T00:00:00+00:00"}), "field last_confirmed_at"),
        (as_json({"pinned": "yes"}), "field pinned: use true or false"),
        (as_json({"polarity": 2}), "field polarity"),
        (as_json({"color": "red"}), "field color: there is no such field"),
        (as_json({"superseded_by": "f2"}), "superseded_by names another fact"),
        (as_json({"status": "superseded", "superseded_by": "f2"}), "field superseded_by: f2 is not in this file"),
        (
            as_json(
                {"status": "superseded", "superseded_by": "f2"},
                {"id": "f2", "status": "superseded", "superseded_by": "f1"},
            ),
            "circular",
        ),
    ],
)
def test_json_that_cannot_be_used_is_refused_with_its_place_and_field(text, told):
    with pytest.raises(Refused) as caught:
        read(text, "json")
    assert told in str(caught.value)
    assert str(caught.value).endswith("Nothing was imported.")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("## food", "line 1: a heading names a domain"),
        ("## work\n- x\n  `id=f1`", "line 2: field confidence: it is missing"),
        ('## work\n- x\n  `id=f1 quote="open`', "line 3: the fields cannot be read"),
        ("## work\n- x\n  `id=f1 pinned=maybe`", "line 3: field pinned"),
        ("- x\n  `id=f1 confidence=high`", "line 1: this fact stands below no heading"),
        ("## work\n\nsome words", "line 3: this is no bullet"),
    ],
)
def test_markdown_that_cannot_be_used_is_refused_with_its_line(text, told):
    with pytest.raises(Refused, match=told):
        read(text, "markdown")


def test_markdown_by_hand_takes_any_bullet_windows_lines_and_wrapped_words():
    lines = [
        "\ufeffMy list",
        "",
        "* I like tea",
        "## Work",
        "+ I write",
        "  code\\_x all day &#38; night",
        "  - C:\\new `x`",
    ]
    text = "\r\n".join(lines)
    found = [(item.text, item.domain, item.fact) for item in read(text, "markdown")]
    assert found == [
        ("I like tea", None, None),
        ("I write code_x all day & night", "work", None),
        ("C:\\new `x`", "work", None),
    ]


# Into a memory


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock(START)


@pytest.fixture
async def memory(tmp_path: Path, clock: FakeClock) -> AsyncIterator[Memory]:
    async with Memory.open(tmp_path / "me.db", clock=clock, embedder=HashEmbedder()) as opened:
        yield opened


async def texts(memory: Memory, state: str | None = "active") -> list[str]:
    return sorted(each.fact for each in await memory.facts.list(state))  # type: ignore[arg-type]


async def test_a_bullet_without_fields_becomes_a_new_fact_of_its_heading(memory):
    done = await memory.facts.import_("- I live in Lyon\n## work\n- I moved to the night shift", "markdown")
    first, second = done.facts
    assert (first.id, first.domain, first.attribute, first.quote) == ("f1", "personal", "home", "I live in Lyon")
    assert (second.domain, second.created_at, second.source) == ("work", START, "explicit")


async def test_a_credential_in_a_bullet_is_refused_and_nothing_is_stored(memory):
    with pytest.raises(Refused, match="line 2: This looks like a credential"):
        await memory.facts.import_("- I like tea\n- my password is hunter2222", "markdown")
    assert await texts(memory, None) == []


async def test_imported_facts_are_found_by_words_and_by_meaning_and_stand_in_the_history(memory):
    await memory.facts.import_(write([fact(7, "My dog is called Rex")], "json"), "json")
    assert [hit.ref for hit in await memory.index.by_words("dog", "en", ["fact"], 5)] == ["f7"]
    vector = await memory.index.query_vector("My dog is called Rex")
    assert (await memory.index.by_meaning(vector, ["fact"], 5))[0].score == pytest.approx(1.0, abs=1e-5)
    assert [(event.id, event.action) for event in await memory.facts.history()] == [("f7", "imported")]


async def test_what_is_known_is_skipped_even_when_it_was_confirmed_or_replaced_since(memory, clock):
    await memory.facts.add("I live in Lyon")
    await memory.facts.add("I like tea")
    before = await memory.facts.export("json")
    clock.advance(days=1)
    await memory.facts.confirm("f2")
    await memory.facts.add("I moved to Paris")
    after = await memory.facts.export("json")
    done = await memory.facts.import_(before, "json")
    assert (done.facts, done.known) == ((), 2)
    assert await memory.facts.export("json") == after


async def test_a_taken_id_is_replaced_and_the_chain_follows(memory):
    await memory.facts.add("I like tea")
    chain = [
        fact(1, "I use Slack", status="superseded", superseded_by="f2"),
        fact(2, "I use Teams"),
    ]
    done = await memory.facts.import_(write(chain, "json"), "json")
    assert done.renamed == (("f1", "f3"),)
    assert [each.id for each in await memory.facts.chain("f2")] == ["f2", "f3"]
    assert (await memory.facts.get("f3")).superseded_by == "f2"


async def test_an_id_that_was_forgotten_is_not_given_to_another_fact(memory):
    await memory.facts.add("I like tea")
    await memory.facts.forget("f1")
    done = await memory.facts.import_(write([fact(1, "I use Teams")], "json"), "json")
    assert done.renamed == (("f1", "f2"),)


@pytest.mark.parametrize("form", FORMATS)
async def test_what_was_forgotten_does_not_come_back_in_any_of_its_wordings(memory, form):
    await memory.facts.add("My dog is called Rex")
    first = await memory.facts.export(form)
    await memory.facts.edit("f1", "My dog is called Max")
    second = await memory.facts.export(form)
    await memory.facts.forget("f1")
    for text in (first, second):
        done = await memory.facts.import_(text, form)
        assert (done.facts, done.forgotten) == ((), 1)
    done = await memory.facts.import_("- my dog is called REX", "markdown")
    assert done.forgotten == 1
    assert await texts(memory, None) == []


async def test_of_two_homes_the_one_confirmed_last_stays_current(memory):
    await memory.facts.add("I live in Lyon")
    home = {"attribute": "home", "single": True}
    older = fact(5, "I live in Rome", value="rome", last_confirmed_at=START - timedelta(days=1), **home)
    done = await memory.facts.import_(write([older], "json"), "json")
    assert (done.facts[0].status, done.facts[0].superseded_by) == ("superseded", "f1")
    newer = fact(6, "I live in Oslo", value="oslo", last_confirmed_at=START + timedelta(days=1), **home)
    done = await memory.facts.import_(write([newer], "json"), "json")
    assert [each.id for each in done.superseded] == ["f1"]
    assert await texts(memory) == ["I live in Oslo"]
    await memory.facts.undo()
    assert await texts(memory) == ["I live in Lyon"]


async def test_one_undo_takes_back_a_whole_import_and_it_can_be_imported_again_under_the_same_ids(memory):
    text = write([fact(3, "I use Slack", status="superseded", superseded_by="f4"), fact(4, "I use Teams")], "json")
    await memory.facts.import_(text, "json")
    await memory.facts.undo()
    assert await texts(memory, None) == []
    assert (await memory.facts.import_(text, "json")).renamed == ()
    assert await memory.facts.export("json") == text
    assert await memory.index.by_words("Teams", "en", ["fact"], 5)


async def test_an_import_that_cannot_be_embedded_is_stored_and_embedded_later(tmp_path):
    embedder = HashEmbedder()
    async with Memory.open(tmp_path / "me.db", embedder=embedder) as memory:
        embedder.fails = True
        await memory.facts.import_(write([fact(1, "I like tea")], "json"), "json")
        assert await texts(memory, None) == ["I like tea"]
        embedder.fails = False
        assert await memory.index.needs_reembedding()
        assert await memory.reembed() == 1


async def test_the_turn_is_the_one_thing_that_stays_behind(memory):
    session = await memory.open_session()
    await memory.add_turn(session.id, role="user", content="I live in Lyon.")
    assert (await memory.facts.get("f1")).turn_id is not None
    assert "turn_id" not in await memory.facts.export("json")
