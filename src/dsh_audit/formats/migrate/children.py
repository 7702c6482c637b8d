"""Child sessions as a parent's migration to format 4 sees them. Source: spec session-log 8;
dsh-session-format-v3-to-v4 in the runtime of 0.2.1-rc.2.
"""

from __future__ import annotations

from collections.abc import Iterable

from dsh_audit.events import Event, Json, SessionHeader
from dsh_audit.formats.base import FormatError
from dsh_audit.formats.envelope import is_count, is_object, require_count
from dsh_audit.formats.migrate.common import ChildSession

_MODES = ("continuable", "one-shot", "external", "unknown")


def child_session(header: SessionHeader, events: Iterable[Event]) -> ChildSession:
    """Collect from a child's log what its parent's migration needs.

    Args:
        header: of the child, any format up to 3.
        events: all events of the child.

    Raises:
        FormatError: no child of a direct parent.
    """
    if header.origin != "subagent" or header.parent_session is None:
        raise FormatError("only a subagent with a direct parent is listed in a catalog")
    own_from, found = header.seed_length or 0, list[Event]()
    for event in events:
        if event.type == "session/end-seed" and is_object(event.data) and event.data.get("inherited") is True:
            own_from = event.seq
        elif event.type == "subagent/descriptor":
            found.append(event)
    own = [event for event in found if event.seq >= own_from]
    return ChildSession(header.id, header.created_at, len(own), own[0].data if own else None)


def catalog_entry(child: ChildSession) -> dict[str, Json]:
    """The catalog fact of a child: from its one descriptor, else with unknown mode; raises FormatError."""
    return known_entry(child) or {
        "version": 1,
        "childId": child.child_id,
        "childCreatedAt": child.created_at,
        "mode": "unknown",
    }


def known_entry(child: ChildSession) -> dict[str, Json] | None:
    """The catalog fact that the child's own descriptor gives; None without exactly one known descriptor."""
    descriptor = child.descriptor
    if child.descriptor_count != 1 or not is_object(descriptor):
        return None
    version = descriptor.get("version")
    if isinstance(version, bool) or version not in (1, 2, 3):
        return None
    if not isinstance(descriptor.get("provider"), str):
        raise FormatError(f"session {child.child_id} has an invalid descriptor provider")
    mode = descriptor.get("mode")
    if version != 1 and mode not in ("continuable", "one-shot"):
        raise FormatError(f"session {child.child_id} has an invalid descriptor mode")
    entry = {
        "version": 0,
        "childId": child.child_id,
        "childCreatedAt": child.created_at,
        "mode": "continuable" if version == 1 else mode,
    }
    if "label" in descriptor:
        entry["label"] = descriptor["label"]
    return check_catalog(entry)


def check_catalog(value: Json) -> dict[str, Json]:
    """A ``subagent/catalog`` payload; raises FormatError."""
    if not is_object(value) or not is_count(value.get("version")) or value["version"] > 2:
        raise FormatError("subagent/catalog requires a supported version")
    version, mode, label = value["version"], value.get("mode"), value.get("label", "")
    sound = (
        isinstance(value.get("childId"), str)
        and mode in _MODES
        and (version == 2) == (mode == "external")
        and not (version == 0 and mode == "unknown")
        and not (mode == "continuable" and "label" not in value)
        and isinstance(label, str)
    )
    if not sound:
        raise FormatError("subagent/catalog is not a valid fact of its version")
    require_count(value.get("childCreatedAt"), "subagent/catalog childCreatedAt")
    return value
