"""``olvido calibrate``: how the cosines of the embedding model are read, and how well that parts texts."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Annotated

import typer

from assistant.cli.options import load
from assistant.cli.output import print_table
from assistant.cli.person import work_on
from assistant.cli.shown import plain, print_data, shown_date
from assistant.errors import AssistantError

if TYPE_CHECKING:
    from assistant.settings import LoadedSettings
    from memory import Memory
    from memory.similarity import Calibration, Pair


@dataclass(frozen=True, slots=True, kw_only=True)
class Shares:
    """How many of a language's pairs fall where they should, of 1; calibrated and by the raw cosine."""

    language: str
    same_calibrated: float
    same_raw: float
    unrelated_calibrated: float
    unrelated_raw: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """A calibration, when it was fitted, and what it achieves."""

    calibration: "Calibration"
    fitted_at: datetime | None
    shares: tuple[Shares, ...]


def calibrate(
    ctx: typer.Context,
    redo: Annotated[bool, typer.Option("--redo", help="Fit it anew.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON, for other programs.")] = False,
) -> None:
    """Show how similarities are read for the embedding model in force, or fit that anew."""
    loaded = load(ctx)
    shown = work_on(loaded, lambda memory: _measure(memory, redo))
    if as_json:
        cuts = {language: asdict(cut) for language, cut in shown.calibration.cuts.items()}
        about = plain({"model": shown.calibration.model, "fitted_at": shown.fitted_at})
        print_data({**about, "cuts": cuts, "shares": [asdict(share) for share in shown.shares]})
    else:
        _print(shown, loaded)


async def _measure(memory: "Memory", redo: bool) -> Shown:
    from memory.similarity import calibration_pairs, cosines
    from memory.stores.calibrations import fitted_at

    model = await memory.index.model()
    calibration = await (memory.calibrator.redo() if redo else memory.calibrator.current())
    embedder = memory.index.embedder(model)
    if calibration is None or embedder is None:
        raise AssistantError(
            f"The vectors in force were made by {model}, which is not configured any more. Run: olvido reembed"
        )
    pairs = calibration_pairs()
    raw = [float(cosine) for cosine in await cosines(pairs, embedder)]
    at = await fitted_at(memory.database, model)
    return Shown(calibration=calibration, fitted_at=at, shares=shares(calibration, pairs, raw))


def shares(calibration: "Calibration", pairs: "Sequence[Pair]", raw: Sequence[float]) -> tuple[Shares, ...]:
    """For all pairs, then language by language."""
    from memory.similarity import ANY, HIGH, LOW

    found = []
    for language in (ANY, *sorted({pair.language for pair in pairs})):
        mine = [(pair, cosine) for pair, cosine in zip(pairs, raw, strict=True) if language in (ANY, pair.language)]
        same = [(calibration(cosine, pair.language), cosine) for pair, cosine in mine if pair.label == "same"]
        other = [(calibration(cosine, pair.language), cosine) for pair, cosine in mine if pair.label == "unrelated"]
        found.append(
            Shares(
                language=language,
                same_calibrated=_share([value > HIGH for value, _ in same]),
                same_raw=_share([cosine > HIGH for _, cosine in same]),
                unrelated_calibrated=_share([value < LOW for value, _ in other]),
                unrelated_raw=_share([cosine < LOW for _, cosine in other]),
            )
        )
    return tuple(found)


def _share(hits: Sequence[bool]) -> float:
    return round(sum(hits) / len(hits), 4) if hits else 0.0


def _print(shown: Shown, loaded: "LoadedSettings") -> None:
    from memory.similarity import ANY

    fitted = shown_date(shown.fitted_at, loaded) if shown.fitted_at else "never"
    print_table(("model", "fitted"), [(shown.calibration.model, fitted)])
    names = {ANY: "all"}
    print_table(
        ("language", "typical unrelated (0.2)", "related from (0.4)", "same from (0.85)"),
        [
            (names.get(language, language), f"{cut.unrelated:.3f}", f"{cut.low:.3f}", f"{cut.high:.3f}")
            for language, cut in shown.calibration.cuts.items()
        ],
    )
    print_table(
        ("language", "same above 0.85", "by raw cosine", "unrelated below 0.4", "by raw cosine"),
        [
            (names.get(share.language, share.language), *(f"{value:.0%}" for value in list(asdict(share).values())[1:]))
            for share in shown.shares
        ],
    )
