"""The life of episodes (E1, E4, E5), done when nobody waits: closing topics, ageing, consolidating, erasing."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from memory.calibrate import Calibrator
from memory.database import Database
from memory.episodes import KIND, Episodes, context_of, entry_of, lines_of, rendered, tags_of
from memory.language import LanguagePack
from memory.limits import Limits
from memory.outcomes import loaded, most, outcome_of
from memory.ports import Clock
from memory.similarity import ANY
from memory.stores import context as context_rows
from memory.stores import episodes as rows
from memory.stores.index import Index
from memory.values import TASK_TYPES, Consolidation, Episode, Statement

_MOST_ENTITIES = 12
_AT_ONCE = 100  # episodes compared between two looks at what is left


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """An episode about to be stored, and what it was made from."""

    episode: Episode
    summaries: tuple[rows.Waiting, ...]
    statements: tuple[Statement, ...]


class EpisodeLife:
    """Does what is owed to episodes."""

    def __init__(
        self,
        *,
        database: Database,
        index: Index,
        calibrator: Calibrator,
        episodes: Episodes,
        packs: Mapping[str, LanguagePack],
        clock: Clock,
        limits: Limits,
    ) -> None:
        self._database = database
        self._index = index
        self._calibrator = calibrator
        self._episodes = episodes
        self._packs = packs
        self._clock = clock
        self._limits = limits

    async def run(self) -> int:
        """Does all of it; returns how many episodes were made."""
        made = await self._close_topics()
        await self._drop_summaries()
        await self._age()
        await self._consolidate()
        return made

    # -- E1: a closed topic becomes an episode

    async def _close_topics(self) -> int:
        made = 0
        for session_id in await rows.waiting_sessions(self._database):
            shifts = await rows.shifts(self._database, session_id)
            for run in _runs(await rows.waiting(self._database, session_id), shifts):
                following = next((shift for shift in shifts if shift > run[-1].last_turn), None)
                if await rows.is_over(self._database, session_id, run[0].first_turn, following):
                    made += await self._store(await self._draft(run))
        return made

    async def _draft(self, run: Sequence[rows.Waiting]) -> Draft:
        """The episode that some summaries make."""
        place = (run[0].session_id, run[0].first_turn, run[-1].last_turn)
        turns, began, ended = await rows.span(self._database, *place)
        tools = await rows.tool_uses(self._database, *place)
        statements = await context_rows.statements_of_session(self._database, *place)
        signals = [loaded(one.signals) for one in run]
        verdicts = [said for one in signals for said in one.verdicts]
        thumbs = await rows.reactions(self._database, *place)
        notes = tuple(one.note for one in run)
        topic, text = rendered(notes, self._limits)
        named = Counter(name for one in statements for name in one.entities)
        episode = Episode(
            id="",
            session_id=run[0].session_id,
            channel=run[0].channel,
            chat=run[0].chat,
            first_turn=run[0].first_turn,
            last_turn=run[-1].last_turn,
            turns=turns,
            began_at=began,
            ended_at=ended,
            language=Counter(one.language for one in run).most_common(1)[0][0],
            topic=topic,
            text=text,
            notes=notes,
            trouble=next((one.trouble for one in reversed(signals) if one.trouble), ""),
            domain=most([one.domains for one in signals]),
            task_type=most([one.tasks for one in signals], TASK_TYPES) or "talk",
            tools=tuple(dict.fromkeys(tool for tool, _ in tools)),
            tags=tags_of(notes),
            entities=tuple(name for name, _ in named.most_common(_MOST_ENTITIES)),
            outcome=outcome_of(verdicts, thumbs, [failed for _, failed in tools]),
        )
        return Draft(episode=episode, summaries=tuple(run), statements=tuple(statements))

    async def _store(self, draft: Draft) -> bool:
        """Whether it was stored; not when some of its words were forgotten meanwhile, or somebody else was faster."""
        context = context_of(draft.statements, self._packs)
        prepared = await self._index.prepare([entry_of(draft.episode).text])
        async with self._database.transaction() as tx:
            now = {one.id: one for one in await rows.waiting(tx, draft.episode.session_id)}
            if any(now.get(one.id) != one for one in draft.summaries):
                return False
            episode = await rows.insert(tx, draft.episode)
            await rows.attach(tx, [one.id for one in draft.summaries], episode.id)
            await self._index.add(tx, [entry_of(episode, context)], prepared)
        return True

    async def _drop_summaries(self) -> None:
        """Summaries that left the slots live on only as part of their episode (S3)."""
        if not await rows.past_slots(self._database, self._limits.summary_slots):
            return
        async with self._database.transaction() as tx:
            past = await rows.past_slots(tx, self._limits.summary_slots)
            await self._index.remove(tx, "summary", past)
            await rows.delete_summaries(tx, past)

    # -- E4: what age does

    async def _age(self) -> None:
        """Traces and deleted episodes are kept for their time only; what phase an episode is in, its age tells."""
        limits, now = self._limits, self._clock()
        traces = now - timedelta(days=min(limits.episode_trace_days, limits.episode_mature_days))
        erased = now - timedelta(days=limits.episode_deleted_days)
        if await rows.has_expired_traces(self._database, traces):
            async with self._database.transaction() as tx:
                await rows.expire_traces(tx, traces)
        if limits.episode_archived_days:
            kept = timedelta(days=limits.episode_aged_days + limits.episode_archived_days)
            for episode in await rows.older_than(self._database, now - kept):
                if not episode.merged_into:
                    await self._episodes.delete(episode.id)
        if await rows.deleted(self._database, erased):
            async with self._database.transaction() as tx:
                for episode in await rows.deleted(tx, erased):
                    await self._episodes.erase(tx, [episode, *await rows.members(tx, episode.id)])

    # -- E5: near-identical episodes

    async def _consolidate(self) -> None:
        before = self._clock() - timedelta(days=self._limits.episode_active_days)
        while waiting := await rows.uncompared(self._database, before, _AT_ONCE):
            for episode in waiting:
                [now] = await rows.with_ids(self._database, [episode.id])
                alike = [] if now.merged_into else await self._alike(episode, before)
                if alike:
                    await self._merge([episode, *alike])
                else:
                    async with self._database.transaction() as tx:
                        await rows.set_compared(tx, [episode.id])

    async def _alike(self, episode: Episode, before: datetime) -> list[Episode]:
        """Episodes of the same kind, close in time, that say nearly the same."""
        scale = await self._calibrator.current()
        vector = await self._index.vector(entry_of(episode).text)
        if scale is None or vector is None:
            return []
        near = timedelta(days=self._limits.episode_merge_days)
        filters = rows.Filters(
            domain=episode.domain,
            task_type=episode.task_type,
            outcomes=(episode.outcome,),
            since=episode.ended_at - near,
            until=min(episode.ended_at + near, before),
        )
        hits = await self._index.by_meaning(vector, [KIND], self._limits.episode_candidates, among=rows.among(filters))
        cosines = {hit.ref: hit.score for hit in hits if hit.ref != episode.id}
        apart = await rows.kept_apart(self._database, [*cosines])
        found = await rows.with_ids(self._database, [ref for ref in cosines if ref not in apart])
        return [
            one
            for one in found
            if scale(cosines[one.id], one.language if one.language == episode.language else ANY)
            > self._limits.episode_merge_similarity
        ]

    async def _merge(self, alike: Sequence[Episode]) -> None:
        """One episode stands for several; one that did so already grows, and keeps its id."""
        originals: dict[str, Episode] = {}
        earlier: list[str] = []
        for one in alike:
            members = await rows.members(self._database, one.id)
            originals |= {each.id: each for each in members or [one]}
            earlier += [one.id] if members else []
        whole, made = _whole([*originals.values()], earlier[0] if earlier else "", self._limits)
        variations = [line for _, lines in made.variations for line in lines]
        prepared = await self._index.prepare([entry_of(whole, (), variations).text])
        said = await context_rows.statements_of_session(
            self._database, whole.session_id, whole.first_turn, whole.last_turn
        )
        async with self._database.transaction() as tx:
            if {one.id: one for one in await rows.with_ids(tx, [*originals])} != originals:
                return  # forgotten or read meanwhile: they are looked at again
            for ref in earlier:
                await self._episodes.dissolve(tx, ref)
            whole, made = _whole(await rows.with_ids(tx, [*originals]), whole.id, self._limits)
            stored = await rows.insert(tx, whole)
            await rows.insert_consolidation(tx, stored.id, made)
            await rows.merge(tx, [*originals], stored.id)
            await rows.set_compared(tx, [*originals, stored.id])
            await self._index.remove(tx, KIND, [*originals])
            await self._index.add(tx, [entry_of(stored, context_of(said, self._packs), variations)], prepared)


def _runs(waiting: Sequence[rows.Waiting], shifts: Sequence[int]) -> list[list[rows.Waiting]]:
    """Summaries by topic: a turn that opens one begins a new run."""
    opening = set(shifts)
    runs: list[list[rows.Waiting]] = []
    for one in waiting:
        between = runs and any(runs[-1][-1].last_turn < shift <= one.first_turn for shift in opening)
        if not runs or between:
            runs.append([])
        runs[-1].append(one)
    return runs


def _whole(originals: Sequence[Episode], ref: str, limits: Limits) -> tuple[Episode, Consolidation]:
    """The consolidated episode: the newest speaks for all, what the others have beside it is kept as variations."""
    ordered = sorted(originals, key=lambda one: (one.ended_at, one.id))
    newest, count = ordered[-1], len(ordered)
    topic, text = rendered(newest.notes, limits, count)
    said = Counter(line for one in ordered for line in set(lines_of(one)))
    seconds = [(one.ended_at - one.began_at).total_seconds() for one in ordered]
    accesses = sum(one.accesses for one in ordered)
    made = Consolidation(
        representative=newest.id,
        statistics={
            "instances": count,
            "success_rate": sum(one.outcome == "success" for one in ordered) / count,
            "mean_seconds": round(sum(seconds) / count, 1),
            "mean_turns": round(sum(one.turns for one in ordered) / count, 1),
        },
        variations=tuple((one.id, tuple(line for line in lines_of(one) if said[line] < count)) for one in ordered),
        accesses=accesses,
    )
    whole = Episode(
        id=ref,
        session_id=newest.session_id,
        channel=newest.channel,
        chat=newest.chat,
        first_turn=newest.first_turn,
        last_turn=newest.last_turn,
        turns=sum(one.turns for one in ordered),
        began_at=ordered[0].began_at,
        ended_at=newest.ended_at,
        language=newest.language,
        topic=topic,
        text=text,
        notes=newest.notes,
        trouble=newest.trouble,
        domain=newest.domain,
        task_type=newest.task_type,
        tools=_united(one.tools for one in ordered),
        tags=_united(one.tags for one in ordered),
        entities=_united(one.entities for one in ordered),
        outcome=newest.outcome,
        accesses=accesses,
    )
    return whole, made


def _united(lists: Iterable[Sequence[str]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for names in lists for name in names))
