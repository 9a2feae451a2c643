"""Realistic demo tasks, always the same in the same order."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from random import Random
from typing import NamedTuple

_PRIORITIES = (5,) * 14 + (4, 4, 3, 3, 2, 6, 7, 7, 8, 9)
_CITIES = ("Utrecht", "Porto", "Turku", "Leipzig", "Galway", "Brno")
_MODELS = ("e5-large-v2", "bge-m3", "minilm-l6")

MAIL = "mail-"
"""How the ids of mails begin."""
MAIL_ERROR = "smtp.example.com:25: connection refused"
"""Why each mail fails while the mail server is down."""


class Draft(NamedTuple):
    """A task before it is added to the board."""

    id: str
    payload: bytes
    priority: int


def stream() -> Iterator[Draft]:
    """Yield tasks without end; each call yields the same ones."""
    chance = Random("dibs demo")
    numbers = Counter({kind: first for kind, (first, _, _, _) in _KINDS.items()})
    weights = [weight for _, _, weight, _ in _KINDS.values()]
    while True:
        kind = chance.choices(list(_KINDS), weights)[0]
        _, digits, _, write = _KINDS[kind]
        payload = write(numbers[kind], chance)
        yield Draft(f"{kind}-{numbers[kind]:0{digits}}", payload, chance.choice(_PRIORITIES))
        numbers[kind] += chance.randint(1, 3)


def mails() -> Iterator[Draft]:
    """Yield mails without end, which need a mail server; each call yields the same ones."""
    chance = Random("dibs demo mails")
    number = 431
    while True:
        address = f"{chance.choice(_CITIES).lower()}@example.com"
        payload = _json({"to": address, "subject": "Your invoice", "invoice": 2000 + number})
        yield Draft(f"{MAIL}{number:04}", payload, 5)
        number += chance.randint(1, 2)


def note(ident: str, chance: Random) -> str:
    """Metadata as the workers of different teams write it; empty for some."""
    kind, _, number = ident.rpartition("-")
    job = f"https://example.com/{kind}/{number}"
    choices = {
        "embed-shard": json.dumps({"model": chance.choice(_MODELS), "batch": 64, "url": job}),
        "render": json.dumps({"gpu": chance.randint(0, 3), "url": job}),
        "transcode": f"pass {chance.randint(1, 2)} of 2",
        "review": json.dumps({"model": "reviewer-2", "url": job}),
    }
    return choices.get(kind, "")


def step(ident: str) -> str:
    """What a worker says while it works on a task."""
    chance = Random(f"step of {ident}")
    part = chance.randint(4, 18)
    steps = {
        "invoice": f"adding up line {part} of 20",
        "render": f"frame {60 * part + 12} of 1200",
        "embed-shard": f"epoch {1 + part // 2} of 10, loss 0.{500 - 7 * part}",
        "transcode": f"pass {1 + part // 10} of 2, {5 * part} %",
        "review": f"reading {part} of 20 files",
    }
    return steps.get(ident.rpartition("-")[0], "")


def _invoice(number: int, chance: Random) -> bytes:
    lines = [
        {"sku": f"A-{chance.randint(100, 999)}", "net": round(chance.uniform(9, 900), 2)}
        for _ in range(chance.randint(1, 4))
    ]
    fields = {"invoice": number, "customer": chance.choice(_CITIES), "currency": "EUR"}
    return _json(fields | {"lines": lines, "due": f"2026-04-{chance.randint(1, 28):02}"})


def _render(number: int, chance: Random) -> bytes:
    first = number * 24
    frames = {"from": first, "to": first + 23}
    scene = f"harbour/{chance.choice(('dawn', 'noon', 'storm'))}.usd"
    return _json({"scene": scene, "frames": frames, "samples": chance.choice((64, 256, 1024))})


def _embed(number: int, chance: Random) -> bytes:
    rows = [number * 5000, number * 5000 + 4999]
    return _json({"corpus": "tickets-2026", "rows": rows, "model": chance.choice(_MODELS)})


def _transcode(number: int, chance: Random) -> bytes:
    height = chance.choice((480, 720, 1080))
    text = (
        f"in    lectures/{number:04}.mov\nout   lectures/{number:04}-{height}.mp4\nheight {height}"
    )
    return f"{text}\ncodec av1, two passes, keep the subtitles\n".encode()


def _review(number: int, chance: Random) -> bytes:
    city = chance.choice(_CITIES)
    return f"""# Review change {number}

The **{city}** office moved its opening hours into the database.

* Does `opening_hours()` still answer for a holiday?
* Is the migration safe to run *twice*?

```python
hours = opening_hours("{city}", day)
```
""".encode()


def _fingerprint(number: int, chance: Random) -> bytes:
    return b"FPRT\x01\x00" + number.to_bytes(2, "big") + chance.randbytes(248)


def _json(fields: dict[str, object]) -> bytes:
    return json.dumps(fields, indent=2).encode() + b"\n"


_KINDS: dict[str, tuple[int, int, int, Callable[[int, Random], bytes]]] = {
    "invoice": (2207, 4, 8, _invoice),
    "render": (142, 4, 7, _render),
    "embed-shard": (7, 2, 4, _embed),
    "transcode": (815, 4, 4, _transcode),
    "review": (311, 3, 2, _review),
    "fingerprint": (64, 3, 1, _fingerprint),
}
"""By kind of task: the first number, its digits, the weight, and what makes the payload."""
