"""``olvido stats``: what requests cost, and what was saved."""

import shutil
from collections.abc import Sequence
from dataclasses import asdict
from textwrap import wrap
from typing import TYPE_CHECKING, Annotated

import typer

from assistant.cli.options import load
from assistant.cli.person import look

if TYPE_CHECKING:
    from assistant.settings import LoadedSettings
    from memory import Memory
    from memory.accounts import Totals
    from memory.values import Request

WAYS = {
    "history": "not sending the whole history",
    "known": "answers from memory",
    "cached": "cached answers",
    "repeated": "the same question again",
    "facts": "facts said lately (O1)",
    "tools": "short tool descriptions (O1)",
    "format": "format rules left out (O1)",
    "results": "cached tool results",
}
_WIDEST = 100


def stats(
    ctx: typer.Context,
    session: Annotated[bool, typer.Option("--session", help="Only the last session.")] = False,
    day: Annotated[bool, typer.Option("--day", help="Only today.")] = False,
    month: Annotated[bool, typer.Option("--month", help="Only this month.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON, for other programs.")] = False,
) -> None:
    """What requests to the model cost, and what was saved and how.

    Without an option: all that is on record. Tokens are counted by cl100k, as everywhere; the model's own count is
    beside them where it tells one.
    """
    loaded = load(ctx)

    async def read(memory: "Memory") -> "list[Request]":
        since = memory.accounts.midnight() if day or month else None
        if month and since:
            since = since.astimezone(memory.timezone).replace(day=1)
        last = await memory.accounts.last_session() if session else None
        if session and last is None:
            return []
        return await memory.accounts.between(since=since, session_id=last)

    requests: list[Request] = look(loaded, read, [])
    figures = _figures(requests, loaded)
    if as_json:
        from assistant.cli.shown import plain, print_data

        print_data(
            {**asdict(figures), "alerts": _alerts(figures, loaded), "each": [plain(asdict(r)) for r in requests]}
        )
        return
    title = " and ".join(
        name for name, chosen in (("the last session", session), ("today", day), ("this month", month)) if chosen
    )
    typer.echo("\n".join(report(requests, figures, loaded, title or "everything on record")))


def _figures(requests: "Sequence[Request]", loaded: "LoadedSettings") -> "Totals":
    from memory.accounts import totals

    return totals(requests, loaded.settings.limits.aggressive_tokens)


def report(requests: "Sequence[Request]", figures: "Totals", loaded: "LoadedSettings", title: str) -> list[str]:
    """All of it as lines for a terminal."""
    from assistant.cli.plot import bars, curve

    if not requests:
        return [f"Nothing is on record ({title})."]
    width = min(_WIDEST, shutil.get_terminal_size((80, 24)).columns)
    asked = [request for request in requests if request.kind == "model"]
    lines = [f"Requests: {title}", "", *_summary(figures, len(asked)), ""]
    if asked:
        sent = [float(request.tokens) for request in asked]
        whole = [float(request.history_tokens or request.tokens) for request in asked]
        lines += [
            "Tokens a request, first to last (█), and with the whole history (·):",
            *curve(sent, whole, width),
            "",
        ]
        lines += ["Tokens by section:", *bars(figures.sections, width), ""]
    if figures.saved:
        named = {WAYS.get(how, how): tokens for how, tokens in figures.saved.items()}
        lines += ["Tokens saved by:", *bars(named, width), ""]
    stages = ", ".join(f"{name} {_time(seconds)}" for name, seconds in figures.stage_seconds.items())
    lines += wrap(f"Time a message takes, on average: {stages}.", width) if stages else []
    return [*lines, *(f"! {alert}" for alert in _alerts(figures, loaded))]


def _summary(figures: "Totals", asked: int) -> list[str]:
    kinds = figures.by_kind
    unasked = sum(kinds.get(kind, 0) for kind in ("known", "cached", "repeated"))
    rows: list[tuple[str, str]] = [
        ("answered by a model", f"{asked:,}" + _models(figures)),
        ("without a model", f"{unasked:,}" + _share(unasked, asked + unasked, "of all answers")),
    ]
    if kinds.get("summary"):
        rows.append(("summaries by a model", f"{kinds['summary']:,}"))
    if asked:
        rows.append(("tokens sent", f"{figures.tokens:,}  (largest request {figures.largest:,})"))
        rows.append(("with the history", f"{figures.history_tokens:,}"))
        rows.append(("as the model counts", f"{figures.prompt_tokens:,}  ({figures.cached_tokens:,} from its cache)"))
        rows.append(("tokens written", f"{figures.reply_tokens:,}"))
    if figures.cost is not None:
        rows.append(("cost", f"{figures.cost:,.4f}"))
    return [f"{name:<22}{value}" for name, value in rows]


def _models(figures: "Totals") -> str:
    return (
        f"  ({', '.join(f'{name}: {count:,}' for name, count in figures.by_model.items())})" if figures.by_model else ""
    )


def _share(part: int, whole: int, of: str) -> str:
    return f"  ({part / whole:.0%} {of})" if whole else ""


def _time(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds >= 1 else f"{seconds * 1000:.0f} ms"


def _alerts(figures: "Totals", loaded: "LoadedSettings") -> list[str]:
    """What the user should look into."""
    limit = loaded.settings.limits.aggressive_tokens
    alerts = []
    if figures.large:
        alerts.append(f"{_count(figures.large)} passed {limit:,} tokens: see /context right after one.")
    if figures.cut:
        alerts.append(f"{_count(figures.cut)} had to cut the message: it was too long by itself.")
    return alerts


def _count(number: int) -> str:
    return "1 request" if number == 1 else f"{number:,} requests"
