"""Run a command for what happened, without a shell and without waiting for it."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import signal
import subprocess
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from threading import Condition, Thread
from typing import NamedTuple

from dibs.cli.say import JSON_VERSION, complain
from dibs.model.errors import BadName
from dibs.model.safe_text import shown

LIMIT = 60.0
"""Seconds after which a command that does not end is killed."""
CHARS = 300
"""The most characters of the text that the command gets as its last argument."""
MOST = 10_000
"""The most reports that wait for the command; later ones are only counted."""


class _Report(NamedTuple):
    what: str
    text: str
    line: str


class Notifier(Thread):
    """Runs a command with what was reported; what comes while it runs is for its next run.

    The text is its last argument and each report is a line of JSON on its standard input.
    """

    def __init__(self, command: str) -> None:
        super().__init__(name="dibs-notify", daemon=True)
        self._argv = _split(command)
        self._waiting: list[_Report] = []
        self._dropped = 0
        self._changed = Condition()
        self._ended = self._running = False
        self.start()

    def add(self, what: str, text: str, fields: Mapping[str, object]) -> None:
        """Run the command for this as soon as possible; returns at once."""
        line = json.dumps({"v": JSON_VERSION, **fields}, ensure_ascii=True)
        with self._changed:
            if len(self._waiting) < MOST:
                self._waiting.append(_Report(what, text, line))
            else:
                self._dropped += 1
            self._changed.notify_all()

    def end(self) -> None:
        """Wait until everything was reported."""
        with self._changed:
            self._ended = True
            self._changed.notify_all()
        self.join()

    def run(self) -> None:
        """Run the command whenever there is something to report."""
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting or self._ended)
                found, self._waiting = self._waiting, []
                dropped, self._dropped = self._dropped, 0
            if not found:
                return
            self._run(found, dropped)

    def _run(self, found: list[_Report], dropped: int) -> None:
        data = "".join(f"{one.line}\n" for one in found).encode("ascii")
        try:
            process = subprocess.Popen(
                [*self._argv, worded(found, dropped)],
                stdin=subprocess.PIPE,
                stdout=2,  # its output must not get into ours
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            complain(f"--notify: {self._argv[0]}: {getattr(error, 'strerror', None) or error}")
            return
        try:
            process.communicate(data, timeout=LIMIT)
        except subprocess.TimeoutExpired:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            complain(f"--notify: {self._argv[0]} was killed: it took longer than {LIMIT:.0f} s")
            return
        if process.returncode:
            complain(f"--notify: {self._argv[0]} ended with {process.returncode}")


def worded(found: list[_Report], dropped: int = 0) -> str:
    """The reports in one safe line: the text of a single one, else how many of each kind."""
    counts = Counter(one.what for one in found)
    words = found[0].text if len(found) == 1 else ", ".join(f"{n} {w}" for w, n in counts.items())
    more = f" and {dropped} more" if dropped else ""
    line = shown(f"dibs: {words}")
    return (line if len(line) <= CHARS else f"{line[: CHARS - 1]}…") + more


def _split(command: str) -> list[str]:
    """The words of a command, as a shell splits them; refused if it cannot be run."""
    try:
        found = shlex.split(command)
    except ValueError as error:
        raise BadName(f"--notify {command[:60]!r}: {error}: quote it as for a shell") from None
    if not found or shutil.which(found[0]) is None:
        what = found[0][:60] if found else ""
        raise BadName(f"--notify: there is no command {what!r}: give one that can be run")
    return found
