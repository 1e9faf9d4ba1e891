"""Facts are learnt from what states one and from nothing else: precision, recall, and yields where there must be none.

Files are JSON: a list of strings, or of pairs [label, first, second], none of which states a fact; or an object
{"positives": [{"text", "facts": [{"contains": [...], "domain"}], "hedged"}], "negatives": [{"text", "why"}]}.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.report import Skipped, arguments, program, save, table
from memory.language import fold
from memory.signals import extract
from memory.values import FactDraft

WRITTEN = Path(__file__).parents[1] / "tests" / "memory" / "extraction"


def must_yield_nothing(texts: Sequence[str], language: str | None) -> dict[str, float]:
    """How many texts yield a fact; each is printed."""
    yields = 0
    for text in texts:
        found = extract(text, language)
        yields += bool(found)
        for draft in found:
            print(f"  yields: {draft.fact!r}  from: {text!r}")
    return {"texts": len(texts), "texts that yield": yields}


def quality(labelled: Mapping[str, Any], language: str | None, verbose: bool) -> dict[str, float]:
    """Precision and recall of facts, domains and lowered confidence over messages with labels."""
    right = missed = wrong = labelled_domains = domains = hedged = lowered = 0
    for positive in labelled["positives"]:
        found = extract(positive["text"], language)
        used: set[int] = set()
        for wanted in positive["facts"]:
            hits = [place for place, draft in enumerate(found) if _holds(draft, wanted["contains"])]
            used.update(hits)
            right += bool(hits)
            missed += not hits
            labelled_domains += bool(hits) and "domain" in wanted
            domains += any(found[place].domain == wanted.get("domain") for place in hits)
            if verbose and not hits:
                print(f"  missed: {wanted['contains']}  in: {positive['text']!r}")
        words = [fold(word) for wanted in positive["facts"] for word in wanted["contains"]]
        extra = [draft for place, draft in enumerate(found) if place not in used]
        wrong += sum(not any(word in fold(draft.quote) for word in words) for draft in extra)
        if positive.get("hedged"):
            hedged += 1
            lowered += bool(found) and found[0].confidence != "high"
    for negative in labelled["negatives"]:
        found = extract(negative["text"], language)
        wrong += bool(found)
        if found:
            print(f"  yields: {found[0].fact!r}  from ({negative['why']}): {negative['text']!r}")
    return {
        "precision": right / max(1, right + wrong),
        "recall": right / max(1, right + missed),
        **({"domain right": domains / labelled_domains} if labelled_domains else {}),
        "hedged lowered": lowered / max(1, hedged),
        "facts": right + missed,
        "wrong": wrong,
    }


def _holds(draft: FactDraft, words: Sequence[str]) -> bool:
    return all(fold(word) in fold(draft.fact) for word in words)


def measure(file: Path, language: str | None, verbose: bool) -> dict[str, float]:
    """What a file asks for by its shape."""
    content = json.loads(file.read_text("utf-8"))
    if isinstance(content, dict):
        return quality(content, language, verbose)
    texts = [text for row in content for text in ([row] if isinstance(row, str) else row[1:3])]
    return must_yield_nothing(texts, language)


def main(argv: Sequence[str]) -> dict[str, float]:
    """Measure each file; print every yield that must not be, and a table."""
    parser = arguments(__doc__, full="the same: every message is measured anyway")
    parser.add_argument("files", type=Path, nargs="*", metavar="FILE")
    parser.add_argument("--language", help="of all texts; told from each of them when not given")
    parser.add_argument("--verbose", action="store_true", help="print what was missed, too")
    options = parser.parse_args(argv)
    given = options.files or sorted(WRITTEN.glob("*.json"))
    files = [file for file in given if file.is_file()]
    if not files:
        raise Skipped("it needs files with messages: python -m bench.extraction FILE...")
    found: dict[str, dict[str, float]] = {}
    for file in files:
        print(f"{file.name}:")
        found[file.stem] = measure(file, options.language, options.verbose)
    rows = [[name, key, value] for name, figures in found.items() for key, value in figures.items()]
    print(table(["file", "figure", "value"], rows))
    save(found, options.json)
    return {f"{name}, {key}": round(value, 4) for name, figures in found.items() for key, value in figures.items()}


if __name__ == "__main__":
    program(main)
