"""Everything around the panels of the board screen: what each row shows now, and where it is."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from shlex import join
from typing import TYPE_CHECKING

from dibs_tui.model.commands import spelled
from dibs_tui.model.frame import graph_band, notice_row, tab_rows
from dibs_tui.model.frame.keys_row import keys_row
from dibs_tui.model.frame.notice_row import RowNotice, board_notices, shared_notice
from dibs_tui.model.frame.pieces import Piece, cut, folded
from dibs_tui.model.frame.status_row import Listed, Said, row_fact, said_pieces, status_row
from dibs_tui.model.frame.tally import Tally
from dibs_tui.model.frame.title_row import Title, title_row
from dibs_tui.text.ages import brief, clock, short
from dibs_tui.text.safe import clean
from dibs_tui.widgets.frame_rows import FrameRows
from dibs_tui.widgets.listing import ListView
from dibs_tui.widgets.toasts import Toast, said_of

if TYPE_CHECKING:
    from dibs.model.health import Health
    from dibs_tui.model.frame.pieces import Pieces
    from dibs_tui.screens.board_keys import BoardKeys
    from dibs_tui.screens.dashboard import Dashboard
    from dibs_tui.widgets.body import Body

LOW = 12
"""Rows below which the tabs leave their room to the table."""
_LOWEST = 6
"""Rows below which only the title and the table are shown."""

_BESIDE, _WRONG = 34, 60
"""The cells beside a filter that is being typed, and beside an invalid one in percent; the style
sheet has the same."""
_WRONG_ROWS = 9
"""The rows beside a filter into which what is wrong with it is broken; the row of the keys takes
all but the first."""
_COPIES = (Piece("y", "accent", bold=True), Piece(" copies line 1", "muted"))


class BoardFrame:
    """The rows above and below the panels."""

    def __init__(self, dashboard: Dashboard, body: Body, keys: BoardKeys) -> None:
        self._dashboard = dashboard
        self._model = dashboard.model
        self._source = dashboard.source
        self._body = body
        self._keys = keys
        self._spelled = {
            command.id: spelled(command.keys[0]) for command in dashboard.commands if command.keys
        }
        """The user's key of each command."""
        self._tally = Tally(dashboard.model, body.problems.total)
        self._graphs: graph_band.Graphs | None = None
        self._graphs_key: tuple[object, ...] = ()
        self._shown: dict[FrameRows, object] = {}
        """What each of the rows was made from that are shown."""
        self.title = FrameRows(id="title")
        self.band = FrameRows(id="band")
        self.tabs = FrameRows(id="tabs")
        self.notice = FrameRows(id="notice", ground="bg")
        self.status = FrameRows(id="status", ground="bg")
        self.footer = FrameRows(id="footer")
        self.notices: list[RowNotice] = []
        """All notices that apply now, the gravest first."""
        self.compact = False
        self.fact: Pieces = ()
        """What the status row says of the row under the cursor, in full."""
        self._wrong_rest: Pieces = ()
        """What the status row has no room for of what is wrong with a filter."""
        self.filtering = False
        """Whether a filter is being typed: it takes most of the status row."""

    # The layout

    def lay_out(self, cells: int, lines: int) -> None:
        """Show the rows that a terminal of this size has."""
        self.band.display = (
            cells >= graph_band.WIDE and lines >= graph_band.HIGH and not self.compact
        )
        self.band.styles.height = graph_band.ROWS
        self.tabs.display = lines >= LOW
        self.tabs.styles.height = tab_rows.height(cells)
        self.notice.display = lines >= notice_row.HIGH
        self.status.display = lines >= _LOWEST
        self.footer.display = lines >= _LOWEST

    @property
    def _cells(self) -> int:
        return self._body.app.size.width

    # What the rows show

    def show(self, filter_text: str, wrong: str) -> None:
        """Show the board as it is now, but no notices; rows that read the same cost nothing."""
        health, cells, view = self._source.health, self._cells, self._body.view
        title = self._title(health)
        self._show(self.title, (title, cells), lambda: [title_row(title, cells)])
        known = self._is_known(health)
        counts = self._tally.counts(known=known)
        tabs = view, tuple(counts.items()), cells
        self._show(self.tabs, tabs, lambda: tab_rows.tab_rows(view, counts, cells))
        self._show_band(known=known)
        self.show_status(filter_text, wrong)
        self.show_keys()

    def _show(self, rows: FrameRows, source: object, make: Callable[[], list[Pieces]]) -> None:
        """Show rows that `make` makes from the source alone; from an equal one only once."""
        if source != self._shown.get(rows):
            self._shown[rows] = source
            rows.show(make())

    def _is_known(self, health: Health) -> bool:
        """Whether the board was ever read: else its counts are not known."""
        return bool(health.fresh) or (not health.trouble and bool(self._model.tasks))

    def _show_band(self, *, known: bool) -> None:
        if not self.band.display:
            return
        if not known:
            self._show(self.band, (), list)
            return
        cells, model, view = self._cells, self._model, self._body.view
        key = graph_band.graphs_key(model, view, cells)
        if self._graphs is None or key != self._graphs_key:
            self._graphs_key, self._graphs = key, graph_band.graphs_of(model, view, cells)
        band = graph_band.band_of(model, view, self._graphs, self._tally.workers)
        self._show(self.band, (band, cells), lambda: graph_band.band_rows(band, cells))

    def show_notices(self, trouble: str) -> None:
        """Show the gravest notice where it has a row of its own."""
        body, dashboard = self._body, self._dashboard
        place = clean(self._source.label)
        if place != "/":  # the title shows it
            trouble = trouble.replace(f"{place}: ", "").replace(f"{place}/", "./")
            trouble = trouble.replace(f" from {place} ", " ")
        held_back = body.held_back if body.paused else None
        self.notices = list(
            board_notices(
                self._model,
                trouble,
                full=clean(self._source.health.why_full),
                held_back=held_back,
                writable=self._source.health.writable,
                keys=self._spelled,
                where=clean(join(("-d", self._source.location.label))),
            )
        )
        if time.monotonic() < dashboard.hints_until:
            self.notices.append(notice_row.DEMO)
        if self.notice.display:
            row = notice_row.notice_row(self.notices, self._cells, self._keys.spelled("messages"))
            self.notice.show([row])

    def dim(self, dim: bool) -> None:
        """Dim the counts and the graphs of a board that cannot be seen now."""
        self.band.dim(dim)
        self.tabs.dim(dim)

    def hide_hint(self) -> bool:
        """Hide the hint of a demo; False if it is not shown."""
        shown = time.monotonic() < self._dashboard.hints_until
        self._dashboard.hints_until = 0.0
        return shown

    def show_status(self, filter_text: str, wrong: str) -> None:
        """Show what was said, or a notice without a row of its own, or a fact about the row."""
        body, cells = self._body, self._cells
        said = said_of(self._standing())
        if wrong:
            said = Said(wrong, "error")
        fact: Pieces = row_fact(self._model, body.cursor_task)
        found = body.cursor_list
        if not fact and isinstance(found, ListView) and any(found.fact):
            name, words = found.fact
            fact = Piece(name, "text"), Piece(f"  {words}", "muted")
        self.fact = fact
        empty = False
        if self._model.complete and not self._model.tasks:
            fact, empty = _COPIES if self._source.health.writable else (), True
        if not self.notice.display and self.notices:
            fact = shared_notice(self.notices, cells - 18, self._keys.spelled("messages"))
        listed = _listed(body, filter_text) if not empty else Listed(clean(filter_text))
        if self.filtering:
            cells = cells * _WRONG // 100 if wrong else _BESIDE
            fact, listed = (), Listed(row=listed.row, rows=listed.rows)
        self._wrong_rest = ()
        if wrong and self.filtering and said is not None:
            first, *rest = folded(said_pieces(said), cells - 3, _WRONG_ROWS)
            self._wrong_rest = tuple(piece for row in rest for piece in (*row, Piece(" ")))
            said, fact, listed = None, first, Listed()
        more = "" if self.filtering else self._keys.spelled("messages")
        status = said, fact, listed, cells, more
        self._show(self.status, status, lambda: [status_row(*status)])

    def _standing(self) -> list[Toast]:
        """The messages; a warning that stood for its time gives way to a notice without a row."""
        toasts, now = self._dashboard.toasts, time.monotonic()
        if self.notice.display or not self.notices:
            return toasts
        return [toast for toast in toasts if not 0 < toast.until <= now]

    def show_keys(self) -> None:
        """Show the keys that apply now; or the rest of what is wrong with a filter."""
        cells, rest = self._cells, self._wrong_rest
        if rest:
            self._show(self.footer, (rest, cells), lambda: [(Piece(" "), *cut(rest, cells - 2))])
            return
        left, right = self._keys.now(filtering=self.filtering)
        self._show(self.footer, (left, right, cells), lambda: [keys_row(left, right, cells)])

    # The title

    def _title(self, health: Health) -> Title:
        model, dashboard = self._model, self._dashboard
        now = time.monotonic()
        age = max(0.0, now - health.fresh) if health.fresh else None
        mode, ink = mode_of(health, now, is_read=model.knows())
        at = model.clock.fs
        return Title(
            clean(self._source.label),
            mode,
            ink,
            "" if age is None else brief(age),
            age is not None and age > 3 * health.every + 3,
            dashboard.operator.where,
            f"{model.age_prefix}{clock(at / 1e9)}" if at else "--:--:--",
            tuple(self._badges(health)),
            tuple(map(clean, health.traits)) if not health.trouble else (),
        )

    def _badges(self, health: Health) -> Iterator[str]:
        model, dashboard = self._model, self._dashboard
        if model.pauses:
            yield "PAUSED"
        if model.brake.why(time.monotonic()):
            yield "BRAKE"
        if dashboard.read_only or not health.writable:
            yield "READ-ONLY"
        elif (left := dashboard.unlocked_until - time.monotonic()) > 0:
            yield f"UNLOCKED {short(left)}"
        if dashboard.janitor.on:
            yield "REAPING"
        if model.knows() and not health.live and not health.trouble:
            yield "POLLING"
        if self._body.paused:
            yield "FROZEN"
        if dashboard.alerts.muted:
            yield "MUTED"


def mode_of(health: Health, now: float, *, is_read: bool) -> tuple[str, str]:
    """How the board is seen, with its ink; `is_read`: whether it was ever read in full."""
    if health.trouble:
        return f"✗ {health.trouble}", "alarm"
    owed = health.lag(now)
    if owed and health.fresh:
        return f"… waiting {short(owed)}", "alarm"
    if health.live:
        return "● live", "ok-text"
    if not is_read:
        return "… reading", "muted"
    return f"↻ {health.every:g}s", "late"


def _listed(body: Body, filter_text: str) -> Listed:
    """The state of the list that has the cursor."""
    marks = sum(len(table.marks) for table in body.shown_tables)
    table = body.table if body.view in body.tables else None
    if table is None:
        return Listed(clean(filter_text), marks, rows=None)  # its title counts what matches
    return Listed(
        clean(filter_text), marks, table.sort, table.cursor_line + 1 if table.length else 0,
        table.length,
    )  # fmt: skip
