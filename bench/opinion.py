"""Trains the second opinion on facts (memory/opinion.py) on the labelled messages of this repository.

The texts: tests/memory/extraction/*_developed_on*.json, and bench/opinion_texts/<language>.txt, one message a line:
"attribute|text" states a fact ("attribute!|text" a change of one), "-why|text" states none. The kept messages are
never looked at. Logistic regression by AdaGrad in a fixed order: the same texts give the same weights.
"""

import asyncio
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from bench.report import arguments, program, save, table
from memory import opinion, signals
from memory.corrections import Known, by_rules, signs
from memory.embeddings import EmbeddedEmbedder
from memory.language import LanguagePack, fold, load_packs
from memory.learn import new_fact
from memory.limits import Limits
from memory.opinion import BUCKETS, TOPIC_BUCKETS, TOPIC_SCALE, Heard, hashed, hashed_topic
from memory.similarity import Calibration, calibrate

WRITTEN = Path(__file__).parents[1] / "tests" / "memory" / "extraction"
TEXTS = Path(__file__).parent / "opinion_texts"
WEIGHTS = Path(__file__).parents[1] / "memory" / "opinion.npz"
FOLDS = 6
QUICK_LANGUAGE = "en"
TOPICS = (
    "home", "job", "studies", "partner", "marital", "family", "child", "pet", "diet", "allergy", "health", "religion",
    "age", "birthday", "name", "form of address", "origin", "nationality", "spoken language", "phone number", "car",
    "tool", "smoking", "drinking", "habit", "schedule", "like", "dislike", "favourite", "answer language",
    "answer style", "units", "decision", "project",
)  # fmt: skip
_SAME_AS = {"hobby": "habit", "style": "answer style"}
_TOO_BROAD = ("habit", "like", "")  # what a rule calls so may be anything

Row = tuple[Any, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """A sentence with its labels."""

    heard: Heard
    message: int
    fact: bool
    weight: float
    topic: str = ""
    change: bool | None = None
    unseen_by_rules: bool = False
    rule: bool = False


def examples(language: str, pack: LanguagePack) -> list[Example]:
    """All labelled sentences of a language."""
    found: list[Example] = []
    seen: set[str] = set()
    for number, (text, words, topic, change, weight, fresh) in enumerate(_messages(language)):
        if text in seen:
            continue
        seen.add(text)
        found.extend(_sentences(number, text, words, topic, change, weight, fresh, pack))
    return found


def _messages(language: str) -> Iterator[tuple[str, list[list[str]] | None, str, bool | None, float, bool]]:
    """Text, words of each fact (None: no fact), topic, whether it tells a change, weight, unseen by rule writers."""
    for file in sorted(WRITTEN.glob(f"{language}_developed_on*.json")):
        fresh = file.stem != f"{language}_developed_on"
        labelled = json.loads(file.read_text("utf-8"))
        for item in labelled["positives"]:
            yield item["text"], [fact["contains"] for fact in item["facts"]], "", None, 1.0, fresh
        for item in labelled["negatives"]:
            yield item["text"], None, "", None, 1.0, fresh
        for item in labelled["updates"]:
            yield item["after"], [[]], "", item["kind"] == "supersede", 0.3, fresh
            for text in (item["before"], *item["unrelated"]):
                yield text, [[]], "", False, 0.3, fresh
    for line in (TEXTS / f"{language}.txt").read_text("utf-8").splitlines():
        label, _, text = line.partition("|")
        if label.startswith("-"):
            yield text, None, "", None, 1.0, True
        elif text:
            topic = label.rstrip("!").removeprefix("hedged ")
            yield text, [[]], _SAME_AS.get(topic, topic), label.endswith("!"), 1.0, True


def _sentences(
    number: int,
    text: str,
    words: list[list[str]] | None,
    topic: str,
    change: bool | None,
    weight: float,
    fresh: bool,
    pack: LanguagePack,
) -> Iterator[Example]:
    pieces = signals.sentences(signals.own_words(text)) or ([text] if words is not None else [])
    for place, piece in enumerate(pieces):
        folded = fold(piece)
        fact = words is not None and any(not wanted or any(fold(word) in folded for word in wanted) for wanted in words)
        limit = len(folded)
        hits = list(signals._matches(folded, limit, pack))
        attribute = hits[0].rule.attribute if hits else ""
        yield Example(
            heard=Heard(
                text=piece,
                before=pieces[place - 1] if place else "",
                after=pieces[place + 1] if place + 1 < len(pieces) else "",
                place=place,
                sentences=len(pieces),
                blocked=signals.blocked_by(folded, pack) if fresh and not hits else "",
            ),
            message=number,
            fact=fact,
            weight=weight if fact or words is None else weight / 2,
            topic=topic or (attribute if fact and attribute not in _TOO_BROAD else ""),
            change=change,
            unseen_by_rules=fresh and weight == 1.0,
            rule=bool(hits),
        )


def fit(rows: Sequence[Row], wanted: Any, weights: Any, buckets: int, epochs: int = 25) -> Any:
    """Logistic regression: the first weight is the constant."""
    model, squares = np.zeros(buckets + 1), np.full(buckets + 1, 1e-2)
    order = np.random.RandomState(1)
    for _ in range(epochs):
        for number in order.permutation(len(rows)):
            places, values = rows[number]
            odds = model[0] + model[places] @ values
            wrong = (1 / (1 + np.exp(-np.clip(odds, -30, 30))) - wanted[number]) * weights[number]
            step = wrong * values + 2e-4 * model[places]
            squares[places] += step * step
            model[places] -= 0.1 * step / np.sqrt(squares[places])
            squares[0] += wrong * wrong
            model[0] -= 0.1 * wrong / np.sqrt(squares[0])
    return model


def _row(pairs: Iterator[tuple[int, float]]) -> Row:
    summed: dict[int, float] = {}
    for place, value in pairs:
        summed[1 + place] = summed.get(1 + place, 0.0) + value
    return np.array(list(summed), dtype=np.int64), np.array(list(summed.values()))


def cross_validated(found: Sequence[Example], rows: Sequence[Row]) -> Any:
    """The score of each sentence by a model that has not seen its message."""
    scores = np.zeros(len(found))
    messages = np.array([example.message for example in found])
    facts = np.array([float(example.fact) for example in found])
    weights = np.array([example.weight for example in found])
    for fold_number in range(FOLDS):
        rest = np.where(messages % FOLDS != fold_number)[0]
        model = fit([rows[number] for number in rest], facts[rest], weights[rest], BUCKETS)
        for number in np.where(messages % FOLDS == fold_number)[0]:
            scores[number] = opinion.chance(float(model[0] + model[rows[number][0]] @ rows[number][1]))
    return scores


def figures(found: Sequence[Example], scores: Any) -> dict[str, float]:
    """What the opinion would add and cost at its limits, on sentences the rules were not written for."""
    limits = Limits()
    free = [number for number, example in enumerate(found) if example.unseen_by_rules and not example.rule]
    hits = [number for number, example in enumerate(found) if example.unseen_by_rules and example.rule]
    taken = [number for number in free if scores[number] >= limits.fact_opinion_accepts]
    refused = [number for number in hits if scores[number] <= limits.fact_opinion_refuses]
    return {
        "facts without a rule": sum(found[number].fact for number in free),
        "of them taken": sum(found[number].fact for number in taken),
        "taken wrongly": sum(not found[number].fact for number in taken),
        "refused rightly": sum(not found[number].fact for number in refused),
        "refused wrongly": sum(found[number].fact for number in refused),
    }


def topic_words(language: str) -> Iterator[tuple[str, str]]:
    """Words with the topic they speak for: names of things that are the same in all languages, and the language's."""
    for file in (TEXTS / "any_topics.txt", TEXTS / f"{language}_topics.txt"):
        for line in file.read_text("utf-8").splitlines():
            topic, _, words = line.partition(": ")
            yield from ((topic, word) for word in words.split(", "))


def topic_model(found: Sequence[Example], pack: LanguagePack) -> Any:
    """One row of weights per topic, and a last one for changes."""
    rows = [_row(hashed_topic(example.heard.text, pack)) for example in found]
    labelled = [number for number, example in enumerate(found) if example.topic in TOPICS]
    words = list(topic_words(pack.code))
    topics = [*(found[number].topic for number in labelled), *(topic for topic, _ in words)]
    texts = [*(rows[number] for number in labelled), *(_row(hashed_topic(word, pack)) for _, word in words)]
    ones = np.ones(len(found) + len(words))
    models = []
    for topic in TOPICS:
        wanted = np.array([float(name == topic) for name in topics])
        models.append(fit(texts, wanted, ones, TOPIC_BUCKETS, epochs=10))
    known = [number for number, example in enumerate(found) if example.change is not None]
    wanted = np.array([float(bool(found[number].change)) for number in known])
    models.append(fit([rows[number] for number in known], wanted, ones, TOPIC_BUCKETS, epochs=10))
    return np.array(models)


def replaced(embedder: EmbeddedEmbedder, scale: Calibration, packs: Mapping[str, LanguagePack]) -> Any:
    """The weights of the signs that one fact replaces another (memory/replaces.py), from the written pairs."""
    rows: list[list[float]] = []
    wanted: list[float] = []
    for language in packs:
        for file in sorted(WRITTEN.glob(f"{language}_developed_on*.json")):
            for update in json.loads(file.read_text("utf-8"))["updates"]:
                found = [
                    (new_fact(draft, None, datetime.now(UTC)), text == update["before"])
                    for text in (update["before"], *update["unrelated"])
                    for draft in signals.extract(text, language)
                ]
                for draft in signals.extract(update["after"], language) if found else ():
                    vectors = embedder.embed_now([draft.fact, *(fact.fact for fact, _ in found)])
                    known = [
                        Known(fact=replace(fact, id=str(place)), similarity=scale(float(vectors[0] @ vector), language))
                        for place, ((fact, _), vector) in enumerate(zip(found, vectors[1:], strict=True))
                    ]
                    ruled = by_rules(draft, known, packs, Limits())
                    rows += signs(draft, known, ruled, packs)
                    wanted += [float(before and update["kind"] == "supersede") for _, before in found]
    return _newton(np.array(rows), np.array(wanted))


def _newton(rows: Any, wanted: Any) -> Any:
    """Logistic regression of few signs, with a ridge."""
    rows = np.hstack([np.ones((len(rows), 1)), rows])
    ridge = np.diag([1e-6, *([1.0] * (rows.shape[1] - 1))])
    model = np.zeros(rows.shape[1])
    for _ in range(30):
        chance = 1 / (1 + np.exp(-rows @ model))
        slope = rows.T @ (chance - wanted) + ridge @ model
        model -= np.linalg.solve((rows * (chance * (1 - chance))[:, None]).T @ rows + ridge, slope)
    return model


def main(argv: Sequence[str]) -> dict[str, float]:
    """Cross-validate, and with --write train on everything and store the weights."""
    parser = arguments(__doc__, full="cross-validate every language, not English alone")
    parser.add_argument("--write", action="store_true", help="store the weights in memory/opinion.npz")
    options = parser.parse_args(argv)
    measured: dict[str, dict[str, float]] = {}
    stored: dict[str, Any] = {"topics": np.array(TOPICS)}
    for language, pack in load_packs().items():
        found = examples(language, pack)
        rows = [_row(hashed(example.heard, pack)) for example in found]
        if options.full or language == QUICK_LANGUAGE:
            measured[language] = figures(found, cross_validated(found, rows))
            print(f"  {language} cross-validated", file=sys.stderr, flush=True)
        if options.write:
            facts = np.array([float(example.fact) for example in found])
            weights = np.array([example.weight for example in found])
            stored[f"{language}.fact"] = fit(rows, facts, weights, BUCKETS).astype(np.float16)
            stored[f"{language}.topic"] = np.clip(np.round(topic_model(found, pack) * TOPIC_SCALE), -127, 127).astype(
                np.int8
            )
    if options.write:
        np.savez_compressed(WEIGHTS, **stored)
        opinion._weights.cache_clear()
        embedder = EmbeddedEmbedder()
        scale = asyncio.run(calibrate(embedder))
        np.savez_compressed(WEIGHTS, **stored, replaces=replaced(embedder, scale, load_packs()))
    print(table(["language", "figure", "value"], [[a, b, c] for a, row in measured.items() for b, c in row.items()]))
    save(measured, options.json)
    return {f"{language}, {name}": value for language, row in measured.items() for name, value in row.items()}


if __name__ == "__main__":
    program(main)
