"""Answers that hold only reasoning, and answers that lack the reasoning that a provider asks back."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field

from dsh_audit.checks.lint.history import HistoryObserver, calls_of
from dsh_audit.checks.lint.model import Check, Facts, Issue, Sent, describe_failure, is_refusal, names
from dsh_audit.events import Json, as_list, as_object
from dsh_audit.record import dataclass
from dsh_audit.rules import lint as rules

_WIRE = (("chat completions", 'content "" and reasoning_content'), ("Messages", "one thinking block"))


@dataclass(slots=True)
class ReasoningFold:
    """The answers of one history, by what they lack."""

    only: list[Issue] = field(default_factory=list)
    missing: list[Issue] = field(default_factory=list)

    def node(self, seq: int, message: dict[str, Json]) -> None:
        """The next message."""
        if message.get("role") != "assistant":
            return
        kinds = {str(as_object(block).get("type")) for block in as_list(message.get("content"))}
        if kinds == {"reasoning"}:
            what = "an answer holds nothing but reasoning"
            self.only.append(Issue(rules.REASONING_ONLY, "reasoning-only", what, seq, "/message/content", (), _WIRE))
        calls = [block for _, block in calls_of(message)]
        if calls and "reasoning" not in kinds:
            named = names(call=str(calls[0].get("id", "")), tool=str(calls[0].get("name", "")))
            what = f"the answer that calls {calls[0].get('name', '')} came without its reasoning"
            issue = Issue(rules.REASONING_MISSING, "reasoning-missing", what, seq, "/message/content", named)
            self.missing.append(issue)

    def issues(self, sent: Sent) -> Iterable[Issue]:
        """The first answer without reasoning counts only where the provider said that it misses it."""
        yield from self.only
        failure = sent.request.dispatch.failure
        if self.missing and is_refusal(failure) and "reasoning_content" in describe_failure(failure):
            yield self.missing[0]


def _observe(facts: Facts) -> HistoryObserver:
    return HistoryObserver(facts, ReasoningFold)


CHECK = Check("reasoning", "pass", _observe)
