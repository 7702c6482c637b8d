"""Captured requests ↔ dispatches of the logs: ``pair_exchanges``.

alignment: equal keys and order; matching: which rebuilt body a captured one could be; order: one run of captures and
dispatches; sessions: who belongs to which session.
"""

from dsh_audit.replay.pairing.matching import BodyKey
from dsh_audit.replay.pairing.order import Candidate, Pair
from dsh_audit.replay.pairing.sessions import Seen, pair_exchanges

__all__ = ["BodyKey", "Candidate", "Pair", "Seen", "pair_exchanges"]
