"""Recall: months later, are the words that answer in the prompt? Beside recency, vectors, BM25 and fusion.

  --locomo FILE        long dialogues with questions and their evidence (LoCoMo, github.com/snap-research/locomo)
  --longmemeval FILE   questions with dated evidence (LongMemEval, as JSON lines), among --noise FILE
  --standing FILE      standing instructions in long chats (BEAM)
  --preferences FILE   stated preferences and a later question (PrefEval), among --noise FILE
  --smalltalk FILE     small talk that must recall nothing (TIAGE)

Without a file it measures the dialogues written for the tests: Spanish, Italian and Chinese.
"""

import asyncio
import json
import random
import re
import shutil
import statistics
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from bench.coverage import Baselines, Said, covers, fill, key_sentence, words
from bench.report import arguments, program, progress, save, table
from memory import Memory
from memory.limits import Limits
from memory.testing import FakeClock
from memory.tokens import count_tokens
from memory.values import Context, Section

BUDGETS = (1000, 2000)
WRITTEN = Path(__file__).parent.parent / "tests" / "memory" / "dialogues"
MEMORY: tuple[Section, ...] = ("summaries", "recalled", "facts")


def items(context: Context) -> list[str]:
    """What a request holds of memory."""
    return [item.text for name in MEMORY for item in context.sections[name].items]


async def within(memory: Memory, session: int, budget: int) -> Context:
    """The request whose memory items, headings included, stay within a budget."""
    bare = await memory.assemble(session, recall_tokens=0)
    other = sum(bare.sections[name].tokens for name in MEMORY if name != "recalled")
    return await memory.assemble(session, recall_tokens=max(0, budget - other))


async def ask(memory: Memory, question: str, budget: int | None) -> Context:
    """The request for a question asked in a fresh session of a fresh chat."""
    session = await put(memory, question)
    return await (memory.assemble(session) if budget is None else within(memory, session, budget))


async def put(memory: Memory, question: str) -> int:
    """The session in which a question was asked."""
    session = await memory.open_session(channel="bench", chat="questions")
    await memory.add_turn(session.id, "user", question)
    return session.id


def _json(file: Path) -> Any:
    return json.loads(file.read_text("utf-8"))


def _lines(file: Path) -> list[str]:
    return [line for line in file.read_text("utf-8").splitlines() if line.strip()]


# -- long dialogues


async def locomo(file: Path, folder: Path, **_: Any) -> dict[str, float]:
    """All evidence of a question covered, by budget and by category."""
    dialogues = _json(file)
    right: dict[tuple[str, int], list[bool]] = defaultdict(list)
    by_category: dict[int, list[bool]] = defaultdict(list)
    raw = kept = 0
    tokens: list[int] = []
    for number, dialogue in enumerate(dialogues, 1):
        turns, sessions = locomo_turns(dialogue["conversation"])
        clock = FakeClock()
        path = folder / f"locomo{number}.db"
        kept += await _feed(path, clock, sessions)
        raw += sum(count_tokens(turn.text) for turn in turns.values())
        places = {name: place for place, name in enumerate(turns)}
        baselines = Baselines(list(turns.values()))
        clock.now = sessions[-1][0] + timedelta(days=1)
        bare = replace(Limits(), episodes_recalled=0)
        async with Memory.open(path, clock=clock) as memory, Memory.open(path, clock=clock, limits=bare) as plain:
            questions = [q for q in dialogue["qa"] if q["category"] <= 4 and q.get("evidence")]
            for done, question in enumerate(questions, 1):
                asked, answer = question["question"], str(question.get("answer", ""))
                names = [name for part in question["evidence"] for name in re.findall(r"D\d+:\d+", part)]
                keys = [key_sentence(turns[name].text, asked, answer) for name in names if name in places]
                if not keys:
                    continue
                orders = baselines.orders(asked)
                session = await put(memory, asked)
                for budget in BUDGETS:
                    context = await within(memory, session, budget)
                    right["Olvido", budget].append(covers(keys, [words(text) for text in items(context)]))
                    less = items(await within(plain, session, budget))
                    right["Olvido without episodes", budget].append(covers(keys, [words(text) for text in less]))
                    for name, order in orders.items():
                        chosen = fill(order, baselines.tokens, budget)
                        right[name, budget].append(covers(keys, [baselines.words[place] for place in chosen]))
                tokens.append(sum(context.sections[name].tokens for name in MEMORY))
                by_category[question["category"]].append(right["Olvido", BUDGETS[-1]][-1])
                progress(done, len(questions), f"dialogue {number}/{len(dialogues)}, question")
    rows = [
        [name, *(100 * statistics.mean(right[name, budget]) for budget in BUDGETS)]
        for name in ("Olvido", "Olvido without episodes", *Baselines.NAMES)
    ]
    print("\nall evidence covered, per cent:")
    print(table(["", *(f"{budget:,} tokens" for budget in BUDGETS)], rows))
    figures = {
        f"{name}, {budget:,} tokens": round(100 * statistics.mean(results), 1)
        for (name, budget), results in right.items()
    }
    best = max(figures[f"{name}, {BUDGETS[-1]:,} tokens"] for name in Baselines.NAMES)
    figures["points above the best baseline"] = round(figures[f"Olvido, {BUDGETS[-1]:,} tokens"] - best, 1)
    for category, results in sorted(by_category.items()):
        figures[f"category {category} of {len(results)}"] = round(100 * statistics.mean(results), 1)
    figures["retained text, per cent of the raw tokens"] = round(100 * kept / raw, 1)
    figures["memory tokens used of 2,000, mean"] = round(statistics.mean(tokens), 0)
    return figures


def locomo_turns(talk: Mapping[str, Any]) -> tuple[dict[str, Said], list[tuple[datetime, list[tuple[str, Said]]]]]:
    """Turns by name, and the sessions with their dates, as (role, turn)."""
    turns: dict[str, Said] = {}
    sessions = []
    number = 1
    while f"session_{number}_date_time" in talk:
        said = []
        at = datetime.strptime(talk[f"session_{number}_date_time"], "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC)
        for row in talk.get(f"session_{number}", ()):
            caption = f" [image: {row['blip_caption']}]" if row.get("blip_caption") else ""
            turn = Said(speaker=row["speaker"], text=row["text"] + caption, day=f"{at:%Y-%m-%d}")
            turns[row["dia_id"]] = turn
            said.append(("user" if row["speaker"] == talk["speaker_a"] else "assistant", turn))
        if said:
            sessions.append((at, said))
        number += 1
    return turns, sessions


async def _feed(
    path: Path, clock: FakeClock, sessions: Iterable[tuple[datetime, list[tuple[str, Said]]]], chat: str = "talk"
) -> int:
    """Lives through dated sessions; returns the tokens that are kept of what was said: statements and quotes."""
    async with Memory.open(path, clock=clock) as memory:
        for at, said in sessions:
            clock.now = at
            session = await memory.open_session(channel="bench", chat=chat)
            for role, turn in said:
                clock.now = clock() + timedelta(seconds=30)
                await memory.add_turn(session.id, role, turn.text, speaker=turn.speaker)  # type: ignore[arg-type]
            await memory.run_pending()
        await memory.open_session(channel="bench", chat=chat)
        await memory.run_pending()
        rows = await memory.database.fetch_all(
            "SELECT text FROM statements UNION ALL SELECT quote FROM facts WHERE status = 'current'"
        )
        return sum(count_tokens(row["text"]) for row in rows)


# -- dated evidence among noise


async def longmemeval(file: Path, folder: Path, noise: Path | None, full: bool) -> dict[str, float]:
    """Newest value in the prompt, for knowledge updates; evidence covered, for the other types."""
    questions = [json.loads(line) for line in _lines(file)]
    questions = [question for question in questions if not question.get("abstention")]
    base = await _noise(folder, noise, 120 if full else 40)
    found: dict[str, list[bool]] = defaultdict(list)
    ordered: list[bool] = []
    for done, question in enumerate(questions, 1):
        path = folder / "question.db"
        shutil.copyfile(base, path)
        sessions = sorted((_longmemeval_session(row) for row in question["evidence_sessions"]), key=lambda one: one[0])
        clock = FakeClock()
        await _feed(path, clock, sessions, chat="evidence")
        clock.now = max(_day(question["question_date"]), clock() + timedelta(hours=1))
        asked, answer = question["question"], str(question["answer"])
        async with Memory.open(path, clock=clock) as memory:
            context = await ask(memory, asked, 2000)
        held = [words(text) for text in items(context)]
        keys = [[key_sentence(turn.text, asked, answer) for _, turn in said] for _, said in sessions]
        kind = question["question_type"]
        if kind == "knowledge-update":
            found[kind].append(covers(keys[-1], held))
            ordered.append(_before(context, keys))
        else:
            found[kind].append(covers([key for session in keys for key in session], held))
        progress(done, len(questions), "question")
    figures = {f"{kind} of {len(results)}": 100 * statistics.mean(results) for kind, results in sorted(found.items())}
    figures["old value absent, or dated and before the new one"] = 100 * statistics.mean(ordered)
    return {name: round(value, 1) for name, value in figures.items()}


def _before(context: Context, keys: Sequence[Sequence[frozenset[str]]]) -> bool:
    """Whether no old value stands among the facts without a date, and what is recalled is in order of time."""
    text = context.messages[-1]["content"]
    facts = text.partition("The user said:\n")[2].partition("</memory>")[0].splitlines()
    undated = [words(line) for line in facts if not re.search(r"\(\d{4}-\d{2}-\d{2}\)$", line)]
    new = [fact for fact in undated if covers(keys[-1], [fact])]
    old = [fact for fact in undated if any(covers(session, [fact]) for session in keys[:-1]) and fact not in new]
    dates = re.findall(r"^(\d{4}-\d{2}-\d{2}):$", text, re.MULTILINE)
    return not old and dates == sorted(dates)


def _longmemeval_session(row: Mapping[str, Any]) -> tuple[datetime, list[tuple[str, Said]]]:
    turns = [(turn["role"], Said(speaker=turn["role"], text=turn["content"])) for turn in row["evidence_turns"]]
    return _day(row["date"]), turns


def _day(text: str) -> datetime:
    return datetime.strptime(re.sub(r" \(\w+\)", "", text), "%Y/%m/%d %H:%M").replace(tzinfo=UTC)


async def _noise(folder: Path, noise: Path | None, count: int) -> Path:
    """A memory full of unrelated sessions."""
    path = folder / "noise.db"
    sessions = _json(noise)[:count] if noise else []
    dated = sorted(((_day(row["date"]), row["turns"]) for row in sessions), key=lambda one: one[0])
    clock = FakeClock()
    async with Memory.open(path, clock=clock) as memory:
        for done, (at, turns) in enumerate(dated, 1):
            clock.now = at
            session = await memory.open_session(channel="bench", chat="noise")
            for turn in turns:
                await memory.add_turn(session.id, turn["role"], turn["content"])
            await memory.run_pending()
            progress(done, len(dated), "noise session")
    return path


# -- standing instructions and preferences


async def standing(file: Path, folder: Path, **_: Any) -> dict[str, float]:
    """Whether the standing instruction a probe is about is in the prompt."""
    found: list[bool] = []
    for number, chat in enumerate(_json(file), 1):
        clock = FakeClock(datetime(2024, 3, 1, tzinfo=UTC))
        async with Memory.open(folder / f"standing{number}.db", clock=clock) as memory:
            for batch in chat["chat"]:
                session = await memory.open_session(channel="bench", chat="talk")
                for turn in (turn for pair in batch["turns"] for turn in pair):
                    clock.now = clock() + timedelta(seconds=60)
                    content = re.sub(r"\s*->->\s*[\d,]+\s*$", "", turn["content"])
                    await memory.add_turn(session.id, turn["role"], content)
                await memory.run_pending()
                clock.now = clock() + timedelta(days=1)
                progress(1, 1, f"chat {number}, batch")
            for probe in chat["probes"]["instruction_following"]:
                context = await ask(memory, probe["question"], None)
                wanted = words(probe["instruction_being_tested"])
                found.append(covers([wanted], [words(text) for text in items(context)]))
    return {"standing instructions in the prompt": sum(found), "of": len(found)}


async def preferences(file: Path, folder: Path, noise: Path | None, full: bool) -> dict[str, float]:
    """Whether a stated preference is in the prompt of a later question it bears on."""
    rows = _json(file)
    if not full:
        rows = random.Random(1).sample(rows, min(len(rows), 100))
    base = await _hundred_turns(folder, noise)
    found = []
    for done, row in enumerate(rows, 1):
        path = folder / "preference.db"
        shutil.copyfile(base, path)
        clock = FakeClock(datetime(2024, 5, 1, tzinfo=UTC))
        await _feed(path, clock, [(clock(), [("user", Said(speaker="user", text=row["preference"]))])], chat="before")
        clock.now = clock() + timedelta(days=2)
        async with Memory.open(path, clock=clock) as memory:
            context = await ask(memory, row["question"], None)
        found.append(covers([words(row["preference"])], [words(text) for text in items(context)]))
        progress(done, len(rows), "preference")
    return {"stated preferences in the prompt, per cent": round(100 * statistics.mean(found), 1), "of": len(rows)}


async def _hundred_turns(folder: Path, noise: Path | None) -> Path:
    path = folder / "hundred.db"
    sessions = _json(noise) if noise else []
    turns = [turn for session in sessions for turn in session["turns"]][:100]
    async with Memory.open(path, clock=FakeClock(datetime(2024, 5, 1, tzinfo=UTC))) as memory:
        session = await memory.open_session(channel="bench", chat="noise")
        for turn in turns:
            await memory.add_turn(session.id, turn["role"], turn["content"])
        await memory.open_session(channel="bench", chat="noise")
        await memory.run_pending()
    return path


# -- small talk


async def smalltalk(file: Path, folder: Path, full: bool, **_: Any) -> dict[str, float]:
    """The size of the recalled section over the turns of small talk, one person's sessions one after the other."""
    dialogues = _json(file)[: None if full else 60]
    tokens: list[int] = []
    clock = FakeClock(datetime(2024, 1, 1, tzinfo=UTC))
    async with Memory.open(folder / "smalltalk.db", clock=clock) as memory:
        for done, dialogue in enumerate(dialogues, 1):
            session = await memory.open_session(channel="bench", chat="talk")
            for place, text in enumerate(dialogue["utterances"]):
                await memory.add_turn(session.id, "assistant" if place % 2 else "user", text)
                if place % 2 == 0:
                    tokens.append((await memory.assemble(session.id)).sections["recalled"].tokens)
            clock.now = clock() + timedelta(days=1)
            await memory.run_pending()
            progress(done, len(dialogues), "dialogue")
    return {
        "recalled tokens in small talk, median": statistics.median(tokens),
        "mean": round(statistics.mean(tokens), 1),
        "share of turns that recall something": round(statistics.mean(count > 0 for count in tokens), 3),
    }


# -- the written dialogues


async def written(folder: Path) -> dict[str, float]:
    """The dialogues written for the tests, with their questions: evidence covered at 2,000 tokens."""
    figures: dict[str, float] = {}
    for file in sorted(WRITTEN.glob("*.json")):
        dialogue = _json(file)
        language = dialogue["language"]
        clock = FakeClock()
        sessions = [
            (
                datetime.fromisoformat(session["date"]).replace(tzinfo=UTC),
                [(role, Said(speaker=dialogue["speakers"][role], text=text)) for role, text in session["turns"]],
            )
            for session in dialogue["sessions"]
        ]
        path = folder / f"{file.stem}.db"
        await _feed(path, clock, sessions)
        clock.now = sessions[-1][0] + timedelta(days=1)
        right = []
        async with Memory.open(path, clock=clock) as memory:
            for question in dialogue["questions"]:
                context = await ask(memory, question["question"], 2000)
                held = [words(text, language) for text in items(context)]
                turns = [sessions[session][1][turn][1].text for session, turn in question["evidence"]]
                keys = [key_sentence(text, question["question"], question["answer"], language) for text in turns]
                right.append(covers(keys, held))
        figures[f"{file.stem}: covered, per cent of {len(right)}"] = round(100 * statistics.mean(right), 1)
    return figures


PROGRAMS: dict[str, Callable[..., Coroutine[Any, Any, dict[str, float]]]] = {
    "locomo": locomo,
    "longmemeval": longmemeval,
    "standing": standing,
    "preferences": preferences,
    "smalltalk": smalltalk,
}


def main(argv: Sequence[str]) -> dict[str, float]:
    """Measure what was named."""
    parser = arguments(__doc__, full="all dialogues, preferences and noise")
    for name in PROGRAMS:
        parser.add_argument(f"--{name}", type=Path, metavar="FILE")
    parser.add_argument("--noise", type=Path, metavar="FILE", help="unrelated sessions around the evidence")
    options = parser.parse_args(argv)
    figures: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as folder:
        named = {name: getattr(options, name) for name in PROGRAMS if getattr(options, name)}
        for name, file in named.items():
            print(f"{name}:", file=sys.stderr)
            kind = PROGRAMS[name]
            found = asyncio.run(kind(file, Path(folder), noise=options.noise, full=options.full))
            figures |= {f"{name}: {figure}": value for figure, value in found.items()}
        if not named:
            figures = asyncio.run(written(Path(folder)))
    print()
    print(table(["figure", "value"], [[name, value] for name, value in figures.items()]))
    save(figures, options.json)
    return figures


if __name__ == "__main__":
    program(main)
