"""Faults in how ids are added and forgotten, and in how the clock is read."""

from __future__ import annotations

from . import scenes_add as add
from . import scenes_locks as locks
from . import scenes_time as times
from .mutant import Mutant, mutant

_INODE = ".dibs/past/inode"

MUTANTS: list[Mutant] = [
    mutant(
        "a copy of `known/` is taken for the latest",
        "The id of a claim that it does not know is added.",
        add.OLDER,
        ("checkup_ids:note_copied", "if missing:", "if False:"),
    ),
    mutant(
        "what was purged in the life before ends this one",
        "`gone/` was lost, and how far this life's fences went is read from the one before.",
        add.ENDLESS,
        ("forgetting:_fence_before", "max(life.stamp.fence - 1,", "max(0,"),
    ),
    mutant(
        "a name with a fence is taken for known",
        "It is claimed and ends, and its id is added from fence 0.",
        add.STRANGE,
        (
            "claims:take",
            "if task.state == AVAILABLE:",
            "if task.fence == 0 and task.state == AVAILABLE:",
        ),
    ),
    mutant(
        "a later life is begun beside a claim",
        "The entry of the life before was lost.",
        add.LATER_LIFE,
        ("adding:_begin", "if number:", "if False:"),
    ),
    mutant(
        "a board without `.dibs` is a new one",
        "The id of a live claim is added a second time.",
        add.LOST,
        ("store:Store._make", "self._marked or self._used()", "self._marked"),
    ),
    mutant(
        "ids are given out while it is not known which were used",
        "`known/lost` is there, and the id of a live claim is added.",
        add.LOST_MENDED,
        ("adding:_refuse_lost", "store.there(KNOWN_LOST)", "False"),
    ),
    mutant(
        "what was lost is found out without a look at what has ended",
        "The claim's id ends before it is written, and is added a second time.",
        add.LOST_MENDED,
        ("checkup_ids:_unwritten", "tasks_of(store, ended=True)", "tasks_of(store)"),
    ),
    mutant(
        "a slow adder reports success",
        "A janitor took its payload for a dead adder's and removed it.",
        add.SLOW,
        (
            "adding:add",
            "port.boottime() - start > DRAFT_AGE // 2 * SECOND",
            "False",
        ),
    ),
    mutant(
        "EEXIST is somebody else's",
        "A link that was made and answered EEXIST: the adder cleans up its own task.",
        add.TWINS,
        ("adding:_begin", "life.nonce == nonce", "False"),
    ),
    mutant(
        "adding skips `known/`",
        "Two producers add one id, one after the other.",
        add.TWINS_AND_WORKER,
        ("adding:add", "_begin(store, ident, nonce, priority)", "Life(0, nonce, Stamp())"),
    ),
    mutant(
        "a new life begins at fence 0",
        "What `gone/` says of the lives before is not used.",
        add.ENDLESS,
        ("adding:_begin", "number + 1, max(fence, gone)", "number + 1, -1"),
    ),
    mutant(
        "a new life begins at fence 0, whatever was purged",
        "Neither what `gone/` nor what `past/` says of the lives before is used.",
        add.LIVES,
        ("adding:_begin", "number + 1, max(fence, gone)", "number + 1, -1"),
        ("adding:_begin", "past_fences(store).get(eid, 0)", "0"),
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
        "An adder is between its two steps: its life is ended before it is published.",
        add.FORGET_ADDED,
        ("forgetting:_ending", "life.nonce and store.there(draft)", "False"),
    ),
    mutant(
        "forgetting unlinks `known/`",
        "By a name that two lives share: the second of two forgets ends the life after.",
        add.FORGETS,
        (
            "forgetting:_end",
            'make_whole(store, f"{GONE}/{names.escape(ident)}.{life.number}", '
            'f"{fence}\\n".encode())',
            'store.drop(f".dibs/known/{names.escape(ident)}.{life.number}")',
        ),
    ),
    mutant(
        "a janitor publishes whatever lies in `new/`",
        "A payload whose adder never got its id.",
        add.STRAY,
        ("checkup:settle_draft", "life is None or life.nonce != nonce", "life is None"),
    ),
    mutant(
        "a dead adder's lock is published as a task",
        "Workers claim what was meant to be a lock.",
        locks.ADDER_DIED,
        (
            "checkup:settle_draft",
            "names.waiting_name(ident, life.stamp, state)",
            "names.waiting_name(ident, life.stamp)",
        ),
    ),
    mutant(
        "publishing over what a shell offered",
        "The shell's payload is replaced.",
        add.SLOW_OFFERED,
        ("adding:publish", "store.move(draft, name, keep=True)", "store.move(draft, name)"),
    ),
    mutant(
        "publishing beside a plain claim",
        "The next plain worker's `mv` replaces the file of the first.",
        add.SHADOW,
        ("adding:_offered", "if store.there(other):", "if False:"),
    ),
    mutant(
        "a refused add keeps its payload",
        "A janitor publishes it an hour later, when the shell has finished.",
        add.OFFERED_FIRST,
        ("adding:add", "_withdrawn(store, draft)", "True"),
    ),
    mutant(
        "ENOENT proves a shared destination",
        "A janitor removed the draft, and a shell's file at its name is taken for it.",
        add.SLOW_OFFERED,
        ("store:Store.move", "landed = not keep", "landed = True"),
    ),
    mutant(
        "EEXIST proves a shared destination",
        "The file in the way is taken for one's own, because the draft is gone by then.",
        add.SLOW_OFFERED,
        ("store:Store.move", "(errno.ENOENT, errno.EEXIST)", "(errno.ENOENT,)"),
    ),
    mutant(
        "a payload is known by its inode",
        "An editor that writes a new file blocks the task for ever.",
        add.EDITOR,
        (
            "adding:add",
            "    task = names.read_any(name)\n",
            "    task = names.read_any(name)\n"
            f"    store.write('{_INODE}', b'%d' % port.stat(name).ino)\n",
        ),
        (
            "claims:take",
            "    stamp = task.stamp._replace",
            f"    known = store.port.read('{_INODE}', 20)[0]\n"
            "    if int(known) != store.port.stat(task.name).ino:\n        return None\n"
            "    stamp = task.stamp._replace",
        ),
    ),
    mutant(
        "the time of a host whose clock is behind is believed",
        "Its beats look old on the day they are made; only the record's ctime is the server's.",
        times.BEHIND,
        ("facts:facts_of", "max(beat, ctime)", "beat"),
    ),
    mutant(
        "one hasty look",
        "A clock that is not trusted is believed at once.",
        times.HASTY,
        ("clock:Clock.patience", "self.vouches_for(now, ttl)", "True"),
        (
            "clock:Clock.patience",
            "and vouches(self._samples, self.now(), ttl)",
            "and now.fs",
        ),
    ),
    mutant(
        "two looks at the newest time",
        "With the clock set back a beat does not change it, if the name's ctime counts as well.",
        times.BACK,
        ("facts:facts_of", "since if found is None else mtime", "max(since, mtime)"),
    ),
    mutant(
        "the clock is trusted once",
        "It is set between the probe and the look at the claim.",
        times.STEPPED,
        ("clock:Clock.patience", " and vouches(self._samples, self.now(), ttl)", ""),
    ),
    mutant(
        "any old sample vouches",
        "Whether the two clocks advanced alike is not asked.",
        times.STEPPED,
        ("clock:vouches", "now, ttl):\n            return False", "now, ttl):\n            pass"),
    ),
    mutant(
        "slow samples vouch",
        "Where a process slept between its two clocks, they say nothing.",
        times.SLOW,
        ("clock:Clock.now", "if quick and ", "if "),
    ),
]
