"""The graph band: the backlog and the flow of the last half hour, and three facts."""

from __future__ import annotations

from math import inf, isfinite, isinf
from typing import TYPE_CHECKING, NamedTuple

from dibs.model.rates import drain_time
from dibs_tui.model.frame.braille import Value, graph, top_of
from dibs_tui.model.frame.history import bucket_of, flow, growth, levels
from dibs_tui.model.frame.pieces import Piece, Pieces, RowPlan
from dibs_tui.model.task_line import GLYPHS
from dibs_tui.text.ages import UNREAD, many, rate, short

if TYPE_CHECKING:
    from dibs_tui.model.board import BoardModel

WIDE, HIGH, ROWS = 120, 30, 3
"""The least columns and rows of a terminal with the band, and the rows that it takes."""
_LEVELS = {"available": ("available", ("available",)), "failed": ("failed", ("failed",))}
_BACKLOG = ("backlog", ("available", "later"))
_FLOWS = (("claims", "claims", "lock"), ("done", "dones", "ok-text"), ("failed", "fails", "fail"))
_INKS = ("b3", "b2", "b1")
_LABEL = 14
"""The last cell of the labels."""


class Graphs(NamedTuple):
    """The buckets of the last half hour, the current one last."""

    levels: tuple[Value, ...]
    """How many tasks were in the states of the view."""
    flows: tuple[tuple[Value, ...], ...]
    """The events of each flow."""
    change: int
    """By how much the level grew in that time, or since the log began."""


class GraphBand(NamedTuple):
    """What the graph band shows."""

    label: str
    total: int | None
    """The tasks in the states of the view; None while they are still being read."""
    change: int | None
    """By how much the count grew since the first bucket; None if that is not known."""
    state: tuple[str, str]
    """What happens with the queue, and its ink."""
    graphs: Graphs
    rates: tuple[str, ...]
    """The rate of each flow."""
    asked: int | None
    later: int | None
    next_start: str
    idle: int
    workers: int


def cells_of(cells: int) -> int:
    """The cells of each graph on a terminal of this width."""
    return 60 if cells >= 200 else 45 if cells >= 160 else 30


def graphs_key(model: BoardModel, view: str, cells: int) -> tuple[object, ...]:
    """What the graphs depend on; while it is equal they need not be computed again."""
    _, states = _LEVELS.get(view, _BACKLOG)
    newest = model.feed[0] if model.feed else None
    now = bucket_of(model.now.fs / 1e9, 2 * cells_of(cells))
    return now, view, cells, *map(model.count, states), newest, id(model.rates)


def graphs_of(model: BoardModel, view: str, cells: int) -> Graphs:
    """The graphs of a view on a terminal of this width."""
    buckets, now, rates = 2 * cells_of(cells), model.now.fs / 1e9, model.rates
    _, states = _LEVELS.get(view, _BACKLOG)
    if not model.knows():
        none = (None,) * buckets
        return Graphs(none, (none,) * len(_FLOWS), 0)
    count = sum(map(model.count, states))
    return Graphs(
        tuple(levels(rates, states, count, now, buckets)),
        tuple(tuple(flow(rates, kind, now, buckets)) for _, kind, _ in _FLOWS),
        growth(rates, states, now, buckets),
    )


def band_of(model: BoardModel, view: str, graphs: Graphs, workers: int) -> GraphBand:
    """What the band of a view shows now; `workers` is the number of owners that work or wait."""
    now, rates = model.now.fs / 1e9, model.rates
    label, states = _LEVELS.get(view, _BACKLOG)
    is_read, log_is_read = model.knows(*states), model.knows()
    known = log_is_read and rates.begins != inf
    prefix = "" if rates.complete else "≥"
    facts = model.knows("asked", "later")
    return GraphBand(
        label,
        sum(map(model.count, states)) if is_read else None,
        graphs.change if known else None,
        ("", "muted") if label == "failed" else drain_text(model),
        graphs,
        tuple(
            prefix + rate(rates.per_minute(kind, now)) if log_is_read else UNREAD
            for _, kind, _ in _FLOWS
        ),
        model.count("asked") if facts else None,
        model.count("later") if facts else None,
        _start(model.next_start()),
        sum(waiter.state == "idle" for waiter in model.waiters),
        workers,
    )


def drain_text(model: BoardModel) -> tuple[str, str]:
    """When the queue is empty, or why it is not drained, and the ink of that."""
    now = model.now.fs / 1e9
    backlog = model.backlog()
    if model.pauses:
        return f"paused {short(max(0.0, now - min(pause.at for pause in model.pauses)))}", "pause"
    if not model.knows():
        return "", "muted"
    if not backlog:
        return "queue empty", "muted"
    left = drain_time(model.rates, now, backlog)
    if isfinite(left):
        return f"empty in {short(left)}", "ok-text"
    return ("not draining", "late") if isinf(left) else ("", "muted")


def band_rows(band: GraphBand, cells: int) -> list[Pieces]:
    """The rows of the band for a terminal of this width."""
    g = cells_of(cells)
    graphs = band.graphs
    top = top_of(*graphs.flows)
    filled = graph(graphs.levels, top_of(graphs.levels), ROWS)
    strips = [graph(values, top)[0] for values in graphs.flows]
    return [
        _row(g, label, (filled[n], _INKS[n]), n, (band.rates[n], strips[n]), fact, cells)
        for n, (label, fact) in enumerate(zip(_labels(band), _facts(band), strict=True))
    ]


def _row(
    g: int,
    label: Pieces,
    filled: tuple[str, str],
    n: int,
    shown: tuple[str, str],
    fact: Pieces,
    cells: int,
) -> Pieces:
    plan = RowPlan(cells)
    if len(label) > 1:
        plan.left(1, label[0])
    plan.right(_LABEL, label[-1])
    plan.left(_LABEL + 2, Piece(*filled))
    (name, _, ink), (speed, strip) = _FLOWS[n], shown
    plan.left(g + 19, Piece(name, "muted"))
    plan.right(g + 33, Piece(speed, "faint" if speed == UNREAD else ink))
    plan.left(g + 35, Piece(strip, ink))
    plan.left(2 * g + 38, *fact)
    return plan.row()


def _labels(band: GraphBand) -> tuple[Pieces, Pieces, Pieces]:
    change = "" if band.change is None else f"{_signed(band.change)} in 30 min"
    words, ink = band.state
    return (
        (Piece(band.label, "muted"), Piece(_many(band.total), "bright", bold=True)),
        (Piece(change.ljust(_LABEL), "muted"),),
        (Piece(words, ink, bold=ink in ("late", "pause")),),
    )


def _many(count: int | None) -> str:
    return UNREAD if count is None else many(count)


def _signed(change: int) -> str:
    return f"{'+' if change >= 0 else '-'}{many(abs(change))}" if change else "±0"


def _facts(band: GraphBand) -> tuple[Pieces, Pieces, Pieces]:
    asked = "question" if band.asked == 1 else "questions"
    return (
        _fact("asked", band.asked, asked, "", "ask", bold=True),
        _fact("later", band.later, "later", band.next_start, "later"),
        _fact("available", band.idle, "idle", f"of {many(band.workers)}", "text"),
    )


def _fact(
    state: str, count: int | None, noun: str, more: str, ink: str, *, bold: bool = False
) -> Pieces:
    """A glyph, a count in five cells and its noun; grey while it is 0."""
    bold = bold and bool(count)
    shown = ink if count else "faint"
    return (
        Piece(GLYPHS[state], shown, bold=bold),
        Piece(f"{_many(count):>5}", shown, bold=bold),
        Piece(f" {noun}", shown if bold else "text" if count else "faint", bold=False),
        Piece(f"  {more}" if more else "", "faint"),
    )


def _start(seconds: float | None) -> str:
    if seconds is None:
        return ""
    return f"in {short(seconds)}" if seconds else "due"
