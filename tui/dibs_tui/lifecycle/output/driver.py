"""Textual's driver, with output over a `Link`."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Literal, Protocol, runtime_checkable

from textual import events
from textual.drivers import linux_driver
from textual.drivers.linux_driver import LinuxDriver

from dibs_tui.lifecycle.output.escape import EscapeParser
from dibs_tui.lifecycle.output.link import Link

if TYPE_CHECKING:
    from textual.message import Message

_GOING = 1.0
"""Seconds to wait at exit until the terminal has taken the last output."""


_ANSWER = 0.3
"""Seconds to wait at exit for the terminal's last answer."""


@runtime_checkable
class Redrawing(Protocol):
    """An app that sends its picture over the link."""

    alt_keys: frozenset[str]
    """The keys with alt that are bound to commands."""

    def keys_arrived(self, times: list[float]) -> None: ...
    def pump(self) -> None: ...
    def redraw(self) -> None: ...


class Driver(LinuxDriver):
    """Reads keys as Textual does, and writes over a `Link`."""

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self.link: Link | None = None

    def run_input_thread(self) -> None:
        """Read the keys, including Escape right before another one."""
        app = self._app
        EscapeParser.kept = app.alt_keys if isinstance(app, Redrawing) else frozenset()
        EscapeParser.arrived = app.keys_arrived if isinstance(app, Redrawing) else None
        vars(linux_driver)["XTermParser"] = EscapeParser  # it takes no parser as an argument
        super().run_input_thread()

    def write(self, data: str) -> None:
        """Queue output."""
        if self.link is not None:
            self.link.send(data)

    def start_application_mode(self) -> None:
        """Take over the terminal."""
        assert self._file is not None
        self.link = Link(self._file.fileno(), self._written)
        self.link.start()
        super().start_application_mode()  # type: ignore[no-untyped-call]
        self._call("redraw")  # after a suspend the terminal shows something else

    def stop_application_mode(self) -> None:
        """Give the terminal back after its last answer; otherwise the shell would read that."""
        until = time.monotonic() + _ANSWER
        while self.link is not None and self.link.asked and time.monotonic() < until:
            time.sleep(0.01)
        super().stop_application_mode()

    def close(self) -> None:
        """Send what is left."""
        super().close()
        if self.link is not None:
            self.link.end(_GOING)

    def process_message(self, message: Message) -> None:
        """Take the answers to the link's cursor queries; pass on everything else."""
        if isinstance(message, events.CursorPosition) and self.link is not None:
            self.link.answered()
            self._written()
            return
        super().process_message(message)

    def _written(self) -> None:
        """Let the app send more; called from the threads of the link and of the keys."""
        with suppress(RuntimeError):  # the loop has ended
            self._loop.call_soon_threadsafe(self._call, "pump")

    def _call(self, what: Literal["pump", "redraw"]) -> None:
        app = self._app
        if isinstance(app, Redrawing):
            app.pump() if what == "pump" else app.redraw()
