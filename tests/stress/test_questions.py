"""Askers and people in real processes, some of which are killed: no answer is lost or mixed up."""

from __future__ import annotations

import json
import os
import random
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import dibs
from tests.core.tools import settle
from tests.patience import PATIENCE

TASKS, ROUNDS, KILLS = 6, 300, 30
OWN_TTL = 2.0
Role = Callable[[dibs.Board, str, Callable[..., None]], None]


def work(board: dibs.Board, who: str, note: Callable[..., None]) -> None:
    """Claim, report what was answered, then ask, fail or release."""
    claim = board.claim(owner=who, ttl=OWN_TTL, process=os.getpid())
    if claim is None:
        time.sleep(0.01)
        return
    note("carries", claim.id, claim.fence, {q.fence: q.answer for q in claim.answers})
    with suppress(dibs.DibsError):
        if random.random() < 0.6:
            claim.ask(f"question of {claim.name}?")
        else:
            claim.release()


def answer(board: dibs.Board, who: str, note: Callable[..., None]) -> None:
    """Answer every task that waits; two people may try the same one."""
    for entry in board.entries(states={"asked"}):
        if entry.state == "asked":
            text = f"{who} {random.random()} on {entry.claim}"
            with suppress(dibs.DibsError):
                board.answer(entry.claim, text)
                note("answered", entry.id, entry.fence, text)
    time.sleep(0.01)


def start(role: Role, path: Path, who: str) -> int:
    """Fork a process that plays its role until it is killed."""
    pid = os.fork()
    if pid:
        return pid
    log = os.open(path.parent / f"{who}.log", os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def note(*fact: object) -> None:
        os.write(log, json.dumps(fact).encode() + b"\n")

    random.seed(who)
    board = dibs.open(path)
    while True:
        with suppress(dibs.DibsError):
            role(board, who, note)


def facts(path: Path) -> list[list[object]]:
    """What the workers noted; a line that is being written is left out."""
    logs = [log.read_text().rpartition("\n")[0] for log in path.parent.glob("*.log")]
    return [json.loads(line) for text in logs for line in text.splitlines()]


def test_every_acknowledged_answer_reaches_every_later_claim(tmp_path: Path) -> None:
    path = tmp_path / "board"
    settle(path, ttl=OWN_TTL, max_attempts=1_000_000)
    board = dibs.open(path)
    for number in range(TASKS):
        board.add(f"t{number}", b"payload %d" % number)
    roles: list[Role] = [work, work, work, answer, answer]
    crew = {start(role, path, f"w{n}"): role for n, role in enumerate(roles)}
    serial, killed, end = len(crew), 0, time.monotonic() + PATIENCE
    try:
        while True:
            answered = sum(fact[0] == "answered" for fact in facts(path))
            if answered >= ROUNDS and killed >= KILLS:
                break
            assert time.monotonic() < end, (answered, killed)
            time.sleep(0.05)
            victim = random.choice(list(crew))
            os.kill(victim, signal.SIGKILL)
            os.waitpid(victim, 0)
            killed += 1
            role = crew.pop(victim)
            crew[start(role, path, f"w{serial}")] = role
            serial += 1
    finally:
        for pid in crew:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
    found = facts(path)
    carried = {(c[1], c[2]): c[3] for c in found if c[0] == "carries"}
    acknowledged = {(a[1], a[2]): a[3] for a in found if a[0] == "answered"}
    assert len(acknowledged) == sum(fact[0] == "answered" for fact in found), "answered twice"
    checked = 0
    for (ident, fence), text in acknowledged.items():
        for (other, later), answers in carried.items():
            assert isinstance(fence, int)
            assert isinstance(later, int)
            assert isinstance(answers, dict)
            if other == ident and later > fence:
                assert answers.get(str(fence)) == text, (ident, fence, later)
                checked += 1
    assert checked > ROUNDS
    tasks = board.snapshot().tasks.values()
    assert sorted(board.payload(t) for t in tasks) == [b"payload %d" % n for n in range(TASKS)]
