"""The wire protocols: one record each, the only list of them.

A new protocol of llm-deepseek is one file with an encoder and one line here; one of llm-pi-ai is one file and one line
in ``wire.pi.PROTOCOLS``. Bodies of all of them render as tools → system → messages (``wire.prompt``) and are cut by
the same ``parse_parts`` when captured.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from dsh_audit.record import dataclass
from dsh_audit.wire.adapter import Encoder
from dsh_audit.wire.deepseek_chat import ChatEncoder
from dsh_audit.wire.deepseek_messages import MessagesEncoder
from dsh_audit.wire.pi import PROTOCOLS as PI_PROTOCOLS
from dsh_audit.wire.pi.encoder import PiEncoder
from dsh_audit.wire.protocol import CHAT, MESSAGES, PI_AI


@dataclass(frozen=True, slots=True)
class WireProtocol:
    """One protocol.

    Args:
        adapter: that speaks it.
        encoder: a new encoder for one session.
        path: of its requests below the base URL; "" where the api of the route decides.
        single_format: format version whose rules hold for a request without a log; None where a route is needed.
    """

    name: str
    adapter: Literal["llm-deepseek", "llm-pi-ai"]
    encoder: Callable[[], Encoder]
    path: str
    single_format: int | None = None

    @property
    def carries_extensions(self) -> bool:
        """Whether plugins append fields to its bodies; pi-ai routes carry none."""
        return self.adapter == "llm-deepseek"


PROTOCOLS: dict[str, WireProtocol] = {
    protocol.name: protocol
    for protocol in (
        WireProtocol(CHAT, "llm-deepseek", ChatEncoder, "/chat/completions", 0),
        WireProtocol(MESSAGES, "llm-deepseek", MessagesEncoder, "/v1/messages", 4),
        WireProtocol(PI_AI, "llm-pi-ai", PiEncoder, ""),
        *(WireProtocol(name, "llm-pi-ai", PiEncoder, pi.path) for name, pi in PI_PROTOCOLS.items()),
    )
}
