"""The HTML report: its structure, what hostile text does (nothing), and what is written where."""

from __future__ import annotations

import base64
import hashlib
import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

import dsh_audit
from dsh_audit.report.html_page import MAX_TEXT, shown
from tests.cli import run
from tests.html_sessions import HOSTILE, busy_session, hostile_session, long_session
from tests.toy_session import ToySession, usage

GOLDEN = Path(__file__).parent.parent / "golden"
_TAGS = """
html head meta title style body main header nav section footer h1 h2 p dl dt dd div ul li a small span strong code br
pre ins del details summary table thead tbody tr th td label input svg path pattern text desc script
"""
_ATTRIBUTES = """
lang charset http-equiv content name id class href scope type hidden tabindex role aria-label aria-labelledby
aria-hidden aria-live data-v data-left data-width viewbox d x y width height text-anchor patternunits patterntransform
"""
TAGS, ATTRIBUTES = frozenset(_TAGS.split()), frozenset(_ATTRIBUTES.split())
VOID = frozenset(("meta", "br", "input"))


class Page(HTMLParser):
    """Every element and attribute of a page, and the text of some elements."""

    def __init__(self, source: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, list[str]] = {}
        self.comments: list[str] = []
        self._open: list[str] = []
        self.feed(source)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self._open.append(tag)
            self.texts.setdefault(tag, []).append("")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        for tag in set(self._open):
            self.texts[tag][-1] += data

    def handle_comment(self, data: str) -> None:
        self.comments.append(data)

    def ids(self) -> list[str]:
        """All ids."""
        return [str(attributes["id"]) for _, attributes in self.elements if "id" in attributes]


def written(folder: Path, session: ToySession, *options: str, status: int = 0) -> str:
    """The page of a session, by the command."""
    name = "session.jsonl" if session.version == 0 else f"session.v{session.version}.jsonl"
    (folder / "log").mkdir(exist_ok=True)
    (folder / "log" / name).write_bytes(session.plain())
    done = run("report", folder / "log", "-o", folder / "report.html", *options)
    assert (done.returncode, done.stdout, done.stderr) == (status, b"", b"")
    return (folder / "report.html").read_bytes().decode("utf-8")


@pytest.fixture(scope="module")
def busy(tmp_path_factory: pytest.TempPathFactory) -> str:
    return written(tmp_path_factory.mktemp("busy"), busy_session())


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> str:
    return written(tmp_path_factory.mktemp("hostile"), hostile_session(), status=1)


def test_structure(busy: str) -> None:
    page = Page(busy)
    ids = page.ids()
    assert len(ids) == len(set(ids))
    sections = [attributes["id"] for tag, attributes in page.elements if tag == "section"]
    assert sections == ["timeline", "causes", "headers", "requests", "findings", "assumed"]
    links = [str(attributes["href"]) for tag, attributes in page.elements if tag == "a"]
    assert links and all(link[0] == "#" and link[1:] in ids for link in links)
    assert [name for name in ids if name[0] == "r" and name[1:].isdecimal()] == [f"r{index}" for index in range(24)]
    rows = [text for text in page.texts["tr"] if text.startswith(("13", "18", "20"))]
    assert "title:" in rows[0] and "model-switch config" in rows[1] and "(expected)" in rows[1]
    assert "compaction:" in rows[2] and "no-body" in rows[2]
    assert len(page.texts["details"]) == 3 and "+Now: 2026-11-30T10:05:00Z" in page.texts["details"][0]


def test_chart(busy: str) -> None:
    """Bars, busts of both kinds, side requests and the line, each one path; all inside the view box."""
    chart = busy[busy.index('<svg id="chart"') : busy.index("</svg>")]
    shapes = dict(re.findall(r'<path class="([a-z ]+)" d="([^"]+)"', chart))
    counts = {name: shape.count("M") for name, shape in shapes.items()}
    assert counts["bust"] == 2 and counts["bust expected"] == 4
    assert counts["side"] == 2 and counts["unknown"] == 1
    assert counts["new"] == 23 and counts["resent"] == 5
    assert counts["cached"] == 2 and counts["cached dot"] == 1
    assert all(-1 <= float(number) <= 1000 for number in re.findall(r"[MLHV ](-?[\d.]+)", "".join(shapes.values())))


def test_only_known_elements_and_attributes(hostile: str, busy: str) -> None:
    for source in (hostile, busy):
        page = Page(source)
        assert {tag for tag, _ in page.elements} <= TAGS
        assert {name for _, attributes in page.elements for name in attributes} <= ATTRIBUTES
        assert page.comments == []
        assert [len(page.texts[name]) for name in ("style", "script", "main", "h1")] == [1] * 4
        assert all(str(attributes.get("href", "#")).startswith("#") for _, attributes in page.elements)
        assert not re.search(r"https?://", re.sub(r"https://api\.deepseek\.com", "", source))


def test_hostile_text_is_shown_as_text(hostile: str) -> None:
    page = Page(hostile)
    shown = "".join(page.texts["main"])
    for text in HOSTILE[:6]:
        assert text in page.texts["h1"][0] and text in shown
    assert "<img" not in hostile and "<script>alert" not in hostile and "onload=alert(2)>'" not in hostile
    for escape in ("\\u202e", "\\u0000", "\\u001b[31m", "\\ud83d", "\\udc00"):
        assert escape in shown
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", hostile)


def test_long_text_is_cut() -> None:
    assert shown("x" * MAX_TEXT) == "x" * MAX_TEXT
    assert shown("x" * (MAX_TEXT + 1500)).endswith("x… (1,500 more characters)")
    assert shown("<" * 9, 2) == "<<… (7 more characters)"


def test_the_policy_allows_the_style_and_the_script_inside_and_nothing_else(hostile: str) -> None:
    page = Page(hostile)
    policy = next(a["content"] for _, a in page.elements if a.get("http-equiv") == "Content-Security-Policy")
    digests = [
        base64.b64encode(hashlib.sha256(page.texts[tag][0].encode()).digest()).decode() for tag in ("style", "script")
    ]
    assert policy == (
        f"default-src 'none'; style-src 'sha256-{digests[0]}'; script-src 'sha256-{digests[1]}'; "
        "base-uri 'none'; form-action 'none'"
    )
    assert "@import" not in page.texts["style"][0] and not re.search(r"url\((?!\"#)", page.texts["style"][0])
    assert not re.search(r"innerHTML|outerHTML|insertAdjacent|document\.write|eval|fetch", page.texts["script"][0])


def test_the_same_bytes_again(tmp_path: Path) -> None:
    """Whatever the hash seed, the locale, the zone and the folder; the page names a log as it was named."""
    source = Path(dsh_audit.__file__).parents[1]
    pages = []
    for seed, zone in (("1", "Asia/Tokyo"), ("2", "America/New_York")):
        folder = tmp_path / seed
        (folder / "log").mkdir(parents=True)
        (folder / "log" / "session.jsonl").write_bytes(busy_session().plain())
        env = {**os.environ, "PYTHONHASHSEED": seed, "TZ": zone, "LC_ALL": "C", "PYTHONPATH": str(source)}
        command = (sys.executable, "-m", "dsh_audit", "report", "log", "-o", "x.html")
        subprocess.run(command, cwd=folder, env=env, check=True)
        pages.append((folder / "x.html").read_bytes())
    assert pages[0] == pages[1]
    assert str(tmp_path).encode() not in pages[0] and b"log/session.jsonl" in pages[0]


def test_no_requests(tmp_path: Path) -> None:
    page = Page(written(tmp_path, ToySession(0)))
    shown = page.texts["main"][0]
    assert shown.count("No requests.") == 3 and "no busts" not in shown
    assert "svg" not in page.texts and "ledger" not in page.ids()


def test_no_usage_and_no_price(tmp_path: Path) -> None:
    session = ToySession(4, model="nobody-knows")
    session.ask("one")
    session.ask("two")
    source = written(tmp_path, session)
    assert "no figures from the provider" in source
    assert 'class="cached"' not in source
    assert "Cost of all, USD</dt><dd>–<" in source


def test_peak_hours_and_estimates_are_marked(tmp_path: Path) -> None:
    """The clock of the session stands at 2026-11-30 08:53 in Beijing; six hours later is a working hour."""
    session = ToySession(0)
    session.ask("one", counts=usage(5000, 0))
    session.time_ms += 6 * 3_600_000
    session.ask("two", counts=usage(5000, 0))
    session.ask("three", counts=usage(5000))
    rows = Page(written(tmp_path, session)).texts["tr"]
    costs = [next(row for row in rows if row.startswith(f"{index}steps")) for index in range(3)]
    assert ["peak" in cost for cost in costs] == [False, True, True]
    assert ["~" in cost for cost in costs] == [False, False, True]


def test_many_requests_stay_light(tmp_path: Path) -> None:
    """A chart path a series, few bytes a row; changes and findings are capped."""
    session = long_session(110)
    size = len(written(tmp_path, session))
    fixed = len(written(tmp_path, long_session(10)))
    assert (size - fixed) / 100 < 800
    for number in range(205):
        session.prompt = f"Run errands. It is now 2026-11-30T11:{number // 60:02}:{number % 60:02}Z."
        session.ask("again")
    source = written(tmp_path, session)
    assert source.count("<details>") == 200
    assert "and 5 more changes; <code>dsh-audit drift</code>" in source


@pytest.mark.parametrize("case", ["v0-empty", "v0-left-zstd-torn", "v3-reasoning", "v4-compaction"])
def test_recorded_sessions(case: str, tmp_path: Path) -> None:
    done = run("report", GOLDEN / case / "sessions", "-o", tmp_path / "x.html")
    assert done.returncode in (0, 1) and done.stderr == b""
    assert {tag for tag, _ in Page((tmp_path / "x.html").read_text("utf-8")).elements} <= TAGS


def test_errors_in_the_log_fail_the_run_but_write_the_page(hostile: str) -> None:
    assert '<li class="error">' in hostile and "log/reload-refused" in hostile


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ((), b"report needs -o FILE"),
        (("-o", "log/session.jsonl"), b"log/session.jsonl: this would overwrite an input"),
        (("-o", "prices.json", "--prices", "prices.json"), b"prices.json: this would overwrite an input"),
        (("-o", "none/x.html"), b"none/x.html: cannot be written"),
        (("-o", "x.html", "--session", "other"), b""),
    ],
)
def test_what_cannot_be_done(
    options: tuple[str, ...], message: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    written(tmp_path, ToySession(0))
    (tmp_path / "prices.json").write_text('{"schema": "dsh-audit/prices/1", "models": []}')
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    done = run("report", "log", *options)
    assert done.returncode == 2 and done.stdout == b""
    assert done.stderr.startswith(b"error: ") and message in done.stderr
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


def test_other_commands_do_without_the_template_engine() -> None:
    code = (
        "import sys; from click.testing import CliRunner; from dsh_audit.cli.main import cli; "
        "CliRunner().invoke(cli, ['cache', sys.argv[1]], catch_exceptions=False); "
        "print('jinja2' in sys.modules, 'dsh_audit.checks.cache' in sys.modules)"
    )
    log = GOLDEN / "v0-tools" / "sessions"
    done = subprocess.run([sys.executable, "-c", code, log], capture_output=True, text=True, check=True)
    assert done.stdout == "False True\n"
