"""Storm workers that stand on the shell library, in every shell that is here."""

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
    """The commands that are a POSIX shell."""
    known = (["dash"], ["busybox", "sh"], ["bash", "--posix"])
    return [[path, *rest] for name, *rest in known if (path := shutil.which(name))] or [["/bin/sh"]]


def halt_file(scene: Scene) -> Path:
    """What sends these workers home: a shell cannot wait for a pipe's end and work as well."""
    return scene.ledger.with_name("halt")


def bodies(scene: Scene, count: int) -> dict[str, partial[None]]:
    """So many workers, each in another shell."""
    shells = programs()
    return {
        f"library-{n}": partial(work, scene, shells[n % len(shells)], f"library-{n}")
        for n in range(count)
    }


def work(scene: Scene, program: list[str], owner: str) -> None:
    """Become such a worker."""
    options = (LIBRARY, scene.board, scene.ledger, halt_file(scene), scene.ttl)
    long = round(scene.long * 256)
    os.execv(program[0], [*program, *map(str, (WORKER, *options, long, owner))])
