"""Faults in how a claim is taken, kept and ended."""

from __future__ import annotations

from . import scenes_claims as claims
from . import scenes_locks as locks
from . import scenes_operator as operator
from . import scenes_time as times
from .mutant import Mutant, mutant

_DESTINATION_FIRST = (
    "store:Store.move",
    "here, there = self.look(src), self.look(dst)",
    "there, here = self.look(dst), self.look(src)",
)

MUTANTS: list[Mutant] = [
    mutant(
        "believes ENOENT",
        "A rename that was answered ENOENT is taken for lost, without a look.",
        (claims.PAIR, claims.COMMIT),
        (
            "store:Store.move",
            "error = failed\n",
            "error = failed\n            if error.errno == errno.ENOENT:\n"
            "                return False\n",
        ),
    ),
    mutant(
        "believes EIO",
        "The names are looked at once, and what has not happened yet never will.",
        claims.COMMIT,
        (
            "store:Store.move",
            "self.look(src), self.look(dst)\n",
            "self.look(src), self.look(dst)\n        if here:\n            return False\n",
        ),
    ),
    mutant(
        "looks at the destination first",
        "A rename that lands between the two looks seems never to have been.",
        claims.PAIR,
        _DESTINATION_FIRST,
    ),
    mutant(
        "looks at the destination first, and asks no listing",
        "A commit that lands between the two looks is called lost.",
        claims.COMMIT,
        _DESTINATION_FIRST,
        ("store:Store.shift", " and not (ends and self._listed(dst))", ""),
    ),
    mutant(
        "tries again over its own claim",
        "Where the source's name is there again, the rename is made again.",
        operator.OFFERED,
        ("store:Store.move", "if ours and not keep:", "if False:"),
    ),
    mutant(
        "whatever has the destination's name is believed",
        "A folder that was put there is taken for the commit, and the claim stays.",
        claims.PLANTED,
        ("store:Store.move", "bool(there) and self._landed(src, dst, here)", "bool(there)"),
    ),
    mutant(
        "a listing that shows a folder is believed",
        "Whoever lost the claim finds a folder under the name of its commit.",
        claims.PLANTED,
        ("store:Store._listed", " and (at is None or at.regular)", ""),
    ),
    mutant(
        "a rename between two names of one file is believed",
        "It did nothing and was answered well: the claim stays.",
        claims.TWINS,
        ("store:Store.shift", "moved and ends and self._stayed(task.name, dst)", "False"),
    ),
    mutant(
        "no nonce in a claim's name",
        "Two processes of one owner rename to the same name.",
        claims.NAMESAKES,
        ("claims:take", "-{store.port.nonce()}", "-0123456789"),
    ),
    mutant(
        "a claim by hard link",
        "Where links are refused nothing can ever be claimed.",
        claims.NO_LINKS,
        (
            "claims:take",
            "        if not _grab(store, task.name, dst, until=min(deadline, start + patience)):\n",
            "        try:\n            store.port.link(task.name, dst)\n"
            "            store.drop(task.name)\n        except OSError:\n",
        ),
    ),
    mutant(
        "handing back by link and unlink",
        "`RENAME_NOREPLACE` is imitated, and for a moment the task has two names.",
        (claims.IN_THE_WAY, operator.RELEASE),
        (
            "store:Store.move",
            "self.port.rename(src, dst, keep)",
            "(self.port.link(src, dst), self.port.unlink(src)) if keep else "
            "self.port.rename(src, dst)",
        ),
    ),
    mutant(
        "handing back over what is there",
        "Released, failed and reaped tasks replace whatever has their name.",
        claims.IN_THE_WAY,
        ("store:Store.shift", "keep=not ends", "keep=False"),
    ),
    mutant(
        "the fence is dropped when a claim is handed back",
        "The next claim begins at 1 again.",
        (claims.STALE, operator.RELEASE),
        (
            "claims:handed_back",
            "_replace(attempts=attempts)",
            "_replace(attempts=attempts, fence=0)",
        ),
    ),
    mutant(
        "the fence is chosen from the last one that was noted",
        "Read before the rename and written after it: two claims choose the same.",
        (claims.STALE, operator.RELEASE),
        (
            "claims:take",
            "    stamp = task.stamp._replace(fence=task.fence + 1)\n",
            "    note = '.dibs/plain/last'\n"
            "    last = int(store.port.read(note, 9)[0] or 0) if store.look(note) else 0\n"
            "    stamp = task.stamp._replace(fence=last + 1)\n",
        ),
        (
            "claims:take",
            "    taken = Task(",
            "    store.drop(note)\n    store.write(note, b'%d' % stamp.fence)\n    taken = Task(",
        ),
    ),
    mutant(
        "resuming keeps the fence",
        "The old self and the new one write with the same fence.",
        operator.RESUME,
        ("claims:take", "fence=task.fence + 1", "fence=task.fence + (verb == 'claim')"),
    ),
    mutant(
        "a late beat is believed",
        "It began in time and returned after the lease had ended.",
        claims.LATE_BEAT,
        (
            "claims:Claim.beat",
            "    if port.boottime() >= until:\n        raise",
            "    if False:\n        raise",
        ),
    ),
    mutant(
        "a beat counts from its answer",
        "The new deadline is later than what the disk knows of the beat.",
        claims.BEAT,
        ("claims:Claim.beat", "self.deadline = start", "self.deadline = port.boottime()"),
    ),
    mutant(
        "a beat without a look",
        "The record is touched, or written anew, for a claim that is somebody else's.",
        operator.FORCE,
        ("claims:Claim.beat", "self._store.look(self.task.name)", "True"),
        (
            "claims:Claim._touch",
            "            if store.look(self.task.name) is False:\n                raise\n",
            "            pass\n",
        ),
    ),
    mutant(
        "the deadline is longer than the ttl",
        "An owner believes in what anybody may reap.",
        claims.FRESH,
        ("claims:take", "int(MARGIN * terms.ttl * SECOND)", "int(1.2 * terms.ttl * SECOND)"),
    ),
    mutant(
        "the record is written before the rename",
        "And its times alone count: a fresh claim looks stale.",
        claims.FRESH,
        (
            "claims:take",
            "    start = store.port.boottime()\n",
            "    store.write(f'{RECORDS}/{stem}', encode(record))\n"
            "    start = store.port.boottime()\n",
        ),
        (
            "claims:take",
            '        store.write(f"{RECORDS}/{stem}", line)\n    e',
            "        pass\n    e",
        ),
    ),
    mutant(
        "the claimed name's ctime does not count",
        "A claim without a record yet was never heard of.",
        claims.FRESH,
        ("facts:facts_of", "since if found is None else mtime", "mtime"),
    ),
    mutant(
        "a claim believes its own ttl before its record stands",
        "Until then everybody else goes by the board's.",
        claims.LONG,
        (
            "claims:take",
            "min(terms.ttl, store.settings.ttl)",
            "terms.ttl",
        ),
    ),
    mutant(
        "records are removed by a listing",
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
        "What was judged is gone, and whatever has that id now is taken instead.",
        claims.STALE,
        (
            "janitor:_give_back",
            "    task = facts.task\n",
            "    task = next((t for t in store.find(facts.task.id) if t.live), facts.task)\n",
        ),
    ),
    mutant(
        "a waiter goes by what it read first",
        "A claim is reaped by the beats of long ago.",
        times.WAITER,
        (
            "pulses:Pulses._renewed",
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
        "A commit takes whichever claim of that id there is.",
        operator.FORCE,
        (
            "claims:Claim._end",
            "self._store.shift(self.task,",
            "self._store.shift(\n        next((t for t in self._store.find(self.id) if t.live), "
            "self.task),",
        ),
    ),
    mutant(
        "dead by its number alone",
        "A process of another machine is looked for on this one.",
        claims.DEAD,
        (
            "janitor:dead",
            "store.host.gone(record.process) is True",
            "store.host.start(record.process) is None",
        ),
    ),
    mutant(
        "two names of one id are claimed",
        "Nobody looks whether the id has another name.",
        claims.DOUBLE,
        ("queue:doubled", "other.name != name", "other.id != task.id"),
    ),
    mutant(
        "one owner text is one holder",
        "Two processes that call themselves alike hold one lock.",
        locks.SAME_TEXT,
        (
            "locks:_own",
            "record is None or record.process is None or not record.process.boot",
            "record is None",
        ),
        ("locks:_own", "record.process != terms.process", "record.owner != terms.owner"),
    ),
    mutant(
        "resuming by owner text at once",
        "A second process takes the claim of one that lives.",
        operator.RESUME_TEXT,
        ("locks:resume", "janitor.patience(store, facts, now) > 0", "False"),
    ),
    mutant(
        "a lock is parked by the attempt limit",
        "After some expiries nobody can ever acquire it.",
        locks.LIMIT,
        ("claims:next_after_failure", "task.state == CLAIMED and ", ""),
    ),
    mutant(
        "an operator's act tries the newer name",
        "The claim on the screen is gone, so another is taken.",
        operator.RELEASE,
        (
            "acts:seen",
            "    now = store.find(task.id)\n",
            "    now = store.find(task.id)\n    for newer in now:\n"
            "        if newer.state in states:\n            return newer\n",
        ),
    ),
    mutant(
        "an exact reap does not ask whether its holder is silent",
        "A claim that beats is given back because an operator named it.",
        operator.REAP,
        ("acts:reap_claim", "if wait > 0:", "if False:"),
    ),
    mutant(
        "requeueing over what was offered anew",
        "A shell offered the id again while the old payload was parked.",
        operator.OFFERED,
        (
            "acts:_moved",
            "store.shift(task, dst, verb, by, reason)",
            "(store.port.rename(task.name, dst), names.read_any(dst))[1]",
        ),
    ),
]
