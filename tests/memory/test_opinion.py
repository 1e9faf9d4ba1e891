"""The learned second opinion (F2, F7): what it takes, what it refuses, and that it is the same every time."""

import pytest

from memory import opinion
from memory.language import LanguagePack, load_packs
from memory.opinion import CHANGE, Heard
from memory.signals import extract

PACKS = load_packs()


@pytest.mark.parametrize(
    ("language", "fact", "none"),
    [
        ("en", "I keep bees at the bottom of my garden", "I bought a jar of honey at the market today"),
        ("es", "Mi perra se llama Canela", "enciende la luz del salón"),
        ("it", "La mia gatta si chiama Duchessa", "accendi la luce in salotto"),
        ("zh", "我家养了三只猫", "打开客厅的灯"),
    ],
)
def test_f2_a_lasting_fact_scores_far_above_an_event_or_a_command(language: str, fact: str, none: str) -> None:
    yes, no = (opinion.score(Heard(text=text), PACKS[language]) for text in (fact, none))
    assert yes is not None and no is not None
    assert yes > 0.8
    assert no < 0.2


def test_the_same_sentence_has_the_same_score_every_time() -> None:
    heard = Heard(text="We keep goats", before="Hi!", place=1, sentences=2)
    assert opinion.score(heard, PACKS["en"]) == opinion.score(heard, PACKS["en"])


@pytest.mark.parametrize(("text", "topic"), [("I live in a flat in Leeds", "home"), ("my dog is a labrador", "pet")])
def test_f7_it_tells_what_a_fact_is_about(text: str, topic: str) -> None:
    found = opinion.topics(text, PACKS["en"])
    assert max((name for name in found if name != CHANGE), key=lambda name: found[name]) == topic


def test_a_language_without_weights_has_no_opinion() -> None:
    source = {"code": "xx", "name": "None", "words": {}, "notices": {}}
    pack = LanguagePack(source, "xx.toml")
    assert opinion.score(Heard(text="anything"), pack) is None
    assert opinion.topics("anything", pack) == {}


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("en", "I am allergic to nuts."),
        ("es", "Soy alérgica a los frutos secos."),
        ("it", "Sono allergica alle noci."),
        ("zh", "我对坚果过敏。"),
    ],
)
def test_f2_an_opinion_never_talks_the_rules_out_of_an_allergy(language: str, text: str) -> None:
    assert [draft.attribute for draft in extract(text, language)] == ["allergy"]
