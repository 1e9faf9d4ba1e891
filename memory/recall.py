"""Recall: the stored lines that answer a question, found by words and by meaning in one explainable ranking."""

from collections.abc import Mapping, Sequence
from datetime import datetime

from memory.database import Database
from memory.decay import state_of
from memory.errors import Refused
from memory.language import LanguagePack, detect, fold
from memory.limits import Limits
from memory.ports import Clock
from memory.stores import context as context_rows
from memory.stores import facts as fact_rows
from memory.stores.index import Hit, Index
from memory.values import RecallHit

KINDS = ("fact", "episode", "world", "experience", "opinion", "observation", "summary")
STATEMENT_KINDS = ("world", "experience", "opinion", "observation")


class Recall:
    """Searches everything one person said."""

    def __init__(
        self,
        *,
        database: Database,
        index: Index,
        packs: Mapping[str, LanguagePack],
        clock: Clock,
        limits: Limits,
    ) -> None:
        self._database = database
        self._index = index
        self._packs = packs
        self._clock = clock
        self._limits = limits

    async def __call__(
        self,
        query: str,
        k: int = 10,
        *,
        since: datetime | None = None,
        until: datetime | None = None,
        kinds: Sequence[str] | None = None,
        entity: str | None = None,
    ) -> list[RecallHit]:
        """The k best lines for a query; `since` is inclusive, `until` exclusive. Reading changes no ranking."""
        wanted = tuple(kinds) if kinds is not None else KINDS
        unknown = [kind for kind in wanted if kind not in KINDS]
        if unknown:
            raise Refused(f"There is no kind “{unknown[0]}”; the kinds are {', '.join(KINDS)}.")
        if k < 1:
            return []
        hits = await self._ranked(query, wanted, max(k * 5, self._limits.recall_candidates))
        kept = [
            hit
            for hit in hits
            if (since is None or hit.at >= since)
            and (until is None or hit.at < until)
            and (
                entity is None
                or fold(entity) in [fold(name) for name in hit.entities]
                or fold(entity) in fold(hit.text)
            )
        ]
        return kept[:k]

    async def _ranked(self, query: str, kinds: Sequence[str], limit: int) -> list[RecallHit]:
        """Both rankings fused by reciprocal rank: what is high in either comes first, in both before all."""
        language = detect(query, None, self._packs)
        words = await self._index.by_words(query, language, kinds, limit)
        meaning = await self._index.by_meaning(await self._index.query_vector(query), kinds, limit)
        scores: dict[tuple[str, str], float] = {}
        reasons: dict[tuple[str, str], list[str]] = {}
        for name, hits in (("words", words), ("meaning", meaning)):
            for rank, hit in enumerate(hits, 1):
                key = (hit.kind, hit.ref)
                scores[key] = scores.get(key, 0.0) + 1 / (self._limits.recall_rank_offset + rank)
                reasons.setdefault(key, []).append(f"{name} {rank}")
        found = await self._load(
            [Hit(kind=kind, ref=ref, score=score) for (kind, ref), score in scores.items()], reasons
        )
        return sorted(found, key=lambda hit: (-hit.score, hit.id))

    async def _load(self, hits: Sequence[Hit], reasons: Mapping[tuple[str, str], Sequence[str]]) -> list[RecallHit]:
        by_ref = {hit.ref: hit for hit in hits}
        why = {hit.ref: ", ".join(reasons[hit.kind, hit.ref]) for hit in hits}
        found: list[RecallHit] = []
        facts = [hit.ref for hit in hits if hit.kind == "fact"]
        for fact in await fact_rows.with_ids(self._database, facts):
            if state_of(fact, self._clock(), self._limits) in ("active", "explicit-only"):
                found.append(_hit(by_ref[fact.id], fact.fact, fact.created_at, (), why[fact.id], f"fact {fact.id}"))
        statements = [hit.ref for hit in hits if hit.kind in STATEMENT_KINDS]
        for line in await context_rows.statements_with_ids(self._database, statements):
            found.append(_hit(by_ref[line.id], line.text, line.at, line.entities, why[line.id], f"turn {line.turn_id}"))
        summaries = [hit.ref for hit in hits if hit.kind == "summary"]
        for summary in await context_rows.summaries_with_ids(self._database, summaries):
            found.append(
                _hit(by_ref[summary.id], summary.rendered, summary.at, (), why[summary.id], f"summary {summary.id}")
            )
        return found


def _hit(hit: Hit, text: str, at: datetime, entities: tuple[str, ...], why: str, source: str) -> RecallHit:
    return RecallHit(
        id=hit.ref,
        kind=hit.kind,
        text=text,
        at=at,
        entities=entities,
        score=round(hit.score, 6),
        why=why,
        source=source,
    )
