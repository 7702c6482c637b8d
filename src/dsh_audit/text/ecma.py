"""JSON and strings as JavaScript has them.

A parsed value is None, bool, int, float, str, list or dict. A number is an int where its double is an
integer of at most 2**53, else a float (−0 is -0.0, an overflow is inf). An object is a dict in JavaScript
key order. A str may hold lone surrogates, never a pair as two code points. Nothing here recurses; all of it
takes linear time.

The fast ways (msgspec, orjson, the scanner of CPython's json) are taken only for texts in which nothing occurs that
they treat differently; ``_ecma_slow`` defines the result. Source: ECMA-262 25.5; spec ecmascript-json.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from json import JSONDecoder
from math import copysign
from typing import Any

import msgspec
import orjson

from dsh_audit.text import ecma_slow as slow
from dsh_audit.text.budget import check_admitted
from dsh_audit.text.ecma_slow import EcmaSyntaxError, number_to_text

__all__ = [
    "SPACE",
    "EcmaSyntaxError",
    "is_negative_zero",
    "join",
    "length",
    "may_be_odd",
    "number_to_text",
    "parse",
    "parse_even",
    "same_json",
    "stringify",
    "stringify_text",
    "utf16_key",
    "utf16_slice",
]

SPACE = (
    "\t\n\v\f\r \xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000\ufeff"
)
"""Every code point that JavaScript's trim() removes; Python's strip() knows others."""

_SMALL = 1 << 16
_SLACK = 8192  # orjson leaves this much memory behind a short result; a copy has none
_OPTIONS = orjson.OPT_PASSTHROUGH_DATACLASS | orjson.OPT_PASSTHROUGH_DATETIME
_NEGATIVE_ZERO = re.compile(rb"-(?<=[:,\[ \t\n\r]-)0[ \t\n\r,\]}]")  # or what looks like it in a string
_INDEX_KEY = re.compile(rb'"[0-9]+"[ \t\n\r]*:')
_DIGIT_ESCAPE = re.compile(rb"\\u003[0-9]")
_DIGITS = bytes(48 if chr(byte).isdigit() else 32 for byte in range(128)) + bytes(128)
_LONG_INTEGER = b"0" * 16
_ODD_OUTPUT = re.compile(rb'[{,]"[0-9]+":|[\[:,]-?[0-9]+[.e]|[\[:,]-?[0-9]{16}')
"""An index key, a real number or a long integer as orjson prints them; never missed, but strings may look like it."""
_AS_ZEROS = bytes(48 if chr(byte).isdigit() else byte for byte in range(256))


def _refuse(_: str) -> Any:
    raise ValueError


_FAST = msgspec.json.Decoder(float_hook=slow.read_real)
_DECODER = JSONDecoder(
    object_hook=slow.order_keys,
    parse_int=slow.read_integer,
    parse_float=slow.read_real,
    parse_constant=_refuse,
)


def _is_plain(value: Any) -> bool:
    """Whether orjson treats a value as JavaScript does: no key is an index, no number needs another form."""
    nodes = [value]
    for node in nodes:
        kind = type(node)
        if kind is str:
            continue
        if kind is dict:
            for key in node:
                if key.isdigit():
                    return False
            nodes += node.values()
        elif kind is list:
            nodes += node
        elif kind is int:
            if not -9007199254740992 <= node <= 9007199254740992:
                return False
        elif kind is float:
            if node.is_integer() or -1e-5 < node < 1e-5:  # orjson 3.10 prints 1.5e-6
                return False
        elif node is not None and kind is not bool:
            return False
    return True


def parse(data: bytes | str) -> Any:
    """The value of a JSON text, as JSON.parse gives it.

    Args:
        data: UTF-8 without BOM, or a str (which may hold lone surrogates).

    Raises:
        EcmaSyntaxError: with the offset in ``at``: bytes for bytes, code points for a str.
        BudgetError: an EcmaSyntaxError; it was not parsed.
    """
    if len(data) > _SMALL:
        check_admitted(data if isinstance(data, bytes) else data.encode("utf-8", "surrogatepass"))
    if isinstance(data, str):
        try:
            raw = data.encode()
        except UnicodeEncodeError:
            return slow.Reader(data).read()
    else:
        raw = data
    if raw[:1] in (b"{", b"[", b'"') and not may_be_odd(raw):
        try:
            return _FAST.decode(raw)
        except (ValueError, RecursionError):
            pass  # lone surrogates, depth, an error: the reason is found below
    return _parse_text(data) if isinstance(data, str) else _parse_utf8(data)


def may_be_odd(raw: bytes) -> bool:
    """Whether a JSON text may hold what typed decoding reads in another way than JavaScript.

    That is −0, an integer beyond 2**53, a key that is an index; never missed, but strings may look like it.
    """
    if _LONG_INTEGER in raw.translate(_DIGITS) or _NEGATIVE_ZERO.search(raw):
        return True
    return (_INDEX_KEY.search(raw) or _DIGIT_ESCAPE.search(raw)) is not None


parse_even = _FAST.decode
"""As ``parse``, for a UTF-8 text of which ``may_be_odd`` said no; ValueError or RecursionError at its limits."""


def _parse_text(text: str) -> Any:
    try:
        return _DECODER.decode(text)
    except (ValueError, RecursionError):
        return slow.Reader(text).read()


def _parse_utf8(data: bytes) -> Any:
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise EcmaSyntaxError("invalid UTF-8", error.start) from None
    try:
        return _parse_text(text)
    except EcmaSyntaxError as error:
        raise EcmaSyntaxError(error.reason, len(text[: error.at].encode())) from None


def stringify(value: Any) -> bytes:
    """A value as JSON.stringify prints it without spaces, in UTF-8.

    Args:
        value: as ``parse`` gives it, or built by hand: tuples are arrays, keys of digits may stand anywhere,
            an int beyond 2**53 prints as its double, a split surrogate pair as one character.

    Raises:
        TypeError: for what is not JSON, and for a container inside itself.
    """
    kind = type(value)
    if kind is not str and kind is not dict and kind is not list:
        return slow.stringify_any(value)
    try:
        text = orjson.dumps(value, None, _OPTIONS)
    except TypeError:
        return slow.stringify_any(value)
    if kind is not str and _is_odd_output(text) and not _is_plain(value):
        return slow.stringify_any(value)
    return text if len(text) > _SLACK else b"".join((text, b""))


def _is_odd_output(text: bytes) -> bool:
    zeros = text.translate(_AS_ZEROS)
    # What the pattern finds has one of these in it when every digit is 0; searching for them is much faster.
    is_real = b"0.0" in zeros or b":0e" in zeros or b",0e" in zeros or b"[0e" in zeros or b"-0e" in zeros
    is_index = b'0":' in zeros and b'"":' in text.translate(None, b"0123456789")
    return (is_real or is_index or _LONG_INTEGER in zeros) and _ODD_OUTPUT.search(text) is not None


def stringify_text(value: Any) -> str:
    """``stringify`` as a str (in which no lone surrogate is left)."""
    return stringify(value).decode()


def is_negative_zero(x: object) -> bool:
    """Whether a value is the number −0."""
    return isinstance(x, float) and x == 0 and copysign(1.0, x) < 0


def join(parts: Iterable[str]) -> str:
    """The parts in a row; surrogate halves that meet become one character."""
    return slow.heal("".join(parts))


def length(s: str) -> int:
    """The length in UTF-16 code units."""
    return len(s) if s.isascii() else len(s.encode("utf-16-le", "surrogatepass")) // 2


def utf16_slice(s: str, start: int, end: int | None = None) -> str:
    """``s.slice(start, end)``: offsets in UTF-16 code units, negative ones from the end."""
    if s.isascii():
        return s[start:end]
    units = s.encode("utf-16-le", "surrogatepass")
    cut = units[2 * start : None if end is None else 2 * end]
    return cut.decode("utf-16-le", "surrogatepass")


def utf16_key(s: str) -> bytes:
    """A sort key that gives the default string order of JavaScript (by UTF-16 code unit)."""
    return s.encode("utf-16-be", "surrogatepass")


def same_json(a: Any, b: Any) -> bool:
    """Whether two values mean the same: key order aside, numbers as doubles (−0 is 0), no bool a number."""
    pairs = [(a, b)]
    while pairs:
        a, b = pairs.pop()
        if isinstance(a, dict):
            if not isinstance(b, dict):
                return False
            if a.keys() != b.keys():
                a = {slow.heal(key): value for key, value in a.items()}
                b = {slow.heal(key): value for key, value in b.items()}
                if a.keys() != b.keys():
                    return False
            pairs.extend((value, b[key]) for key, value in a.items())
        elif isinstance(a, (list, tuple)):
            if not isinstance(b, (list, tuple)) or len(a) != len(b):
                return False
            pairs.extend(zip(a, b, strict=True))
        elif not _same_scalar(a, b):
            return False
    return True


def _same_scalar(a: Any, b: Any) -> bool:
    if isinstance(a, str):
        return isinstance(b, str) and (a == b or slow.heal(a) == slow.heal(b))
    if isinstance(a, bool) or isinstance(b, bool) or a is None or b is None:
        return a is b
    if isinstance(b, (str, dict, list, tuple)):
        return False
    return slow.to_double(a) == slow.to_double(b)
