"""The capture bundle: a directory of ``NNNN.body`` and ``NNNN.meta.json``, one pair a request.

NNNN is the order of receipt, in decimal digits. The body file holds the raw bytes as received. The meta file
is described by schemas/capture-bundle.schema.json. Other files are ignored. A meta whose ``body`` is ``{size, sha256,
withheld}`` stands for a body that was left out on purpose: it is compared by its digest.
"""

from __future__ import annotations

import re
import stat
from collections.abc import Mapping
from pathlib import Path

from dsh_audit.capture.archive import CaptureArchive, Findings, Record, finish_exchange
from dsh_audit.capture.coding import body_limit
from dsh_audit.capture.exchange import BodyDigest, Exchange, Fidelity
from dsh_audit.capture.files import read_regular
from dsh_audit.capture.foreign import hint_at_files
from dsh_audit.capture.shapes import BadShapeError, http_headers_of, optional_int, required_text
from dsh_audit.errors import CaptureError, UsageError
from dsh_audit.events import Json
from dsh_audit.record import dataclass
from dsh_audit.rules import capture as rules
from dsh_audit.text import ecma
from dsh_audit.text.budget import BUDGET

FORMAT = "bundle"
MAX_META_BYTES = 1 << 20

_NAME = re.compile(r"(\d{1,18})\.(body|meta\.json)", re.ASCII)


def is_bundle_file(name: str) -> bool:
    """Whether a file of this name is part of a bundle."""
    return _NAME.fullmatch(name) is not None


def detect(path: Path, head: bytes) -> bool:
    """Any directory."""
    return not head and path.is_dir()


def read_bundle(path: Path, fields: Mapping[str, str] | None = None) -> CaptureArchive:
    """Read a capture directory; bodies stay on disk.

    Findings: ``capture/no-body``, ``capture/no-meta``, ``capture/bad-meta``, ``capture/unsafe-file``,
    ``capture/unreadable-file``, ``capture/too-large`` and those of every importer.

    Raises:
        CaptureError: unreadable, or without any file of the bundle.
        UsageError: fields were given, which a bundle does not have.
    """
    if fields:
        raise UsageError("--capture-field applies to JSONL captures only")
    findings = Findings(str(path))
    metas, bodies = _list_files(path)
    exchanges: list[Exchange] = []
    for name in sorted(metas.keys() | bodies.keys(), key=lambda name: (int(name), name)):
        if name not in metas:
            findings.add(rules.NO_META, f"{name}.body has no {name}.meta.json", captured=name)
            continue
        record = _read_record(path, name, findings)
        if record is not None:
            exchanges.append(finish_exchange(record, len(exchanges), findings))
    return CaptureArchive(tuple(exchanges), findings, FORMAT)


def _list_files(path: Path) -> tuple[dict[str, Path], dict[str, Path]]:
    metas: dict[str, Path] = {}
    bodies: dict[str, Path] = {}
    try:
        for file in path.iterdir():
            if match := _NAME.fullmatch(file.name):
                (bodies if match[2] == "body" else metas)[match[1]] = file
        if not metas and not bodies:
            nested = (path / "captures").is_dir()
            hint = "Expected NNNN.body and NNNN.meta.json."
            if nested:
                hint = f"Did you mean {path / 'captures'}?"
            else:
                hint = hint_at_files([file.name for file in path.iterdir()]) or hint
            raise CaptureError(f"{path}: no captured requests in this directory", hint=hint)
    except OSError as error:
        raise CaptureError(f"{path}: {error.strerror or 'cannot be read'}") from None
    return metas, bodies


def _read_record(path: Path, name: str, findings: Findings) -> Record | None:
    data = _read_file(path / f"{name}.meta.json", MAX_META_BYTES, findings, name)
    if data is None:
        return None
    try:
        return parse_meta(data, name, _BodyFile(path / f"{name}.body", findings))
    except BadShapeError as error:
        findings.add(rules.BAD_META, f"meta file: {error}", captured=name)
        return None


def parse_meta(data: bytes, name: str, load: _BodyFile) -> Record:
    """A record from the bytes of a meta file.

    Raises:
        BadShapeError: it does not fit the schema.
    """
    try:
        meta = ecma.parse(data)
    except ecma.EcmaSyntaxError as error:
        raise BadShapeError(f"not JSON at byte {error.at}") from None
    if not isinstance(meta, dict):
        raise BadShapeError("must be an object")
    return Record(
        id=name,
        method=required_text(meta, "method"),
        url=required_text(meta, "path"),
        http_headers=http_headers_of(meta.get("headers")),
        fidelity=Fidelity.RAW,
        load=load,
        status=optional_int(meta.get("status")),
        digest=_digest(meta.get("body")),
        peek=load.peek,
        time_ms=optional_int(meta.get("receivedAt")),
    )


def _digest(value: Json) -> BodyDigest | None:
    """The ``body`` member of a digest-only capture."""
    if not isinstance(value, dict) or "withheld" not in value:
        return None
    size, sha256 = optional_int(value.get("size")), required_text(value, "sha256")
    if size is None or not re.fullmatch(r"[0-9a-f]{64}", sha256):
        raise BadShapeError("body must have a size and a hex sha256")
    return BodyDigest(size, sha256)


def _read_file(file: Path, limit: int, findings: Findings, name: str) -> bytes | None:
    try:
        data = read_regular(file, limit)
    except FileNotFoundError:
        return None
    except OSError as error:
        message = f"{file.name}: {error.strerror or 'cannot be read'}"
        findings.add(rules.UNREADABLE_FILE, message, captured=name)
        return None
    if data is None:
        _explain_refusal(file, limit, findings, name)
    return data


def _explain_refusal(file: Path, limit: int, findings: Findings, name: str) -> None:
    size = file.lstat().st_size
    if file.is_symlink() or not file.is_file():
        findings.add(rules.UNSAFE_FILE, f"{file.name} is not a regular file", captured=name)
    else:
        message = f"{file.name} has {size} bytes, the limit is {limit}: {BUDGET.get().text}"
        findings.add(rules.TOO_LARGE, message, captured=name)


@dataclass(slots=True)
class _BodyFile:
    """Reads a body file; reports why it cannot the first time only."""

    file: Path
    findings: Findings

    def peek(self) -> tuple[int, bytes] | None:
        """Size and first bytes of a regular file that may be read."""
        try:
            status = self.file.lstat()
            if not stat.S_ISREG(status.st_mode) or status.st_size > body_limit():
                return None
            with self.file.open("rb", buffering=0) as file:
                return status.st_size, file.read(4)
        except OSError:
            return None

    def __call__(self) -> bytes | None:
        findings, self.findings = self.findings, Findings("")
        return _read_file(self.file, body_limit(), findings, self.file.name.partition(".")[0])
