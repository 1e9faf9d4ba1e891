"""Has every way live through every dialogue and asks it the questions."""

import asyncio
import statistics
import tempfile
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bench import peers
from bench.coverage import covers, words
from bench.peers import dialogues, with_mem0
from bench.peers.dialogues import Dialogue
from bench.peers.ways import WAYS, Way
from bench.report import Skipped, arguments, progress, save, steady, table
from memory.embeddings import EmbeddedEmbedder

BUDGETS = (1000, 2000)
VARIES: tuple[str, ...] = ()
RATIOS = ("times that of vectors",)


@dataclass(slots=True, kw_only=True)
class Measured:
    """What one way did over all dialogues."""

    right: dict[int, list[bool]] = field(default_factory=lambda: defaultdict(list))
    turns: int = 0
    turn_seconds: list[float] = field(default_factory=list)  # one figure a session
    question_seconds: list[float] = field(default_factory=list)
    stored_bytes: int = 0


async def live(way: Way, folder: Path, dialogue: Dialogue, found: Measured, name: str) -> None:
    """One way, one dialogue, all of its questions."""
    for session in dialogue.sessions:
        began = time.perf_counter()
        await way.remember(session)
        found.turn_seconds.append((time.perf_counter() - began) / len(session.turns))
    found.turns += dialogue.turns
    for number, question in enumerate(dialogue.questions, 1):
        for budget in BUDGETS:
            began = time.perf_counter()
            texts = await way.ask(question.text, budget)
            spent = time.perf_counter() - began
            held = [words(text, dialogue.language) for text in texts]
            found.right[budget].append(covers(question.keys, held))
        found.question_seconds.append(spent)  # of the last: what is looked up once a question is known by then
        progress(number, len(dialogue.questions), f"{name}, {dialogue.name}, question")
    await way.close()
    found.stored_bytes += bytes_in(folder)


def bytes_in(folder: Path) -> int:
    """What a way keeps."""
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


def compare(talks: Sequence[Dialogue], mem0_too: bool) -> dict[str, Measured]:
    """Every way over every dialogue."""
    EmbeddedEmbedder().embed_now(["what is loaded once is no part of an operation"])
    measured: dict[str, Measured] = {name: Measured() for name in WAYS}
    for talk in talks:
        for name, way in WAYS.items():
            with tempfile.TemporaryDirectory() as folder:
                asyncio.run(live(way(Path(folder), talk), Path(folder), talk, measured[name], name))
    if mem0_too:
        try:
            found = Measured()
            with with_mem0.environment() as python:
                for talk in talks:
                    with tempfile.TemporaryDirectory() as folder:
                        peer = with_mem0.Mem0(Path(folder), talk, python)
                        asyncio.run(live(peer, Path(folder), talk, found, "mem0"))
            measured["mem0"] = found
        except Skipped as reason:
            print(f"mem0 was left out: {reason}")
    return measured


def figures_of(measured: dict[str, Measured]) -> dict[str, float]:
    """Shares, bytes, and times as multiples of what plain vector search takes."""
    usual = measured["vectors"]
    result: dict[str, float] = {"questions": len(usual.question_seconds), "turns": usual.turns}
    for name, found in measured.items():
        for budget, right in found.right.items():
            result[f"{name}: covered at {budget:,} tokens, per cent"] = round(100 * statistics.mean(right), 1)
        result[f"{name}: bytes a turn"] = round(found.stored_bytes / found.turns)
        turn = steady(found.turn_seconds) / steady(usual.turn_seconds)
        question = steady(found.question_seconds) / steady(usual.question_seconds)
        result[f"{name}: time of a turn, times that of vectors"] = round(turn, 2)
        result[f"{name}: time of a question, times that of vectors"] = round(question, 2)
    return result


def show(result: dict[str, float], names: Sequence[str]) -> None:
    """One line a way."""
    headings = ["", *(f"covered, {budget:,} tokens" for budget in BUDGETS), "bytes a turn", "turn", "question"]
    rows: list[list[object]] = []
    for name in names:
        own = [value for figure, value in result.items() if figure.startswith(f"{name}: ")]
        rows.append([name, *own])
    print(f"\n{result['questions']:.0f} questions about {result['turns']:.0f} turns; times as multiples of vectors'\n")
    print(table(headings, rows))


def main(argv: Sequence[str]) -> dict[str, float]:
    """Compare; print a table."""
    parser = arguments(peers.__doc__, full="the same: every dialogue and question is measured anyway")
    parser.add_argument("--locomo", type=Path, metavar="FILE", help="long dialogues (github.com/snap-research/locomo)")
    parser.add_argument("--mem0", action="store_true", help="mem0 too; needs to install it, once, for some minutes")
    options = parser.parse_args(argv)
    if options.locomo and not options.locomo.is_file():
        raise Skipped(f"{options.locomo} is not there; name the file of dialogues with --locomo")
    measured = compare(dialogues.locomo(options.locomo) if options.locomo else dialogues.written(), options.mem0)
    result = figures_of(measured)
    show(result, list(measured))
    save(result, options.json)
    return result
