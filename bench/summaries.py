"""Summaries without a model: of written segments, how often a person's topic, decisions and open question are there."""

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from bench.report import arguments, program, save, table
from memory.embeddings import EmbeddedEmbedder
from memory.language import fold, load_packs
from memory.limits import Limits
from memory.summarise import ExtractiveSummariser, Notes, render
from memory.tokens import count_tokens
from memory.values import Turn

SEGMENTS = Path(__file__).parents[1] / "tests" / "memory" / "segments.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """A segment and what a person would note of it; of the topic words any one will do, of a decision's all."""

    language: str
    turns: tuple[Turn, ...]
    topic: tuple[str, ...]
    decisions: tuple[tuple[str, ...], ...]
    open: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """What was found of one segment."""

    language: str
    line: str
    tokens: int
    topic: bool
    mentioned: bool  # a topic word stands anywhere in the line
    decisions: int
    decisions_wanted: int
    invented: bool  # a decision where there is none
    open: bool
    open_wanted: bool


def read(file: Path = SEGMENTS) -> list[Written]:
    """The segments whose language has a pack."""
    return [
        Written(
            language=row["language"],
            turns=tuple(_turn(number, turn) for number, turn in enumerate(row["turns"], 1)),
            topic=tuple(row["topic"]),
            decisions=tuple(tuple(decision["words"]) for decision in row["decisions"]),
            open=tuple(row["open"]),
        )
        for row in json.loads(file.read_text("utf-8"))
        if row["language"] in load_packs()
    ]


def _turn(number: int, turn: dict[str, str]) -> Turn:
    role = turn["role"]
    return Turn(
        id=number,
        session_id=1,
        turn_number=number,
        role=role,  # type: ignore[arg-type]
        speaker=role,
        content=turn["content"],
        timestamp=datetime(2026, 1, 1, tzinfo=UTC),
        token_count=count_tokens(turn["content"]),
    )


async def judge(segments: Sequence[Written]) -> list[Judged]:
    """Has every segment summarised as compression does it, and compares the stored line."""
    packs, limits = load_packs(), Limits()
    summariser = ExtractiveSummariser(EmbeddedEmbedder(packs, limits), packs)
    judged = []
    for segment in segments:
        notes, line = render(await summariser(segment.turns, segment.language), limits)
        judged.append(_judged(segment, notes, line))
    return judged


def _judged(segment: Written, notes: Notes, line: str) -> Judged:
    decided = fold(" / ".join((*notes.decisions, notes.outcome)))
    asked = fold(" / ".join(notes.open_questions))
    return Judged(
        language=segment.language,
        line=line,
        tokens=count_tokens(line),
        topic=any(fold(word) in fold(notes.topic) for word in segment.topic),
        mentioned=any(fold(word) in fold(line) for word in segment.topic),
        decisions=sum(all(fold(word) in decided for word in words) for words in segment.decisions),
        decisions_wanted=len(segment.decisions),
        invented=not segment.decisions and bool(notes.decisions),
        open=bool(segment.open) and any(fold(word) in asked for word in segment.open),
        open_wanted=bool(segment.open),
    )


def shares(judged: Sequence[Judged]) -> dict[str, float]:
    """The shares found among these."""

    def share(found: Sequence[float], wanted: Sequence[float]) -> float:
        return sum(found) / max(1, sum(wanted))

    undecided = [each for each in judged if not each.decisions_wanted]
    return {
        "topic": share([each.topic for each in judged], [1] * len(judged)),
        "topic anywhere": share([each.mentioned for each in judged], [1] * len(judged)),
        "decisions": share([each.decisions for each in judged], [each.decisions_wanted for each in judged]),
        "invented decisions": share([each.invented for each in undecided], [1] * len(undecided)),
        "open questions": share(
            [each.open for each in judged if each.open_wanted], [1 for each in judged if each.open_wanted]
        ),
        "most tokens": float(max((each.tokens for each in judged), default=0)),
    }


def main(argv: Sequence[str]) -> dict[str, float]:
    """Summarise every segment; print the shares for each language and, in full, the lines."""
    parser = arguments(__doc__, full="print every line as well")
    parser.add_argument("file", nargs="?", type=Path, default=SEGMENTS, metavar="FILE")
    options = parser.parse_args(argv)
    judged = asyncio.run(judge(read(options.file)))
    rows: list[list[object]] = []
    result: dict[str, float] = {}
    for language in [*dict.fromkeys(each.language for each in judged), "all"]:
        own = [each for each in judged if language in (each.language, "all")]
        figures = shares(own)
        rows.append([language, len(own), *figures.values()])
        result |= {f"{language}, {name}": round(value, 4) for name, value in figures.items()}
    print(table(["language", "segments", *figures], rows))
    if options.full:
        marks = {True: "+", False: "-"}
        for each in judged:
            print(f"{each.language} {marks[each.topic]} {each.decisions}/{each.decisions_wanted} {each.line}")
    save(result, options.json)
    return result


if __name__ == "__main__":
    program(main)
