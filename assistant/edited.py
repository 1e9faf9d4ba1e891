"""An edited message: what was learnt from it is corrected, and the user is told what changed."""

from collections.abc import AsyncIterator

from assistant import offers
from assistant.commands import is_command
from assistant.said import Said
from assistant.talk import Talk
from memory.values import Received


async def correct(talk: Talk, entry: Received, text: str) -> AsyncIterator[Said]:
    """Nothing is said where nothing was learnt, before or now; the words are the new ones from now on.

    A command is not run again, and of a message that was never taken, or too long ago, nothing is known: that is said.
    """
    assert entry.corrects is not None
    original = await talk.memory.journal.find(entry.channel, entry.chat, entry.corrects)
    if entry.private or original is None or original.turn_id is None:
        yield Said(text=talk.say("edit_without_effect"), kind="notice")
        return
    done = await talk.memory.correct_turn(original.turn_id, text)
    if done.withdrawn:
        listed = "; ".join(f"{fact.id} “{fact.fact}”" for fact in done.withdrawn)
        yield Said(text=talk.say("undone", facts=listed), kind="notice")
    for fact in done.learned:
        said = talk.say("saved_undo", id=fact.id, fact=fact.fact)
        yield Said(text=said, kind="notice", offers=offers.undo(talk, fact.id))
    if is_command(text):
        yield Said(text=talk.say("edit_without_effect"), kind="notice")
