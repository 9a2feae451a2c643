"""The presence of workers that wait: faults in who is shown, and in what remains."""

from __future__ import annotations

from . import scenes_presence as scenes
from .mutant import Mutant, mutant

MUTANTS: list[Mutant] = [
    mutant(
        "a presence that was removed is not created again",
        "A worker that waits is not shown any more, and its tasks seem to have no worker.",
        scenes.REMOVED,
        (
            "presence:FilesPresence._touch",
            "        with suppress(FileNotFoundError):\n            store",
            "        if True:\n            store",
        ),
    ),
    mutant(
        "no janitor removes the presence of a worker that was killed",
        "The files of killed workers pile up.",
        (scenes.LEFT, scenes.WORKS),
        ("presence:clear", "> REMOVED", "> 10**30"),
    ),
    mutant(
        "a worker that was killed while it waited is shown until it is removed",
        "Operators see a worker where there is none.",
        scenes.LEFT,
        ("presence:WaiterList.look", "<= IGNORED", "<= 10**30"),
    ),
    mutant(
        "a worker keeps its presence while it works",
        "Its file stays when it ends.",
        (scenes.REMOVED, scenes.WORKS),
        ("presence:FilesPresence.end", "    self._remove()\n", ""),
    ),
    mutant(
        "a touch creates another file",
        "One worker that waits is shown as two.",
        scenes.REMOVED,
        ("presence:FilesPresence._touch", "if self._waiter is None:", "if True:"),
    ),
    mutant(
        "a worker fails if its presence cannot be written",
        "A full disk stops workers that only wait.",
        scenes.FAILS,
        ("presence:FilesPresence.keep", "with suppress(OSError):", "if True:"),
    ),
]
