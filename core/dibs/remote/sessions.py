"""One process's session with a server: its connections, and what happens when one is cut.

A request whose answer was lost is sent again with the same key, by which the server knows that it
was done already. After a restart of the server, which forgets the keys, the caller looks at the
board for what its own request did.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from dibs.host import boottime, nonce
from dibs.model import names
from dibs.model.errors import DibsError, ReadOnly, StorageError, Uncertain, short
from dibs.model.lazy import LazyModule
from dibs.model.sample import SECOND
from dibs.remote.addresses import address_of, token
from dibs.remote.wire import Answer, HttpConnection, NoAnswer, NoServer

if TYPE_CHECKING:
    from dibs.host import Host
    from dibs.model.settings import Settings
    from dibs.model.task import Task
    from dibs.remote import problems, values
else:
    problems, values = map(LazyModule, ("dibs.remote.problems", "dibs.remote.values"))

PATIENCE = 10 * SECOND
"""For how long a request tries to reach the server again."""
_PAUSE = 0.1
SILENCE = 30.0
"""Seconds without an answer after which a connection is given up."""
_BODY_BYTES = 1 << 20
_AGENT_CHARS = 128
_GATEWAY = (502, 503, 504)
"""What a proxy answers without an object while its server is not there."""
_SAFE = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
Found = dict[str, Any]
Done = Callable[[DibsError | None], Found | None]
"""Finds what an earlier request has done; it receives what the request was refused with."""
NOTHING: Mapping[str, object] = MappingProxyType({})


class Answered(dict[str, Any]):
    """The answer to a change; if it makes no sense, it is unknown whether that was done."""

    what = ""


class RemoteSession:
    """The connections of one process; all threads of it may share it."""

    def __init__(self, where: str, host: Host, *, read_only: bool = False) -> None:
        self.address = address_of(where)
        self.label = self.address.url
        self.host = host
        self.read_only = read_only
        self.boottime = boottime
        self.sleep: Callable[[float], object] = time.sleep
        self.nonce = nonce
        self.patience = PATIENCE
        self._token = token()
        self._free: list[tuple[int, HttpConnection]] = []
        """Connections that no thread uses now, each with its process."""
        self._about: Found | None = None
        self.away = False
        """Whether the last call gave up: until the server answers again, each tries only once."""
        self._asks_version = False
        self.unanswered: set[str] = set()
        """The nonces of claims that may have been made, but whose answers were lost."""

    # What the board is

    @property
    def about(self) -> Found:
        """What the server says of the board: its settings, and what it supports."""
        if self._about is None:
            self._about = self.get("/v1/board")
        return self._about

    @property
    def settings(self) -> Settings:
        """The settings of the board."""
        from dibs.model.settings import Settings

        found: Settings = self.value(Settings, self.about, "settings")
        return found

    @property
    def token_name(self) -> str:
        """The name of the caller's token."""
        return self._who[0]

    @property
    def role(self) -> str:
        """What the caller's token may do: `reader`, `worker` or `operator`."""
        return self._who[1]

    @cached_property
    def _who(self) -> tuple[str, str]:
        found = self.get("/status")
        return self.value(str, found, "name"), self.value(str, found, "role")

    def owner_name(self, owner: str) -> str:
        """The owner that the claims of the caller have if it gives this one."""
        name = self.token_name
        below = owner == name or owner.startswith(f"{name}/")
        return owner if below or self.role == "operator" else f"{name}/{owner}"

    def refuse_read_only(self) -> None:
        """Raise if this board was opened read-only."""
        if self.read_only:
            raise ReadOnly(
                "the board was opened read-only: open it without `read_only` to change it"
            )

    # Requests

    def get(self, path: str, **query: object) -> Found:
        """What the server answers, which changes nothing."""
        pairs = [f"{key}={quoted(text)}" for key, value in query.items() for text in _texts(value)]
        return self._call("GET", f"{path}?{'&'.join(pairs)}" if pairs else path, {})

    def ask(self, path: str, **fields: object) -> Found:
        """The same with a body."""
        return self._call("POST", path, fields)

    def change(
        self,
        path: str,
        what: str,
        fields: Mapping[str, object] = NOTHING,
        *,
        by: str = "",
        until: int = 0,
        looks: bool = False,
        done: Done | None = None,
    ) -> Found:
        """The answer to a change; `Uncertain` if it was lost for good.

        It is sent again after a cut, until that time on the boot-time clock. `done` may find what
        the request before has done: before it is sent again, and if it is then refused. With
        `looks` the server looks itself.
        """
        self.refuse_read_only()
        return self._call(
            "POST", path, fields, what=what, by=by, until=until, looks=looks, done=done
        )

    def value(self, kind: Any, found: Mapping[str, object], key: str) -> Any:
        """One value of an answer."""
        return self.read(kind, found.get(key), found)

    def read(self, kind: Any, value: object, found: object = None) -> Any:
        """A value of the answer `found` as the board has it; its times count from now."""
        try:
            return values.reader(kind)(value, self.boottime())
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            why = f"its answer has no valid {_kind(kind)}: {short(error)}"
            raise self.foreign(why, found) from None

    def task(self, found: Mapping[str, object], key: str = "task") -> Task:
        """The task of an answer."""
        data = found.get(key)
        name = data.get("name") if isinstance(data, dict) else None
        task = names.read_any(name) if isinstance(name, str) else None
        if task is None:
            raise self.foreign("its answer has no valid task", found)
        return task

    def number(self, found: Mapping[str, object], key: str) -> float:
        """The number of an answer."""
        number = found.get(key)
        if isinstance(number, bool) or not isinstance(number, (int, float)) or not number >= 0:
            raise self.foreign(f"its answer has no {key}", found)
        return number

    def foreign(self, why: str, found: object = None) -> StorageError | Uncertain:
        """The error for what no server of dibs answers, in the answer `found`."""
        text = (
            f"{self.label} is no server of this version of dibs: {why}: check the address, and "
            f"update the older one of client and server{self._versions()}"
        )
        what = getattr(found, "what", "")
        if what:
            return Uncertain(f"{what}: it is unknown whether it was done: {text}")
        return StorageError(text)

    def _versions(self) -> str:
        """The versions of client and server; nothing if the server does not say its own."""
        if self._asks_version:
            return ""
        from importlib.metadata import PackageNotFoundError, version

        self._asks_version = True
        try:
            until = self.boottime() + SECOND
            theirs = self._call("GET", "/status", {}, until=until)["version"]
            return f" (here {version('dibs')}, there {short(theirs)})"
        except (DibsError, KeyError, PackageNotFoundError):
            return ""
        finally:
            self._asks_version = False

    def stream(self, path: str, seconds: float) -> HttpConnection:
        """A connection that follows a stream; `NoServer` if there is none now."""
        conn = HttpConnection(self.address)
        try:
            answer = conn.stream(path, self._head(""), seconds)
            if isinstance(answer, Answer):
                self._body(answer)
                raise self.foreign("it sends no events")
        except BaseException as error:
            conn.close()
            if isinstance(error, NoAnswer):
                raise self.foreign(str(error)) from None
            if isinstance(error, problems.Busy):
                raise NoServer(str(error)) from None
            raise
        return conn

    def close(self) -> None:
        """Close the connections; the next request opens another."""
        while self._free:
            self._free.pop()[1].close()

    def _call(
        self,
        method: str,
        path: str,
        fields: Mapping[str, object],
        *,
        what: str = "",
        by: str = "",
        until: int = 0,
        looks: bool = False,
        done: Done | None = None,
    ) -> Found:
        hurry, until = bool(until), until or self.boottime() + self.patience
        given = {key: value for key, value in fields.items() if value is not None}
        head = self._head(by) + (f"X-Request-Key: {self.nonce()}\r\n" if what else "")
        sent = False
        while True:
            if looks and sent:
                given["again"] = True
            if sent and done is not None and (found := _found(done)) is not None:
                return found
            body = json.dumps(given).encode() if method == "POST" else b""
            if len(body) > _BODY_BYTES:
                raise problems.too_long(what, len(body))
            again = sent
            try:
                conn = self._connection()
                sent = True
                answer = self._asked(conn, method, path, head, body, self._silence(until, hurry))
                if answer.status not in _GATEWAY or answer.body[:1] == b"{":
                    self.away = False
                    return self._body(answer, what)
                why = f"a proxy answered {answer.status}"
            except NoServer as error:
                why = str(error)
            except NoAnswer as error:
                raise self.foreign(str(error), _answered(what)) from None
            except problems.Busy as error:
                why, sent = str(error), again
            except DibsError as error:
                before = done(error) if again and done is not None else None
                if before is None:
                    raise
                return before
            if self.boottime() >= until or (self.away and not hurry):
                self.away = True
                raise self._given_up(why, what if sent else "")
            self.sleep(_PAUSE)

    def _head(self, by: str) -> str:
        agent = "".join(each for each in by if each.isprintable())[:_AGENT_CHARS]
        agent = agent.encode("utf-8", "replace").decode()
        return f"Authorization: Bearer {self._token}\r\n" + (
            f"X-Agent: {agent}\r\n" if agent else ""
        )

    def _connection(self) -> HttpConnection:
        """A connection that no other thread uses; a forked child has its own."""
        while self._free:
            pid, conn = self._free.pop()
            if pid == os.getpid() and conn.usable:
                return conn
            if pid == os.getpid():
                conn.close()
        return HttpConnection(self.address)

    def _asked(
        self, conn: HttpConnection, method: str, path: str, head: str, body: bytes, seconds: float
    ) -> Answer:
        try:
            answer = conn.ask(method, path, head, body, seconds)
        except BaseException:
            conn.close()
            raise
        self._free.append((os.getpid(), conn))
        return answer

    def _silence(self, until: int, hurry: bool) -> float:
        """For how many seconds to wait for an answer.

        A beat must not wait beyond its lease, and asks again over another connection before that.
        """
        left = (until - self.boottime()) / SECOND
        return min(SILENCE, max(left / 3 if hurry else left, 0.5))

    def _body(self, answer: Answer, what: str = "") -> Found:
        """The object of an answer; raises what it refuses with."""
        done = answer.status < 300 or answer.status >= 500  # or perhaps
        try:
            found: Any = json.loads(answer.body)
        except (ValueError, RecursionError):
            found = None
        if not isinstance(found, dict):
            why = f"it answered {answer.status}, and no JSON object"
            raise self.foreign(why, _answered(what if done else ""))
        if answer.status >= 300:
            raise problems.error_of(self, answer.status, _answered(what if done else "", found))
        return _answered(what, found)

    def _given_up(self, why: str, step: str) -> StorageError | Uncertain:
        error = StorageError(f"{self.label}: {why}: start the server, or check the address")
        error.again = True
        if not step:
            return error
        doubt = Uncertain(
            f"{step}: {self.label} does not answer, so it is unknown whether it was done: {why}: "
            "try again"
        )
        doubt.again, doubt.__cause__ = True, error
        return doubt


def _answered(what: str, found: Mapping[str, Any] = NOTHING) -> Answered:
    answered = Answered(found)
    answered.what = what
    return answered


def _found(done: Done) -> Found | None:
    """What was done before, if the server can say so now."""
    try:
        return done(None)
    except StorageError:
        return None


def quoted(text: str) -> str:
    """A text as a part of a path or a query has it."""
    data = text.encode("utf-8", "surrogateescape")
    return "".join(chr(byte) if byte in _SAFE else f"%{byte:02X}" for byte in data)


def _texts(value: object) -> Iterable[str]:
    """What a query has for a value: nothing for None, and each of several."""
    if value is None:
        return ()
    if isinstance(value, bool):
        return ("true" if value else "false",)
    if isinstance(value, (str, int, float)):
        return (str(value),)
    return tuple(map(str, value)) if isinstance(value, Iterable) else ()


def _kind(kind: Any) -> str:
    return str(getattr(kind, "__name__", kind)).lower()
