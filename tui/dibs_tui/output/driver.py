"""Textual's driver, with a way to the terminal of our own."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Literal, Protocol, runtime_checkable

from textual import events
from textual.drivers import linux_driver
from textual.drivers.linux_driver import LinuxDriver

from dibs_tui.output.escape import EscapeParser
from dibs_tui.output.link import Link

if TYPE_CHECKING:
    from textual.message import Message

_GOING = 1.0
"""Seconds that the end waits for a terminal to take what is left."""


_ANSWER = 0.3
"""Seconds that it waits for the terminal's last answer."""


@runtime_checkable
class Painter(Protocol):
    """An app that sends its picture over the link."""

    alt_keys: frozenset[str]
    """The keys with alt that do something."""

    def pump(self) -> None: ...
    def redraw(self) -> None: ...


class Driver(LinuxDriver):
    """Hears the keys as Textual does; what is written goes over a `Link`."""

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self.link: Link | None = None

    def run_input_thread(self) -> None:
        """Hear the keys, Escape right before another one as well."""
        app = self._app
        EscapeParser.kept = app.alt_keys if isinstance(app, Painter) else frozenset()
        vars(linux_driver)["XTermParser"] = EscapeParser  # it takes no parser as an argument
        super().run_input_thread()

    def write(self, data: str) -> None:
        """Write that next."""
        if self.link is not None:
            self.link.send(data)

    def start_application_mode(self) -> None:
        """Take the terminal."""
        assert self._file is not None
        self.link = Link(self._file.fileno(), self._written)
        self.link.start()
        super().start_application_mode()  # type: ignore[no-untyped-call]
        self._call("redraw")  # after a stop the shell's screen may be anywhere

    def stop_application_mode(self) -> None:
        """Give the terminal back, when its last answer has come: the shell would get it else."""
        until = time.monotonic() + _ANSWER
        while self.link is not None and self.link.asked and time.monotonic() < until:
            time.sleep(0.01)
        super().stop_application_mode()

    def close(self) -> None:
        """Let the terminal take what is left."""
        super().close()
        if self.link is not None:
            self.link.end(_GOING)

    def process_message(self, message: Message) -> None:
        """Where the cursor is was asked behind each piece: the answer is no event of the app."""
        if isinstance(message, events.CursorPosition) and self.link is not None:
            self.link.answered()
            self._written()
            return
        super().process_message(message)

    def _written(self) -> None:
        """Called from the threads of the link and of the keys."""
        with suppress(RuntimeError):  # the loop has ended
            self._loop.call_soon_threadsafe(self._call, "pump")

    def _call(self, what: Literal["pump", "redraw"]) -> None:
        app = self._app
        if isinstance(app, Painter):
            app.pump() if what == "pump" else app.redraw()
