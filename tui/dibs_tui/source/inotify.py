"""Asks Linux which inotify limit is reached.

`watchfiles` reports a reached limit as an `OSError` or a `RuntimeError` without a number.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterable
from errno import EMFILE, ENOSPC

_CREATE = 0x100

LIMITS = {
    EMFILE: "the inotify instances are used up: raise fs.inotify.max_user_instances or ulimit -n",
    ENOSPC: "the inotify watches are used up: raise fs.inotify.max_user_watches",
}
"""The reason and the remedy for each error number of `refusal`."""


def refusal(paths: Iterable[str]) -> int:
    """The error number with which inotify refuses to watch these paths.

    It is 0 if inotify accepts them, and on a system without inotify.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    try:
        init, add = libc.inotify_init1, libc.inotify_add_watch
    except AttributeError:
        return 0
    instance = init(os.O_CLOEXEC)
    if instance < 0:
        return ctypes.get_errno()
    try:
        for path in paths:
            if add(instance, os.fsencode(path), _CREATE) < 0:
                return ctypes.get_errno()
    finally:
        os.close(instance)
    return 0
