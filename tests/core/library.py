"""The shell library under test: it runs one script at a time, in each installed shell."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

import dibs
from dibs.files.engine import FilesBoard, open_directory
from tests.core.tools import settle
from tests.patience import PATIENCE

LIBRARY = Path(dibs.__file__).parent / "sh/dibs.sh"
SHELLS = (["dash"], ["busybox", "sh"])
CLAIM = r"[A-Za-z0-9_=-]+\.f[1-9][0-9]*(a[0-9]+)?(p[0-9])?\.[A-Za-z0-9_-]+-[0-9A-F]{10}"


class Fleet:
    """A board, and shells that source the library."""

    def __init__(self, scratch: Path, program: list[str], **settings: object) -> None:
        if shutil.which(program[0]) is None:
            pytest.skip(f"{program[0]} is not installed")
        self.program = program
        self.library = LIBRARY
        self.path = scratch / "board"
        self.commands = os.environ["PATH"]
        if program[0] == "busybox":  # then no other tool is on PATH
            self.commands = str(scratch / "bin")
            os.mkdir(self.commands)
            subprocess.run(["busybox", "--install", "-s", self.commands], check=True)
        settle(self.path, **settings)

    def add(self, *names: str) -> None:
        """Add tasks as a plain shell does."""
        for name in names:
            (self.path / f"{name}.available").write_text(f"payload of {name}\n")

    def run(self, script: str, before: str = "", **env: str) -> subprocess.CompletedProcess[bytes]:
        text = f"{before}\n. '{self.library}'\n{script}\n"
        variables = {"PATH": self.commands, "DIBS_DIR": str(self.path), "USER": "tester"}
        return subprocess.run(
            [shutil.which(self.program[0]) or "", *self.program[1:], "-c", text],
            env=variables | {"DIBS_OWNER": "me"} | env,
            cwd=self.path.parent,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=PATIENCE,
        )

    def sh(self, script: str, *, code: int = 0, **env: str) -> str:
        """The output of a script that must exit with this code."""
        done = self.run(script, **env)
        assert done.returncode == code, done
        return done.stdout.decode("utf-8", "surrogateescape").strip()

    def instead_of(self, tool: str, script: str) -> None:
        """Put a script before a tool on PATH; in the script, $REAL is the real tool."""
        real, folder = shutil.which(tool, path=self.commands), self.path.parent / "first"
        folder.mkdir(exist_ok=True)
        (folder / tool).write_text(f"#!/bin/sh\nREAL={real}\n{script}\n")
        (folder / tool).chmod(0o755)
        self.commands = f"{folder}:{self.commands}"

    def names(self) -> list[str]:
        own = {".dibs", ".paused", "done", "failed"}
        found = [p.name for p in self.path.iterdir() if p.name not in own]
        for folder in ("done", "failed"):
            if (self.path / folder).is_dir():
                found += [f"{folder}/{p.name}" for p in (self.path / folder).iterdir()]
        return sorted(found)

    def board(self) -> FilesBoard:
        return open_directory(self.path)
