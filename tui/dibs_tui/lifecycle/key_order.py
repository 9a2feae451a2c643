"""Handles keys one at a time: each waits until everything that the previous one caused is done.

Textual passes a key to the focused widget and looks up the next one at once, while the first is
still on its way from the widget to its screen and the app, or as a message that closes a dialog.
Of two keys typed quickly, the second would go to the dialog that the first one closes, or to a
screen whose fields have no focus yet.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from textual.events import Callback, Key, Paste

if TYPE_CHECKING:
    from textual.app import App
    from textual.message_pump import MessagePump
    from textual.timer import Timer

Typed = Key | Paste

_ROUNDS = 4
"""How many times the marker goes round. The longest chain is Enter in the palette: the key comes
back to the app, submits, chooses an option, and that runs the command."""
_LONGEST = 5.0
"""Seconds to wait for a key; if something hangs, the next keys must still work."""


class KeyOrder:
    """Lets one key in at a time; a marker that follows it from pump to pump says it is done.

    A message pump handles its messages in order, so the marker comes after all that the key sent.
    """

    def __init__(self, app: App[Any], handle: Callable[[Typed], Awaitable[None]]) -> None:
        self._app = app
        self._handle = handle
        self._waiting: deque[Typed] = deque()
        self._number = 0
        """The number of the current key; a marker of an earlier key is ignored."""
        self._held = False
        self._limit: Timer | None = None

    async def take(self, event: Typed) -> None:
        """Handle a key now, or when those before it are done."""
        self._waiting.append(event)
        if not self._held:
            await self._next()

    def again(self, event: Key) -> None:
        """Let a key in once more, before all that wait: a screen has left so that it can work."""
        more = Key(event.key, event.character)
        more.time = event.time  # it was typed once
        self._waiting.appendleft(more)

    async def _next(self) -> None:
        """Handle waiting keys, up to one that is passed on."""
        self._held = False
        while self._waiting and not self._held:
            before = self._app.screen
            if not before.is_mounted:  # nothing on the new screen has the focus yet
                self._hold(before, 1)
                return
            event = self._waiting.popleft()
            await self._handle(event)
            if event.is_forwarded or self._app.screen is not before:
                self._hold(self._target, _ROUNDS)

    def _hold(self, pump: MessagePump, rounds: int) -> None:
        """Let no key in until the marker is back."""
        self._held, self._number = True, self._number + 1
        self._follow(pump, rounds)
        # A pump that ends loses the marker; without a limit no key would ever get in again.
        if self._limit is not None:
            self._limit.stop()
        self._limit = self._app.set_timer(_LONGEST, partial(self._arrived, self._number, 0))

    @property
    def _target(self) -> MessagePump:
        return self._app.focused or self._app.screen

    def _follow(self, pump: MessagePump, rounds: int) -> None:
        """Send a marker on its way from this pump to the app."""
        number = self._number
        _Marker(self._app, pump, lambda: self._arrived(number, rounds - 1)).go_on()

    async def _arrived(self, number: int, rounds: int) -> None:
        if number != self._number or not self._held:
            return
        if rounds:
            self._follow(self._target, rounds)
        else:
            await self._next()


class _Marker:
    """A message that goes from pump to pump up to the app.

    Its callbacks are methods without arguments: Textual inspects the signature of every partial
    function that it calls, which took a fifth of the time of a key.
    """

    def __init__(
        self, app: App[Any], pump: MessagePump, arrived: Callable[[], Awaitable[None]]
    ) -> None:
        self._app = app
        self._next: MessagePump | None = pump
        self._arrived = arrived

    def go_on(self) -> None:
        """Go to the next pump that still takes messages; the app is the last."""
        while self._next is not None and self._next is not self._app:
            pump, self._next = self._next, self._next._parent
            if pump.post_message(Callback(callback=self.go_on)):
                return
        self._app.post_message(Callback(callback=self.arrive))

    async def arrive(self) -> None:
        """Say that everything before is done."""
        await self._arrived()
