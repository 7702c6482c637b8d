"""Tables for ``ecma``; test_ecma_node.py compares the same functions with Node."""

from __future__ import annotations

import re
import tracemalloc
from datetime import datetime
from math import inf, nan
from typing import Any

import pytest

from dsh_audit.text import ecma
from dsh_audit.text import ecma_slow as slow

HIGH, LOW, PAIR = "\ud83d", "\ude00", "\U0001f600"
SPLIT = HIGH + LOW

ROUND_TRIPS = [
    # text, what JSON.stringify(JSON.parse(text)) prints
    (b"null", b"null"),
    (b" \t\r\n[ true , false ]\n", b"[true,false]"),
    (b'{"a":1,"b":2,"a":3}', b'{"a":3,"b":2}'),
    (b'{"b":1,"2":1,"1":1}', b'{"1":1,"2":1,"b":1}'),
    (b'{"b":1,"2" :1,"1":1,"2":5}', b'{"1":1,"2":5,"b":1}'),
    (b'{"b":1,"\\u0031":1,"1\\u0030":2}', b'{"1":1,"10":2,"b":1}'),
    (b'{"b":1,"01":1,"-1":1,"1.0":1,"4294967295":1}', b'{"b":1,"01":1,"-1":1,"1.0":1,"4294967295":1}'),
    (b'{"b":1,"4294967294":1,"0":1}', b'{"0":1,"4294967294":1,"b":1}'),
    (b'{"b":{"x":[{"z":1,"7":2}]}}', b'{"b":{"x":[{"7":2,"z":1}]}}'),
    ('{"b":1,"\u00b2":1,"\u0661":1}'.encode(), '{"b":1,"\u00b2":1,"\u0661":1}'.encode()),
    (b'{"a":1,"__proto__":{"x":2},"constructor":3}', b'{"a":1,"__proto__":{"x":2},"constructor":3}'),
    (b'{"":1}', b'{"":1}'),
    (b"[1.0,1E6,1e20,1e21,1e-6,1e-7]", b"[1,1000000,100000000000000000000,1e+21,0.000001,1e-7]"),
    (b"[-0,-0.0,-0e5,-1e-400,0]", b"[0,0,0,0,0]"),
    (
        b"[9007199254740993,9007199254740992,-9007199254740993]",
        b"[9007199254740992,9007199254740992,-9007199254740992]",
    ),
    (b"[18446744073709551616,1e16]", b"[18446744073709552000,10000000000000000]"),
    (b"[1e400,-1e400]", b"[null,null]"),
    (b"[0.7,-0.5,1.50,0.99999999999999999999]", b"[0.7,-0.5,1.5,1]"),
    (b"[999999999999999.99999999999999]", b"[1000000000000000]"),
    (b"[5e-324,1.7976931348623157e308,123e-20]", b"[5e-324,1.7976931348623157e+308,1.23e-18]"),
    (b'"\\/\\b\\f\\n\\r\\t\\"\\\\\\u001F\\u0000"', b'"/\\b\\f\\n\\r\\t\\"\\\\\\u001f\\u0000"'),
    ('"\x7f\x85\u2028\u2029\ufeff<>"'.encode(), '"\x7f\x85\u2028\u2029\ufeff<>"'.encode()),
    (b'"\\uD83D\\uDE00"', PAIR.encode().join((b'"', b'"'))),
    (b'["\\uD800","\\uDFFFx","\\ude00\\ud83d"]', b'["\\ud800","\\udfffx","\\ude00\\ud83d"]'),
    (b'["\\ud83d\\ud83d\\ude00"]', b'["\\ud83d' + PAIR.encode() + b'"]'),
    (b'{"\\ud800":1}', b'{"\\ud800":1}'),
]

REFUSED: list[tuple[bytes | str, int]] = [
    (b"", 0),
    (b"  ", 2),
    (b"\xef\xbb\xbf1", 0),
    ("\ufeff1", 0),
    (b"NaN", 0),
    (b"[Infinity]", 1),
    (b"[-Infinity]", 1),
    (b"-", 0),
    (b"+1", 0),
    (b"01", 1),
    (b"[-01]", 3),
    (b"1.", 1),
    (b".5", 0),
    (b"1e", 1),
    (b"[1,]", 3),
    (b"[,1]", 1),
    (b"[1 2]", 3),
    (b"[1}", 2),
    (b'{"a":1,}', 7),
    (b'{"a" 1}', 5),
    (b"{a:1}", 1),
    (b"{1:1}", 1),
    (b'{"a":1]', 6),
    (b"1 2", 2),
    (b"1\x0b", 1),
    (b"1\x00", 1),
    ("1\u00a0", 1),
    ("[1,\u2028 2]", 3),
    (b'"a\nb"', 2),
    (b'"\x00"', 1),
    (b'"\\x41"', 1),
    (b'"\\u12G4"', 1),
    (b'"abc', 4),
    (b'"abc\\', 5),
    (b"'a'", 0),
    (b"tru", 0),
    (b"nulll", 4),
    (b"1/**/", 1),
    (b'["\xed\xa0\x80"]', 2),
    (b'"\xc0\x80"', 1),
    (b'"ok\xff"', 3),
    ('["\u00e9", x]'.encode(), 7),
    ('["\u00e9", x]', 6),
    (b"[" * 5000, 5000),
]


def exact(value: Any) -> str:
    """A text that tells 1 from 1.0, 0.0 from -0.0 and one key order from another."""
    return repr(value)


@pytest.mark.parametrize(("text", "printed"), ROUND_TRIPS)
def test_parse_and_stringify(text: bytes, printed: bytes) -> None:
    assert ecma.stringify(ecma.parse(text)) == printed
    assert ecma.stringify(ecma.parse(text.decode())) == printed
    assert ecma.stringify(ecma.parse(printed)) == printed
    assert slow.stringify_any(slow.Reader(text.decode()).read()) == printed


@pytest.mark.parametrize(("text", "at"), REFUSED)
def test_refused_text(text: bytes | str, at: int) -> None:
    with pytest.raises(ecma.EcmaSyntaxError) as caught:
        ecma.parse(text)
    assert isinstance(caught.value, ValueError)
    assert caught.value.at == at
    assert len(str(caught.value)) < 60


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1.0", 1),
        ("-0", -0.0),
        ("[-0]", [-0.0]),
        ("[0.0,-0.0]", [0, -0.0]),
        ("[9007199254740992,9007199254740993,9007199254740994]", [2**53, 2**53, float(2**53 + 2)]),
        ("[-9007199254740994]", [-float(2**53 + 2)]),
        ("[1e3,1.5e300]", [1000, 1.5e300]),
        ("1e400", inf),
        ("9" * 5000, inf),
        ("[" + "9" * 400 + "]", [inf]),
        ("[0." + "3" * 5000 + "]", [1 / 3]),
        ("1" + "0" * 5000 + "e-5000", 1),
        ('{"2":0,"1":0,"a":0}', {"1": 0, "2": 0, "a": 0}),
    ],
)
def test_parsed_value(text: str, value: Any) -> None:
    assert exact(ecma.parse(text)) == exact(value)
    assert exact(ecma.parse(text.encode())) == exact(value)
    assert exact(slow.Reader(text).read()) == exact(value)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (f'"{HIGH}"', HIGH),
        (f'"{SPLIT}"', PAIR),
        (f'"\\ud83d{LOW}"', PAIR),
        (f'"{HIGH}\\ude00"', PAIR),
        (f'{{"{SPLIT}":"{LOW}{HIGH}"}}', {PAIR: LOW + HIGH}),
    ],
)
def test_parse_raw_surrogates_of_a_str(text: str, value: Any) -> None:
    assert ecma.parse(text) == value


@pytest.mark.parametrize(
    ("value", "printed"),
    [
        ({"b": 1, "10": 2, "9": {"x": 0, "1": 0}}, b'{"9":{"1":0,"x":0},"10":2,"b":1}'),
        ({"": 0, "a": [""]}, b'{"":0,"a":[""]}'),
        ([True, False, None, 1, 0], b"[true,false,null,1,0]"),
        (
            [2**53 + 1, 2**64, -(2**70), 10**400],
            b"[9007199254740992,18446744073709552000,-1.1805916207174113e+21,null]",
        ),
        ([inf, -inf, nan, -0.0, 2.0, 1e16, 1e-5], b"[null,null,null,0,2,10000000000000000,0.00001]"),
        (
            [0.1, 123456789.125, 1e21, 1.5e-7, 1e15 + 0.5],
            b"[0.1,123456789.125,1e+21,1.5e-7,1000000000000000.5]",
        ),
        ((1, (2, [])), b"[1,[2,[]]]"),
        ({"a": (1.0,)}, b'{"a":[1]}'),
        (SPLIT, f'"{PAIR}"'.encode()),
        ([HIGH + "x" + LOW, SPLIT], f'["\\ud83dx\\ude00","{PAIR}"]'.encode()),
        ({SPLIT: 1, PAIR: 2}, f'{{"{PAIR}":2}}'.encode()),
        ([{}, [], {"a": {}, "b": []}, 1.0], b'[{},[],{"a":{},"b":[]},1]'),
        (["[", "{", 1.0], b'["[","{",1]'),
        (3, b"3"),
        (True, b"true"),
        (None, b"null"),
        (nan, b"null"),
        ("text, e.g. 1.0: [1e5", b'"text, e.g. 1.0: [1e5"'),
        (["text, e.g. 1.0,[1e5]", {"1,1.0": "-0"}], b'["text, e.g. 1.0,[1e5]",{"1,1.0":"-0"}]'),
    ],
)
def test_stringify(value: Any, printed: bytes) -> None:
    assert ecma.stringify(value) == printed
    assert slow.stringify_any(value) == printed
    assert ecma.stringify_text(value) == printed.decode()


def looped() -> list[Any]:
    value: list[Any] = []
    value.append({"a": value})
    return value


@pytest.mark.parametrize(
    "value", [{1: 2}, {"a": {1.5: 2}}, [{"a", "b"}], b"x", datetime(2000, 1, 1), looped(), [object(), 1.0]]
)
def test_stringify_refuses(value: Any) -> None:
    with pytest.raises(TypeError):
        ecma.stringify(value)


def test_stringify_prints_a_shared_value_twice() -> None:
    shared = {"a": [1.0]}
    assert ecma.stringify([shared, shared]) == b'[{"a":[1]},{"a":[1]}]'


@pytest.mark.parametrize("depth", [100, 253, 254, 255, 900, 1023, 1024, 1025, 20_000])
@pytest.mark.parametrize(("opener", "leaf", "closer"), [(b"[", b"", b"]"), (b'{"a":', b"1.5", b"}")])
def test_depth(depth: int, opener: bytes, leaf: bytes, closer: bytes) -> None:
    text = opener * depth + leaf + closer * depth
    value = ecma.parse(text)
    assert ecma.stringify(value) == text
    assert ecma.same_json(value, ecma.parse(text))


def test_a_million_levels() -> None:
    text = b"[" * 1_000_000 + b"]" * 1_000_000
    assert ecma.stringify(ecma.parse(text)) == text


def test_kept_results_are_small() -> None:
    tracemalloc.start()
    try:
        kept = [ecma.stringify("a") for _ in range(1000)]
        assert tracemalloc.get_traced_memory()[0] < 150 * len(kept)
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("x", "text"),
    [
        (0, "0"),
        (-0.0, "0"),
        (1.0, "1"),
        (-1.5, "-1.5"),
        (100, "100"),
        (1e20, "100000000000000000000"),
        (123456789012345680000.0, "123456789012345680000"),
        (1e21, "1e+21"),
        (-1.25e21, "-1.25e+21"),
        (0.1, "0.1"),
        (0.000001, "0.000001"),
        (0.00000123, "0.00000123"),
        (1e-7, "1e-7"),
        (1.23e-7, "1.23e-7"),
        (5e-324, "5e-324"),
        (1.7976931348623157e308, "1.7976931348623157e+308"),
        (2**53 + 1, "9007199254740992"),
        (10**400, "Infinity"),
        (-(10**400), "-Infinity"),
        (inf, "Infinity"),
        (nan, "NaN"),
        (True, "1"),
    ],
)
def test_number_to_text(x: float, text: str) -> None:
    assert ecma.number_to_text(x) == text


@pytest.mark.parametrize(
    ("x", "expected"), [(-0.0, True), (0.0, False), (0, False), (-1.0, False), ("", False)]
)
def test_is_negative_zero(x: object, expected: bool) -> None:
    assert ecma.is_negative_zero(x) is expected


@pytest.mark.parametrize(
    ("parts", "joined"),
    [
        ([], ""),
        (["a", "b"], "ab"),
        (["a" + HIGH, LOW + "b"], f"a{PAIR}b"),
        ([HIGH, "", LOW], PAIR),
        ([LOW, HIGH], LOW + HIGH),
    ],
)
def test_join(parts: list[str], joined: str) -> None:
    assert ecma.join(iter(parts)) == joined


@pytest.mark.parametrize(
    ("s", "units"), [("", 0), ("abc", 3), ("\u00e9", 1), (PAIR, 2), (SPLIT, 2), (HIGH + "a", 2)]
)
def test_length(s: str, units: int) -> None:
    assert ecma.length(s) == units


@pytest.mark.parametrize(
    ("s", "start", "end", "expected"),
    [
        ("abcdef", 1, 3, "bc"),
        ("abcdef", -2, None, "ef"),
        ("abcdef", 4, 2, ""),
        ("abcdef", 2, 99, "cdef"),
        (f"a{PAIR}b", 1, 3, PAIR),
        (f"a{PAIR}b", 1, 2, HIGH),
        (f"a{PAIR}b", 2, None, LOW + "b"),
        (f"a{PAIR}b", 0, -1, f"a{PAIR}"),
        (f"a{PAIR}b", -9, 1, "a"),
        (f"a{PAIR}b", 0, 0, ""),
        ("\u00e9\u4e2d", 1, 2, "\u4e2d"),
    ],
)
def test_utf16_slice(s: str, start: int, end: int | None, expected: str) -> None:
    assert ecma.utf16_slice(s, start, end) == expected


def test_utf16_key_sorts_by_code_unit() -> None:
    assert sorted(["\uffff", PAIR, "b", "a", "", HIGH], key=ecma.utf16_key) == [
        "",
        "a",
        "b",
        HIGH,
        PAIR,
        "\uffff",
    ]


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        ({"a": 1, "b": [1, {}]}, {"b": [1.0, {}], "a": 1}, True),
        (0, -0.0, True),
        (2**53 + 1, 2**53, True),
        (10**400, inf, True),
        (1, True, False),
        (0, False, False),
        (True, True, True),
        (None, None, True),
        (None, False, False),
        (None, {}, False),
        ("1", 1, False),
        (1, "1", False),
        ([], {}, False),
        ({}, [], False),
        (1, [], False),
        ([1, 2], [2, 1], False),
        ([1], [1, 2], False),
        ((1,), [1], True),
        ({"a": 1}, {"a": 2}, False),
        ({"a": 1}, {"b": 1}, False),
        ({"a": 1}, {"a": 1, "b": 1}, False),
        ({SPLIT: SPLIT}, {PAIR: PAIR}, True),
        ("a", "b", False),
    ],
)
def test_same_json(a: Any, b: Any, expected: bool) -> None:
    assert ecma.same_json(a, b) is expected
    assert ecma.same_json(b, a) is expected


def test_error_names_no_input() -> None:
    with pytest.raises(ecma.EcmaSyntaxError, match=re.compile("^expected ',' or '}' at 9$")):
        ecma.parse(b'{"k":"v" sk-secret-value}')
