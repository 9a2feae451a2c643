"""What could not be sent to the hooks of a board, for those who list it and send it again.

The deliveries are in a folder of the board's host, or behind the server of a board over HTTP.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, runtime_checkable

from dibs.model.answers import Finding
from dibs.serve.deliveries import KIND, Deliveries, Failed, HookPlace, hooks_in, place_of

if TYPE_CHECKING:
    from dibs.board import Board

SEND, REMOVE = "send", "remove"
"""What can be done with failed deliveries."""
STATUS = {SEND: "queued", REMOVE: "removed"}
NOTED = "hook"
"""The verb of the log's line about deliveries that were sent again or removed."""
AT_ONCE = 1000
"""So many ids are in one request."""
MOST = 10_000
"""So many failed deliveries are listed, the oldest events of each hook first."""
_PATH = "/v1/deliveries"
_LATEST = 2.0**36


class HookSummary(NamedTuple):
    """A hook in figures."""

    hook: str
    waiting: int
    failed: int
    dropped: int
    """How many failed deliveries were removed to make room."""
    missed: int
    """How often events were removed from the log before they were read."""
    reason: str
    """Why the newest of the failed deliveries failed; empty if that is not known."""
    trouble: str
    """Why nothing is sent now; empty if nothing is wrong."""

    @property
    def problem(self) -> str:
        """What is wrong, in one line; empty if it reaches its receiver."""
        parts = [self.trouble] if self.trouble else []
        parts += [f"{self.failed:,} failed"] if self.failed else []
        parts += [f"{self.dropped:,} dropped"] if self.dropped else []
        parts += [f"log not read in time: {self.missed:,} times"] if self.missed else []
        return ", ".join(parts)


class DeliveryId(NamedTuple):
    """A delivery, by its hook and its id."""

    hook: str
    id: str


class Access(Protocol):
    """The deliveries of one board."""

    def hooks(self) -> list[HookSummary]:
        """Each hook in figures."""

    def failed(self) -> list[Failed]:
        """The failed deliveries of all hooks."""

    def act(self, act: str, idents: Iterable[str], by: str = "") -> list[DeliveryId]:
        """Send these again or remove them; returns those that there were."""


class FolderDeliveries:
    """The deliveries in a folder."""

    def __init__(self, board: Board, place: HookPlace) -> None:
        self._board = board
        self._place = place

    def hooks(self) -> list[HookSummary]:
        """Each hook in figures, also one of the settings that has no deliveries yet."""
        names = {*hooks_in(self._place), *(hook.name for hook in self._board.settings.hooks)}
        return [_summary(Deliveries(self._place, name)) for name in sorted(names)]

    def failed(self) -> list[Failed]:
        """The failed deliveries of all hooks."""
        return [each for one in self._kept() for each in one.failed()]

    def act(self, act: str, idents: Iterable[str], by: str = "") -> list[DeliveryId]:
        """Send these again or remove them; the log has a line for each hook."""
        wanted, found = list(idents), []
        for one in self._kept():
            do = one.send_again if act == SEND else one.remove
            changed = [DeliveryId(one.hook, ident) for ident in wanted if do(ident)]
            if changed:
                text = f"{one.hook}: {len(changed)} failed deliveries {STATUS[act]}"
                self._board.log.note(NOTED, text, by)
            found += changed
        return found

    def _kept(self) -> list[Deliveries]:
        return [Deliveries(self._place, name) for name in hooks_in(self._place)]


@runtime_checkable
class ServedBoard(Protocol):
    """A board over HTTP."""

    @property
    def served(self) -> Any:
        """The session with its server."""


class ServedDeliveries:
    """The deliveries behind a server."""

    def __init__(self, session: Any) -> None:
        self._session = session

    def hooks(self) -> list[HookSummary]:
        """Each hook in figures."""
        found: list[HookSummary] = self._value(list[HookSummary], "hooks", limit=0)
        return found

    def failed(self) -> list[Failed]:
        """The failed deliveries of all hooks."""
        found: list[Failed] = self._value(list[Failed], "failed", limit=MOST)
        return [each if 0 <= each.at < _LATEST else each._replace(at=0.0) for each in found]

    def act(self, act: str, idents: Iterable[str], by: str = "") -> list[DeliveryId]:
        """Send these again or remove them."""
        wanted, found = list(idents), []
        for at in range(0, len(wanted), AT_ONCE):
            body = {"act": act, "ids": wanted[at : at + AT_ONCE]}
            answer: Mapping[str, object] = self._session.change(_PATH, f"the {act}", body, by=by)
            found += self._session.value(list[DeliveryId], answer, "changed")
        return found

    def _value(self, kind: Any, key: str, *, limit: int) -> Any:
        return self._session.value(kind, self._session.get(_PATH, limit=limit), key)


def access(board: Board, given: str | None = None) -> Access:
    """The deliveries of a board, in the folder given or in its own; refused if it has none."""
    if given is None and isinstance(board, ServedBoard):
        return ServedDeliveries(board.served)
    return FolderDeliveries(board, place_of(board.location, given))


def findings(board: Board) -> list[Finding]:
    """One finding for each hook that does not reach its receiver."""
    if not board.location.folder and not isinstance(board, ServedBoard):
        return []
    found = []
    for one in access(board).hooks():
        if problem := one.problem:
            more = f", {one.waiting:,} waiting" * bool(one.waiting)
            more += f"; the last: {one.reason}" * bool(one.reason)
            found.append(Finding(KIND, one.hook, problem + more))
    return found


def _summary(one: Deliveries) -> HookSummary:
    state = one.state()
    waiting, failed = len(one.queued()), one.failed_count()
    reason = one.last_reason() if failed else ""
    return HookSummary(
        one.hook, waiting, failed, state.dropped, state.missed, reason, one.trouble()
    )
