"""A board on which nobody moves: always the same tasks, at the same moment, in the same state.

It is played by the real verbs on a clock that only the player moves, one act after the other.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from random import Random

import dibs
from dibs.clock import SECOND
from dibs.names import FREE_FOLDER
from dibs.store import FOLDERS, Store
from dibs.unwritten import Unwritten
from dibs_tui.demo import tales, tasks
from dibs_tui.demo.frozen import Frozen
from dibs_tui.demo.tales import Act, Turn

AT = 1_773_756_131 * SECOND + SECOND // 4
"""The moment at which the board stands still: a bit after 14:02:11 UTC on 17 March 2026."""
_BEFORE = 3900
_HERE = "lab-9"
_SETTINGS = b'format = 2\nttl = 120\nplain_ttl = 600\nmax_attempts = 3\ndurability = "off"\n'


def make(path: str) -> None:
    """Put the still life into a directory that is empty or not there."""
    os.makedirs(path, exist_ok=True)
    if os.listdir(path):
        raise dibs.NotABoard(f"{path} is not empty: give a directory for the still life alone")
    play = _Play(path)
    for tale, draft in zip(tales.told(), tasks.stream(), strict=False):
        play.task(tale.added, draft)
        for turn in tale.turns:
            play.turn("claim", draft.id, turn, tasks.note(draft.id, Random(draft.id)))
        for act in tale.acts:
            play.person(draft.id, act)
    for ident, turn, note in tales.LEASES:
        play.turn("acquire", ident, turn, note)
    play.shell()
    play.janitor()
    play.run()


class _Unwritten(Unwritten, Frozen):
    """The same disk, only looked at."""


def board(path: str, *, read_only: bool = False) -> dibs.Board:
    """The still life as one sees it at that moment, whenever one looks."""
    return _open((_Unwritten if read_only else Frozen)(path, AT), _HERE, "ana")


def _open(disk: Frozen, name: str, user: str) -> dibs.Board:
    store = Store(disk, dibs.Host(name, _boot(name), "pid:[4026531836]", user))
    store.open()
    return dibs.Board(store, disk.root)


def _boot(name: str) -> str:
    return f"{Random(name).getrandbits(256):064x}"


class _Play:
    """Everything that happened on the board, each thing at its moment."""

    def __init__(self, path: str) -> None:
        self._disk = Frozen(path, AT - _BEFORE * SECOND)
        self._disk.mkdir(".dibs")
        self._disk.create(".dibs/board.toml", _SETTINGS)
        self._boards: dict[str, dibs.Board] = {}
        self._claims: dict[str, dibs.Claim] = {}
        self._acts: list[tuple[float, Callable[[], object]]] = []

    def task(self, added: float, draft: tasks.Draft) -> None:
        """Put it on the board."""
        add = self._board("web-1").add
        self._at(added, partial(add, draft.id, draft.payload, priority=draft.priority))

    def turn(self, verb: str, ident: str, turn: Turn, note: str) -> None:
        """Claim a task or a lock, beat every third of the ttl, and end it or fall silent."""
        self._at(turn.claimed, partial(self._claim, verb, ident, turn, note))
        beat = turn.claimed - turn.hand.ttl / 3
        while beat > turn.ended:
            self._at(beat, partial(self._beat, ident))
            beat -= turn.hand.ttl / 3
        self._at(turn.ended, partial(self._end, ident, turn))

    def person(self, ident: str, act: Act) -> None:
        """Let a person act on whatever name the task has then."""
        self._at(act.at, partial(self._person, ident, act))

    def janitor(self) -> None:
        """Give back now and then what fell silent."""
        for at in tales.REAPS:
            self._at(at, self._board(_HERE, "janitor").reap)

    def shell(self) -> None:
        """Two plain claims: one that lives, and one that has no lock and is stale."""
        disk, lock = self._disk, b"1773756090 web-2\n"
        for at, ident, who in ((860, "report-0871", ""), (240, "report-0874", "-by-sh-4")):
            offer = b"Sum up what the fleet did this morning.\n"
            self._at(at, partial(disk.create, f"{ident}.available", offer))
            move = partial(disk.rename, f"{ident}.available", f"{ident}.claimed{who}")
            self._at(at - 20, move)
        self._at(41, partial(disk.create, "report-0874.lock", lock))

    def run(self) -> None:
        """Do it all, the longest ago first."""
        for ago, act in sorted(self._acts, key=lambda item: -item[0]):
            self._disk.now = max(self._disk.now, AT - int(ago * SECOND))
            act()
        self._disk.now = AT - 2 * SECOND
        locks = [f"{FREE_FOLDER}/{name}" for name in self._disk.names(FREE_FOLDER)]
        for folder in ("", *FOLDERS, *locks):
            self._disk.touch(folder)

    def _at(self, ago: float, act: Callable[[], object]) -> None:
        self._acts.append((ago, act))

    def _board(self, host: str, user: str = "fleet") -> dibs.Board:
        key = f"{user}@{host}"
        if key not in self._boards:
            self._boards[key] = _open(self._disk, host, user)
        return self._boards[key]

    def _claim(self, verb: str, ident: str, turn: Turn, note: str) -> None:
        owner, host, ttl = turn.hand
        board = self._board(host)
        here = board.host
        process = dibs.Process(host, here.boot, here.pidns, 48213, 771204) if turn.died else None
        take = board.claim if verb == "claim" else board.acquire
        claim = take(ident, owner=owner, ttl=ttl, metadata=note, process=process)
        assert claim is not None
        self._claims[ident] = claim

    def _beat(self, ident: str) -> None:
        self._claims[ident].beat()

    def _end(self, ident: str, turn: Turn) -> None:
        claim = self._claims[ident]
        match turn.how:
            case tales.DONE:
                claim.done()
            case tales.FAIL:
                claim.fail(turn.reason)
            case tales.RELEASE:
                claim.release()
            case _:
                claim.beat()

    def _person(self, ident: str, act: Act) -> None:
        board = self._board(_HERE, "ana")
        name = board.find(ident)[0].name
        match act.verb:
            case "force-release":
                board.force_release(name, act.reason)
            case "requeue":
                board.requeue(name, act.reason)
            case "park":
                board.park(name, act.reason)
            case "prioritise":
                board.reprioritise(name, 9)
