"""The outcomes of an act as plain text and as JSON."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

from dibs_tui.acting.execute import Outcome
from dibs_tui.acting.plan import Act
from dibs_tui.settings.config import folder
from dibs_tui.text.safe import clean


def as_text(outcomes: Iterable[Outcome]) -> str:
    """The outcomes as lines of exact name, outcome and text, separated by tabs."""
    lines = ((o.target.name, o.word, o.text) for o in outcomes)
    return "\n".join("\t".join(map(clean, line)) for line in lines) + "\n"


def as_json(act: Act, outcomes: Iterable[Outcome]) -> str:
    """The outcomes as one JSON object."""
    rows = [
        {"id": o.target.task.id, "name": o.target.name, "outcome": o.word, "text": o.text}
        for o in outcomes
    ]
    return json.dumps({"v": 1, "act": act.verb, "outcomes": rows}) + "\n"


def save(act: Act, outcomes: Sequence[Outcome]) -> str:
    """Write the outcomes as text and as JSON into the user's state folder; returns where.

    Call it in a thread: a home directory on a network may hang.
    """
    place = Path(folder(os.environ, "XDG_STATE_HOME", ".local/state"), "ledgers")
    path = place / f"{time.strftime('%Y%m%d-%H%M%S')}-{act.verb}"
    try:
        place.mkdir(parents=True, exist_ok=True)
        path.with_suffix(".txt").write_text(as_text(outcomes), encoding="utf-8")
        path.with_suffix(".json").write_text(as_json(act, outcomes), encoding="utf-8")
    except OSError as error:
        return clean(f"not saved: {path}.txt: {error.strerror}")
    return clean(f"saved: {path}.txt and .json")
