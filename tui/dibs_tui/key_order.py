"""Keys one after the other: none is looked up before all that the one before caused is done.

Textual hands a key on to the focused widget and looks the next one up at once, while the first is
still on its way: from the widget to its screen, back to the app where it is found to close the
dialog, or as a message that the dialog closes by. Typed at once, the second key would go to the
dialog that the first one closes, or to a screen whose fields have no focus yet.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from textual.events import Key, Paste

if TYPE_CHECKING:
    from textual.app import App
    from textual.message_pump import MessagePump
    from textual.timer import Timer

Typed = Key | Paste

_ROUNDS = 4
"""The key itself comes back to the app in the first, and what that caused in the next: of the Enter
that takes a command of the palette, what it submits, what is chosen by that, and the command."""
_LONGEST = 5.0
"""Seconds that a key is waited for: where something hangs, the next ones must get through."""


class KeyOrder:
    """Lets one key in at a time; a note that follows each from pump to pump says that it is done.

    A pump handles its messages in the order in which they came, so the note is behind them all.
    """

    def __init__(self, app: App[Any], handle: Callable[[Typed], Awaitable[None]]) -> None:
        self._app = app
        self._handle = handle
        self._waiting: deque[Typed] = deque()
        self._number = 0
        """Which key is on its way; a note of an earlier one is too late."""
        self._held = False
        self._limit: Timer | None = None

    async def take(self, event: Typed) -> None:
        """Handle a key now, or once those before it are done."""
        self._waiting.append(event)
        if not self._held:
            await self._next()

    async def _next(self) -> None:
        """Handle those that wait, up to one that goes on its way."""
        self._held = False
        while self._waiting and not self._held:
            before = self._app.screen
            if not before.is_mounted:  # nothing on it has the focus yet
                self._hold(before, 1)
                return
            event = self._waiting.popleft()
            await self._handle(event)
            if event.is_forwarded or self._app.screen is not before:
                self._hold(self._target, _ROUNDS)

    def _hold(self, pump: MessagePump, rounds: int) -> None:
        """Let no key in until the note is back."""
        self._held, self._number = True, self._number + 1
        self._follow(pump, self._number, rounds)
        # A pump that ends takes the note with it, and no other key may ever come.
        if self._limit is not None:
            self._limit.stop()
        self._limit = self._app.set_timer(_LONGEST, partial(self._arrived, self._number, 0))

    @property
    def _target(self) -> MessagePump:
        return self._app.focused or self._app.screen

    def _follow(self, pump: MessagePump | None, number: int, rounds: int) -> None:
        """Go on to the next pump that still takes messages; the app's is the last."""
        while pump is not None and pump is not self._app:
            parent = pump._parent
            if pump.call_later(self._follow, parent, number, rounds):
                return
            pump = parent
        self._app.call_later(self._arrived, number, rounds - 1)

    async def _arrived(self, number: int, rounds: int) -> None:
        if number != self._number or not self._held:
            return
        if rounds:
            self._follow(self._target, number, rounds)
        else:
            await self._next()
