"""How a conversation went (E1): the user's reactions, the kind of task and its domain, noted before the words go.

Pure functions over turns and language packs. What they note of a segment is a few counts and, where something
failed, the words that say so; the notes of all segments together tell how the episode went.
"""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from memory.language import LanguagePack, detect, fold
from memory.signals import sentences
from memory.stores.index import stems
from memory.tokens import cut_to_tokens
from memory.values import Outcome, Turn

_TROUBLE_TOKENS = 30
_FEW_WORDS = 2
_OPENING = 3  # what is said first tells more about the task than what follows
_DOMAIN_ORDER = ("work", "projects", "personal", "preferences", "decisions")


@dataclass(frozen=True, slots=True, kw_only=True)
class Signals:
    """What a segment tells about how it went."""

    verdicts: tuple[str, ...] = ()  # success, thanks, partial or failure, in the order they were said
    domains: Mapping[str, int] = field(default_factory=dict)
    tasks: Mapping[str, int] = field(default_factory=dict)
    trouble: str = ""

    def dumps(self) -> str:
        """As it is stored."""
        return json.dumps(asdict(self), ensure_ascii=False)


def loaded(raw: Mapping[str, Any]) -> Signals:
    """As it was stored."""
    return Signals(
        verdicts=tuple(raw.get("verdicts", ())),
        domains=raw.get("domains", {}),
        tasks=raw.get("tasks", {}),
        trouble=raw.get("trouble", ""),
    )


def signals_of(turns: Sequence[Turn], packs: Mapping[str, LanguagePack], then: str = "") -> Signals:
    """What a segment tells; `then` are the user's words with which they turn to another topic after it."""
    verdicts: list[str] = []
    domains: Counter[str] = Counter()
    tasks: Counter[str] = Counter()
    trouble = ""
    for turn in turns:
        if turn.role != "user":
            continue
        pack = packs[detect(turn.content, turn.language, packs)]
        opens = turn.topic_shift or turn.turn_number == 1
        folded = fold(" ".join(text for text in sentences(turn.content) if not verdict(text, pack)[0]))
        domains.update({name: len(words.findall(folded)) for name, words in pack.domain_words.items()})
        weight = _OPENING if opens else 1
        tasks.update({name: weight * len(words.findall(folded)) for name, words in pack.task_words.items()})
        said, why = ("", "") if opens else verdict(turn.content, pack)  # the problem itself is no reaction
        if not (opens or said):  # a few words may be taken for another language
            said, why = verdict(turn.content, packs[turn.language])
        verdicts += [said] if said else []
        trouble = why or trouble
    if turns and then:  # "That worked, thanks. By the way, ..."
        said, _ = verdict((sentences(then) or [""])[0], packs[detect(then, turns[-1].language, packs)])
        verdicts += [said] if said else []
    return Signals(verdicts=tuple(verdicts), domains=dict(+domains), tasks=dict(+tasks), trouble=trouble)


def verdict(text: str, pack: LanguagePack) -> tuple[str, str]:
    """What one message of the user says about how it went, if anything; and the words that tell of a failure."""
    places: dict[str, int] = {}
    trouble = ""
    for place, sentence in enumerate(sentences(text)):
        folded = fold(sentence)
        if folded.rstrip().endswith("?"):
            continue
        rest = folded
        for name in ("failure", "partial", "success", "thanks"):
            pattern = pack.reactions[name]
            if found := pattern.search(rest):
                places[name] = place * 10_000 + found.start()
                rest = pattern.sub(lambda match: " " * len(match[0]), rest)  # what was read is not read otherwise
                trouble = sentence if name == "failure" else trouble
    if "partial" in places:
        said = "partial"
    elif "failure" in places and "success" in places:
        said = "success" if places["success"] > places["failure"] else "partial"
    else:
        said = next((name for name in ("failure", "success", "thanks") if name in places), "")
    return said, cut_to_tokens(" ".join(trouble.split()), _TROUBLE_TOKENS) if said in ("failure", "partial") else ""


def only_reacts(text: str, pack: LanguagePack) -> bool:
    """Whether a message says how it went and little else."""
    rest = [sentence for sentence in sentences(text) if not verdict(sentence, pack)[0]]
    return len(rest) < len(sentences(text)) and len(stems(" ".join(rest), pack)) <= _FEW_WORDS


def outcome_of(verdicts: Sequence[str], thumbs: Sequence[int], tools_failed: Sequence[bool]) -> Outcome:
    """How an episode went: the last word counts; a thumb says more than words, words more than tools."""
    if thumbs:
        return "success" if thumbs[-1] > 0 else "failure"
    spoken = [said for said in verdicts if said != "thanks"]
    broken = bool(tools_failed) and tools_failed[-1]
    if not verdicts:
        if broken:
            return "failure"
        return "partial" if any(tools_failed) else "unknown"
    if verdicts[-1] == "thanks" and spoken and spoken[-1] == "failure":
        return "partial"  # thanked for another attempt, of which nothing more is known
    last = spoken[-1] if spoken else "success"
    if last == "success":
        return "partial" if broken else "success"
    return "failure" if last == "failure" else "partial"


def most(counts: Sequence[Mapping[str, int]], order: Sequence[str] = _DOMAIN_ORDER) -> str:
    """The name counted most often; of equal ones the first in order; "" when nothing was counted."""
    total: Counter[str] = Counter()
    for each in counts:
        total.update(each)
    best = max(order, key=lambda name: (total[name], -order.index(name)), default="")
    return best if best and total[best] > 0 else ""
