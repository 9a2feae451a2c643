"""Faults in how a claim is made, kept and ended."""

from __future__ import annotations

from . import scenes_claims as claims
from . import scenes_locks as locks
from . import scenes_operator as operator
from . import scenes_time as times
from .mutant import Mutant, mutant

_DESTINATION_FIRST = (
    "moves:move",
    "here, there = store.look(src), store.look(dst)",
    "there, here = store.look(dst), store.look(src)",
)

MUTANTS: list[Mutant] = [
    mutant(
        "believes ENOENT",
        "A rename that was answered ENOENT counts as lost, without a look.",
        (claims.PAIR, claims.COMMIT),
        (
            "moves:move",
            "error = failed.with_traceback(None)\n",
            "error = failed.with_traceback(None)\n            if error.errno == errno.ENOENT:\n"
            "                return False\n",
        ),
    ),
    mutant(
        "believes EIO",
        "The names are looked at once, so a rename that lands later is missed.",
        claims.COMMIT,
        (
            "moves:move",
            "store.look(src), store.look(dst)\n",
            "store.look(src), store.look(dst)\n        if here:\n            return False\n",
        ),
    ),
    mutant(
        "looks at the destination first",
        "A rename that lands between the two looks seems not to have happened.",
        claims.PAIR,
        _DESTINATION_FIRST,
    ),
    mutant(
        "looks at the destination first, without a listing",
        "A commit that lands between the two looks counts as lost.",
        claims.COMMIT,
        _DESTINATION_FIRST,
        ("moves:shift", " and not (ends and _listed(store, dst))", ""),
    ),
    mutant(
        "a retry replaces its own claim",
        "If the source's name exists again, the rename is repeated.",
        operator.OFFERED,
        ("moves:move", "if ours and not keep:", "if False:"),
        ("moves:move", "again = not _is_claim(src)", "again = False"),
    ),
    mutant(
        "anything with the destination's name counts as the commit",
        "A folder there counts as the commit, and the claim stays.",
        claims.PLANTED,
        (
            "moves:move",
            "bool(there) and _landed(store, src, dst, here)",
            "bool(there)",
        ),
    ),
    mutant(
        "a folder in a listing counts as the commit",
        "A worker that lost its claim finds a folder with the name of its commit.",
        claims.PLANTED,
        ("moves:_listed", " and (at is None or at.regular)", ""),
    ),
    mutant(
        "a rename between two names of one file counts as done",
        "It did nothing and reported success: the claim stays.",
        claims.TWINS,
        (
            "moves:shift",
            "moved and ends and _stayed(store, task.name, dst)",
            "False",
        ),
    ),
    mutant(
        "no nonce in a claim's name",
        "Two processes of one owner rename to the same name.",
        claims.NAMESAKES,
        ("claims:take", "-{terms.nonce or store.port.nonce()}", "-0123456789"),
    ),
    mutant(
        "a claim by hard link",
        "Where links are refused, nothing can be claimed.",
        claims.NO_LINKS,
        (
            "claims:take",
            "        if not _grab("
            "store, task.name, taken.name, min(deadline, start + patience), found):\n",
            "        try:\n            store.port.link(task.name, taken.name)\n"
            "            store.drop(task.name)\n        except OSError:\n",
        ),
    ),
    mutant(
        "requeueing by link and unlink",
        "`RENAME_NOREPLACE` is imitated, and for a moment the task has two names.",
        (claims.IN_THE_WAY, operator.RELEASE),
        (
            "moves:move",
            "store.port.rename(src, dst, keep or again)",
            "(store.port.link(src, dst), store.port.unlink(src)) if keep else "
            "store.port.rename(src, dst)",
        ),
    ),
    mutant(
        "requeueing over an existing file",
        "Released, failed and reaped tasks replace any file that has their name.",
        claims.IN_THE_WAY,
        ("moves:shift", "keep=not ends", "keep=False"),
    ),
    mutant(
        "the fence is dropped when a task is requeued",
        "The next claim starts at fence 1 again.",
        (claims.STALE, operator.RELEASE),
        (
            "claims:requeued_name",
            "_replace(attempts=attempts)",
            "_replace(attempts=attempts, fence=0)",
        ),
    ),
    mutant(
        "the fence follows the last noted one",
        "It is read before the rename and written after it: two claims get the same fence.",
        (claims.STALE, operator.RELEASE),
        (
            "claims:take",
            "    fence = task.fence + 1\n",
            "    note = '.dibs/plain/last'\n"
            "    last = int(store.port.read(note, 9)[0] or 0) if store.look(note) else 0\n"
            "    fence = last + 1\n",
        ),
        (
            "claims:take",
            "    claim = ",
            "    store.drop(note)\n    store.write(note, b'%d' % fence)\n    claim = ",
        ),
    ),
    mutant(
        "resuming keeps the fence",
        "The old process and the new one write with the same fence.",
        operator.RESUME,
        ("claims:take", "fence = task.fence + 1", "fence = task.fence + (verb == 'claim')"),
    ),
    mutant(
        "a late beat counts",
        "It began in time and returned after the lease expired.",
        claims.LATE_BEAT,
        (
            "claims:FilesClaim._renew",
            "    if port.boottime() >= until:\n        raise",
            "    if False:\n        raise",
        ),
    ),
    mutant(
        "a beat counts from its answer",
        "The new deadline is later than the beat's time on the disk allows.",
        claims.BEAT,
        ("claims:FilesClaim._renew", "self.deadline = start", "self.deadline = port.boottime()"),
    ),
    mutant(
        "a beat without a look",
        "The record is touched, or written again, for another worker's claim.",
        operator.FORCE,
        ("claims:FilesClaim._renew", "self._store.look(self.task.name)", "True"),
        (
            "claims:FilesClaim._touch",
            "            if store.look(self.task.name) is False:\n                raise\n",
            "            pass\n",
        ),
    ),
    mutant(
        "the deadline is longer than the ttl",
        "An owner relies on a claim that anyone may reap.",
        claims.FRESH,
        ("claims:take", "int(MARGIN * terms.ttl * SECOND)", "int(1.2 * terms.ttl * SECOND)"),
    ),
    mutant(
        "the record is written before the rename",
        "Only its times count: a fresh claim looks stale.",
        claims.FRESH,
        (
            "claims:take",
            "    start = store.port.boottime()\n",
            "    store.write(f'{RECORDS}/{taken.stem}', encode(record))\n"
            "    start = store.port.boottime()\n",
        ),
        (
            "claims:take",
            '        store.write(f"{RECORDS}/{claim.name}", encode(record))\n    e',
            "        pass\n    e",
        ),
    ),
    mutant(
        "the claimed name's ctime does not count",
        "A claim that has no record yet seems never to have beaten.",
        claims.FRESH,
        ("facts:facts_of", "since if found is None else mtime", "mtime"),
    ),
    mutant(
        "a claim uses its own ttl before its record exists",
        "Until then all others use the board's ttl.",
        claims.LONG,
        (
            "claims:take",
            "min(terms.ttl, store.settings.ttl)",
            "terms.ttl",
        ),
    ),
    mutant(
        "records are removed according to a listing",
        "A claim made after the directory was listed loses its record, and its own ttl with it.",
        claims.LONG,
        (
            "checkup:_records",
            "    for folder in (RECORDS, ASIDE):\n",
            "    listed = set(store.listing())\n    for folder in (RECORDS, ASIDE):\n",
        ),
        (
            "checkup:_records",
            'store.look(f"{stem}.{word}") is not False',
            'f"{stem}.{word}" in listed',
        ),
    ),
    mutant(
        "reaping by id",
        "The judged claim is gone, and another claim of that id is taken instead.",
        claims.STALE,
        (
            "janitor:_requeue",
            "    task = facts.task\n",
            "    task = next((t for t in store.find(facts.task.id) if t.live), facts.task)\n",
        ),
    ),
    mutant(
        "a waiter keeps using its first reading",
        "A claim is reaped because of old beats.",
        times.WAITER,
        (
            "facts_cache:FactsCache._renewed",
            "    ino, size, mtime, ctime = self._beside(task)\n",
            "    return facts\n    ino, size, mtime, ctime = self._beside(task)\n",
        ),
        (
            "sweeper:Sweeper._look",
            "            facts = facts_of(self._store, task)\n",
            "            pass\n",
        ),
    ),
    mutant(
        "ending by id",
        "A commit moves any claim of that id.",
        operator.FORCE,
        (
            "claims:FilesClaim._end",
            "self._store, self.task,",
            "self._store,\n"
            "        next((t for t in self._store.find(self.id) if t.live), self.task),",
        ),
    ),
    mutant(
        "a process is dead by its number alone",
        "The process of another machine is searched on this one.",
        claims.DEAD,
        (
            "janitor:dead",
            "store.host.gone(record.process) is True",
            "store.host.start(record.process) is None",
        ),
    ),
    mutant(
        "two names of one id are claimed",
        "A claim does not check whether the id has another name.",
        claims.DOUBLE,
        ("queue:doubled", "other.name != name", "other.id != task.id"),
    ),
    mutant(
        "one owner text is one holder",
        "Two processes with the same owner text hold one lock.",
        locks.SAME_TEXT,
        (
            "locks:own_lease",
            "record is None or record.process is None or not record.process.boot",
            "record is None",
        ),
        ("locks:own_lease", "record.process != terms.process", "record.owner != terms.owner"),
    ),
    mutant(
        "resuming by owner text at once",
        "A second process takes the claim of a live one.",
        operator.RESUME_TEXT,
        ("locks:resume", "janitor.patience(store, facts, now) > 0", "False"),
    ),
    mutant(
        "a lock is parked by the attempt limit",
        "After some expiries no one can acquire it.",
        locks.LIMIT,
        ("claims:next_after_failure", "task.state == CLAIMED and ", ""),
    ),
    mutant(
        "an operator's act follows a newer name",
        "The claim on the screen is gone, so the act moves another.",
        operator.RELEASE,
        (
            "acts:seen",
            "    raise refusals.not_in_state",
            "    for newer in store.find(task.id):\n        if newer.state in states:\n"
            "            return newer\n    raise refusals.not_in_state",
        ),
    ),
    mutant(
        "an exact reap does not check whether the claim is stale",
        "A claim that beats is requeued because an operator named it.",
        operator.REAP,
        ("acts:reap_claim", "if wait > 0:", "if False:"),
    ),
    mutant(
        "requeueing over a task that was added again",
        "A shell added the id again while the old payload was parked.",
        operator.OFFERED,
        (
            "acts:_moved",
            "moves.shift(store, task, dst, verb, by, reason, 0, since, bulk, session)",
            "(store.port.rename(task.name, dst), names.read_any(dst))[1]",
        ),
    ),
]
