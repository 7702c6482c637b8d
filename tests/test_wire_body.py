from __future__ import annotations

import hashlib

from hypothesis import given
from hypothesis import strategies as st

from dsh_audit.wire.body import Body, Fragment, FragmentRun

PIECES = st.lists(st.binary(max_size=12), max_size=8)


@given(PIECES, PIECES, PIECES, st.data())
def test_size_digest_and_places_agree_with_the_bytes(
    head: list[bytes], middle: list[bytes], tail: list[bytes], data: st.DataObject
) -> None:
    run = FragmentRun()
    bodies = []
    for number, piece in enumerate(middle):
        run.append(piece, number)
        before, after = (tuple(Fragment(part) for part in parts) for parts in (head, tail))
        expected = b"".join([*head, *middle[: number + 1], *tail])
        bodies.append((Body(before, run, len(run), after), expected))
    for body, expected in data.draw(st.permutations(bodies)):
        assert body.to_bytes() == expected
        assert body.size_bytes == len(expected)
        assert body.sha256() == hashlib.sha256(expected).hexdigest()
        for at in range(len(expected)):
            fragment, start = body.find(at)
            assert start <= at < start + len(fragment.data)
            assert expected[start : start + len(fragment.data)] == fragment.data


def test_extended_replaces_the_closing_brace() -> None:
    body = Body.of([Fragment(b'{"a":1', 3), Fragment(b"}")])
    extended = body.extended([Fragment(b',"x":2', 7)])
    assert extended.to_bytes() == b'{"a":1,"x":2}'
    assert extended.find(8)[0].seq == 7
    assert body.to_bytes() == b'{"a":1}'
