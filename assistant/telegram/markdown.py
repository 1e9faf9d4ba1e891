"""Markdown as Telegram shows it: a text and its entities. What would lose a character stays as it was written."""

import html
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from telegramify_markdown import RenderConfig

MOST_ENTITIES = 100  # of one message; Telegram leaves out the rest
_SHOWN_ALONE = ("pre", "code")  # hold no other entity
_URL = re.compile(r"(?:https?|tg|ton|mailto|tel):[^\s\x00-\x20]+", re.IGNORECASE)
_FENCED = re.compile(r"^[ \t]*(`{3,}|~{3,})[^\n]*\n.*?(?:^[ \t]*\1[`~]*[ \t]*$|\Z)", re.MULTILINE | re.DOTALL)
_INLINE = re.compile(r"(?<!`)(`+)(?!`)[^\n]*?(?<!`)\1(?!`)")
_TASK = re.compile(r"^([ \t>]*[-*+][ \t]+)\[[xX ]\]", re.MULTILINE)
_LINK = re.compile(r"!?\[([^\[\]\n]*)\]\(\s*<?([^()\s<>]*)>?(?:\s+[\"'(]([^\"'()\n]*)[\"')])?\s*\)")
_DEFINITION = re.compile(r"^([ \t>]*)\[([^\]\n]+)\]:", re.MULTILINE)
_NUMBER = re.compile(r"^([ \t>]*(?:[-*+][ \t]+)*\d{1,9})([.)])(?=[ \t]|$)", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """An entity of the Bot API; offset and length in UTF-16 units."""

    type: str
    offset: int
    length: int
    url: str | None = None
    language: str | None = None

    @property
    def end(self) -> int:
        return self.offset + self.length


@dataclass(frozen=True, slots=True, kw_only=True)
class Rich:
    """A text as it is shown."""

    text: str
    spans: tuple[Span, ...] = ()


def units(text: str) -> int:
    """The length of a text as Telegram counts it."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2


def render(markdown: str) -> Rich:
    """The Markdown of a reply as text and entities; as it is, where nothing else keeps every character."""
    source = markdown.encode("utf-8", "replace").decode()
    for attempt in (source, careful(source)):
        rich = _converted(attempt)
        if rich is not None and not lost(source, rich):
            return rich
    return Rich(text=source)


def careful(source: str) -> str:
    """The same Markdown without what a renderer swallows: tags, link targets, definitions, numbers of lists."""
    parts, end = [], 0
    for code in sorted((*_FENCED.finditer(source), *_INLINE.finditer(source)), key=re.Match.start):
        if code.start() >= end:
            parts += [_spelt_out(source[end : code.start()]), code[0]]
            end = code.end()
    return "".join([*parts, _spelt_out(source[end:])])


def lost(source: str, rich: Rich) -> Counter[str]:
    """The characters of a source that are neither shown nor behind a link; markup is ASCII punctuation."""
    kept = [rich.text, *(span.url or "" for span in rich.spans), *(span.language or "" for span in rich.spans)]
    return _letters([html.unescape(_TASK.sub(r"\1", source))]) - _letters(kept)


def _letters(texts: Iterable[str]) -> Counter[str]:
    return Counter(
        char
        for text in texts
        for char in text
        if not char.isspace() and char.isprintable() and not (char.isascii() and not char.isalnum())
    )


def _spelt_out(text: str) -> str:
    text = _LINK.sub(_link_in_words, text)
    text = _DEFINITION.sub(r"\1\\[\2]:", text)
    text = _NUMBER.sub(r"\1\\\2", text)
    return re.sub(r"(?<!\\)<", r"\\<", text)


def _link_in_words(link: re.Match[str]) -> str:
    return " ".join(part for part in (link[1], link[2] and f"({link[2]})", link[3]) if part)


def _converted(source: str) -> Rich | None:
    from telegramify_markdown import convert

    try:
        text, entities = convert(source, latex_escape=False, config=_symbols())
    except Exception:  # noqa: BLE001 (a renderer that stumbles over broken Markdown: it is shown as it is)
        return None
    given = [
        Span(type=entity.type, offset=entity.offset, length=entity.length, url=entity.url, language=entity.language)
        for entity in entities
    ]
    return Rich(text=text, spans=tuple(valid(text, given)))


def valid(text: str, spans: Sequence[Span]) -> list[Span]:
    """The entities Telegram accepts, outer ones first: inside the text, nothing within code, no quote in a quote."""
    whole = units(text)
    kept: list[Span] = []
    for span in sorted(spans, key=lambda span: (span.offset, -span.length, span.type not in _SHOWN_ALONE)):
        cut = replace(span, length=min(span.end, whole) - span.offset)
        leads_nowhere = cut.type == "text_link" and not _URL.fullmatch(cut.url or "")
        if cut.length <= 0 or cut.type == "custom_emoji" or leads_nowhere:
            continue
        around = [outer for outer in kept if outer.end > cut.offset]
        if any(cut.end > outer.end or outer.type in _SHOWN_ALONE or outer.type == cut.type for outer in around):
            continue
        kept.append(cut)
    return kept


@cache
def _symbols() -> "RenderConfig":
    """No ornaments before headings; plain bullets."""
    from telegramify_markdown import RenderConfig

    config = RenderConfig.isolated()
    symbols = config.markdown_symbol
    symbols.heading_level_1 = symbols.heading_level_2 = symbols.heading_level_3 = symbols.heading_level_4 = ""
    symbols.unordered_list_item, symbols.task_uncompleted = "•", "☐"
    return config
