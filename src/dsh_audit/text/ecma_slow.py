"""The definition behind ``ecma``: a reader and a writer without recursion, rules for numbers and keys.

Every construct is handled here; ``ecma`` only adds faster ways where they give the same result.
Source: ECMA-262 25.5 (JSON), 6.1.6.1.20 (Number::toString), 10.1.11 (OrdinaryOwnPropertyKeys).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from json import JSONDecodeError
from json.decoder import scanstring  # type: ignore[attr-defined]
from json.encoder import encode_basestring
from math import copysign, inf, isfinite
from typing import Any, Final

SAFE: Final = 2**53
_LAST_INDEX: Final = 2**32 - 2
_SPACE: Final = " \t\n\r"


class EcmaSyntaxError(ValueError):
    """The text is not what JSON.parse accepts.

    Args:
        reason: what was expected, without input text beyond one character.
        at: offset from 0, in bytes when bytes were parsed, in code points when a str was.
    """

    def __init__(self, reason: str, at: int) -> None:
        super().__init__(f"{reason} at {at}")
        self.reason = reason
        self.at = at


def is_index(key: str) -> bool:
    """Whether a key is an array index: a canonical decimal from 0 to 4294967294."""
    if len(key) > 10 or not (key.isascii() and key.isdigit()):
        return False
    return key == "0" or (key[0] != "0" and int(key) <= _LAST_INDEX)


def order_keys(members: dict[str, Any]) -> dict[str, Any]:
    """The members in the order of a JavaScript object: indices first, ascending."""
    if not any(map(str.isdigit, members)):
        return members
    indices = [key for key in members if is_index(key)]
    ordered = {key: members[key] for key in sorted(indices, key=int)}
    ordered.update(members)
    return ordered


def normalise(x: float) -> int | float:
    """The int where the double is an integer of at most 2**53 and not −0."""
    if x.is_integer() and -SAFE <= x <= SAFE and (x or copysign(1.0, x) > 0):
        return int(x)
    return x


def read_integer(text: str) -> int | float:
    """A JSON integer of any length as the double it means."""
    if len(text) < 16:
        return int(text) or (-0.0 if text[0] == "-" else 0)
    return normalise(float(text))


def read_real(text: str) -> int | float:
    """A JSON number with fraction or exponent as the double it means."""
    return normalise(float(text))


def to_double(x: float) -> float:
    """The double nearest to a number, infinite beyond the range."""
    try:
        return float(x)
    except OverflowError:
        return inf if x > 0 else -inf


def number_to_text(x: float) -> str:
    """A number as ``String(x)`` prints it."""
    if isinstance(x, int) and -SAFE <= x <= SAFE:
        return str(int(x))
    x = to_double(x)
    if not isfinite(x):
        return "NaN" if x != x else "Infinity" if x > 0 else "-Infinity"
    mantissa, _, exponent = repr(abs(x)).partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).lstrip("0")
    point = len(whole) + int(exponent or 0) - (len(whole + fraction) - len(digits))
    digits = digits.rstrip("0")
    return ("-" if x < 0 else "") + (_layout(digits, point) if digits else "0")


def _layout(digits: str, point: int) -> str:
    if len(digits) <= point <= 21:
        return digits.ljust(point, "0")
    if 0 < point <= 21:
        return digits[:point] + "." + digits[point:]
    if -6 < point <= 0:
        return "0." + "0" * -point + digits
    rest = "." + digits[1:] if len(digits) > 1 else ""
    return f"{digits[0]}{rest}e{point - 1:+d}"


def heal(s: str) -> str:
    """Join surrogate halves that stand side by side as two code points."""
    try:
        s.encode()
    except UnicodeEncodeError:
        return s.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
    return s


def to_utf8(text: str) -> bytes:
    """A printed text in UTF-8: halves that meet joined, a lone surrogate as six ASCII characters.

    In a whole text only halves of the same string can meet, since quotation marks stand between strings.
    """
    try:
        return text.encode()
    except UnicodeEncodeError:
        return heal(text).encode("utf-8", "backslashreplace")


def _print_scalar(value: Any) -> str:
    if isinstance(value, str):
        return encode_basestring(value)
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if not isinstance(value, (int, float)):
        raise TypeError(f"not a JSON value: {type(value).__name__}")
    return number_to_text(value) if isfinite(to_double(value)) else "null"


def _print_order(members: dict[str, Any]) -> dict[str, Any]:
    try:
        "".join(members).encode()  # a TypeError where a key is not a str
    except UnicodeEncodeError:
        members = {heal(key): value for key, value in members.items()}
    return order_keys(members)


def stringify_any(value: Any) -> bytes:
    """JSON.stringify of any value at any depth.

    Raises:
        TypeError: for what is not JSON, and for a container inside itself.
    """
    out: list[str] = []
    closers: dict[int, str] = {}  # of the open containers by their id, in order
    stack: list[Iterator[Any]] = [iter((value,))]  # of children, or of items where the container is an object
    objects, append, is_first = [False], out.append, True
    while stack:
        is_object = objects[-1]
        for child in stack[-1]:
            if not is_first:
                append(",")
            is_first = False
            if is_object:
                append(encode_basestring(child[0]) + ":")
                child = child[1]
            if not isinstance(child, (dict, list, tuple)):
                append(_print_scalar(child))
                continue
            if id(child) in closers:
                raise TypeError("a container inside itself")
            is_first, is_object = True, isinstance(child, dict)
            append("{" if is_object else "[")
            closers[id(child)] = "}" if is_object else "]"
            objects.append(is_object)
            stack.append(iter(_print_order(child).items() if isinstance(child, dict) else child))
            break
        else:
            is_first = False
            stack.pop()
            objects.pop()
            if stack:
                append(closers.popitem()[1])
    return to_utf8("".join(out))


class Reader:
    """JSON.parse without recursion; the only place that makes syntax errors.

    Args:
        text: may hold lone surrogates; halves that meet are joined.
    """

    _space = re.compile(f"[{_SPACE}]*")
    _number = re.compile(r"(-?(?:0|[1-9][0-9]*))((?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)")
    _words: Final = (("true", True), ("false", False), ("null", None))

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._stack: list[list[Any] | dict[str, Any]] = []
        self._keys: list[str] = []

    def read(self) -> Any:
        """The value of the whole text."""
        while True:
            value = self._read_start()
            if value is self._stack:
                continue
            while self._stack:
                container = self._stack[-1]
                if isinstance(container, dict):
                    container[self._keys.pop()] = value
                else:
                    container.append(value)
                if not self._close():
                    break
                value = order_keys(container) if isinstance(container, dict) else container
                self._stack.pop()
            else:
                if self._next():
                    raise self._error("unexpected text after the value")
                return value

    def _next(self) -> str:
        char = self._text[self._at : self._at + 1]
        if char in _SPACE and (match := self._space.match(self._text, self._at)):
            self._at = match.end()
            return self._text[self._at : self._at + 1]
        return char

    def _error(self, reason: str) -> EcmaSyntaxError:
        return EcmaSyntaxError(reason if self._at < len(self._text) else "unexpected end", self._at)

    def _read_start(self) -> Any:
        """A scalar or an empty container; the stack itself when a container was opened instead."""
        char = self._next()
        if char == '"':
            return self._read_string()
        if char == "{":
            self._at += 1
            if self._next() == "}":
                self._at += 1
                return {}
            self._stack.append({})
            self._read_key()
            return self._stack
        if char == "[":
            self._at += 1
            if self._next() == "]":
                self._at += 1
                return []
            self._stack.append([])
            return self._stack
        return self._read_word()

    def _close(self) -> bool:
        """Step over what follows a member: False after a comma, True after the end of the container."""
        is_object = isinstance(self._stack[-1], dict)
        char = self._next()
        if char == ",":
            self._at += 1
            if is_object:
                self._read_key()
            return False
        if char != ("}" if is_object else "]"):
            raise self._error("expected ',' or '}'" if is_object else "expected ',' or ']'")
        self._at += 1
        return True

    def _read_key(self) -> None:
        if self._next() != '"':
            raise self._error("expected a key")
        self._keys.append(self._read_string())
        if self._next() != ":":
            raise self._error("expected ':'")
        self._at += 1

    def _read_string(self) -> str:
        try:
            value, self._at = scanstring(self._text, self._at + 1, True)
        except JSONDecodeError as error:
            raise self._string_error(error) from None
        return heal(value)

    def _string_error(self, error: JSONDecodeError) -> EcmaSyntaxError:
        if error.msg.startswith("Unterminated"):
            self._at = len(self._text)
            return self._error("")
        if self._text[error.pos : error.pos + 1] < " ":
            self._at = error.pos
            return self._error("raw control character in a string")
        self._at = self._text.rfind("\\", 0, error.pos + 1)
        return self._error("bad escape")

    def _read_word(self) -> Any:
        match = self._number.match(self._text, self._at)
        if match:
            self._at = match.end()
            return read_real(match[0]) if match[2] else read_integer(match[1])
        for word, value in self._words:
            if self._text.startswith(word, self._at):
                self._at += len(word)
                return value
        raise self._error("expected a value")
