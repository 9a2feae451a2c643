"""Pauses: while one is in force, workers get no new claims.

The file of a pause is commentary like every other file: its fields are checked, none is trusted.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from dibs.model.errors import BadName, Paused, short
from dibs.model.safe_text import age, shown

if TYPE_CHECKING:
    from dibs.model.holder import Holder

PAUSE_BYTES = 8192
REASON_CHARS = 1024
HOST_CHARS = 255
LONGEST = 366 * 86_400
"""The longest pause with an end, in seconds."""
_LATEST = 2**36
_match_name = re.compile(r"[0-9A-F]{10}").fullmatch
_match_host = re.compile(r"""[^\s;"'\\\x00-\x1f\x7f]+""").fullmatch
_match_text = re.compile(
    r"(?:host (\S+); )?(?:until (\d{4,5}-\d\d-\d\dT\d\d:\d\d:\d\dZ); )?(with locks; )?reason: (.*)",
    re.DOTALL,
).fullmatch
_TIME = "%Y-%m-%dT%H:%M:%SZ"


class Pause(NamedTuple):
    """One pause of a board; its times are seconds on the board's clock.

    >>> pause, holders = board.pause_claims("deploy at noon", seconds=3600)
    >>> board.pauses() == (pause,)
    True
    """

    name: str
    """Its exact name: ten hex digits."""
    by: str
    reason: str
    at: float
    until: float | None = None
    """When it ends by itself; None if only an operator ends it."""
    host: str = ""
    """The hosts whose workers it stops, as a name or pattern; empty for every host."""
    locks: bool = False
    """Whether locks cannot be acquired either."""

    def ended(self, now: float) -> bool:
        """Whether its end has passed by the board's clock."""
        return self.until is not None and now >= self.until

    def stops(self, host: str, *, lock: bool) -> bool:
        """Whether it stops new claims by workers of a host, or new holders of locks there."""
        return (self.locks or not lock) and self.covers(host)

    def covers(self, host: str) -> bool:
        """Whether a host is one of those whose workers it stops."""
        if not self.host or host == self.host:
            return True
        from fnmatch import fnmatchcase

        return fnmatchcase(host, self.host)

    @property
    def covers_all(self) -> bool:
        """Whether it stops the workers of every host."""
        return not self.host.strip("*")

    @property
    def where(self) -> str:
        """What is paused: the board, or some hosts; and the locks if they are paused too."""
        what = f"host {self.host}" if self.host else "the board"
        return f"{what} with its locks" if self.locks else what

    @property
    def text(self) -> str:
        """The terms and the end in one line, for the log; `pause_of_text` reads it."""
        host = f"host {self.host}; " if self.host else ""
        locks = "with locks; " if self.locks else ""
        return f"{host}{_end_text(self.until)}{locks}reason: {self.reason}"


def pause_of_text(name: str, by: str, at: float, text: str) -> Pause | None:
    """The pause that a line of the log describes; None if the line is not valid."""
    m = _match_text(text)
    if m is None:
        return None
    try:
        until = datetime.strptime(m[2], _TIME).replace(tzinfo=UTC).timestamp() if m[2] else None
    except ValueError:
        return None
    return Pause(name, by, m[4], at, until, m[1] or "", m[3] is not None)


def _end_text(until: float | None) -> str:
    return f"until {clock_text(until)}; " if until is not None else ""


def clock_text(at: float) -> str:
    """A time of the board's clock as text."""
    return datetime.fromtimestamp(at, UTC).strftime(_TIME)


def is_pause_name(name: str) -> bool:
    """Whether a text has the form of a pause's exact name."""
    return _match_name(name) is not None


def check_terms(reason: str, host: str, seconds: float | None) -> None:
    """Refuse terms that a pause cannot have."""
    for what, text in (("a reason", reason), ("a host", host)):
        if not isinstance(text, str):
            raise BadName(f"{what} must be text, got {short(text)}")
        try:
            text.encode()
        except UnicodeEncodeError:
            raise BadName(f"{what} contains an unpaired surrogate: type it again") from None
    if not reason.strip():
        raise BadName("a pause needs a reason: give one that is not empty")
    if len(reason) > REASON_CHARS:
        raise BadName(
            f"a reason must have at most {REASON_CHARS} characters, got {len(reason)}: shorten it"
        )
    if host and (_match_host(host) is None or len(host) > HOST_CHARS):
        raise BadName(f"{short(host)} is not a host: give a name or a pattern such as 'web-*'")
    if seconds is None:
        return
    if isinstance(seconds, bool) or not isinstance(seconds, (int, float)):
        raise BadName(f"a time must be in seconds, got {short(seconds)}")
    if not 1 <= seconds <= LONGEST:
        raise BadName(
            f"a pause must last 1 second to {LONGEST // 86_400} days, got {short(seconds)} s: "
            "leave the time out for a pause until `dibs resume`"
        )


def encode_pause(pause: Pause) -> bytes:
    """The content of a pause's file: one line of JSON."""
    fields: dict[str, object] = {"v": 1, "by": pause.by, "reason": pause.reason, "at": pause.at}
    if pause.until is not None:
        fields["until"] = pause.until
    if pause.host:
        fields["host"] = pause.host
    if pause.locks:
        fields["locks"] = True
    return json.dumps(fields, ensure_ascii=False).encode("utf-8", "replace") + b"\n"


def decode_pause(name: str, data: bytes) -> Pause | None:
    """The pause in a file; None if the file is invalid, and then it pauses nothing.

    A field that another program may have written wrongly must not widen a pause: a host that
    cannot be read is not "every host".
    """
    if len(data) > PAUSE_BYTES or not is_pause_name(name):
        return None
    try:
        fields: Any = json.loads(data)
    except (ValueError, RecursionError):
        return None
    if not isinstance(fields, dict) or type(fields.get("v")) is not int or fields["v"] != 1:
        return None
    by, reason, host = (fields.get(key, "") for key in ("by", "reason", "host"))
    locks = fields.get("locks", False)
    if not all(isinstance(text, str) for text in (by, reason, host)) or type(locks) is not bool:
        return None
    at, until = _time(fields.get("at")), _time(fields.get("until"))
    if at is None or (until is None and "until" in fields):
        return None
    if host and (_match_host(host) is None or len(host) > HOST_CHARS):
        return None
    return Pause(name, by[:REASON_CHARS], reason[:REASON_CHARS], at, until, host, locks)


def _time(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return float(value) if 0 <= value < _LATEST else None


def stopping(pauses: Iterable[Pause], host: str, *, lock: bool = False) -> Pause | None:
    """The pause that stops new claims by workers of a host: of several, the one made first."""
    found = [pause for pause in pauses if pause.stops(host, lock=lock)]
    return min(found, key=lambda pause: (pause.at, pause.name), default=None)


def paused_error(pause: Pause, now: float) -> Paused:
    """The error for a worker that a pause stops."""
    ends = [f"at {clock_text(pause.until)}"] if pause.until is not None else []
    ends.append(f"after `{resume_command(pause)}`")
    return Paused(f"{described(pause, now)}: claims go on {' or '.join(ends)}", pause)


def resume_command(pause: Pause) -> str:
    """The command line that ends pauses with these terms."""
    from shlex import quote

    return f"dibs resume --host {quote(shown(pause.host))}" if pause.host else "dibs resume"


def described(pause: Pause, now: float) -> str:
    """A pause in one line: what, by whom, for how long, and why; safe for a terminal."""
    since = f" for {age(max(0.0, now - pause.at))}" if now else ""
    by = f" by {pause.by}" if pause.by else ""
    return shown(f"{pause.where} is paused{by}{since}: {pause.reason or 'no reason given'}")


def described_end(pause: Pause, now: float) -> str:
    """A pause whose end has passed in one line; safe for a terminal."""
    by = f" by {pause.by}" if pause.by else ""
    ago = age(max(0.0, now - (pause.until or now)))
    return shown(
        f"the pause of {pause.where}{by} ended {ago} ago: {pause.reason or 'no reason given'}"
    )


def shell_claims_since(pauses: Iterable[Pause], holders: Iterable[Holder]) -> int:
    """How many shell claims were made while a pause was in force: `mv` does not look for one."""
    begun = [(int(pause.at * 1e9), pause) for pause in pauses]
    return sum(
        any(holder.since >= at and pause.covers(holder.host) for at, pause in begun)
        for holder in holders
        if holder.task.is_shell_claim
    )
