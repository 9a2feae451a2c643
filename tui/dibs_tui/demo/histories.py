"""The history of each task of the fixed board, in seconds before the time of the board."""

from __future__ import annotations

from collections.abc import Iterator
from math import sin
from random import Random
from typing import NamedTuple

from dibs.model.waiters import BROKEN, IDLE
from dibs_tui.demo import tasks

STALE, DONE, FAIL, RELEASE, ASK = "stale", "done", "fail", "release", "ask"
REAPS = (3000, 1620, 1080, 540)
"""When the janitor reaped: claims that went stale after the last time are still there."""
_WEB3_STOPPED = 251
_HISTORY = 3480
"""How many seconds of finished tasks there are."""


class Claimant(NamedTuple):
    """A worker that claims tasks."""

    owner: str
    host: str
    ttl: float


class Turn(NamedTuple):
    """One claim of a task, from the claim to its end or its last heartbeat."""

    worker: Claimant
    claimed: float
    ended: float
    how: str = STALE
    reason: str = ""
    """Why it failed, or what it asked."""
    died: bool = False
    """Whether its process has exited."""
    note: str = ""
    """What it said of its work, right after the claim."""
    retry_in: float | None = None
    """The seconds until the next attempt after a failure."""


class OperatorsAct(NamedTuple):
    """What an operator did to a task."""

    at: float
    verb: str
    reason: str


class TaskHistory(NamedTuple):
    """The history of one task."""

    added: float
    turns: tuple[Turn, ...] = ()
    acts: tuple[OperatorsAct, ...] = ()


WEB_1, AGENT_3 = Claimant("web-1", "web-1", 90), Claimant("agent-3", "web-1", 60)
WEB_2 = Claimant("web-2", "web-2", 90)
WEB_3 = tuple(Claimant(f"web-3.{n}", "web-3", 120) for n in (1, 2, 3))
GPU_2, AGENT_7 = Claimant("gpu-2", "gpu-2", 300), Claimant("agent-7", "gpu-2", 120)
AGENT_9, AGENT_12 = Claimant("agent-9", "lab-9", 120), Claimant("agent-12", "lab-9", 120)
_AT_WORK = (WEB_1, GPU_2, AGENT_3, WEB_2, AGENT_7, AGENT_12)

MAILERS = (Claimant("mailer-1", "web-1", 60), Claimant("mailer-2", "web-2", 60))
MAILER_3 = Claimant("mailer-3", "lab-9", 60)
_RETRIES = ((0, 1), (4, 40), (50, 40))
"""The seconds after the first attempt at a mail, and those until the one after it."""
_OUTAGE = 430.0
"""The seconds since the mail server refuses connections."""
WAITERS = (
    ("mailer-1", "web-1", BROKEN),
    ("mailer-2", "web-2", BROKEN),
    ("export-1", "lab-9", IDLE),
)
"""The workers that wait, each with its host and the reason."""

LEASES = (
    ("nightly-backup", Turn(AGENT_12, 1330, 720, RELEASE), "of the ledger, to the other site"),
    ("deploy-prod", Turn(AGENT_3, 1500, 1210, RELEASE), "4.2.0"),
    ("deploy-prod", Turn(AGENT_7, 480, 11), "4.2.1, https://example.com/deploy/421"),
    ("db-migrate", Turn(WEB_2, 95, 24), '{"step": "backfill invoices.vat", "of": 3}'),
)


def histories() -> list[TaskHistory]:
    """Every task, the oldest first."""
    chance = Random("still life")
    found = [
        *_finished(chance),
        *_claimed(chance),
        *_stale(),
        *_failed(),
        *_back(),
        *_waiting(),
    ]
    return sorted(found, key=lambda history: -history.added)


def _finished(chance: Random) -> list[TaskHistory]:
    """The done tasks of an hour, in waves, and fewer since a host stopped; some failed once."""
    found = []
    for n, ended in enumerate(_ends(chance)):
        claimed = ended + chance.uniform(25, 170)
        workers = _AT_WORK if ended < _WEB3_STOPPED + 60 else (*_AT_WORK, *WEB_3)
        turns = [Turn(chance.choice(workers), claimed, ended, DONE)]
        if n in (9, 17, 30):
            reason = ("exit code 137", "the model server answered 503 three times")[n % 2]
            turns.insert(
                0, Turn(chance.choice(_AT_WORK), claimed + 150, claimed + 60, FAIL, reason)
            )
        added = turns[0].claimed + chance.uniform(60, 900)
        found.append(TaskHistory(added, tuple(turns)))
    wrong = OperatorsAct(1250, "requeue", "the VAT was that of another country")
    again = Turn(AGENT_12, 1100, 1030, DONE)
    found[-1] = found[-1]._replace(turns=(*found[-1].turns, again), acts=(wrong,))
    return found


def _ends(chance: Random) -> Iterator[float]:
    """When tasks were done, the last one first."""
    ended = 30.0
    while ended < _HISTORY:
        yield ended
        wave = 1 + 0.55 * sin(ended / 190) + 0.3 * sin(ended / 71)
        slow = 2.2 if ended < _WEB3_STOPPED else 1
        ended += slow * 15 / wave * chance.uniform(0.6, 1.4)


def _claimed(chance: Random) -> list[TaskHistory]:
    """Twenty-three claimed tasks with a recent heartbeat; two of them are late."""
    found = []
    for n in range(23):
        worker = _AT_WORK[n % len(_AT_WORK)]
        claimed = 5 + 0.95 * n * n
        part = {13: 0.62, 20: 0.88}.get(n, chance.uniform(0.02, 0.33))
        turn = Turn(worker, claimed, min(claimed, part * worker.ttl))
        found.append(TaskHistory(claimed + chance.uniform(40, 700), (turn,)))
    return found


def _stale() -> list[TaskHistory]:
    """The stale claims of a host that stopped, and one of a process that died."""
    stale = [Turn(WEB_3[n % 3], 330 + 41 * n, _WEB3_STOPPED + 0.2 * n) for n in range(9)]
    died = Turn(AGENT_9, 400, 176, died=True)
    return [TaskHistory(turn.claimed + 230, (turn,)) for turn in (*stale, died)]


def _failed() -> list[TaskHistory]:
    """One task that failed too often, one that expired too often, and one that is parked."""
    codec = "exit code 1: the decoder knows no profile 4"
    failing = [(AGENT_12, 1700, 1640), (WEB_1, 1240, 1190), (GPU_2, 620, 575)]
    failed = tuple(Turn(worker, claimed, ended, FAIL, codec) for worker, claimed, ended in failing)
    expired = tuple(Turn(WEB_3[0], at, at - 60) for at in (1900, 1500, 1000))
    parked = OperatorsAct(890, "park", "the customer withdrew the order")
    return [
        TaskHistory(2100, failed),
        TaskHistory(2300, expired),
        TaskHistory(1400, acts=(parked,)),
    ]


def _back() -> list[TaskHistory]:
    """Available again after a failure, an expiry or an operator's act."""
    full = "exit code 1: no space left on the scratch disk"
    hung = OperatorsAct(
        395, "force-release", "agent-3 was shut down for the update, nothing was written"
    )
    urgent = OperatorsAct(260, "prioritize", "")
    return [
        TaskHistory(800, (Turn(WEB_2, 400, 350, FAIL, full),)),
        TaskHistory(650, (Turn(GPU_2, 190, 130, FAIL, full),)),
        TaskHistory(1150, (Turn(AGENT_7, 760, 700),)),
        TaskHistory(980, (Turn(AGENT_3, 640, 410),), (hung,)),
        TaskHistory(705, acts=(urgent,)),
    ]


def _waiting() -> list[TaskHistory]:
    """Fifty-five tasks that were never claimed, most of them a few minutes old."""
    return [TaskHistory(8 + 2900 * (n / 55) ** 2.2) for n in range(55)]


def asked() -> list[TaskHistory]:
    """Two tasks whose workers need a decision."""
    keep = "The tests of the old API fail. Keep the old API until 2.0, or remove it now?"
    twice = "Two invoices have this number, of 3 March and of 5 March. Which one counts?"
    return [
        TaskHistory(1010, (Turn(AGENT_3, 470, 310, ASK, keep),)),
        TaskHistory(610, (Turn(AGENT_12, 140, 92, ASK, twice),)),
    ]


def _refused(n: int, first: float, attempts: int) -> TaskHistory:
    """A mail that the mail server refused so many times; after three it is failed."""
    turns = [
        Turn(
            (*MAILERS, MAILER_3)[(n + attempt) % 3], first - after, first - after - 1,
            FAIL, tasks.MAIL_ERROR, retry_in=retry,
        )
        for attempt, (after, retry) in enumerate(_RETRIES[:attempts])
    ]  # fmt: skip
    return TaskHistory(first + 15, tuple(turns))


def mails() -> list[TaskHistory]:
    """Mails, the oldest first: sent ones, one that hangs, and those that met an outage."""
    chance = Random("mails")
    found = []
    for n in range(22):
        ended = _OUTAGE + 90 * n + chance.uniform(0, 60)
        claimed = ended + chance.uniform(1, 5)
        found.append(TaskHistory(claimed + 20, (Turn(MAILERS[n % 2], claimed, ended, DONE),)))
    hangs = Turn(MAILER_3, 845, 9, note="connected to smtp.example.com, sending part 2 of 3")
    found.append(TaskHistory(860, (hangs,)))
    found += [_refused(n, _OUTAGE - 42.0 * n, 3) for n in range(1, 9)]
    found += [_refused(n, 44.0 - 4 * n, 2) for n in range(1, 5)]
    return sorted(found, key=lambda history: -history.added)
