"""Layout by volatility pays (B7): the share of prompt tokens a server's prefix cache serves, ours against facts first.

A talk with the embedded model, which answers for real; each order has a talk and a server of its own.
"""

import asyncio
import json
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from assistant.errors import EmbeddedUnavailable
from assistant.model import ChatModel, Reply
from assistant.settings import load_settings
from bench.report import Skipped, arguments, program, progress, save, table
from memory import Memory
from memory.testing import FakeClock
from memory.values import Context

SAID = (
    "Hi! I'm Ana, I live in Trieste and I work as a translator. This week I'm planning the renovation of my kitchen, "
    "and I'd like some help to keep the whole thing in order. Where would you begin?",
    "The room is about twelve square metres, with one window to the north and an old gas stove on the wall opposite. "
    "I decided to replace the stove by an induction one. What has to be checked first?",
    "The electrician said that the cable is too thin for that and that he needs two days. He can come on the ninth or "
    "on the sixteenth of May. Which of the two would you take?",
    "Let's take the ninth then. For the floor I hesitate between tiles and linoleum, because the boards below are not "
    "quite level. What speaks for the one and for the other?",
    "I prefer warm floors, since I walk barefoot at home. The carpenter offers linoleum for forty euros a metre, laid. "
    "Does that seem a fair price to you for such a small room?",
    "Good. Remember that I'm allergic to nickel, so the handles of the cupboards must be of wood or of plastic. What "
    "kinds of wood stand water and steam well enough for that?",
    "Oak sounds right. How should I treat it, with oil or with varnish, if I want to be able to repair scratches "
    "myself later on without sanding everything down again?",
    "Changing the subject: in July I want to walk part of the Alpe Adria trail with my sister Giulia. We have six days "
    "and would like to end at the sea. Which part would you suggest?",
    "Giulia has a bad knee, so not more than fifteen kilometres a day and no steep descents, please. Does your "
    "suggestion still hold, or should we start somewhere else?",
    "We would rather sleep in small guesthouses than in huts, and we have about seventy euros a night for both of us. "
    "Is that realistic in July, and how early must we book?",
    "What should each of us carry, if we wash our things on the way? I have a rucksack of thirty litres, and Giulia's "
    "is even smaller, but she insists on her camera and two lenses.",
    "And how do we get back from the sea to Trieste on the last day, a Sunday, with as little driving as possible? We "
    "could also stay one night more if that makes it easier.",
    "Another thing: a client asks me to translate a novel of three hundred pages from Slovene by the end of October. I "
    "usually do five pages a day. Is that possible if I start in June?",
    "I forgot that I'll be away for the walk and for two more weeks in August. How many pages a day would it take "
    "then, working five days a week, and is there time left for a revision?",
    "They offer eighteen euros a page. My rate is twenty-two. How would you ask for more without losing the job, since "
    "I like the book and have worked for them before?",
    "Could you put that into three or four friendly sentences that I can send them today? I always write to them in "
    "English, and I don't want to sound as if I complained.",
    "Back to the kitchen: what did I decide about the stove, and when does the electrician come? The carpenter wants "
    "to know it, because he can only lay the floor after that.",
    "He now says that the linoleum has to be ordered three weeks ahead. If he is to begin on the twelfth of May, by "
    "which day must I tell him the colour at the latest?",
    "I'm thinking of a dark green floor with white walls and the oak handles. Would that be too dark for a room with a "
    "window to the north, or would you rather take a lighter one?",
    "All right, then the lighter green. Please sum up for me what has to be done this week for the kitchen, for the "
    "walk and for the translation, one line for each of them.",
)

# in an ordinary talk about every second message asks something; these stand in place of the others
REMARKS = {
    1: "The room is about twelve square metres, with one window to the north and an old gas stove on the wall "
    "opposite. I decided to replace the stove by an induction one. Mind that the walls are old and rather damp.",
    3: "Let's take the ninth then. For the floor I hesitate between tiles and linoleum, because the boards below are "
    "not quite level. My neighbour took linoleum and is content with it so far.",
    5: "Good. Remember that I'm allergic to nickel, so the handles of the cupboards must be of wood or of plastic. I "
    "saw some of beech in a shop yesterday and did not like them much.",
    7: "Changing the subject: in July I want to walk part of the Alpe Adria trail with my sister Giulia. We have six "
    "days and would like to end at the sea, as we did five years ago.",
    9: "We would rather sleep in small guesthouses than in huts, and we have about seventy euros a night for both of "
    "us. Last year we found nothing and slept in the car, so I'll book early.",
    11: "On the last day, a Sunday, we have to get back from the sea to Trieste. The train seems to need only two "
    "hours, which would leave us time for a swim before we go home.",
    13: "I forgot that I'll be away for the walk and for two more weeks in August. I'll write down how many pages I "
    "really manage in the first week, and then we can reckon it again.",
    15: "I wrote to them myself this morning, in three friendly sentences, and asked for twenty-one euros a page. I "
    "always write to them in English, and I hope that it did not sound like a complaint.",
    17: "He now says that the linoleum has to be ordered three weeks ahead, and he wants to begin on the twelfth of "
    "May. I told him that he will have the colour from me by the end of this week.",
}
QUICK_MESSAGES = 10
TALKS = {
    "every second message asks": tuple(REMARKS.get(place, text) for place, text in enumerate(SAID)),
    "every message asks": SAID,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """What one request cost."""

    prompt_tokens: int
    cached_tokens: int
    turn_tokens: tuple[int, int]


Layout = Callable[[Context], list[dict[str, str]]]


def ours(context: Context) -> list[dict[str, str]]:
    """Static, summaries, window, recalled, facts, message."""
    return context.messages


def facts_first(context: Context) -> list[dict[str, str]]:
    """The same words with what was recalled and the facts ahead of summaries and window, as is customary."""
    first, *window, last = context.messages
    memory, mark, message = last["content"].partition("</memory>\n\n")
    if not mark:
        return context.messages
    static, heading, summaries = first["content"].partition("\n\n<memory>\n")
    system = f"{static}\n\n{memory}</memory>{heading}{summaries}"
    return [{"role": "system", "content": system}, *window, {"role": "user", "content": message}]


async def talk(said_by_user: Sequence[str], layout: Layout, folder: Path, reply_tokens: int) -> list[Sent]:
    """The talk in one order, from the first turn to the last."""
    clock = FakeClock()
    settings = load_settings(None, {"OLVIDO_MODEL__TEMPERATURE": "0"}, folder).settings
    sent: list[Sent] = []
    async with ChatModel.open(settings) as model, Memory.open(folder / "talk.db", clock=clock) as memory:
        session = await memory.open_session()
        await memory.use_model(model.name)
        for text in said_by_user:
            clock.advance(minutes=2)
            asked = await memory.add_turn(session.id, "user", text)
            context = await memory.assemble(session.id)
            reply = await answered(model, layout(context), reply_tokens)
            clock.advance(seconds=30)
            said = await memory.add_turn(session.id, "assistant", reply.text)
            await memory.calibrate_provider(reply.model, context.provider_tokens, reply.prompt_tokens)
            await memory.run_pending()
            tokens = (asked.token_count, said.token_count)
            progress(len(sent) + 1, len(said_by_user), f"{layout.__name__}, request")
            sent.append(Sent(prompt_tokens=reply.prompt_tokens, cached_tokens=reply.cached_tokens, turn_tokens=tokens))
    return sent


async def answered(model: ChatModel, messages: list[dict[str, str]], reply_tokens: int) -> Reply:
    """The model's own reply."""
    async for part in model.stream(messages, max_tokens=reply_tokens):
        if isinstance(part, Reply):
            return part
    raise AssertionError("a stream ends with its reply")


def share(sent: Sequence[Sent]) -> float:
    """The part of all prompt tokens that came from the cache."""
    return sum(one.cached_tokens for one in sent) / sum(one.prompt_tokens for one in sent)


def rows(first: Sequence[Sent], second: Sequence[Sent]) -> list[list[object]]:
    """Both orders, request by request."""
    found: list[list[object]] = []
    for number, pair in enumerate(zip(first, second, strict=True), 1):
        cells = [(one.prompt_tokens, one.cached_tokens, f"{share([one]):.0%}") for one in pair]
        found.append([str(number), *cells[0], *cells[1]])
    return [*found, ["all", "", "", f"{share(first):.1%}", "", "", f"{share(second):.1%}"]]


def in_order(said: Sequence[str], layout: Layout, reply_tokens: int) -> list[Sent]:
    """The whole talk in one order, with a server and a memory of its own."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            return asyncio.run(talk(said, layout, Path(folder), reply_tokens))
        except EmbeddedUnavailable as exc:
            raise Skipped(str(exc)) from exc


def main(argv: Sequence[str]) -> dict[str, float]:
    """Both talks, side by side."""
    parser = arguments(__doc__, full="both talks of 40 turns, not the first 20 turns of one")
    parser.add_argument("--reply-tokens", type=int, default=40, help="the longest reply; the turns have 40 on average")
    options = parser.parse_args(argv)
    result: dict[str, float] = {}
    talks = TALKS if options.full else {name: said[:QUICK_MESSAGES] for name, said in list(TALKS.items())[:1]}
    for name, said in talks.items():
        first, second = (in_order(said, layout, options.reply_tokens) for layout in (ours, facts_first))
        print(f"\n{name}\n")
        print(table(["request", "ours", "cached", "share", "facts first", "cached", "share"], rows(first, second)))
        turns = [tokens for one in first for tokens in one.turn_tokens]
        result |= {
            f"{name}, turns": len(turns),
            f"{name}, tokens of a turn": round(sum(turns) / len(turns), 1),
            f"{name}, ours cached": round(share(first), 3),
            f"{name}, facts first cached": round(share(second), 3),
        }
    print(json.dumps(result))
    save(result, options.json)
    return result


if __name__ == "__main__":
    program(main)
