"""A loopback provider that records every request as a capture bundle and answers from a script.

`NNNN.body` holds the raw request body, `NNNN.meta.json` method, path, the raw header list in order, the time
of receipt in milliseconds and the body's size and SHA-256. Numbers follow the order of receipt.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import socket
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any

from tests.harness import prefix_cache, replies
from tests.harness.prefix_cache import PrefixCache

Json = Any

ENCODERS = {"chat": replies.chat, "messages": replies.messages, "responses": replies.responses}
HANG_LIMIT_S = 30.0


class CaptureServer:
    """Context manager; listens on a free loopback port while open.

    Args:
        out_dir: directory of the bundle; made if missing, must hold no captures.
        script: replies, each used once, in order among those that fit the request.
        title_max_tokens: how a title request is told from a step without tools.
        cache: reports usage where a reply has none of its own.
    """

    def __init__(
        self, out_dir: Path, script: list[Json], title_max_tokens: int = 64, cache: PrefixCache | None = None
    ) -> None:
        self.out_dir = out_dir
        self.title_max_tokens = title_max_tokens
        self._cache = cache
        self.hanging = threading.Event()
        self.go_on = threading.Event()
        self._unused = list(script)
        self._lock = threading.Lock()
        self._count = 0
        self._files = 0
        self._http = _Server(("127.0.0.1", 0), self)
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)

    @property
    def port(self) -> int:
        """The port in use."""
        return int(self._http.server_address[1])

    @property
    def unused(self) -> list[Json]:
        """Replies that no request asked for."""
        return list(self._unused)

    def __enter__(self) -> CaptureServer:
        self.out_dir.mkdir(parents=True, exist_ok=True)
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.go_on.set()
        self._http.shutdown()
        self._http.server_close()
        self._thread.join(5)

    def record(self, method: str, path: str, headers: list[tuple[str, str]], body: bytes) -> int:
        """Write one exchange; returns its number."""
        with self._lock:
            number = self._count
            self._count += 1
        stem = self.out_dir / f"{number:04d}"
        meta = {
            "method": method,
            "path": path,
            "headers": headers,
            "receivedAt": time.time_ns() // 1_000_000,
            "body": {"size": len(body), "sha256": hashlib.sha256(body).hexdigest()},
        }
        stem.with_suffix(".body").write_bytes(body)
        stem.with_suffix(".meta.json").write_text(json.dumps(meta, indent=1) + "\n")
        return number

    def pick(self, purpose: str, body: bytes) -> Json:
        """The next reply for such a request."""
        with self._lock:
            for at, reply in enumerate(self._unused):
                if reply.get("to", "step") == purpose and reply.get("when", "").encode() in body:
                    return self._unused.pop(at)
        return {"text": {"title": "A toy title", "compaction": "Short."}.get(purpose, "Done.")}

    def usage(self, protocol: str, body: bytes) -> Json:
        """The usage to report for a request."""
        if self._cache is None:
            return replies.default_usage(protocol)
        with self._lock:
            return prefix_cache.usage(protocol, *self._cache.look_up(body))

    def next_file(self) -> int:
        """Number of the next uploaded file, from 1."""
        with self._lock:
            self._files += 1
            return self._files


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def __init__(self, address: tuple[str, int], owner: CaptureServer) -> None:
        super().__init__(address, _Handler)
        self.owner = owner


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def handle(self) -> None:
        """A killed client is one of the cases: a reset connection is no news."""
        with contextlib.suppress(ConnectionError):
            super().handle()

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Silent."""

    def do_GET(self) -> None:
        """Nothing is listed here."""
        self._json(404, {"error": {"message": "not here"}})

    do_DELETE = do_GET  # noqa: N815

    def do_POST(self) -> None:
        """Record the request and answer it."""
        owner, body = self.server.owner, self._read_body()
        number = owner.record("POST", self.path, list(self.headers.items()), body)
        path = self.path.split("?")[0]
        if path.endswith("/files"):
            self._upload(owner.pick("files", body), body)
            return
        protocol = {"/messages": "messages", "/responses": "responses"}.get(path[path.rfind("/") :], "chat")
        reply = owner.pick(self._purpose(body), body)
        usage = owner.usage(protocol, body)
        time.sleep(reply.get("delay_ms", 0) / 1000)
        if reply.get("drop"):
            self._hang_up()
        elif "json" in reply:
            self._json(200, reply["json"])
        elif "status" in reply:
            error = reply.get("error", {"message": "toy error", "type": "toy_error", "code": "toy"})
            typed = {"type": "error"} if protocol == "messages" else {}
            self._json(reply["status"], {**typed, "error": error}, reply.get("headers", {}))
        else:
            self._stream(reply, protocol, number, reply.get("usage") or usage)

    def _purpose(self, body: bytes) -> str:
        if self.headers.get("x-deepseek-harness-compact"):
            return "compaction"
        try:
            request = json.loads(body)
        except ValueError:
            return "step"
        tools = request.get("tools") or []
        if tools and str(tools[0].get("type")).startswith("web_search"):
            return "search"
        limit = self.server.owner.title_max_tokens
        return "title" if not tools and request.get("max_tokens") == limit else "step"

    def _stream(self, reply: Json, protocol: str, number: int, usage: Json) -> None:
        owner = self.server.owner
        rows = reply["raw"] if "raw" in reply else ENCODERS[protocol](reply, number, usage)
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        try:
            for count, row in enumerate(rows, 1):
                data = row.encode()
                self.wfile.write(b"%x\r\n%b\r\n" % (len(data), data))
                self.wfile.flush()
                time.sleep(reply.get("pause_ms", 0) / 1000)
                if reply.get("cut_after") == count:
                    self._hang_up()
                    return
                if reply.get("hang_after") == count:
                    owner.hanging.set()
                    owner.go_on.wait(HANG_LIMIT_S)
            self.wfile.write(b"0\r\n\r\n")
        except OSError:
            self.close_connection = True

    def _upload(self, reply: Json, body: bytes) -> None:
        if "status" in reply:
            self._json(reply["status"], {"type": "error", "error": {"message": "toy error", "type": "toy_error"}})
            return
        boundary = body.split(b"\r\n", 1)[0]
        start = body.index(b"\r\n\r\n", body.rfind(b"Content-Type: ")) + 4
        size = body.rindex(b"\r\n" + boundary) - start
        name = body.split(b'filename="', 1)[1].split(b'"', 1)[0].decode()
        number, now = self.server.owner.next_file(), int(time.time())
        if self.headers.get("anthropic-version"):
            created = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(now))
            facts = {"type": "file", "filename": name, "mime_type": "image/png", "size_bytes": size}
            self._json(200, {"id": f"file_{number:03d}", **facts, "created_at": created, "downloadable": False})
            return
        facts = {
            "object": "file",
            "filename": name,
            "bytes": size,
            "purpose": "user_data",
            "status": "processed",
        }
        self._json(200, {"id": f"file-{number:03d}", **facts, "created_at": now, "expires_at": now + 604_800})

    def _read_body(self) -> bytes:
        if "chunked" not in (self.headers.get("transfer-encoding") or ""):
            return self.rfile.read(int(self.headers.get("content-length") or 0))
        pieces = []
        while size := int(self.rfile.readline().strip() or b"0", 16):
            pieces.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(pieces)

    def _json(self, status: int, value: Json, headers: dict[str, str] | None = None) -> None:
        data = json.dumps(value).encode()
        self.send_response(status)
        for key, text in {"content-type": "application/json", **(headers or {})}.items():
            self.send_header(key, text)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _hang_up(self) -> None:
        self.close_connection = True
        self.connection.shutdown(socket.SHUT_RDWR)
