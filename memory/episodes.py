"""Episodes (E1 to E5): what happened and how it went; finding them in five ways, and all the user can do with them."""

import math
from collections.abc import Awaitable, Callable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial

from memory.calibrate import Calibrator
from memory.database import Database, Transaction, View
from memory.errors import NotFound, Refused
from memory.language import LanguagePack, detect, fold
from memory.limits import Limits
from memory.outcomes import most, outcome_of
from memory.ports import Clock
from memory.similarity import ANY
from memory.statements import said_by
from memory.stores import answers as answer_rows
from memory.stores import context as context_rows
from memory.stores import episodes as rows
from memory.stores import facts as fact_rows
from memory.stores import reactions as reaction_rows
from memory.stores import turns as turn_rows
from memory.stores.index import Entry, Hit, Index, Prepared, stems
from memory.summarise import short
from memory.tokens import count_tokens
from memory.values import (
    OUTCOMES,
    TASK_TYPES,
    Consolidation,
    Episode,
    EpisodeHit,
    Fact,
    Note,
    Outcome,
    Phase,
    Span,
    Spoken,
    Statement,
    Way,
)

KIND = "episode"
DOMAINS = ("work", "preferences", "decisions", "personal", "projects")
_AROUND = 0.7  # what a word said in an episode counts beside one of its summaries
_LOOKED_AT = 10  # times as many as are scored are looked at before a search is confined to those that fit
_CONTEXT_WORDS = 200  # so many words said in an episode it is found by, beside its own


def phase_of(episode: Episode, now: datetime, limits: Limits) -> Phase:
    """Where an episode stands in its life (E4)."""
    if episode.deleted_at is not None:
        return "deleted"
    days = (now - episode.ended_at) / timedelta(days=1)
    if days <= limits.episode_active_days:
        return "active"
    if days <= limits.episode_mature_days:
        return "mature"
    return "aged" if days <= limits.episode_aged_days else "archived"


def parts_of(episode: Episode, similarity: float, domain: str, now: datetime, limits: Limits) -> dict[str, float]:
    """The score of an episode taken apart (E3); its sum is the score."""
    days = max(0.0, (now - episode.ended_at) / timedelta(days=1))
    often = min(math.log1p(episode.accesses) / 10, 1.0)
    return {
        "similarity": limits.episode_similarity_weight * similarity,
        "recency": limits.episode_recency_weight * math.exp(-days / limits.episode_recency_days),
        "success": limits.episode_success_weight * (episode.outcome == "success"),
        "accesses": limits.episode_access_weight * often,
        "domain": limits.episode_domain_weight * bool(domain and episode.domain == domain),
    }


def shown(episode: Episode) -> str:
    """An episode as one line: what it was about, what was decided, and how it went."""
    return episode.text if episode.outcome == "unknown" else f"{episode.text}; outcome: {episode.outcome}"


def lines_of(episode: Episode) -> list[str]:
    """All that an episode says, piece by piece, each once."""
    found = [text for note in episode.notes for text in (*note.topic.split(", "), *note.discussed, note.outcome)]
    found += [text for note in episode.notes for text in (*note.decisions, *note.open_questions)]
    return list(dict.fromkeys(text for text in (*found, episode.trouble, *episode.tools) if text))


def rendered(notes: Sequence[Note], limits: Limits, times: int = 1) -> tuple[str, str]:
    """The topic of some notes, and all of them as one line short enough for a request."""
    phrases = list(dict.fromkeys(phrase for note in notes for phrase in note.topic.split(", ")))
    phrases.sort(key=lambda phrase: -sum(phrase in note.topic.split(", ") for note in notes))
    topic = short(", ".join(phrases[:4]), 30) or "…"
    discussed = list(dict.fromkeys([*phrases[4:], *(text for note in notes for text in note.discussed)]))
    decisions = list(dict.fromkeys(text for note in notes for text in note.decisions))
    outcomes = [note.outcome for note in notes if note.outcome]
    asked = notes[-1].open_questions[-1:]
    for talk, decided, tokens in ((8, 4, 24), (5, 4, 24), (3, 4, 20), (2, 3, 18), (1, 3, 15), (0, 2, 15), (0, 1, 10)):
        pieces = (
            ("topic", topic),
            ("discussed", ", ".join(short(text, 8) for text in discussed[:talk])),
            ("result", " / ".join(short(text, tokens) for text in outcomes[-1:])),
            ("decisions", " / ".join(short(text, tokens) for text in decisions[-decided:])),
            ("open_questions", " / ".join(short(text, tokens) for text in asked)),
            ("times", str(times) if times > 1 else ""),
        )
        line = "; ".join(f"{key}: {value}" for key, value in pieces if value)
        if count_tokens(line) <= limits.episode_tokens:
            break
    return topic, line


def tags_of(notes: Sequence[Note]) -> tuple[str, ...]:
    """What an episode is filed under: the phrases its topics are made of."""
    phrases = [phrase.strip() for note in notes for phrase in note.topic.split(", ")]
    return tuple(dict.fromkeys(phrase for phrase in phrases if phrase and phrase != "…"))[:8]


def entry_of(episode: Episode, context: Sequence[str] = (), variations: Sequence[str] = ()) -> Entry:
    """An episode as it is searched."""
    text = ". ".join(dict.fromkeys([*lines_of(episode), *variations]))
    return Entry(kind=KIND, ref=episode.id, text=text, language=episode.language, at=episode.ended_at, context=context)


def context_of(statements: Sequence[Statement], packs: Mapping[str, LanguagePack]) -> list[str]:
    """The words said in an episode, without their order."""
    found = {stem for one in statements for stem in stems(said_by(one), packs.get(one.language))}
    return sorted(found)[:_CONTEXT_WORDS]


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgottenEpisode:
    """What goes with an episode, or went; the facts learnt in it stay unless they are forgotten too."""

    episodes: tuple[Episode, ...]
    statements: tuple[Statement, ...]
    traces: int  # messages whose words were still kept
    facts: tuple[Fact, ...]
    complete: bool = False

    @property
    def spans(self) -> list[Span]:
        """Where it stood; of a consolidated one where its originals did."""
        return [
            Span(
                session_id=one.session_id,
                first_turn=one.first_turn,
                last_turn=one.last_turn,
                began_at=one.began_at,
                ended_at=one.ended_at,
            )
            for one in (self.episodes[1:] or self.episodes)
        ]


class Episodes:
    """The episodes of one person."""

    def __init__(
        self,
        *,
        database: Database,
        index: Index,
        calibrator: Calibrator,
        packs: Mapping[str, LanguagePack],
        clock: Clock,
        limits: Limits,
    ) -> None:
        self._database = database
        self._index = index
        self._calibrator = calibrator
        self._packs = packs
        self._clock = clock
        self._limits = limits

    # -- looking

    async def get(self, episode_id: str) -> Episode:
        """One episode, whatever its phase."""
        return await self._one(self._database, episode_id)

    def phase(self, episode: Episode) -> Phase:
        """Where it stands in its life now."""
        return phase_of(episode, self._clock(), self._limits)

    async def trace(self, episode_id: str) -> list[Spoken]:
        """What was said in it, word for word, as long as that is kept; never searched."""
        episode = await self.get(episode_id)
        found = await rows.members(self._database, episode_id) or [episode]
        return [
            spoken
            for one in found
            for spoken in await rows.trace(self._database, one.session_id, one.first_turn, one.last_turn)
        ]

    async def consolidation(self, episode_id: str) -> tuple[Consolidation, list[Episode]] | None:
        """What a consolidated episode stands for, with the originals; None for an ordinary one."""
        made = await rows.consolidation(self._database, episode_id)
        return (made, await rows.members(self._database, episode_id)) if made else None

    async def read(self, episode_id: str) -> Episode:
        """One episode, and the user had a look at it: that counts (E3)."""
        async with self._database.transaction() as tx:
            await self._one(tx, episode_id)
            await rows.count_access(tx, episode_id, self._clock())
            return await self._one(tx, episode_id)

    # -- finding (E2)

    async def search(
        self,
        query: str = "",
        *,
        k: int = 5,
        failures: bool = False,
        domain: str | None = None,
        task_type: str | None = None,
        outcome: Outcome | None = None,
        tool: str | None = None,
        tag: str | None = None,
        entity: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        archived: bool = False,
    ) -> list[EpisodeHit]:
        """The k best episodes: by meaning, by what they are, by both, by time, or failures like the one described.

        What is given says which. Archived ones are found only when asked for, aged ones also when they are near.
        """
        self._check(domain, task_type, outcome)
        kept = any(value is not None for value in (domain, task_type, outcome, tool, tag, entity))
        way = _way(query, kept or since is not None or until is not None, kept, failures)
        now = self._clock()
        oldest = None if archived else now - timedelta(days=self._limits.episode_aged_days)
        outcomes: tuple[Outcome, ...] = ("failure", "partial") if failures else ()
        filters = rows.Filters(
            domain=domain,
            task_type=task_type,
            outcomes=(outcome,) if outcome else outcomes,
            tool=tool,
            tag=tag,
            entity=entity,
            since=max(filter(None, (since, oldest)), default=None),
            until=until,
        )
        if not query.strip():
            found = [
                (one, 0.0)
                for one in await rows.found(self._database, filters, max(k, 5 * self._limits.episode_candidates))
            ]
        else:
            found = await self._nearest(query, filters, archived)
        spoken_of = domain or self._domain(query)
        hits = [self._hit(one, way, similarity, spoken_of) for one, similarity in found]
        if way == "temporal":
            return hits[:k]
        return sorted(hits, key=lambda hit: (-hit.score, hit.episode.id))[:k]

    async def _nearest(self, query: str, filters: rows.Filters, explicit: bool) -> list[tuple[Episode, float]]:
        """The episodes nearest to a query, with their calibrated similarity (E3)."""
        count = self._limits.episode_candidates
        vector = await self._index.query_vector(query)
        language = detect(query, None, self._packs)
        near = await self._filtered(partial(self._index.by_meaning, vector, [KIND]), filters)
        words = await self._filtered(partial(self._index.by_words, query, language, [KIND]), filters)
        refs = list(dict.fromkeys([*near, *words]))
        episodes = await rows.with_ids(self._database, refs)
        similar = await self.similarities(query, episodes)
        least = self._limits.episode_near_share * max(similar.values(), default=0.0)
        near_ones = sorted(episodes, key=lambda one: (-similar[one.id], one.id))[:count]
        return [
            (one, similar[one.id])
            for one in near_ones
            if similar[one.id] >= least and (explicit or self.is_due(one, similar[one.id]))
        ]

    async def _filtered(self, search: Callable[..., Awaitable[Sequence[Hit]]], filters: rows.Filters) -> list[str]:
        """The best of a search that are what they have to be.

        Most are, as a rule; only where too few of the best are does the search look at those alone, which takes a
        list of them all.
        """
        count, more = self._limits.episode_candidates, _LOOKED_AT * self._limits.episode_candidates
        refs = [hit.ref for hit in await search(more)]
        fitting = await rows.fitting(self._database, refs, filters)
        found = [ref for ref in refs if ref in fitting]
        if len(found) < count and len(refs) == more:
            found = [hit.ref for hit in await search(count, among=rows.among(filters))]
        return found[:count]

    async def similarities(self, query: str, episodes: Sequence[Episode]) -> dict[str, float]:
        """How like a query episodes are, 0 to 1: half by meaning, calibrated, half by the words they share.

        Of a query of two words and an episode of thirty, vectors alone say little (design, section 5).
        """
        vector, scale = await self._index.query_vector(query), await self._calibrator.current()
        language = detect(query, None, self._packs)
        refs = [one.id for one in episodes]
        shared = await self._shared(query, language, refs)
        if vector is None or scale is None or not refs:
            return {ref: shared.get(ref, 0.0) for ref in refs}
        cosines = await self._index.cosines(vector, KIND, refs)
        return {
            one.id: (
                scale(cosines.get(one.id, -1.0), language if one.language == language else ANY)
                + shared.get(one.id, 0.0)
            )
            / 2
            for one in episodes
        }

    async def _shared(self, query: str, language: str, refs: Sequence[str]) -> dict[str, float]:
        """What share of a query's words episodes have, the rarer ones counting more, those of its summaries most."""
        pack = self._packs[language]
        asked = set(stems(query, pack, pack.words["question_words"]))
        said, lines = await self._index.said(asked, KIND)
        if pack.script == "han":  # most pairs of characters are no words; those that were said are
            asked = {stem for stem in asked if len(stem) > 1 and stem in said} or asked
        weight = {stem: math.log((lines + 1) / (said.get(stem, 0) + 0.5)) for stem in asked}
        whole = sum(weight.values())
        if whole <= 0:
            return {}
        return {
            ref: sum(weight[stem] * (1.0 if stem in own else _AROUND) for stem in asked & (own | around)) / whole
            for ref, (own, around) in (await self._index.stems_of([KIND], refs)).items()
        }

    def is_due(self, episode: Episode, similarity: float) -> bool:
        """Whether an episode may be found without being asked for (E4): an aged one only if it is near."""
        phase = self.phase(episode)
        near = similarity >= self._limits.episode_aged_similarity
        return phase in ("active", "mature") or (phase == "aged" and near)

    def standing(self, episode: Episode, domain: str) -> float:
        """What speaks for an episode beside its nearness to a question (E3)."""
        return sum(parts_of(episode, 0.0, domain, self._clock(), self._limits).values())

    def _hit(self, episode: Episode, way: Way, similarity: float, domain: str) -> EpisodeHit:
        parts = parts_of(episode, similarity, domain, self._clock(), self._limits)
        phase = self.phase(episode)
        told = ", ".join(f"{name} {value:.3f}" for name, value in parts.items() if value >= 0.0005)
        return EpisodeHit(
            episode=episode,
            phase=phase,
            way=way,
            score=round(sum(parts.values()), 6),
            parts=parts,
            why=f"{way}: {told or 'nothing speaks for it'}; {phase}",
        )

    def _domain(self, query: str) -> str:
        pack = self._packs[detect(query, None, self._packs)]
        return most([{name: len(words.findall(fold(query))) for name, words in pack.domain_words.items()}])

    def _check(self, domain: str | None, task_type: str | None, outcome: str | None) -> None:
        for name, value, allowed in (
            ("domain", domain, DOMAINS),
            ("task type", task_type, TASK_TYPES),
            ("outcome", outcome, OUTCOMES),
        ):
            if value is not None and value not in allowed:
                raise Refused(f"There is no {name} “{value}”; it is one of {', '.join(allowed)}.")

    # -- how it went

    async def react(self, turn_id: int, value: int | None) -> None:
        """The user's thumb on a turn: 1 up, -1 down, None taken back. It says how the episode went (E1)."""
        if value not in (1, -1, None):
            raise Refused("A reaction is 1, -1 or None.")
        async with self._database.transaction() as tx:
            if await turn_rows.with_id(tx, turn_id) is None:
                raise NotFound(f"There is no turn {turn_id}.")
            await reaction_rows.react(tx, turn_id, value, self._clock())
            episode = await rows.of_turn(tx, turn_id)
            if episode is None:
                return
            thumbs = await rows.reactions(tx, episode.session_id, episode.first_turn, episode.last_turn)
            if thumbs:
                await rows.set_outcome(tx, episode.id, outcome_of((), thumbs, ()))

    async def used_tool(self, turn_id: int, tool: str, *, failed: bool = False) -> None:
        """A tool was used for the answer to a turn."""
        async with self._database.transaction() as tx:
            if await turn_rows.with_id(tx, turn_id) is None:
                raise NotFound(f"There is no turn {turn_id}.")
            await rows.add_tool_use(tx, turn_id, tool, failed)

    # -- ends of a life

    async def delete(self, episode_id: str) -> Episode:
        """Takes an episode out of every search; it can be restored for some time, then it is erased (E4)."""
        async with self._database.transaction() as tx:
            await self._one(tx, episode_id)
            await rows.set_deleted(tx, episode_id, self._clock())
            await self._index.remove(tx, KIND, [episode_id])
            return await self._one(tx, episode_id)

    async def restore(self, episode_id: str) -> Episode:
        """Takes a deletion back."""
        episode = await self.get(episode_id)
        if episode.deleted_at is None:
            raise Refused(f"{episode_id} is not deleted.")
        ready = await self.ready([episode])
        async with self._database.transaction() as tx:
            await rows.set_deleted(tx, episode_id, None)
            await self.put(tx, [episode], ready)
            return await self._one(tx, episode_id)

    async def separate(self, episode_id: str) -> list[Episode]:
        """Takes a consolidation back (E5): the originals stand for themselves again, and stay apart."""
        originals = await rows.members(self._database, episode_id)
        if not originals:
            await self.get(episode_id)
            raise Refused(f"{episode_id} stands for itself only: there is nothing to take apart.")
        ready = await self.ready(originals)
        async with self._database.transaction() as tx:
            originals = await self.dissolve(tx, episode_id)
            await self.put(tx, originals, ready)
            await rows.set_compared(tx, [one.id for one in originals], rows.KEPT_APART)
            return await rows.with_ids(tx, [one.id for one in originals])

    async def preview_forget(self, episode_id: str) -> ForgottenEpisode:
        """What forgetting an episode would remove."""
        async with self._database.snapshot() as view:
            return await self._concerned(view, episode_id)

    async def forget(self, episode_id: str) -> ForgottenEpisode:
        """Removes an episode with all that was said in it but the facts learnt; cannot be undone (F11)."""
        before = await self.get(episode_id)
        left = [one for one in await rows.members(self._database, before.merged_into or "e0") if one.id != before.id]
        ready = await self.ready(left)
        async with self._database.transaction() as tx:
            if before.merged_into:
                await self.dissolve(tx, before.merged_into)
                await self.put(tx, left, ready)
            gone = await self._concerned(tx, episode_id)
            for episode in gone.episodes:
                await self._erase_words(tx, episode.session_id, episode.first_turn, episode.last_turn)
            await self.erase(tx, gone.episodes)
            await rows.bury(tx, gone.spans)
            await self._index.forget_queries(tx)
            await answer_rows.delete_all(tx)
        return replace(gone, complete=await self._database.checkpoint())

    async def forget_again(self, spans: Sequence[Span]) -> int:
        """Removes from an older copy what was forgotten since it was made; returns how much of it was there."""
        there = [span for span in spans if await rows.has_turns(self._database, span)]
        for span in there:
            for episode in await rows.overlapping(self._database, span):
                await self.forget(episode.id)
        async with self._database.transaction() as tx:
            for span in there:  # what was no episode yet
                await self._erase_words(tx, *span.place)
                await self._erase_records(tx, *span.place)
            await rows.bury(tx, spans)
            await self._index.forget_queries(tx)
            await answer_rows.delete_all(tx)
        return len(there)

    async def _concerned(self, view: View, episode_id: str) -> ForgottenEpisode:
        episode = await self._one(view, episode_id)
        originals = await rows.members(view, episode_id)
        statements: list[Statement] = []
        facts: dict[str, Fact] = {}
        spoken = 0
        for one in originals or [episode]:
            place = (one.session_id, one.first_turn, one.last_turn)
            statements += await context_rows.statements_of_session(view, *place)
            spoken += len(await rows.trace(view, *place))
            turns = await turn_rows.between(view, *place)
            found = await fact_rows.of_turns(view, [turn.id for turn in turns])
            facts |= {fact.id: fact for learnt in found.values() for fact in learnt}
        return ForgottenEpisode(
            episodes=(episode, *originals), statements=tuple(statements), traces=spoken, facts=tuple(facts.values())
        )

    async def _erase_words(self, tx: Transaction, *place: int) -> None:
        """What some turns said: their statements, and the words by which lines beside them are found."""
        said = await context_rows.statements_of_session(tx, *place)
        words = await self._words_said(tx, said, *place)
        for statement in said:
            await self._index.remove(tx, statement.kind, [statement.id])
        await context_rows.delete_statements(tx, said)
        near = await rows.statements_beside(tx, *place)
        await self._index.strip_context(tx, words, near)
        await rows.empty_turns(tx, self._clock(), *place)

    async def _words_said(self, tx: Transaction, said: Sequence[Statement], *place: int) -> set[str]:
        """All words of some turns that are still known."""
        found = await self._index.stems_of(sorted({one.kind for one in said}), [one.id for one in said], tx)
        words = {stem for own, around in found.values() for stem in own | around}
        spoken = [one.content for one in await rows.trace(tx, *place)]
        spoken += [turn.content for turn in await turn_rows.between(tx, *place)]
        return words | {stem for text in spoken for pack in self._packs.values() for stem in stems(text, pack)}

    async def erase(self, tx: Transaction, episodes: Sequence[Episode]) -> None:
        """The rows of episodes, their summaries and traces, and what they are found by."""
        for episode in episodes:
            if await rows.consolidation(tx, episode.id) is None:
                await self._erase_records(tx, episode.session_id, episode.first_turn, episode.last_turn)
        await self._index.remove(tx, KIND, [one.id for one in episodes])
        await rows.delete(tx, [one.id for one in episodes])

    async def _erase_records(self, tx: Transaction, *place: int) -> None:
        """The summaries and the trace of some turns."""
        summaries = await rows.summaries_of(tx, *place)
        await self._index.remove(tx, "summary", summaries)
        await rows.delete_summaries(tx, summaries)
        await rows.delete_traces(tx, *place)

    async def dissolve(self, tx: Transaction, episode_id: str) -> list[Episode]:
        """A consolidated episode goes; its originals, which nothing finds yet, keep what was read of it."""
        made, whole = await rows.consolidation(tx, episode_id), await self._one(tx, episode_id)
        originals = await rows.members(tx, episode_id)
        if made:
            await rows.add_accesses(tx, made.representative, whole.accesses - made.accesses)
        await rows.merge(tx, [one.id for one in originals], None)
        await rows.set_compared(tx, [one.id for one in originals], 0)
        await self._index.remove(tx, KIND, [episode_id])
        await rows.delete(tx, [episode_id])
        return originals

    async def rewrite(
        self,
        tx: Transaction,
        episodes: Sequence[tuple[Episode, Episode | None]],
        ready: Mapping[str, tuple[Entry, Prepared]],
    ) -> None:
        """Puts what is left of episodes in their place; what a consolidated one stood for stands alone again."""
        for ref in dict.fromkeys(before.merged_into for before, _ in episodes if before.merged_into):
            originals = await self.dissolve(tx, ref)
            await self.put(tx, originals, ready)
        for before, after in episodes:
            await self._index.remove(tx, KIND, [before.id])
            await rows.delete(tx, [before.id])
            if after is None:
                continue
            await rows.insert(tx, replace(after, merged_into=None))
            if after.deleted_at:
                await rows.set_deleted(tx, after.id, after.deleted_at)
            else:
                await self.put(tx, [after], ready)

    async def ready_to_rewrite(
        self, episodes: Sequence[tuple[Episode, Episode | None]], forgotten: Set[str]
    ) -> dict[str, tuple[Entry, Prepared]]:
        """The same for what is left of episodes, and for what was consolidated with them."""
        clusters = {before.merged_into for before, _ in episodes if before.merged_into}
        beside = [each for ref in clusters for each in await rows.members(self._database, ref)]
        left = {one.id: one for one in (*beside, *(after for _, after in episodes if after))}
        return await self.ready([*left.values()], forgotten)

    # -- the index

    async def ready(
        self, episodes: Sequence[Episode], forgotten: Set[str] = frozenset()
    ) -> dict[str, tuple[Entry, Prepared]]:
        """What it takes to make episodes findable, made before the transaction that does so.

        Statements about to be forgotten lend them no words.
        """
        found = {}
        for one in episodes:
            made = await rows.consolidation(self._database, one.id)
            variations = [line for _, lines in made.variations for line in lines] if made else []
            said = await context_rows.statements_of_session(
                self._database, one.session_id, one.first_turn, one.last_turn
            )
            said = [line for line in said if line.id not in forgotten]
            entry = entry_of(one, context_of(said, self._packs), variations)
            found[one.id] = (entry, await self._index.prepare([entry.text]))
        return found

    async def put(
        self, tx: Transaction, episodes: Sequence[Episode], ready: Mapping[str, tuple[Entry, Prepared]]
    ) -> None:
        """Makes episodes findable."""
        for one in episodes:
            if one.id in ready:  # else it came meanwhile
                entry, prepared = ready[one.id]
                await self._index.add(tx, [entry], prepared)

    async def _one(self, reader: rows.Reader, episode_id: str) -> Episode:
        number = episode_id[1:]
        found = await rows.with_ids(reader, [episode_id]) if episode_id[:1] == "e" and number.isdecimal() else []
        if not found:
            raise NotFound(f"There is no episode {episode_id}. See the ids with: olvido episodes list")
        return found[0]

    # last: from here on the name means this method

    async def list(self, phase: Phase | None = None, k: int = 20) -> list[Episode]:
        """The newest episodes; of one phase if one is named."""
        if phase == "deleted":
            return (await rows.deleted(self._database))[-k:][::-1]
        days = (0, self._limits.episode_active_days, self._limits.episode_mature_days, self._limits.episode_aged_days)
        edges = {
            "active": (days[1], None),
            "mature": (days[2], days[1]),
            "aged": (days[3], days[2]),
            "archived": (None, days[3]),
        }
        oldest, newest = edges[phase] if phase else (None, None)
        now = self._clock()
        filters = rows.Filters(
            since=now - timedelta(days=oldest) if oldest is not None else None,
            until=now - timedelta(days=newest) if newest is not None else None,
        )
        return await rows.found(self._database, filters, k)


def _way(query: str, filtered: bool, kept: bool, failures: bool) -> Way:
    if failures:
        return "failures"
    if query.strip():
        return "hybrid" if filtered else "semantic"
    return "structured" if kept else "temporal"
