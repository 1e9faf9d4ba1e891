"""Statements (M1): what turns say, as short lines that stand alone, in the speaker's own words and language."""

import re
from collections.abc import Iterator, Mapping, Sequence

from memory.language import LanguagePack, detect, fold, words_of
from memory.limits import Limits
from memory.signals import sentences
from memory.stores.index import stems
from memory.tokens import count_tokens, cut_to_tokens
from memory.values import Statement, StatementKind, Turn
from memory.window import asks

_NAME = re.compile(r"(?<![.!?。]\s)(?<!^)\b[A-ZÀ-ÖØ-Þ][\w'’-]+(?:\s+[A-ZÀ-ÖØ-Þ][\w'’-]+)*")


def statements_of(turns: Sequence[Turn], packs: Mapping[str, LanguagePack], limits: Limits) -> list[Statement]:
    """The statements of a segment, in order; greetings and filler are not kept."""
    found: list[Statement] = []
    question = ""
    for turn in turns:
        language = detect(turn.content, turn.language, packs)
        pack = packs[language]
        for sentence in _pieces(turn.content, limits):
            if _is_filler(sentence, pack):
                continue
            if turn.role == "assistant" and sentence.rstrip().endswith(("?", "？")):
                continue  # kept with the answer, if there is one
            found.append(_statement(turn, sentence, question, pack, limits))
            question = ""
        question = _last_question(turn) if asks(turn) else ""
    return found


def _pieces(content: str, limits: Limits) -> Iterator[str]:
    """Sentences, each short enough for an item with its speaker."""
    room = limits.item_tokens * 2 // 3
    for sentence in sentences(content):
        rest = " ".join(sentence.split())
        while rest:
            piece = cut_to_tokens(rest, room)
            if len(piece) < len(rest) and " " in piece[len(piece) // 2 :]:
                piece = piece[: piece.rfind(" ")]
            if not piece:
                break
            yield piece
            rest = rest[len(piece) :].strip()


def _is_filler(sentence: str, pack: LanguagePack) -> bool:
    """Greetings, thanks and acknowledgements say nothing worth keeping."""
    empty = pack.words["greetings"] | pack.words["filler"] | pack.words["function_words"]
    folded = " ".join(words_of(sentence))
    for phrase in sorted(pack.words["greetings"] | pack.words["filler"], key=len, reverse=True):
        if " " in phrase:
            folded = folded.replace(phrase, " ")
    content = [word for word in words_of(folded) if word not in empty]
    return not content


def _statement(turn: Turn, sentence: str, question: str, pack: LanguagePack, limits: Limits) -> Statement:
    answer = question and len(stems(sentence, pack)) <= 4
    text = f"{turn.speaker}: {f'({question}) ' if answer else ''}{sentence}"
    if count_tokens(text) > limits.item_tokens:
        text = cut_to_tokens(f"{turn.speaker}: {sentence}", limits.item_tokens)
    return Statement(
        id="",
        kind=_kind(turn, sentence, pack),
        text=text,
        speaker=turn.speaker,
        session_id=turn.session_id,
        turn_id=turn.id,
        language=pack.code,
        entities=tuple(dict.fromkeys(match[0] for match in _NAME.finditer(sentence))),
        at=turn.timestamp,
    )


def _kind(turn: Turn, sentence: str, pack: LanguagePack) -> StatementKind:
    folded = fold(sentence)
    if turn.role == "assistant":
        return "observation"
    if pack.hedge.search(folded) or pack.domain_words["preferences"].search(folded):
        return "opinion"
    first_person = any(rule.patterns and any(p.match(folded) for p in rule.patterns) for rule in pack.rules)
    return "experience" if first_person else "world"


def _last_question(turn: Turn) -> str:
    found = [sentence for sentence in sentences(turn.content) if sentence.rstrip().endswith(("?", "？"))]
    return cut_to_tokens(" ".join(found[-1].split()), 40) if found else ""
