"""Writes a file that did not exist before, completely or not at all."""

from __future__ import annotations

import os
from contextlib import suppress


def write_new(path: str, content: str) -> str:
    """Write a new file that only this user can read; returns what went wrong, or ""."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        fd = os.open(path, flags, 0o600)
    except FileExistsError:
        return f"{path} exists and is left unchanged: choose another name"
    except (OSError, ValueError) as error:
        return f"{path}: {getattr(error, 'strerror', None) or error}"
    try:
        with open(fd, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write(content)
    except OSError as error:
        with suppress(OSError):
            os.unlink(path)
        return f"{path}: {error.strerror}; nothing is left there"
    return ""
