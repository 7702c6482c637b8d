from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsh_audit.text.pointer import MalformedError, join_pointer, locate, path_at, pointer_at, scan_members

TEXT = b'{"a":[1, {"b/c~":"x\\"y"}],"":{"k":[]} ,"n":null}'


@pytest.mark.parametrize(
    ("needle", "shift", "pointer"),
    [
        (b"{", 0, ""),
        (b'"a"', 0, "/a"),
        (b'"a"', 3, "/a"),
        (b"[1", 0, "/a"),
        (b"1", 0, "/a/0"),
        (b", {", 0, "/a"),
        (b", {", 1, "/a"),
        (b'{"b', 0, "/a/1"),
        (b"b/c", 0, "/a/1/b~1c~0"),
        (b'y"', 0, "/a/1/b~1c~0"),
        (b"}]", 0, "/a/1"),
        (b"}]", 1, "/a"),
        (b'"":', 0, "/"),
        (b'"k"', 0, "//k"),
        (b"[]", 0, "//k"),
        (b"[]", 1, "//k"),
        (b"} ,", 1, ""),
        (b"null", 3, "/n"),
        (b"null", 4, ""),
        (b"null", 9, ""),
    ],
)
def test_pointer_at(needle: bytes, shift: int, pointer: str) -> None:
    assert pointer_at(TEXT, TEXT.index(needle) + shift) == pointer


@pytest.mark.parametrize(
    ("data", "at", "pointer"),
    [
        (b"", 0, ""),
        (b"]]}", 1, ""),
        (b'{"a":["x', 8, "/a"),
        (b'{"a":["x\\', 9, "/a"),
        (b'{"a\\ud800":1}', 12, ""),
        (b'{"\\ud800":1}', 10, "/\\ud800"),
        (b'{"\xff":1}', 5, "/\ufffd"),
        (b"1,2,3", 4, ""),
        (b'"x', 1, ""),
    ],
)
def test_cut_and_malformed(data: bytes, at: int, pointer: str) -> None:
    assert pointer_at(data, at) == pointer


def test_depth_and_size_are_no_problem() -> None:
    deep = b'{"a":' * 50_000 + b"7"
    assert pointer_at(deep, len(deep) - 1) == "/a" * 50_000
    assert pointer_at(b'["' + b'\\"' * 1_000_000, 1_000_000) == "/0"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


def paths(value: Any, at: tuple[str | int, ...] = ()) -> Any:
    yield at, value
    items = enumerate(value) if isinstance(value, list) else ()
    for key, child in value.items() if isinstance(value, dict) else items:
        yield from paths(child, (*at, key))


@settings(deadline=None)
@given(JSON, st.sampled_from([None, 1]))
def test_locate_and_path_at_agree(value: Any, indent: int | None) -> None:
    data = json.dumps(value, ensure_ascii=False, indent=indent).encode()
    for path, child in paths(value):
        start = locate(data, path)
        assert start is not None
        assert path_at(data, start) == list(path)
        assert json.JSONDecoder().raw_decode(data[start:].decode())[0] == child
    assert locate(data, ["no", "such", "path"]) is None


@settings(deadline=None, max_examples=40)
@given(st.dictionaries(st.text(), JSON), st.sampled_from([None, 1]))
def test_scan_members(value: dict[str, Any], indent: int | None) -> None:
    data = json.dumps(value, indent=indent).encode()
    members = list(scan_members(data, 1))
    assert {m.name: json.loads(data[m.value_start : m.end]) for m in members} == value
    for member in members:
        assert json.loads(b"{" + data[member.start : member.end] + b"}") == {member.name: value[member.name]}


@pytest.mark.parametrize(
    "data",
    ["", "1", '"a"}', '"a":1', '"a":1}x', '"a":[1}}}', '"a":[1', '"a":1,}', '"a":1]', '"a" "b":1}', ":1}", ",}"],
)
def test_scan_members_refuses(data: str) -> None:
    with pytest.raises(MalformedError):
        list(scan_members(b"{" + data.encode(), 1))


@pytest.mark.parametrize("depth", [1, 12, 13, 14, 50_000])
def test_scan_members_of_any_depth(depth: int) -> None:
    data = b'{"a":' + b"[" * depth + b'"]}"' + b"]" * depth + b',"b":1}'
    assert [(m.name, data[m.end :]) for m in scan_members(data, 1)] == [("a", b',"b":1}'), ("b", b"}")]


def test_join_pointer() -> None:
    assert join_pointer(["a/b", 0, "~", "\ud800"]) == "/a~1b/0/~0/\\ud800"
