"""A fixed demo board: always the same tasks in the same states at the same time.

It is made with the real verbs, on a clock that only moves between them.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from random import Random

import dibs
from dibs.files.board_files import FOLDERS, NOTES, BoardFiles
from dibs.files.engine import FilesBoard
from dibs.files.presence import WAITING
from dibs.files.questions import QUESTIONS
from dibs.files.read_only_disk import ReadOnlyDisk
from dibs.files.reader_thread import watch_directory
from dibs.model.names import FREE_FOLDER
from dibs.model.sample import SECOND
from dibs_tui.demo import histories, tasks
from dibs_tui.demo.frozen_disk import FrozenDisk
from dibs_tui.demo.histories import OperatorsAct, Turn
from dibs_tui.source.board_source import BoardSource

AT = 1_773_756_131 * SECOND + SECOND // 4
"""The time of the board: just after 14:02:11 UTC on 17 March 2026."""
_BEFORE = 3900
_HERE = "lab-9"
_ON_DEMAND = (NOTES, WAITING, QUESTIONS)
_TALKATIVE = ("agent-", "web-3.1", "web-3.3")
"""How the owners begin whose workers say what they do."""
_SETTINGS = (
    b'format = 2\nttl = 120\nplain_ttl = 600\nmax_attempts = 3\ndurability = "off"\nretry = []\n'
)


def make(path: str) -> None:
    """Make the fixed board in a directory that is empty or missing."""
    os.makedirs(path, exist_ok=True)
    if os.listdir(path):
        raise dibs.NotABoard(f"{path} is not empty: give an empty directory for the demo board")
    play = _Play(path)
    of_stream = [*histories.histories(), *histories.asked()]
    for history, draft in zip(of_stream, tasks.stream(), strict=False):
        play.task(history.added, draft)
        for turn in history.turns:
            play.turn("claim", draft.id, turn, tasks.note(draft.id, Random(draft.id)))
        for act in history.acts:
            play.operate(draft.id, act)
    for history, draft in zip(histories.mails(), tasks.mails(), strict=False):
        play.task(history.added, draft)
        for turn in history.turns:
            play.turn("claim", draft.id, turn, "")
    for owner, host, state in histories.WAITERS:
        play.wait(owner, host, state)
    for ident, turn, note in histories.LEASES:
        play.turn("acquire", ident, turn, note)
    play.shell()
    play.janitor()
    play.run()


class _ReadOnlyFrozenDisk(ReadOnlyDisk, FrozenDisk):
    """The same disk, read-only."""


def board(path: str, *, read_only: bool = False) -> FilesBoard:
    """Open the fixed board; its time is always `AT`."""
    return _open((_ReadOnlyFrozenDisk if read_only else FrozenDisk)(path, AT), _HERE, "ana")


def source_of(path: str, *, read_only: bool = False) -> BoardSource:
    """The fixed board for a dashboard; its time is always `AT`."""
    return BoardSource(
        path,
        read_only=read_only,
        watch=partial(watch_directory, open_board=board),
        boottime=FrozenDisk(path, AT).boottime,
        host=_host(_HERE, "ana"),
    )


def _host(name: str, user: str) -> dibs.Host:
    return dibs.Host(name, _boot(name), "pid:[4026531836]", user)


def _open(disk: FrozenDisk, name: str, user: str) -> FilesBoard:
    store = BoardFiles(disk, _host(name, user))
    store.open()
    return FilesBoard(store, disk.root)


def _boot(name: str) -> str:
    return f"{Random(name).getrandbits(256):064x}"


def _said(turn: Turn, ident: str) -> str:
    """What the worker says of its work."""
    return tasks.step(ident) if turn.worker.owner.startswith(_TALKATIVE) else ""


class _Play:
    """Everything that happened on the board, each act at its time."""

    def __init__(self, path: str) -> None:
        self._disk = FrozenDisk(path, AT - _BEFORE * SECOND)
        self._disk.mkdir(".dibs")
        self._disk.create(".dibs/board.toml", _SETTINGS)
        self._boards: dict[str, FilesBoard] = {}
        self._claims: dict[str, dibs.Claim] = {}
        self._acts: list[tuple[float, Callable[[], object]]] = []

    def task(self, added: float, draft: tasks.Draft) -> None:
        """Add a task."""
        add = self._board("web-1").add
        self._at(added, partial(add, draft.id, draft.payload, priority=draft.priority))

    def turn(self, verb: str, ident: str, turn: Turn, note: str) -> None:
        """Claim a task or a lock, beat every third of the ttl, and end it or go stale."""
        self._at(turn.claimed, partial(self._claim, verb, ident, turn, note))
        beat = turn.claimed - turn.worker.ttl / 3
        while beat > turn.ended:
            self._at(beat, partial(self._beat, ident))
            beat -= turn.worker.ttl / 3
        if turn.how == histories.STALE and (text := turn.note or _said(turn, ident)):
            part = Random(f"note of {ident}").uniform(0, 0.4)
            said = turn.ended + part * (turn.claimed - turn.ended)
            self._at(said, partial(self._say, ident, text))
        self._at(turn.ended, partial(self._end, ident, turn))

    def operate(self, ident: str, act: OperatorsAct) -> None:
        """Let an operator act on the name that the task has at that time."""
        self._at(act.at, partial(self._operate, ident, act))

    def janitor(self) -> None:
        """Reap stale claims now and then."""
        for at in histories.REAPS:
            self._at(at, self._board(_HERE, "janitor").reap)

    def wait(self, owner: str, host: str, state: str) -> None:
        """Let a worker wait for a task until now."""
        presence = self._board(host).presence(owner)
        for at in (60, 50, 40, 30, 20, 10):
            self._at(at, partial(presence.keep, state))

    def shell(self) -> None:
        """Two shell claims: one that is alive, and one without a lock file that is stale."""
        disk, lock = self._disk, b"1773756090 web-2\n"
        for at, ident, who in ((860, "report-0871", ""), (240, "report-0874", "-by-sh-4")):
            offer = b"Sum up what the fleet did this morning.\n"
            self._at(at, partial(disk.create, f"{ident}.available", offer))
            move = partial(disk.rename, f"{ident}.available", f"{ident}.claimed{who}")
            self._at(at - 20, move)
        self._at(41, partial(disk.create, "report-0874.lock", lock))

    def run(self) -> None:
        """Do everything, the oldest act first."""
        for ago, act in sorted(self._acts, key=lambda item: -item[0]):
            self._disk.now = max(self._disk.now, AT - int(ago * SECOND))
            act()
        self._disk.now = AT - 2 * SECOND
        locks = [f"{FREE_FOLDER}/{name}" for name in self._disk.names(FREE_FOLDER)]
        for folder in ("", *FOLDERS, *_ON_DEMAND, *locks):
            self._disk.touch(folder)

    def _at(self, ago: float, act: Callable[[], object]) -> None:
        self._acts.append((ago, act))

    def _board(self, host: str, user: str = "fleet") -> FilesBoard:
        key = f"{user}@{host}"
        if key not in self._boards:
            self._boards[key] = _open(self._disk, host, user)
        return self._boards[key]

    def _claim(self, verb: str, ident: str, turn: Turn, note: str) -> None:
        owner, host, ttl = turn.worker
        board = self._board(host)
        here = board.host
        process = dibs.Process(host, here.boot, here.pidns, 48213, 771204) if turn.died else None
        take = board.claim if verb == "claim" else board.acquire
        claim = take(ident, owner=owner, ttl=ttl, metadata=note, process=process)
        assert claim is not None
        self._claims[ident] = claim
        if turn.how != histories.STALE and (text := turn.note or _said(turn, ident)):
            claim.note(text)

    def _say(self, ident: str, text: str) -> None:
        self._claims[ident].note(text)

    def _beat(self, ident: str) -> None:
        self._claims[ident].beat()

    def _end(self, ident: str, turn: Turn) -> None:
        claim = self._claims[ident]
        match turn.how:
            case histories.DONE:
                claim.done()
            case histories.FAIL:
                claim.fail(turn.reason, retry_in=turn.retry_in)
            case histories.ASK:
                claim.ask(turn.reason)
            case histories.RELEASE:
                claim.release()
            case _:
                claim.beat()

    def _operate(self, ident: str, act: OperatorsAct) -> None:
        board = self._board(_HERE, "ana")
        name = board.find(ident)[0].name
        match act.verb:
            case "force-release":
                board.force_release(name, act.reason)
            case "requeue":
                board.requeue(name, act.reason)
            case "park":
                board.park(name, act.reason)
            case "prioritize":
                board.prioritize(name, 8)
