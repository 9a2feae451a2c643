"""The hosts of an address: each gets its share of the time, and the last that answered is first.

The library passes over a host that refuses, but when it is used without blocking, it waits for one
that is silent as long as its caller does. What a process saw of a host's clock is kept here too.
"""

from __future__ import annotations

import os
import time
from threading import Lock
from typing import NamedTuple

from dibs.model.sample import SECOND, Sample
from dibs.postgres.libpq import SILENT, Connection, ServerError, understood, version

CONNECT = 10.0
"""Seconds that a new connection may take, over all hosts."""
_PRIMARY_SINCE = 140000
"""The first version of the library that knows `target_session_attrs=primary`."""
_SAYS_MORE = (",", "connect_timeout", "service", "target_session_attrs")
_VARIABLES = ("PGHOST", "PGHOSTADDR", "PGCONNECT_TIMEOUT", "PGSERVICE", "PGTARGETSESSIONATTRS")


class ServerHost(NamedTuple):
    """One host of an address, in the library's words; empty for what the address does not say."""

    host: str = ""
    hostaddr: str = ""
    port: str = ""

    def __str__(self) -> str:
        return f"{self.host or self.hostaddr}, port {self.port or 5432}"


_order: dict[str, list[ServerHost]] = {}
"""The hosts of each address with several, as they are to be tried next. It decides nothing else."""


_UNEVEN = SECOND
"""By how much two clocks may differ from one reading to the next."""


class ServerClock:
    """What this process has seen of one server's clock, by whichever of its sessions."""

    def __init__(self) -> None:
        self.lock = Lock()
        self._seen = (Sample(0, 0), 0, 0)

    @property
    def last(self) -> Sample:
        """The latest reading."""
        return self._seen[0]

    @property
    def even(self) -> int:
        """Since when it runs as evenly as this host's boot-time clock, by that clock."""
        return self._seen[2]

    def note(self, now: Sample, slow: int) -> None:
        """Compare a reading, which took so long to come, with the latest one.

        Threads may bring theirs in another order than they were read in.
        """
        with self.lock:
            last, slowly, even = self._seen
            passed = now.boot - last.boot
            ahead = now.fs - last.fs - passed
            allowed = _UNEVEN + min(abs(passed) // 1000, _UNEVEN)
            if not last.boot or not -allowed - slowly <= ahead <= allowed + slow:
                even = max(now.boot + slow, last.boot + slowly)
            self._seen = (now, slow, even) if passed >= 0 else (last, slowly, even)


_Clocks = dict[tuple[str, ServerHost | None], ServerClock]
CLOCKS: _Clocks = {}
"""The clocks that this process has read; of an address with several hosts, each has its own."""


def _unlock() -> None:
    """Let a forked child go on: the boot-time clock, and so what was seen, is the same there."""
    for clock in list(CLOCKS.values()):
        clock.lock = Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_unlock)


def connect(where: str, options: dict[str, str], seconds: float | None) -> Connection:
    """A connection to the first host that gives one, within so many seconds.

    Without them each host has the `connect_timeout` of the address, or all have 10 s together.
    """
    if not any(word in where for word in _SAYS_MORE) and not any(map(os.environ.get, _VARIABLES)):
        return Connection(options, seconds or CONNECT)  # nearly always: nothing to take apart
    found = understood(options)
    timeout = found.get("connect_timeout", "")
    limit = max(0, int(timeout)) if timeout.removeprefix("-").isdigit() else 0
    targets = _targets(found)
    more = _attributes(found, targets)
    if seconds is None:
        seconds = limit * len(targets) or CONNECT
    if len(targets) < 2:
        return Connection(options | more, min(seconds, limit or seconds))
    return _first_of(where, targets, options | more, seconds, limit)


def note(where: str, conn: Connection, *, answers: bool) -> None:
    """The host of a connection answers, so it is the first to be tried; or it is silent."""
    target, order = conn.target, _order.get(where)
    if target is not None and order is not None:
        others = [each for each in order if each != target]
        _order[where] = [target, *others] if answers else [*others, target]


def _first_of(
    where: str, targets: list[ServerHost], options: dict[str, str], seconds: float, limit: int
) -> Connection:
    order = _order.get(where, [])
    if set(order) != set(targets):
        order = _order[where] = targets
    wanted = options.get("target_session_attrs", "")
    kinds = ("standby", "any") if wanted == "prefer-standby" else (wanted,)
    trials = [(kind, target) for kind in kinds for target in order]
    until = time.monotonic() + seconds
    errors: list[ServerError] = []
    for number, (kind, target) in enumerate(trials):
        left = max(0.0, until - time.monotonic()) / (len(trials) - number)
        own = {"target_session_attrs": kind, **target._asdict()}
        try:
            conn = Connection(
                options | {key: value for key, value in own.items() if value},
                min(left, limit or left),
            )
        except ServerError as error:
            errors.append(error)
            if str(error) == SILENT:
                errors[-1] = ServerError(f"{target} did not answer in time")
            continue
        conn.target = target
        return conn
    raise _all(errors)


def _all(errors: list[ServerError]) -> ServerError:
    """What all hosts said, on one line; one that refused the user or the database says enough."""
    for error in errors:
        if error.password or error.state[:2] in ("28", "3D"):
            return error
    lines = [str(error).partition("\n")[0] for error in errors]
    states = {error.state for error in errors}
    return ServerError("; ".join(lines), states.pop() if len(states) == 1 else "")


def _targets(found: dict[str, str]) -> list[ServerHost]:
    """The hosts one by one; a single one without a name if the library must find out itself."""
    hosts, addresses, ports = (
        found[key].split(",") if found.get(key) else [] for key in ("host", "hostaddr", "port")
    )
    count = len(addresses) or len(hosts)
    if (
        count < 2
        or len(hosts) not in (0, count)
        or len(ports) not in (0, 1, count)
        or not all(addresses or hosts)
    ):
        return [ServerHost()]
    hosts, addresses = hosts or [""] * count, addresses or [""] * count
    given = [p or "5432" for p in (ports if len(ports) == count else (ports or [""]) * count)]
    return [ServerHost(*each) for each in zip(hosts, addresses, given, strict=True)]


def _attributes(found: dict[str, str], targets: list[ServerHost]) -> dict[str, str]:
    """What a server must be. A role that is read-only by default does not make it a standby."""
    wanted = found.get("target_session_attrs", "")
    if wanted == "read-write" and version() >= _PRIMARY_SINCE:
        return {"target_session_attrs": "primary"}
    return {"target_session_attrs": wanted} if wanted and len(targets) > 1 else {}
