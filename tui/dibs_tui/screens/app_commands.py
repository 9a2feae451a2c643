"""The commands that concern neither a view nor a task: theme, locks, other screens, quit."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from textual.app import App

    from dibs_tui.screens.command_runner import Handler
    from dibs_tui.screens.dashboard import Dashboard

_STOPPED = "{:,} claims on several hosts stopped together, and none of them is back"


class AppCommands:
    """Runs the commands that do the same wherever the cursor is."""

    def __init__(self, app: App[Any], dashboard: Dashboard) -> None:
        self._app = app
        self._dashboard = dashboard
        self.handlers: dict[str, Handler] = {
            "theme": dashboard.next_theme,
            "mute": dashboard.toggle_mute,
            "unlock": self._unlock,
            "brake": self._allow_bulk_acts,
            "wall": self._wall,
            "refresh": self._refresh,
            "suspend": app.action_suspend_process,
            "commands": app.action_command_palette,
            "help": self._help,
            "quit": app.exit,
        }

    def _unlock(self) -> str | None:
        from dibs_tui.screens.unlock import UnlockScreen

        if why := self._dashboard.source.health.why_read_only:
            return f"not possible: {why}"
        if not self._dashboard.read_only:
            return "not needed: the dashboard is not read-only"
        self._app.push_screen(
            UnlockScreen(
                "read-only", "unlock", "allow acts for five minutes", self._dashboard.unlock
            )
        )
        return None

    def _allow_bulk_acts(self) -> str | None:
        from dibs_tui.screens.unlock import UnlockScreen

        brake = self._dashboard.model.brake
        if not brake.why(time.monotonic()):
            return "not needed: they are not locked"
        self._app.push_screen(
            UnlockScreen(
                "bulk acts are locked",
                str(brake.stopped or "allow"),
                "allow acts on many claims although "
                + (_STOPPED.format(brake.stopped) if brake.stopped else "the storage is suspect"),
                brake.unlock,
            )
        )
        return None

    def _wall(self) -> None:
        from dibs_tui.screens.wall import WallScreen

        self._app.push_screen(WallScreen(self._dashboard))

    def _refresh(self) -> None:
        self._dashboard.redraw()
        self._dashboard.source.refresh()

    def _help(self) -> None:
        from dibs_tui.screens.help import HelpScreen

        self._app.push_screen(HelpScreen(self._dashboard.commands))
