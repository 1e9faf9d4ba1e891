"""The claims of the README: what each says, our figure, and what was measured beside it in the same run."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.report import markdown

README = Path(__file__).parents[1] / "README.md"
BEGIN = "<!-- figures: written by make bench from bench/results.json, do not edit -->"
END = "<!-- end of figures -->"

Figures = Mapping[str, float]
Results = Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """One row: in words, by which program, and how its figures are told."""

    says: str
    program: str
    ours: Callable[[Figures], str]
    beside: Callable[[Figures], str] | None = None  # where something else could do the same


def _tokens(value: float) -> str:
    return f"{value:,.0f} tokens"


def _share(value: float) -> str:
    return f"{100 * value:.0f}%"


def _ours_cached(figures: Figures, whose: str) -> str:
    return _share(next(value for name, value in figures.items() if name.endswith(f"{whose} cached")))


def _mean(figures: Figures, end: str) -> float:
    found = [value for name, value in figures.items() if name.endswith(end)]
    return sum(found) / len(found)


def _kept(figures: Figures) -> Figures:
    return {name: value for name, value in figures.items() if name.startswith("kept ")}


def _total(figures: Figures, end: str) -> int:
    return round(sum(value for name, value in figures.items() if name.endswith(end)))


def _covered(figures: Figures, whose: str) -> str:
    small, large = (figures[f"{whose}: covered at {budget} tokens, per cent"] for budget in ("1,000", "2,000"))
    return f"{small:.0f}% and {large:.0f}%"


CLAIMS = (
    Claim(
        says="A request at turn 400 costs what it cost at turn 20",
        program="tokens",
        ours=lambda f: (
            _tokens(f["tokens a request at turn 400"]) + f", {f['tokens a request at turn 20']:,.0f} at turn 20"
        ),
        beside=lambda f: f"whole history {_tokens(f['tokens of the whole history at turn 400'])}",
    ),
    Claim(
        says="Long messages: sent at turn 20, beside the whole history",
        program="tokens",
        ours=lambda f: f"{_share(f['long turns: share saved at turn 20'])} less",
    ),
    Claim(
        says="No request reaches 4,000 tokens; the largest of all",
        program="tokens",
        ours=lambda f: (
            f"{_tokens(f['most tokens of any request'])}; "
            f"in a model's own {f['most provider tokens of any request']:,.0f}"
        ),
    ),
    Claim(
        says="Months later, the words that answer are in the request (memory of 1,000 and of 2,000 tokens)",
        program="peers",
        ours=lambda f: _covered(f, "Olvido"),
        beside=lambda f: (
            f"vectors {_covered(f, 'vectors')}; BM25 {_covered(f, 'BM25')}; "
            f"last 4,000 tokens of history {f['last 4,000 tokens: covered at 2,000 tokens, per cent']:.0f}%"
        ),
    ),
    Claim(
        says="What a message takes on disk",
        program="peers",
        ours=lambda f: f"{f['Olvido: bytes a turn']:,.0f} bytes",
        beside=lambda f: "; ".join(
            f"{name} {f[f'{name}: bytes a turn']:,.0f}" for name in ("vectors", "BM25", "last 4,000 tokens")
        ),
    ),
    Claim(
        says="Time of a question, as a multiple of plain vector search",
        program="peers",
        ours=lambda f: f"up to {f['Olvido: time of a question, times that of vectors']:,.0f} times",
        beside=lambda f: f"vectors 1; BM25 up to {f['BM25: time of a question, times that of vectors']:g}",
    ),
    Claim(
        says="Facts learnt from messages kept apart: right among the learnt, learnt among those stated",
        program="extraction",
        ours=lambda f: f"{_share(_mean(f, '_kept, precision'))} and {_share(_mean(f, '_kept, recall'))}",
    ),
    Claim(
        says="A written day: answered without asking a model, and how many of these wrongly",
        program="day",
        ours=lambda f: f"{_share(_mean(f, 'share without a model'))}, {_total(f, 'wrong answers')} wrong",
    ),
    Claim(
        says="Follow-ups that look like an earlier question and get its answer; true rewordings that do",
        program="look_alikes",
        ours=lambda f: (
            f"{_total(f, 'of these served')} of {_total(f, ' look-alikes')}; "
            f"{_share(_mean(f, 'share served'))} of rewordings"
        ),
    ),
    Claim(
        says="Similar and unrelated pairs on the right side of the thresholds, mean of four languages",
        program="similarity",
        ours=lambda f: _share(_mean(_kept(f), "calibrated balanced")),
        beside=lambda f: f"raw cosine {_share(_mean(_kept(f), 'raw balanced'))}",
    ),
    Claim(
        says="Prompt tokens a server's prefix cache serves",
        program="prefix_cache",
        ours=lambda f: _ours_cached(f, "ours"),
        beside=lambda f: f"facts first {_ours_cached(f, 'facts first')}",
    ),
    Claim(
        says="Decisions of written segments that are in their 50-token summary, without a model",
        program="summaries",
        ours=lambda f: f"{_share(f['all, decisions'])}, {_share(f['all, invented decisions'])} invented",
    ),
    Claim(
        says="Writes acknowledged and then lost, killed (SIGKILL) while writing",
        program="crash",
        ours=lambda f: f"{f['lost']:.0f} in {f['rounds']:.0f} kills",
    ),
    *(
        Claim(
            says=f"Messages lost, answered twice or out of order, the daemon killed under load{where}",
            program=program,
            ours=lambda f: f"{sum(v for n, v in f.items() if n != 'rounds'):.0f} in {f['rounds']:.0f} kills",
        )
        for program, where in (("daemon_kill", ""), ("telegram_kill", ", through Telegram"))
    ),
    Claim(
        says="Ten times the facts: time and memory of choosing those of a request",
        program="facts",
        ours=lambda f: (
            f"up to {f['choosing, largest to smallest']:g} and "
            f"{f['peak memory of choosing, largest to smallest']:g} times"
        ),
    ),
    Claim(
        says="Ten times the statements: time of a recall",
        program="scale",
        ours=lambda f: f"up to {f['recall: time at 20,000 by time at 2,000']:g} times",
    ),
)


def rows(results: Results) -> list[list[object]]:
    """The claims that were measured; one whose program did not run here is no claim."""
    found: list[list[object]] = []
    for claim in CLAIMS:
        result = results.get(claim.program, {})
        if "figures" in result:
            figures = {**result["figures"], **result.get("at most", {})}
            command = f"`python -m bench.{claim.program}`"
            found.append([claim.says, claim.ours(figures), claim.beside(figures) if claim.beside else "", command])
    return found


def table_of(results: Results) -> str:
    """The table of the README."""
    return markdown(["claim", "Olvido", "beside it", "measured by"], rows(results))


def into_readme(text: str, results: Results) -> str:
    """The README with the table between its marks."""
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"README.md has lost the marks {BEGIN} and {END}")
    return f"{before}{BEGIN}\n{table_of(results)}\n{END}{after}"
