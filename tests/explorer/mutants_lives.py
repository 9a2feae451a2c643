"""Faults in how ids are added and forgotten, and in how the clock is read."""

from __future__ import annotations

from . import scenes_add as add
from . import scenes_locks as locks
from . import scenes_time as times
from .mutant import Mutant, mutant

_INODE = ".dibs/past/inode"

MUTANTS: list[Mutant] = [
    mutant(
        "an old copy of `known/` counts as current",
        "The id of a claim that it does not contain is added.",
        add.OLDER,
        ("checkup_ids:note_copied", "if missing:", "if False:"),
    ),
    mutant(
        "what was purged in the previous life ends this one",
        "`gone/` was lost, and this life's highest fence is read from the life before.",
        add.ENDLESS,
        ("forgetting:_fence_before", "max(life.stamp.fence - 1,", "max(0,"),
    ),
    mutant(
        "a name with a fence counts as known",
        "It is claimed and done, and its id is added from fence 0.",
        add.STRANGE,
        (
            "claims:take",
            "if task.state in WAITING:",
            "if task.fence == 0 and task.state in WAITING:",
        ),
    ),
    mutant(
        "a new life begins beside a claim",
        "The entry of the life before was lost.",
        add.LATER_LIFE,
        ("lives:_begin", "if number:", "if False:"),
    ),
    mutant(
        "a board without `.dibs` counts as new",
        "The id of a live claim is added a second time.",
        add.LOST,
        ("board_files:BoardFiles._make", "self.marked or self._used()", "self.marked"),
    ),
    mutant(
        "ids are added while the used ones are unknown",
        "`known/lost` exists, and the id of a live claim is added.",
        add.LOST_MENDED,
        ("lives:_refuse_lost", "store.there(KNOWN_LOST)", "False"),
    ),
    mutant(
        "the used ids are recovered without a look at ended tasks",
        "The claim ends before its id is written, and the id is added a second time.",
        add.LOST_MENDED,
        ("checkup_ids:_unwritten", "tasks_of(store, ended=True)", "tasks_of(store)"),
    ),
    mutant(
        "a slow adder reports success",
        "A janitor removed its payload as that of a dead adder.",
        add.SLOW,
        (
            "lives:add",
            "port.boottime() - start > DRAFT_AGE // 2 * SECOND",
            "False",
        ),
    ),
    mutant(
        "EEXIST counts as another producer's",
        "A link was made and answered EEXIST: the adder removes its own task.",
        add.TWINS,
        ("lives:_begin", "life.nonce == nonce", "False"),
    ),
    mutant(
        "adding skips `known/`",
        "Two producers add one id, one after the other.",
        add.TWINS_AND_WORKER,
        (
            "lives:add",
            "_begin(store, ident, nonce, priority, not_before)",
            "Life(0, nonce, Stamp())",
        ),
    ),
    mutant(
        "a new life begins at fence 0",
        "The record of earlier lives in `gone/` is not used.",
        add.ENDLESS,
        ("lives:_begin", "number + 1, max(fence, gone)", "number + 1, -1"),
    ),
    mutant(
        "a new life begins at fence 0 after a purge",
        "The records of earlier lives in `gone/` and `past/` are not used.",
        add.LIVES,
        ("lives:_begin", "number + 1, max(fence, gone)", "number + 1, -1"),
        ("lives:_begin", "past_fences(store).get(eid, 0)", "0"),
    ),
    mutant(
        "a purge forgets the fence",
        "Done, purged, added again: fence 1 is granted twice.",
        add.LIVES,
        (
            "forgetting:purge",
            "gone = _noted(store, task, past)",
            "gone = not store.port.unlink(task.name)",
        ),
        ("forgetting:_forgotten", "if not ending.over:", "if False:"),
    ),
    mutant(
        "forgetting does not look at `new/`",
        "An adder is between its two steps: its life ends before the task is published.",
        add.FORGET_ADDED,
        ("forgetting:_ending", "life.nonce and store.there(draft)", "False"),
    ),
    mutant(
        "forgetting unlinks `known/`",
        "Two lives share a name: the second of two forgets ends the later life.",
        add.FORGETS,
        (
            "forgetting:_end",
            'create_atomically(store, f"{GONE}/{names.escape(ident)}.{life.number}", '
            'f"{fence}\\n".encode())',
            'store.drop(f".dibs/known/{names.escape(ident)}.{life.number}")',
        ),
    ),
    mutant(
        "a janitor publishes every file in `new/`",
        "A payload is published although its adder never got the id.",
        add.STRAY,
        ("checkup:settle_draft", "life is None or life.nonce != nonce", "life is None"),
    ),
    mutant(
        "an interrupted add is published over another file",
        "A process that helps the adder replaces what a shell added in the meantime.",
        add.SLOW_OFFERED,
        (
            "lives:publish_begun",
            "if publish(store, draft, name):",
            "if moves.move(store, draft, name):",
        ),
    ),
    mutant(
        "an interrupted add is published beside a claim",
        "The draft is a copy of a payload that was published long ago.",
        add.COPIED_DRAFT,
        ("lives:publish_begun", "if found := store.find(ident):", "if found := ():"),
    ),
    mutant(
        "every draft counts as begun",
        "A retry publishes the payload of an adder that has not got the id yet.",
        add.TWINS,
        ("lives:add", "if complete(store, ident):", "if complete_all(store):"),
        (
            "lives:complete_all",
            "            idents.append(task.id)\n",
            "            moves.move(store, f'{NEW}/{entry}', f'{task.id}.available', keep=True)\n",
        ),
    ),
    mutant(
        "a dead adder's lock is published as a task",
        "Workers claim a task that should be a lock.",
        locks.ADDER_DIED,
        (
            "lives:publish_begun",
            "names.unclaimed_name(ident, life.stamp, state)",
            "names.unclaimed_name(ident, life.stamp)",
        ),
    ),
    mutant(
        "publishing over a shell's task",
        "The shell's payload is replaced.",
        add.SLOW_OFFERED,
        (
            "lives:publish",
            "moves.move(store, draft, name, keep=True)",
            "moves.move(store, draft, name)",
        ),
    ),
    mutant(
        "publishing beside a plain claim",
        "The next shell worker's `mv` replaces the file of the first.",
        add.SHADOW,
        ("lives:_offered", "if store.there(other):", "if False:"),
    ),
    mutant(
        "a refused add keeps its payload",
        "A janitor publishes it an hour later, after the shell finished.",
        add.OFFERED_FIRST,
        ("lives:add", "_withdrawn(store, draft)", "True"),
    ),
    mutant(
        "ENOENT proves a shared destination",
        "A janitor removed the draft, and a shell's file with its name counts as the draft.",
        add.SLOW_OFFERED,
        (
            "moves:move",
            "landed, again = not keep, recurs",
            "landed, again = True, recurs",
        ),
    ),
    mutant(
        "EEXIST proves a shared destination",
        "The file in the way counts as one's own, because the draft is gone by then.",
        add.SLOW_OFFERED,
        ("moves:move", "(errno.ENOENT, errno.EEXIST)", "(errno.ENOENT,)"),
    ),
    mutant(
        "a payload is identified by its inode",
        "An editor that writes a new file blocks the task permanently.",
        add.EDITOR,
        (
            "lives:add",
            "    task = names.read_any(name)\n",
            "    task = names.read_any(name)\n"
            f"    store.write('{_INODE}', b'%d' % port.stat(name).ino)\n",
        ),
        (
            "claims:take",
            "    fence = task.fence + 1\n",
            f"    known = store.port.read('{_INODE}', 20)[0]\n"
            "    if int(known) != store.port.stat(task.name).ino:\n        return None\n"
            "    fence = task.fence + 1\n",
        ),
    ),
    mutant(
        "a host whose clock is behind is trusted",
        "Its beats look old at once; only the record's ctime comes from the server.",
        times.BEHIND,
        ("facts:facts_of", "max(beat, ctime)", "beat"),
    ),
    mutant(
        "one hasty look",
        "An untrusted clock is used at once.",
        times.HASTY,
        ("clock:Clock.patience", "self.trusts(now, ttl)", "True"),
        (
            "clock:Clock.patience",
            "and ran_evenly(self._samples, self.now(), ttl)",
            "and now.fs",
        ),
    ),
    mutant(
        "two looks compare the newest time",
        "If the clock was set back and the name's ctime counts too, a beat does not change it.",
        times.BACK,
        ("facts:facts_of", "since if found is None else mtime", "max(since, mtime)"),
    ),
    mutant(
        "trust in the clock is checked once",
        "The clock is set between the probe and the look at the claim.",
        times.STEPPED,
        ("clock:Clock.patience", " and ran_evenly(self._samples, self.now(), ttl)", ""),
    ),
    mutant(
        "any old sample makes the clock trusted",
        "It is not checked whether the two clocks advanced equally.",
        times.STEPPED,
        (
            "clock:ran_evenly",
            "now, ttl):\n            return False",
            "now, ttl):\n            pass",
        ),
    ),
    mutant(
        "slow samples make the clock trusted",
        "If a process slept between reading its two clocks, they prove nothing.",
        times.SLOW,
        ("clock:Clock.now", "if quick and ", "if "),
    ),
]
