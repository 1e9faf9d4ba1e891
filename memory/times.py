"""Time expressions ("yesterday", "la semana pasada", "上周五", "in May 2023") as days of the calendar."""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta, tzinfo
from functools import cache
from typing import Any

from memory.errors import Refused
from memory.language import LanguagePack, fold

_ABSOLUTE = ("weekday", "on_date", "in_month", "in_year")  # or unclear: next Thursday, or the last one?
_RELATIVE_DAYS = {"before_yesterday": -2, "yesterday": -1, "today": 0, "tomorrow": 1}


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """What days an expression means, the last one excluded, and where in the text it stands."""

    since: date
    until: date
    start: int
    end: int
    relative: bool = True  # it is clear only to those who know the day it was said

    def __str__(self) -> str:
        """As short as it is exact: a day, a week by its first day, a month, a year."""
        days = (self.until - self.since).days
        if days == 1:
            return self.since.isoformat()
        if days > 300:
            return f"{self.since:%Y}"
        if days > 27:
            return f"{self.since:%Y-%m}"
        return f"{self.since.isoformat()}..{self.until - timedelta(days=1):%m-%d}"


def spans(text: str, today: date, pack: LanguagePack) -> list[Span]:
    """The time expressions of a text as of a day, in order; of those that overlap the longest."""
    folded = fold(text)
    found = [span for name, pattern in _patterns(pack) for span in _matches(name, pattern, folded, today, pack)]
    found.sort(key=lambda span: (span.start - span.end, span.start))
    kept: list[Span] = []
    for span in found:
        if not any(span.start < other.end and other.start < span.end for other in kept):
            kept.append(span)
    return sorted(kept, key=lambda span: span.start)


def wants_newest(text: str, pack: LanguagePack) -> bool:
    """Whether a question asks how things stand now or what came last."""
    return bool(_newest(pack).search(fold(text)))


def _matches(name: str, pattern: re.Pattern[str], folded: str, today: date, pack: LanguagePack) -> Iterator[Span]:
    for match in pattern.finditer(folded):
        try:
            days = _days(name, match.groupdict(), today, pack)
        except (ValueError, OverflowError):  # the 31st of June, a million years ago
            continue
        if days:
            relative = name not in _ABSOLUTE
            yield Span(since=days[0], until=days[1], start=match.start(), end=match.end(), relative=relative)


def _days(name: str, said: Mapping[str, str | None], today: date, pack: LanguagePack) -> tuple[date, date] | None:
    if name in _RELATIVE_DAYS:
        return _one_day(today + timedelta(days=_RELATIVE_DAYS[name]))
    if name in ("last_weekday", "weekday", "next_weekday"):
        weekday = _place(said["weekday"], _names(pack, "weekdays"))
        ahead = (weekday - today.weekday()) % 7 or 7
        return _one_day(today + timedelta(days=ahead if name == "next_weekday" else ahead - 7 if ahead < 7 else -7))
    if name in ("ago", "last", "this", "next"):
        number = {"last": -1, "this": 0, "next": 1}.get(name) if name != "ago" else -_number(said["n"], pack)
        unit = next(unit for unit, words in pack.times["units"].items() if said["unit"] in words)
        return _unit(unit, number or 0, today)
    year = int(said.get("year") or 0)
    if name == "in_year":
        return (date(year, 1, 1), date(year + 1, 1, 1)) if year else None
    month = _place(said["month"], _names(pack, "months")) + 1
    if name == "on_date":
        day = date(year or today.year, month, int(said["day"] or 1))
        return _one_day(day if year or day <= today + timedelta(days=60) else day.replace(year=day.year - 1))
    first = date(year or today.year, month, 1)
    return _month(first if year or first <= today else first.replace(year=first.year - 1))


def _unit(unit: str, number: int, today: date) -> tuple[date, date]:
    """The week, month or year that many away; "three days ago" is a day, "three weeks ago" the week of that day."""
    if unit == "day":
        return _one_day(today + timedelta(days=number))
    if unit == "year":
        return date(today.year + number, 1, 1), date(today.year + number + 1, 1, 1)
    if unit == "month":
        months = today.year * 12 + today.month - 1 + number
        return _month(date(months // 12, months % 12 + 1, 1))
    monday = today - timedelta(days=today.weekday()) + timedelta(weeks=number)
    if unit == "weekend":
        saturday = monday + timedelta(days=5)
        return saturday, saturday + timedelta(days=2)
    return monday, monday + timedelta(days=7)


def _one_day(day: date) -> tuple[date, date]:
    return day, day + timedelta(days=1)


def _month(first: date) -> tuple[date, date]:
    return first, (first + timedelta(days=32)).replace(day=1)


def _number(said: str | None, pack: LanguagePack) -> int:
    if said and said.isdigit():
        return int(said)
    return _place(said, _names(pack, "numbers")) + 1


def _place(said: str | None, names: Sequence[str]) -> int:
    return next(place for place, name in enumerate(names) if re.fullmatch(name, said or ""))


def _names(pack: LanguagePack, key: str) -> Sequence[str]:
    # what stands around a name belongs to where it is looked for, not to the name
    return [re.sub(r"\(\?<!.*?\)", "", name) for name in pack.times[key]]


@cache
def _patterns(pack: LanguagePack) -> tuple[tuple[str, re.Pattern[str]], ...]:
    times = pack.times
    if not times:
        return ()
    units = "|".join(sorted((word for words in times["units"].values() for word in words), key=len, reverse=True))
    pieces = {
        "{n}": rf"(?P<n>\d{{1,3}}|{'|'.join(times['numbers'])})",
        "{unit}": f"(?P<unit>{units})",
        "{weekday}": f"(?P<weekday>{'|'.join(times['weekdays'])})",
        "{month}": "|".join(times["months"]),
    }
    names = (*_RELATIVE_DAYS, "ago", "last", "this", "next", "last_weekday", "next_weekday", "weekday")
    found = []
    for name in (*names, "on_date", "in_month", "in_year"):
        for written in times.get(name, ()):
            text = written
            for piece, pattern in pieces.items():
                text = text.replace(piece, pattern)
            found.append((name, pack.compile_words(text)))
    return tuple(found)


@cache
def _newest(pack: LanguagePack) -> re.Pattern[str]:
    words: Any = pack.times.get("newest", ())
    inner = "|".join(re.escape(fold(word)) for word in words) or "(?!)"
    return pack.compile_words(inner)


_FIRST, _LAST = date(1, 1, 4), date(9999, 12, 27)  # whatever the time zone, these have a day before and after


def moment(text: str, now: datetime, zone: tzinfo, packs: Mapping[str, LanguagePack], *, end: bool = False) -> datetime:
    """The moment a person means: "2025-03-01", "30d" (so long ago), "yesterday", "el martes"; with `end` its end."""
    said = text.strip()
    today = now.astimezone(zone).date()
    if ago := re.fullmatch(r"(\d{1,5})\s*([dwmy])", said.lower()):
        days = int(ago[1]) * {"d": 1, "w": 7, "m": 30, "y": 365}[ago[2]]
        return now - timedelta(days=min(days, 365_000))
    with suppress(ValueError):
        if re.fullmatch(r"\d{4}-\d{2}-\d{2}", said):
            day = min(max(date.fromisoformat(said), _FIRST), _LAST)
            return _midnight(day + timedelta(days=1) if end else day, zone)
        exact = datetime.fromisoformat(said)
        exact = exact if exact.tzinfo else exact.replace(tzinfo=zone)
        return exact if _FIRST <= exact.date() <= _LAST else _midnight(_FIRST if exact.year < 2 else _LAST, zone)
    for pack in packs.values():
        if found := spans(said, today, pack):
            return _midnight(found[0].until if end else found[0].since, zone)
    raise Refused(f"“{text}” is no date. Write 2025-03-01, 30d (days ago; also w, m, y), or words such as yesterday.")


def _midnight(day: date, zone: tzinfo) -> datetime:
    return datetime.combine(day, time(), tzinfo=zone)
