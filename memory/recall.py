"""Recall: the stored lines that answer a question, found by words and by meaning, in one explainable ranking."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, time, tzinfo

from memory.database import Database
from memory.decay import state_of
from memory.episodes import Episodes, shown
from memory.errors import Refused
from memory.language import LanguagePack, detect, fold, words_of
from memory.limits import Limits
from memory.ports import Clock
from memory.rank import Asked, Line, Ranked, rank
from memory.signals import asking
from memory.statements import said_by
from memory.stores import context as context_rows
from memory.stores import episodes as episode_rows
from memory.stores import facts as fact_rows
from memory.stores import turns as turn_rows
from memory.stores.index import Index, stems
from memory.times import spans, wants_newest
from memory.values import Episode, FactState, RecallHit, Statement

STATEMENT_KINDS = ("world", "experience", "opinion", "observation")
KINDS = ("fact", "episode", *STATEMENT_KINDS)
_NAME = re.compile(r"(?<=[\w,;:’'\"“)¿¡] )[A-ZÀ-ÖØ-Þ][\w'’-]+")  # not at the beginning of a sentence
_FAINT = 0.15  # a cosine below this says nothing
_LOOKED_AT = 5  # so many of the best lines are looked at to see whether there is anything to recall


class Recall:
    """Searches everything one person said."""

    def __init__(
        self,
        *,
        database: Database,
        index: Index,
        episodes: Episodes,
        packs: Mapping[str, LanguagePack],
        clock: Clock,
        zone: tzinfo,
        limits: Limits,
    ) -> None:
        self._database = database
        self._index = index
        self._episodes = episodes
        self._packs = packs
        self._clock = clock
        self._zone = zone
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
        language = detect(query, None, self._packs)
        asked, topic = await self._asked(query, self._packs[language])
        limit = max(k * 5, self._limits.recall_candidates)
        found = await self._ranked(asked, topic, language, wanted, limit)
        kept = [
            one
            for one in found
            if (one.line.words > 0 or one.line.meaning > _FAINT)
            and (since is None or one.line.at >= since)
            and (until is None or one.line.at < until)
            and (entity is None or _is_about(entity, one.line))
        ]
        return [_hit(one) for one in kept[:k]]

    async def timeline(self, since: datetime | None, until: datetime | None, limit: int) -> list[RecallHit]:
        """What was said in a stretch of time and is still kept, oldest first; of more than `limit` the last ones."""
        bounds = [moment.astimezone(UTC) if moment else None for moment in (since, until)]
        said = await context_rows.statements_between(self._database, bounds[0], bounds[1], limit)
        states = await self._fact_states(said, self._clock())
        today = await context_rows.day_number(self._database)
        lines = [self._line(one, today, states.get(one.id, "active")) for one in said if states.get(one.id) != "stale"]
        return [_hit(Ranked(line=line, score=0.0, why="said then")) for line in lines]

    async def last_mention(self, topic: str, language: str, before: int) -> RecallHit | None:
        """The newest line of the user, said before a turn, that has all words of a topic."""
        wanted = set(stems(topic, self._packs[language]))
        if not wanted:
            return None
        found = await self(topic, self._limits.recall_candidates, kinds=("fact", "world", "experience", "opinion"))
        for turn in await turn_rows.with_content(self._database):
            if (
                turn.role == "user"
                and turn.id < before
                and not self._packs[language].asks("mentioned", fold(turn.content))
            ):
                line = Line(
                    kind="turn", id=f"t{turn.id}", text=turn.content, at=turn.timestamp, source=f"turn {turn.id}"
                )
                found.append(_hit(Ranked(line=line, score=0.0, why="still in the window")))
        said = [hit for hit in found if wanted <= set(stems(hit.text, self._packs[language]))]
        return max(said, key=lambda hit: hit.at, default=None)

    async def evidence(self, question: str, language: str) -> tuple[list[RecallHit], int]:
        """The statements that speak to a question, best first, and how many tokens of them it calls for.

        The cut is by evidence: a line counts as long as it is not much worse than the best one. A question about what
        was may take all the room there is, any other one little.
        """
        pack = self._packs[language]
        asked, topic = await self._asked(question, pack)
        kinds = (*STATEMENT_KINDS, "episode") if asked.together else STATEMENT_KINDS
        found = await self._ranked(asked, topic, language, kinds, self._limits.recall_candidates)
        found = [one for one in found if one.line.state == "active"]
        if asked.together:
            found = await self._few_episodes(found, question)
        opinions = await self._opinions(asked, topic, language) if asked.advice and not asked.past else []
        if not found or not (asked.past or await self._bears_on(found, topic, language)):
            return opinions, self._limits.recall_advice_tokens
        share = self._limits.recall_evidence if asked.past else self._limits.recall_ordinary_evidence
        room = self._limits.recall_tokens if asked.past else self._limits.recall_ordinary_tokens
        kept = [_hit(one) for one in found if one.score >= share * found[0].score]
        first = {hit.id for hit in opinions}
        return [*opinions, *(hit for hit in kept if hit.id not in first)], room

    async def _opinions(self, asked: Asked, topic: str, language: str) -> list[RecallHit]:
        """The user's opinions nearest to what advice is asked for: they bear on it whatever words it uses."""
        found = await self._ranked(asked, topic, language, ("opinion",), self._limits.recall_opinions)
        near = sorted(found, key=lambda one: -one.line.meaning)[: self._limits.recall_opinions]
        return [_hit(one) for one in near if one.line.state == "active"]

    async def _few_episodes(self, found: Sequence[Ranked], question: str) -> list[Ranked]:
        """All that was found, but of episodes only the best few, and none that is to be asked for explicitly (E4)."""
        ids = [one.line.id for one in found if one.line.kind == "episode"]
        episodes = await episode_rows.with_ids(self._database, ids)
        similar = await self._episodes.similarities(question, episodes)
        most = max((one.line.words for one in found), default=0.0)
        spoken_of = {one.line.id for one in found if one.line.words > 0 and one.line.words * 2 >= most}
        near = {ref for ref, value in similar.items() if value >= self._limits.episode_aged_similarity}
        due = {one.id for one in episodes if self._episodes.is_due(one, similar[one.id])}
        best = [ref for ref in ids if ref in due and ref in spoken_of | near][: self._limits.episodes_recalled]
        return [one for one in found if one.line.kind != "episode" or one.line.id in best]

    async def _bears_on(self, found: Sequence[Ranked], topic: str, language: str) -> bool:
        """Whether one of the best lines has enough of the question's words, the rarer ones counting more."""
        pack = self._packs[language]
        asked = set(stems(topic, pack, pack.words["question_words"]))
        said, lines = await self._index.said(asked)
        if pack.script == "han":  # without spaces most pairs of characters are no words; those that are, were said
            asked = {stem for stem in asked if stem in said and len(stem) > 1}
        weight = {stem: math.log((lines + 1) / (said.get(stem, 0) + 0.5)) for stem in asked}
        whole = sum(weight.values())
        if whole <= 0:
            return False
        best = (set(stems(one.line.text, self._packs.get(one.line.language))) for one in found[:_LOOKED_AT])
        return any(sum(weight[stem] for stem in asked & own) >= self._limits.recall_floor * whole for own in best)

    async def _ranked(self, asked: Asked, topic: str, language: str, kinds: Sequence[str], limit: int) -> list[Ranked]:
        """All that may answer a question about a topic, best first."""
        words = await self._index.by_words(topic, language, kinds, limit)
        meaning = await self._index.by_meaning(await self._index.query_vector(topic), kinds, limit)
        by_words = {hit.ref: hit.score for hit in words}
        by_meaning = {hit.ref: hit.score for hit in meaning}
        refs = list(dict.fromkeys([*by_words, *by_meaning]))
        return rank(await self._lines(refs, by_words, by_meaning, asked.now), asked, self._limits)

    async def _asked(self, query: str, pack: LanguagePack) -> tuple[Asked, str]:
        """What a question says about its answer, and its words without those that only say whose it is."""
        words = set(words_of(query)) | set(fold(query).split())
        asks = " ".join(asking(query, pack)) or query  # what is merely told beside a question asks for nothing
        speakers = await context_rows.speakers(self._database)
        named = [speaker for speaker in speakers if set(words_of(speaker)) & words]
        first = _any(asks, set(words_of(asks)), pack.statements["first_person"], pack)
        answered = bool(pack.you_said.search(fold(asks)))
        advice = bool(pack.advice.search(fold(query)))
        known = await self._known_names(asks, pack)
        today = self._clock().astimezone(self._zone).date()
        days = [span for span in spans(asks, today, pack) if span.since < today]
        was = bool(days or pack.past.search(fold(asks)) or (not advice and (first or known)))
        together = bool(pack.asks_of_episodes.search(fold(asks)))
        asked = Asked(
            now=self._clock(),
            speaker=named[0] if len(named) == 1 else "",
            own=first and not named and not answered,
            answered=answered,
            names=frozenset(words) - pack.words["function_words"] - pack.words["question_words"],
            since=self._start(min(span.since for span in days)) if days else None,
            until=self._start(max(span.until for span in days)) if days else None,
            newest=wants_newest(query, pack),
            advice=advice,
            past=bool(named or answered or together or (was and not pack.ahead.search(fold(asks)))),
            together=together,
            naming=bool(pack.naming.search(fold(asks))),
            numbers=pack.number if pack.counting.search(fold(asks)) else None,
            given=frozenset(words) | {word for speaker in speakers for word in words_of(speaker)},
        )
        whose = {word for speaker in named for word in words_of(speaker)}
        return asked, " ".join(word for word in words_of(query) if word not in whose) or query

    async def _known_names(self, query: str, pack: LanguagePack) -> bool:
        """Whether the question names somebody or something that was spoken of."""
        names = {stem for name in _NAME.findall(query) for stem in stems(name, pack)}
        return bool((await self._index.said(names))[0]) if names else False

    def _start(self, day: date) -> datetime:
        return datetime.combine(day, time(), tzinfo=self._zone).astimezone(UTC)

    async def _lines(
        self, refs: Sequence[str], words: Mapping[str, float], meaning: Mapping[str, float], now: datetime
    ) -> list[Line]:
        """The rows behind what was found."""
        lines: list[Line] = []
        for fact in await fact_rows.with_ids(self._database, [ref for ref in refs if ref.startswith("f")]):
            if state_of(fact, now, self._limits) in ("active", "explicit-only"):
                lines.append(
                    Line(
                        kind="fact", id=fact.id, text=fact.fact, at=fact.created_at, source=f"fact {fact.id}", own=True
                    )
                )
        today = await context_rows.day_number(self._database)
        said = await context_rows.statements_with_ids(self._database, [ref for ref in refs if ref.startswith("s")])
        states = await self._fact_states(said, now)
        lines += [self._line(one, today, states.get(one.id, "active")) for one in said if states.get(one.id) != "stale"]
        for episode in await episode_rows.with_ids(self._database, [ref for ref in refs if ref.startswith("e")]):
            lines.append(self._episode_line(episode))
        return [replace(line, words=words.get(line.id, 0.0), meaning=meaning.get(line.id, 0.0)) for line in lines]

    def _episode_line(self, episode: Episode) -> Line:
        return Line(
            kind="episode",
            id=episode.id,
            text=shown(episode),
            at=episode.ended_at,
            source=f"episode {episode.id}",
            language=episode.language,
            session=episode.session_id,
            entities=episode.entities,
            weight=1 + self._episodes.standing(episode, ""),
        )

    def _line(self, said: Statement, today: int, state: FactState) -> Line:
        return Line(
            kind=said.kind,
            id=said.id,
            text=said.text,
            at=said.at,
            source=f"turn {said.turn_id}",
            language=said.language,
            speaker=said.speaker,
            own=said.kind != "observation",
            session=said.session_id,
            turn=said.turn_id,
            entities=said.entities,
            unread=min(1.0, (today - said.read_on) / self._limits.statement_unread_days),
            state=state,
        )

    async def _fact_states(self, statements: Sequence[Statement], now: datetime) -> dict[str, FactState]:
        """The states of facts that statements say and little else (F13)."""
        facts = await fact_rows.of_turns(self._database, sorted({said.turn_id for said in statements}))
        states: dict[str, FactState] = {}
        for said in statements:
            own = set(stems(said_by(said), self._packs.get(said.language)))
            for fact in facts.get(said.turn_id, ()):
                words = set(stems(fact.fact, self._packs.get(fact.language)))
                if words and len(words & own) * 2 >= len(own | words):
                    states[said.id] = state_of(fact, now, self._limits)
        return states


def _any(query: str, words: set[str], wanted: frozenset[str], pack: LanguagePack) -> bool:
    return any(word in query for word in wanted) if pack.script == "han" else bool(words & wanted)


def _is_about(entity: str, line: Line) -> bool:
    return fold(entity) in (fold(name) for name in line.entities) or fold(entity) in fold(line.text)


def _hit(one: Ranked) -> RecallHit:
    line = one.line
    return RecallHit(
        id=line.id,
        kind=line.kind,
        text=line.text,
        at=line.at,
        entities=line.entities,
        score=round(one.score, 6),
        why=one.why,
        source=line.source,
    )
