from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from importlib import resources
from typing import Any

import click
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from dsh_audit.audit import audit_cache
from dsh_audit.checks.cache import CacheOptions
from dsh_audit.checks.cache_sum import CacheReport
from dsh_audit.checks.lineage import Branches
from dsh_audit.checks.prompt import shared_prefix
from dsh_audit.checks.provider_rules import parse_rules
from dsh_audit.checks.shared_prefix import common_prefix, first_different, pieces_from
from dsh_audit.cli.common import read_schema
from dsh_audit.deployment import Deployment
from dsh_audit.pricing import PriceTable, parse_prices
from dsh_audit.replay.session_replay import Replay
from dsh_audit.report.cache import ledger_rows, rank, render_cache, render_csv, render_ranking
from dsh_audit.text.pointer import pointer_at
from dsh_audit.text.to_json import to_json
from dsh_audit.wire.body import Body, PartRun
from dsh_audit.wire.captured import parse_parts
from dsh_audit.wire.parts import Part
from dsh_audit.wire.prompt import PromptReader
from tests.toy_session import ToySession, tool, usage

NOWHERE = Deployment({}, {"compaction-instruction": "Sum up."})
RULES = (resources.files("dsh_audit") / "data" / "cache_rules.json").read_bytes()


def prices() -> PriceTable:
    data = (resources.files("dsh_audit") / "data" / "prices.json").read_bytes()
    return parse_prices(data, name="built-in", schema=read_schema("prices"))


def cache_of(session: ToySession, rules: str | None = None, **options: Any) -> CacheReport:
    book = parse_rules(RULES, chosen=rules, grain=options.pop("grain", None))
    report = audit_cache(session.history(), NOWHERE, CacheOptions(book, prices(), **options))
    assert not [finding for finding in report.findings if not finding.code.startswith("cache/")]
    return report


def naive_prefix(one: bytes, two: bytes) -> int:
    """Length of the common prefix, byte by byte."""
    pairs = enumerate(zip(one, two, strict=False))
    return next((at for at, (a, b) in pairs if a != b), min(len(one), len(two)))


def busts(report: CacheReport) -> list[tuple[Any, ...]]:
    return [(r.index, r.bust.why.cause, r.bust.why.part, r.bust.why.seq) for r in report.rows if r.bust]


LONG = "word " * 2000


def test_a_clean_session_reads_as_stable() -> None:
    for version in (0, 3, 4):
        session = ToySession(version)
        session.ask("one", counts=usage(900, 0))
        for number in range(2, 6):
            session.call(f"turn {number}", "echo", "ok", counts=usage(40, 900 + 40 * number))
            session.ask(None, counts=usage(40, 940 + 40 * number))
        report = cache_of(session)
        assert report.summary.busts == 0
        assert report.changes == ()
        assert not report.findings
        assert [row.compared.previous for row in report.rows] == [None, *range(8)]
        assert all(row.compared.new and not row.compared.resent for row in report.rows)
        assert click.unstyle(render_cache(report)).startswith("no busts: session toy, 9 requests\n")


def tool_removed(s: ToySession) -> tuple[str, str, str]:
    s.tools = s.tools[:1]
    s.ask("next")
    return "header-change", "tools", "request/header"


def tool_reordered(s: ToySession) -> tuple[str, str, str]:
    s.tools = s.tools[::-1]
    s.ask("next")
    return "header-change", "tools", "request/header"


def schema_edited(s: ToySession) -> tuple[str, str, str]:
    s.tools = [s.tools[0], tool("walk", to={"type": "string"})]
    s.ask("next")
    return "header-change", "tools", "request/header"


def prompt_edited(s: ToySession) -> tuple[str, str, str]:
    s.prompt = "Run no errands."
    s.ask("next")
    return "header-change", "system", "request/header" if s.version == 0 else "system/message"


def prompt_gone(s: ToySession) -> tuple[str, str, str]:
    s.prompt = ""
    s.ask("next")
    return "header-change", "system", "request/header" if s.version == 0 else "system/message"


def model_switched(s: ToySession) -> tuple[str, str, str]:
    s.model = "deepseek-v4-pro"
    s.ask("next")
    return "model-switch", "config", "request/header"


def provider_switched(s: ToySession) -> tuple[str, str, str]:
    s.provider = "other"
    s.ask("next")
    return "provider-switch", "config", "request/header"


def compacted(s: ToySession) -> tuple[str, str, str]:
    s.compact(s.surface[1:3] if s.version >= 3 else s.surface[:2])
    s.ask("next")
    return "compaction", "messages", "user/message"


def pruned(s: ToySession) -> tuple[str, str, str]:
    s.prune(next(seq for seq in s.surface if s.rows[seq + 1]["type"] == "tool/result"))
    s.ask("next")
    return "prune", "messages", "tool/result"


def resumed_with_drift(s: ToySession) -> tuple[str, str, str]:
    s.tools = [tool("fly"), *s.tools]
    s.resume("next")
    return "resume-drift", "tools", "request/header"


def replaced(s: ToySession) -> tuple[str, str, str]:
    seq = next(seq for seq in s.surface if s.rows[seq + 1]["type"] == "user/message")
    s.replace("user/message", s.message("user", "other words", s.source("toy")), [seq])
    s.ask("next")
    return "replacement", "messages", "user/message"


CAUSES: list[Callable[[ToySession], tuple[str, str, str]]] = [
    tool_removed,
    tool_reordered,
    schema_edited,
    prompt_edited,
    prompt_gone,
    model_switched,
    provider_switched,
    compacted,
    pruned,
    resumed_with_drift,
    replaced,
]


@pytest.mark.parametrize("version", [0, 3, 4])
@pytest.mark.parametrize("act", CAUSES, ids=lambda act: act.__name__)
def test_each_cause_is_named_with_part_event_and_request(
    act: Callable[[ToySession], tuple[str, str, str]], version: int
) -> None:
    session = ToySession(version)
    session.ask("one")
    session.call("two", "echo", "long result " * 20)
    session.ask(None)
    cause, part, kind = act(session)
    events = [row for row in session.rows[1:] if row["type"] == kind]
    seq = events[-1]["seq"]
    if kind in ("user/message", "tool/result"):
        seq = next(row["seq"] for row in events if isinstance(row.get("surfaceOp"), dict))
    session.ask("after")
    report = cache_of(session)
    index = max(row.index for row in report.rows) - 1
    assert busts(report) == [(index, cause, part, seq)]
    rows = report.rows
    found = rows[index].compared
    assert (found.prompt_bytes, found.new) == (
        found.prompt_bytes,
        (found.prompt_bytes or 0) - (found.shared or 0) - found.resent,
    )
    Draft202012Validator(read_schema("cache")).validate(to_json(report))
    assert len(report.findings) == 1


def test_an_update_in_the_history_is_no_bust() -> None:
    for version in (3, 4):
        session = ToySession(version, in_history=True)
        session.ask("one")
        session.prompt = "Run errands slowly."
        session.ask("two")
        assert busts(cache_of(session)) == []


def test_pointer_message_and_block_of_the_first_difference() -> None:
    session = ToySession(4)
    session.ask("one")
    result = session.call("two", "echo", "long result " * 20)
    session.ask(None)
    session.prune(result)
    session.ask("next")
    report = cache_of(session)
    row = report.rows[-1]
    bust = to_json(row)["bust"]
    assert bust["pointer"] == "/messages/4/content/0/content/0/text"
    assert (bust["message"], bust["block"]) == (4, 0)
    body = next(r for r in Replay(session.history(), NOWHERE) if r.index == row.index).encoded.body
    assert body is not None
    assert pointer_at(body.to_bytes(), bust["at"]) == bust["pointer"]


def test_of_several_replacements_the_first_in_the_prompt_counts() -> None:
    session = ToySession(4)
    session.ask("one")
    session.ask("two")
    result = session.call("three", "echo", "long result " * 20)
    session.ask(None)
    session.prune(result)
    checkpoint = session.compact(session.surface[1:3])
    session.ask("next")
    assert busts(cache_of(session)) == [(5, "compaction", "messages", checkpoint)]


def test_titles_and_compactions_are_lineages_of_their_own() -> None:
    session = ToySession(0)
    session.ask("one")
    session.title()
    session.ask("two")
    session.compact(session.surface[:2])
    session.ask("three")
    report = cache_of(session)
    lineages = [(row.kind, row.lineage.split(":")[0], row.compared.previous) for row in report.rows]
    assert lineages == [
        ("step", "steps", None),
        ("title", "title", None),
        ("step", "steps", 0),
        ("compaction", "compaction", None),
        ("step", "steps", 2),
    ]
    assert [cause for _, cause, _, _ in busts(report)] == ["compaction"]


def test_the_best_earlier_request_may_be_an_older_one() -> None:
    session = ToySession(0)
    session.ask("one")
    few, many = session.tools[:1], session.tools
    session.tools = few
    session.ask("two")
    session.tools = many
    session.ask("three")
    rows = cache_of(session).rows
    assert [row.compared.best for row in rows] == [None, 0, 0]
    assert (rows[2].compared.shared or 0) > (rows[1].compared.shared or 0)


def test_settings_alone_are_a_bust_only_when_the_provider_says_so() -> None:
    quiet, loud = ToySession(0), ToySession(0)
    for session, counts in ((quiet, usage(50, 4950)), (loud, usage(5000, 0))):
        session.ask(LONG, counts=usage(4000, 0))
        session.time_ms += 60_000
        session.settings = {"maxTokens": 9}
        session.ask("two", counts=counts)
    assert busts(cache_of(quiet)) == []
    (bust,) = busts(cache_of(loud))
    assert bust[:3] == (1, "header-change", "config")
    row = cache_of(loud).rows[1]
    assert row.bust and row.bust.why.pointer == "/max_tokens"


@pytest.mark.parametrize(
    ("pause_s", "cause"), [(60, "provider-miss"), (7200, "idle-expiry"), (1, "too-soon"), (None, "retry")]
)
def test_what_the_provider_missed_is_explained(pause_s: int | None, cause: str) -> None:
    session = ToySession(0)
    session.ask(LONG, counts=usage(4000, 0))
    session.time_ms += 60_000
    session.begin("two")
    if pause_s is None:
        session.fail()
        session.answer("Done.", counts=usage(4100, 0))
    else:
        session.time_ms += pause_s * 1000 - 60_000
        session.answer("Done.", counts=usage(4100, 0))
    report = cache_of(session)
    assert [item[1] for item in busts(report)] == [cause]
    row = report.rows[-1]
    assert row.bust and row.bust.basis == "usage" and row.bust.lost_tokens > 3900


def test_no_data_and_short_prompts_claim_nothing() -> None:
    session = ToySession(0)
    session.ask(LONG, counts=usage(4000))
    session.ask("two", counts=usage(4100))
    report = cache_of(session)
    assert [row.remark for row in report.rows] == ["first", "no-data"]
    assert report.summary.hit_rate is None and report.summary.no_data == 2
    assert "no cache figures" in render_cache(report)
    short = ToySession(0)
    short.ask("one", counts=usage(100, 0))
    short.ask("two", counts=usage(110, 0))
    assert [row.remark for row in cache_of(short).rows] == ["first", "below-minimum"]
    assert busts(cache_of(short)) == []


def test_a_compaction_that_pays_the_whole_context_again() -> None:
    session = ToySession(4)
    session.ask(LONG, counts=usage(4000, 0))
    session.time_ms += 60_000
    session.ask("two", counts=usage(100, 3968))
    session.compact(session.surface[1:3], counts=usage(4100, 0))
    report = cache_of(session)
    assert busts(report)[0][:3] == (2, "side-request", "config")


def test_an_append_only_violation_is_an_error() -> None:
    """The first image of a v0 history turns earlier tool results: here, a body that the encoder itself rewrites."""
    one = parse_parts(b'{"model":"m","messages":[{"role":"user","content":"a"}]}')
    two = parse_parts(b'{"model":"m","messages":[{"role":"user","content":"b"}]}')
    reader = PromptReader()
    assert shared_prefix(reader.read(one), reader.read(two)) == 27


def test_captured_bodies_that_were_rewritten_are_told() -> None:
    session = ToySession(0)
    for text in ("one", "two", "three"):
        session.ask(text)
    sent = [r.encoded.body.to_bytes() for r in Replay(session.history(), NOWHERE) if r.encoded.body]
    loaders = {index: (lambda data=data: data) for index, data in enumerate(sent)}
    assert not cache_of(session, captured=loaders).findings
    changed = sent[2].replace(b"one", b"0ne")
    report = cache_of(session, captured={**loaders, 2: lambda: changed})
    assert [finding.code for finding in report.findings] == ["cache/wire-rewrite"]
    assert report.rows[2].compared.wire_shared == naive_prefix(sent[1], changed)
    assert to_json(report.rows[2])["wire"]["source"] == "captured"


def test_prediction_equals_a_true_prefix_cache() -> None:
    """A cache in tokens of one byte of the rendered prompt, with a grain, over everything sent before."""
    for version in (0, 3, 4):
        for grain in (1, 64):
            session = ToySession(version)
            for number in range(8):
                if number == 4:
                    session.tools = session.tools[::-1]
                session.ask(f"turn {number}", counts=usage(0, 0))
            reader, seen = PromptReader(), [b""]
            answers = [row for row in session.rows if row["type"] == "assistant/message"]
            for answer, rebuilt in zip(answers, Replay(session.history(), NOWHERE), strict=True):
                assert rebuilt.encoded.body is not None
                prompt = reader.read(rebuilt.encoded.body)
                text = prompt.tools + prompt.system + prompt.messages.to_bytes()
                held = max(naive_prefix(text, old) for old in seen)
                held -= held % grain
                answer["data"]["usage"] = usage(len(text) - held, held)
                seen.append(text)
            report = cache_of(session, rules="prefix", grain=grain)
            told = [row.usage.cached if row.usage else None for row in report.rows[1:]]
            assert [row.predicted.reused if row.predicted else None for row in report.rows[1:]] == told


texts = st.text('ab"\\ü\u2028', max_size=6)
steps = st.lists(st.sampled_from(["ask", "call", "tools", "prompt", "model", "compact", "prune", "fail"]), max_size=9)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    version=st.sampled_from([0, 3, 4]), acts=steps, words=st.lists(texts, min_size=9, max_size=9), history=st.booleans()
)
def test_shared_bytes_are_the_naive_common_prefix(
    version: int, acts: list[str], words: list[str], history: bool
) -> None:
    session = ToySession(version, in_history=history and version >= 3)
    session.ask("start" + words[0])
    results: list[int] = []
    for act, word in zip(acts, words, strict=False):
        if act == "call":
            results.append(session.call(word, "echo", word))
            session.ask(None, word or "ok")
            continue
        if act == "tools":
            session.tools = [tool(word or "t"), *session.tools][:3]
        elif act == "prompt":
            session.prompt = word
        elif act == "model":
            session.model = "deepseek-v4-pro" if session.model == "deepseek-flash" else "deepseek-flash"
        elif act == "compact":
            plain = [
                seq for seq in session.surface if session.rows[seq + 1]["type"] in ("user/message", "assistant/message")
            ]
            if len(plain) > 1:
                first, last = (session.surface.index(seq) for seq in plain[:2])
                session.compact(session.surface[first : last + 1], word or "sum")
            results = [seq for seq in results if seq in session.surface]
        elif act == "prune" and results:
            session.prune(results.pop(), word)
        session.begin(word)
        if act == "fail":
            session.fail()
        session.answer(word or "ok")
        session.add("step/end", {"turn": session.turn, "step": session.step})
        session.add("turn/end", {"turn": session.turn, "reason": {"kind": "completed"}})
    rows = audit_cache(session.history(), NOWHERE, CacheOptions(parse_rules(RULES))).rows
    sent = {r.index: r for r in Replay(session.history(), NOWHERE)}
    reader = PromptReader()
    rendered: dict[int, bytes] = {}
    for row in rows:
        body = sent[row.index].encoded.body
        if body is None:
            continue
        prompt = reader.read(body)
        rendered[row.index] = prompt.tools + prompt.system + prompt.messages.to_bytes()
        assert row.compared.prompt_bytes == len(rendered[row.index])
        before = sent[row.compared.previous].encoded.body if row.compared.previous is not None else None
        if before is not None:
            assert row.compared.wire_shared == naive_prefix(before.to_bytes(), body.to_bytes())
        same = [
            (naive_prefix(rendered[r.index], rendered[row.index]), r.index)
            for r in rows
            if r.index < row.index
            and r.index in rendered
            and (r.lineage, r.provider, r.model) == (row.lineage, row.provider, row.model)
        ]
        assert (row.compared.shared or 0) == max(same, default=(0, 0))[0]
        if row.bust and row.bust.why.at is not None and row.bust.why.pointer:
            assert pointer_at(body.to_bytes(), row.bust.why.at) == row.bust.why.pointer


def member(text: str, name: str) -> str:
    """Raw text of a member of a compact JSON object; empty when absent."""
    value = json.loads(text).get(name)
    return "" if value is None else json.dumps(value, separators=(",", ":"), ensure_ascii=False)


names = st.sampled_from(["model", "messages", "tools", "system", "stop"])
values = st.recursive(
    st.one_of(st.integers(0, 99), texts.map(lambda text: text.replace("\u2028", ""))),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(texts, inner, max_size=2)),
    max_leaves=6,
)


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.tuples(names, st.lists(values, max_size=3)), min_size=1, max_size=5, unique_by=lambda pair: pair[0]),
    st.data(),
)
def test_segments_of_a_captured_body_are_its_members(members: list[tuple[str, list[Any]]], data: st.DataObject) -> None:
    text = json.dumps(dict(members), separators=(",", ":"), ensure_ascii=False)
    whole = text.encode()
    body = parse_parts(whole)
    prompt = PromptReader().read(body)
    parts = (prompt.tools, prompt.system, prompt.messages.to_bytes())
    assert parts == tuple(member(text, name).encode() for name in ("tools", "system", "messages"))
    at = data.draw(st.integers(0, len(whole) - 1))
    assert body.pointer_at(at) == pointer_at(whole, at)


def text_part(data: bytes) -> Part:
    return Part(data, "message", "", ())


pieces = st.lists(st.sampled_from([b"a", b"ab", b"", b"abc" * 50, b"b"]), max_size=6)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(pieces, st.integers(0, 6), pieces), min_size=2, max_size=5), pieces)
def test_ropes_compare_like_bytes(parts: list[tuple[list[bytes], int, list[bytes]]], shared: list[bytes]) -> None:
    run = PartRun()
    for piece in shared:
        run.append(text_part(piece))
    bodies = [
        Body(tuple(map(text_part, head)), run, min(count, len(run)), tuple(map(text_part, tail)))
        for head, count, tail in parts
    ]
    for one in bodies:
        for two in bodies:
            naive = naive_prefix(one.to_bytes(), two.to_bytes())
            assert common_prefix(one, two) == naive
            assert first_different(one.to_bytes(), two.to_bytes()) == naive
            rest = [data for data, _ in pieces_from(one, naive)]
            size = sum(map(len, rest))
            assert one.to_bytes().endswith(b"".join(rest))
            assert size >= one.size_bytes - naive > size - len(rest[0]) if rest else one.size_bytes == naive


def test_branches_find_the_longest_prefix() -> None:
    reader, branches = PromptReader(), Branches()
    texts = ["a", "ab", "b", "abc", "ac", "b", "abcd", "az"]
    bodies = [parse_parts(b'{"messages":["' + t.encode() + b'"]}') for t in texts]
    prompts = [reader.read(body) for body in bodies]
    for index, prompt in enumerate(prompts):
        match = branches.best(prompt)
        expected = max((shared_prefix(old, prompt) for old in prompts[:index]), default=None)
        assert (match.shared_bytes if match else None) == expected
        branches.add(index, prompt, match)


def test_ledgers_have_one_row_per_request() -> None:
    session = ToySession(0)
    session.ask("one", counts=usage(900, 0))
    session.tools = session.tools[::-1]
    session.ask("two", counts=usage(1000, 0))
    report = cache_of(session)
    parsed = list(csv.DictReader(io.StringIO(render_csv(report))))
    assert [row["bust_cause"] for row in parsed] == ["", "header-change"]
    assert parsed[1]["declared"] == "false" and float(parsed[1]["cost"]) > 0
    assert json.loads(json.dumps(ledger_rows(report)))[1]["bust_part"] == "tools"


def test_sessions_are_ranked_by_wasted_cost() -> None:
    reports = []
    for ident, times in (("little", 1), ("much", 3), ("none", 0)):
        session = ToySession(0, ident=ident)
        session.ask(LONG, counts=usage(4000, 0))
        for number in range(times):
            session.tools = session.tools[::-1]
            session.ask(f"turn {number}", counts=usage(4000, 0))
        reports.append(cache_of(session))
    assert [report.log.session_id for report in rank(reports)] == ["much", "little", "none"]
    assert render_ranking(reports, []).splitlines()[4].startswith("much")
