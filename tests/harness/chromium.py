"""A Chromium to look at pages with, driven over its debugging pipe: NUL-terminated JSON on descriptors 3 and 4.

Source: the Chrome DevTools Protocol, ``--remote-debugging-pipe``.
"""

from __future__ import annotations

import json
import os
import select
import subprocess
import time
from base64 import b64decode
from collections.abc import Callable
from pathlib import Path
from typing import Any

CHROMIUM = "/usr/bin/chromium"
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--remote-debugging-pipe",
)
TIMEOUT_S = 120.0


class Chromium:
    """A running browser with one tab.

    Args:
        profile: a new, empty directory.

    Attributes:
        events: what the tab has told since the last ``open``: (method, parameters).

    Raises:
        FileNotFoundError: there is no Chromium.
    """

    def __init__(self, profile: Path) -> None:
        if not Path(CHROMIUM).exists():
            raise FileNotFoundError(f"{CHROMIUM} is not installed")
        read_end, self._write = os.pipe()
        self._read, write_end = os.pipe()
        command = [CHROMIUM, *FLAGS, f"--user-data-dir={profile}", "about:blank"]
        wiring = f'exec "$@" 3<&{read_end} 4>&{write_end}'
        self._process = subprocess.Popen(
            ["bash", "-c", wiring, "bash", *command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=(read_end, write_end),
        )
        os.close(read_end)
        os.close(write_end)
        self._buffer = b""
        self._count = 0
        self._session: str | None = None
        self.events: list[tuple[str, dict[str, Any]]] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def close(self) -> None:
        """End it."""
        os.close(self._write)
        os.close(self._read)
        self._process.terminate()
        self._process.wait(30)

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """One command; its result."""
        self._count += 1
        command = {"id": self._count, "method": method, "params": params}
        if self._session is not None:
            command["sessionId"] = self._session
        os.write(self._write, json.dumps(command).encode() + b"\0")
        answer = self._wait(lambda message: message.get("id") == self._count)
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']}")
        result: dict[str, Any] = answer["result"]
        return result

    def open(self, page: Path, *, script: bool = True) -> None:
        """Load a file and wait until it is there."""
        self.call("Emulation.setScriptExecutionDisabled", value=not script)
        self.events.clear()
        self.call("Page.navigate", url=page.as_uri())
        if not any(method == "Page.loadEventFired" for method, _ in self.events):
            self._wait(lambda message: message.get("method") == "Page.loadEventFired")

    def value(self, expression: str) -> Any:
        """What a JavaScript expression gives, as JSON."""
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        if "exceptionDetails" in result:
            raise RuntimeError(str(result["exceptionDetails"]))
        return result["result"].get("value")

    def resize(
        self, width: int, height: int = 800, *, phone: bool = False, scheme: str = "light", medium: str = "screen"
    ) -> None:
        """Size of the window in CSS pixels, the colour scheme the user prefers, and ``screen`` or ``print``."""
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=phone
        )
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.call("Emulation.setEmulatedMedia", media=medium, features=features)

    def press(self, key: str) -> None:
        """One key, by its DOM name."""
        text = {"Enter": "\r", "Space": " "}.get(key, "")
        name = " " if key == "Space" else key
        code = {"Enter": 13, "Tab": 9, "Space": 32}.get(key, 0)
        down: dict[str, Any] = {"key": name, "code": key, "windowsVirtualKeyCode": code}
        self.call("Input.dispatchKeyEvent", type="keyDown", text=text, **down)
        self.call("Input.dispatchKeyEvent", type="keyUp", **down)

    def point(self, x: float, y: float) -> None:
        """Move the mouse there."""
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def screenshot(self, *, whole: bool = False) -> bytes:
        """A PNG of the window, or of the whole page."""
        answer = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        return b64decode(answer["data"])

    def _wait(self, is_it: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """Read messages until one is it; the events go to ``events``."""
        deadline = time.monotonic() + TIMEOUT_S
        while True:
            message, separator, rest = self._buffer.partition(b"\0")
            if separator:
                self._buffer = rest
                parsed: dict[str, Any] = json.loads(message)
                if "method" in parsed:
                    self.events.append((parsed["method"], parsed.get("params", {})))
                if is_it(parsed):
                    return parsed
                continue
            left = deadline - time.monotonic()
            ready, _, _ = select.select([self._read], [], [], max(0.0, left))
            data = os.read(self._read, 1 << 20) if ready else b""
            if not data:
                raise RuntimeError("Chromium gives no answer" if ready == [] else "Chromium has ended")
            self._buffer += data
