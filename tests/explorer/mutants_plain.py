"""Faults in how plain claims are requeued."""

from __future__ import annotations

from . import scenes_plain as plain
from .mutant import Mutant, mutant

MUTANTS: list[Mutant] = [
    mutant(
        "a vanished lock means done",
        "A shell reaper removed it: a task that never ran becomes done.",
        (plain.PLAIN_REAPER, plain.WAKES),
        (
            "shell_claims:finish",
            "            return _park(store, taken, LOCK_GONE, by)\n",
            "            moves.move(store, taken.name, f'done/{taken.stem}')\n"
            "            return None\n",
        ),
    ),
    mutant(
        "a dead takeover is reaped like any claim",
        "It gets a name that shell workers never see.",
        (plain.TAKER_AND_WORKER, plain.DEAD_TAKER),
        ("janitor:_requeue", "if task.is_takeover:", "if False:"),
    ),
    mutant(
        "the taken claim is not compared",
        "A worker that beat meanwhile loses its claim.",
        plain.ZOMBIE,
        ("shell_claims:finish", "_compare(store, taken, snapshot)", "True"),
        (
            "shell_claims:_same_lock",
            "lock_at(store, aside) == (snapshot.lock, snapshot.lock_mtime)",
            "True",
        ),
    ),
    mutant(
        "the taken claim is compared by its inode",
        "It is not touched either: the second of two janitors takes the next worker's claim.",
        plain.SECOND_WITH_LOCK,
        (
            "shell_claims:_compare",
            "(stat.ino, stat.mtime, lock, beaten) == (\n        snapshot.ino,\n"
            "        snapshot.mtime,\n        snapshot.lock,\n        snapshot.lock_mtime,\n    )",
            "stat.ino == snapshot.ino",
        ),
        (
            "shell_claims:_same_lock",
            "lock_at(store, aside) == (snapshot.lock, snapshot.lock_mtime)",
            "True",
        ),
        ("shell_claims:finish", "        store.port.touch(taken.name)", "        pass"),
    ),
    mutant(
        "the lock is not checked after it is moved aside",
        "The worker beat between the comparison and the move.",
        plain.ZOMBIE,
        (
            "shell_claims:_same_lock",
            "lock_at(store, aside) == (snapshot.lock, snapshot.lock_mtime)",
            "True",
        ),
    ),
    mutant(
        "a dead taker's lock is not compared",
        "It died after it moved the lock aside and before it checked it.",
        plain.WAKES,
        (
            "shell_claims:finish",
            "    if not _same_lock(store, snapshot, aside):\n",
            "        if not _same_lock(store, snapshot, aside):\n"
            "            return _put_back(store, taken, snapshot, by)\n    if False:\n",
        ),
    ),
    mutant(
        "the lock is compared by its time",
        "A beat within one tick of the disk's clock does not change it.",
        (plain.HOSTED, plain.LIFE),
        (
            "shell_claims:_same_lock",
            "lock_at(store, aside) == (snapshot.lock, snapshot.lock_mtime)",
            "lock_at(store, aside)[1] == snapshot.lock_mtime",
        ),
    ),
    mutant(
        "putting back without a check of the lock",
        "Its worker finished during the takeover, and the task runs again.",
        plain.WAKES,
        ("shell_claims:_put_back", "_lock(store, snapshot)[0] is None", "False"),
        ("shell_claims:_put_back", 'store.port.append(_mark(taken), b".")', "pass"),
    ),
    mutant(
        "putting back without a mark",
        "Its worker finishes just after the check of its lock.",
        plain.WAKES,
        ("shell_claims:_put_back", 'store.port.append(_mark(taken), b".")', "pass"),
    ),
    mutant(
        "putting back over a newer claim",
        "The task was added and claimed again during the takeover.",
        plain.CLAIMED_AGAIN,
        (
            "shell_claims:_put_back",
            "moves.move(store, taken.name, snapshot.name, keep=True)",
            "moves.move(store, taken.name, snapshot.name)",
        ),
    ),
    mutant(
        "requeueing over a task that was added again",
        "The new payload is replaced.",
        plain.ADDED_AGAIN,
        (
            "shell_claims:finish",
            "moves.move(store, taken.name, name, keep=True)",
            "moves.move(store, taken.name, name)",
        ),
    ),
    mutant(
        "a claim without a lock is taken without a new lock",
        "Its worker wakes up, beats and finishes during the takeover, and leaves no trace.",
        (plain.HOSTED, plain.LIFE),
        ("shell_claims:requeue", "if seen.lock is None:", "if False:"),
        ("shell_claims:_compare", "    if lock is None:\n        return None\n", ""),
        (
            "shell_claims:finish",
            'not moves.move(store, f"{_stem(snapshot)}.lock", aside)',
            "False",
        ),
        ("shell_claims:finish", "not _same_lock(store, snapshot, aside)", "False"),
    ),
    mutant(
        "the janitor's own lock is not checked again",
        "The worker's own `echo` came first, and counts as the janitor's lock.",
        (plain.HOSTED, plain.LIFE),
        (
            "shell_claims:_give_lock",
            "(again.ino, again.since, again.lock) == (seen.ino, seen.since, OURS)",
            "(again.ino, again.since) == (seen.ino, seen.since)",
        ),
    ),
    mutant(
        "requeues are not counted",
        "A task that kills its workers is never parked.",
        plain.COUNTED,
        (
            "shell_claims:finish",
            "_count(store, taken) >= store.settings.max_attempts",
            "False",
        ),
    ),
    mutant(
        "a takeover tried again replaces what is there",
        "Its first try landed, and the second moves a newer claim over that payload.",
        plain.TRIED_AGAIN,
        ("moves:move", "keep or again", "keep"),
    ),
    mutant(
        "a takeover that lands late replaces what is there",
        "Its second try has succeeded, and the first moves a newer claim over that payload.",
        plain.TRIED_AGAIN,
        ("shell_claims:requeue", "recurs=True", "recurs=False"),
    ),
    mutant(
        "a takeover of an earlier claim does not count",
        "It holds the lock aside for now, and the claim whose worker beats looks dead.",
        plain.BESIDE,
        (
            "shell_claims:requeue",
            "any(other.is_takeover for other in store.find(task.id))",
            "False",
        ),
    ),
    mutant(
        "a lock that was left aside is not returned",
        "A rename of an ended takeover landed late, and the claim whose worker beat looks dead.",
        plain.MISLAID,
        ("shell_claims:requeue", "_return_lock(store, task)", "False"),
    ),
]
