"""The dialogues every way is asked about: dated sessions, and questions with the words that answer them."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from bench.coverage import Said, key_sentence
from bench.recall import WRITTEN, locomo_turns


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """One sitting: its date, and who says what in which role."""

    at: datetime
    turns: Sequence[tuple[str, Said]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A question and, for each turn that answers it, the content words of its key sentence."""

    text: str
    keys: Sequence[frozenset[str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialogue:
    """A talk over months."""

    name: str
    language: str
    sessions: Sequence[Session]
    questions: Sequence[Question]

    @property
    def turns(self) -> int:
        """How many messages it has."""
        return sum(len(session.turns) for session in self.sessions)


def written() -> list[Dialogue]:
    """Those written for the tests."""
    found = []
    for file in sorted(WRITTEN.glob("*.json")):
        dialogue = json.loads(file.read_text("utf-8"))
        language, speakers = dialogue["language"], dialogue["speakers"]
        sessions = [
            Session(
                at=datetime.fromisoformat(session["date"]).replace(tzinfo=UTC),
                turns=[
                    (role, Said(speaker=speakers[role], text=text, day=session["date"][:10]))
                    for role, text in session["turns"]
                ],
            )
            for session in dialogue["sessions"]
        ]
        questions = [
            Question(
                text=question["question"],
                keys=[
                    key_sentence(
                        sessions[session].turns[turn][1].text, question["question"], question["answer"], language
                    )
                    for session, turn in question["evidence"]
                ],
            )
            for question in dialogue["questions"]
        ]
        found.append(Dialogue(name=file.stem, language=language, sessions=sessions, questions=questions))
    return found


def locomo(file: Path) -> list[Dialogue]:
    """Those of LoCoMo, with the questions that have evidence."""
    found = []
    for number, dialogue in enumerate(json.loads(file.read_text("utf-8")), 1):
        turns, sessions = locomo_turns(dialogue["conversation"])
        questions = []
        for row in dialogue["qa"]:
            if row["category"] > 4:  # the fifth kind has no answer
                continue
            names = [name for part in row.get("evidence") or () for name in re.findall(r"D\d+:\d+", part)]
            texts = [turns[name].text for name in names if name in turns]
            keys = [key_sentence(text, row["question"], str(row.get("answer", ""))) for text in texts]
            if keys:
                questions.append(Question(text=row["question"], keys=keys))
        dated = [Session(at=at, turns=said) for at, said in sessions]
        found.append(Dialogue(name=f"locomo{number}", language="en", sessions=dated, questions=questions))
    return found
