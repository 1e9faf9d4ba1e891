"""What can be done with facts: add, confirm, edit, pin, undo, look at, choose (F1 to F12)."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from memory.calibrate import Calibrator
from memory.choose import Candidate, choose
from memory.confirmations import Confirmations
from memory.database import Database, Transaction
from memory.decay import fades_at, is_due, state_of
from memory.episodes import Episodes
from memory.errors import NotFound, Refused
from memory.forget import Forgetting, Forgotten
from memory.language import LanguagePack, detect, well_formed
from memory.learn import KIND, Learned, Learner, entry_of, normalised, plain_draft, shortened
from memory.limits import Limits
from memory.ports import Clock, TokenCounter
from memory.secrets import find_secret
from memory.signals import extract
from memory.similarity import ANY
from memory.stores import facts as rows
from memory.stores.index import Index, Prepared
from memory.tokens import count_tokens
from memory.values import STATES, ChosenFact, Confidence, Domain, Fact, FactDraft, FactEvent, FactState

if TYPE_CHECKING:  # pydantic is loaded only where a file is read
    from memory.importing import Imported
    from memory.portable import Format

DOMAINS: tuple[Domain, ...] = ("work", "preferences", "decisions", "personal", "projects")
FactList = list[Fact]  # inside the class `list` is a method
Events = list[FactEvent]
Choices = list[ChosenFact]
CONFIDENCES: tuple[Confidence, ...] = ("high", "medium", "low")


class Facts:
    """The facts of one memory."""

    def __init__(
        self,
        *,
        database: Database,
        index: Index,
        calibrator: Calibrator,
        packs: Mapping[str, LanguagePack],
        clock: Clock,
        limits: Limits,
        count: TokenCounter = count_tokens,
    ) -> None:
        self._database = database
        self._index = index
        self._calibrator = calibrator
        self._packs = packs
        self._clock = clock
        self._limits = limits
        self._count = count
        self.confirmations = Confirmations()
        self.learner = Learner(
            database=database, index=index, calibrator=calibrator, packs=packs, clock=clock, limits=limits
        )
        episodes = Episodes(
            database=database, index=index, calibrator=calibrator, packs=packs, clock=clock, limits=limits
        )
        self._forgetting = Forgetting(
            database=database, index=index, episodes=episodes, packs=packs, clock=clock, limits=limits
        )

    # -- looking

    async def list(
        self, state: FactState | None = "active", *, domain: Domain | None = None, text: str | None = None
    ) -> FactList:
        """Facts in a state (None: all), newest confirmation first; `text` must stand in the fact."""
        _check("state", state, STATES)
        _check("domain", domain, DOMAINS)
        found = [self._dated(fact) for fact in await rows.all_with_status(self._database, ("current", "superseded"))]
        wanted = words if (words := (text or "").casefold().strip()) else None
        kept = [
            fact
            for fact in found
            if (state is None or fact.state == state)
            and (domain is None or fact.domain == domain)
            and (wanted is None or wanted in fact.fact.casefold())
        ]
        return sorted(kept, key=lambda fact: (fact.last_confirmed_at, int(fact.id[1:])), reverse=True)

    async def get(self, fact_id: str) -> Fact:
        """One fact, whatever its state."""
        fact = await rows.get(self._database, fact_id)
        if fact is None or fact.status == "undone":
            raise NotFound(f"There is no fact {fact_id}. See the ids with: olvido facts list --state all")
        return self._dated(fact)

    async def history(self, fact_id: str | None = None, limit: int | None = None) -> Events:
        """All that was done to a fact and to those it superseded or was superseded by; None: to any fact."""
        await self.settle()
        if fact_id is None:
            return await rows.events(self._database, None, limit)
        chain = [fact.id for fact in await rows.chain(self._database, fact_id)] or [fact_id]
        found = await rows.events(self._database, chain, limit)
        if not found:
            raise NotFound(f"There is no fact {fact_id}, and there never was.")
        return found

    async def chain(self, fact_id: str) -> FactList:
        """A fact with those it superseded and was superseded by, oldest first."""
        await self.get(fact_id)
        return [self._dated(fact) for fact in await rows.chain(self._database, fact_id) if fact.status != "undone"]

    async def due(self) -> FactList:
        """What is about to become stale, soonest first (F12)."""
        facts = [self._dated(fact) for fact in await rows.all_with_status(self._database, ("current",))]
        found = [fact for fact in facts if is_due(fact, self._clock(), self._limits)]
        return sorted(found, key=lambda fact: fact.last_confirmed_at)

    async def offer_due(self) -> Fact | None:
        """The next fact to offer for keeping; each is offered once as it comes near its end (F12)."""
        done = await rows.offered(self._database)
        waiting = [fact for fact in await self.due() if (fact.id, fact.last_confirmed_at) not in done]
        if not waiting:
            return None
        async with self._database.transaction() as tx:
            await rows.offer(tx, waiting[0])
        return waiting[0]

    def fades_at(self, fact: Fact) -> datetime:
        """When a fact next loses its place if nobody confirms it."""
        return fades_at(fact, self._limits)

    # -- changing

    async def add(
        self,
        fact: str,
        domain: Domain | None = None,
        confidence: Confidence = "high",
        *,
        pinned: bool | None = None,
        insist: bool = False,
        language: str | None = None,
    ) -> Fact:
        """Stores a fact the user states; the stored one when it was known already; contradicted ones give way."""
        learned = await self.learn(fact, domain, confidence, pinned=pinned, insist=insist, language=language)
        return (*learned.facts, *learned.confirmed)[0]

    async def learn(
        self,
        fact: str,
        domain: Domain | None = None,
        confidence: Confidence = "high",
        *,
        pinned: bool | None = None,
        insist: bool = False,
        language: str | None = None,
    ) -> Learned:
        """The same, with all that it did: what it confirmed, superseded or may contradict."""
        await self.settle()
        _check("domain", domain, DOMAINS)
        _check("confidence", confidence, CONFIDENCES)
        draft = self._draft(fact, language)
        _refuse_secret(draft, insist)
        draft = replace(draft, confidence=confidence, domain=domain or draft.domain)
        if pinned is not None:
            draft = replace(draft, pinned=pinned)
        ready = await self.learner.prepare([draft])
        async with self._database.transaction() as tx:
            learned = await self.learner.write(tx, ready, turn_id=None, action="added")
        facts, confirmed = (tuple(map(self._dated, found)) for found in (learned.facts, learned.confirmed))
        return replace(learned, facts=facts, confirmed=confirmed)

    async def confirm(self, fact_id: str) -> Fact:
        """The user holds on to a fact: its age starts anew (F6)."""
        return await self._change(fact_id, "confirmed", last_confirmed_at=self._clock())

    async def pin(self, fact_id: str, pinned: bool = True) -> Fact:
        """A pinned fact is in every request."""
        return await self._change(fact_id, "pinned" if pinned else "unpinned", pinned=pinned)

    async def edit(
        self,
        fact_id: str,
        fact: str | None = None,
        *,
        domain: Domain | None = None,
        confidence: Confidence | None = None,
        insist: bool = False,
    ) -> Fact:
        """Corrects the wording, domain or confidence in place, under the same id; counts as a confirmation."""
        _check("domain", domain, DOMAINS)
        _check("confidence", confidence, CONFIDENCES)
        before = await self.get(fact_id)
        changes: dict[str, object] = {"last_confirmed_at": self._clock()}
        if fact is not None:
            draft = self._draft(fact, before.language)
            _refuse_secret(draft, insist)
            kept = ("fact", "language", "kind", "attribute", "key", "value", "single", "polarity")
            changes |= {name: getattr(draft, name) for name in kept}
        changes |= {"domain": domain} if domain else {}
        changes |= {"confidence": confidence} if confidence else {}
        return await self._change(fact_id, "edited", **changes)

    async def supersede(self, old_id: str, new_id: str) -> Fact:
        """Of two facts that cannot both be true the user chose the second (F7); returns it."""
        await self.settle()
        new = await self.get(new_id)
        async with self._database.transaction() as tx:
            old = await rows.get(tx, old_id)
            if new.status != "current" or old is None or old.status != "current" or old_id == new_id:
                raise Refused("One of the two does not hold any more, so there is nothing to choose.")
            gone = replace(old, status="superseded", superseded_by=new.id)
            await rows.update(tx, gone)
            await self._index.remove(tx, KIND, [old.id])
            await rows.record(tx, "superseded", [(old.id, old, gone)], self._clock())
        return new

    async def undo(self, fact_id: str | None = None) -> FactList:
        """Reverts the last thing done to a fact (None: to any); returns the facts as they are now."""
        await self.settle()
        batch = await rows.last_batch(self._database, fact_id)
        if batch is None:
            if fact_id is not None:
                await self.history(fact_id)  # raises for one that never was
            raise NotFound(
                f"There is nothing to undo{f' for {fact_id}' if fact_id else ''}. What was forgotten cannot come back."
            )
        texts = [change.before.fact for change in await rows.changes_of(self._database, batch) if change.before]
        prepared = await self._index.prepare(texts)
        now = self._clock()
        async with self._database.transaction() as tx:
            changes = await rows.changes_of(tx, batch)
            later = await rows.changed_since(tx, batch)
            if later:  # to put back a fact whose successor was replaced in turn would make two current values (F7)
                raise Refused(f"{', '.join(later)} changed after that; undo the later changes first.")
            await rows.mark_undone(tx, batch)
            restored = [await self._revert(tx, change, texts, prepared) for change in changes]
            await rows.record(tx, "reverted", [(fact.id, None, fact) for fact in restored], now)
        return [self._dated(fact) for fact in restored]

    async def _revert(self, tx: Transaction, change: rows.Change, texts: Sequence[str], prepared: Prepared) -> Fact:
        if change.before is None:  # it was created by the act
            assert change.after is not None
            gone = replace(await rows.get(tx, change.fact_id) or change.after, status="undone", superseded_by=None)
            await rows.update(tx, gone)
            await self._index.remove(tx, KIND, [gone.id])
            return gone
        await rows.update(tx, change.before)
        if change.before.status == "current" and change.before.fact in texts:
            place = texts.index(change.before.fact)
            vector = Prepared(generation=prepared.generation, vectors=prepared.vectors[place : place + 1])
            await self._index.add(tx, [entry_of(change.before)], vector)
        else:
            await self._index.remove(tx, KIND, [change.before.id])
        return change.before

    async def _change(self, fact_id: str, action: str, **changes: object) -> Fact:
        await self.settle()
        before = await self.get(fact_id)
        if before.status != "current":
            raise Refused(
                f"{fact_id} was replaced by {before.superseded_by}; change that one, or undo the replacement first."
            )
        after = replace(before, **changes)  # type: ignore[arg-type]
        prepared = await self._index.prepare([after.fact])
        async with self._database.transaction() as tx:
            fresh = await rows.get(tx, fact_id)
            if fresh is None or fresh.status != "current":
                raise NotFound(f"There is no current fact {fact_id} any more.")
            after = replace(fresh, **changes)  # type: ignore[arg-type]
            await rows.update(tx, after)
            batch = await rows.record(tx, action, [(after.id, fresh, after)], self._clock())
            if after.fact != fresh.fact:
                await self._give_way(tx, after, batch)
                await rows.unbury(tx, normalised(after.fact, self._packs.get(after.language)))
                await self._index.add(tx, [entry_of(after)], prepared)
        return self._dated(after)

    async def _give_way(self, tx: Transaction, after: Fact, batch: int) -> None:
        """A correction may put a fact into a place that another holds: one current value is left (F7)."""
        if not after.single:
            return
        for other in await rows.current_with_attribute(tx, after.attribute):
            if other.id != after.id and other.single and other.key == after.key:
                gone = replace(other, status="superseded", superseded_by=after.id)
                await rows.update(tx, gone)
                await self._index.remove(tx, KIND, [other.id])
                await rows.record(tx, "superseded", [(other.id, other, gone)], self._clock(), batch)

    # -- forgetting

    async def preview_forget(self, fact_id: str) -> Forgotten:
        """Exactly what forgetting a fact would remove."""
        return await self._forgetting.preview(fact_id)

    async def forget(self, fact_id: str) -> Forgotten:
        """Removes a fact, those it replaced and every trace of their words; it cannot be undone (F11)."""
        await self.settle()
        return await self._forgetting.forget(fact_id)

    async def forget_again(self, said: Sequence[Fact]) -> Forgotten:
        """Removes what was forgotten in another file, of which this one is a copy (F11)."""
        await self.settle()
        return await self._forgetting.forget_again(said)

    # -- taking out and bringing in

    async def export(self, form: "Format") -> str:
        """Every fact and its chain as JSON or Markdown, from which `import_` makes the same facts."""
        from memory import portable

        await self.settle()
        return portable.write(await rows.all_with_status(self._database, ("current", "superseded")), form)

    async def import_(self, text: str, form: "Format") -> "Imported":
        """Adds the facts of an export; known ones are left as they are, forgotten ones do not come back."""
        from memory import importing, portable

        def draft(words: str) -> FactDraft:
            found = self._draft(words, None)
            if found.secret:
                raise Refused(f"This looks like a credential ({found.secret}): take it out of the file.")
            return found

        importer = importing.Importer(
            database=self._database, index=self._index, packs=self._packs, clock=self._clock, draft=draft
        )
        await self.settle()
        return await importer.run(portable.read(text, form))

    # -- choosing for a request

    async def choose(self, message: str, recent: Sequence[str] = (), language: str | None = None) -> Choices:
        """The facts that belong in a request about a message, pinned first, each with its reason (F8, F9)."""
        spoken = detect(message, language, self._packs)
        near = await self.near(message, spoken)
        facts = {fact.id: fact for fact in await rows.with_ids(self._database, near)}
        facts |= {fact.id: fact for fact in await rows.pinned(self._database)}
        candidates = [
            Candidate(
                fact=self._dated(fact),
                similarity=near.get(fact.id, 0.0),
                old=self._clock() - fact.created_at > timedelta(days=self._limits.fact_dated_days),
            )
            for fact in facts.values()
            if fact.status == "current"
        ]
        return choose(message, spoken, candidates, recent, packs=self._packs, limits=self._limits, count=self._count)

    async def near(self, message: str, language: str) -> dict[str, float]:
        """The ids of facts that share words or meaning with a text, and their calibrated similarity."""
        limit = self._limits.fact_candidates
        vector = await self._index.query_vector(message)
        scale = await self._calibrator.current()
        found = {hit.ref: 0.0 for hit in await self._index.by_words(message, language, [KIND], limit)}
        for hit in await self._index.by_meaning(vector, [KIND], limit):
            found[hit.ref] = scale(hit.score, language if language else ANY) if scale else 0.0
        return found

    # -- pieces

    async def settle(self) -> None:
        """Writes confirmations that are held, before anything that follows them."""
        if self.confirmations.held:
            async with self._database.transaction() as tx:
                written = await self.confirmations.write(tx)
            self.confirmations.written(written)

    def _dated(self, fact: Fact) -> Fact:
        fact = self.confirmations.applied(fact)
        return replace(fact, state=state_of(fact, self._clock(), self._limits))

    def _draft(self, text: str, language: str | None) -> FactDraft:
        text = " ".join(well_formed(text).split())
        if not text:
            raise Refused("A fact needs at least one word.")
        spoken = language if language and language in self._packs else detect(text, None, self._packs)
        found = extract(text, spoken, self._packs, self._limits)
        draft = found[0] if len(found) == 1 else plain_draft(text, spoken, self._packs)
        whole = shortened(text, self._limits.fact_tokens)
        return replace(draft, fact=whole, quote=text, secret=find_secret(text))


def _refuse_secret(draft: FactDraft, insist: bool) -> None:
    if draft.secret and not insist:
        raise Refused(
            f"That looks like a credential ({draft.secret}), so it was not stored. "
            "If you want it stored all the same, insist (on the command line: --insist)."
        )


def _check(name: str, value: str | None, allowed: Sequence[str]) -> None:
    if value is not None and value not in allowed:
        raise Refused(f"There is no {name} “{value}”; it is one of {', '.join(allowed)}.")
