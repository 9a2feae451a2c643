"""What every screen of this app has: the app by its own type."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.message_pump import MessagePump

if TYPE_CHECKING:
    from dibs_tui.app import DibsApp


class Own(MessagePump):
    """Stands before the kind of screen among the bases."""

    @property
    def dibs(self) -> DibsApp:
        """The app, by its own type."""
        from dibs_tui.app import DibsApp

        assert isinstance(self.app, DibsApp)
        return self.app
