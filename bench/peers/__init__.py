"""Beside what one would pick instead: recall under the same budget, time of an operation, bytes stored.

The last 4,000 tokens of history, vectors over raw turns and BM25 over raw turns, each in a file of its own with all
turns kept; with --mem0 also mem0 without a model, which is installed into an environment of its own. Every way gets
the same turns, the same questions, the same embedder and the same budget of tokens, dates included.

Without a file it measures the dialogues written for the tests (Spanish, Italian, Chinese); --locomo takes LoCoMo's.
"""

from bench.peers.compare import RATIOS, VARIES, main

__all__ = ["RATIOS", "VARIES", "main"]
