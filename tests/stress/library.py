"""Storm workers that use the shell library, in every installed shell."""

from __future__ import annotations

import os
import shutil
from functools import partial
from pathlib import Path

import dibs
from tests.stress.crew import Scene

LIBRARY = Path(dibs.__file__).parent / "sh/dibs.sh"
WORKER = Path(__file__).parent / "shell/library.sh"


def programs() -> list[list[str]]:
    """The commands of the installed POSIX shells."""
    known = (["dash"], ["busybox", "sh"], ["bash", "--posix"])
    return [[path, *rest] for name, *rest in known if (path := shutil.which(name))] or [["/bin/sh"]]


def halt_file(scene: Scene) -> Path:
    """The file that stops these workers: a shell cannot work and wait for a pipe's end."""
    return scene.ledger.with_name("halt")


def bodies(scene: Scene, count: int) -> dict[str, partial[None]]:
    """This many workers, spread over the shells."""
    shells = programs()
    return {
        f"library-{n}": partial(work, scene, shells[n % len(shells)], f"library-{n}")
        for n in range(count)
    }


def work(scene: Scene, program: list[str], owner: str) -> None:
    """Replace this process with such a worker."""
    options = (LIBRARY, scene.board, scene.ledger, halt_file(scene), scene.ttl)
    long = round(scene.long * 256)
    os.execv(program[0], [*program, *map(str, (WORKER, *options, long, owner))])
