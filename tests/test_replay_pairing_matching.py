from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsh_audit.replay.pairing.matching import BodyKey, KeyFinder, opening_text, value_key
from dsh_audit.wire.captured import parse_parts


def key(data: bytes) -> BodyKey:
    return BodyKey.of(parse_parts(data))


A, B, C = b'{"a":1}', b'{"a":1,"x":2}', b'{"a":2}'


@pytest.mark.parametrize(
    ("captured", "found"),
    [
        (A, A),
        (B, B),  # the longest one
        (b'{"a":1,"y":2}', A),
        (b'{"a":1,"x":2,"y":3}', B),
        (b'{"a":1} ', None),
        (b'{"a":1]', None),
        (b'{"a":1', None),
        (b'{"a":3}', None),
        (b"", None),
        (C + C, None),
    ],
)
def test_key_finder(captured: bytes, found: bytes | None) -> None:
    assert KeyFinder([key(A), key(B), key(C)]).find(captured) == (None if found is None else key(found))


@given(st.lists(st.binary(min_size=1, max_size=5), max_size=6), st.binary(min_size=1, max_size=8))
def test_key_finder_equals_the_plain_definition(parts: list[bytes], tail: bytes) -> None:
    bodies = [b"{" + part + b"}" for part in parts]
    captured = b"{" + (parts[0] if parts else b"") + b"," + tail
    explained = [body for body in bodies if captured == body or captured.startswith(body[:-1] + b",")]
    longest = max(explained, key=len, default=None)
    expected = None if longest is None else key(longest)
    assert KeyFinder(map(key, bodies)).find(captured) == expected


def test_value_key() -> None:
    assert value_key(b'{"a":1,"b":[{"x":1,"y":2}]}') == value_key(b' {"b":[{"y":2,"x":1.0}],"a":1}')
    assert value_key(A) == value_key(b'{"a":1,"dsh_plugin_packages":{},"dsh_session_log":{}}')
    assert value_key(A) != value_key(b'{"a":1,"other":{}}')
    for same in (b'{"a":"\\ud800"}', b'{"a":' * 2000 + b"1" + b"}" * 2000):
        assert value_key(same) == value_key(b" " + same) is not None
    for bad in (b"", b"[]", b"{", b"\xff"):
        assert value_key(bad) is None


def test_opening_text() -> None:
    plain = b'{"messages":[{"role":"system","content":"s"},{"role":"user","content":"hi"}]}'
    parts = b'{"input":[{"role":"user","content":[{"type":"text","text":"hi","cache_control":{}}]}]}'
    assert opening_text(plain) == opening_text(parts) is not None
    for bad in (b"", b"[]", b"7", b"null", b'{"messages":7}', b'{"messages":[7]}', b'{"messages":[]}'):
        assert opening_text(bad) is None
