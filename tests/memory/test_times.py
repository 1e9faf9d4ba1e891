"""Time expressions in four languages, as days of the calendar."""

from datetime import UTC, date, datetime

import pytest

from memory.errors import Refused
from memory.language import load_packs
from memory.times import moment, spans, wants_newest

PACKS = load_packs()
WEDNESDAY = date(2023, 5, 10)
SAID = [
    ("en", "I went there yesterday", "2023-05-09"),
    ("en", "three days ago we met", "2023-05-07"),
    ("en", "it was last week", "2023-05-01..05-07"),
    ("en", "last Friday", "2023-05-05"),
    ("en", "next month", "2023-06"),
    ("en", "back in May 2022", "2022-05"),
    ("en", "on June 7th, 2021", "2021-06-07"),
    ("en", "last year", "2022"),
    ("es", "ayer fui al médico", "2023-05-09"),
    ("es", "la semana pasada", "2023-05-01..05-07"),
    ("es", "hace tres días", "2023-05-07"),
    ("es", "el 5 de junio de 2021", "2021-06-05"),
    ("es", "el año pasado", "2022"),
    ("es", "el fin de semana pasado", "2023-05-06..05-07"),
    ("it", "l'altro ieri", "2023-05-08"),
    ("it", "la settimana scorsa", "2023-05-01..05-07"),
    ("it", "tre giorni fa", "2023-05-07"),
    ("it", "venerdì scorso", "2023-05-05"),
    ("zh", "昨天我去了", "2023-05-09"),
    ("zh", "上周五开会", "2023-05-05"),
    ("zh", "两个星期前", "2023-04-24..04-30"),
    ("zh", "2021年6月5日", "2021-06-05"),
    ("zh", "上个月", "2023-04"),
]


@pytest.mark.parametrize(("language", "text", "days"), SAID)
def test_m1_time_expressions_are_resolved(language: str, text: str, days: str) -> None:
    assert [str(span) for span in spans(text, WEDNESDAY, PACKS[language])] == [days]


@pytest.mark.parametrize("text", ["may I ask", "the second one", "31 June", "a million years ago", "", "5 4 3 2 1"])
def test_what_is_no_time_is_none(text: str) -> None:
    assert [span for span in spans(text, WEDNESDAY, PACKS["en"]) if span.relative] == []


def test_a_weekday_alone_may_be_the_next_one_and_gets_no_date() -> None:
    assert [span.relative for span in spans("he comes on Thursday", WEDNESDAY, PACKS["en"])] == [False]


def test_how_things_stand_now_is_asked_in_every_language() -> None:
    for language, text in (("en", "where do I live now?"), ("es", "¿dónde vivo ahora?"), ("zh", "我现在住哪？")):
        assert wants_newest(text, PACKS[language])
    assert not wants_newest("where did I live?", PACKS["en"])


@pytest.mark.parametrize(
    ("text", "end", "expected"),
    [
        ("2023-03-01", False, datetime(2023, 3, 1, tzinfo=UTC)),
        ("2023-03-01", True, datetime(2023, 3, 2, tzinfo=UTC)),
        ("30d", False, datetime(2023, 4, 10, 12, tzinfo=UTC)),
        ("yesterday", True, datetime(2023, 5, 10, tzinfo=UTC)),
        ("la semana pasada", False, datetime(2023, 5, 1, tzinfo=UTC)),
        ("2023-03-01T10:00:00+00:00", False, datetime(2023, 3, 1, 10, tzinfo=UTC)),
    ],
)
def test_a_moment_as_people_write_it(text: str, end: bool, expected: datetime) -> None:
    assert moment(text, datetime(2023, 5, 10, 12, tzinfo=UTC), UTC, PACKS, end=end) == expected


@pytest.mark.parametrize("text", ["", "soonish", "2023-13-45", "d30", "-5d"])
def test_a_moment_that_is_none_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(Refused, match="2025-03-01"):
        moment(text, datetime(2023, 5, 10, tzinfo=UTC), UTC, PACKS)
