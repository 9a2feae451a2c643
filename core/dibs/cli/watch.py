"""The verb `watch`: report what happens on a board until stopped."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterable
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING

from dibs.board import watch as watch_board
from dibs.cli.boards import board_of
from dibs.model.events import spoken
from dibs.model.filters import parse
from dibs.model.slots import title
from dibs.model.usual import VERBS, learn
from dibs.model.watching import Observer, Occurrence

if TYPE_CHECKING:
    from dibs.cli.notify import Notifier
    from dibs.cli.say import Voice
    from dibs.model.delta import Delta

POLL = 0.5
"""Seconds between two readings of the board."""
_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def watch(voice: Voice, args: argparse.Namespace) -> int:
    """Report every transition, and what no transition shows, each once."""
    from dibs.cli.notify import Notifier

    test = parse(args.filter) if args.filter else None
    notifier = Notifier(args.notify) if args.notify is not None else None
    board = board_of(args)
    durations = learn(board.log.newest_first(verbs=VERBS))
    observer = Observer(durations, test, boottime=lambda: time.clock_gettime_ns(_CLOCK))
    deltas: SimpleQueue[Delta] = SimpleQueue()
    watched = watch_board(board.location.where, deltas.put, poll=POLL)
    due = 0.0
    try:
        while True:
            with suppress(Empty):
                report(voice, observer.note(deltas.get(timeout=POLL), time.monotonic()), notifier)
            if time.monotonic() >= due:
                report(voice, observer.tick(watched.health, time.monotonic()), notifier)
                due = time.monotonic() + POLL
    finally:
        watched.stop()


def report(voice: Voice, found: Iterable[Occurrence], notifier: Notifier | None) -> None:
    """Print what happened, and run the command for it."""
    for one in found:
        if not one.at:  # the board was not read yet, nor its clock
            one = one._replace(at=time.time())
        when = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(one.at))
        what, about = spoken(one.what), f"{title(one.id)}  " if one.id else ""
        voice.result(f"{when} {what:<13} {about}{one.text}", one.fields())
        if notifier is not None:
            notifier.add(one.what, f"{what} {about}{one.text}", voice.board | one.fields())
    sys.stdout.flush()
