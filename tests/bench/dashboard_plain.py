"""The same board in a plain DataTable, as most people would write it: the baseline."""

from __future__ import annotations

import sys

from textual.app import App, ComposeResult
from textual.widgets import DataTable, Header, Label
from watchfiles import awatch

from dibs import Task
from dibs.files.engine import open_directory

_COLUMNS = ("state", "id", "priority", "owner", "fence", "tries")


class PlainBoard(App[None]):
    """One row for each task, updated by file system events and sorted after each batch."""

    def __init__(self, path: str) -> None:
        super().__init__()
        self.path = path
        self.view = open_directory(path).view()

    def compose(self) -> ComposeResult:
        yield Header(show_clock=True)
        yield Label("", id="counts")
        yield DataTable[str](cursor_type="row")

    def on_mount(self) -> None:
        table = self.query_one(DataTable)
        for column in _COLUMNS:
            table.add_column(column, key=column, width=16)
        for task in self.view.scan().added:
            table.add_row(*_cells(task), key=task.id)
        self.show()
        self.run_worker(self.listen())

    async def listen(self) -> None:
        table = self.query_one(DataTable)
        async for changes in awatch(self.path, debounce=100, step=20, watch_filter=None):
            change = self.view.hint({path[len(self.path) + 1 :] for _, path in changes})
            came = {task.id: task for task in change.added}
            for task in change.removed:
                if task.id not in came:
                    table.remove_row(task.id)
            for ident, task in came.items():
                if ident in table.rows:
                    for column, cell in zip(_COLUMNS, _cells(task), strict=True):
                        table.update_cell(ident, column, cell)
                else:
                    table.add_row(*_cells(task), key=ident)
            self.show()

    def show(self) -> None:
        table = self.query_one(DataTable)
        table.sort("priority", "id", key=lambda cells: (-int(cells[0]), cells[1]))
        self.query_one("#counts", Label).update(f"{table.row_count:,} rows")


def _cells(task: Task) -> tuple[str, ...]:
    return (
        task.state, task.id, str(task.priority), task.owner, str(task.fence), str(task.attempts)
    )  # fmt: skip


if __name__ == "__main__":
    PlainBoard(sys.argv[1]).run()
