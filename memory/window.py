"""The sliding window (W1 to W3): which turns are sent as they were said, and which leave for good."""

from collections.abc import Sequence

from memory.limits import Limits
from memory.values import Turn


def window_size(turns: Sequence[Turn], limits: Limits) -> int:
    """How many turns the window holds, by how the last two hang together (W1)."""
    last = [turn.semantic_continuity for turn in turns[-2:]]
    if len(last) == 2 and all(value is not None and value > limits.window_high_continuity for value in last):
        return limits.window_max_turns
    if len(last) == 2 and all(value is not None and value < limits.window_low_continuity for value in last):
        return limits.window_min_turns
    return limits.window_turns


def leaving(turns: Sequence[Turn], limits: Limits, *, flush: bool = False) -> list[list[Turn]]:
    """The segments that leave the window, oldest first; `turns` are all in it, the newest last.

    Turns leave three at a time and a topic never shares a segment with the next one (S1). The newest turn stays, and
    with it the question of the assistant it may answer (W3); an explicit change of subject flushes the rest (T2).
    """
    staying = _protected(turns)
    segments: list[list[Turn]] = []
    rest = list(turns)
    size = window_size(turns, limits)
    while len(rest) > staying and (flush or len(rest) > size or _tokens(rest) > limits.window_tokens):
        segment = _first_segment(rest, limits.segment_turns)[: len(rest) - staying]
        segments.append(segment)
        rest = rest[len(segment) :]
    return segments


def closing(turns: Sequence[Turn], limits: Limits) -> list[list[Turn]]:
    """The segments of a session that is over: all of it."""
    segments: list[list[Turn]] = []
    rest = list(turns)
    while rest:
        segments.append(_first_segment(rest, limits.segment_turns))
        rest = rest[len(segments[-1]) :]
    return segments


def asks(turn: Turn) -> bool:
    """Whether a turn ends in a question."""
    return turn.content.rstrip(" \t\n*_\"'”)").endswith(("?", "？"))


def _protected(turns: Sequence[Turn]) -> int:
    """How many of the newest turns may not leave."""
    asked = len(turns) >= 2 and turns[-1].role == "user" and turns[-2].role == "assistant" and asks(turns[-2])
    return 2 if asked else 1


def _first_segment(turns: Sequence[Turn], size: int) -> list[Turn]:
    segment = [turns[0]]
    for turn in turns[1:size]:
        if turn.topic_shift:
            break
        segment.append(turn)
    return segment


def _tokens(turns: Sequence[Turn]) -> int:
    return sum(turn.token_count for turn in turns)
