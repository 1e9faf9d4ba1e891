"""Markdown as Telegram shows it: a text and its entities. What would lose a character stays as it was written."""

import html
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from telegramify_markdown import RenderConfig

MOST_ENTITIES = 100  # of one message; Telegram leaves out the rest
_MOST_GROWTH, _INDENT = 2, 1000  # a text that gets longer is mostly indentation
_CODE = ("pre", "code")
_STYLES = ("bold", "italic", "underline", "strikethrough", "spoiler")
_NO_MARKUP = ",.?;%@/"  # punctuation that is text wherever it stands
_ORDER = ("blockquote", "text_link")  # of those that begin and end alike
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
        if rich is not None and len(rich.text) <= _MOST_GROWTH * len(source) + _INDENT and not lost(source, rich):
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
    """The characters of a source that are neither shown nor behind a link; other ASCII punctuation may be markup."""
    kept = [rich.text, *(span.url or "" for span in rich.spans), *(span.language or "" for span in rich.spans)]
    return _letters([html.unescape(_TASK.sub(r"\1", source))]) - _letters(kept)


def _letters(texts: Iterable[str]) -> Counter[str]:
    return Counter(
        char
        for text in texts
        for char in text
        if not char.isspace() and char.isprintable() and (not char.isascii() or char.isalnum() or char in _NO_MARKUP)
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
    """The entities Telegram accepts, outer ones first. Only a quote holds code or links, but no quote; styles nest, and
    go on after code that stands among them."""
    whole = units(text)
    cut = (replace(span, length=min(span.end, whole) - span.offset) for span in spans)
    usable = sorted((span for span in cut if _usable(span)), key=_outer_first)
    quotes, inner = _firm([span for span in usable if span.type not in _STYLES])
    codes = [span for span in inner if span.type in _CODE]
    styles = [piece for span in usable if span.type in _STYLES for piece in _beside(span, codes)]
    nested = [style for style in styles if all(_nested(other, style) for other in _meeting(style, quotes, inner))]
    return sorted([*quotes, *inner, *_apart(sorted(nested, key=_outer_first))], key=_outer_first)


def _firm(spans: Sequence[Span]) -> tuple[list[Span], list[Span]]:
    """Quotes, and code and links; none has a part in common with another of its list, nor crosses one of the other."""
    quotes: list[Span] = []
    inner: list[Span] = []
    for span in spans:
        if inner and inner[-1].end > span.offset:
            continue
        if span.type == "blockquote":
            if not quotes or quotes[-1].end <= span.offset:
                quotes.append(span)
        elif not quotes or quotes[-1].end <= span.offset or span.end <= quotes[-1].end:
            inner.append(span)
    return quotes, inner


def _beside(style: Span, codes: Sequence[Span]) -> Iterator[Span]:
    """What is left of a style beside code."""
    start = style.offset
    for code in _meeting(style, codes):
        if start < code.offset:
            yield replace(style, offset=start, length=code.offset - start)
        start = code.end
    if start < style.end:
        yield replace(style, offset=start, length=style.end - start)


def _apart(styles: Sequence[Span]) -> Iterator[Span]:
    """Styles without those that cross another one, or stand in one of their own kind."""
    around: list[Span] = []
    for style in styles:
        around = [outer for outer in around if outer.end > style.offset]
        if all(style.end <= outer.end and outer.type != style.type for outer in around):
            around.append(style)
            yield style


def _meeting(span: Span, *lists: Sequence[Span]) -> Iterator[Span]:
    """Those that have a part in common with a span; each list is in order and without overlaps."""
    for listed in lists:
        place = max(0, bisect_right(listed, span.offset, key=lambda one: one.offset) - 1)
        while place < len(listed) and listed[place].offset < span.end:
            if listed[place].end > span.offset:
                yield listed[place]
            place += 1


def _usable(span: Span) -> bool:
    leads_nowhere = span.type == "text_link" and not _URL.fullmatch(span.url or "")
    return span.length > 0 and span.type != "custom_emoji" and not leads_nowhere


def _outer_first(span: Span) -> tuple[int, int, int]:
    return span.offset, -span.length, _ORDER.index(span.type) if span.type in _ORDER else len(_ORDER)


def _nested(one: Span, other: Span) -> bool:
    within = one.offset <= other.offset and other.end <= one.end
    return within or (other.offset <= one.offset and one.end <= other.end)


@cache
def _symbols() -> "RenderConfig":
    """No ornaments before headings; plain bullets."""
    from telegramify_markdown import RenderConfig

    config = RenderConfig.isolated()
    symbols = config.markdown_symbol
    symbols.heading_level_1 = symbols.heading_level_2 = symbols.heading_level_3 = symbols.heading_level_4 = ""
    symbols.unordered_list_item, symbols.task_uncompleted = "•", "☐"
    return config
