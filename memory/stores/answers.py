"""Answers that may be given again, as rows."""

from collections.abc import Iterable
from datetime import datetime

from memory.database import Database, Row, Transaction, View
from memory.stores import facts as fact_rows
from memory.values import Answer

Reader = Database | View


async def insert(tx: Transaction, answer: Answer) -> None:
    """Keeps an answer with the facts it rests on."""
    written = await tx.execute(
        "INSERT INTO answers (question, language, words, answer, session_id, turn_id, at) VALUES (?, ?, ?, ?, ?, ?, ?)",
        (
            answer.question,
            answer.language,
            answer.words,
            answer.answer,
            answer.session_id,
            answer.turn_id,
            answer.at.isoformat(),
        ),
    )
    await tx.execute_many(
        "INSERT INTO answer_facts VALUES (?, ?)", [(written.lastrowid, number) for number in _numbers(answer.facts)]
    )


async def recent(reader: Reader, language: str, since: datetime) -> list[Answer]:
    """The answers given since then in a language, newest first."""
    rows = await reader.fetch_all(
        "SELECT a.*, (SELECT group_concat('f' || fact_id) FROM answer_facts WHERE answer_id = a.id) AS facts "
        "FROM answers a WHERE language = ? AND at > ? ORDER BY id DESC",
        (language, since.isoformat()),
    )
    return [_answer(row) for row in rows]


async def given_last(reader: Reader, session_id: int) -> Answer | None:
    """The answer the assistant's last turn of a session gave, if it is one that may be given again."""
    row = await reader.fetch_one(
        "SELECT *, NULL AS facts FROM answers WHERE turn_id = "
        "(SELECT max(id) FROM turns WHERE session_id = ? AND role = 'assistant')",
        (session_id,),
    )
    return _answer(row) if row else None


async def given_to(reader: Reader, turn_id: int) -> Answer | None:
    """The same for the answer to a turn of the user."""
    row = await reader.fetch_one(
        "SELECT *, NULL AS facts FROM answers WHERE turn_id = (SELECT min(id) FROM turns WHERE id > ?1 "
        "AND role = 'assistant' AND session_id = (SELECT session_id FROM turns WHERE id = ?1))",
        (turn_id,),
    )
    return _answer(row) if row else None


async def mark_served(tx: Transaction, answer_id: int, session_id: int, turn_id: int) -> None:
    """It was given again, in this turn."""
    await tx.execute(
        "UPDATE answers SET served = 1, session_id = ?, turn_id = ? WHERE id = ?", (session_id, turn_id, answer_id)
    )


async def delete(tx: Transaction, answer_ids: Iterable[int]) -> None:
    """These are not given again."""
    await tx.execute_many("DELETE FROM answers WHERE id = ?", [(answer_id,) for answer_id in answer_ids])


async def expire(tx: Transaction, before: datetime) -> None:
    """Those given before then are not given again."""
    await tx.execute("DELETE FROM answers WHERE at <= ?", (before.isoformat(),))


async def any_before(reader: Reader, before: datetime) -> bool:
    """Whether there is anything to expire."""
    return await reader.fetch_value("SELECT 1 FROM answers WHERE at <= ? LIMIT 1", (before.isoformat(),)) is not None


async def delete_all(tx: Transaction) -> None:
    """None is given again: something was forgotten that may stand in any of them."""
    await tx.execute("DELETE FROM answers")


def _numbers(fact_ids: Iterable[str]) -> list[int]:
    return [number for number in map(fact_rows.number_of, sorted(set(fact_ids))) if number is not None]


def _answer(row: Row) -> Answer:
    return Answer(
        id=row["id"],
        question=row["question"],
        language=row["language"],
        words=row["words"],
        answer=row["answer"],
        session_id=row["session_id"],
        turn_id=row["turn_id"],
        at=datetime.fromisoformat(row["at"]),
        served=bool(row["served"]),
        facts=frozenset((row["facts"] or "").split(",")) - {""},
    )
