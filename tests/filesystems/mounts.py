"""Mounts for one test, always unmounted after it."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

IMAGE_BYTES = 320 << 20
"""The least size for XFS; the file is sparse."""
Mount = Callable[[Path], AbstractContextManager[Path]]
"""Mounts something below an empty folder and yields the place."""


def run(*command: str | Path) -> None:
    """Run a tool; skip the test with the reason if the tool is missing or fails."""
    shown = Path(command[0]).name
    if shutil.which(shown) is None:
        pytest.skip(f"THIS FILE SYSTEM WAS NOT TRIED: {shown} is not installed")
    done = subprocess.run(command, capture_output=True, text=True, timeout=30)
    if done.returncode:
        reason = done.stderr.strip().partition("\n")[0]
        pytest.skip(f"THIS FILE SYSTEM WAS NOT TRIED: {shown} says: {reason}")


def why_not() -> str:
    """Why nothing can be mounted here; empty if it can."""
    if os.geteuid() != 0:
        return "only root may mount"
    with tempfile.TemporaryDirectory() as place:
        how = ("mount", "-t", "tmpfs", "none", place)
        done = subprocess.run(how, capture_output=True, text=True, timeout=30)
        if done.returncode == 0:
            subprocess.run(["umount", place], check=True, timeout=30)
    return done.stderr.strip()


@contextmanager
def mounted(place: Path, *how: str | Path) -> Iterator[Path]:
    """Mount something at a place inside the block."""
    place.mkdir(exist_ok=True)
    run(*how, place)
    try:
        yield place
    finally:
        subprocess.run(["umount", "--lazy", place], check=True, timeout=30)


@contextmanager
def tmpfs(folder: Path, options: str = "size=16m") -> Iterator[Path]:
    with mounted(folder / "tmpfs", "mount", "-t", "tmpfs", "-o", options, "none") as place:
        yield place


@contextmanager
def overlay(folder: Path) -> Iterator[Path]:
    """An overlay with its layers on a tmpfs, because an overlay cannot be on another one."""
    with tmpfs(folder) as ground:
        parts = {name: ground / name for name in ("lowerdir", "upperdir", "workdir")}
        for part in parts.values():
            part.mkdir()
        options = ",".join(f"{name}={part}" for name, part in parts.items())
        how = ("mount", "-t", "overlay", "-o", options, "none")
        with mounted(folder / "overlay", *how) as place:
            yield place


@contextmanager
def bindfs(folder: Path) -> Iterator[Path]:
    """A folder that a user-space process passes through."""
    below = folder / "below"
    below.mkdir()
    with mounted(folder / "bindfs", "bindfs", below) as place:
        yield place


def image(kind: str, *mkfs: str) -> Mount:
    """A real file system in a file."""

    @contextmanager
    def mount(folder: Path) -> Iterator[Path]:
        file = folder / f"{kind}.image"
        with file.open("wb") as made:
            made.truncate(IMAGE_BYTES)
        run(*mkfs, file)
        with mounted(folder / kind, "mount", "-t", kind, "-o", "loop", file) as place:
            yield place

    return mount


KINDS: dict[str, Mount] = {
    "tmpfs": tmpfs,
    "ext4": image("ext4", "mke2fs", "-q", "-t", "ext4"),
    "xfs": image("xfs", "mkfs.xfs", "-q"),
    "btrfs": image("btrfs", "mkfs.btrfs", "-q"),
    "vfat": image("vfat", "mkfs.vfat"),
    "overlay": overlay,
    "bindfs": bindfs,
}


def remount(place: Path, options: Sequence[str]) -> None:
    run("mount", "-o", ",".join(["remount", *options]), place)
