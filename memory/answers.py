"""Answers given before (C1, D1): kept for a day, given again to the same question, unless anything speaks against it.

An answer rests on the facts that belong to its question. When one of them changes it is deleted in that transaction, by
a trigger; and it is not given when other facts belong to the question now, or when something was said since that has to
do with it.
"""

from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime, timedelta, tzinfo

from memory.database import Database
from memory.facts import Facts
from memory.language import LanguagePack, fold
from memory.limits import Limits
from memory.ports import Clock
from memory.same_question import form, in_usual_order
from memory.signals import is_question
from memory.stores import answers as rows
from memory.stores import context as context_rows
from memory.stores import facts as fact_rows
from memory.stores import turns as turn_rows
from memory.stores.index import stems
from memory.times import spans, wants_newest
from memory.values import Answer, Turn

SameQuestion = Callable[[str, str], Awaitable[bool]]
_MISSPELT = 2  # words: how it is spelt, and how it is misspelt
_LONGEST = 400  # characters; a longer message is no question that comes again


class Answers:
    """What may be answered without a model because it was answered before."""

    def __init__(
        self,
        *,
        database: Database,
        facts: Facts,
        same_question: SameQuestion,
        packs: Mapping[str, LanguagePack],
        clock: Clock,
        zone: tzinfo,
        limits: Limits,
    ) -> None:
        self._database = database
        self._facts = facts
        self._same_question = same_question
        self._packs = packs
        self._clock = clock
        self._zone = zone
        self._limits = limits

    async def find(self, turn: Turn) -> Answer | None:
        """The answer to a user's turn that was given before; None when the model has to be asked."""
        if not self._may_be_kept(turn):
            return None
        for answer in await self._like(turn):
            if answer.turn_id < turn.id and await self._same_question(answer.question, turn.content):
                if not answer.served and await self._still_holds(answer, turn):
                    return answer
                async with self._database.transaction() as tx:
                    await rows.delete(tx, [answer.id])
        return None

    async def keep(self, turn: Turn, reply: Turn) -> None:
        """Remembers what the model answered, if it is something that may be answered so again."""
        if not self._may_be_kept(turn) or not reply.content.strip():
            return
        answer = Answer(
            id=0,
            question=turn.content,
            language=turn.language,
            words=self._words(turn),
            answer=reply.content,
            session_id=reply.session_id,
            turn_id=reply.id,
            at=self._clock(),
            facts=await self._facts_for(turn.content, turn.language),
        )
        before = [old.id for old in await self._like(turn) if await self._same_question(old.question, turn.content)]
        async with self._database.transaction() as tx:
            await rows.delete(tx, before)
            if not await fact_rows.is_buried(tx, _rejected(reply.content)):
                await rows.insert(tx, answer)

    async def served(self, answer: Answer, reply: Turn) -> None:
        """An answer was given again, in this turn; asked once more, the model answers."""
        async with self._database.transaction() as tx:
            await rows.mark_served(tx, answer.id, reply.session_id, reply.id)

    async def reject_last(self, session_id: int) -> None:
        """The user did not accept the last answer of a session: it is never given again."""
        await self._reject(await rows.given_last(self._database, session_id))

    async def reject_answer_to(self, turn_id: int) -> None:
        """The same for the answer to a turn of the user."""
        await self._reject(await rows.given_to(self._database, turn_id))

    async def _reject(self, answer: Answer | None) -> None:
        if answer is not None:
            async with self._database.transaction() as tx:
                await rows.delete(tx, [answer.id])
                await fact_rows.bury(tx, [_rejected(answer.answer)], self._clock())

    async def drop_all(self) -> None:
        """None of them is given again."""
        async with self._database.transaction() as tx:
            await rows.delete_all(tx)

    async def expire(self) -> None:
        """What is older than a day goes."""
        if await rows.any_before(self._database, self._oldest()):
            async with self._database.transaction() as tx:
                await rows.expire(tx, self._oldest())

    def _may_be_kept(self, turn: Turn) -> bool:
        """Whether a message asks something whose answer is the same tomorrow and in another talk (C3)."""
        pack, text = self._packs[turn.language], turn.content
        taught = turn.learned or turn.superseded or turn.unclear or turn.stale or turn.refused or turn.reminder_asked
        if taught or len(text) > _LONGEST or not self._asks(text, pack):
            return False
        folded = pack.steady.sub(" ", fold(text))
        today = self._clock().astimezone(self._zone).date()
        if pack.never_kept.search(folded) or pack.leaning.search(folded) or wants_newest(folded, pack):
            return False
        asked = form(text, pack)
        enough = 1 if pack.stands_alone.search(fold(text)) else 2 if pack.script != "han" else 3
        return len(asked.words) >= enough and not spans(text, today, pack)

    @staticmethod
    def _asks(text: str, pack: LanguagePack) -> bool:
        """Whether a message is a question; here that may be seen by less than where facts are looked for."""
        return is_question(text, pack) or bool(pack.asked_unmarked.search(in_usual_order(fold(text), pack)))

    async def _still_holds(self, answer: Answer, turn: Turn) -> bool:
        if answer.facts != await self._facts_for(answer.question, answer.language):
            return False
        pack = self._packs[turn.language]
        about = set(stems(answer.question, pack, pack.words["question_words"]))
        turns = await turn_rows.with_content(self._database)
        said = [other.content for other in turns if answer.turn_id < other.id < turn.id and other.role == "user"]
        said += await context_rows.told_between(self._database, answer.turn_id, turn.id)
        return not any(about & set(stems(text, pack)) for text in said if not is_question(text, pack))

    async def _like(self, turn: Turn) -> list[Answer]:
        """The answers to questions that may be the same: of the same words, but for one that may be misspelt."""
        words = set(self._words(turn).split())
        recent = await rows.recent(self._database, turn.language, self._oldest())
        return [answer for answer in recent if len(words ^ set(answer.words.split())) <= _MISSPELT]

    def _words(self, turn: Turn) -> str:
        """The same for all questions that may be the same."""
        return " ".join(sorted({*form(turn.content, self._packs[turn.language]).words}))

    async def _facts_for(self, question: str, language: str) -> frozenset[str]:
        """The facts that belong to a question, whatever was said lately."""
        return frozenset(chosen.fact.id for chosen in await self._facts.choose(question, (), language))

    def _oldest(self) -> datetime:
        return self._clock() - timedelta(seconds=self._limits.answer_ttl_seconds)


def _rejected(answer: str) -> str:
    """Under this name an answer is remembered as rejected, without its words."""
    return f"rejected answer: {' '.join(answer.split())}"
