"""Hostile text that a directory can hold, by name, and boards full of it."""

from __future__ import annotations

import json
import os
import unicodedata
from contextlib import suppress
from pathlib import Path

import dibs
from dibs.model.names import escape

ESC, BEL, ST, CSI, OSC = "\x1b", "\x07", "\x1b\\", "\x9b", "\x9d"
CASES = {
    "markup that closes nothing": "a[/foo]b",
    "markup that is never closed": "[bold red]a[",
    "markup that acts": "[@click=app.quit]x[/]",
    "markup that links": "[link=file:///etc/passwd]x[/link]",
    "markup in a backslash": "\\[b]\\",
    "markup of Rich": "[bold]x[/bold] :skull: [not closed",
    "a variable of Content": "$primary {x} %s %(y)s {0!r}",
    "OSC 52": f"a{ESC}]52;c;ZXZpbA=={BEL}b",
    "OSC 52 in C1": f"a{OSC}52;c;ZXZpbA==\x9cb",
    "OSC 8": f"{ESC}]8;;file:///etc/passwd{ST}click{ESC}]8;;{ST}",
    "OSC 0": f"{ESC}]0;owned{BEL}",
    "a device control": f'{ESC}P$q"p{ST}{ESC}_Gf=24;{ST}{ESC}^x{ST}',
    "CSI colour": f"{ESC}[31;1mred{ESC}[0m",
    "CSI clear": f"{ESC}[2J{ESC}[H{ESC}[?1049h{ESC}[?25l",
    "CSI that asks": f"{ESC}[6n{ESC}[c{ESC}]10;?{BEL}",
    "CSI in C1": f"{CSI}2J{CSI}31mred",
    "all of C1": "".join(map(chr, range(0x80, 0xA0))),
    "all of C0": "".join(map(chr, range(0x20))) + "\x7f",
    "NUL": "a\0b",
    "backspaces": "safe\b\b\b\bevil",
    "carriage return": "safe\revil",
    "new lines": "one\ntwo\r\nthree\vfour\ffive\x85six",
    "separators": "one\u2028two\u2029three\x1cfour\x1efive",
    "tabs": "a\tb\t\tc",
    "reset": f"{ESC}c{ESC}#8{ESC}(0lqqk",
    "shift out": "\x0eabc\x0f",
    "bidi overrides": "safe\u202egnp.exe\u202c \u202dx\u202a\u202b",
    "bidi isolates": "a\u2066b\u2067c\u2068d\u2069\u200e\u200f\u061c",
    "zero width": "a\u200bb\u200cc\u2060d\u2061e\u2064f\ufeffg\u00adh\u180ei\u034fj",
    "a combining flood": "Z" + "\u0301\u0489\u035c" * 3000,
    "leading marks": "\u0301\u0302\u0303a",
    "enclosing marks": "a\u20ddb\u20e3",
    "unseen letters": "a\u115fb\u1160c\u3164d\uffa0e\u2800f",
    "tag characters": "a\U000e0001\U000e0041\U000e007f",
    "selectors of variants": "\u2764\ufe0f\u2764\ufe0e1\ufe0f\u20e3\U000e0100",
    "ZWJ emoji": "\U0001f468\u200d\U0001f469\u200d\U0001f467\u200d\U0001f466",
    "colours of skin": "\U0001f44d\U0001f3ff",
    "flags": "\U0001f1e9\U0001f1ea\U0001f1eb",
    "wide": "日本語のタスク한국어中文",
    "half wide": "ﾊﾝｶｸ \uff21\uff22\uff23",
    "RTL": "שלום עולם مرحبا 123",
    "Indic": "क्षि நி ক্ষ",
    "Thai": "น้ำ ที่",
    "Hangul in parts": "\u1112\u1161\u11ab",
    "hexagrams": "\u4dc0\u2630\U0001d300",
    "private use": "\ue000\uf8ff\U000f0000\U0010fffd",
    "noncharacters": "\ufdd0\ufffe\uffff\U0001ffff\U0010ffff",
    "unassigned": "\u0378\U0001fbff\U000e1000",
    "lone surrogates": "\ud800a\udfffb\udc1b",
    "raw bytes": "\udc80\udcff\udc9b2J",
    "blank": "   ",
    "spaces of all kinds": "a\u00a0b\u2003c\u3000d\u202fe",
    "shell": "$(reboot); `reboot` | 'x' \"y\" & -rf --help",
    "a path": "../../etc/passwd",
    "a long line": "long " * 200_000,
    "a long wide line": "日" * 100_000,
    "a long line of escapes": f"{ESC}[1m" * 100_000,
}

_UNSEEN = {
    *range(0x115F, 0x1161), 0x034F, 0x17B4, 0x17B5, 0x2800, 0x3164, 0xFFA0,
    *range(0x180B, 0x1810), *range(0xFE00, 0xFE10), *range(0x1F1E6, 0x1F200),
    *range(0x1F3FB, 0x1F400), *range(0xE0000, 0xE1000),
}  # fmt: skip
"""Printable by Unicode, but invisible, or of a width that terminals disagree about."""


def controls(text: str, but: str = "\n") -> set[str]:
    """The characters that a terminal acts on or hides: all that Unicode does not call graphic."""
    kinds = ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")
    return {c for c in set(text) - set(but) if unicodedata.category(c) in kinds}


def forbidden(text: str, but: str = "") -> set[str]:
    """Those, and the characters that terminals disagree about."""
    return controls(text, but) | {c for c in set(text) if ord(c) in _UNSEEN}


def as_id(text: str) -> str | None:
    """The longest part of a text that fits into an id behind a prefix; None if there is none."""
    for length in range(min(len(text), 110), 0, -1):
        with suppress(dibs.BadName):
            escape(f"a-few-more{text[:length]}")
            return text[:length]
    return None


def as_file(text: str, room: int = 200) -> str | None:
    """The longest part of a text that fits into a file name."""
    text = text.replace("/", "|").replace("\0", "")[:room]
    while text:
        with suppress(UnicodeEncodeError):
            if len(os.fsencode(text)) <= room:
                return text
        text = text[:-1]
    return None


def board(path: Path) -> dibs.Board:
    """A board with every case in every field that a stranger can write."""
    made = dibs.open(path, create=True)
    (path / ".dibs/board.toml").write_text('format = 1\ndurability = "off"\n')
    made = dibs.open(path)
    for n, text in enumerate(CASES.values()):
        _ids(made, n, text)
        _files(path, n, text)
        _records(made, path, n, text)
    _journal(path)
    return made


def _ids(made: dibs.Board, n: int, text: str) -> None:
    """Add one id in every state."""
    ident = as_id(text)
    if ident is None:
        return
    waiting, parked, over, free = (f"{before}{n}-{ident}" for before in "ifde")
    made.add(waiting, text.encode("utf-8", "surrogatepass"), priority=n % 10)
    reason = text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    made.park(made.add(parked).name, reason)  # an operator's reason must be valid UTF-8
    made.add(over)
    claim = made.claim(over)
    assert claim is not None
    claim.done()
    made.acquire(free).release()


def _files(path: Path, n: int, text: str) -> None:
    """Add names that only a shell writes, foreign files, and locks of shells."""
    name = as_file(text)
    if name is None:
        return
    for file in (f"r{n}-{name}.available", f"p{n}.claimed-by-{name}", f"stranger{n}{name}"):
        with suppress(FileNotFoundError):
            (path / file).write_bytes(b"x")
    (path / f"q{n}.claimed").write_bytes(b"x")
    (path / f"q{n}.lock").write_bytes(text[:500].encode("utf-8", "surrogatepass"))


def _records(made: dibs.Board, path: Path, n: int, text: str) -> None:
    """Add a claim and a lease whose records hold the text; some are stale after a second."""
    made.add(f"c{n}")
    claim, lease = made.claim(f"c{n}", owner="w"), made.acquire(f"l{n}", owner="w")
    assert claim is not None
    for n, stem in enumerate((claim.task.stem, lease.task.stem)):
        fields = {"owner": text[:256], "host": text[:255], "metadata": text[:1024]}
        record = {"v": 1, "at": 1.5, "ttl": 3600 if n else 1, "boot": text[:200], **fields}
        (path / ".dibs/records" / stem).write_text(json.dumps(record))


def _journal(path: Path) -> None:
    """Add a journal with every case as verb, as names, as author and as reason."""
    lines = []
    for n, text in enumerate(CASES.values()):
        short = text[:300]
        event = {"at": 1e9 + n, "verb": short, "id": f"c{n}", "src": short, "dst": short}
        lines.append(json.dumps(event | {"by": short, "reason": text[:2000]}))
    (path / ".dibs/journal/other.jsonl").write_text("\n".join(lines) + "\n")
