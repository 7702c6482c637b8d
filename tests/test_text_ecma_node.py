"""Compare ``ecma`` with the JSON object of Node, text by text. Fails when ``node`` is not installed."""

from __future__ import annotations

import base64
import json
import subprocess
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dsh_audit.text import ecma
from dsh_audit.text import ecma_slow as slow

# One request a line: {"name", "data"} with base64 of UTF-8 (or UTF-16LE) text; one JSON answer a line.
SCRIPT = """
const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
const from = (s) => Buffer.from(s, "base64");
const units = (s) => from(s).toString("utf16le");
const reprint = (text) => Buffer.from(JSON.stringify(JSON.parse(text)), "utf8").toString("base64");
const deepEqual = (a, b) => {
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return a === b;
  if (Array.isArray(a) !== Array.isArray(b)) return false;
  const keys = Object.keys(a);
  if (keys.length !== Object.keys(b).length) return false;
  return keys.every((key) => Object.hasOwn(b, key) && deepEqual(a[key], b[key]));
};
const calls = {
  bytes: (data) => reprint(utf8.decode(from(data))),
  units: (data) => reprint(units(data)),
  number: (data) => String(JSON.parse(data)),
  same: (a, b) => deepEqual(JSON.parse(a), JSON.parse(b)),
  slice: (s, start, end) => Buffer.from(units(s).slice(start, end), "utf16le").toString("base64"),
  sort: (...all) => all.map(units).sort().map((s) => Buffer.from(s, "utf16le").toString("base64")),
};
require("node:readline").createInterface({ input: process.stdin, crlfDelay: Infinity }).on("line", (line) => {
  const [name, ...args] = JSON.parse(line);
  let answer = null;
  try { answer = calls[name](...args); } catch (error) {
    if (!(error instanceof SyntaxError || error.code === "ERR_ENCODING_INVALID_ENCODED_DATA")) throw error;
  }
  process.stdout.write(JSON.stringify(answer) + "\\n");
});
"""

Node = Callable[..., Any]
CHECK = settings(max_examples=150, deadline=None, derandomize=True, database=None)


@pytest.fixture(scope="module")
def node() -> Iterator[Node]:
    with subprocess.Popen(
        ["node", "-e", SCRIPT], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin and process.stdout
        requests, answers = process.stdin, process.stdout

        def call(name: str, *args: Any) -> Any:
            requests.write(json.dumps([name, *args]) + "\n")
            requests.flush()
            return json.loads(answers.readline())

        yield call
        requests.close()


def to_base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def units_of(s: str) -> str:
    return to_base64(s.encode("utf-16-le", "surrogatepass"))


def from_units(answer: str) -> str:
    return base64.b64decode(answer).decode("utf-16-le", "surrogatepass")


def reprint(text: bytes | str) -> str | None:
    try:
        return to_base64(ecma.stringify(ecma.parse(text)))
    except ecma.EcmaSyntaxError as error:
        assert 0 <= error.at <= len(text)
        return None


def check_bytes(node: Node, text: bytes) -> None:
    """Both sides refuse the text or print the same; the slow reader and writer agree with the fast ones."""
    expected = node("bytes", to_base64(text))
    assert reprint(text) == expected, text
    if expected is not None:
        value = slow.Reader(text.decode()).read()
        assert repr(value) == repr(ecma.parse(text))
        assert to_base64(slow.stringify_any(value)) == expected


def check_in_contexts(node: Node, text: str) -> None:
    """The text alone, and as a member, with and without white space."""
    for form in ("%s", "[%s]", '{"a":%s}', "[0,%s , 1]", '{"a" :\t%s\n,"b":[ %s]}', '{"s":"%s"}'):
        check_bytes(node, form.replace("%s", text).encode())


DIGITS = st.text("0123456789", min_size=1, max_size=24)
EDGES = st.sampled_from(
    [2**53, 2**63, 2**64, 10**15, 10**16, 10**20, 10**21, 10**22, 2**1023, 2**1024]
).flatmap(lambda edge: st.integers(edge - 3, edge + 3))
INTEGERS = DIGITS.map(lambda s: s.lstrip("0") or "0") | EDGES.map(str) | DIGITS
FRACTIONS = DIGITS.map(lambda s: "." + s) | st.sampled_from(["", "", ".", ".0", "." + "0" * 20 + "1"])
EXPONENTS = st.just("") | st.from_regex(r"[eE][+-]?[0-9]{1,3}", fullmatch=True)
NUMBERS = st.one_of(
    st.tuples(st.sampled_from(["", "", "-"]), INTEGERS, FRACTIONS, EXPONENTS).map("".join),
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.floats(-1e6, 1e6).map(lambda x: f"{x:.6f}"),
    st.integers().map(str),
)


@CHECK
@given(NUMBERS)
@example("-0")
@example("-0.0")
@example("1" + "0" * 400 + "e-400")
@example("2.2250738585072011e-308")
@example("9007199254740992.99999999")
@example("0." + "9" * 40)
@example("99999999999999.99999")
def test_numbers(node: Node, text: str) -> None:
    check_in_contexts(node, text)
    expected = node("number", text)
    if expected is not None:
        assert ecma.number_to_text(ecma.parse(text)) == expected


PIECES = [
    *'{}[],:"\\ \t\n\r\x0b\x0c\x00\x1f\x7f-+.eE019/ud\u00e9\u2028\ufeff\u00a0\U0001f600',
    *("true", "false", "null", "NaN", "Infinity", '""', "[]", "{}", "[1,", '{"a":', '"__proto__":'),
    *('"1":', '"10":1,', '"\\u003', "\\u0031", "\\ud83d", "\\uDE00", "\\udbff", "\\n", "\\x", "//"),
    *("-0", "1.0", "1e5", "12345678901234567"),
]


@CHECK
@given(st.lists(st.sampled_from(PIECES), max_size=12).map("".join))
def test_pieces(node: Node, text: str) -> None:
    check_bytes(node, text.encode())
    check_bytes(node, f'{{"a":[{text}]}}'.encode())
    check_bytes(node, f'["{text}"]'.encode())
    check_bytes(node, f'{{"b":0,"{text}":1}}'.encode())


CHARS = st.characters(exclude_categories=()) | st.sampled_from(
    '\ud800\udbff\ud83d\ude00\udc00\udfff\U0001f600"\\e1,:.['
)
STRINGS = st.lists(CHARS, max_size=8).map("".join)


@CHECK
@given(STRINGS)
def test_strings_of_code_units(node: Node, s: str) -> None:
    for text in (s, f'"{s}"', f'{{"{s}":["{s}"]}}'):
        assert reprint(text) == node("units", units_of(text))
    quoted = json.dumps(s)
    healed = ecma.parse(quoted)
    assert healed == ecma.join(s)
    assert ecma.length(s) == ecma.length(healed) == len(base64.b64decode(units_of(s))) // 2
    assert to_base64(ecma.stringify(s)) == node("bytes", to_base64(quoted.encode()))
    assert ecma.stringify([s, {s: s}]) == slow.stringify_any((healed, {healed: healed}))


@CHECK
@given(STRINGS, st.integers(-12, 12), st.integers(-12, 12))
def test_utf16_slice(node: Node, s: str, start: int, end: int) -> None:
    assert ecma.utf16_slice(s, start, end) == from_units(node("slice", units_of(s), start, end))
    assert ecma.utf16_slice(s, start) == from_units(node("slice", units_of(s), start))


@CHECK
@given(st.lists(STRINGS, max_size=6))
def test_utf16_key(node: Node, strings: list[str]) -> None:
    strings = [ecma.join(s) for s in strings]
    assert sorted(strings, key=ecma.utf16_key) == [
        from_units(s) for s in node("sort", *map(units_of, strings))
    ]


class Members(list[tuple[str, Any]]):
    """Members of an object text, keys perhaps repeated."""


INDICES = ["0", "7", "10", "4294967294", "4294967295", "4294967296", "9007199254740991"]
KEYS = st.sampled_from([*INDICES, "01", "-1", "1.0", "__proto__", "", "\u0661"]) | STRINGS
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | STRINGS,
    lambda inner: st.lists(inner, max_size=4) | st.lists(st.tuples(KEYS, inner), max_size=5).map(Members),
    max_leaves=12,
)


def render(value: Any, space: str, escape: bool) -> str:
    if isinstance(value, Members):
        members = (
            json.dumps(k, ensure_ascii=escape) + space + ":" + render(v, space, escape) for k, v in value
        )
        return "{" + ("," + space).join(members) + space + "}"
    if isinstance(value, list):
        return "[" + space + ",".join(render(item, space, escape) for item in value) + "]"
    return json.dumps(value, ensure_ascii=escape)


def build(value: Any) -> Any:
    """The same as a hand-made value: keys in any order, floats and large ints as they are."""
    if isinstance(value, Members):
        return {key: build(item) for key, item in value}
    return [build(item) for item in value] if isinstance(value, list) else value


@CHECK
@given(VALUES, st.sampled_from(["", "", " ", "\n\t"]))
def test_values(node: Node, value: Any, space: str) -> None:
    text = render(value, space, True)
    check_bytes(node, text.encode())
    loose = render(value, space, False)
    assert reprint(loose) == node("units", units_of(loose))
    assert to_base64(ecma.stringify(build(value))) == node("bytes", to_base64(text.encode()))


@CHECK
@given(VALUES, st.data())
def test_damaged_texts(node: Node, value: Any, data: st.DataObject) -> None:
    text = bytearray(render(value, "", data.draw(st.booleans())).encode("utf-8", "replace"))
    at = data.draw(st.integers(0, len(text) - 1))
    text[at : at + data.draw(st.integers(0, 2))] = data.draw(st.binary(max_size=2))
    check_bytes(node, bytes(text))
    check_bytes(node, bytes(text[:at]))


@CHECK
@given(VALUES, VALUES)
@example([1, True], [1, 1])
@example(Members([("a", 1), ("b", -0.0)]), Members([("b", 0), ("a", 1)]))
def test_same_json(node: Node, a: Any, b: Any) -> None:
    one, two = render(a, "", True), render(b, " ", True)
    assert ecma.same_json(ecma.parse(one), ecma.parse(two)) is node("same", one, two)
    assert ecma.same_json(ecma.parse(one), ecma.parse(one))
    assert ecma.same_json(build(a), ecma.parse(one))
