"""A written history: 300 requests in four languages with their answers, and for some what one might search by later.

One line a conversation: what was asked | what was answered | a later search for it.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from memory import Memory
from memory.embeddings import EmbeddedEmbedder
from memory.episodes import entry_of, rendered, tags_of
from memory.outcomes import most, outcome_of, signals_of
from memory.stores import episodes as rows
from memory.stores.index import stems
from memory.summarise import ExtractiveSummariser, render
from memory.testing import FakeClock
from memory.values import TASK_TYPES, Episode, Note, Turn

LANGUAGES = ("en", "es", "it", "zh")
DAYS = 300
OUTCOMES = ("success", "success", "failure", "partial", "unknown")
REACTIONS = {
    "en": ("That worked, thanks!", "Perfect, exactly what I needed.", "No, that did not work.", "It helped a bit.", ""),
    "es": ("¡Ya funciona, gracias!", "Quedó perfecto.", "No, eso no funcionó.", "Funciona a medias.", ""),
    "it": ("Ha funzionato, grazie!", "Perfetto, proprio quello che mi serviva.", "No, non ha funzionato.",
           "Ha funzionato solo in parte.", ""),
    "zh": ("解决了,谢谢!", "太好了,正是我要的。", "还是不行,没有用。", "好了一点,但是还有问题。", ""),
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Talk:
    """One conversation of the history."""

    language: str
    number: int
    asked: str
    answered: str
    query: str

    @property
    def outcome(self) -> str:
        """How the user says it went."""
        return OUTCOMES[self.number % len(OUTCOMES)]

    @property
    def said(self) -> list[str]:
        """The turns, the user's first."""
        reaction = REACTIONS[self.language][self.number % len(OUTCOMES)]
        return [self.asked, self.answered, *([reaction] if reaction else [])]

    @property
    def day(self) -> float:
        """When it took place, in days since the beginning."""
        return self.number * 4 + LANGUAGES.index(self.language)


def talks() -> list[Talk]:
    """All of them, in order of time."""
    return sorted((talk for language in LANGUAGES for talk in _read(language)), key=lambda talk: talk.day)


def _read(language: str) -> Iterator[Talk]:
    lines = (Path(__file__).parent / f"{language}.txt").read_text("utf-8").splitlines()
    for number, line in enumerate(lines):
        asked, answered, query, *_ = [*(part.strip() for part in line.split("|")), ""]
        yield Talk(language=language, number=number, asked=asked, answered=answered, query=query)


async def live_through(memory: Memory, clock: FakeClock) -> dict[str, Talk]:
    """All conversations at their time, as the episodes they become; returns which talk is which episode."""
    began = clock()
    summarise = ExtractiveSummariser(EmbeddedEmbedder(memory.packs, memory.limits), memory.packs)
    sessions = {language: await memory.open_session(chat=language, language=language) for language in LANGUAGES}
    made: list[tuple[Talk, Episode]] = []
    for talk in talks():
        at = began + timedelta(days=talk.day)
        turns = [_turn(talk, at, number, said) for number, said in enumerate(talk.said, 1)]
        notes, _ = render(await summarise(turns, talk.language), memory.limits)
        signals = signals_of(turns, memory.packs)
        note = Note(topic=notes.topic, discussed=notes.discussed, decisions=notes.decisions)
        topic, text = rendered([note], memory.limits)
        episode = Episode(
            id="",
            session_id=sessions[talk.language].id,
            channel="repl",
            chat=talk.language,
            first_turn=1000 + talk.number * 10,
            last_turn=1002 + talk.number * 10,
            turns=len(turns),
            began_at=at,
            ended_at=at + timedelta(minutes=2),
            language=talk.language,
            topic=topic,
            text=text,
            notes=(note,),
            trouble=signals.trouble,
            domain=most([signals.domains]),
            task_type=most([signals.tasks], TASK_TYPES) or "talk",
            tags=tags_of([note]),
            outcome=outcome_of(signals.verdicts, (), ()),
        )
        made.append((talk, episode))
    prepared = [await memory.index.prepare([entry_of(episode).text]) for _, episode in made]
    told: dict[str, Talk] = {}
    async with memory.database.transaction() as tx:
        for (talk, episode), vectors in zip(made, prepared, strict=True):
            stored = await rows.insert(tx, episode)
            words = stems(f"{talk.asked} {talk.answered}", memory.packs[talk.language])
            await memory.index.add(tx, [entry_of(stored, sorted(set(words)))], vectors)
            told[stored.id] = talk
    clock.now = began + timedelta(days=DAYS)
    return told


def _turn(talk: Talk, at: datetime, number: int, said: str) -> Turn:
    return Turn(
        id=number,
        session_id=1,
        turn_number=number,
        role="assistant" if number == 2 else "user",
        speaker="assistant" if number == 2 else "user",
        content=said,
        timestamp=at + timedelta(minutes=number),
        token_count=0,
        language=talk.language,
    )
