"""What became of each task of the still life, in seconds before its last moment."""

from __future__ import annotations

from random import Random
from typing import NamedTuple

SILENT, DONE, FAIL, RELEASE = "silent", "done", "fail", "release"
REAPS = (3000, 1620, 1080, 540)
"""When a janitor passed: whatever fell silent after the last one is still there."""
_WEB3_STOPPED = 251


class Hand(NamedTuple):
    """Somebody who claims."""

    owner: str
    host: str
    ttl: float


class Turn(NamedTuple):
    """One claim of a task, from the claim to the last that was heard of it."""

    hand: Hand
    claimed: float
    ended: float
    how: str = SILENT
    reason: str = ""
    died: bool = False
    """Its process is known to have ended."""


class Act(NamedTuple):
    """What a person did about a task."""

    at: float
    verb: str
    reason: str


class Tale(NamedTuple):
    """The life of one task."""

    added: float
    turns: tuple[Turn, ...] = ()
    acts: tuple[Act, ...] = ()


WEB_1, AGENT_3 = Hand("web-1", "web-1", 90), Hand("agent-3", "web-1", 60)
WEB_2, WEB_3 = Hand("web-2", "web-2", 90), Hand("web-3", "web-3", 120)
GPU_2, AGENT_7 = Hand("gpu-2", "gpu-2", 300), Hand("agent-7", "gpu-2", 120)
AGENT_9, AGENT_12 = Hand("agent-9", "lab-9", 120), Hand("agent-12", "lab-9", 120)
_AT_WORK = (WEB_1, GPU_2, AGENT_3, WEB_2, AGENT_7, AGENT_12)

LEASES = (
    ("nightly-backup", Turn(AGENT_12, 1330, 720, RELEASE), "of the ledger, to the other site"),
    ("deploy-prod", Turn(AGENT_3, 1500, 1210, RELEASE), "4.2.0"),
    ("deploy-prod", Turn(AGENT_7, 480, 11), "4.2.1, https://example.com/deploy/421"),
    ("db-migrate", Turn(WEB_2, 95, 24), '{"step": "backfill invoices.vat", "of": 3}'),
)


def told() -> list[Tale]:
    """Every task, the one that was added first at the head."""
    chance = Random("still life")
    tales = [*_finished(chance), *_in_hand(chance), *_stale(), *_failed(), *_back(), *_waiting()]
    return sorted(tales, key=lambda tale: -tale.added)


def _finished(chance: Random) -> list[Tale]:
    """Forty, one every three quarters of a minute; some failed once before."""
    found = []
    for n in range(40):
        ended = 40 + 44 * n + chance.uniform(-18, 18)
        claimed = ended + chance.uniform(25, 170)
        hands = _AT_WORK if ended < _WEB3_STOPPED + 60 else (*_AT_WORK, WEB_3)
        turns = [Turn(chance.choice(hands), claimed, ended, DONE)]
        if n in (9, 17, 30):
            reason = ("exit code 137", "the model server answered 503 three times")[n % 2]
            turns.insert(
                0, Turn(chance.choice(_AT_WORK), claimed + 150, claimed + 60, FAIL, reason)
            )
        added = turns[0].claimed + chance.uniform(60, 900)
        found.append(Tale(added, tuple(turns)))
    wrong = Act(1250, "requeue", "the VAT was that of another country")
    again = Turn(AGENT_12, 1100, 1030, DONE)
    found[-1] = found[-1]._replace(turns=(*found[-1].turns, again), acts=(wrong,))
    return found


def _in_hand(chance: Random) -> list[Tale]:
    """Twenty-three with a beat not long ago; two of them are late."""
    found = []
    for n in range(23):
        hand = _AT_WORK[n % len(_AT_WORK)]
        claimed = 5 + 1.4 * n * n
        part = {13: 0.62, 20: 0.88}.get(n, chance.uniform(0.02, 0.33))
        turn = Turn(hand, claimed, min(claimed, part * hand.ttl))
        found.append(Tale(claimed + chance.uniform(40, 700), (turn,)))
    return found


def _stale() -> list[Tale]:
    """Three of a host that stopped, and one of a process that died."""
    silent = [
        Turn(WEB_3, claimed, _WEB3_STOPPED + late)
        for claimed, late in ((420, 0), (388, 3), (512, 9))
    ]
    died = Turn(AGENT_9, 400, 176, died=True)
    return [Tale(turn.claimed + 230, (turn,)) for turn in (*silent, died)]


def _failed() -> list[Tale]:
    """Failed too often, fell silent too often, and parked by a person."""
    codec = "exit code 1: the decoder knows no profile 4"
    failing = [(AGENT_12, 1700, 1640), (WEB_1, 1240, 1190), (GPU_2, 620, 575)]
    failed = tuple(Turn(hand, claimed, ended, FAIL, codec) for hand, claimed, ended in failing)
    silent = tuple(Turn(WEB_3, at, at - 60) for at in (1900, 1500, 1000))
    parked = Act(890, "park", "the customer withdrew the order")
    return [Tale(2100, failed), Tale(2300, silent), Tale(1400, acts=(parked,))]


def _back() -> list[Tale]:
    """Waiting again after a failure, a silence, or a person's word."""
    full = "exit code 1: no space left on the scratch disk"
    hung = Act(395, "force-release", "agent-3 was shut down for the update, nothing was written")
    urgent = Act(260, "prioritise", "")
    return [
        Tale(800, (Turn(WEB_2, 400, 350, FAIL, full),)),
        Tale(650, (Turn(GPU_2, 190, 130, FAIL, full),)),
        Tale(1150, (Turn(AGENT_7, 760, 700),)),
        Tale(980, (Turn(AGENT_3, 640, 410),), (hung,)),
        Tale(705, acts=(urgent,)),
    ]


def _waiting() -> list[Tale]:
    """Fifty-five that nobody has had yet, most of them for some minutes only."""
    return [Tale(8 + 2900 * (n / 55) ** 2.2) for n in range(55)]
