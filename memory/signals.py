"""What a message says that is worth keeping as a fact (F2): deterministic, from the user's own words only.

`extract` cuts away what is not the user speaking (code, quotes, forwards), splits the rest into sentences and
clauses, and tries the rules of the language's pack at the start of each clause. What no rule knows, and what only a
weak rule takes for a declaration, is heard by the learned second opinion (opinion.py).
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from memory import opinion
from memory.language import LanguagePack, Rule, detect, fold, load_packs
from memory.limits import Limits
from memory.secrets import find_secret
from memory.values import Confidence, Domain, FactDraft

MAX_FACT_CHARACTERS = 300

_FENCE = re.compile(r"```.*?(?:```|\Z)|~~~.*?(?:~~~|\Z)", re.DOTALL)
_INLINE_CODE = re.compile(r"`[^`\n]+`")
_URL = re.compile(r"\b(?:https?://|www\.)\S+")
_QUOTED_LINE = re.compile(r"^[ \t]*(?:>|&gt;|\|)[^\n]*$", re.MULTILINE)
_QUOTED_SPAN = re.compile(
    r"\"[^\"\n]{1,600}\"|“[^”]{1,600}”|«[^»]{1,600}»|「[^」]{1,600}」|『[^』]{1,600}』|"
    r"(?<!\w)'[^'\n]{12,600}'(?!\w)|‘[^’]{12,600}’(?!\w)"
)
_CODE_LINE = re.compile(
    r"^\s*(?:[$#%]\s+\w|git |sudo |pip |npm |docker |curl |"
    r"select\b.*\bfrom\b|insert into|update \w+ set|def \w+\(|class \w+[:(]|import \w+|from \w+ import|"
    r"(?:const|let|var) \S+ ?=|(?:if|for|while) ?\(.*[){};]\s*$|(?:console\.\w+|print)\(|"
    r"(?:if|for|while|return|public|private|static|function|print|echo)\b.*"
    r"(?:[;{}]\s*$|[)\]]:\s*$|==|!=|\+=|&&|\|\||=>)|"
    r"\[?\d{4}-\d\d-\d\d[ t]\d\d:\d\d|<\/?\w+[^>]*>|[{}\[\]]\s*$|[\w.]+\s*=\s*[\"'{\[(]|"
    r"\w+\([\"'].*\)|[\w-]+:\s*[\"'{\[]|\{\s*\"|//|/\*|#\w+ )"
)
_SENTENCE_END = re.compile(r"(?:[.!?]+[\"')\]]*(?=\s|$)|[。！？!?]+|…+(?![…”`])|\n+)")
_ABBREVIATION = re.compile(
    r"\b(?:dr|dra|mr|mrs|ms|st|sr|sra|srta|sig|ing|prof|vs|etc|e\.g|i\.e|p\.ej|ej|av|avv|dott|ssa|d\.c|nr|ud|uds|"
    r"approx|jan|feb|mar|apr|jun|jul|aug|sep|sept|oct|nov|dec)\.$"
)
_CLAUSE_BREAK = re.compile(r"[,;:(，；：（、]+\s*|\s+-+\s+|\s(?=\S)")
_BLANK = re.compile(r"[\s,;:.!¡¿\"'(\-…，、：]*")
# a message is read by people, so nobody needs more; without these a hostile one could keep us busy
_MOST_OPENERS, _MOST_CLAUSES, _LONGEST_SENTENCE, _BLOCKING_PART = 6, 60, 1_500, 3_000
_EMPTY_MATCH = next(re.finditer(r"", ""))
_EDGES = " \t\n,;:.!。，；：！、-–—()（）\"'“”…"


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A rule that matched at a place of a sentence."""

    rule: Rule
    start: int
    end: int
    match: re.Match[str]


def extract(
    text: str,
    language: str | None = None,
    packs: Mapping[str, LanguagePack] | None = None,
    limits: Limits | None = None,
) -> list[FactDraft]:
    """The facts a message of the user states."""
    packs, limits = packs or load_packs(), limits or Limits()
    own = own_words(text)
    if not own.strip():
        return []
    pack = packs[language if language and language in packs else detect(own, language, packs)]
    if pack.blocks["message"].search(fold(own[:_BLOCKING_PART])):
        return []
    asks = is_question(own, pack)
    drafts: list[FactDraft] = []
    carried = False
    for heard in _heard([whole[:_LONGEST_SENTENCE] for whole in sentences(own)]):
        drafts_here, carried = _from_sentence(heard, carried, pack, limits)
        if asks:
            drafts_here = [draft for draft in drafts_here if _outlasts_a_question(draft, heard, pack, limits)]
        drafts.extend(draft for draft in drafts_here if draft.fact not in {known.fact for known in drafts})
    return drafts


def _heard(parts: list[str]) -> Iterator[opinion.Heard]:
    """Each sentence with its neighbours."""
    for place, part in enumerate(parts):
        before, after = parts[place - 1] if place else "", parts[place + 1] if place + 1 < len(parts) else ""
        yield opinion.Heard(text=part, before=before, after=after, place=place, sentences=len(parts))


def _outlasts_a_question(draft: FactDraft, heard: opinion.Heard, pack: LanguagePack, limits: Limits) -> bool:
    """Whether a fact counts although the message asks something: what people say of themselves to explain a question
    ("I'm a beginner, how do I ...?") is about the question; who they live with, or what they cannot eat, is not."""
    if draft.signalled or draft.kind in ("instruction", "decision") or draft.attribute in _LASTING:
        return True
    score = opinion.score(heard, pack) if draft.attribute in _TOLD_ASIDE else None
    return score is not None and score >= limits.fact_opinion_outlasts


_TOLD_ASIDE = frozenset({"job", "name", "family", "marital", "origin", "spoken language", "project"})
_LASTING = frozenset({"home", "pet", "child", "partner", "religion", "allergy", "diet", "health"})


def own_words(text: str) -> str:
    """The text without code, addresses, quotes and forwarded lines: what the user says in their own voice."""
    text = _FENCE.sub("\n", text[:20_000])
    text = _INLINE_CODE.sub("`…`", text)
    text = _URL.sub("…", text)
    text = _QUOTED_LINE.sub("", text)
    text = _QUOTED_SPAN.sub(_keep_short_quote, text)
    return "\n".join("" if _CODE_LINE.match(fold(line)) else line for line in text.split("\n"))


def without_quoted(text: str) -> str:
    """The text without forwarded lines and code: what somebody else said is not kept as their words."""
    return _QUOTED_LINE.sub("", _FENCE.sub("\n", text))


def _keep_short_quote(match: re.Match[str]) -> str:
    inner = match[0][1:-1].strip()
    short = len(inner.split()) <= 2 and len(inner) <= 20 and not re.search(r"[\u3400-\u9fff]{6}", inner)
    return match[0] if short else "“…”"


def sentences(text: str) -> list[str]:
    """The sentences of a text, end marks included."""
    found: list[str] = []
    start = 0
    for match in _SENTENCE_END.finditer(text):
        last_word = text[max(start, match.end() - 12) : match.end()]
        if _ABBREVIATION.search(fold(last_word)) and match.end() < len(text):
            continue
        piece = text[start : match.end()].strip()
        if piece.strip(_EDGES):
            found.append(piece)
        elif found and "?" in piece:
            found[-1] += piece
        start = match.end()
    tail = text[start:].strip()
    if tail.strip(_EDGES):
        found.append(tail)
    return found


def _from_sentence(
    heard: opinion.Heard, carried: bool, pack: LanguagePack, limits: Limits
) -> tuple[list[FactDraft], bool]:
    """The facts of one sentence, and whether it announces that the next one is to be kept."""
    sentence, previous = heard.text, heard.before
    folded = fold(sentence)
    if pack.blocks["reminder"].search(folded) or pack.blocks["sentence"].search(folded):
        return [], False
    limit = _declarative_part(folded, pack)
    if limit == 0:
        return [], False
    found = list(_matches(folded, limit, pack))
    if carried and not found:
        return _drafts(sentence, [_whole(folded, limit, pack)], limit, pack), False
    affirmed = next((hit for hit in found if hit.rule.kind == "affirms"), None)
    if affirmed and previous:
        return _drafts(previous, [_whole(fold(previous), len(previous), pack)], len(previous), pack), False
    announces = (
        bool(found) and found[-1].rule.kind == "signal" and not folded[found[-1].match.end() : limit].strip(_EDGES)
    )
    kept = [hit for hit in found if hit.rule.kind != "affirms"]
    if announces:
        kept = kept[:-1]
    kept = _joined(kept)
    return _drafts(sentence, _second_opinion(heard, folded, limit, kept, pack, limits), limit, pack), announces


def _joined(found: list[Found]) -> list[Found]:
    """Without clauses that only go on about the one before: "I'm a celebrant, I do weddings and funerals"."""
    kept: list[Found] = []
    for hit in found:
        if (
            kept
            and hit.rule.kind == kept[-1].rule.kind == "declaration"
            and hit.rule.attribute
            in (
                *_DETAILS,
                *({kept[-1].rule.attribute} & _TOLD_AT_LENGTH),
            )
        ):
            continue
        kept.append(hit)
    return kept


_DETAILS = ("habit", "")  # what a rule calls so after another fact is mostly a detail of it
_TOLD_AT_LENGTH = {"job", "home", "studies", "health", "schedule", "project"}


def _second_opinion(
    heard: opinion.Heard, folded: str, limit: int, found: list[Found], pack: LanguagePack, limits: Limits
) -> list[Found]:
    """What the rules found, without what hardly is a fact and with what they do not know but surely is one."""
    if not found:
        score = opinion.score(replace(heard, blocked=blocked_by(folded, pack)), pack)
        return [] if score is None or score < limits.fact_opinion_accepts else [_judged(folded, 0, limit, pack, limits)]
    if all(hit.rule.kind in _WEAK and hit.rule.attribute not in _HARMFUL_TO_MISS for hit in found):
        score = opinion.score(heard, pack)
        if score is not None and score <= limits.fact_opinion_refuses:
            return []
    lead = heard.text[: found[0].start]
    if len(lead.strip(_EDGES)) < _SHORTEST_LEAD:
        return found
    score = opinion.score(replace(heard, text=lead, blocked=blocked_by(fold(lead), pack)), pack)
    if score is None or score < limits.fact_opinion_accepts_lead:
        return found
    return [_judged(folded, 0, found[0].start, pack, limits), *found]


_WEAK = ("declaration", "change")
_HARMFUL_TO_MISS = ("allergy", "health", "diet")  # the rules alone decide
_SHORTEST_LEAD = 8  # characters; what stands before a fact is often only its occasion


def blocked_by(folded: str, pack: LanguagePack) -> str:
    """Which block of the pack stands against a declaration, if any."""
    return next((name for name in ("declaration", "clause") if pack.blocks[name].search(folded)), "")


def _judged(folded: str, start: int, end: int, pack: LanguagePack, limits: Limits) -> Found:
    """A sentence taken as a fact on the learned opinion, which also says what it is about."""
    start = _skip_openers(folded, start, pack)
    about = opinion.topics(folded[start:end], pack)
    changes = about.pop(opinion.CHANGE, 0.0) >= limits.fact_opinion_change
    best = max(about, key=lambda name: about[name], default="")
    topic = best if best and about[best] >= limits.fact_opinion_topic else ""
    kind = _TOPIC_KINDS.get(topic, "change" if changes else "declaration")
    polarity = {"like": 1, "dislike": -1}.get(topic, 0)
    rule = Rule(
        kind=kind,
        attribute="like" if polarity else topic,
        single=topic in opinion.SINGLE and about[topic] >= limits.fact_opinion_single,
        domain=_TOPIC_DOMAINS.get(topic, ""),
        polarity=polarity,
        patterns=(),
    )
    return Found(rule=rule, start=start, end=end, match=_EMPTY_MATCH)


_TOPIC_KINDS = {
    "decision": "decision",
    "answer style": "instruction",
    "answer language": "instruction",
    "form of address": "instruction",
    "units": "instruction",
}
_TOPIC_DOMAINS = {
    **dict.fromkeys(("job", "studies", "tool", "schedule"), "work"),
    **dict.fromkeys(
        ("like", "dislike", "favourite", "answer style", "answer language", "form of address"), "preferences"
    ),
    **dict.fromkeys(("units", "drinking"), "preferences"),
    "decision": "decisions",
    "project": "projects",
}


def _declarative_part(folded: str, pack: LanguagePack) -> int:
    """How much of the sentence is not a question: all, nothing, or what precedes its last clause."""
    if pack.blocks["question"].match(_without_openers(folded, pack)) or pack.blocks["tag_question"].search(folded):
        return 0
    if not re.search(r"[?？]\W*$", folded):
        return len(folded)
    if folded.lstrip().startswith("¿"):
        return 0
    breaks = [match.start() for match in re.finditer(r"[,;，；]|\s-+\s|¿", folded)]
    return breaks[-1] if breaks else 0


def is_question(text: str, pack: LanguagePack) -> bool:
    """Whether a message asks something."""
    return bool(asking(text, pack))


def asking(text: str, pack: LanguagePack) -> list[str]:
    """The sentences of a message that ask something."""
    return [
        sentence
        for sentence in sentences(own_words(text))
        if re.search(r"[?？]\W*$", sentence) or pack.blocks["question"].match(_without_openers(fold(sentence), pack))
    ]


def _without_openers(folded: str, pack: LanguagePack) -> str:
    start = _skip_openers(folded, 0, pack)
    return folded[start:]


def _skip_openers(folded: str, start: int, pack: LanguagePack) -> int:
    """Where the clause proper begins: past greetings, interjections and the like."""
    for _ in range(_MOST_OPENERS):
        blank = _BLANK.match(folded, start)
        start = blank.end() if blank else start
        opener = pack.openers.match(folded, start)
        if not opener or opener.end() == start or (pack.script != "han" and _inside_word(folded, opener.end())):
            break
        start = opener.end()
    return start


def _inside_word(folded: str, place: int) -> bool:
    return place < len(folded) and folded[place].isalnum() and folded[place - 1].isalnum()


def _clause_starts(folded: str, limit: int, pack: LanguagePack) -> Iterator[int]:
    yield 0
    for match in _CLAUSE_BREAK.finditer(folded, 0, limit):
        if match[0].strip():
            yield match.end()
            continue
        word = pack.conjunctions.match(folded, match.end())
        if word and (pack.script == "han" or not re.match(r"\w", folded[word.end() :])):
            yield word.end()
    if pack.script == "han":
        yield from (match.end() for match in re.finditer(r"\s+", folded[:limit]))


def _matches(folded: str, limit: int, pack: LanguagePack) -> Iterator[Found]:
    """The rules that hold, clause by clause; a signal takes all that follows it in the sentence."""
    blocked = bool(pack.blocks["declaration"].search(folded))
    covered = -1
    for clause in sorted(set(_clause_starts(folded, limit, pack)))[:_MOST_CLAUSES]:
        start = _skip_openers(folded, clause, pack)
        if start <= covered or start >= limit:
            continue
        hit = _first_rule(folded, start, limit, pack, blocked)
        if hit is None:
            continue
        yield hit
        covered = limit if hit.rule.kind == "signal" else start


def _first_rule(folded: str, start: int, limit: int, pack: LanguagePack, blocked: bool) -> Found | None:
    for rule in pack.rules:
        weak = rule.kind in ("declaration", "change")
        if weak and blocked:
            continue
        for pattern in rule.patterns:
            match = pattern.match(folded, start, limit)
            if (
                match
                and match.end() > start
                and not (weak and _clause_blocked(folded, start, match.end(), limit, pack))
            ):
                return Found(rule=rule, start=start, end=limit, match=match)
    return None


def _clause_blocked(folded: str, start: int, matched: int, limit: int, pack: LanguagePack) -> bool:
    """Whether the clause itself says that it is momentary, past or otherwise no state of things."""
    ending = re.compile(r"[,;(，；（]|\s-+\s").search(folded, matched, limit)
    return bool(pack.blocks["clause"].search(folded, start, ending.start() if ending else limit))


def _whole(folded: str, limit: int, pack: LanguagePack) -> Found:
    """A sentence taken as a fact because its neighbour says so."""
    start = _skip_openers(folded, 0, pack)
    rule = Rule(kind="signal", attribute="", single=False, domain="", polarity=0, patterns=())
    hit = _first_rule(folded, start, limit, pack, blocked=False)
    if hit and hit.rule.kind != "signal":
        return hit
    return Found(rule=rule, start=start, end=limit, match=_EMPTY_MATCH)


def _drafts(sentence: str, found: list[Found], limit: int, pack: LanguagePack) -> list[FactDraft]:
    folded = fold(sentence)
    drafts = []
    for index, hit in enumerate(found):
        end = found[index + 1].start if index + 1 < len(found) else limit
        if hit.rule.kind == "signal":
            drafts.extend(_from_signal(sentence, folded, hit, limit, pack))
        else:
            draft = _draft(sentence, folded, hit, end, pack)
            if draft:
                drafts.append(draft)
    return drafts


def _from_signal(sentence: str, folded: str, hit: Found, limit: int, pack: LanguagePack) -> list[FactDraft]:
    """What follows "remember that": what the rules know there, else all of it."""
    start = _skip_openers(folded, hit.match.end(), pack)
    if not folded[start:limit].strip(_EDGES):
        return []
    inner = _first_rule(folded, start, limit, pack, blocked=False)
    rule = inner.rule if inner and inner.rule.kind != "signal" else hit.rule
    found = Found(rule=rule, start=start, end=limit, match=inner.match if inner else hit.match)
    draft = _draft(sentence, folded, found, limit, pack)
    return [replace(draft, signalled=True)] if draft else []


def _draft(sentence: str, folded: str, hit: Found, end: int, pack: LanguagePack) -> FactDraft | None:
    text = _tidy(sentence[hit.start : end], pack)
    if not text or len(text) < 2:
        return None
    groups = hit.match.groupdict() if hit.match.re.groupindex else {}
    return FactDraft(
        fact=text,
        domain=_domain(hit.rule, folded[hit.start : end], pack),
        confidence=_confidence(folded[:end], pack),
        quote=text if find_secret(sentence) and not find_secret(text) else sentence.strip(),
        language=pack.code,
        kind="statement" if hit.rule.kind == "signal" else hit.rule.kind,  # type: ignore[arg-type]
        attribute=hit.rule.attribute,
        single=hit.rule.single,
        polarity=hit.rule.polarity,
        key=_piece(groups.get("key"), pack),
        value=_piece(groups.get("value"), pack),
        replaces=_piece(groups.get("old"), pack),
        pinned=hit.rule.kind == "instruction" or hit.rule.attribute == "allergy",
        secret=find_secret(text),
    )


def _tidy(text: str, pack: LanguagePack) -> str:
    """The clause as a short self-contained line: no trailing conjunction, capital first."""
    text = re.sub(r"\s+", " ", text).strip(_EDGES.replace("(", "").replace(")", "").replace("（", ""))
    if aside := pack.asides.search(fold(text)):
        text = text[: aside.start()].rstrip(_EDGES)
    trailing = re.compile(rf"(?:^|\s)(?:{pack.conjunctions.pattern})$") if pack.script != "han" else None
    if trailing:
        cut = trailing.search(fold(text))
        text = text[: cut.start()].rstrip(_EDGES) if cut else text
    if len(text) > MAX_FACT_CHARACTERS:
        cut_at = max(text.rfind(mark, 40, MAX_FACT_CHARACTERS) for mark in (",", ";", "，", " ", "；"))
        text = text[: cut_at if cut_at > 0 else MAX_FACT_CHARACTERS].rstrip(_EDGES)
    return text[:1].upper() + text[1:]


def _piece(text: str | None, pack: LanguagePack) -> str:
    """A named part of a match, up to the end of its clause."""
    if not text:
        return ""
    ending = _VALUE_END.search(text)
    text = text[: ending.start()] if ending else text
    if pack.script != "han":
        conjunction = re.search(rf"\s(?:{pack.conjunctions.pattern})\s", text)
        text = text[: conjunction.start()] if conjunction else text
    return text.strip(_EDGES)


_VALUE_END = re.compile(r"[,;:(!?，；：（。！？]|\.(?:\s|$)|\s-+\s")


def _confidence(folded: str, pack: LanguagePack) -> Confidence:
    if pack.doubt.search(folded):
        return "low"
    return "medium" if pack.hedge.search(folded) else "high"


def _domain(rule: Rule, folded: str, pack: LanguagePack) -> Domain:
    if rule.domain:
        return rule.domain  # type: ignore[return-value]
    counts = {domain: len(pattern.findall(folded)) for domain, pattern in pack.domain_words.items()}
    best = max(counts, key=lambda domain: counts[domain])
    return best if counts[best] else "personal"  # type: ignore[return-value]
