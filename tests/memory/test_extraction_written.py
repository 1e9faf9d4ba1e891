"""Messages written by people who have not seen the rules (F2): some the packs were developed on, some kept.

The aim is precision 0.98 and recall 0.93 on the kept ones, which neither rules nor weights were made with. It is not
reached yet (bench/extraction.py prints where it stands), so these floors only hold what is there.
"""

import contextlib
import io
import json
from pathlib import Path

import pytest

from bench.extraction import quality

FOLDER = Path(__file__).parent / "extraction"
FLOORS = {
    "developed_on": (0.98, 0.95),
    "developed_on_2": (0.95, 0.91),
    "developed_on_3": (0.97, 0.92),
    "developed_on_4": (0.97, 0.92),
    "kept": (0.95, 0.79),
}


@pytest.mark.parametrize("half", FLOORS)
@pytest.mark.parametrize("language", ["en", "es", "it", "zh"])
def test_precision_and_recall_stay_above_what_was_reached(language: str, half: str) -> None:
    labelled = json.loads((FOLDER / f"{language}_{half}.json").read_text("utf-8"))
    with contextlib.redirect_stdout(io.StringIO()):  # it prints every mistake
        found = quality(labelled, language, False)
    precision, recall = FLOORS[half]
    assert found["precision"] >= precision
    assert found["recall"] >= recall


def test_the_three_examples_the_product_began_with() -> None:
    from memory.signals import extract

    found = [
        extract(text, "es")
        for text in ("Trabajo en fintech, equipo de 5", "Prefiero respuestas directas", "Decidí usar Kimi K2.5")
    ]
    assert [(drafts[0].domain, drafts[0].confidence) for drafts in found] == [
        ("work", "high"),
        ("preferences", "high"),
        ("decisions", "high"),
    ]
