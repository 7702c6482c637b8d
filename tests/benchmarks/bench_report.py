"""Size and time of the HTML report of 2,000 requests; run by hand: ``python -m tests.benchmarks.bench_report``.

Prints the size of the page, its share of the time, and the whole time of ``dsh-audit report`` in a new process.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

from dsh_audit.audit import audit_cache
from dsh_audit.cli.cache import read_options
from dsh_audit.deployment import Deployment
from dsh_audit.report.html import render_html
from tests.html_sessions import long_session

REQUESTS = 2000
LIMIT_BYTES = 2_000_000


def main() -> None:
    """Measure and print; fail on a page that is too large."""
    session = long_session(REQUESTS)
    report = audit_cache(session.history(), Deployment({}, {}), read_options(None, "USD"))
    start = time.process_time()
    page = render_html(report)
    rendering = time.process_time() - start
    with tempfile.TemporaryDirectory() as folder:
        log, out = Path(folder) / "session.jsonl", Path(folder) / "report.html"
        log.write_bytes(session.plain())
        start = time.perf_counter()
        subprocess.run([sys.executable, "-m", "dsh_audit", "report", log, "-o", out], check=True)
        whole = time.perf_counter() - start
        size = out.stat().st_size
    print(f"{REQUESTS} requests: {size / 1e6:.2f} MB; page {len(page) / 1e6:.2f} MB in {rendering:.2f} s of CPU")
    print(f"whole command: {whole:.1f} s")
    if size > LIMIT_BYTES:
        sys.exit(f"larger than {LIMIT_BYTES} bytes")


if __name__ == "__main__":
    main()
