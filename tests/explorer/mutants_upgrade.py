"""Faults in how a board of format 1 becomes one of format 2."""

from __future__ import annotations

from . import scenes_upgrade as upgrade
from .mutant import Mutant, mutant

_BLAME = (
    "    except OSError as error:\n        raise storage_error(error) from error\n    return True"
)

MUTANTS: list[Mutant] = [
    mutant(
        "an upgrade removes the records",
        "A claim made meanwhile lasts for the board's ttl, while its owner counts on its own.",
        upgrade.WORKED,
        (
            "upgrading:_move_records",
            'port.rename(f"{MARK}/{entry}", f"{RECORDS}/{entry}")',
            'port.unlink(f"{MARK}/{entry}")',
        ),
    ),
    mutant(
        "the folder of the records is removed with new records",
        "A record is written after the listing, in a folder that is not read any more.",
        upgrade.WORKED,
        ("upgrading:_set_mark", "port.rmdir(MARK)", "port.rename(MARK, '.dibs/before')"),
    ),
    mutant(
        "an upgrade succeeds though the folder exists again",
        "A program of format 1 made it again: records are in two places.",
        upgrade.WORKED,
        (
            "upgrading:_set_mark",
            'port.stat(MARK).regular else "the folder exists again"',
            'MARK else ""',
        ),
    ),
    mutant(
        "a file that disappears ends the upgrade as if none were needed",
        "A lock was acquired, or another upgrade moved it.",
        upgrade.LOCKED,
        ("upgrading:_move_locks", "suppress(FileNotFoundError)", "suppress(FileExistsError)"),
        (
            "upgrading:upgrade_at",
            _BLAME,
            _BLAME.replace("raise storage_error(error) from error", "return not error"),
        ),
    ),
    mutant(
        "an upgrade moves a lock without its fence",
        "The next holder gets a fence that was granted before.",
        upgrade.LOCKED,
        ("upgrading:_move_locks", "task.stamp, FREE), keep", "names.Stamp(), FREE), keep"),
    ),
]
