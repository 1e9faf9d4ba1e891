"""The account of every request: held for a while, then written in one go.

Counters, and with them confirmations of facts that were asked about, are written at rest, at the end, and at the latest
five minutes after the first of them; a crash in between costs numbers, never words.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, time, timedelta, tzinfo

from memory.confirmations import Confirmations
from memory.database import Database
from memory.limits import Limits
from memory.ports import Clock
from memory.providers import Providers
from memory.static import StaticPrompt
from memory.stores import requests as rows
from memory.tokens import count_tokens
from memory.values import Request

_RECENT_REQUESTS = 50


class Accounts:
    """What one person's requests cost."""

    def __init__(
        self,
        *,
        database: Database,
        providers: Providers,
        confirmations: Confirmations,
        clock: Clock,
        zone: tzinfo,
        limits: Limits,
        prompt: StaticPrompt,
    ) -> None:
        self._database = database
        self._providers = providers
        self._confirmations = confirmations
        self._clock = clock
        self._zone = zone
        self._limits = limits
        self._static_tokens = count_tokens(prompt.text)
        self._held: list[Request] = []

    async def record(self, request: Request) -> None:
        """Counts a request; written soon."""
        self._held.append(request)
        if self._clock() - self._held[0].at > timedelta(seconds=self._limits.counters_seconds):
            await self.flush()

    async def flush(self) -> None:
        """Writes what is held: requests, what providers were measured to need, and which facts were asked about."""
        held, self._held = self._held, []
        if not held and not self._providers.held and not self._confirmations.held:
            return
        try:
            async with self._database.transaction() as tx:
                await rows.insert(tx, held)
                await self._providers.write(tx)
                confirmed = await self._confirmations.write(tx)
        except BaseException:
            self._held = [*held, *self._held]
            raise
        self._confirmations.written(confirmed)

    async def between(
        self, since: datetime | None = None, until: datetime | None = None, session_id: int | None = None
    ) -> list[Request]:
        """The requests of a stretch of time (`until` exclusive) or of a session, oldest first."""
        await self.flush()
        bounds = [moment.astimezone(UTC) if moment else None for moment in (since, until)]
        return await rows.between(self._database, bounds[0], bounds[1], session_id)

    async def last_session(self) -> int | None:
        """The session of the newest request."""
        await self.flush()
        return await rows.last_session(self._database)

    async def spent_today(self) -> float:
        """What was spent since midnight where the user lives."""
        since = self.midnight()
        held = sum(request.cost or 0.0 for request in self._held if request.at >= since)
        return await rows.spent_since(self._database, since) + held

    def midnight(self) -> datetime:
        """When today began."""
        today = self._clock().astimezone(self._zone).date()
        return datetime.combine(today, time(), tzinfo=self._zone).astimezone(UTC)

    async def usual_tokens(self) -> int:
        """What a request costs as a rule: what one that was not needed has saved."""
        usual = await rows.usual_tokens(self._database, _RECENT_REQUESTS)
        return round(usual) if usual is not None else self._static_tokens

    async def history_tokens(self, session_id: int) -> int:
        """What a request with all that was said in a session would cost."""
        tokens, messages = await rows.history_tokens(self._database, session_id)
        overhead = self._limits.message_overhead_tokens * (messages + 1) + self._limits.request_overhead_tokens
        return self._static_tokens + tokens + overhead


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """Many requests in figures."""

    requests: int = 0
    asked: int = 0  # of these, a model was asked
    by_kind: Mapping[str, int] = field(default_factory=dict)
    by_model: Mapping[str, int] = field(default_factory=dict)
    tokens: int = 0
    largest: int = 0
    history_tokens: int = 0
    prompt_tokens: int = 0
    cached_tokens: int = 0
    reply_tokens: int = 0
    cost: float | None = None
    sections: Mapping[str, int] = field(default_factory=dict)
    saved: Mapping[str, int] = field(default_factory=dict)
    stage_seconds: Mapping[str, float] = field(default_factory=dict)  # the mean of each
    large: int = 0  # requests above the mark where everything is compressed (B2)
    cut: int = 0


def totals(requests: Sequence[Request], aggressive_tokens: int) -> Totals:
    """The figures of many requests."""
    stages: dict[str, list[float]] = {}
    for request in requests:
        for name, seconds in request.stages.items():
            stages.setdefault(name, []).append(seconds)
    costs = [request.cost for request in requests if request.cost is not None]
    answers = [request for request in requests if request.kind == "model"]
    return Totals(
        requests=len(requests),
        asked=sum(request.model != "" for request in requests),
        by_kind=_summed({request.kind: 1} for request in requests),
        by_model=_summed({request.model: 1} for request in requests if request.model),
        tokens=sum(request.tokens for request in requests),
        largest=max((request.tokens for request in requests), default=0),
        history_tokens=sum(request.history_tokens for request in answers),
        prompt_tokens=sum(request.prompt_tokens for request in requests),
        cached_tokens=sum(request.cached_tokens for request in requests),
        reply_tokens=sum(request.reply_tokens for request in requests),
        cost=sum(costs) if costs else None,
        sections=_summed(request.sections for request in requests),
        saved=_summed(request.saved for request in requests),
        stage_seconds={name: sum(seconds) / len(seconds) for name, seconds in stages.items()},
        large=sum(max(request.tokens, request.prompt_tokens) > aggressive_tokens for request in requests),
        cut=sum(request.cut for request in requests),
    )


def _summed(parts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    whole: dict[str, int] = {}
    for part in parts:
        for name, count in part.items():
            whole[name] = whole.get(name, 0) + count
    return whole
