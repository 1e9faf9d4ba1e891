"""Answers that need no model: from the clock, arithmetic and memory, and those given before (C1, D1)."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from assistant.arithmetic import NoSum, calculate, shown
from assistant.commands import plain
from assistant.talk import Talk
from memory.language import LanguagePack, fold, words_of
from memory.stores.index import stems
from memory.values import Answer, Fact, RequestKind, Turn

_MOST_FACTS = 30
_LONGEST_QUOTE = 160  # characters
_DATE_LIKE = re.compile(r"\d{4}-\d|\d/\d{1,2}/\d|^\d+\s*[/:-]\s*\d+$|\d:\d")  # 9/11, 24/7 and 10:30 are no sums
_GROUPED = re.compile(r"\d[.,]\d{3}(?!\d)")  # one thousand, or one with three decimals: nobody knows
_NUMBER = re.compile(r"\d")
_OF_ME = ("my_home", "my_name", "my_birthday", "my_phone number", "my_favourite", "how_many")
_COUNTED = ("pet", "child", "family", "possession", "car")
_ARTICLES = re.compile(r"^(?:the|my|our|el|la|los|las|mi|mis|lo|il|i|gli|le|mio|mia) ")


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """An answer, and how it came about; `notice` is said before it, and stored nowhere."""

    text: str
    kind: RequestKind
    notice: str = ""
    answer: Answer | None = None


async def find_known(talk: Talk, turn: Turn) -> Known | None:
    """The answer to a message that needs no model; None where the model has to be asked."""
    if talk.pack.rejects.search(fold(turn.content)):
        await talk.memory.answers.reject_last(talk.session.id)
        talk.known_question = None
        return None
    asked, talk.known_question = talk.known_question, None
    again = asked == " ".join(words_of(turn.content))
    text = None if turn.learned else await _from_memory(talk, turn, again)
    if text is not None:
        talk.known_question = " ".join(words_of(turn.content))
        return Known(text=text, kind="known")
    answer = await talk.memory.answers.find(turn)
    if answer is None:
        return None
    kind: RequestKind = "cached" if answer.facts and _equal(answer.question, turn.content) else "repeated"
    day = f"{answer.at.astimezone(talk.memory.timezone):%Y-%m-%d %H:%M}"
    return Known(text=answer.answer, kind=kind, notice=talk.say("same_question", date=day), answer=answer)


def _equal(first: str, second: str) -> bool:
    return words_of(first) == words_of(second)


async def _from_memory(talk: Talk, turn: Turn, again: bool) -> str | None:
    """What the clock, arithmetic or memory say; asked for a second time in a row only the clock answers."""
    pack = talk.memory.packs[turn.language]
    folded = fold(turn.content)
    if (told := _from_clock(talk, pack, folded)) or again:
        return told
    if (match := pack.asks("sum", folded)) and (result := _sum(match["sum"], pack)):
        return result
    if pack.asks("about_me", folded):
        return await _about_me(talk)
    if match := pack.asks("decided", folded):
        return await _decided(talk, _topic(match, turn.content), pack)
    if told := await _of_me(talk, pack, folded, turn.content):
        return told
    match = pack.asks("mentioned", folded)
    return await _mentioned(talk, _topic(match, turn.content), turn) if match else None


def _from_clock(talk: Talk, pack: LanguagePack, folded: str) -> str | None:
    now = talk.memory.now()
    if pack.asks("time", folded):
        return talk.say("known_time", time=f"{now:%H:%M}")
    if pack.asks("date", folded):
        weekday = talk.say("known_weekdays").split(", ")[now.weekday()]
        return talk.say("known_date", weekday=weekday, date=f"{now:%Y-%m-%d}")
    return None


def _sum(text: str, pack: LanguagePack) -> str | None:
    """A sum said in words or signs, with its result; None for what is none, or could be something else."""
    said = text.strip()
    for sign, words in pack.operators.items():
        said = words.sub("%*" if sign == "%of" else sign, said)
    said = said.replace("（", "(").replace("）", ")").strip(" =?")
    if not re.search(r"[-+*/^²√%]", said) or _DATE_LIKE.search(text.strip()) or _GROUPED.search(said):
        return None
    if "," in said:
        if pack.code == "en" or "." in said:
            return None
        said = said.replace(",", ".")
    try:
        return f"{' '.join(text.split()).strip(' =?')} = {shown(calculate(said))}"
    except NoSum:
        return None


async def _about_me(talk: Talk) -> str:
    facts = await talk.memory.facts.list("active")
    if not facts:
        return talk.say("no_facts")
    lines = [talk.say("known_facts"), *_lines(facts[:_MOST_FACTS])]
    more = len(facts) - _MOST_FACTS
    return "\n".join([*lines, *([talk.say("known_more", count=str(more))] if more > 0 else [])])


async def _decided(talk: Talk, topic: str, pack: LanguagePack) -> str | None:
    """The decisions in which all words of the topic stand; without one the model is asked, which sees more."""
    wanted = set(stems(topic, pack))
    known = [fact for fact in await talk.memory.facts.list(None) if fact.state in ("active", "explicit-only")]
    found = [
        fact
        for fact in known
        if "decision" in (fact.kind, fact.domain.removesuffix("s"))
        and wanted
        and wanted <= set(stems(f"{fact.fact} {fact.quote}", talk.memory.packs.get(fact.language)))
    ]
    return "\n".join([talk.say("known_decided", topic=plain(topic)), *_lines(found)]) if found else None


async def _of_me(talk: Talk, pack: LanguagePack, folded: str, content: str) -> str | None:
    """What the user said of where they live, their name and the like, if exactly one fact that is current says it."""
    asked = next((name for name in _OF_ME if pack.asks(name, folded)), None)
    if asked is None:
        return None
    match = pack.asks(asked, folded)
    topic = _topic(match, content) if match and "topic" in match.re.groupindex else ""
    known = [fact for fact in await talk.memory.facts.list("active") if _is_of(fact, asked, topic, pack)]
    if len(known) != 1 or not _tells(known[0], asked, talk.memory.packs.get(known[0].language)):
        return None
    day = f"{known[0].created_at.astimezone(talk.memory.timezone):%Y-%m-%d}"
    return talk.say("known_told", date=day, text=plain(known[0].fact))


def _is_of(fact: Fact, asked: str, topic: str, pack: LanguagePack) -> bool:
    """Whether a fact is one that may answer; what is asked for by a word is compared in one language only."""
    if asked == "how_many":
        return fact.language == pack.code and set(stems(topic, pack)) <= set(stems(fact.fact, pack))
    if asked == "my_favourite":
        return (
            fact.attribute == "favourite" and fact.language == pack.code and stems(fact.key, pack) == stems(topic, pack)
        )
    return fact.attribute == asked.removeprefix("my_")


def _tells(fact: Fact, asked: str, pack: LanguagePack | None) -> bool:
    """Whether it says what is asked for: a place has a name, a birthday a day, a count a number; in doubt not."""
    if fact.confidence == "low" or pack is None:
        return False
    if asked == "how_many":
        return fact.attribute in _COUNTED and bool(_NUMBER.search(fact.fact) or _counts(fact, pack))
    if not fact.value or asked == "my_birthday":
        return bool(_NUMBER.search(fact.value))
    place = fold(fact.fact).find(fact.value)
    named = pack.script == "han" or fact.fact[place : place + 1].isupper()
    return place >= 0 and (named or asked not in ("my_home", "my_name"))


def _counts(fact: Fact, pack: LanguagePack) -> bool:
    if pack.script == "han":
        return any(number in fact.fact for number in ("一", "两", *pack.same_numbers))
    return not pack.same_numbers.keys().isdisjoint(words_of(fact.fact))


async def _mentioned(talk: Talk, topic: str, turn: Turn) -> str | None:
    found = await talk.memory.last_mention(topic, turn.language, turn.id)
    if found is None:
        return None
    text = " ".join(found.text.split())
    text = text if len(text) <= _LONGEST_QUOTE else text[: _LONGEST_QUOTE - 1] + "…"
    day = f"{found.at.astimezone(talk.memory.timezone):%Y-%m-%d}"
    return talk.say("known_mentioned", topic=plain(topic), date=day, text=plain(text))


def _lines(facts: Sequence[Fact]) -> list[str]:
    return [f"- {plain(fact.fact)} ({fact.last_confirmed_at:%Y-%m-%d})" for fact in facts]


def _topic(match: re.Match[str], content: str) -> str:
    """What is asked about, as the user wrote it where it can be found."""
    topic = match["topic"].strip(" ?!.,¿¡？。")
    place = fold(content).find(topic)
    written = content[place : place + len(topic)] if place >= 0 else topic
    return _ARTICLES.sub("", written)
