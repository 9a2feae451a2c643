"""Sends the events of a board to its hooks: one thread for each hook, apart from all requests.

Of several servers before one board, the one that holds the hook's lock sends. It reads the log from
a cursor that is kept beside the deliveries: first the deliveries are written, then the cursor, then
they are sent. So after a crash no event is left out, and a delivery that was perhaps sent is sent
again with the same id.

Servers may have folders of their own. The one that sends says in the note of the lock up to which
cursor all was received, and those that wait keep that in their folders. So the next sender leaves
nothing out, and sends the last events again at most.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from hashlib import sha256
from typing import TYPE_CHECKING, NamedTuple

from dibs.board import open
from dibs.host import boottime
from dibs.model.breaker import Breaker
from dibs.model.errors import DibsError, Held, Paused
from dibs.model.hooks import LOCK, Hook
from dibs.model.outputs import NOTE_CHARS
from dibs.model.sample import SECOND
from dibs.model.settings import OFF
from dibs.serve.deliveries import WAITING, Deliveries, Delivery, HookPlace, HookState
from dibs.serve.hook_request import SECONDS, NotDelivered, deliver, refused_address
from dibs.serve.problems import Refusal
from dibs.serve.values import cursor_of, cursor_text, plain

if TYPE_CHECKING:
    from dibs.board import Board, Claim
    from dibs.model.events import Event
    from dibs.serve.hook_request import Network

TTL = 60.0
"""The lease of a sender: another one goes on about so long after one that hangs."""
_RENEW = 30.0
"""With so much left the lease is renewed; a try ends within it."""
_LOOK = 0.5
"""Seconds between two looks at the log."""
_AGAIN = 5.0
"""Seconds between two tries to become the sender, or to go on after an error."""
_SAY = 5.0
"""Seconds between two notes of the cursor."""
_AT_ONCE = 2_000
"""So many events are read from the log at a time, about."""
_REPEAT = 600.0
"""Seconds after which a problem that lasts is reported again."""
_BREAKER = 5
"""After so many failed tries in a row a hook waits, because its receiver is down."""
_OWNER = "serve-"
"""How the owner of the lock begins while a sender has it."""
_NOTED = "all received up to "
"""How the note of the lock begins."""
assert _RENEW > 2 * SECONDS


class HookTarget(NamedTuple):
    """A hook with what only the server knows of it."""

    hook: Hook
    secret: bytes


class HookSenders:
    """The threads that send."""

    def __init__(
        self,
        where: str,
        place: HookPlace,
        targets: Sequence[HookTarget],
        networks: Sequence[Network],
        complain: Callable[[str], object],
    ) -> None:
        """`complain` receives what goes wrong, in one line; it is called in other threads."""
        self.place = place
        self._stop = threading.Event()
        self._senders = [
            _Sender(where, place, target, networks, complain, self._stop) for target in targets
        ]

    def begin(self) -> None:
        """Start to send."""
        for sender in self._senders:
            sender.start()

    def stop(self) -> None:
        """Begin no other try."""
        self._stop.set()

    def end(self, seconds: float) -> None:
        """Wait so long for the tries that go on; one that is cut off is made again."""
        until = time.monotonic() + seconds
        for sender in self._senders:
            if sender.is_alive():
                sender.join(max(0.0, until - time.monotonic()))


class _Sender(threading.Thread):
    """Sends to one hook while it holds the hook's lock."""

    def __init__(
        self,
        where: str,
        place: HookPlace,
        target: HookTarget,
        networks: Sequence[Network],
        complain: Callable[[str], object],
        stop: threading.Event,
    ) -> None:
        super().__init__(name=f"dibs-hook-{target.hook.name}", daemon=True)
        self._where = where
        self._place = place
        self._hook, self._secret = target
        self._metadata = f"hook={target.hook.name}"
        """How the metadata of the lock begins while a sender has it."""
        self._noted, self._noted_at = "", 0.0
        """The cursor that others know, and when it was noted."""
        self._networks = networks
        self._complain = complain
        self._stopped = stop
        self._said, self._said_at = "", 0.0
        self._breaker: Breaker
        self._board: Board
        self._kept: Deliveries
        self._state = HookState()
        self._order = 0
        """How many events were added, which orders those of one millisecond."""
        self._waiting: list[Delivery] = []
        """What was found waiting, the oldest event first."""

    def run(self) -> None:
        """Become the sender again and again, until stopped."""
        self._check_address()
        while not self._stopped.is_set():
            try:
                with closing(open(self._where)) as self._board:
                    self._try_to_send()
            except Refusal as error:  # a cursor that cannot be read
                self._say(f"the cursor is invalid: {error}")
            except DibsError as error:
                self._say(str(error))
            except OSError as error:
                self._say(error.strerror or str(error))
            self._stopped.wait(_AGAIN)

    def _try_to_send(self) -> None:
        """Become the sender as soon as no other has the lock, with the board that is open.

        What it has seen of the clock shows when the lease of one that hangs is over.
        """
        while not self._stopped.is_set():
            try:
                self._send()
            except Held as error:
                self._held(error)
            except Paused as error:
                self._trouble(f"no lock can be acquired: {error}")
            self._stopped.wait(_AGAIN)

    def _say(self, text: str) -> None:
        """Report a problem: at once, and again from time to time while it lasts."""
        if text != self._said or time.monotonic() - self._said_at >= _REPEAT:
            self._said, self._said_at = text, time.monotonic()
            self._complain(f"hook {self._hook.name}: {text}")

    def _trouble(self, text: str) -> None:
        """Report why nothing is sent, and keep it for `dibs deliveries` and the dashboard."""
        self._say(text)
        with suppress(DibsError, OSError):
            Deliveries(self._place, self._hook.name).keep_trouble(text)

    def _held(self, error: Held) -> None:
        """Another server sends; or else something that is no sender has the hook's lock."""
        if self._is_sender(error):
            self._said = ""
            return
        self._trouble(
            f"nothing is sent: {error.owner} has its lock, and is no server of this board: free it "
            f"with `dibs force-release {error.task.stem} --reason TEXT`"
        )

    def _is_sender(self, error: Held) -> bool:
        return error.metadata.partition(" ")[0] == self._metadata

    def _follow(self, error: Held, folder: str) -> None:
        """Keep how far another sender has come, if its deliveries are in another folder."""
        theirs = error.metadata.partition(" ")[2]
        if not self._is_sender(error) or not theirs or theirs == folder:
            return
        state, cursor = self._kept.state(), ""
        holder = self._board.holder(error.task)
        if holder is not None and holder.note.startswith(_NOTED):
            cursor = holder.note.removeprefix(_NOTED)
            cursor_of(cursor)  # else it is refused
        elif not state.cursor:
            cursor = cursor_text(self._board.log.end())  # nothing after this is left out
        if cursor not in ("", state.cursor):
            self._kept.keep(state._replace(cursor=cursor))

    def _note(self, claim: Claim) -> None:
        """Say to servers with other folders up to where all was received."""
        cursor, now = self._state.cursor, time.monotonic()
        if self._waiting or cursor == self._noted or now - self._noted_at < _SAY:
            return
        self._noted_at = now
        if len(_NOTED) + len(cursor) <= NOTE_CHARS:
            claim.note(_NOTED + cursor)
            self._noted = cursor

    def _check_address(self) -> None:
        """Report an address that no try will reach, before there is anything to send."""
        refused = refused_address(self._hook.address, self._networks)
        if refused:
            self._trouble(f"nothing can be sent: {refused}")

    def _send(self) -> None:
        """Hold the lock, and send until stopped or until the lock is lost."""
        board = self._board
        board.require_mounted()
        durable = board.settings.durability != OFF
        self._kept = Deliveries(self._place, self._hook.name, durable=durable)
        self._kept.begin()
        folder, ident = f"folder={self._kept.identity()}", f"{LOCK}{self._hook.name}"
        try:
            claim = board.acquire(
                ident,
                owner=f"{_OWNER}{board.host.name}"[:60],
                ttl=TTL,
                metadata=f"{self._metadata} {folder}",
                process=os.getpid(),
            )
        except Held as error:
            self._follow(error, folder)
            raise
        try:
            self._breaker, self._noted = Breaker(_BREAKER), ""
            self._kept.tidy()
            self._kept.keep_trouble("")
            self._check_address()
            self._state = self._kept.state()
            if not self._state.cursor:
                claims = [event for event in board.log.of(ident) if event.verb == "claim"]
                senders = [event for event in claims if f".{_OWNER}" in event.dst]
                self._begin_here(len(senders) > 1)
            first = True
            while not self._stopped.is_set():
                self._renew(claim)
                claim.verify()  # an operator may have taken the lock
                self._waiting = self._kept.queued()
                self._read_log(claim, first=first)
                first = False
                self._send_due(claim)
                self._note(claim)
                self._said = ""
                self._stopped.wait(_LOOK)
        finally:
            claim.release()

    def _begin_here(self, sent_before: bool) -> None:
        """Begin with the events from now on, because this folder has no cursor."""
        self._keep(
            self._state._replace(
                cursor=cursor_text(self._board.log.end()),
                missed=self._state.missed + sent_before,
            )
        )
        if sent_before:
            self._complain(
                f"hook {self._hook.name}: it was sent from another folder, and this one does not "
                "know how far: events before now are not sent from here"
            )

    def _renew(self, claim: Claim) -> None:
        """See to it that enough time is left for one try; raises if the lock is lost."""
        if boottime() >= claim.deadline - int(_RENEW * SECOND):
            claim.beat()

    # From the log to deliveries

    def _read_log(self, claim: Claim, *, first: bool) -> None:
        """Add what has happened since the cursor, while there is room.

        The first time also without room: a sender that was killed may have added deliveries
        without the cursor after them, and none of these may be sent before it.
        """
        log = self._board.log
        while (first or len(self._waiting) < WAITING) and not self._stopped.is_set():
            first, known = False, {one.id for one in self._waiting}
            cursor = cursor_of(self._state.cursor)
            missed = log.missed(cursor)
            events, after = log.since(cursor, _AT_ONCE)
            text = cursor_text(after)
            if text == self._state.cursor:
                return
            for event in events:
                if self._hook.wants(event):
                    ident, body = self._delivery(event)
                    if ident not in known:
                        self._renew(claim)
                        self._order += 1
                        self._kept.add(ident, self._order, body)
            self._renew(claim)
            if missed:
                self._complain(f"hook {self._hook.name}: events were removed from the log unread")
            self._keep(self._state._replace(cursor=text, missed=self._state.missed + bool(missed)))
            self._waiting = self._kept.queued()
            if not events:
                return

    def _delivery(self, event: Event) -> tuple[str, bytes]:
        """The id and the body for an event, the same whenever it is read."""
        fields = plain(event)
        text = json.dumps([self._hook.name, fields], sort_keys=True).encode()
        ident = f"{int(event.at * 1000):014d}-{sha256(text).hexdigest()[:16]}"
        body = {
            "v": 1,
            "hook": self._hook.name,
            "delivery": ident,
            "board": self._board.location.label,
            "event": fields,
        }
        return ident, json.dumps(body).encode()

    def _keep(self, state: HookState) -> None:
        self._kept.keep(state)
        self._state = state

    # From deliveries to the receiver

    def _send_due(self, claim: Claim) -> None:
        """Send what is due, one after another, for about a second."""
        until = time.monotonic() + 1.0
        longest = max(self._hook.retry, default=0.0)
        for one in self._waiting:
            self._breaker.over(boottime())
            if self._stopped.is_set() or time.monotonic() >= until or not self._breaker.allows():
                break
            wait = (one.due or 0) - time.time()
            if 0 < wait <= longest + 1:  # a longer one means that the clock was set back
                continue
            self._renew(claim)
            taken = self._kept.take(one, claim.task.fence)
            if taken is not None:
                self._try(taken)

    def _try(self, one: Delivery) -> None:
        """Send it once, and mark how that ended."""
        body = self._kept.body(one)
        self._breaker.began(one.id)
        try:
            if body is None:
                raise NotDelivered("its file cannot be read")
            deliver(self._hook.address, one.id, body, self._secret, self._networks)
        except NotDelivered as error:
            self._failed(one, str(error))
            self._breaker.ended(one.id, "failed", boottime())
        else:
            self._kept.sent(one)
            self._kept.keep_trouble("")
            self._breaker.ended(one.id, "done", boottime())

    def _failed(self, one: Delivery, reason: str) -> None:
        if one.tries <= len(self._hook.retry):
            due = int(time.time() + self._hook.retry[one.tries - 1]) + 1
            self._kept.retry(one, due, reason)
            return
        dropped = self._kept.give_up(one, reason)
        if dropped:
            self._keep(self._state._replace(dropped=self._state.dropped + dropped))
