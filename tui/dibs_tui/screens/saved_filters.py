"""The command that saves the filter under a name, and the saved filters of the palette."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

from dibs_tui.settings.memory import SAVED, is_name
from dibs_tui.text.safe import clean

if TYPE_CHECKING:
    from textual.app import App

    from dibs_tui.screens.command_runner import Handler
    from dibs_tui.screens.dashboard import Dashboard


class SavedFilters:
    """Saves filters for this user, and sets or removes those that were saved."""

    def __init__(
        self,
        app: App[Any],
        dashboard: Dashboard,
        line: Callable[[], str],
        show: Callable[[str], object],
    ) -> None:
        """`line` is the filter that is set now; `show` sets another one."""
        self._app = app
        self._dashboard = dashboard
        self._line = line
        self._show = show
        self.handlers: dict[str, Handler] = {"save-filter": self._save}

    def entries(self) -> Iterator[tuple[str, str, Callable[[], object]]]:
        """For the palette: title, terms and what to do, for each saved filter."""
        saved = sorted(self._dashboard.remembered.filters.items())
        for name, line in saved:
            yield f"filter {name}", line, partial(self._show, line)
        for name, line in saved:
            yield f"remove filter {name}", line, partial(self._dashboard.save_filter, name, "")

    def _save(self) -> str | None:
        from dibs_tui.screens.enter_line import EnterLine

        line = self._line()
        if not line:
            return "no filter is set: / sets one"
        hint = "letters, digits, - and _; Enter saves, Esc cancels"
        self._app.push_screen(
            EnterLine(
                "save filter", f"Name for {clean(line)}", "", hint, partial(self._named, line)
            )
        )
        return None

    def _named(self, line: str, name: str) -> str:
        """Save the filter; returns what is wrong with the name."""
        name, filters = name.strip(), self._dashboard.remembered.filters
        if not is_name(name):
            return "a name has 1 to 40 letters, digits, - or _"
        if name not in filters and len(filters) >= SAVED:
            return f"{SAVED} filters are saved: remove one first, with the palette (:)"
        if not self._dashboard.save_filter(name, line):
            return "this filter is too long to be saved"
        self._app.notify(f"filter {name} saved: the palette (:) lists it", markup=False, timeout=4)
        return ""
