"""Sessions for tests of the HTML report: a hostile one, one full of busts, and one of any length."""

from __future__ import annotations

from itertools import count

from tests.toy_session import ToySession, tool, usage

IMG = "</script></title></style></textarea><img src=x onerror=alert(1)>"
HOSTILE = (
    IMG,
    "\"><svg onload=alert(2)>' onmouseover='alert(3)",
    "javascript:alert(4)",
    "<!--<script>alert(5)//",
    "]]><details open ontoggle=alert(6)>",
    "&lt;b&gt; &#x3c;i&#x3e; {{7*7}} ${alert(7)}",
    "\u202eright to left\u2066\u200f",
    "\x00\x01\x1b[31m\x7f\x9b\u2028\ufeff",
    "lone \ud83d and \udc00",
    "unbroken" * 300,
)
TEXT = " ".join(HOSTILE[:-1])


def hostile_session() -> ToySession:
    """Hostile text wherever a log can put it, in requests, busts, diffs and findings."""
    session = ToySession(4, ident=TEXT, model=f"m {TEXT}")
    session.tools = [tool(text, text) for text in HOSTILE]
    session.prompt = f"Be good.\n{TEXT}\nEnd."
    session.ask(TEXT, TEXT, counts=usage(4000, 0))
    session.prompt = "\n".join(HOSTILE)
    session.tools = [tool(TEXT, TEXT, **{text: {"type": text} for text in HOSTILE}), *session.tools[:0:-1]]
    session.settings = {TEXT: TEXT, "stop": list(HOSTILE)}
    session.ask(TEXT, TEXT, counts=usage(4000, 0))
    session.model = f"n {TEXT}"
    session.provider = f"p {TEXT}"
    session.ask("a word " * 2000, TEXT, counts=usage(9000, 0))
    session.tools = [tool(TEXT, TEXT, **{HOSTILE[1]: {"type": "string"}}), *session.tools[1:]]
    session.ask(TEXT, TEXT, counts=usage(9000, 0))
    session.append("user/message", {"role": TEXT, "content": TEXT})
    session.add(f"unheard-of/{TEXT}", {TEXT: TEXT})
    return session


def busy_session(version: int = 0) -> ToySession:
    """Busts of many causes, three lineages, and requests without figures."""
    session = ToySession(version, model="deepseek-v4-pro")
    session.prompt = "Run errands.\nNow: 2026-11-30T10:00:00Z\n" + "Rules. " * 300
    session.ask("word " * 3000, counts=usage(4200, 0))
    sent = count(4200, 350)
    for turn in range(6):
        result = session.call(f"errand {turn}", "echo", "result " * 250, counts=usage(400, next(sent)))
        session.ask(None, counts=usage(300, next(sent)))
    session.title()
    session.prompt = session.prompt.replace("10:00", "10:05")
    session.ask("after the clock", counts=usage(next(sent), 0))
    session.tools = [*session.tools[::-1], tool("swim", "Swim.", lanes={"type": "integer"})]
    session.ask("with a tool", counts=usage(next(sent), 128))
    session.ask("nothing was cached", counts=usage(next(sent), 0))
    session.prune(result)
    session.ask("after the prune", counts=usage(2000, next(sent) - 2000))
    session.model = "deepseek-flash"
    session.ask("a smaller model", counts=usage(next(sent), 0))
    session.ask("no figures")
    session.compact(session.surface[1:-2], "Summary of it all.", usage(300, next(sent)))
    session.ask("after the compaction", counts=usage(3000, 1024))
    session.resume("and back", counts=usage(100, 4000))
    session.ask("the end", counts=usage(80, 4100))
    return session


def long_session(requests: int) -> ToySession:
    """Tool calls that let a prompt grow, with a bust now and then."""
    session = ToySession(0, model="deepseek-v4-pro")
    session.begin("Work on this. " * 40)
    size = 200
    for number in range(requests):
        if number:
            session.begin()
        ident = f"c{number}"
        call = {"type": "tool-call", "id": ident, "name": "echo", "arguments": f'{{"line":{number}}}'}
        busted = number and number % 250 == 0
        session.answer("", calls=[call], counts=usage(80 + size, 0) if busted else usage(80, size))
        session.append("tool/result", session.result(ident, f"result {number} " * (5 + number % 40)))
        session.add("step/end", {"turn": session.turn, "step": session.step})
        size += 100
        if number % 250 == 249:
            session.prompt = f"Run errands. It is now 2026-11-30T10:{number % 60:02}:00Z."
    return session
