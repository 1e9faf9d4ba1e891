"""Language packs are files, and the language of a message is told from few words."""

import json
import re
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from memory.errors import LanguagePackError
from memory.language import (
    DOMAINS,
    LanguagePack,
    content_words,
    detect,
    fold,
    load_packs,
    shipped_packs,
    well_formed,
    words_of,
)
from memory.signals import extract

SHORT: dict[str, list[str]] = json.loads(Path(__file__).with_name("short_messages.json").read_text("utf-8"))
CODES = ("en", "es", "it", "zh")
ANY_CHARACTER = st.characters(exclude_categories=())

# enough of Esperanto for a pack of one's own
ESPERANTO = """
code = "eo"
name = "Esperanto"
script = "latin"

[words]
function_words = ["la", "de", "kaj", "mi", "vi", "en", "estas", "tre", "al"]
negations = ["ne"]
greetings = ["saluton"]

[domains]
personal = ["\\\\blogx\\\\w*"]

[facts]
openers = ["nu"]
conjunctions = ["kaj"]

[[facts.rules]]
kind = "declaration"
attribute = "home"
single = true
domain = "personal"
patterns = ["mi logxas en (?P<value>.+)"]

[notices]
saved = "Konservita: {fact}"
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "eo.toml").write_text(ESPERANTO, "utf-8")
    return tmp_path


# --- packs


def test_four_languages_are_shipped() -> None:
    assert set(shipped_packs()) >= set(CODES)


@pytest.mark.parametrize("code", sorted(shipped_packs()))
def test_a_shipped_pack_is_complete_and_all_its_patterns_can_be_used(code: str) -> None:
    pack = shipped_packs()[code]
    assert pack.missing() == []
    pack.check()
    assert pack.code == code == Path(pack.origin).stem


@pytest.mark.parametrize("code", sorted(code for code, pack in shipped_packs().items() if pack.script == "latin"))
def test_the_patterns_of_a_shipped_pack_are_written_for_folded_text(code: str) -> None:
    pack = shipped_packs()[code]
    written = [pattern.pattern for rule in pack.rules for pattern in rule.patterns]
    written += [pattern.pattern for pattern in (pack.openers, pack.conjunctions, *pack.blocks.values())]
    literal = " ".join(re.sub(r"\\u\w{4}|\\U\w{8}|\\.|\(\?P[<=]\w+[>)]|\[[^\]]*\]", "", pattern) for pattern in written)
    dead = {word for word in re.findall(r"\w+", literal) if fold(word) != word}
    assert dead == set(), "these never match: folded text has no capitals and no accents"


@pytest.mark.parametrize("code", sorted(shipped_packs()))
def test_the_notices_of_a_shipped_pack_have_the_same_places_as_the_english_ones(code: str) -> None:
    english, other = shipped_packs()["en"].notices, shipped_packs()[code].notices
    for name, text in english.items():
        assert set(re.findall(r"\{\w+\}", text)) == set(re.findall(r"\{\w+\}", other[name])), name


def test_a_new_language_is_one_file(folder: Path) -> None:
    packs = load_packs(folder)
    assert set(packs) == {*shipped_packs(), "eo"}
    assert detect("saluton, mi estas tre laca", "en", packs) == "eo"
    (draft,) = extract("Nu, mi logxas en Varsovio kaj mi estas tre laca", "eo", packs)
    assert (draft.attribute, draft.value, draft.language) == ("home", "varsovio", "eo")
    assert packs["eo"].domain_words["personal"].search("logxejo")
    assert not packs["eo"].topic_phrases.search("io ajn")
    assert not packs["eo"].insists("ajnokaze")


def test_a_pack_of_ones_own_says_what_it_lacks(folder: Path) -> None:
    lacking = load_packs(folder)["eo"].missing()
    assert {"words.hedges", "notices.due", "topics.phrases", "facts.blocks.question", "domains.work"} <= set(lacking)
    assert "facts.rules of kind signal" in lacking
    assert "words.negations" not in lacking


def test_a_pack_of_ones_own_takes_the_place_of_the_shipped_one(folder: Path) -> None:
    (folder / "en.toml").write_text(ESPERANTO.replace('"eo"', '"en"'), "utf-8")
    assert load_packs(folder)["en"].name == "Esperanto"
    assert shipped_packs()["en"].name == "English"


def test_a_folder_that_is_not_there_means_the_shipped_packs(tmp_path: Path) -> None:
    assert load_packs(tmp_path / "none") == load_packs(None) == shipped_packs()


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('code = "eo"', "code = eo"),
        ('code = "eo"', ""),
        ('name = "Esperanto"', ""),
        ("[notices]", "[not_notices]"),
        ("[words]", "[other]"),
        ('negations = ["ne"]', 'negations = "ne"'),
        ('openers = ["nu"]', 'openers = "nu"'),
        ('openers = ["nu"]', 'openers = ["(nu"]'),
        ("(?P<value>.+)", "(?P<value>.+"),
        ('kind = "declaration"', 'kind = "declares"'),
        ('kind = "declaration"', ""),
        ('domain = "personal"', 'domain = "private"'),
        ("[domains]\npersonal", "[domains]\npersonal = []\n[topics]\nphrases = ['(']\n[domainz]\nx"),
        ("patterns =", "pattern ="),
        ("(?P<value>.+)", "(?P<value>{CITY})"),
    ],
)
def test_a_broken_pack_is_named_when_it_is_read_not_in_the_middle_of_a_conversation(
    folder: Path, before: str, after: str
) -> None:
    assert before in ESPERANTO
    (folder / "eo.toml").write_text(ESPERANTO.replace(before, after), "utf-8")
    with pytest.raises(LanguagePackError, match=r"eo\.toml"):
        load_packs(folder)


def test_a_pack_that_is_not_text_is_named(folder: Path) -> None:
    (folder / "eo.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(LanguagePackError, match=r"eo\.toml"):
        load_packs(folder)


def test_a_macro_may_use_those_before_it() -> None:
    source = {
        "code": "x",
        "name": "X",
        "words": {},
        "notices": {},
        "facts": {
            "macros": {"ONE": "one|uno", "TWO": "{ONE} two"},
            "rules": [{"kind": "signal", "patterns": ["say {TWO}", "\\d{2} {unknown}"]}],
        },
    }
    (rule,) = LanguagePack(source, "a test").rules
    assert rule.patterns[0].match("say uno two")
    assert rule.patterns[1].pattern == r"\d{2} {unknown}"


# --- which language


@pytest.mark.parametrize("code", [code for code in CODES if code in shipped_packs()])
def test_the_language_of_short_messages_is_told(code: str) -> None:
    messages = SHORT[code]
    assert len(set(messages)) == 60
    wrong = [text for text in messages if detect(text) != code]
    assert len(wrong) <= 3, wrong


@pytest.mark.parametrize("code", [code for code in CODES if code in shipped_packs()])
def test_in_a_chat_of_its_language_hardly_a_short_message_is_taken_for_another(code: str) -> None:
    wrong = [text for text in SHORT[code] if detect(text, code) != code]
    assert len(wrong) <= 1, wrong


@pytest.mark.parametrize("code", [code for code in CODES if code in shipped_packs()])
@pytest.mark.parametrize(
    "text",
    [
        "42", "3,50", "12:30", "+54 9 11 5555 4321", "😀", "👍👍", "❤️", "?", "...", "", "   ", "\n",
        "Laura", "Giovanni Bianchi", "María", "Ana & Tom", "https://example.org/a-b", "ana@example.org",
        "f12", "PostgreSQL", "iPhone 15",
    ],
)  # fmt: skip
def test_numbers_emoji_and_names_keep_the_language_of_the_chat(code: str, text: str) -> None:
    assert detect(text, code) == code


def test_without_a_chat_something_is_answered_all_the_same() -> None:
    for text in ("", "42", "😀", "Laura", "日本語のテキスト", "Привет, как дела?"):
        assert detect(text) in shipped_packs()


def test_a_fallback_that_has_no_pack_is_not_answered() -> None:
    assert detect("42", "sw") in shipped_packs()


def test_long_messages_are_told_whatever_the_chat_spoke_before() -> None:
    texts = {
        "en": "Yesterday we went to the market and bought far too many tomatoes for the two of us.",
        "es": "Ayer fuimos al mercado y compramos demasiados tomates para nosotros dos.",
        "it": "Ieri siamo andati al mercato e abbiamo comprato troppi pomodori per noi due.",
        "zh": "昨天我们去市场买了太多西红柿，两个人根本吃不完。",
    }
    for code in shipped_packs():
        for chat in shipped_packs():
            assert detect(texts[code], chat) == code


@given(st.text(ANY_CHARACTER), st.sampled_from([*CODES, None, "sw"]))
def test_any_text_has_a_language(text: str, fallback: str | None) -> None:
    assert detect(text, fallback) in shipped_packs()


# --- folding


@given(st.text(ANY_CHARACTER))
@example("İstanbul ﬁn ǅ ß ẞ ŉ ΐ ﷺ 한국어 ½ ＡＢ")
def test_folding_keeps_every_character_at_its_place(text: str) -> None:
    assert len(fold(text)) == len(text)


@given(st.text(ANY_CHARACTER))
def test_folding_twice_changes_nothing_more(text: str) -> None:
    assert fold(fold(text)) == fold(text)


@pytest.mark.parametrize(
    ("text", "folded"),
    [
        ("MÚSICA Ñandú", "musica nandu"),
        ("Perché l’ho", "perche l'ho"),
        ("我喜歡", "我喜欢"),
        ("“quoted” — dash", '"quoted" - dash'),
        ("ＡＢＣ１２", "abc12"),
    ],
)
def test_accents_case_quotes_and_variants_are_folded_away(text: str, folded: str) -> None:
    assert fold(text) == folded


def test_words_are_folded_and_every_han_character_is_one() -> None:
    assert words_of("It's Málaga, 3pm! 北京 ok_no") == ["it", "s", "malaga", "3pm", "北", "京", "ok", "no"]


@given(st.text(ANY_CHARACTER))
def test_content_words_are_pieces_of_the_text(text: str) -> None:
    for word in content_words(text, shipped_packs()["en"].words["function_words"]):
        assert word in text.lower() or word in text


def test_a_text_of_function_words_only_keeps_them() -> None:
    assert content_words("the of and", shipped_packs()["en"].words["function_words"]) == ["the", "of", "and"]


@given(st.text(ANY_CHARACTER))
def test_a_well_formed_text_can_be_stored_and_stays_as_it_is(text: str) -> None:
    formed = well_formed(text)
    formed.encode("utf-8")
    assert "\0" not in formed
    assert well_formed(formed) == formed


def test_accents_typed_in_two_ways_become_one() -> None:
    assert well_formed("cafe\u0301") == "caf\u00e9"


def test_domains_are_those_of_the_facts() -> None:
    assert set(shipped_packs()["en"].domain_words) == set(DOMAINS)
