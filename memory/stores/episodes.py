"""Episodes, their lives, their traces, and what tells how a conversation went, as rows."""

import json
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from memory.database import Database, Row, Transaction, View
from memory.language import fold
from memory.stores.context import Segment
from memory.stores.index import Among
from memory.values import Consolidation, Episode, Note, Outcome, Span, Spoken, Turn

Reader = Database | View
KEPT_APART = 2
_ALL = "SELECT e.*, l.* FROM episodes e JOIN episode_lives l ON l.episode_id = e.id"


@dataclass(frozen=True, slots=True, kw_only=True)
class Filters:
    """What an episode has to be to be found; what is not given does not matter. Ids, not ages, name moments."""

    domain: str | None = None
    task_type: str | None = None
    outcomes: Sequence[Outcome] = ()
    tool: str | None = None
    tag: str | None = None
    entity: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    text: str | None = None

    def where(self) -> tuple[str, list[Any]]:
        """The same as a condition on `e` and `l`: only episodes that stand for themselves and are not deleted."""
        parts = ["l.merged_into IS NULL", "l.deleted_at IS NULL"]
        given: list[Any] = []
        for column, value in (("e.domain", self.domain), ("e.task_type", self.task_type)):
            if value is not None:
                parts.append(f"{column} = ?")
                given.append(value)
        if self.outcomes:
            parts.append(f"l.outcome IN ({_marks(self.outcomes)})")
            given += self.outcomes
        for kind, name in (("tool", self.tool), ("tag", self.tag), ("entity", self.entity)):
            if name is not None:
                parts.append("instr(e.labels, ?) > 0")
                given.append(_label(kind, name))
        for comparison, moment in ((">=", self.since), ("<", self.until)):
            if moment is not None:
                parts.append(f"e.ended_at {comparison} ?")
                given.append(moment.isoformat())
        if self.text is not None:
            parts.append("instr(lower(e.text), lower(?)) > 0")
            given.append(self.text)
        return " AND ".join(parts), given


# -- closing topics


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """A summary that is not part of an episode yet."""

    id: int
    session_id: int
    channel: str
    chat: str
    first_turn: int
    last_turn: int
    language: str
    note: Note
    signals: Mapping[str, Any]


async def waiting_sessions(reader: Reader) -> list[int]:
    """Sessions with summaries that are not part of an episode yet."""
    rows = await reader.fetch_all("SELECT DISTINCT session_id FROM summaries WHERE episode_id IS NULL")
    return [row["session_id"] for row in rows]


async def waiting(reader: Reader, session_id: int | None = None) -> list[Waiting]:
    """Their summaries, in order."""
    where, given = ("", ()) if session_id is None else (" AND session_id = ?", (session_id,))
    rows = await reader.fetch_all(
        f"SELECT * FROM summaries WHERE episode_id IS NULL{where} ORDER BY session_id, first_turn", given
    )
    return [_waiting(row) for row in rows]


async def rewrite_signals(tx: Transaction, summary_id: int, signals: Mapping[str, Any]) -> None:
    """Some of the words in them are forgotten."""
    await tx.execute("UPDATE summaries SET signals = ? WHERE id = ?", (_json(signals), summary_id))


async def shifts(reader: Reader, session_id: int) -> list[int]:
    """The turns of a session with which the user opens a topic; an answer to it never does."""
    rows = await reader.fetch_all(
        "SELECT id FROM turns WHERE session_id = ? AND topic_shift = 1 AND role = 'user' ORDER BY id", (session_id,)
    )
    return [row["id"] for row in rows]


async def is_over(reader: Reader, session_id: int, first: int, before: int | None) -> bool:
    """Whether all turns from one on, up to the next topic or the end of a closed session, are compressed."""
    if before is None:
        closed = "SELECT 1 FROM sessions WHERE id = ? AND closed_at IS NOT NULL"
        if await reader.fetch_value(closed, (session_id,)) is None:
            return False
    left = await reader.fetch_value(
        "SELECT 1 FROM turns WHERE session_id = ? AND id >= ? AND (? IS NULL OR id < ?) "
        "AND summarized_at IS NULL LIMIT 1",
        (session_id, first, before, before),
    )
    return left is None


async def turn_after(reader: Reader, session_id: int, turn_id: int) -> Row | None:
    """The turn after another one: role, content and whether it opens a topic."""
    return await reader.fetch_one(
        "SELECT role, content, topic_shift FROM turns WHERE session_id = ? AND id > ? ORDER BY id LIMIT 1",
        (session_id, turn_id),
    )


async def statements_beside(reader: Reader, session_id: int, first: int, last: int) -> list[str]:
    """The statements of a session that are not from some of its turns."""
    rows = await reader.fetch_all(
        "SELECT id FROM statements WHERE session_id = ? AND turn_id NOT BETWEEN ? AND ? ORDER BY id",
        (session_id, first, last),
    )
    return [f"s{row['id']}" for row in rows]


async def span(reader: Reader, session_id: int, first: int, last: int) -> tuple[int, datetime, datetime]:
    """How many turns, from when to when."""
    row = await reader.fetch_one(
        "SELECT count(*) AS turns, min(timestamp) AS began, max(timestamp) AS ended "
        "FROM turns WHERE session_id = ? AND id BETWEEN ? AND ?",
        (session_id, first, last),
    )
    assert row is not None
    return row["turns"], datetime.fromisoformat(row["began"]), datetime.fromisoformat(row["ended"])


async def reactions(reader: Reader, session_id: int, first: int, last: int) -> list[int]:
    """What the user thought of the answers among some turns, in order."""
    rows = await reader.fetch_all(
        "SELECT r.value FROM reactions r JOIN turns t ON t.id = r.turn_id "
        "WHERE t.session_id = ? AND t.id BETWEEN ? AND ? ORDER BY r.at, t.id",
        (session_id, first, last),
    )
    return [row["value"] for row in rows]


async def tool_uses(reader: Reader, session_id: int, first: int, last: int) -> list[tuple[str, bool]]:
    """The tools of some turns, in order, and whether each failed."""
    rows = await reader.fetch_all(
        "SELECT u.tool, u.failed FROM tool_uses u JOIN turns t ON t.id = u.turn_id "
        "WHERE t.session_id = ? AND t.id BETWEEN ? AND ? ORDER BY u.id",
        (session_id, first, last),
    )
    return [(row["tool"], bool(row["failed"])) for row in rows]


async def add_tool_use(tx: Transaction, turn_id: int, tool: str, failed: bool) -> None:
    """A tool was used for an answer."""
    await tx.execute("INSERT INTO tool_uses (turn_id, tool, failed) VALUES (?, ?, ?)", (turn_id, tool, int(failed)))


async def attach(tx: Transaction, summary_ids: Sequence[int], episode_id: str) -> None:
    """Summaries are part of an episode from now on."""
    await tx.execute_many(
        "UPDATE summaries SET episode_id = ? WHERE id = ?", [(_number(episode_id), ref) for ref in summary_ids]
    )


async def past_slots(reader: Reader, slots: int) -> list[str]:
    """Summaries that left the slots of their chat and live on in an episode (S3), by id ("m3")."""
    rows = await reader.fetch_all(
        "SELECT id FROM (SELECT id, episode_id, row_number() OVER (PARTITION BY channel, chat ORDER BY id DESC) "
        "AS place FROM summaries) WHERE place > ? AND episode_id IS NOT NULL",
        (slots,),
    )
    return [f"m{row['id']}" for row in rows]


async def delete_summaries(tx: Transaction, ids: Sequence[str]) -> None:
    """They are gone from the slots."""
    await tx.execute_many("DELETE FROM summaries WHERE id = ?", [(_number(ref),) for ref in ids])


async def summaries_of(reader: Reader, session_id: int, first: int, last: int) -> list[str]:
    """The summaries of some turns, by id ("m3")."""
    rows = await reader.fetch_all(
        "SELECT id FROM summaries WHERE session_id = ? AND first_turn >= ? AND last_turn <= ?",
        (session_id, first, last),
    )
    return [f"m{row['id']}" for row in rows]


# -- episodes


async def insert(tx: Transaction, episode: Episode) -> Episode:
    """A new episode; one that comes with an id keeps it."""
    lists = (episode.tools, episode.tags, episode.entities)
    labels = [
        _label(kind, name) for kind, names in zip(("tool", "tag", "entity"), lists, strict=True) for name in names
    ]
    written = await tx.execute(
        "INSERT INTO episodes (id, session_id, channel, chat, first_turn, last_turn, turns, began_at, ended_at, "
        "language, topic, text, notes, trouble, domain, task_type, tools, tags, entities, labels) "
        f"VALUES ({_marks(range(20))})",
        (
            _number(episode.id) if episode.id else None,
            episode.session_id,
            episode.channel,
            episode.chat,
            episode.first_turn,
            episode.last_turn,
            episode.turns,
            episode.began_at.isoformat(),
            episode.ended_at.isoformat(),
            episode.language,
            episode.topic,
            episode.text,
            _json([asdict(note) for note in episode.notes]),
            episode.trouble,
            episode.domain,
            episode.task_type,
            *map(_json, lists),
            "".join(labels),
        ),
    )
    await tx.execute(
        "INSERT INTO episode_lives (episode_id, outcome, accesses, accessed_at) VALUES (?, ?, ?, ?)",
        (
            written.lastrowid,
            episode.outcome,
            episode.accesses,
            episode.accessed_at.isoformat() if episode.accessed_at else None,
        ),
    )
    [stored] = await with_ids(tx, [f"e{written.lastrowid}"])
    return stored


async def delete(tx: Transaction, ids: Sequence[str]) -> None:
    """The rows of episodes, with what hangs on them."""
    await tx.execute_many("DELETE FROM episodes WHERE id = ?", [(_number(ref),) for ref in ids])


async def with_ids(reader: Reader, ids: Sequence[str]) -> list[Episode]:
    """Episodes by id ("e12"), whatever their phase."""
    numbers = [_number(ref) for ref in ids]
    rows = await reader.fetch_all(f"{_ALL} WHERE e.id IN ({_marks(numbers)}) ORDER BY e.id", numbers)
    return [_episode(row) for row in rows]


async def found(reader: Reader, filters: Filters, limit: int, offset: int = 0) -> list[Episode]:
    """Episodes that are what they have to be, newest first."""
    where, given = filters.where()
    rows = await reader.fetch_all(
        f"{_ALL} WHERE {where} ORDER BY e.ended_at DESC, e.id DESC LIMIT ? OFFSET ?", (*given, limit, offset)
    )
    return [_episode(row) for row in rows]


async def deleted(reader: Reader, before: datetime | None = None) -> list[Episode]:
    """Episodes that wait to be erased; those deleted before a moment."""
    rows = await reader.fetch_all(
        f"{_ALL} WHERE l.deleted_at IS NOT NULL AND (? IS NULL OR l.deleted_at < ?) ORDER BY e.id",
        (before.isoformat() if before else None,) * 2,
    )
    return [_episode(row) for row in rows]


async def older_than(reader: Reader, moment: datetime) -> list[Episode]:
    """Episodes that ended before a moment and are not deleted."""
    rows = await reader.fetch_all(
        f"{_ALL} WHERE e.ended_at < ? AND l.deleted_at IS NULL ORDER BY e.id", (moment.isoformat(),)
    )
    return [_episode(row) for row in rows]


async def containing(reader: Reader, texts: Sequence[str]) -> list[Episode]:
    """Episodes in whose words one of these texts stands, whatever its case."""
    found: dict[int, Row] = {}
    for text in texts:
        rows = await reader.fetch_all(
            f"{_ALL} WHERE instr(lower(e.notes || e.text || e.trouble || e.tags || e.entities), lower(?)) > 0", (text,)
        )
        found |= {row["id"]: row for row in rows}
    return [_episode(row) for row in found.values()]


async def of_turn(reader: Reader, turn_id: int) -> Episode | None:
    """The episode a turn is part of."""
    row = await reader.fetch_one(
        f"{_ALL} WHERE e.session_id = (SELECT session_id FROM turns WHERE id = ?) "
        "AND ? BETWEEN e.first_turn AND e.last_turn "
        "AND e.id NOT IN (SELECT episode_id FROM consolidations) LIMIT 1",
        (turn_id, turn_id),
    )
    return _episode(row) if row else None


async def overlapping(reader: Reader, span: Span) -> list[Episode]:
    """The episodes, consolidated ones apart, that some turns are part of."""
    rows = await reader.fetch_all(
        f"{_ALL} WHERE e.session_id = ? AND e.first_turn <= ? AND e.last_turn >= ? "
        "AND e.id NOT IN (SELECT episode_id FROM consolidations) ORDER BY e.id",
        (span.session_id, span.last_turn, span.first_turn),
    )
    return [_episode(row) for row in rows]


async def fitting(reader: Reader, ids: Sequence[str], filters: Filters) -> set[str]:
    """Those of some episodes that are what they have to be."""
    where, given = filters.where()
    rows = await reader.fetch_all(
        "SELECT e.id FROM episodes e JOIN episode_lives l ON l.episode_id = e.id "
        f"WHERE e.id IN ({_marks(ids)}) AND {where}",
        [*map(_number, ids), *given],
    )
    return {f"e{row['id']}" for row in rows}


def among(filters: Filters) -> Among:
    """The same filters for a search in the index."""
    where, given = filters.where()
    return Among(
        sql="SELECT x.id FROM episodes e JOIN episode_lives l ON l.episode_id = e.id "
        f"JOIN entries x ON x.kind = 'episode' AND x.ref = 'e' || e.id WHERE {where}",
        parameters=tuple(given),
    )


async def set_outcome(tx: Transaction, episode_id: str, outcome: Outcome) -> None:
    """The user changed their mind about how it went."""
    await tx.execute("UPDATE episode_lives SET outcome = ? WHERE episode_id = ?", (outcome, _number(episode_id)))


async def count_access(tx: Transaction, episode_id: str, at: datetime) -> None:
    """The user had a look at an episode."""
    await tx.execute(
        "UPDATE episode_lives SET accesses = accesses + 1, accessed_at = ? WHERE episode_id = ?",
        (at.isoformat(), _number(episode_id)),
    )


async def add_accesses(tx: Transaction, episode_id: str, count: int) -> None:
    """Those of the consolidated episode that stood for it."""
    await tx.execute(
        "UPDATE episode_lives SET accesses = accesses + ? WHERE episode_id = ?", (count, _number(episode_id))
    )


async def count_reads(tx: Transaction) -> None:
    """Episodes that requests contained were read when the reply was stored."""
    read = "FROM used_items u WHERE u.counted = 0 AND u.section = 'recalled' AND u.item GLOB 'e[0-9]*'"
    await tx.execute(
        f"UPDATE episode_lives SET accesses = accesses + (SELECT count(*) {read} AND u.item = 'e' || episode_id), "
        f"accessed_at = (SELECT max(t.timestamp) FROM turns t WHERE t.id IN "
        f"(SELECT u.turn_id {read} AND u.item = 'e' || episode_id)) "
        f"WHERE episode_id IN (SELECT CAST(substr(u.item, 2) AS INTEGER) {read})"
    )


async def set_deleted(tx: Transaction, episode_id: str, at: datetime | None) -> None:
    """Deleted, or restored."""
    await tx.execute(
        "UPDATE episode_lives SET deleted_at = ? WHERE episode_id = ?",
        (at.isoformat() if at else None, _number(episode_id)),
    )


# -- consolidation


async def uncompared(reader: Reader, before: datetime, limit: int) -> list[Episode]:
    """Episodes that ended before a moment and were not compared with their neighbours yet, oldest first."""
    rows = await reader.fetch_all(
        f"{_ALL} WHERE l.compared = 0 AND e.ended_at < ? AND l.merged_into IS NULL AND l.deleted_at IS NULL "
        "ORDER BY e.ended_at, e.id LIMIT ?",
        (before.isoformat(), limit),
    )
    return [_episode(row) for row in rows]


async def set_compared(tx: Transaction, ids: Sequence[str], state: int = 1) -> None:
    """They need not be compared again, have to be (0), or are never to be merged again."""
    await tx.execute_many(
        "UPDATE episode_lives SET compared = ? WHERE episode_id = ?", [(state, _number(ref)) for ref in ids]
    )


async def kept_apart(reader: Reader, ids: Sequence[str]) -> set[str]:
    """Those of some episodes that the user wants to stand for themselves."""
    rows = await reader.fetch_all(
        f"SELECT episode_id FROM episode_lives WHERE compared = 2 AND episode_id IN ({_marks(ids)})",
        [_number(ref) for ref in ids],
    )
    return {f"e{row['episode_id']}" for row in rows}


async def merge(tx: Transaction, members: Sequence[str], into: str | None) -> None:
    """A consolidated episode stands for others, or does so no longer."""
    number = _number(into) if into else None
    await tx.execute_many(
        "UPDATE episode_lives SET merged_into = ? WHERE episode_id = ?", [(number, _number(ref)) for ref in members]
    )


async def members(reader: Reader, episode_id: str) -> list[Episode]:
    """The originals a consolidated episode stands for."""
    rows = await reader.fetch_all(f"{_ALL} WHERE l.merged_into = ? ORDER BY e.id", (_number(episode_id),))
    return [_episode(row) for row in rows]


async def insert_consolidation(tx: Transaction, episode_id: str, made: Consolidation) -> None:
    """What a consolidated episode stands for."""
    await tx.execute(
        "INSERT INTO consolidations VALUES (?, ?, ?, ?, ?)",
        (
            _number(episode_id),
            _number(made.representative),
            made.accesses,
            _json(made.statistics),
            _json(made.variations),
        ),
    )


async def consolidation(reader: Reader, episode_id: str) -> Consolidation | None:
    """The same, read; None for an ordinary episode."""
    row = await reader.fetch_one("SELECT * FROM consolidations WHERE episode_id = ?", (_number(episode_id),))
    if row is None:
        return None
    return Consolidation(
        representative=f"e{row['representative']}",
        accesses=row["accesses"],
        statistics=json.loads(row["statistics"]),
        variations=tuple((ref, tuple(lines)) for ref, lines in json.loads(row["variations"])),
    )


# -- traces


async def insert_trace(tx: Transaction, segment: Segment, turns: Sequence[Turn]) -> None:
    """The words of a segment, for as long as traces are kept."""
    spoken = [
        Spoken(turn_id=turn.id, role=turn.role, speaker=turn.speaker, at=turn.timestamp, content=turn.content)
        for turn in turns
    ]
    await tx.execute(
        "INSERT OR REPLACE INTO traces VALUES (?, ?, ?, ?, ?)",
        (
            segment.session_id,
            segment.first_turn,
            segment.last_turn,
            turns[-1].timestamp.isoformat(),
            _packed(spoken),
        ),
    )


async def trace(reader: Reader, session_id: int, first: int, last: int) -> list[Spoken]:
    """What was said from one turn to another, as far as it is kept."""
    rows = await reader.fetch_all(
        "SELECT words FROM traces WHERE session_id = ? AND first_turn >= ? AND last_turn <= ? ORDER BY first_turn",
        (session_id, first, last),
    )
    return [spoken for row in rows for spoken in _unpacked(row["words"])]


async def traces(reader: Reader) -> list[tuple[int, int, list[Spoken]]]:
    """All that is kept, as (session, first turn, words)."""
    rows = await reader.fetch_all("SELECT session_id, first_turn, words FROM traces")
    return [(row["session_id"], row["first_turn"], _unpacked(row["words"])) for row in rows]


async def rewrite_trace(tx: Transaction, session_id: int, first: int, spoken: Sequence[Spoken]) -> None:
    """Some of its words are forgotten."""
    await tx.execute(
        "UPDATE traces SET words = ? WHERE session_id = ? AND first_turn = ?", (_packed(spoken), session_id, first)
    )


async def delete_traces(tx: Transaction, session_id: int, first: int, last: int) -> None:
    """The trace of an episode."""
    await tx.execute(
        "DELETE FROM traces WHERE session_id = ? AND first_turn >= ? AND last_turn <= ?", (session_id, first, last)
    )


async def has_expired_traces(reader: Reader, before: datetime) -> bool:
    """Whether there are words older than that."""
    return await reader.fetch_value("SELECT 1 FROM traces WHERE at < ? LIMIT 1", (before.isoformat(),)) is not None


async def expire_traces(tx: Transaction, before: datetime) -> None:
    """Words older than that go."""
    await tx.execute("DELETE FROM traces WHERE at < ?", (before.isoformat(),))


# -- what was forgotten


async def bury(tx: Transaction, spans: Iterable[Span]) -> None:
    """Remembers which turns were forgotten, without a word of them."""
    await tx.execute_many(
        "INSERT OR IGNORE INTO forgotten_spans VALUES (?, ?, ?, ?, ?)",
        [(*one.place, one.began_at.isoformat(), one.ended_at.isoformat()) for one in spans],
    )


async def buried(reader: Reader) -> list[Span]:
    """All turns whose episodes were forgotten."""
    rows = await reader.fetch_all("SELECT * FROM forgotten_spans ORDER BY began_at, session_id, first_turn")
    return [
        Span(
            session_id=row["session_id"],
            first_turn=row["first_turn"],
            last_turn=row["last_turn"],
            began_at=datetime.fromisoformat(row["began_at"]),
            ended_at=datetime.fromisoformat(row["ended_at"]),
        )
        for row in rows
    ]


async def has_turns(reader: Reader, span: Span) -> bool:
    """Whether these very turns are in the file, not others with their numbers."""
    found = await reader.fetch_value(
        "SELECT 1 FROM turns WHERE session_id = ? AND id BETWEEN ? AND ? AND timestamp BETWEEN ? AND ? LIMIT 1",
        (*span.place, span.began_at.isoformat(), span.ended_at.isoformat()),
    )
    return found is not None


async def empty_turns(tx: Transaction, at: datetime, session_id: int, first: int, last: int) -> None:
    """Some turns without their words, as if they were compressed."""
    place = (session_id, first, last)
    await tx.execute(
        "UPDATE turns SET content = '', left_window = 1, summarized_at = coalesce(summarized_at, ?) "
        "WHERE session_id = ? AND id BETWEEN ? AND ?",
        (at.isoformat(), *place),
    )
    await tx.execute("DELETE FROM segments WHERE session_id = ? AND first_turn >= ? AND last_turn <= ?", place)


def _packed(spoken: Iterable[Spoken]) -> bytes:
    rows = [[one.turn_id, one.role, one.speaker, one.at.isoformat(), one.content] for one in spoken]
    return zlib.compress(_json(rows).encode(), 9)


def _unpacked(words: bytes) -> list[Spoken]:
    return [
        Spoken(turn_id=turn_id, role=role, speaker=speaker, at=datetime.fromisoformat(at), content=content)
        for turn_id, role, speaker, at, content in json.loads(zlib.decompress(words))
    ]


# -- rows


def _waiting(row: Row) -> Waiting:
    return Waiting(
        id=row["id"],
        session_id=row["session_id"],
        channel=row["channel"],
        chat=row["chat"],
        first_turn=row["first_turn"],
        last_turn=row["last_turn"],
        language=row["language"],
        note=Note(
            topic=row["topic"],
            discussed=tuple(json.loads(row["discussed"])),
            outcome=row["outcome"],
            decisions=tuple(json.loads(row["decisions"])),
            open_questions=tuple(json.loads(row["open_questions"])),
        ),
        signals=json.loads(row["signals"]),
    )


def _episode(row: Row) -> Episode:
    same = ("session_id", "channel", "chat", "first_turn", "last_turn", "turns", "language", "topic", "text", "trouble")
    fields: dict[str, Any] = {name: row[name] for name in (*same, "domain", "task_type", "outcome", "accesses")}
    fields |= {name: tuple(json.loads(row[name])) for name in ("tools", "tags", "entities")}
    fields |= {name: _moment(row[name]) for name in ("began_at", "ended_at", "accessed_at", "deleted_at")}
    return Episode(
        id=f"e{row['id']}",
        notes=tuple(_note(note) for note in json.loads(row["notes"])),
        merged_into=f"e{row['merged_into']}" if row["merged_into"] else None,
        **fields,
    )


def _note(raw: Mapping[str, Any]) -> Note:
    lists = {name: tuple(raw[name]) for name in ("discussed", "decisions", "open_questions")}
    return Note(topic=raw["topic"], outcome=raw["outcome"], **lists)


def _moment(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None


def _label(kind: str, name: str) -> str:
    return f"\n{kind}:{fold(' '.join(name.split()))}\n"


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _marks(values: Iterable[object]) -> str:
    return ", ".join("?" for _ in values)


def _number(ref: str) -> int:
    return int(ref[1:]) if len(ref) < 19 else 0  # 0 is nobody's; SQLite's numbers end there
