"""Actors that use only `mv`, `echo` and `rm`, as PROTOCOL.md section 2 describes."""

from __future__ import annotations

from contextlib import suppress

from .desk import Desk


def works(desk: Desk, ident: str = "t", *, claimed: str = "claimed", beats: int = 0) -> str:
    """Work as a shell: mv, echo, echo again, check that the lock is its own, rm."""
    name, lock = f"{ident}.{claimed}", f"{ident}.lock"
    try:
        desk.port.rename(f"{ident}.available", name)
    except OSError:
        return "lost"
    return goes_on(desk, name, lock, beats=beats)


def goes_on(desk: Desk, name: str, lock: str, *, beats: int = 0) -> str:
    """The same, after it moved the file."""
    me = f"1700000000 {desk.port.name}\n".encode()
    for _ in range(1 + beats):
        desk.port.write(lock, me)
    return finishes(desk, name, lock)


def finishes(desk: Desk, name: str, lock: str) -> str:
    """Verify the claim, then `rm -f` both files."""
    me = f"1700000000 {desk.port.name}\n".encode()
    try:
        data = desk.port.read(lock, 99)[0]
    except OSError:
        return "stops"
    if data != me:
        return "stops"
    for path in (name, lock):
        try:
            desk.port.unlink(path)
        except FileNotFoundError:
            pass
        except OSError:
            return "rm failed"
    return "finished"


def reaps(desk: Desk, ident: str = "t") -> str:
    """Reap as a shell that found the worker unreachable: `mv` back, then `rm` of the lock."""
    moved = "moved"
    try:
        desk.port.rename(f"{ident}.claimed", f"{ident}.available")
    except OSError:
        moved = "mv failed"
    with suppress(OSError):
        desk.port.unlink(f"{ident}.lock")
    return moved


def offers(desk: Desk, src: str, ident: str = "t") -> None:
    """Add a task: `mv -n` of a complete file from elsewhere."""
    with suppress(OSError):
        desk.port.rename(src, f"{ident}.available", True)
