"""Summaries by the configured model (S5): notes under a JSON schema; whatever is wrong with them is raised."""

from collections.abc import Sequence
from importlib import resources
from typing import Annotated

from pydantic import BaseModel, ConfigDict, StringConstraints

from assistant.accounting import account_summary, is_spent
from assistant.errors import CeilingReached
from assistant.model import ChatModel
from memory import Memory
from memory.marks import neutralise
from memory.summarise import Notes
from memory.tokens import both_ends
from memory.values import Turn

LONGEST_TURN = 2000  # characters; a longer one is pasted, and its two ends tell what it is
REPLY_TOKENS = 300

Line = Annotated[str, StringConstraints(strip_whitespace=True, max_length=300)]


class SegmentNotes(BaseModel):
    """What the model has to fill in; every key is there, and may be empty."""

    model_config = ConfigDict(extra="forbid", strict=True)

    topic: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=300)]
    discussed: list[Line]
    outcome: Line
    decisions: list[Line]
    open_questions: list[Line]


class ModelSummariser:
    """Has a model take the notes; the engine falls back to its own when this raises, or is late."""

    def __init__(self, model: ChatModel) -> None:
        self._model = model
        self.memory: Memory | None = None  # whose account it goes to

    async def __call__(self, turns: Sequence[Turn], language: str) -> Notes:
        """The notes of a segment."""
        lines = [f"{turn.role}: {neutralise(both_ends(turn.content, LONGEST_TURN))}" for turn in turns]
        messages = [
            {"role": "system", "content": _task()},
            {"role": "user", "content": f"The chat, in “{language}”:\n\n" + "\n".join(lines)},
        ]
        if self.memory is not None and await is_spent(self.memory, self._model.settings):
            raise CeilingReached("The day's ceiling is reached.")
        reply = await self._model.complete_json(messages, SegmentNotes, max_tokens=REPLY_TOKENS)
        if self.memory is not None:
            await account_summary(self.memory, self._model.settings, reply)
        notes = reply.value
        return Notes(
            topic=notes.topic,
            discussed=_said(notes.discussed),
            outcome=notes.outcome,
            decisions=_said(notes.decisions),
            open_questions=_said(notes.open_questions),
        )


def summariser_for(model: ChatModel) -> ModelSummariser | None:
    """The summariser of a model that may write memory; None for the embedded one, and where the settings say so."""
    return ModelSummariser(model) if model.writes_summaries else None


def _task() -> str:
    return resources.files("prompts").joinpath("tasks", "summary.md").read_text("utf-8").strip()


def _said(lines: Sequence[str]) -> tuple[str, ...]:
    return tuple(line for line in lines if line)
