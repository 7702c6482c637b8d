"""Images in the history of a model that does not take them: known from what the provider said."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import field

from dsh_audit.checks.lint.history import HistoryObserver
from dsh_audit.checks.lint.model import Check, Facts, Issue, Sent, describe_failure, is_refusal, names
from dsh_audit.events import Json, as_list, as_object
from dsh_audit.record import dataclass
from dsh_audit.rules import lint as rules

_SAYS_SO = re.compile("image|vision|modalit|multimodal", re.IGNORECASE)


@dataclass(slots=True)
class ImageFold:
    """The first image of one history."""

    first: tuple[int, str] | None = None
    found: list[Issue] = field(default_factory=list)

    def node(self, seq: int, message: dict[str, Json]) -> None:
        """The next message."""
        if self.first is None and (kind := _image(message.get("content"))) is not None:
            self.first = seq, kind

    def issues(self, sent: Sent) -> Iterable[Issue]:
        """The image, where the provider refused a request for it."""
        failure = sent.request.dispatch.failure
        if self.first is None or not is_refusal(failure) or not _SAYS_SO.search(describe_failure(failure)):
            return
        model = f"{sent.request.provider}/{sent.request.model}"
        what = f"an image ({self.first[1]}) is in the history of {model}"
        yield Issue(rules.IMAGE, "image", what, self.first[0], "/content", names(route=model))


def _image(content: Json) -> str | None:
    for block in map(as_object, as_list(content)):
        if block.get("type") == "image" and not block.get("offloaded"):
            return str(as_object(block.get("attachment")).get("mediaType", "image"))
        if block.get("type") == "tool-result" and (found := _image(block.get("content"))):
            return found
    return None


def _observe(facts: Facts) -> HistoryObserver:
    return HistoryObserver(facts, ImageFold)


CHECK = Check("images", "pass", _observe)
