"""Language packs, and which language a message is in.

A pack is one TOML file: ``prompts/languages/<code>.toml``, or the same in a folder of the user's own, which adds to
or replaces the shipped ones. All patterns in a pack are written for folded text (see `fold`): lower case, no accents.
"""

import re
import tomllib
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from importlib import resources
from pathlib import Path
from typing import Any

from memory.errors import LanguagePackError
from memory.patterns import Patterns, parsed

WORD_LISTS = (
    "function_words",  # the words that carry no subject; also what tells the language of a short message
    "negations",
    "question_words",
    "greetings",
    "filler",
    "hedges",  # lower the confidence to medium
    "doubts",  # lower it to low
    "emotional",
    "time_words",
    "additive",  # also, too: says that a new value joins the old one
    "replacing",  # instead, no longer: says that a new value takes the place of an old one
    "determiners",  # articles and the like: what follows one is a thing
    "insist",  # said with a credential: keep it all the same
    "now_words",  # an answer that depends on these is never cached (C3)
)
STATEMENT_LISTS = (
    "first_person",
    "second_person",
    "reactions",  # praise, thanks, agreement: a sentence of these says nothing worth keeping
    "lead_ins",  # said before a sentence begins
    "intensifiers",
    "articles",  # those that go without saying in a note; may be empty
)
TIME_KEYS = (
    *("today", "yesterday", "before_yesterday", "tomorrow", "ago", "last", "this", "next", "last_weekday"),
    *("next_weekday", "weekday", "in_month", "on_date", "in_year", "numbers", "units", "weekdays", "months", "newest"),
)
NOTICES = (
    "saved",
    "saved_undo",
    "not_saved_secret",
    "reminders_not_there",
    "updated",
    "unclear",
    "due",
    "same_question",
)
DOMAINS = ("work", "preferences", "decisions", "personal", "projects")
TOPIC_KEYS = (
    "phrases",
    "pointers",
    "closings",
    "requests",
    "advice",
    "past",
    "ahead",
    "naming",
    "counting",
    "you_said",
)
REACTION_KEYS = ("success", "thanks", "partial", "failure")
TASK_KEYS = ("fix", "plan", "write", "choose", "learn", "find")
FACT_KEYS = ("openers", "conjunctions", "rules")
RULE_KINDS = ("signal", "affirms", "instruction", "decision", "declaration", "change")
BLOCK_KEYS = ("message", "sentence", "declaration", "clause", "question", "tag_question", "reminder")

_FOLD_PUNCTUATION = str.maketrans("’‘‛`´“”„«»‐‑‒–—−", "'''''\"\"\"\"\"------")
_HAN = re.compile(r"[\u3400-\u9fff\uf900-\ufaff]")
_KANA = re.compile(r"[\u3040-\u30ff]")
_WORD = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One way in which people state a fact; see docs/languages.md for the fields."""

    kind: str  # signal, affirms, instruction, decision, declaration, change
    attribute: str  # what it is about: home, name, employer ...
    single: bool  # whether one has one of it at a time
    domain: str
    polarity: int  # +1 likes, -1 dislikes, 0 neither
    patterns: tuple[re.Pattern[str], ...]


class LanguagePack:
    """What one language looks like; patterns are compiled when first used."""

    def __init__(self, source: Mapping[str, Any], origin: str, file: Path | None = None) -> None:
        self._source = source
        self.origin = origin
        self._patterns = Patterns(file)
        try:
            self.code: str = source["code"]
            self.name: str = source["name"]
            self.stemmer: str | None = source.get("stemmer") or None
            self.script: str = source.get("script", "latin")
            self.words: dict[str, frozenset[str]] = {
                key: frozenset(fold(word) for word in _listed(source["words"].get(key, ()))) for key in WORD_LISTS
            }
            self.notices: dict[str, str] = dict(source["notices"])
            messenger = dict(source.get("telegram", {}))
            self.commands: dict[str, str] = {**source.get("commands", {}), **messenger.pop("commands", {})}
            self.answers: dict[str, str] = {**source.get("answers", {}), **messenger}
            self.letters: str = source.get("letters", "")
            self.times: Mapping[str, Any] = source.get("times", {})
            self.statements: dict[str, frozenset[str]] = {
                key: frozenset(fold(word) for word in _listed(source.get("statements", {}).get(key, ())))
                for key in STATEMENT_LISTS
            }
        except (KeyError, TypeError, AttributeError) as exc:
            raise LanguagePackError(
                f"The language pack {origin} is not usable: {exc!r}. Compare it with en.toml."
            ) from exc

    def missing(self) -> list[str]:
        """What a complete pack has and this one lacks, as dotted keys."""
        lacks = [f"words.{key}" for key in WORD_LISTS if not self.words[key]]
        lacks += [f"notices.{key}" for key in NOTICES if not self.notices.get(key)]
        lacks += [f"statements.{key}" for key in STATEMENT_LISTS if not self.statements[key] and key != "articles"]
        lacks += [f"times.{key}" for key in TIME_KEYS if not self.times.get(key)]
        topics = self._source.get("topics", {})
        lacks += [f"topics.{key}" for key in TOPIC_KEYS if not topics.get(key)]
        episodes = self._source.get("episodes", {})
        lacks += [f"episodes.{key}" for key in (*REACTION_KEYS, "asked") if not episodes.get(key)]
        lacks += [f"episodes.tasks.{key}" for key in TASK_KEYS if not episodes.get("tasks", {}).get(key)]
        facts = self._source.get("facts", {})
        lacks += [f"facts.{key}" for key in FACT_KEYS if not facts.get(key)]
        lacks += [f"facts.blocks.{key}" for key in BLOCK_KEYS if not facts.get("blocks", {}).get(key)]
        lacks += [f"domains.{key}" for key in DOMAINS if not self._source.get("domains", {}).get(key)]
        kinds = {rule.get("kind") for rule in facts.get("rules", ())}
        wanted = ("signal", "instruction", "decision", "declaration", "change")
        return lacks + [f"facts.rules of kind {kind}" for kind in wanted if kind not in kinds]

    @cached_property
    def macros(self) -> dict[str, str]:
        """Named pieces of patterns, expanded where a pattern says {name}; a macro may use those before it."""
        macros: dict[str, str] = {}
        for name, text in self._source.get("facts", {}).get("macros", {}).items():
            macros[name] = _expand(text, macros)
        return macros

    @cached_property
    def rules(self) -> tuple[Rule, ...]:
        """The ways to state a fact, in order of precedence."""
        return tuple(self._rule(raw) for raw in self._source.get("facts", {}).get("rules", ()))

    @cached_property
    def openers(self) -> re.Pattern[str]:
        """Words that may stand before a clause without changing what it says."""
        return self._either(self._section("facts").get("openers", ()), suffix=r"[\s,:.!\-]*")

    @cached_property
    def conjunctions(self) -> re.Pattern[str]:
        """Words that start a new clause."""
        return self._either(self._section("facts").get("conjunctions", ()))

    @cached_property
    def blocks(self) -> dict[str, re.Pattern[str]]:
        """What keeps a message, sentence or clause from teaching anything."""
        blocks = self._section("facts").get("blocks", {})
        return {key: self._either(blocks.get(key, ())) for key in BLOCK_KEYS}

    @cached_property
    def topic_phrases(self) -> re.Pattern[str]:
        """Explicit changes of subject (T1)."""
        return self._either(self._section("topics").get("phrases", ()))

    @cached_property
    def decides(self) -> re.Pattern[str]:
        """How a decision sounds, anywhere in a sentence."""
        rules = [raw for raw in self._section("facts").get("rules", ()) if raw["kind"] == "decision"]
        spoken = [*self._section("topics").get("decisions", ()), *(text for raw in rules for text in raw["patterns"])]
        unnamed = [re.sub(r"\(\?P<\w+>", "(?:", _expand(text, self.macros)) for text in spoken]
        return self._either([rf"(?<!\w)(?:{text})" if self.script != "han" else text for text in unnamed])

    @cached_property
    def pointers(self) -> re.Pattern[str]:
        """Words that point back to what was said: it, that one, eso."""
        return self._either(self._section("topics").get("pointers", ()))

    @cached_property
    def closings(self) -> re.Pattern[str]:
        """What people say when a matter is settled: thanks, bye."""
        return self._either(self._section("topics").get("closings", ()))

    @cached_property
    def requests(self) -> re.Pattern[str]:
        """How a new request begins: I need, can you, where is."""
        return self._either(self._section("topics").get("requests", ()))

    @cached_property
    def advice(self) -> re.Pattern[str]:
        """How people ask for something their preferences bear on: recommend, should I, what to eat."""
        return self._either(self._section("topics").get("advice", ()))

    @cached_property
    def past(self) -> re.Pattern[str]:
        """How people ask about what was: did I, do you remember, what is my."""
        return self._either(self._section("topics").get("past", ()))

    @cached_property
    def ahead(self) -> re.Pattern[str]:
        """How people ask about what is to be done: should I, can I, is it better to."""
        return self._either(self._section("topics").get("ahead", ()))

    @cached_property
    def naming(self) -> re.Pattern[str]:
        """How people ask for a name: who, where, which city, what book."""
        return self._either(self._section("topics").get("naming", ()))

    @cached_property
    def counting(self) -> re.Pattern[str]:
        """How people ask for a number: how many, how much, at what time."""
        return self._either(self._section("topics").get("counting", ()))

    @cached_property
    def number(self) -> re.Pattern[str]:
        """A number in digits or, from two on, in words."""
        words = [
            re.escape(fold(word))
            for entry in self._section("times").get("numbers", ())[1:]
            for word in entry.split("|")[:1]
        ]
        edge = "" if self.script == "han" else r"\b"
        return re.compile(rf"\d|{edge}(?:{'|'.join(words) or chr(0)}){edge}")

    @cached_property
    def you_said(self) -> re.Pattern[str]:
        """How people ask for what the assistant said: what did you suggest."""
        return self._either(self._section("topics").get("you_said", ()))

    @cached_property
    def same_courtesies(self) -> re.Pattern[str]:
        """What is said around a question without changing it: can you tell me, please."""
        return self._either(self._section("same").get("courtesies", ()))

    @cached_property
    def same_frames(self) -> dict[str, re.Pattern[str]]:
        """Ways to ask one thing, by the name of the thing: how can I, what is the best way to."""
        return {key: self._either(parts) for key, parts in self._section("same").get("frames", {}).items()}

    @cached_property
    def same_groups(self) -> dict[str, re.Pattern[str]]:
        """Small words that two questions must both have, or not: persons, moods, tenses, directions."""
        return {key: self._either(parts) for key, parts in self._section("same").get("groups", {}).items()}

    @cached_property
    def same_synonyms(self) -> dict[str, re.Pattern[str]]:
        """Other words for a word, by that word."""
        lists = self._section("same").get("synonyms", {})
        return {key: self._any_of(words) for key, words in lists.items()}

    @cached_property
    def same_exact(self) -> bool:
        """Whether every form of a word counts: where the person is in the ending of the verb, stems do not tell."""
        return bool(self._section("same").get("exact", False))

    @cached_property
    def same_joined(self) -> re.Pattern[str]:
        """Two words joined by one between them, and, or: they may change places."""
        inner = "|".join(map(re.escape, self._section("same").get("joins", ())))
        return re.compile(rf"\b([^\W\d_]+) ({inner}) ([^\W\d_]+)\b" if inner else r"(?!)")

    @cached_property
    def same_light(self) -> re.Pattern[str]:
        """Words that may be there or not: really, exactly."""
        return self._any_of(self._section("same").get("light", ()))

    @cached_property
    def same_fronted(self) -> re.Pattern[str]:
        """A question that begins with what it could end with: in Italy, how old ...?"""
        return self._either(self._section("same").get("fronted", ()))

    @cached_property
    def same_unstressed(self) -> re.Pattern[str]:
        """Words whose last accent tells nothing: left out or added, they are the same."""
        return self._either(self._section("same").get("unstressed", ()))

    @cached_property
    def same_numbers(self) -> dict[str, str]:
        """Numbers in words, by these; one is left out, which is an article in most languages."""
        names = [entry.split("|")[0] for entry in self._section("times").get("numbers", ())]
        return {fold(name): str(number) for number, name in enumerate(names, 1) if number > 1}

    @cached_property
    def known(self) -> dict[str, tuple[re.Pattern[str], ...]]:
        """Questions that are answered without a model, by what they ask; each pattern is a whole message."""
        found = self._section("known").get("questions", {})
        around = (r"[\s¿¡\"“«.,…-]*", r"[\s?？!！.。,…\"”»]*")
        return {
            key: tuple(self._compile(rf"{around[0]}{part}{around[1]}") for part in _listed(parts))
            for key, parts in found.items()
        }

    def asks(self, what: str, folded: str) -> re.Match[str] | None:
        """Whether a folded message, as it is or without courtesies, is a question that is answered without a model."""
        ways = (" ".join(folded.split()), " ".join(self.same_courtesies.sub(" ", folded).split()))
        found = (pattern.fullmatch(way) for way in ways for pattern in self.known.get(what, ()))
        return next((match for match in found if match), None)

    @cached_property
    def operators(self) -> dict[str, re.Pattern[str]]:
        """How people say plus, minus, times, by the sign."""
        found = {}
        for sign, words in self._section("known").get("operators", {}).items():
            inner = "|".join(re.escape(fold(word)) for word in sorted(words, key=len, reverse=True))
            found[sign] = re.compile(rf"(?<![a-z])(?:{inner})(?![a-z])")
        return found

    @cached_property
    def never_kept(self) -> re.Pattern[str]:
        """Words of questions whose answers are never kept (C3): of time, of feeling, of what changes, of acts."""
        known = self._section("known")
        words = [*self.words["now_words"], *self.words["emotional"]]
        words += [*known.get("changing", ()), *known.get("acting", ())]
        listed = self._any_of(words).pattern
        return self._either([listed, *known.get("requests", ())])

    @cached_property
    def steady(self) -> re.Pattern[str]:
        """What has words of `never_kept` or `leaning` in it and is nothing of the kind: room temperature."""
        return self._either(self._section("known").get("steady", ()))

    @cached_property
    def asked_unmarked(self) -> re.Pattern[str]:
        """Questions without their mark that are none to those who look for facts."""
        return self._either(self._section("known").get("asked", ()))

    @cached_property
    def leaning(self) -> re.Pattern[str]:
        """Questions that cannot be understood without what was said before them."""
        return self._either(self._section("known").get("leaning", ()))

    @cached_property
    def stands_alone(self) -> re.Pattern[str]:
        """Questions that can be understood by one word: those about the user, and those for a meaning."""
        return self._either(self._section("known").get("alone", ()))

    @cached_property
    def rejects(self) -> re.Pattern[str]:
        """How people say that an answer is not accepted: no, really; that is wrong."""
        return self._either(self._section("known").get("rejects", ()))

    @cached_property
    def reactions(self) -> dict[str, re.Pattern[str]]:
        """How people say that something worked, worked in part or failed, and how they thank (E1)."""
        return {key: self._either(self._section("episodes").get(key, ())) for key in REACTION_KEYS}

    @cached_property
    def task_words(self) -> dict[str, re.Pattern[str]]:
        """Words that tell what kind of task a conversation is about (E1)."""
        tasks = self._section("episodes").get("tasks", {})
        return {key: self._either(tasks.get(key, ())) for key in TASK_KEYS}

    @cached_property
    def asks_of_episodes(self) -> re.Pattern[str]:
        """How people ask what was talked about, done or decided together."""
        return self._either(self._section("episodes").get("asked", ()))

    @cached_property
    def domain_words(self) -> dict[str, re.Pattern[str]]:
        """Words that tell the domain of a text."""
        return {key: self._either(self._section("domains").get(key, ())) for key in DOMAINS}

    @cached_property
    def asides(self) -> re.Pattern[str]:
        """What is said behind a fact about having said it otherwise: its old value is no part of the fact."""
        return self._either(self._section("asides").get("said_otherwise", ()))

    @cached_property
    def doubt(self) -> re.Pattern[str]:
        """Words that lower confidence to low."""
        return self._any_of(self._source["words"].get("doubts", ()))

    @cached_property
    def hedge(self) -> re.Pattern[str]:
        """Words that lower confidence to medium."""
        return self._any_of(self._source["words"].get("hedges", ()))

    def is_named(self, spaced: str, phrase: str) -> bool:
        """Whether a phrase stands after an article or the like somewhere in a folded text with spaces between words."""
        return any(f" {word} {fold(phrase)} " in spaced for word in self.words["determiners"])

    def insists(self, text: str) -> bool:
        """Whether the user asks to keep even a credential."""
        return bool(self._insist.search(fold(text)))

    @cached_property
    def _insist(self) -> re.Pattern[str]:
        return self._any_of(self._source["words"].get("insist", ()))

    def check(self) -> None:
        """Raises now what would otherwise come up in the middle of a conversation."""
        try:
            for name in [name for name in vars(type(self)) if isinstance(getattr(type(self), name), cached_property)]:
                _check_macros(getattr(self, name))
        except (KeyError, TypeError, AttributeError, ValueError) as exc:
            raise LanguagePackError(f"The language pack {self.origin} is not as it should be: {exc!r}.") from exc

    def _section(self, name: str) -> Mapping[str, Any]:
        section: Mapping[str, Any] = self._source.get(name, {})
        return section

    def _rule(self, raw: Mapping[str, Any]) -> Rule:
        if raw["kind"] not in RULE_KINDS or raw.get("domain", "") not in ("", *DOMAINS):
            raise ValueError(f"kind {raw['kind']!r}, domain {raw.get('domain', '')!r}")
        patterns = tuple(self._compile(text) for text in _listed(raw["patterns"]))
        return Rule(
            kind=raw["kind"],
            attribute=raw.get("attribute", ""),
            single=raw.get("single", False),
            domain=raw.get("domain", ""),
            polarity=raw.get("polarity", 0),
            patterns=patterns,
        )

    def _either(self, parts: Any, suffix: str = "") -> re.Pattern[str]:
        either = "|".join(f"(?:{part})" for part in _listed(parts))
        return self._compile(f"(?:{either}){suffix}" if parts else r"(?!)")

    def _any_of(self, words: Any) -> re.Pattern[str]:
        if not words:
            return re.compile(r"(?!)")
        inner = "|".join(re.escape(fold(word)) for word in sorted(words, key=len, reverse=True))
        return self.compile_words(inner)

    def compile_words(self, text: str) -> re.Pattern[str]:
        """A pattern of whole words, compiled as all of the pack; where no spaces are written, of characters."""
        return self._patterns.compile(f"(?:{text})" if self.script == "han" else rf"(?<!\w)(?:{text})(?!\w)")

    def _compile(self, text: str) -> re.Pattern[str]:
        try:
            return self._patterns.compile(_expand(text, self.macros))
        except re.error as exc:
            raise LanguagePackError(f"The language pack {self.origin} has a bad pattern: {text!r} ({exc}).") from exc


def _check_macros(found: Any) -> None:
    if isinstance(found, re.Pattern) and (unknown := re.search(r"\{[A-Za-z_]+\}", found.pattern)):
        raise ValueError(f"there is no macro {unknown[0]} before it is used")
    if isinstance(found, Rule):
        found = found.patterns
    for part in found.values() if isinstance(found, dict) else found if isinstance(found, tuple) else ():
        _check_macros(part)


def _listed(parts: Any) -> Any:
    if isinstance(parts, str):  # would be taken apart into its letters
        raise TypeError(f"{parts!r} should be a list")
    return parts


def _expand(text: str, macros: Mapping[str, str]) -> str:
    return re.sub(
        r"\{([A-Za-z_]+)\}", lambda match: f"(?:{macros[match[1]]})" if match[1] in macros else match[0], text
    )


def well_formed(text: str) -> str:
    """The text as it can be stored and compared: accents joined to their letters, no NUL, no half characters."""
    if text.isascii():
        return text.replace("\0", "")
    return unicodedata.normalize("NFC", re.sub(r"[\ud800-\udfff]", "\ufffd", text)).replace("\0", "")


def fold(text: str) -> str:
    """Lower case without accents, plain quotes and simplified Chinese; every character stays at its place."""
    if text.isascii():
        return text.lower()
    return "".join(map(_fold_character, text.translate(_FOLD_PUNCTUATION)))


@cache
def _fold_character(character: str) -> str:
    variant = _variants().get(character)
    if variant:
        return variant
    if "\uac00" <= character <= "\ud7a3":  # a Hangul syllable is a letter, not a base with marks
        return character
    base = unicodedata.normalize("NFKD", character)[:1] if len(character.lower()) == 1 else character
    base = _variants().get(base, base)
    return base.lower() if len(base.lower()) == 1 else character


@cache
def _variants() -> dict[str, str]:
    """Characters written in two ways (traditional, simplified), from the shipped packs."""
    text = resources.files("prompts").joinpath("languages", "variants.txt").read_text("utf-8")
    return {pair[0]: pair[1] for pair in text.split() if len(pair) == 2}


_TOKEN = re.compile(r"[\u3400-\u9fff\uf900-\ufaff]|[^\W_\u3400-\u9fff\uf900-\ufaff]+")


def words_of(text: str) -> list[str]:
    """The folded words of a text; every Han character is a word."""
    return _TOKEN.findall(fold(text))


def content_words(text: str, function_words: frozenset[str]) -> list[str]:
    """The words of a text as they are written, in lower case, without function words (unless there are no others)."""
    folded = fold(text)
    spans = [(match[0], match.span()) for match in _TOKEN.finditer(folded)]
    kept = [span for word, span in spans if word not in function_words] or [span for _, span in spans]
    return [text[start:end].lower() for start, end in kept]


@cache
def shipped_packs() -> Mapping[str, LanguagePack]:
    """The packs that come with Olvido, by code."""
    return _read_packs(resources.files("prompts").joinpath("languages"))


def load_packs(folder: Path | None = None) -> Mapping[str, LanguagePack]:
    """The shipped packs and those of the user's own folder; one with the same code replaces the shipped one."""
    if folder is None or not folder.is_dir():
        return shipped_packs()
    own = _read_packs(folder)
    for pack in own.values():
        pack.check()
    return {**shipped_packs(), **own}


def _read_packs(folder: Any) -> Mapping[str, LanguagePack]:
    packs: dict[str, LanguagePack] = {}
    for file in sorted(folder.iterdir(), key=lambda entry: entry.name):
        if file.name.endswith(".toml"):
            try:
                source = parsed(file) if isinstance(file, Path) else tomllib.loads(file.read_text("utf-8"))
            except (tomllib.TOMLDecodeError, UnicodeDecodeError) as exc:
                raise LanguagePackError(f"The language pack {file.name} is not valid TOML: {exc}.") from exc
            pack = LanguagePack(source, file.name, file if isinstance(file, Path) else None)
            packs[pack.code] = pack
    return packs


def detect(text: str, fallback: str | None = None, packs: Mapping[str, LanguagePack] | None = None) -> str:
    """The language of a message; of one too short to tell, the fallback (the chat's language)."""
    packs = packs or shipped_packs()
    han = len(_HAN.findall(text))
    letters = sum(character.isalpha() for character in text)
    if han and han * 3 >= letters and not _KANA.search(text):
        code = next((pack.code for pack in packs.values() if pack.script == "han"), None)
        if code:
            return code
    scores = _function_word_scores(text, packs)
    best = max(scores, key=lambda code: scores[code])
    rest = max((score for code, score in scores.items() if code != best), default=0.0)
    if scores[best] >= 0.5 and scores[best] >= 1.4 * rest:
        return best
    if len(_WORD.findall(text)) >= 4:
        guess, certainty = _guess(text, tuple(packs))
        if certainty >= 0.9:
            return guess
    if fallback in packs:
        return str(fallback)
    return best if scores[best] > rest else _guess(text, tuple(packs))[0]


def chat_language(text: str, before: str, packs: Mapping[str, LanguagePack]) -> str:
    """The language a chat is in after a message, which short messages and our own words follow.

    It changes only with a message that is clearly in another one: a single telling word may be a name (Ben) or a word
    of both (come), so it has to be a greeting, or the letters of the whole have to speak for the same language.
    """
    spoken = detect(text, before, packs)
    pack = packs[spoken]
    if spoken == before or before not in packs:
        return spoken
    words = words_of(text)
    if pack.script == "han":
        return spoken if len(words) > 1 else before
    guess, certainty = _guess(text, tuple(packs))
    several = _function_word_scores(text, packs)[spoken] >= _SEVERAL_WORDS
    greets = any(word in pack.words["greetings"] and word not in packs[before].words["greetings"] for word in words)
    return spoken if several or greets or (guess == spoken and certainty >= 0.5) else before


_SEVERAL_WORDS = 1.3  # what more than one telling word scores


def _function_word_scores(text: str, packs: Mapping[str, LanguagePack]) -> dict[str, float]:
    """How strongly the words and letters of a text speak for each language; a word of two languages counts half."""
    scores = dict.fromkeys(packs, 0.0)
    folded = fold(text)
    for word in {piece for match in _WORD.finditer(folded) for piece in (match[0], *match[0].split("'"))}:
        owners = [code for code, pack in packs.items() if any(word in pack.words[key] for key in _TELLING)]
        for code in owners:
            scores[code] += 1 / len(owners) ** 1.5
    lower = " ".join(word for word in text.split() if not word[:1].isupper())  # names keep their letters anywhere
    for code, pack in packs.items():
        letters = [letter for letter in pack.letters if letter in text.lower()]
        scores[code] += sum(0.8 if letter in lower else 0.4 for letter in letters)
    return scores


_TELLING = ("function_words", "greetings", "filler", "question_words", "negations")


@cache
def _identifier(codes: tuple[str, ...]) -> Any:
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    identifier = LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
    identifier.set_languages([code for code in codes if code in identifier.labels])
    return identifier


def _guess(text: str, codes: tuple[str, ...]) -> tuple[str, float]:
    if not any(character.isalpha() for character in text):
        return ("en" if "en" in codes else codes[0]), 0.0
    code, certainty = _identifier(codes).classify(text[:2000])
    return str(code), float(certainty)
