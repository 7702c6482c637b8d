"""Toy sessions with one defect each, and how ``lint`` is run on them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tests.toy_session import ToySession, tool

Build = Callable[[ToySession], object]


def name_of(version: int) -> str:
    """Canonical file name of a generation."""
    return f"session.v{version}.jsonl" if version else "session.jsonl"


def toy_of(build: Build, version: int = 0) -> ToySession:
    """The session that a builder makes."""
    toy = ToySession(version)
    build(toy)
    return toy


def lint(build: Build, *options: str, version: int = 0, command: str = "lint") -> Callable[[Any], list[str]]:
    """A command on the session that a builder makes."""

    def make(_: Any) -> list[str]:
        name = name_of(version)
        Path(name).write_bytes(toy_of(build, version).plain())
        return [command, name, *options]

    return make


def call(ident: str, name: str = "echo", arguments: str = "{}") -> dict[str, Any]:
    """A tool call."""
    return {"type": "tool-call", "id": ident, "name": name, "arguments": arguments}


def end_step(toy: ToySession, reason: str | None = "completed", **more: Any) -> None:
    """Close the step, and the turn with a reason."""
    toy.add("step/end", {"turn": toy.turn, "step": toy.step})
    if reason is not None:
        toy.add("turn/end", {"turn": toy.turn, "reason": {"kind": reason, **more}})


def asked(
    toy: ToySession,
    *calls: dict[str, Any],
    results: Sequence[str] | None = None,
    between: str = "",
    answered: bool = True,
) -> Any:
    """A turn with tool calls; ``answered`` adds the request that carries their results, and its answer.

    Args:
        results: ids of the calls with a result, None for all.
        between: a message before the results.
    """
    toy.begin("Go")
    toy.answer("Yes.", calls=calls)
    if between:
        toy.user(between)
    for ident in [one["id"] for one in calls] if results is None else results:
        toy.append("tool/result", toy.result(ident, "done"))
    end_step(toy, None if answered else "completed")
    if answered:
        toy.begin()
        toy.answer("Done.")
        end_step(toy)


def refused(toy: ToySession, message: str, prepare: Build | None = None, status: int = 400) -> Any:
    """A turn that the provider refuses."""
    if prepare is not None:
        prepare(toy)
    toy.begin("Go")
    if prepare is picture:
        image = {"type": "image", "attachment": {"attachmentId": "sha256:" + "0" * 64, "mediaType": "image/png"}}
        toy.rows[toy.surface[-1] + 1]["data"]["content"].append(image)
    failure = {"message": message, "code": "INVALID_REQUEST", "status": status}
    finish = {"type": "finish", "reason": {"kind": "error", "failure": failure}}
    place = {"turn": toy.turn, "step": toy.step}
    if toy.version >= 2:
        toy.add("assistant/attempt", {**place, "stream": [{"type": "chunk", "time": toy.time_ms, "chunk": finish}]})
    else:
        toy.add("assistant/chunk", {**place, "chunk": finish})
    end_step(toy, "error", error=failure)


def picture(toy: ToySession) -> None:
    """An image in the next message."""


def no_schema(toy: ToySession) -> Any:
    """The first tool has no parameters."""
    toy.tools = [{"name": "bare", "description": "Bare."}, tool("walk")]


def marked(toy: ToySession) -> None:
    """A delivery marker of another session."""
    toy.ask("one")
    toy.add(
        "session-log-deepseek/delivery-accepted",
        {"sessionId": "old", "sessionFormatVersion": toy.version, "throughSeq": 3},
    )


def spliced(toy: ToySession) -> None:
    """The inbox gives what it does not have."""
    toy.ask("one")
    toy.add("agent/inbox/spliced", {"target": "next-turn", "start": 0, "removedCount": 1, "inserted": []})


def thought(toy: ToySession) -> Any:
    """An interrupted answer that holds only reasoning, and a request that carries it."""
    toy.begin("Go")
    toy.answer("", calls=[{"type": "reasoning", "text": "half a thought"}])
    end_step(toy, "aborted")
    toy.ask("again")


def tool_added(toy: ToySession) -> None:
    """A tool comes in the middle, and the provider refuses the history from then on."""
    toy.ask("one")
    toy.tools = [*toy.tools, tool("late")]
    refused(toy, "tool changes are not accepted")


def at(place: str, build: Build, version: int = 0, **header: Any) -> Path:
    """The session that a builder makes, written in a home.

    Args:
        place: key and folder below ``sessions``.
        header: members of the session header that differ.
    """
    toy = toy_of(build, version)
    toy.rows[0] |= header
    path = Path("home/sessions", place, name_of(version))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(toy.plain())
    return path


def in_home(*made: Callable[[], object]) -> Callable[[Any], list[str]]:
    """``lint`` on a home."""

    def make(_: Any) -> list[str]:
        for one in made:
            one()
        return ["lint", "home"]

    return make


KEY = "--srv-toy--"


def one_turn(toy: ToySession) -> None:
    """One turn."""
    toy.ask("one")


def copied() -> None:
    """A copy beside the log that goes on for a turn."""
    path = Path("home/sessions", KEY, "toy", "session.jsonl 2")
    path.write_bytes(toy_of(lambda toy: (toy.ask("one"), toy.ask("two"))).plain())


def locked() -> None:
    """A session folder with a lock only."""
    folder = Path("home/sessions", KEY, "gone")
    folder.mkdir(parents=True)
    (folder / "session.lock").touch()
