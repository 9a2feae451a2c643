"""Faults in how plain claims are handed back."""

from __future__ import annotations

from . import scenes_plain as plain
from .mutant import Mutant, mutant

MUTANTS: list[Mutant] = [
    mutant(
        "a vanished lock means done",
        "A plain reaper removed it: a task that never ran is finished.",
        (plain.PLAIN_REAPER, plain.WAKES),
        (
            "plain:finish",
            "            return _set_apart(store, taken, LOCK_GONE, by)\n",
            "            store.move(taken.name, f'done/{taken.stem}')\n            return None\n",
        ),
    ),
    mutant(
        "a dead take is reaped like any claim",
        "It goes to a name that plain workers never see.",
        (plain.TAKER_AND_WORKER, plain.DEAD_TAKER),
        ("janitor:_give_back", "if task.take:", "if False:"),
    ),
    mutant(
        "what was taken is not compared",
        "A worker that beat since loses its claim.",
        plain.ZOMBIE,
        ("plain:finish", "_compare(store, taken, sight)", "True"),
        ("plain:_same_lock", "lock_at(store, aside) == (sight.lock, sight.lock_mtime)", "True"),
    ),
    mutant(
        "what was taken is compared by its inode",
        "And it is not touched: the second of two janitors breaks the next worker's claim.",
        plain.SECOND_WITH_LOCK,
        (
            "plain:_compare",
            "(stat.ino, stat.mtime, lock, beaten) == (\n        sight.ino,\n        sight.mtime,\n"
            "        sight.lock,\n        sight.lock_mtime,\n    )",
            "stat.ino == sight.ino",
        ),
        ("plain:_same_lock", "lock_at(store, aside) == (sight.lock, sight.lock_mtime)", "True"),
        ("plain:finish", "        store.port.touch(taken.name)", "        pass"),
    ),
    mutant(
        "the lock is not looked at when it is set aside",
        "The worker beat between the comparison and then.",
        plain.ZOMBIE,
        ("plain:_same_lock", "lock_at(store, aside) == (sight.lock, sight.lock_mtime)", "True"),
    ),
    mutant(
        "a dead taker's lock is not compared",
        "It died between setting the lock aside and looking at it.",
        plain.WAKES,
        (
            "plain:finish",
            "    if not _same_lock(store, sight, aside):\n",
            "        if not _same_lock(store, sight, aside):\n"
            "            return _put_back(store, taken, sight, by)\n    if False:\n",
        ),
    ),
    mutant(
        "the lock is compared by its time",
        "Within one tick of the disk's clock a beat does not change it.",
        (plain.HOSTED, plain.LIFE),
        (
            "plain:_same_lock",
            "lock_at(store, aside) == (sight.lock, sight.lock_mtime)",
            "lock_at(store, aside)[1] == sight.lock_mtime",
        ),
    ),
    mutant(
        "putting back without a look at the lock",
        "Its worker finished during the take, and the task is done again.",
        plain.WAKES,
        ("plain:_put_back", "_lock(store, sight)[0] is None", "False"),
        ("plain:_put_back", 'store.port.append(_mark(taken), b".")', "pass"),
    ),
    mutant(
        "putting back without a mark",
        "Its worker finishes just after the look at its lock.",
        plain.WAKES,
        ("plain:_put_back", 'store.port.append(_mark(taken), b".")', "pass"),
    ),
    mutant(
        "putting back over a newer claim",
        "The task was offered and claimed anew during the take.",
        plain.CLAIMED_ANEW,
        (
            "plain:_put_back",
            "store.move(taken.name, sight.name, keep=True)",
            "store.move(taken.name, sight.name)",
        ),
    ),
    mutant(
        "handing back over what was offered anew",
        "The new payload is replaced.",
        plain.OFFERED_ANEW,
        (
            "plain:finish",
            "store.move(taken.name, name, keep=True)",
            "store.move(taken.name, name)",
        ),
    ),
    mutant(
        "a claim without a lock is taken as it is",
        "Its worker wakes up, beats and finishes during the take, and leaves no trace.",
        (plain.HOSTED, plain.LIFE),
        ("plain:give_back", "if seen.lock is None:", "if False:"),
        ("plain:_compare", "    if lock is None:\n        return None\n", ""),
        (
            "plain:finish",
            'not store.move(f"{_stem(sight)}.lock", aside)',
            "False",
        ),
        ("plain:finish", "not _same_lock(store, sight, aside)", "False"),
    ),
    mutant(
        "the lock that we make is not looked at again",
        "The worker's own `echo` came first, and is taken for what was seen.",
        (plain.HOSTED, plain.LIFE),
        (
            "plain:_give_lock",
            "(again.ino, again.since, again.lock) == (seen.ino, seen.since, OURS)",
            "(again.ino, again.since) == (seen.ino, seen.since)",
        ),
    ),
    mutant(
        "hand-backs are not counted",
        "A task that kills its workers is handed out for ever.",
        plain.COUNTED,
        ("plain:finish", "_count(store, taken) >= store.settings.max_attempts", "False"),
    ),
]
