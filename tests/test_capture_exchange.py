from __future__ import annotations

import pytest

from dsh_audit.capture.exchange import (
    REDACTED,
    Fidelity,
    classify,
    redact_http_headers,
    split_url,
    weakest,
)

SECRET = "sk-very-secret"


@pytest.mark.parametrize(
    "name",
    [
        "authorization",
        "Authorization",
        "x-api-key",
        "X-Goog-Api-Key",
        "api_key",
        "cookie",
        "Set-Cookie",
        "proxy-authorization",
        "x-dsh-auth-token",
        "x-amz-security-token",
        "x-client-secret",
    ],
)
def test_secret_headers_are_removed(name: str) -> None:
    assert redact_http_headers([(name, SECRET)]) == ((name, REDACTED),)


@pytest.mark.parametrize(
    "name",
    [
        "x-deepseek-harness-session-id",
        "x-deepseek-harness-user-id",
        "x-deepseek-harness-compact",
        ":authority",
        "anthropic-beta",
        "content-length",
        "content-encoding",
        "user-agent",
        "session_id",
    ],
)
def test_other_headers_are_kept(name: str) -> None:
    assert redact_http_headers([(name, "value")]) == ((name, "value"),)


@pytest.mark.parametrize(
    ("url", "host", "path"),
    [
        ("/v1/messages", None, "/v1/messages"),
        ("/v1/messages?beta=true", None, "/v1/messages?beta=true"),
        ("https://h:1/v1?key=sk&api-version=2#frag", "h:1", "/v1?key=<redacted>&api-version=2"),
        ("https://user:pw@h/v1?access_token=sk&x", "h", "/v1?access_token=<redacted>&x"),
        ("//h/v1", "h", "/v1"),
        ("http://[bad/v1?token=sk", None, "http://[bad/v1?token=<redacted>"),
    ],
)
def test_split_url(url: str, host: str | None, path: str) -> None:
    assert split_url(url) == (host, path)


@pytest.mark.parametrize(
    ("method", "path", "agent", "kind"),
    [
        ("POST", "/v1/chat/completions", None, "chat-completions"),
        ("POST", "/v1/messages?beta=true", None, "messages"),
        ("POST", "/anthropic/v1/messages/", None, "messages"),
        ("POST", "/v1/messages/count_tokens", None, "other"),
        ("POST", "/v1/responses", None, "responses"),
        ("POST", "/v1/messages", "deepseek-harness/0.0.1", "search"),
        ("POST", "/v1/messages", "deepseek-harness/0.0.10 (+x)", "messages"),
        ("POST", "/v1/files", None, "upload"),
        ("DELETE", "/v1/files/file-1", None, "upload"),
        ("GET", "/v1/models", None, "other"),
        ("GET", "/v1/messages", None, "other"),
    ],
)
def test_classify(method: str, path: str, agent: str | None, kind: str) -> None:
    assert classify(method, path, agent) == kind


def test_weakest() -> None:
    assert weakest([]) is Fidelity.RAW
    assert weakest([Fidelity.TEXT, Fidelity.JSON, Fidelity.RAW]) is Fidelity.JSON
