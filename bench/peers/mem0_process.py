"""Run by with_mem0.py in an environment that has mem0 and nothing of ours: a line of JSON in, a line of JSON out."""

import json
import logging
import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

DIMENSIONS = 256


class Given:
    """The embedder: it knows the vectors it was handed."""

    def __init__(self) -> None:
        self.vectors: dict[str, list[float]] = {}

    def embed(self, text: str, memory_action: str = "") -> list[float]:  # noqa: ARG002 (mem0 calls it so)
        """The vector of a text."""
        return self.vectors[text]

    def embed_batch(self, texts: list[str], memory_action: str = "") -> list[list[float]]:
        """The same for several."""
        return [self.embed(text, memory_action) for text in texts]


def main() -> None:
    """Serves requests until there are no more."""
    from mem0 import Memory  # type: ignore[import-not-found]  # installed only where this runs

    logging.disable(logging.WARNING)
    folder, given = Path(sys.argv[1]), Given()
    memory = Memory.from_config(
        {
            "vector_store": {
                "provider": "qdrant",
                "config": {"path": str(folder / "vectors"), "on_disk": True, "embedding_model_dims": DIMENSIONS},
            },
            "history_db_path": str(folder / "history.db"),
        }
    )
    memory.embedding_model = given
    for row in sys.stdin:
        request: dict[str, Any] = json.loads(row)
        with redirect_stdout(sys.stderr):
            answer = _search(memory, given, request) if "search" in request else _add(memory, given, request)
        print(json.dumps(answer), flush=True)
    memory.vector_store.client.close()


def _add(memory: Any, given: Given, request: dict[str, Any]) -> list[str]:
    for role, text, vector in request["add"]:
        given.vectors = {text: vector}
        memory.add([{"role": role, "content": text}], user_id="me", infer=False)
    return []


def _search(memory: Any, given: Given, request: dict[str, Any]) -> list[str]:
    given.vectors = {request["search"]: request["vector"]}
    found = memory.search(request["search"], top_k=200, filters={"user_id": "me"}, threshold=0.0)
    return [hit["memory"] for hit in found["results"]]


if __name__ == "__main__":
    main()
