"""An empty home for the suite, so that dibs does not remember boards of tests among the user's."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path

USERS_HOME = "DIBS_TEST_USERS_HOME"
"""The variable with the home of the user who started the suite; no test may write there."""
FOLDERS = {
    "XDG_CACHE_HOME": ".cache",
    "XDG_CONFIG_HOME": ".config",
    "XDG_DATA_HOME": ".local/share",
    "XDG_STATE_HOME": ".local/state",
}


def live_in_an_empty_home() -> None:
    """Give every process of the suite an empty home, which is removed when the suite ends."""
    if "PYTEST_XDIST_WORKER" in os.environ:
        return  # a worker has the home of its session
    os.environ[USERS_HOME] = os.path.expanduser("~")
    pip = _own_folder("XDG_CONFIG_HOME") / "pip/pip.conf"
    if pip.exists():  # it says where packages come from
        os.environ.setdefault("PIP_CONFIG_FILE", str(pip))
    home = tempfile.mkdtemp(prefix="dibs-home-")
    atexit.register(_remove, home, os.getpid())
    os.environ["HOME"] = home
    for name in FOLDERS:
        os.environ.pop(name, None)


def _own_folder(variable: str) -> Path:
    given = os.environ.get(variable, "")
    return Path(given) if os.path.isabs(given) else Path.home() / FOLDERS[variable]


def _remove(home: str, pid: int) -> None:
    if os.getpid() == pid:  # not in a fork
        shutil.rmtree(home, ignore_errors=True)


def files_that_name(below: Path, home: str) -> list[str]:
    """The files of dibs in a home that name a path below a folder, as of a board in it."""
    found = []
    for folder in FOLDERS.values():
        for path in sorted(Path(home, folder, "dibs").rglob("*")):
            with suppress(OSError):
                if path.is_file() and os.fsencode(below) in path.read_bytes():
                    found.append(str(path))
    return found
