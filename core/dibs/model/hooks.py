"""Hooks: which events of a board are sent to which address, as the settings have them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, NamedTuple

from dibs.model.errors import BadName, short
from dibs.model.task import FAILED

if TYPE_CHECKING:
    from dibs.model.events import Event

MOST = 16
"""The most hooks that a board may have."""
LOCK = "hook~"
"""How the id of the lock begins that the sender of a hook holds; no name of a lock does."""
_FAILED = "failed"
EVENTS = (
    "add", "claim", "resume", "done", "fail", _FAILED, "reap", "release", "ask", "answer", "due",
    "force-release", "requeue", "park", "prioritize", "undo", "purge", "forget", "pause", "unpause",
    "ledger", "token",
)  # fmt: skip
"""What a hook may ask for: verbs of the log, and `failed` for a task at its limit of attempts."""
RETRY = (10.0, 60.0, 600.0, 3000.0)
"""The seconds between the tries of a delivery: five tries in a little more than an hour."""
_PATTERNS = 32
_CHARS = 256
_URL_CHARS = 2048
_match_name = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,30}[a-z0-9])?").fullmatch
_match_url = re.compile(
    r"(https?)://(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9](?:[A-Za-z0-9.-]{0,252}))(?::([0-9]{1,5}))?"
    r"(/[!-~]*)?"
).fullmatch
_match_loopback = re.compile(r"localhost|127(?:\.[0-9]{1,3}){3}|\[::1\]").fullmatch


class HookUrl(NamedTuple):
    """The parts of the url of a hook."""

    scheme: str
    host: str
    port: int
    target: str
    """The path with the query, as the request has it."""

    @property
    def origin(self) -> str:
        """The url without its path, which may be a secret."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        usual = self.port == (443 if self.scheme == "https" else 80)
        return f"{self.scheme}://{host}" + ("" if usual else f":{self.port}")


class Hook(NamedTuple):
    """One hook: what is sent where."""

    name: str
    url: str
    events: tuple[str, ...]
    """Verbs of the log, or `failed`."""
    ids: tuple[str, ...] = ("*",)
    """Patterns of ids, of which one must fit."""
    retry: tuple[float, ...] = RETRY
    """Seconds before the second try, the third and so on; after the last one it has failed."""

    @property
    def address(self) -> HookUrl:
        """The parts of its url."""
        return _address(self.url)

    def wants(self, event: Event) -> bool:
        """Whether an event is to be sent; those of the senders' own locks never are."""
        if event.id.startswith(LOCK):
            return False
        return self._named(event) and any(fnmatchcase(event.id, each) for each in self.ids)

    def _named(self, event: Event) -> bool:
        if event.verb in self.events:
            return True
        if _FAILED not in self.events or event.verb not in ("fail", "reap"):
            return False
        after = event.after
        return after is not None and after.state == FAILED


def hook_of(table: object, retry: tuple[float, ...] | None) -> Hook:
    """The hook of a table in the settings; `BadName` with what is wrong.

    `retry` are the seconds of its key of that name; None if they cannot be read.
    """
    if not isinstance(table, Mapping):
        raise BadName("must be written as tables [[hooks]]")
    for key in table:
        if key not in Hook._fields:
            known = ", ".join(Hook._fields)
            raise BadName(f"there is no key {short(key)}: use one of {known}")
    name = table.get("name")
    if not isinstance(name, str) or _match_name(name) is None or name.endswith("-file"):
        wanted = '1 to 32 small letters, digits or -, and not end in "-file"'
        raise BadName(f"name must have {wanted}, got {short(name)}")
    url = table.get("url")
    if not isinstance(url, str) or len(url) > _URL_CHARS:
        raise BadName(f"url must be a text of at most {_URL_CHARS} characters")
    _address(url)
    events = _texts(table.get("events"))
    if not events or not set(events) <= set(EVENTS):
        wrong = next((each for each in events if each not in EVENTS), table.get("events"))
        raise BadName(f"events must be a list of {', '.join(EVENTS)}, got {short(wrong)}")
    ids = _texts(table.get("ids", ["*"]))
    if not ids:
        raise BadName(
            f'ids must be a list of 1 to {_PATTERNS} patterns such as "deploy-*", '
            f"got {short(table['ids'])}"
        )
    if retry is None:
        raise BadName(
            'retry must be a list of times up to a day, such as ["10s", "5m"], '
            f"got {short(table['retry'])}"
        )
    return Hook(name, url, events, ids, retry)


def _texts(value: Any) -> tuple[str, ...]:
    """The texts of a list; empty if it is none, or has anything that is no short plain text."""
    if not isinstance(value, list) or not 1 <= len(value) <= _PATTERNS:
        return ()
    fits = all(isinstance(e, str) and 1 <= len(e) <= _CHARS and e.isprintable() for e in value)
    return tuple(value) if fits else ()


def _address(url: str) -> HookUrl:
    """The parts of a url; an error never shows it, because it may have a password."""
    m = _match_url(url)
    if m is None or int(m[3] or 1) not in range(1, 65_536) or "#" in url:
        raise BadName(
            "url must be https://HOST[:PORT]/PATH in plain ASCII, without a user, a password or #"
        )
    if m[1] == "http" and _match_loopback(m[2]) is None:
        raise BadName("url must begin with https://: only localhost may go without TLS")
    port = int(m[3]) if m[3] else 443 if m[1] == "https" else 80
    return HookUrl(m[1], m[2].strip("[]").lower(), port, m[4] or "/")
