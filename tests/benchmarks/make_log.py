"""Valid session logs of any length, the same bytes for the same shape: what the benchmarks run on.

Run: python -m tests.benchmarks.make_log KIND STEPS DIR [--plain] [--chunks K] [--unpacked] [--turn N] [--sessions N]

KIND is v0 (chat completions), v4 (DeepSeek Messages: reasoning, tools, updates of prompt and tools) or pi-completions,
pi-anthropic, pi-responses (v4 logs of routes of llm-pi-ai).
"""

from __future__ import annotations

import argparse
import json
import random
import uuid
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import zstandard

Object = dict[str, Any]

PI_APIS = {
    "pi-completions": "openai-completions",
    "pi-anthropic": "anthropic-messages",
    "pi-responses": "openai-responses",
}
KINDS = ("v0", "v4", *PI_APIS)

_WORDS = "alpha beta gamma déjà 数据 "
_PROMPT = "You are a toy test agent.\n" + "".join(f"line {n}: {_WORDS * 8}\n" for n in range(20))
_START_MS = 1796038827975
_STEPS_BETWEEN_UPDATES = 100
_ARGUMENT_PIECES = 6
_USAGE = {"inputTokens": 36, "outputTokens": 10, "cacheReadTokens": 64}
_RUN_ROWS = {"text": "text-chunks", "reasoning": "reasoning-chunks", "tool-call": "tool-call-chunks"}
_APPEND = {"surfaceOp": "append"}


@dataclass(frozen=True, slots=True)
class Shape:
    """What decides every byte of a log: in how many pieces each text streamed, and whether their runs are packed."""

    kind: str
    steps: int
    turn: int = 15
    chunks: int = 8
    packed: bool = True
    session_id: str = ""

    @property
    def id(self) -> str:
        return self.session_id or f"{self.kind}-{self.steps}"

    @property
    def version(self) -> int:
        return 0 if self.kind == "v0" else 4

    @property
    def is_pi(self) -> bool:
        return self.kind in PI_APIS


def frames(shape: Shape) -> Iterator[bytes]:
    """The log as its writer flushes it: whole rows, one frame a flush."""
    return _Writer(shape).frames()


def write_log(shape: Shape, root: Path, *, plain: bool = False) -> Path:
    """Write the log below a sessions folder and return its file."""
    name = "session.jsonl" if shape.version == 0 else f"session.v{shape.version}.jsonl"
    path = root / "--srv-toy--" / shape.id / (name if plain else f"{name}.zstd")
    path.parent.mkdir(parents=True, exist_ok=True)
    compress = zstandard.ZstdCompressor(level=3, write_checksum=True).compress
    with path.open("wb") as file:
        for frame in frames(shape):
            file.write(frame if plain else compress(frame))
    return path


def write_sessions(shape: Shape, root: Path, count: int, *, plain: bool = False) -> list[Path]:
    """Write ``count`` sessions that differ in their ids only: the sessions folder of a home."""
    shapes = [shape] + [replace(shape, session_id=f"{shape.id}-{n}") for n in range(1, count)]
    return [write_log(each, root, plain=plain) for each in shapes]


def _row(value: Object) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def _text(text: str) -> list[Object]:
    return [{"type": "text", "text": text}]


def _pieces(text: str, count: int) -> list[str]:
    size = max(1, -(-len(text) // count))
    return [text[at : at + size] for at in range(0, len(text), size)]


def _tools(extra: int) -> list[Object]:
    path, start = {"type": "string", "description": "Where."}, {"type": "integer"}
    parameters = {
        "type": "object",
        "properties": {"path": path, "from": start},
        "required": ["path"],
        "additionalProperties": False,
    }
    standing: list[Object] = [
        {"name": name, "description": f"Toy tool {name}. {_WORDS * 4}", "parameters": parameters}
        for name in ("bash", "edit", "glob", "grep", "read", "write")
    ]
    none = {"type": "object", "properties": {}}
    return standing + [{"name": f"zz{n}", "description": f"Extra {n}", "parameters": none} for n in range(extra)]


@dataclass(slots=True)
class _Writer:
    shape: Shape
    ids: random.Random = field(default_factory=lambda: random.Random(7))
    rows: list[bytes] = field(default_factory=list)
    seq: int = 0
    time_ms: int = _START_MS
    turn: int = 0
    step: int = 0
    extra_tools: int = 0

    def frames(self) -> Iterator[bytes]:
        shape = self.shape
        seeded: Object = {"isSeeded": False} if shape.version else {}
        named = {"type": "session", "version": shape.version, "id": shape.id}
        self.rows.append(_row({**named, "createdAt": _START_MS, "cwd": "/srv/toy", **seeded, "delegationDepth": 0}))
        yield from self._flush()
        for n in range(shape.steps):
            yield from self._step(n)

    def _step(self, n: int) -> Iterator[bytes]:
        shape = self.shape
        self.step = n % shape.turn + 1
        prompt = None
        if self.step == 1:
            self.turn += 1
            prompt = self._take_prompt()
            yield from self._flush()
        self._event("step/start", self._place)
        self._open_request(n, prompt)
        yield from self._flush()
        if shape.version and not shape.is_pi:
            told = {"sessionId": shape.id, "sessionFormatVersion": shape.version, "throughSeq": self.seq - 1}
            self._event("session-log-deepseek/delivery-accepted", told)
            yield from self._flush()
        last = self.step == shape.turn or n == shape.steps - 1
        yield from self._answer(n, last)
        if not last:
            yield from self._call_tool(n)
        self._event("step/end", self._place)
        if last:
            self._event("turn/end", {"turn": self.turn, "reason": {"kind": "completed"}})
        yield from self._flush()

    def _take_prompt(self) -> Object:
        """A user message comes into the inbox, a turn starts and takes it out."""
        text = _text(f"turn {self.turn}: do fifteen steps")
        message = {"content": text, "source": {"kind": "user"}, "role": "user", "id": self._id()}
        inbox = {"target": "next-turn", "start": 0}
        self._event("agent/inbox/spliced", {**inbox, "inserted": [message]})
        self._event("turn/start", {"turn": self.turn})
        self._event("agent/inbox/spliced", {**inbox, "removedCount": 1, "inserted": []})
        return message

    def _open_request(self, n: int, prompt: Object | None) -> None:
        """What a step adds before its request: system prompt, user message, settings and tools."""
        shape = self.shape
        due = self.turn % max(1, _STEPS_BETWEEN_UPDATES // shape.turn) == 0
        updated = shape.version > 0 and not shape.is_pi and prompt is not None and n > 0 and due
        announced = n == 0 or updated
        if shape.version and announced:
            text = _PROMPT + (f"Section {n}." if n else "")
            source = {"kind": "system-prompt"}
            message = {"role": "system", "content": _text(text), "source": source, "id": self._id()}
            self._event("system/message", {**self._place, "message": message}, **_APPEND)
        if prompt is not None:
            self._event("user/message", prompt, **_APPEND)
        if announced:
            self._announce(n, updated)

    def _announce(self, n: int, updated: bool) -> None:
        shape = self.shape
        self.extra_tools += updated
        config: Object = {**self._route, "maxTokens": 4096 if shape.is_pi else 256000}
        if not shape.is_pi:
            config["reasoningEffort"] = "high"
        header: Object = {"config": config, "adapterDefaults": {key: True for key in config if key not in self._route}}
        if not shape.version:
            header["system"] = _PROMPT
        header["tools"] = _tools(self.extra_tools)
        at = self._event("request/header", {"header": header, "reason": "change" if n else "initial"})
        if n == 0:
            update = {"systemPromptUpdate": "in-history"} if shape.version and not shape.is_pi else {}
            self._event("request/context", {**self._route, "contextWindow": 1000000, **update})
        if updated:
            added = [{"type": "tool-addition", "toolName": f"zz{self.extra_tools - 1}"}]
            source = {"kind": "tool-registry"}
            message = {"source": source, "content": added, "role": "developer", "id": self._id()}
            self._event("developer/message", {**self._place, "message": message, "headerSeq": at}, **_APPEND)

    def _answer(self, n: int, last: bool) -> Iterator[bytes]:
        content: list[Object] = [
            {"type": "reasoning", "text": f"think {n} {_WORDS * 8}"},
            {"type": "text", "text": f"step {n} {_WORDS * 3}"},
        ]
        if not last:
            content.append({"type": "tool-call", **_call(n)})
        source: Object = {"kind": "model", **self._route}
        if self.shape.version:
            source["replayState"] = self._replay_state(n, content, last)
        message = {"role": "assistant", "content": content, "source": source, "id": self._id()}
        settled = {**self._place, "message": message, "usage": _USAGE}
        finish: Object = {"type": "finish", "reason": {"kind": "stop" if last else "tool-calls"}}
        if self.shape.version:
            finish["replayState"] = source["replayState"]
            stream = list(self._stream(content, finish))
            self._event("assistant/message", {**settled, "stream": stream}, **_APPEND)
        else:
            first = self.seq
            self._chunk_events(content, finish)
            yield from self._flush()
            self._event("assistant/message", settled, sourceEventSeqs=list(range(first, self.seq)), **_APPEND)
        yield from self._flush()

    def _replay_state(self, n: int, content: list[Object], last: bool) -> Object:
        model = self._route["model"]
        blocks: list[Object] = [{"type": block["type"]} for block in content]
        if not self.shape.is_pi:
            return {"response": {"kind": "deepseek-messages", "version": 1, "model": model}, "blocks": blocks}
        api = PI_APIS[self.shape.kind]
        if api == "anthropic-messages":
            blocks[0]["thinkingSignature"] = f"sig-{n}"
        answered = {"responseModel": "toy", "responseId": f"msg_{n}", "stopReason": "stop" if last else "toolUse"}
        return {"response": {"kind": "pi-ai", "version": 2, "api": api, **self._route, **answered}, "blocks": blocks}

    def _chunk_events(self, content: list[Object], finish: Object) -> None:
        """v0: each chunk is an event, long runs of deltas share a row."""
        for index, block in enumerate(content):
            self._chunk({"type": "block-start", "index": index, "blockType": block["type"]})
            texts = self._streamed(block)
            if not self.shape.packed or len(texts) < 3:
                for text in texts:
                    self._chunk(_delta(index, block, text))
                continue
            self.time_ms += 1
            run = _run(index, block, texts)
            row = {"type": _RUN_ROWS[block["type"]], "seq0": self.seq, "time0": self.time_ms}
            self.rows.append(_row({**row, "data": {**self._place, **run}}))
            self.seq += len(texts)
        for index, block in enumerate(content):
            self._chunk({"type": "block-end", "index": index, "block": block})
        self._chunk({"type": "usage", "usage": _USAGE})
        self._chunk(finish)

    def _stream(self, content: list[Object], finish: Object) -> Iterator[Object]:
        """v4: the answer carries its own stream, all received at one moment."""
        self.time_ms += 5
        now = self.time_ms

        def chunk(value: Object) -> Object:
            return {"type": "chunk", "time": now, "chunk": value}

        for index, block in enumerate(content):
            yield chunk({"type": "block-start", "index": index, "blockType": block["type"]})
            yield {"type": _RUN_ROWS[block["type"]], "time0": now, **_run(index, block, self._streamed(block))}
            yield chunk({"type": "block-end", "index": index, "block": block})
        yield chunk({"type": "usage", "usage": _USAGE})
        yield chunk(finish)

    def _call_tool(self, n: int) -> Iterator[bytes]:
        call = _call(n)
        called = {**self._place, "callId": call["id"], "name": call["name"], "arguments": call["arguments"]}
        at = self._event("tool/call", called)
        yield from self._flush()
        source = {"kind": "tool", "callId": call["id"]}
        result = {"toolCallId": call["id"], "content": _text(f"line {n}: {_WORDS * 12}"), "isError": False}
        message: Object
        if self.shape.version:
            message = {"role": "tool", "source": source, **result, "id": self._id()}
        else:
            content = [{"type": "tool-result", **result}]
            message = {"source": source, "content": content, "role": "user", "id": self._id()}
        self._event("tool/result", {**self._place, "message": message}, sourceEventSeqs=[at], **_APPEND)

    @property
    def _place(self) -> Object:
        return {"turn": self.turn, "step": self.step}

    @property
    def _route(self) -> Object:
        if self.shape.is_pi:
            return {"provider": "toy", "model": "toy-think"}
        return {"provider": "deepseek-official", "model": "deepseek-flash" if self.shape.version else "toy-1"}

    def _streamed(self, block: Object) -> list[str]:
        if block["type"] == "tool-call":
            return _pieces(block["arguments"], _ARGUMENT_PIECES)
        return _pieces(block["text"], self.shape.chunks)

    def _chunk(self, chunk: Object) -> None:
        self._event("assistant/chunk", {**self._place, "chunk": chunk})

    def _event(self, kind: str, data: Object, **more: Any) -> int:
        self.time_ms += 1
        self.rows.append(_row({"type": kind, "seq": self.seq, "time": self.time_ms, "data": data, **more}))
        self.seq += 1
        return self.seq - 1

    def _id(self) -> str:
        return str(uuid.UUID(int=self.ids.getrandbits(128), version=4))

    def _flush(self) -> Iterable[bytes]:
        if not self.rows:
            return ()
        frame = b"\n".join(self.rows) + b"\n"
        self.rows = []
        return (frame,)


def _call(n: int) -> Object:
    arguments = json.dumps({"path": f"/toy/{n}.txt", "from": n}, separators=(",", ":"))
    return {"id": f"L{n}a", "name": "read", "arguments": arguments}


def _run(index: int, block: Object, texts: list[str]) -> Object:
    run: Object = {"index": index, "dt": [0] * (len(texts) - 1)}
    if block["type"] == "tool-call":
        return {**run, "id": block["id"], "name": block["name"], "args": texts}
    return {**run, "texts": texts}


def _delta(index: int, block: Object, text: str) -> Object:
    delta: Object = {"type": f"{block['type']}-delta", "index": index}
    if block["type"] == "tool-call":
        return {**delta, "id": block["id"], "name": block["name"], "argumentsDelta": text}
    return {**delta, "text": text}


def main() -> None:
    """Write the logs that the arguments name, and say where."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kind", choices=KINDS)
    parser.add_argument("steps", type=int)
    parser.add_argument("root", type=Path, metavar="DIR")
    parser.add_argument("--plain", action="store_true")
    parser.add_argument("--chunks", type=int, default=8)
    parser.add_argument("--unpacked", action="store_true")
    parser.add_argument("--turn", type=int, default=15, help="steps a turn")
    parser.add_argument("--sessions", type=int, default=1)
    given = parser.parse_args()
    shape = Shape(given.kind, given.steps, given.turn, given.chunks, not given.unpacked)
    for path in write_sessions(shape, given.root, given.sessions, plain=given.plain):
        print(path)


if __name__ == "__main__":
    main()
