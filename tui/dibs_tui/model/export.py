"""The rows of tables and lists as CSV or JSON, harmless to spreadsheets and terminals."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from dibs import Event, Task
from dibs_tui.model.known_board import KnownBoard
from dibs_tui.model.owners import OwnerGroup
from dibs_tui.model.problems import Problem
from dibs_tui.text.safe import clean

FORMATS = (".csv", ".json")
_CELL = 8000
"""The most characters of a CSV cell."""
_FORMULA = tuple("=+-@|%\uff1d\uff0b\uff0d\uff20")
"""What makes spreadsheets run the text of a cell."""
Fields = Mapping[str, Any]


def fields_of(model: KnownBoard, row: object) -> Fields | None:
    """The fields of a task, an event, an owner or a problem; None for a heading."""
    read = next((read for kind, read in _READ if isinstance(row, kind)), None)
    return None if read is None else read(model, row)


def text_of(rows: Iterable[Fields], suffix: str, about: Fields) -> str:
    """The content of a file; the JSON says what it is `about`."""
    return _csv(rows) if suffix == ".csv" else _json(rows, about)


def defused(value: object) -> object:
    """A cell that no spreadsheet runs, and no terminal obeys."""
    if isinstance(value, list | tuple):
        value = " ".join(map(str, value))
    if not isinstance(value, str):
        return value
    text = clean(value, _CELL)
    return f"'{text}" if text.lstrip().startswith(_FORMULA) else text


def _csv(rows: Iterable[Fields]) -> str:
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    columns: list[str] = []
    for row in rows:
        if not columns:
            columns = list(row)
            writer.writerow(columns)
        writer.writerow([defused(row.get(column)) for column in columns])
    return file.getvalue()


def _json(rows: Iterable[Fields], about: Fields) -> str:
    """One row on each line; what is not ASCII is escaped, so that no terminal obeys it."""
    lines = ",\n".join(json.dumps(row) for row in rows)
    head = json.dumps(about)[1:-1]
    return f'{{{head}, "rows": [\n{lines}\n]}}\n'


def _task(model: KnownBoard, task: Task) -> Fields:
    fields = model.entry(task)._asdict()
    return {key: _rounded(value) for key, value in fields.items()}


def _event(model: KnownBoard, event: Event) -> Fields:
    at = (
        datetime.fromtimestamp(event.at, UTC).isoformat(timespec="milliseconds") if event.at else ""
    )
    return {"time": at, **event._asdict(), "at": _rounded(event.at)}


def _owner(model: KnownBoard, group: OwnerGroup) -> Fields:
    now = model.now.fs
    return {
        "kind": group.kind,
        "name": group.name,
        "others": list(group.others),
        "claims": len(group.claims),
        "late": group.late,
        "stale": group.stale,
        "waiting": sum(group.waiting.values()),
        "done_per_hour": group.done,
        "failed_per_hour": group.failed,
        "oldest": _rounded((now - group.oldest) / 1e9) if group.oldest else None,
        "beat": _rounded((now - group.beat) / 1e9) if group.beat else None,
        "beats_every": _rounded(group.cadence / 1e9) if group.cadence else None,
        "names": list(group.claims),
    }


def _problem(model: KnownBoard, problem: Problem) -> Fields:
    names = problem.claims or ((problem.task.name,) if problem.task is not None else ())
    return {
        "state": problem.state,
        "id": problem.id,
        "problem": problem.word,
        "reason": problem.reason,
        "filter": problem.terms,
        "names": list(names),
    }


def _rounded(value: Any) -> Any:
    return round(value, 3) if isinstance(value, float) else value


_READ: tuple[tuple[type, Callable[[KnownBoard, Any], Fields]], ...] = (
    (Task, _task),
    (Event, _event),
    (OwnerGroup, _owner),
    (Problem, _problem),
)
