"""Clients that ask again after a lost answer, and sessions that live through another server."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from http.client import HTTPConnection
from itertools import count
from typing import Any
from urllib.parse import quote

import pytest

import dibs
from dibs.serve.lease_terms import LeaseTerms
from dibs.serve.lock_desk import LockDesk
from dibs.serve.problems import Refusal
from dibs.serve.sessions import Sessions
from dibs.serve.tokens import Principal, Role
from tests.serve.http_client import HttpClient, until
from tests.serve.server_process import ServerProcess

FETCHED = 0.5
"""Seconds after which the servers of these tests release what no one has asked for again."""
KINDS = ("task", "lock", "named lock")
ANN = Principal("ann", Role.WORKER, "", "")
_numbers = count(1)


class Retrying:
    """A client that gives up requests for a new claim of one kind, and asks for it again."""

    def __init__(self, server: ServerProcess, kind: str) -> None:
        self.server, self.kind = server, kind
        self.board = dibs.open(server.where)
        self.id = f"a{next(_numbers)}"
        self.client = server.client(self.id)
        self.client.get("/status")  # a token that is known does not hold up what was given up
        self.body: dict[str, Any] = {} if kind == "named lock" else {"id": self.id}
        self.path = {"task": "/v1/claims", "lock": "/v1/acquire"}.get(
            kind, f"/locks/{self.id}/acquire"
        )
        if kind == "task":
            self.board.add(self.id)

    def send(self, connection: HTTPConnection, headers: dict[str, str]) -> None:
        """Send the request, and do not await its answer."""
        given = self.client.headers(headers)
        connection.request("POST", self.path, json.dumps(self.body).encode(), given)

    def give_up(self, headers: dict[str, str]) -> None:
        """Send the request to a server that stands still, and close the connection."""
        connection = self.client.connect()
        self.send(connection, headers)
        connection.close()

    def verbs(self) -> list[tuple[str, str]]:
        """What the log says of it."""
        return [(event.verb, event.reason) for event in self.board.log.of(self.id)]

    def finish(self, client: HttpClient, made: dict[str, Any]) -> None:
        """End the claim as its holder, after the server has released what was lost before it."""
        assert made["status"] in ("claimed", "acquired")
        lost = Retrying(self.server, "task")
        with self.server.stopped():
            lost.give_up({"X-Request-Key": lost.id})
        until(lambda: "release" in dict(lost.verbs()))
        name = made.get("claim") or made["lease_id"]
        (task,) = self.board.find(self.id)
        assert task.stem == name, self.verbs()
        if "lease_id" in made:
            client.post(f"/locks/{self.id}/release", {"lease_id": name})
        else:
            verb = "done" if self.kind == "task" else "release"
            client.post(f"/v1/claims/{quote(name, safe='')}/{verb}", {})


class Desk:
    """The locks and sessions of one server, without the server."""

    def __init__(self, board: dibs.Board) -> None:
        self.board = board
        self.locks = LockDesk(lambda: board, lambda event: None, lambda: False)
        self.sessions = Sessions(self.locks)

    def look(self) -> None:
        """What a server does ten times a second."""
        for part in (self.locks, self.sessions):
            with suppress(dibs.DibsError):
                part.tick()


def outlive(
    first: dibs.Board, other: dibs.Board, away: Callable[[], object], back: Callable[[], object]
) -> None:
    """A session made through one server lives through another, while the first has no storage."""
    a, b = Desk(first), Desk(other)
    session = a.sessions.begin(ANN, None, 2)["session_id"]
    terms = LeaseTerms(session=session, ephemeral=True)
    for name in ("x", "y"):
        a.locks.acquire(ANN, None, name, ttl=60, terms=terms)
    over = threading.Event()
    failed: list[Exception] = []

    def keep() -> None:
        try:
            while not over.wait(0.1):
                b.sessions.keep(ANN, session)
        except Exception as error:
            failed.append(error)

    keeps = threading.Thread(target=keep)
    keeps.start()
    try:
        away()
        end = time.monotonic() + 2.5  # longer than the session lasts for the first server
        while time.monotonic() < end:
            a.look()
            time.sleep(0.05)
        back()
        for _ in range(15):
            a.look()
            time.sleep(0.05)
    finally:
        over.set()
        keeps.join()
    assert failed == []
    held = [task.id for task in other.snapshot().tasks.values() if task.state == "held"]
    assert {"x", "y"} < set(held), held
    assert a.sessions.show(ANN, session)["active"] is True


def expire(first: dibs.Board, other: dibs.Board) -> None:
    """A session without a sign of life ends, through any server, and its locks with it."""
    a, b = Desk(first), Desk(other)
    session = a.sessions.begin(ANN, None, 1)["session_id"]
    a.locks.acquire(ANN, None, "z", ttl=60, terms=LeaseTerms(session=session, ephemeral=True))
    b.sessions.keep(ANN, session)

    def freed() -> bool:
        for desk in (a, b):
            desk.look()
        return bool(b.locks.status("z")["status"] == "free")

    until(freed)
    for desk in (a, b):
        with pytest.raises(Refusal, match="no such session"):
            desk.sessions.keep(ANN, session)


def leave(first: dibs.Board, other: dibs.Board) -> None:
    """What ends with a session is what the board says is in it, not what one server remembers."""
    a, b = Desk(first), Desk(other)
    one, two, short = (a.sessions.begin(ANN, "me", ttl)["session_id"] for ttl in (60, 60, 1))

    def acquire(desk: Desk, name: str, session: str = "") -> None:
        terms = LeaseTerms(session=session, ephemeral=bool(session))
        desk.locks.acquire(ANN, "me", name, ttl=60, terms=terms)

    def held() -> set[str]:
        tasks = other.snapshot().tasks.values()
        return {t.id for t in tasks if t.state == "held" and not t.id.startswith("session")}

    for name in ("out", "moved", "back", "stays"):
        acquire(a, name, one)
    for name in ("over", "late"):
        acquire(a, name, short)
    acquire(b, "out")
    acquire(b, "late")
    acquire(b, "moved", two)
    acquire(b, "back", two)
    acquire(a, "back", one)
    a.sessions.finish(ANN, one)
    assert held() >= {"out", "moved", "late"}
    assert not held() & {"back", "stays"}

    def ended() -> bool:
        for desk in (a, b):
            desk.look()
        return "over" not in held()

    until(ended)
    assert held() == {"out", "moved", "late"}
    b.sessions.finish(ANN, two)
    assert held() == {"out", "late"}


def ask_both(first: HttpClient, other: HttpClient, board: dibs.Board) -> None:
    """Each change that has a key is sent to two servers, as a client does after a lost answer."""

    def both(path: str, body: dict[str, Any]) -> dict[str, Any]:
        key = {"X-Request-Key": f"k{next(_numbers)}"}
        found: list[dict[str, Any]] = [
            each.post(path, body, headers=key) for each in (first, other)
        ]
        for answer in found:
            answer.pop("expires_at", None)
        assert found[0] == found[1], path
        return found[0]

    number = next(_numbers)
    ids = [f"{what}{number}" for what in ("plain", "later", "payload")]
    both("/v1/tasks", {"id": ids[0]})
    both("/v1/tasks", {"id": ids[1], "start_in": 3600, "priority": 7})
    both("/v1/tasks", {"id": ids[2], "payload": "x" * 5000})
    assert [len(board.find(ident)) for ident in ids] == [1, 1, 1]
    other_key = {"X-Request-Key": f"k{next(_numbers)}"}
    assert other.ask("POST", "/v1/tasks", {"id": ids[0]}, other_key).code == "exists"
    ends = (
        ("fail", {"reason": "broken", "retry_in": 0}),
        ("release", {"reason": "not mine"}),
        ("ask", {"question": "which?"}),
    )
    for verb, body in ends:
        claim = first.post("/v1/claims", {"id": ids[0]})["claim"]
        both(f"/v1/claims/{quote(claim, safe='')}/{verb}", body)
    assert [event.verb for event in board.log.of(ids[0])].count("refused") == 0
    lock = first.post("/v1/acquire", {"id": f"lock{number}"})["claim"]
    both(f"/v1/claims/{quote(lock, safe='')}/release", {})
    both("/sessions", {"ttl_seconds": 300})
    assert sum(t.id.startswith("session~") for t in board.snapshot(ended=False).tasks.values()) == 1
    pause = both("/v1/pauses", {"reason": "deploy", "host": "nowhere"})["pause"]
    assert [each.name for each in board.pauses()] == [pause["name"]]
    lines = [event for event in board.log.since()[0] if event.verb == "pause"]
    assert len(lines) == 1
