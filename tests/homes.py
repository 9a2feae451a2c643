"""An empty home and a folder in memory for the suite, both of which are removed at its end.

dibs remembers boards in the home, and the tests' own must not be among the user's.
"""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path

USERS_HOME = "DIBS_TEST_USERS_HOME"
"""The variable with the home of the user who started the suite; no test may write there."""
MEMORY = "/dev/shm"
_IN_MEMORY = "DIBS_TEST_MEMORY"
"""The variable with the folder of this session in it."""
_PREFIX = "dibs-tests-"
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


def live_in_memory() -> None:
    """Give the session a folder in memory, and remove those of sessions that were killed.

    Each server of PostgreSQL in it takes tens of megabytes.
    """
    if "PYTEST_XDIST_WORKER" in os.environ or not os.access(MEMORY, os.W_OK):
        return
    for left in Path(MEMORY).glob(f"{_PREFIX}*"):
        pid = left.name.removeprefix(_PREFIX)
        with suppress(OSError):
            if pid.isdecimal() and left.stat().st_uid == os.geteuid() and not _runs(int(pid)):
                shutil.rmtree(left, ignore_errors=True)
    folder = Path(MEMORY, f"{_PREFIX}{os.getpid()}")
    folder.mkdir(exist_ok=True)
    folder.chmod(0o755)  # some tests become another user
    atexit.register(_remove, str(folder), os.getpid())
    os.environ[_IN_MEMORY] = str(folder)


def in_memory() -> str | None:
    """The fastest folder for files; None for the default one."""
    own = os.environ.get(_IN_MEMORY, MEMORY)
    return own if os.access(own, os.W_OK) else None


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


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
