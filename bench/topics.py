"""Topic shift (T1), online: F1, Pk and how many boundaries are called, beside adjacent raw cosine below 0.4.

Takes JSON files: a list of {"utterances": [text, ...], "boundary": [0 or 1, ...]}, 1 where an utterance opens a topic.
"""

import asyncio
import json
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.report import Skipped, arguments, program, progress, save, table
from memory import Memory
from memory.embeddings import EmbeddedEmbedder
from memory.testing import FakeClock

RAW_THRESHOLD = 0.4
WHERE = (
    "name one or more files of dialogues with shift labels. Public ones: TIAGE (github.com/HuiyuanXie/tiage, small "
    'talk) and DialSeg711 (github.com/xyease/TADAM, tasks), as a JSON list of {"utterances": [...], "boundary": [...]}.'
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialogue:
    """One labelled conversation."""

    utterances: tuple[str, ...]
    boundary: tuple[bool, ...]


def read(file: Path) -> list[Dialogue]:
    """The dialogues of a file."""
    return [
        Dialogue(utterances=tuple(row["utterances"]), boundary=tuple(map(bool, row["boundary"])))
        for row in json.loads(file.read_text("utf-8"))
    ]


async def predict(dialogues: Sequence[Dialogue], folder: Path) -> list[list[bool]]:
    """What the engine says as each utterance arrives, alternating roles, a session per dialogue: no look-ahead."""
    found = []
    async with Memory.open(folder / "topics.db", clock=FakeClock()) as memory:
        for number, dialogue in enumerate(dialogues):
            session = await memory.open_session(chat=str(number))
            shifts = []
            for place, text in enumerate(dialogue.utterances):
                turn = await memory.add_turn(session.id, "assistant" if place % 2 else "user", text)
                shifts.append(turn.topic_shift)
            found.append(shifts)
            progress(number + 1, len(dialogues), "dialogue")
    return found


def predict_raw(dialogues: Sequence[Dialogue]) -> list[list[bool]]:
    """The naive rule: the cosine with the utterance before is below 0.4."""
    embedder = EmbeddedEmbedder()
    found = []
    for dialogue in dialogues:
        vectors = embedder.embed_now(dialogue.utterances)
        near = (vectors[1:] * vectors[:-1]).sum(axis=1)
        found.append([False, *(bool(cosine < RAW_THRESHOLD) for cosine in near)])
    return found


def scores(dialogues: Sequence[Dialogue], predicted: Sequence[Sequence[bool]]) -> dict[str, float]:
    """F1 over all places but the first of a dialogue, Pk, and boundaries called per boundary there is."""
    pairs = [
        (said, is_so)
        for dialogue, shifts in zip(dialogues, predicted, strict=True)
        for said, is_so in zip(shifts[1:], dialogue.boundary[1:], strict=True)
    ]
    right = sum(said and is_so for said, is_so in pairs)
    called, gold = sum(said for said, _ in pairs), sum(is_so for _, is_so in pairs)
    return {
        "F1": 2 * right / max(1, called + gold),
        "precision": right / max(1, called),
        "recall": right / max(1, gold),
        "Pk": _pk(dialogues, predicted),
        "count ratio": called / max(1, gold),
    }


def _pk(dialogues: Sequence[Dialogue], predicted: Sequence[Sequence[bool]]) -> float:
    """How often two places half a mean segment apart are wrongly judged to be of one topic, or not (Beeferman)."""
    turns = sum(len(dialogue.boundary) for dialogue in dialogues)
    segments = sum(1 + sum(dialogue.boundary[1:]) for dialogue in dialogues)
    reach = max(1, round(turns / segments / 2))
    wrong = total = 0
    for dialogue, shifts in zip(dialogues, predicted, strict=True):
        for start in range(len(shifts) - reach):
            within = slice(start + 1, start + reach + 1)
            wrong += any(shifts[within]) != any(dialogue.boundary[within])
            total += 1
    return wrong / max(1, total)


def main(argv: Sequence[str]) -> dict[str, float]:
    """Run every file named; print a table."""
    parser = arguments(__doc__, full="every dialogue, not the first 100 of each file")
    parser.add_argument("files", nargs="*", type=Path, metavar="FILE")
    options = parser.parse_args(argv)
    if not options.files:
        raise Skipped(WHERE)
    rows: list[list[object]] = []
    result: dict[str, float] = {}
    for file in options.files:
        dialogues = read(file)[: None if options.full else 100]
        with tempfile.TemporaryDirectory() as folder:
            ours = asyncio.run(predict(dialogues, Path(folder)))
        for rule, predicted in (("engine", ours), ("raw cosine < 0.4", predict_raw(dialogues))):
            figures = scores(dialogues, predicted)
            rows.append([file.stem, rule, len(dialogues), *figures.values()])
            result |= {f"{file.stem}, {rule}, {name}": round(value, 4) for name, value in figures.items()}
    print(table(["file", "rule", "dialogues", "F1", "precision", "recall", "Pk", "count ratio"], rows))
    save(result, options.json)
    return result


if __name__ == "__main__":
    program(main)
