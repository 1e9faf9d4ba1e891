"""Facts as text to keep, read and edit elsewhere: JSON and Markdown, both lossless; pure functions.

The turn a fact came from is the one thing left out: it points into the conversations of one file and would point
at somebody else's words in another. The quote says what was said.
"""

import json
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Annotated, Any, Literal, Self, cast, get_args

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator
from pydantic_core import ErrorDetails, PydanticCustomError

from memory.errors import Refused
from memory.values import Confidence, Domain, Fact, FactKind

Format = Literal["json", "markdown"]
FORMATS: tuple[Format, ...] = get_args(Format)
DOMAINS: tuple[Domain, ...] = get_args(Domain)

NAME, VERSION = "olvido-facts", 1
LONGEST_FACT = 2_000
INTRODUCTION = (
    "What Olvido knows, one bullet a fact. The line below a bullet holds its fields; leave it as it is.\n"
    "A bullet you add without such a line is read as a new fact when this file is imported.\n"
)

# invisible, or able to steer a terminal or to turn the direction of writing
_UNSEEN = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_FIELDS_LINE = re.compile(r"`(\w+=.*)`")
_FIELD = re.compile(r'(\w+)=("(?:[^"\\]|\\.)*"|[^\s"]+)(?:\s+|$)')
_BULLET = re.compile(r"\s*[-*+]\s+(\S.*)")
_HEADING = re.compile(r"(#{1,6})\s+(\S.*)")
_MARKED = re.compile(r"[\\`*\[\]<]|&(?=#?\w+;)|(?<![^\W_])_|_(?![^\W_])")
_UNMARKED = re.compile(r"\\([!-/:-@\[-`{-~])|&#(\d{1,7});")
_PLAIN = re.compile(r"[\w.:+-]+", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """One fact as a file states it: with its fields, or (`fact` is None) only its words."""

    place: str
    text: str
    domain: Domain | None
    fact: Fact | None = None


# -- what may enter


def _refuse(sentence: str) -> PydanticCustomError:
    return PydanticCustomError("fact", cast(Any, sentence))


def _moment(value: object) -> datetime:
    try:
        moment = datetime.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo is None or not 1900 < moment.year < 3000:
        raise _refuse("use a date with its time zone, such as 2026-01-31T12:00:00+00:00")
    return moment.astimezone(UTC)


def _whole(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:  # JSON can write half a character
        raise _refuse("it holds a character that cannot be stored") from None
    return text


def _words(text: str) -> str:
    if not text.strip() or len(text) > LONGEST_FACT:
        raise _refuse(f"use some words, at most {LONGEST_FACT} characters")
    return text


Id = Annotated[str, Field(pattern=r"\Af[1-9][0-9]{0,8}\z")]
Text = Annotated[str, AfterValidator(_whole)]
Moment = Annotated[datetime, BeforeValidator(_moment)]


class _Record(BaseModel):
    """The fields of a fact in a file; what has a default may be left out."""

    model_config = ConfigDict(strict=True, extra="forbid", hide_input_in_errors=True)

    id: Id | None = None
    domain: Domain
    fact: Annotated[Text, AfterValidator(_words)]
    confidence: Confidence
    created_at: Moment
    last_confirmed_at: Moment | None = None
    source: Literal["explicit", "inferred"] = "explicit"
    quote: Text | None = None
    language: Annotated[str, Field(pattern=r"\A[a-z]{2,3}(-[A-Za-z0-9]{2,8})*\z")]
    status: Literal["current", "superseded"] = "current"
    superseded_by: Id | None = None
    pinned: bool = False
    kind: FactKind = "statement"
    attribute: Text = ""
    key: Text = ""
    value: Text = ""
    single: bool = False
    polarity: Annotated[int, Field(ge=-1, le=1)] = 0

    @model_validator(mode="after")
    def _agrees(self) -> Self:
        if self.superseded_by is not None and (self.status == "current" or self.superseded_by == self.id):
            raise _refuse("superseded_by names another fact, and only when status is superseded")
        return self


def _read_record(plain: object, place: str) -> Written:
    try:
        record = _Record.model_validate(plain)
    except ValidationError as exc:
        raise _wrong(place, _explained(exc.errors(include_url=False, include_input=False)[0])) from None
    given = record.model_dump() | {
        "id": record.id or "",
        "last_confirmed_at": record.last_confirmed_at or record.created_at,
        "quote": record.fact if record.quote is None else record.quote,
    }
    return Written(place=place, text=record.fact, domain=record.domain, fact=Fact(turn_id=None, **given))


def _explained(error: ErrorDetails) -> str:
    """One of pydantic's errors in our words, which never repeat a value."""
    if not error["loc"]:
        return error["msg"] if error["type"] == "fact" else "this is not a table of fields"
    sentences = {
        "fact": error["msg"],
        "missing": "it is missing",
        "extra_forbidden": "there is no such field",
        "literal_error": f"use one of {error.get('ctx', {}).get('expected')}",
        "string_type": "use text",
        "bool_type": "use true or false",
    }
    return f"field {error['loc'][0]}: {sentences.get(error['type'], 'this value cannot be used')}"


def _wrong(place: str, why: str) -> Refused:
    return Refused(f"{place}: {why}. Nothing was imported.")


# -- both formats


def write(facts: Sequence[Fact], form: Format) -> str:
    """Facts as a text from which `read` makes the same facts."""
    ordered = sorted(facts, key=lambda fact: int(fact.id[1:]))
    return _to_json(ordered) if form == "json" else _to_markdown(ordered)


def read(text: str, form: Format) -> list[Written]:
    """The facts of a text; Refused names the place and the field that cannot be used."""
    written = list(_from_json(text) if form == "json" else _from_markdown(text))
    _check_chains(written)
    return written


def _check_chains(written: Sequence[Written]) -> None:
    places: dict[str, Written] = {}
    for item in written:
        if item.fact and item.fact.id and places.setdefault(item.fact.id, item) is not item:
            raise _wrong(item.place, f"field id: {item.fact.id} is used at {places[item.fact.id].place} already")
    for item in written:
        seen: set[str] = set()
        fact = item.fact
        while fact and fact.superseded_by:
            if fact.superseded_by not in places or fact.superseded_by in seen:
                raise _wrong(item.place, f"field superseded_by: {fact.superseded_by} is not in this file, or circular")
            seen.add(fact.superseded_by)
            fact = places[fact.superseded_by].fact


def _record_of(fact: Fact) -> dict[str, Any]:
    plain = asdict(fact)
    del plain["state"], plain["turn_id"]
    return plain | {name: plain[name].isoformat() for name in ("created_at", "last_confirmed_at")}


def dump_json(value: object, indent: int | None = 2) -> str:
    """JSON that shows every letter and escapes what is invisible or could steer a terminal."""
    return _UNSEEN.sub(
        lambda match: match[0] if match[0] == "\n" else f"\\u{ord(match[0]):04x}",
        json.dumps(value, ensure_ascii=False, indent=indent),
    )


# -- JSON


def _to_json(facts: Sequence[Fact]) -> str:
    return dump_json({"format": NAME, "version": VERSION, "facts": [_record_of(fact) for fact in facts]}) + "\n"


def _from_json(text: str) -> Iterator[Written]:
    try:
        whole = json.loads(text)
    except json.JSONDecodeError as exc:
        raise _wrong(f"line {exc.lineno}, column {exc.colno}", "this is not valid JSON") from None
    except (ValueError, RecursionError):
        raise _wrong("the file", "this is not usable JSON") from None
    if not isinstance(whole, dict) or whole.get("format") != NAME or not isinstance(whole.get("facts"), list):
        raise _wrong("the file", f"this is no export of facts: it needs the fields format ({NAME}), version and facts")
    if whole.get("version") != VERSION:
        raise _wrong("field version", f"this program reads version {VERSION}; install a newer Olvido")
    for number, plain in enumerate(whole["facts"], 1):
        known = plain.get("id") if isinstance(plain, dict) else None
        named = f" ({known})" if isinstance(known, str) and re.fullmatch(r"f\d{1,9}", known) else ""
        yield _read_record(plain, f"fact {number}{named}")


# -- Markdown


def _to_markdown(facts: Sequence[Fact]) -> str:
    parts = [f"# Facts\n\n{INTRODUCTION}"]
    for domain in DOMAINS:
        bullets = [f"- {_marked(fact.fact)}\n  `{_fields(fact)}`\n" for fact in facts if fact.domain == domain]
        parts += [f"\n## {domain}\n\n", *bullets] if bullets else []
    return "".join(parts)


def _fields(fact: Fact) -> str:
    """All but the words and the domain; what goes without saying is left out."""
    plain = _record_of(fact)
    said = {name for name, field in _Record.model_fields.items() if plain[name] != field.default}
    said -= {"domain", "fact"}
    said -= {"quote"} if fact.quote == fact.fact else set()
    said -= {"last_confirmed_at"} if fact.last_confirmed_at == fact.created_at else set()
    return " ".join(f"{name}={_token(plain[name])}" for name in _Record.model_fields if name in said)


def _token(value: object) -> str:
    if isinstance(value, str) and not _PLAIN.fullmatch(value):
        return dump_json(value, indent=None).replace("`", "\\u0060")
    return value if isinstance(value, str) else json.dumps(value)


def _from_markdown(text: str) -> Iterator[Written]:
    for line, domain, words, fields in _bullets(text):
        if fields is None:
            yield Written(place=f"line {line}", text=_unmarked(words), domain=domain)
        elif domain is None:
            raise _wrong(f"line {line}", "this fact stands below no heading that names its domain")
        else:
            given = {**_read_fields(fields, f"line {line + 1}"), "fact": _unmarked(words), "domain": domain}
            yield _read_record(given, f"line {line}")


def _bullets(text: str) -> Iterator[tuple[int, Domain | None, str, str | None]]:
    """Each bullet: its line, the domain it stands under, its words and its fields."""
    domain: Domain | None = None
    bullet: tuple[int, Domain | None, str, str | None] | None = None
    for number, raw in enumerate(text.removeprefix("\ufeff").split("\n"), 1):
        line = raw.strip()
        heading, start = _HEADING.fullmatch(line), _BULLET.fullmatch(raw.rstrip())
        if start or heading:
            if bullet:
                yield bullet
            bullet = (number, domain, start[1], None) if start else None
            domain = _domain(heading, number) if heading and len(heading[1]) > 1 else domain
        elif line and bullet and bullet[3] is None and raw[:1].isspace():
            fields = _FIELDS_LINE.fullmatch(line)
            bullet = (*bullet[:3], fields[1]) if fields else (*bullet[:2], f"{bullet[2]} {line}", None)
        elif line and (bullet or domain):
            raise _wrong(f"line {number}", "this is no bullet: start a fact with “- ”, or indent what belongs to one")
    if bullet:
        yield bullet


def _domain(heading: "re.Match[str]", number: int) -> Domain:
    name = heading[2].strip().lower()
    if name not in DOMAINS:
        raise _wrong(f"line {number}", f"a heading names a domain, one of {', '.join(DOMAINS)}")
    return name


def _read_fields(text: str, place: str) -> Mapping[str, object]:
    found: dict[str, object] = {}
    at = 0
    while at < len(text):
        match = _FIELD.match(text, at)
        if match is None:
            raise _wrong(place, f"the fields cannot be read from “{text[at : at + 12]}” on; restore or remove the line")
        found[match[1]] = _value(match[1], match[2], place)
        at = match.end()
    return found


def _value(name: str, token: str, place: str) -> object:
    try:
        # texts are written bare where that is clear, so only the other fields are numbers and truth values
        return json.loads(token) if token.startswith('"') or name in ("pinned", "single", "polarity") else token
    except ValueError:
        raise _wrong(place, f"field {name}: this value cannot be read") from None


def _marked(text: str) -> str:
    """A text as Markdown that means it literally, on one line."""
    inner = text.strip()
    lead = "\\" if inner and inner[0] in "#+->=|~" else ""
    start = text.index(inner) if inner else 0
    edges = text[:start], text[start + len(inner) :]
    before, after = ("".join(f"&#{ord(char)};" for char in edge) for edge in edges)
    marked = _MARKED.sub(lambda match: "\\" + match[0], inner)
    return before + lead + _UNSEEN.sub(lambda match: f"&#{ord(match[0])};", marked) + after


def _unmarked(text: str) -> str:
    """The words a Markdown text stands for."""

    def meant(match: "re.Match[str]") -> str:
        if match[1]:
            return match[1]
        number = int(match[2])
        usable = number <= 0x10FFFF and unicodedata.category(chr(number)) != "Cs"
        return chr(number) if usable else match[0]

    return _UNMARKED.sub(meant, text.strip())
