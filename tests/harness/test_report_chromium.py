"""The HTML report in a real browser: what it shows, what it can do, and that hostile text does nothing.

Needs /usr/bin/chromium and fails without it.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli import run
from tests.harness.chromium import Chromium
from tests.html_sessions import HOSTILE, busy_session, hostile_session, long_session
from tests.toy_session import ToySession

SHOWN = "Array.from(document.querySelectorAll('#ledger tbody tr')).filter(row => !row.hidden).map(row => row.id)"
PATHS = "Array.from(document.querySelectorAll('#chart path[d]')).filter(path => path.getBBox().width > 0).length"
STRANGERS = "img,iframe,object,embed,link,base,form,audio,video,details[ontoggle],svg[onload],[onmouseover],[style]"


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chromium]:
    chromium = Chromium(tmp_path_factory.mktemp("profile"))
    yield chromium
    chromium.close()


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Reports by name."""
    folder = tmp_path_factory.mktemp("pages")
    sessions = {"busy": busy_session(), "hostile": hostile_session(), "long": long_session(450), "none": ToySession(0)}
    for name, session in sessions.items():
        log = folder / name / ("session.jsonl" if session.version == 0 else f"session.v{session.version}.jsonl")
        log.parent.mkdir()
        log.write_bytes(session.plain())
        assert run("report", log, "-o", folder / f"{name}.html").returncode < 2
    return {name: folder / f"{name}.html" for name in sessions}


def show(browser: Chromium, page: Path, *, script: bool = True, width: int = 1200, **window: Any) -> None:
    """Open a page in a window."""
    browser.resize(width, **window)
    browser.open(page, script=script)


def complaints(browser: Chromium) -> list[Any]:
    """Console output, exceptions, blocked content and dialogs since the page was opened, and requests but its own."""
    noise = ("Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded", "Page.javascriptDialogOpening")
    found: list[Any] = [event for event in browser.events if event[0] in noise]
    sent = [parameters["request"]["url"] for name, parameters in browser.events if name == "Network.requestWillBeSent"]
    return found + sent[1:]


@pytest.mark.parametrize("script", [True, False])
@pytest.mark.parametrize("name", ["busy", "hostile", "long"])
def test_chart_and_tables_are_there(browser: Chromium, pages: dict[str, Path], name: str, script: bool) -> None:
    show(browser, pages[name], script=script)
    assert browser.value(PATHS) >= 5
    assert browser.value("document.querySelectorAll('table').length") >= 3
    rows = browser.value("document.querySelectorAll('#ledger tbody tr').length")
    assert rows == {"busy": 24, "hostile": 4, "long": 450}[name]
    styles = "['#chart .reused', '#chart .new'].map(name => getComputedStyle(document.querySelector(name)).fill)"
    assert len({*browser.value(styles), "rgb(0, 0, 0)"}) == 3
    assert browser.value("document.getElementById('ledger-tools').hidden") is not script
    assert complaints(browser) == []


def test_a_page_without_requests(browser: Chromium, pages: dict[str, Path]) -> None:
    show(browser, pages["none"])
    assert "No requests." in browser.value("document.body.innerText")
    assert complaints(browser) == []


def test_hostile_text_does_nothing(browser: Chromium, pages: dict[str, Path]) -> None:
    show(browser, pages["hostile"])
    browser.value("document.querySelectorAll('details').forEach(item => { item.open = true })")
    browser.value("document.querySelectorAll('a, th button, summary').forEach(item => item.click())")
    for place in range(4):
        browser.press("Tab")
        browser.point(200 + 200 * place, 500)
    assert browser.value(f'document.querySelectorAll("{STRANGERS}").length') == 0
    assert browser.value("document.scripts.length") == 1
    assert browser.value("document.title").startswith(f"dsh-audit: session {HOSTILE[0]}")
    anchors = browser.value("Array.from(document.links, link => link.getAttribute('href'))")
    assert anchors and all(anchor.startswith("#") for anchor in anchors)
    assert browser.value("location.protocol + location.search") == "file:"
    assert browser.value("document.body.innerText").count(HOSTILE[0]) > 5
    assert complaints(browser) == []


def test_the_policy_is_in_force(browser: Chromium, pages: dict[str, Path], tmp_path: Path) -> None:
    """What the tests above look for would be seen: without escaping, the policy still blocks and says so."""
    broken = tmp_path / "broken.html"
    source = pages["busy"].read_text("utf-8")
    injected = "<img src=x onerror=alert(1)><script>alert(2)</script></main>"
    broken.write_text(source.replace("</main>", injected), "utf-8")
    show(browser, broken)
    assert any("Content Security Policy" in str(complaint) for complaint in complaints(browser))
    assert not [event for event in browser.events if event[0] == "Page.javascriptDialogOpening"]


def test_sorting(browser: Chromium, pages: dict[str, Path]) -> None:
    show(browser, pages["busy"])
    click = "document.querySelectorAll('#ledger th button')[{}].click()"
    value = "Array.from(document.querySelectorAll('#ledger tbody tr'), row => row.cells[{}].{})"
    for column, member in ((4, "dataset.v"), (9, "dataset.v"), (11, "dataset.v")):
        for descending in (False, True):
            browser.value(click.format(column))
            numbers = [float(text or -1) for text in browser.value(value.format(column, member))]
            assert numbers == sorted(numbers, reverse=descending) and len(set(numbers)) > 5
    browser.value(click.format(2))
    steps = browser.value(value.format(2, "textContent"))
    assert steps.index("2.1") < steps.index("2.2") < steps.index("10.1")
    browser.value(click.format(0))
    assert browser.value(SHOWN) == [f"r{index}" for index in range(24)]
    assert browser.value("document.querySelectorAll('#ledger [aria-sort]').length") == 1


def test_filtering(browser: Chromium, pages: dict[str, Path]) -> None:
    show(browser, pages["busy"])
    enter = "(() => {{ const box = document.getElementById('search'); box.value = '{}'; {} }})()"
    tell = "box.dispatchEvent(new Event('input'))"
    browser.value(enter.format("HEADER-change tools", tell))
    assert browser.value(SHOWN) == ["r15"]
    browser.value("document.querySelector('a[href=\"#r18\"]').click()")
    assert browser.value(SHOWN) == ["r15", "r18"]
    browser.value(enter.format("", tell))
    browser.value("document.getElementById('only-busts').click()")
    assert browser.value(SHOWN) == [f"r{index}" for index in (14, 15, 16, 17, 18, 21)]
    assert browser.value("document.getElementById('shown').textContent") == "6 of 24 shown"


def test_reading_out(browser: Chromium, pages: dict[str, Path]) -> None:
    show(browser, pages["busy"])
    readout = "document.getElementById('readout').textContent"
    assert browser.value(readout).startswith("Point at the chart")
    browser.value("document.getElementById('chart').focus()")
    for key, request in (("ArrowRight", 0), ("ArrowRight", 1), ("End", 23), ("ArrowLeft", 22), ("Home", 0)):
        browser.press(key)
        assert browser.value(readout).startswith(f"Request {request}: lineage steps, ")
    box = browser.value("(({x, y, width, height}) => [x, y, width, height])(chart.getBoundingClientRect())")
    browser.point(box[0] + box[2] * (64 + 866 * 14.5 / 24) / 1000, box[1] + box[3] / 2)
    assert browser.value(readout).startswith("Request 14: lineage steps, turn.step 8.1, bust header-change system at")
    assert browser.value("getComputedStyle(document.querySelector('.cursor')).visibility") == "visible"
    assert browser.value("document.querySelector('#readout a').hash") == "#r14"


@pytest.mark.parametrize("name", ["busy", "hostile", "long", "none"])
def test_a_phone_scrolls_no_page_sideways(browser: Chromium, pages: dict[str, Path], name: str) -> None:
    show(browser, pages[name], width=360, height=740, phone=True)
    browser.value("document.querySelectorAll('details').forEach(item => { item.open = true })")
    assert browser.value("[document.documentElement.scrollWidth, innerWidth]") == [360, 360]


def test_print(browser: Chromium, pages: dict[str, Path]) -> None:
    """On paper nothing is cut off or folded away, and the ground is white."""
    show(browser, pages["busy"], width=720, scheme="dark", medium="print")
    assert browser.value("document.documentElement.scrollWidth") == 720
    assert browser.value("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert browser.value("document.querySelector('details ins').getBoundingClientRect().height") > 5
    assert browser.value("(box => box.scrollHeight - box.clientHeight)(document.querySelector('.tall'))") <= 0


def test_table_heads_stay_in_sight(browser: Chromium, pages: dict[str, Path]) -> None:
    show(browser, pages["long"])
    place = "(() => { const box = document.querySelector('.tall'); box.scrollTop = 900; return "
    place += "document.querySelector('#ledger th').getBoundingClientRect().y - box.getBoundingClientRect().y })()"
    assert 0 <= browser.value(place) <= 2


def contrast(one: str, two: str) -> float:
    """Contrast of two colours as ``rgb(r, g, b)``. Source: WCAG 2.2, relative luminance."""
    shades = []
    for colour in (one, two):
        parts = [int(part) / 255 for part in colour.removeprefix("rgb(").removesuffix(")").split(",")]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        shades.append(0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2] + 0.05)
    return max(shades) / min(shades)


COLOURS = """
(() => {
  const ground = (item) => {
    for (; item; item = item.parentElement) {
      const colour = getComputedStyle(item).backgroundColor;
      if (colour !== "rgba(0, 0, 0, 0)") return colour;
    }
  };
  document.querySelectorAll("details").forEach((item) => { item.open = true; });
  const texts = Array.from(document.querySelectorAll("main *")).filter((item) =>
    !item.closest("svg") && Array.from(item.childNodes).some((node) => node.nodeType === 3 && node.data.trim()));
  const shapes = Array.from(document.querySelectorAll("#chart path:not(.halo, .axis, .stripe, .cursor)"));
  const paint = ({ fill, stroke }) => fill.startsWith("rgb") ? fill : stroke;
  return {
    texts: texts.map((item) => [item.className || item.tagName, getComputedStyle(item).color, ground(item)]),
    shapes: shapes.map((item) => [item.className.baseVal, paint(getComputedStyle(item)), ground(item)]),
  };
})()
"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", ["busy", "hostile"])
def test_contrast(browser: Chromium, pages: dict[str, Path], name: str, scheme: str) -> None:
    show(browser, pages[name], scheme=scheme)
    colours = browser.value(COLOURS)
    assert len(colours["texts"]) > 100 and len(colours["shapes"]) >= 5
    drawn = [item for item in colours["shapes"] if item[1].startswith("rgb")]
    assert [item for item in colours["texts"] if contrast(item[1], item[2]) < 4.5] == []
    assert [item for item in drawn if contrast(item[1], item[2]) < 3] == []
