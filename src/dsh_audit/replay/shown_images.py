"""What captures teach of images: fixed texts, the home in handles, ids of uploaded files. Source: spec images 5, 9."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from dsh_audit.attachments.handles import fixed_texts
from dsh_audit.attachments.shown import ShownFold
from dsh_audit.capture.exchange import MODEL_KINDS, Exchange
from dsh_audit.deployment import Deployment
from dsh_audit.events import Json
from dsh_audit.replay.body_diff import MAX_PARSED_BYTES
from dsh_audit.text import ecma
from dsh_audit.wire.constants import CONSTANTS, Constant

_MAX_TEXT = 1 << 20


def learn_images(deployment: Deployment, exchanges: Iterable[Exchange]) -> Deployment:
    """The deployment with what the captured bodies show of images; texts are checked by digest."""
    fold = ShownFold()
    wanted = {name: constant for name, constant in CONSTANTS.items() if name not in deployment.constants}
    texts: dict[str, str] = {}
    for exchange in exchanges:
        body = exchange.read_body() if exchange.kind in MODEL_KINDS else None
        if body is None or len(body) > MAX_PARSED_BYTES:
            fold.has_inline = fold.has_inline or exchange.kind in MODEL_KINDS
            continue
        fold.has_inline = fold.has_inline or b";base64," in body or b'"base64"' in body
        try:
            value = ecma.parse(body)
        except ecma.EcmaSyntaxError:
            continue
        fold.take(value)
        for text in _texts(value.get("messages") or value.get("input") if isinstance(value, dict) else None):
            for piece in fixed_texts(text):
                for name in _named(piece, wanted):
                    texts[name] = piece
                    del wanted[name]
    constants = {**texts, **deployment.constants}
    return replace(deployment, constants=constants, shown=fold.result())


def _named(text: str, wanted: dict[str, Constant]) -> list[str]:
    return [name for name, constant in wanted.items() if constant.length == len(text) and constant.matches(text)]


def _texts(value: Json) -> Iterator[str]:
    """Every text of a value, data aside."""
    pending = [value]
    while pending:
        one = pending.pop()
        if isinstance(one, str):
            if len(one) <= _MAX_TEXT and not one.startswith("data:"):
                yield one
        elif isinstance(one, list):
            pending += reversed(one)
        elif isinstance(one, dict):
            pending += [one[key] for key in reversed(one) if key not in ("data", "image_url")]
