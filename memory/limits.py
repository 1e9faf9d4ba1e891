"""Every limit, weight and threshold of the engine: default, unit in the name, and the design rule it comes from.

This is the one place. The assistant exposes each as a setting under ``[limits]``; nothing else in the engine
holds a figure of its own.
"""

from dataclasses import dataclass, field
from typing import Any


def rule(name: str, default: float, explanation: str) -> Any:
    """A figure with the design rule it implements and one line that explains it."""
    return field(default=default, metadata={"rule": name, "explanation": explanation})


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The figures the engine works with; hand in another instance to change them."""

    # read by pydantic where settings embed this class; the engine itself does not know pydantic
    __pydantic_config__ = {"extra": "forbid", "strict": True}  # noqa: RUF012 (a marker pydantic reads, not a field)

    # Database
    busy_timeout_ms: int = rule("6", 10_000, "How long a write waits for another process, in milliseconds.")
    check_on_open_bytes: int = rule(
        "6",
        16_000_000,
        "Files up to this size are checked at every opening, larger ones after an unclean stop, in bytes.",
    )

    counters_seconds: int = rule("6", 300, "How long counters may wait to be written, in seconds.")

    # Texts measured and compared
    embed_max_tokens: int = rule("5", 512, "At most this much of one text is embedded, in tokens.")
    embed_batch_texts: int = rule("5", 256, "Texts embedded at once while re-embedding, a count.")
    query_embedding_ttl_seconds: int = rule("C4", 86_400, "How long the embedding of a query is kept, in seconds.")
    query_embeddings_held: int = rule("C4", 512, "Query embeddings held in memory until they are written, a count.")
    turn_embeddings_held: int = rule("T1", 512, "Embeddings of turns held in memory for each person, a count.")
    answer_ttl_seconds: int = rule("C1", 86_400, "How long an answer may be given again, in seconds.")
    same_similarity: float = rule("D1", 0.85, "Calibrated similarity above which two texts say the same, 0 to 1.")
    looked_at_characters: int = rule(
        "5", 8_000, "Of a longer message only its beginning and end are compared and searched with, in characters."
    )

    # Facts
    fact_explicit_only_days: int = rule(
        "F3", 90, "Unconfirmed for longer and not of high confidence: only explicit recall, in days."
    )
    fact_stale_days: int = rule("F4", 180, "Unconfirmed for longer: stale, never injected, in days.")
    fact_low_confidence_days: int = rule(
        "F5", 30, "Low confidence and unconfirmed for longer: never in a prompt, in days."
    )
    fact_due_days: int = rule("F12", 14, "A fact this close to fading is offered for keeping, in days.")
    fact_dated_days: int = rule("F7", 7, "A fact learnt longer ago is sent with its date, in days.")
    facts_tokens: int = rule("F8", 150, "Facts in one request, in tokens.")
    pinned_tokens: int = rule("F8", 60, "Of these, pinned facts, in tokens.")
    fact_tokens: int = rule("F8", 60, "One stored fact; longer ones are cut at a clause, in tokens.")
    fact_relevance: float = rule(
        "F8", 0.6, "Calibrated similarity a fact needs with the message unless its words or domain match, 0 to 1."
    )
    fact_domain_relevance: float = rule("F8", 0.4, "The same for a fact of the message's domain, 0 to 1.")
    fact_advice_relevance: float = rule("F8", 0.05, "The same for a preference when advice is asked for, 0 to 1.")
    fact_repeat_turns: int = rule(
        "F9", 3, "A fact whose words are in this many last turns sent is not repeated, a count."
    )
    fact_replaces_words: float = rule(
        "F7", 0.5, "Share of content words two facts have in common when one replaces the other, 0 to 1."
    )
    fact_replaces_similarity: float = rule("F7", 0.9, "Calibrated similarity when one fact replaces another, 0 to 1.")
    fact_changed_similarity: float = rule(
        "F7", 0.45, "Calibrated similarity a new decision needs with the one it replaces, 0 to 1."
    )
    fact_clear_margin: float = rule(
        "F7", 0.05, "How much nearer than the next a fact must be to be the one that is replaced, 0 to 1."
    )
    fact_candidates: int = rule("F7", 20, "Facts compared with a new one, or with a message, a count.")
    fact_replaces_chance: float = rule(
        "F7", 0.43, "A known fact is replaced when the weighed signs say so with at least this chance, 0 to 1."
    )
    fact_replaces_rival: float = rule(
        "F7", 0.7, "Share of the best chance at which another fact makes it unclear which one is replaced, 0 to 1."
    )
    fact_replaces_chance_ruled: float = rule(
        "F7", 0.18, "The same for a fact that the rules already take for replaced, 0 to 1."
    )
    fact_opinion_accepts: float = rule(
        "F2", 0.92, "A sentence no rule knows is a fact when the learned opinion is at least this sure of it, 0 to 1."
    )
    fact_opinion_accepts_lead: float = rule(
        "F2", 0.97, "The same for words that stand before a fact in its sentence, 0 to 1."
    )
    fact_opinion_refuses: float = rule(
        "F2", 0.17, "What a rule takes for a plain declaration is none when the opinion is at most this sure, 0 to 1."
    )
    fact_opinion_outlasts: float = rule(
        "F2", 0.98, "A plain declaration in a message that also asks counts when the opinion is this sure, 0 to 1."
    )
    fact_opinion_topic: float = rule("F7", 0.75, "How sure the opinion must be what a fact is about, 0 to 1.")
    fact_opinion_single: float = rule(
        "F7", 0.9, "How sure it must be of that for a fact to take the place of another about the same, 0 to 1."
    )
    fact_opinion_change: float = rule("F7", 0.5, "How sure it must be that a fact tells a change, 0 to 1.")
    fact_asked_words: float = rule(
        "F6", 0.5, "Share of a question's content words that stand in the fact it asks about, 0 to 1."
    )

    # Window
    window_turns: int = rule("W1", 6, "Turns in the window, a count.")
    window_max_turns: int = rule("W1", 8, "Turns in the window when the talk hangs together, a count.")
    window_min_turns: int = rule("W1", 4, "Turns in the window when it does not, a count.")
    window_high_continuity: float = rule("W1", 0.7, "Continuity above which two turns make the window larger, 0 to 1.")
    window_low_continuity: float = rule("W1", 0.3, "Continuity below which two turns make it smaller, 0 to 1.")
    window_tokens: int = rule("W2", 1200, "The window, in tokens.")

    # Topics
    topic_shift_chance: float = rule("T1", 0.32, "Estimated chance above which a turn opens a new topic, 0 to 1.")
    topic_shift_chance_of_reply: float = rule("T1", 0.5, "The same for a turn that follows a question, 0 to 1.")
    domain_clear_words: int = rule("T1", 2, "Words of a domain that make it clear, a count.")

    # Summaries
    segment_turns: int = rule("S1", 3, "Turns that are compressed together, a count.")
    summary_tokens: int = rule("S2", 50, "One summary as rendered, in tokens.")
    summary_slots: int = rule("S2", 4, "Summaries of a chat in a request, a count.")
    summaries_tokens: int = rule("S2", 200, "All of them, in tokens.")

    summariser_seconds: float = rule(
        "S5", 20.0, "A summariser that takes longer is replaced by the extractive one, in seconds."
    )
    statements_characters: int = rule(
        "M1", 20_000, "Of a longer message only its beginning and end become statements, in characters."
    )

    statement_worth: float = rule("M1", 0.295, "Estimated worth below which a sentence is not kept, 0 to 1.")
    statement_tokens: int = rule("M1", 60, "Sentences of one turn are kept together up to this length, in tokens.")
    statement_unread_days: int = rule(
        "M2", 365, "A statement unread for more days of use is dropped, in days on which the assistant was used."
    )

    # Budget
    request_tokens: int = rule("B1", 4000, "A whole request stays below this, in tokens.")
    aggressive_tokens: int = rule("B2", 3000, "Above this the request is compressed aggressively, in tokens.")
    recall_tokens: int = rule("B5", 2000, "Recalled items in a request, in tokens.")
    item_tokens: int = rule("3", 120, "One item of memory in a request, in tokens.")
    message_overhead_tokens: int = rule("3", 3, "What a message costs beside its text, in tokens.")
    request_overhead_tokens: int = rule("3", 3, "What a request costs beside its messages, in tokens.")
    provider_factor: float = rule("B6", 1.3, "The model's own tokens per cl100k token until it was measured, a ratio.")
    provider_margin: float = rule("B6", 0.03, "What is added to what a model was measured to need, 0 to 1.")
    provider_fall: float = rule("B6", 0.2, "How much of the way down one measurement lowers that ratio, 0 to 1.")

    # Recall
    recall_candidates: int = rule("M2", 200, "Lines looked at by each way of searching, a count.")
    recall_context_weight: float = rule("M2", 0.25, "What a word said around a line counts beside one of its own.")
    recall_meaning_weight: float = rule("M2", 0.6, "What nearness in meaning counts beside shared words.")
    recall_speaker_weight: float = rule("M2", 2.0, "Factor for lines of the one speaker the question names.")
    recall_own_weight: float = rule("M2", 1.2, "Factor for the user's own lines when they ask about themselves.")
    recall_answer_weight: float = rule("M2", 1.5, "Factor for the assistant's lines when they are asked for.")
    recall_opinion_weight: float = rule("M2", 1.5, "Factor for the user's opinions when advice is asked for.")
    recall_session_weight: float = rule("M2", 0.6, "What the best lines of the same session add to a line.")
    recall_neighbour_weight: float = rule("M2", 0.15, "What the better of the turns before and after adds to a line.")
    recall_entity_weight: float = rule("M2", 0.1, "What a name of the question adds to a line that has it.")
    recall_naming_weight: float = rule(
        "M2", 0.2, "What a name adds to a line when one is asked for, as a share of the best line's score, 0 to 1."
    )
    recall_time_factor: float = rule("M2", 1.5, "Factor for lines of the days the question names.")
    recall_recency_weight: float = rule("M2", 0.05, "What the newest line has before the oldest, other things equal.")
    recall_newest_weight: float = rule("M2", 0.15, "The same when the question asks how things stand now.")
    recall_recency_days: int = rule("M2", 90, "After so many days a line has lost most of that, in days.")
    recall_fading_weight: float = rule("M2", 0.1, "What a line loses that nobody reads until it is dropped, 0 to 1.")
    recall_opinions: int = rule("M2", 6, "Opinions recalled when advice is asked for, a count.")
    recall_advice_tokens: int = rule("B5", 240, "These, when nothing else is recalled, in tokens.")
    recall_ordinary_tokens: int = rule("B5", 200, "Recalled items when nothing was asked about the past, in tokens.")
    recall_floor: float = rule(
        "B5", 0.3, "Share of its words a question not about the past must find in a line to recall any, 0 to 1."
    )
    recall_evidence: float = rule(
        "B5", 0.12, "Share of the best line's score below which a line is no evidence any more, 0 to 1."
    )
    recall_ordinary_evidence: float = rule("B5", 0.5, "The same when nothing was asked about the past, 0 to 1.")

    # Episodes
    episode_tokens: int = rule("E1", 110, "One episode as a line in a request, in tokens.")
    episode_trace_days: int = rule(
        "E4", 30, "How long the words of an episode are kept, never searched, in days; 0: not at all."
    )
    episode_active_days: int = rule("E4", 30, "An episode is active up to this age, in days.")
    episode_mature_days: int = rule("E4", 180, "Then mature, and may be consolidated, up to this age, in days.")
    episode_aged_days: int = rule("E4", 365, "Then aged up to this age, and archived afterwards, in days.")
    episode_aged_similarity: float = rule(
        "E4", 0.4, "Similarity an aged episode needs to be found without being asked for, 0 to 1."
    )
    episode_archived_days: int = rule("E4", 0, "An archived episode is deleted after so long, in days; 0: never.")
    episode_deleted_days: int = rule("E4", 30, "A deleted episode can be restored for so long, in days.")
    episode_candidates: int = rule("E3", 20, "Episodes nearest to a query that are scored, a count.")
    episode_near_share: float = rule(
        "E3", 0.6, "Share of the best one's similarity below which an episode is not near any more, 0 to 1."
    )
    episode_similarity_weight: float = rule("E3", 0.5, "What similarity counts in the score of an episode.")
    episode_recency_weight: float = rule("E3", 0.2, "What recency counts.")
    episode_recency_days: int = rule("E3", 30, "After so many days an episode has lost most of that, in days.")
    episode_success_weight: float = rule("E3", 0.15, "What success counts.")
    episode_access_weight: float = rule("E3", 0.1, "What having been read often counts.")
    episode_domain_weight: float = rule("E3", 0.05, "What being of the query's domain counts.")
    episode_merge_similarity: float = rule(
        "E5", 0.95, "Calibrated similarity above which episodes of one kind are consolidated, 0 to 1."
    )
    episode_merge_days: int = rule("E5", 14, "How close in time they have to be, in days.")
    episodes_recalled: int = rule("B5", 2, "Episodes in a request that asks what was done or decided, a count.")
