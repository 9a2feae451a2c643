"""The files that come with the package, also when it is in a zip file."""

from __future__ import annotations

import os
import sys
from typing import Any


def data(name: str) -> bytes:
    """The content of a file of the package, such as `sh/dibs.sh`."""
    package = sys.modules["dibs"]
    folder = os.path.dirname(os.path.abspath(str(package.__file__)))
    loader: Any = package.__loader__
    found: bytes = loader.get_data(os.path.join(folder, name))
    return found


def text(name: str) -> str:
    """The content of a page of the package, such as `AGENTS.md`."""
    return data(name).decode()


def shell_library() -> str:
    """The path of dibs.sh; inside a zip file no program can read it there."""
    return os.path.join(os.path.dirname(str(sys.modules["dibs"].__file__)), "sh", "dibs.sh")
