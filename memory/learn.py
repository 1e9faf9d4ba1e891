"""Learning: drafts of facts become rows, confirm what is known or supersede it (F2, F6, F7), in one transaction."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from memory.calibrate import Calibrator
from memory.choose import LINE_TOKENS
from memory.corrections import Known, Verdict, judge, says_the_same
from memory.database import Database, Transaction
from memory.language import LanguagePack, fold, words_of
from memory.limits import Limits
from memory.ports import Clock
from memory.secrets import find_secret
from memory.stores import facts as rows
from memory.stores.index import Entry, Index, Prepared, stems
from memory.tokens import cut_to_tokens
from memory.values import Domain, Fact, FactDraft

KIND = "fact"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadyDraft:
    """A draft with all that has to be computed before the transaction: its vector and the facts near it."""

    draft: FactDraft
    prepared: Prepared
    near: tuple[tuple[str, float], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Learned:
    """What a batch of drafts did."""

    facts: tuple[Fact, ...] = ()
    confirmed: tuple[Fact, ...] = ()
    superseded: tuple[Fact, ...] = ()
    unclear: tuple[tuple[Fact, Fact], ...] = ()


class Learner:
    """Turns drafts into facts."""

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

    async def prepare(self, drafts: Sequence[FactDraft]) -> list[ReadyDraft]:
        """Embeds drafts and looks for the facts they may concern; nothing is written."""
        if not drafts:
            return []
        cut = [replace(draft, fact=shortened(draft.fact, self._limits.fact_tokens)) for draft in drafts]
        prepared = await self._index.prepare([draft.fact for draft in cut])
        scale = await self._calibrator.current()
        ready = []
        for number, draft in enumerate(cut):
            vectors = prepared.vectors[number : number + 1]
            limit = self._limits.fact_candidates
            near = {hit.ref: 0.0 for hit in await self._index.by_words(draft.fact, draft.language, [KIND], limit)}
            if prepared.generation is not None and scale is not None:
                for hit in await self._index.by_meaning(vectors[0], [KIND], limit):
                    near[hit.ref] = scale(hit.score, draft.language)
            own = Prepared(generation=prepared.generation, vectors=vectors)
            ready.append(ReadyDraft(draft=draft, prepared=own, near=tuple(near.items())))
        return ready

    async def write(
        self,
        tx: Transaction,
        ready: Sequence[ReadyDraft],
        turn_id: int | None,
        action: str,
        beside: Sequence[Fact] = (),
    ) -> Learned:
        """Stores drafts, in the transaction of the turn that stated them; facts `beside` them are of the same turn."""
        learned = Learned()
        for item in ready:
            if any(says_the_same(item.draft, fact, self._packs) for fact in learned.facts):
                continue  # "I moved to Lyon. I live in Lyon now."
            known = await self._known(tx, item, (*learned.facts, *beside))
            verdict = judge(item.draft, known, self._packs, self._limits)
            changed = {fact.attribute for fact in learned.superseded if not fact.single} - {""}
            if item.draft.attribute in changed:  # "no Seville after all, it's Krakow": one change, said in two clauses
                verdict = replace(verdict, supersedes=())
            if verdict.weighed and learned.superseded:
                verdict = replace(verdict, supersedes=())
            learned = await self._apply(tx, item, verdict, turn_id, action, learned)
        return learned

    async def _known(self, tx: Transaction, item: ReadyDraft, beside: Sequence[Fact]) -> list[Known]:
        """The current facts a draft may concern, but those of the same message: they do not contradict each other."""
        similarity = dict(item.near)
        found = {fact.id: fact for fact in await rows.with_ids(tx, similarity)}
        if item.draft.attribute:
            found |= {fact.id: fact for fact in await rows.current_with_attribute(tx, item.draft.attribute)}
        # another process may have stored the same words since the draft was prepared
        found |= {fact.id: fact for fact in await rows.current_saying(tx, item.draft.fact)}
        own = {fact.id for fact in beside}
        return [
            Known(fact=fact, similarity=similarity.get(fact.id, 0.0))
            for fact in found.values()
            if fact.status == "current" and fact.id not in own
        ]

    async def _apply(
        self, tx: Transaction, item: ReadyDraft, verdict: Verdict, turn_id: int | None, action: str, learned: Learned
    ) -> Learned:
        now = self._clock()
        if verdict.confirms:
            confirmed = await self._confirm(tx, verdict.confirms, item.draft)
            return replace(learned, confirmed=(*learned.confirmed, confirmed))
        fact = await rows.insert(tx, new_fact(item.draft, turn_id, now))
        await rows.unbury(tx, normalised(fact.fact, self._packs.get(fact.language)))
        await self._index.add(tx, [entry_of(fact)], item.prepared)
        batch = await rows.record(tx, action, [(fact.id, None, fact)], now)
        replaced = []
        for old in verdict.supersedes:
            gone = replace(old, status="superseded", superseded_by=fact.id)
            await rows.update(tx, gone)
            await self._index.remove(tx, KIND, [old.id])
            await rows.record(tx, "superseded", [(old.id, old, gone)], now, batch)
            replaced.append(gone)
        return Learned(
            facts=(*learned.facts, fact),
            confirmed=learned.confirmed,
            superseded=(*learned.superseded, *replaced),
            unclear=(*learned.unclear, *((fact, old) for old in verdict.unclear)),
        )

    async def _confirm(self, tx: Transaction, known: Fact, draft: FactDraft) -> Fact:
        """Said again: younger, and as sure as the surer of both."""
        order = ("low", "medium", "high")
        surer = max(known.confidence, draft.confidence, key=order.index)
        after = replace(known, last_confirmed_at=self._clock(), confidence=surer, pinned=known.pinned or draft.pinned)
        await rows.update(tx, after)
        await rows.record(tx, "confirmed", [(known.id, known, after)], self._clock())
        return after


def new_fact(draft: FactDraft, turn_id: int | None, now: datetime) -> Fact:
    """A draft as the row it becomes; the id is given when it is stored."""
    return Fact(
        id="",
        domain=draft.domain,
        fact=draft.fact,
        confidence=draft.confidence,
        created_at=now,
        last_confirmed_at=now,
        source="explicit",
        quote=draft.quote,
        turn_id=turn_id,
        language=draft.language,
        status="current",
        superseded_by=None,
        pinned=draft.pinned,
        kind=draft.kind,
        attribute=draft.attribute,
        key=draft.key,
        value=draft.value,
        single=draft.single,
        polarity=draft.polarity,
    )


def entry_of(fact: Fact) -> Entry:
    """How a fact is found."""
    return Entry(kind=KIND, ref=fact.id, text=fact.fact, language=fact.language, at=fact.created_at)


def normalised(text: str, pack: LanguagePack | None) -> str:
    """A text reduced to what makes it the same fact: its stems in their order."""
    return " ".join(stems(text, pack)) or " ".join(words_of(text)) or text.strip()


def shortened(text: str, tokens: int) -> str:
    """A fact that fits a request as a line, cut where a clause or at least a word ends."""
    cut = cut_to_tokens(text, tokens - LINE_TOKENS)
    if cut == text:
        return text
    ends = [match.start() for match in re.finditer(r"[,;:.!?，；：。！？、]+(?=\s|$)|[，；：。！？、]", cut)]
    words = [match.start() for match in re.finditer(r"\s+", cut)]
    place = next((found[-1] for found in (ends, words) if found and found[-1] * 2 >= len(cut)), len(cut))
    return cut[:place].rstrip(" ,;:，；：、")


def plain_draft(text: str, language: str, packs: Mapping[str, LanguagePack]) -> FactDraft:
    """A text taken as a fact because the user says so, not because a rule recognises it."""
    folded = fold(text)
    counts = {domain: len(pattern.findall(folded)) for domain, pattern in packs[language].domain_words.items()}
    best = max(counts, key=lambda domain: counts[domain])
    domain: Domain = best if counts[best] else "personal"  # type: ignore[assignment]
    return FactDraft(
        fact=text,
        domain=domain,
        confidence="high",
        quote=text,
        language=language,
        kind="statement",
        secret=find_secret(text),
    )
