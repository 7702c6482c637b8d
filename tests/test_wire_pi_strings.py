"""String rules of pi-ai."""

from __future__ import annotations

import pytest

from dsh_audit.wire.pi.azure import deployment_name
from dsh_audit.wire.pi.completions_messages import chat_call_id
from dsh_audit.wire.pi.strings import clean, hash36, is_blank, safe_id


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", True),
        ("\t\n\v\f\r \u00a0\ufeff\u1680\u2003\u2028\u2029\u202f\u205f\u3000", True),
        ("\u0085", False),
        ("\u001c", False),
        ("\u200b", False),
        (" x ", False),
        ("\ud800", False),
    ],
)
def test_is_blank_follows_javascript(text: str, expected: bool) -> None:
    assert is_blank(text) is expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [("a\ud83db", "ab"), ("\ude00", ""), ("a\U0001f600b", "a\U0001f600b"), ("plain", "plain")],
)
def test_clean_drops_unpaired_surrogates(text: str, expected: str) -> None:
    assert clean(text) == expected


def test_safe_id_counts_code_units() -> None:
    assert safe_id("a b\u00e9\U0001f600-_Z9") == "a_b___-_Z9"


@pytest.mark.parametrize(
    ("text", "expected"),
    [("", "k4n83c7h0j2b"), ("fc_1", "lxmq3j1alksqn"), ("\U0001f600\ud83d", "e1m7ue1nlz34s")],
)
def test_hash36(text: str, expected: str) -> None:
    assert hash36(text) == expected


@pytest.mark.parametrize(
    ("call_id", "provider", "expected"),
    [
        ("call_1", "acme", "call_1"),
        ("x" * 50, "acme", "x" * 50),
        ("x" * 50, "openai", "x" * 40),
        ("a b|c/d", "acme", "a_b_c_d"),
        ("|", "acme", ""),
        ("a|", "acme", "a"),
        ("x" * 50 + "|y", "acme", "x" * 31 + "_" + hash36("x" * 50 + "|y")[:8]),
    ],
)
def test_chat_call_id(call_id: str, provider: str, expected: str) -> None:
    assert chat_call_id(call_id, provider) == expected


@pytest.mark.parametrize(
    ("name_map", "expected"),
    [
        ("", "gpt-x"),
        ("gpt-x=prod", "prod"),
        (" gpt-x = prod , other=o", "prod"),
        ("gpt-x=a=b", "a"),
        ("gpt-x=", "gpt-x"),
        ("gpt-x=a,gpt-x=b", "b"),
    ],
)
def test_deployment_name(name_map: str, expected: str) -> None:
    assert deployment_name("gpt-x", name_map) == expected
