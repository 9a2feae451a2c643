"""The invariants of PROTOCOL.md section 7, checked in every state and at the end.

The checks use the names on the disk, the steps that changed them and what actors noted. Of the
shipped code they use only the grammar of names.

Pauses: once one was noted, no worker that it stops may own a claim that it has not listed.

Notes: ("owns", stem, until) · ("beats", stem) · ("stopped", stem) · ("lost", stem) ·
("done", stem) · ("ended", stem) · ("added", payload) · ("refused", id, payload) ·
("acts", exact name) · ("paused", pause, listed stems) · ("resumes", names of pauses);
for questions see `asked`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from dibs.model import names
from dibs.model.pauses import Pause
from dibs.model.task import AVAILABLE, CLAIMED, DONE, FAILED, FREE, HELD, LATER, Task

from . import asked
from .actors import minted
from .aftermath import settled
from .desk import PLAIN_TTL, Options
from .reading import holds_payload, is_plain, read, taken
from .scenario import History, Outcome, Step
from .simdisk import SimWorld
from .simtree import ROOT, SECOND, Half
from .trace import LANDED, LOST

WORKER, JANITOR, OPERATOR, SHELL, PLAIN = "worker", "janitor", "operator", "shell", "plain"
"""What an actor may do. Workers, janitors and producers may only reap stale claims. Operators and
shells may take, remove and replace anything. `PLAIN` is a shell that must never replace a file."""
_SHELLS = (SHELL, PLAIN)


@dataclass(frozen=True)
class Invariants:
    """The checks of one scenario."""

    roles: Mapping[str, str]
    """Maps actor to role."""
    options: Options
    payloads: frozenset[bytes] = frozenset()
    """Payloads on the board from the start."""
    plain: frozenset[str] = frozenset()
    """Ids that shells add: their fences may restart, and they return to the bare name."""
    doubled: frozenset[str] = frozenset()
    """Ids that have two names, or may get two because of a person."""
    unclaimable: bool = False
    """Whether the doubled ids are doubled from the start: then no one may claim them."""
    locks: frozenset[str] = frozenset()
    """Ids that must never become tasks, nor be parked."""
    parked: frozenset[bytes] = frozenset()
    """Payloads that must never be available again."""
    served: bool = False
    """Whether some worker must have returned "done", if no actor crashed."""
    litter: tuple[str, ...] = ()
    """Prefixes of paths that may remain at the end."""
    hosts: Mapping[str, str] = field(default_factory=dict)
    """Maps actor to host, for pauses of some hosts."""

    # -- every state -------------------------------------------------------------------------

    def check(self, world: SimWorld, history: History) -> str | None:
        step = history.step
        wrong = None
        for at, name in dict.fromkeys(world.moved):
            path = self._path(world, at, name)
            if path is not None:
                here = name in world.dirs.get(at, {})
                wrong = wrong or (self._came if here else self._went)(world, history, step, path)
        if world.moved:
            wrong = wrong or self._count(world, history, step)
        for who, fact in history.fresh:
            wrong = wrong or self._noted(world, history, who, fact)
        if self.roles.get(step.actor) in _SHELLS:
            self._shell(world, history, step)
        return wrong

    def _path(self, world: SimWorld, at: int, name: str) -> str | None:
        if at == ROOT:
            return name
        for folder in (DONE, FAILED, *(names.free_folder(lock) for lock in self.locks)):
            if world.find(folder) == at:
                return f"{folder}/{name}"
        return None

    def _came(self, world: SimWorld, history: History, step: Step, path: str) -> str | None:
        """Check a name that appeared, or that another file replaced."""
        task = read(path)
        if task is None:
            return None
        if task.id in self.locks and task.kind != "lock":
            return f"I3: the lock {task.id} became {path}"
        if task.id in self.locks and task.id not in self.doubled:
            names_of = [p for p in world.files() if (t := read(p)) is not None and t.id == task.id]
            if len(names_of) > 1:
                return f"I1: the lock {task.id} has several names: {', '.join(names_of)}"
        data = world.data(path)
        if data and self.roles.get(step.actor) not in _SHELLS and "/" not in path:
            before = history.get(("id", data), task.id)
            if before != task.id:
                return f"I3: the payload of {before} became that of {task.id}"
            history.set(("id", data), task.id)
        asked.came(history, task)
        top = history.get(("fence", task.id), 0)
        if task.state in (CLAIMED, HELD) and task.claim and not task.is_takeover:
            return self._granted(world, history, step, task, top)
        if task.state in (AVAILABLE, LATER, FREE):
            if task.fence < top and task.id not in self.plain:
                return f"I1: {path} is available below fence {top}, which was granted already"
            if task.state == LATER:
                history.set(("fence", task.id), max(top, task.fence))
            return self._waits_again(world, history, step, task)
        planted = self.roles.get(step.actor) == SHELL and step.call[:1] != ("rename",)
        if task.state == DONE and not planted:
            if ("lost", task.stem) in history:
                return f"I2: {path} exists, and its owner got Lost"
            if ("committed", task.stem) in history:
                return f"I2: {path} was committed twice"
            if step.actor and history.get(("granted", task.stem)) != step.actor:
                return f"I2: {path} was committed by {step.actor}"
            history.set(("committed", task.stem))
        if task.state in (DONE, FAILED) and not step.actor:
            history.set(("fence", task.id), max(top, task.fence))
        return None

    def _granted(
        self, world: SimWorld, history: History, step: Step, task: Task, top: int
    ) -> str | None:
        if ("granted", task.stem) in history:
            return f"I1: {task.name} came back"
        if self.unclaimable and task.id in self.doubled:
            return f"I1: {task.name} was claimed, though {task.id} has two names"
        if task.id not in self.plain:
            if task.fence <= top:
                return f"I1: fence {task.fence} of {task.id} was granted again, to {task.claim}"
            history.set(("fence", task.id), task.fence)
        history.set(("hardened", task.id))
        history.set(("granted", task.stem), step.actor or task.claim[:-11])
        if step.actor and self._paused(world, history, step.actor, task.stem):
            churn = history.get(("churn", step.actor), 0) + 1
            history.set(("churn", step.actor), churn)
            if churn > 1:
                return f"I8: {step.actor} claims again and again during a pause"
        return None

    def _went(self, world: SimWorld, history: History, step: Step, path: str) -> str | None:
        """Check a name that disappeared."""
        task, role = read(path), self.roles.get(step.actor)
        if task is None:
            return None
        mine = history.get(("granted", task.stem)) == step.actor or task.is_takeover
        acted = history.get(("acts", step.actor))
        bound = (role == OPERATOR or acted) and step.call[0] == "rename"
        if bound and not mine and path != acted:
            return f"I5: {step.actor} acts on {acted} and moved {path}"
        if role == OPERATOR and task.is_shell_claim and step.call[0] == "rename":
            history.set(("muddled", world.data(step.call[2])))  # its worker was overruled
        if task.state == LATER and role not in (OPERATOR, *_SHELLS) and self._early(world, task):
            return f"I10: {step.actor} started {path} before its time"
        operator = role in (OPERATOR, *_SHELLS)
        if wrong := asked.went(task, step.actor, operator=operator):
            return wrong
        if task.state == DONE and not operator:
            return f"I2: {step.actor} undid the commit {path}"
        if task.state in (CLAIMED, HELD) and task.claim and not task.is_takeover:
            if mine:
                history.set(("over", task.stem))
            elif role not in (OPERATOR, *_SHELLS):
                history.set(("reaped", task.stem))
                return self._believes(world, history, task.stem, f"{step.actor} took {path}")
        return None

    def _early(self, world: SimWorld, task: Task) -> bool:
        """Whether a later task is not due, on a clock that was never set."""
        left = task.not_before * SECOND - world.now()
        return not world.skew and left > 0 and not (task.attempts and left > 100_000 * SECOND)

    def _believes(self, world: SimWorld, history: History, stem: str, how: str) -> str | None:
        """Check invariant 4: a claim is never reaped before its owner's deadline."""
        until = history.get(("owns", stem), 0)
        if until <= world.elapsed or ("over", stem) in history:
            return None
        owner = history.get(("granted", stem))
        outcome = history.results.get(owner)
        if outcome is not None and outcome.kind == "crashed":
            return None
        left = (until - world.elapsed) / SECOND
        return f"I4: {how}, and {owner} relies on it for {left:g} s more"

    def _count(self, world: SimWorld, history: History, step: Step) -> str | None:
        """Check invariant 3: each payload is in exactly one place."""
        found: dict[bytes, list[str]] = {}
        inodes = world.inodes
        for path, ino in world.files().items():
            if holds_payload(path):
                data = inodes[ino].data
                if data:
                    found.setdefault(data, []).append(path)
        for data, paths in found.items():
            if ("refused", data) in history and any(not p.startswith(".dibs/") for p in paths):
                return f"I3: {data!a} was refused, and is at {', '.join(sorted(paths))}"
            if len(paths) > 1:
                return f"I3: {data!a} is in {len(paths)} places: {', '.join(sorted(paths))}"
        for data, (path, *_) in found.items():
            if not path.startswith((".dibs/", "stage/")):
                history.set(("must", data))
        if not step.call and ("begun",) not in history:
            history.set(("begun",))
            for data in self.payloads:
                history.set(("must", data))
            for path in [p for p in world.files() if is_plain(p)]:
                lock = world.find(f"{path.partition('.claimed')[0]}.lock")
                words = world.inodes[lock].data.split() if lock > 0 else [b""]
                history.set(("plain", world.data(path)), (words[-1].decode(), 0))
        for key, _ in history.items():
            if key[0] == "must" and key[1] not in found and ("removed", key[1]) not in history:
                if not self._may_remove(step):
                    return f"I3: {key[1]!a} is lost"
                history.set(("removed", key[1]))
        return None

    def _may_remove(self, step: Step) -> bool:
        role = self.roles.get(step.actor)
        if role in _SHELLS:
            return step.call[0] == "unlink" or (step.call[0] == "rename" and role == SHELL)
        if role != OPERATOR or not step.call[1].startswith("done/"):
            return False
        return step.call[0] == "unlink" or str(step.call[2]).startswith(".dibs/past/")

    def _noted(self, world: SimWorld, history: History, who: str, fact: Any) -> str | None:
        kind, what = fact[:2]
        if wrong := asked.noted(history, who, fact):
            return wrong
        if kind == "paused":
            history.set(("paused", what), fact[2])
            return None
        if kind == "resumes":
            for name in what:  # a pause may be ended before its maker has returned
                history.set(("resumed", name))
            return None
        if kind == "added":
            history.set(("must", what))
            return self._count(world, history, history.step)
        if kind == "acts":
            history.set(("acts", who), what)
            return None
        if kind == "beats":
            history.set(("revoked", what), not self._stands(world, what))
            return None
        if kind == "owns":
            if history.get(("revoked", what)):
                return f"I2: {who} beat {what}, which was revoked before"
            # A claim that was revoked before its call returned is none: its owner finds that out.
            new = ("owns", what) not in history and self._stands(world, what)
            forbidden = self._paused(world, history, who, what) if new else None
            if forbidden:
                return f"I8: {who} got {what}, though {forbidden.by} paused before"
            history.set(("owns", what), fact[2])
            if ("reaped", what) in history:
                return self._believes(world, history, what, f"{what} was reaped")
            owner = history.get(("granted", what))
            return None if owner == who else f"I1: {who} was granted {what}, which {owner} holds"
        if kind == "refused":
            history.set(("refused", fact[2]))
            return self._count(world, history, history.step) or self._refused(world, who, what)
        if kind == "done":
            history.set(("over", what))
            if ("committed", what) not in history:
                return f"I2: {who} got done for {what}, which was never committed"
        elif kind == "stopped":
            history.set(("over", what))
        elif kind == "ended":
            history.set(("over", what))
            if self._stands(world, what):
                return f"I2: {who} requeued {what}, and still has it"
        elif kind == "lost":
            history.set(("over", what))
            history.set(("lost", what))
            if ("committed", what) in history and world.exists(f"{DONE}/{what}"):
                return f"I2: {who} got Lost for {what}, and its commit exists"
            if self._stands(world, what):
                return f"I2: {who} got Lost for {what}, and the claim exists"
        return None

    def _paused(self, world: SimWorld, history: History, who: str, stem: str) -> Pause | None:
        """A pause that forbids this new claim: its call has returned, and it did not list it."""
        lock = world.exists(f"{stem}.{HELD}")
        for key, listed in history.items():
            if key[0] != "paused" or stem in listed:
                continue
            pause: Pause = key[1]
            over = pause.ended(world.now() / SECOND) or ("resumed", pause.name) in history
            if not over and pause.stops(self.hosts.get(who, ""), lock=lock):
                return pause
        return None

    def _stands(self, world: SimWorld, stem: str) -> bool:
        return world.exists(f"{stem}.{CLAIMED}") or world.exists(f"{stem}.{HELD}")

    def _refused(self, world: SimWorld, who: str, ident: str) -> str | None:
        """Check that a producer that got Exists leaves nothing that is published later."""
        for path in world.files():
            if path.startswith(f".dibs/known/{ident}."):
                nonce = world.data(path)[:10].decode()
                drafts = (f".dibs/new/{ident}.{kind}.{nonce}" for kind in ("task", "lock"))
                mine = nonce in (minted(who, n) for n in range(1, 9))
                if mine and ident not in self.plain:  # only a shell can still be in its way
                    return f"I3: {who} got Exists for {ident}, and the nonce is its own"
                if mine and any(map(world.exists, drafts)):
                    return f"I3: {who} got Exists for {ident}, and its payload is kept"
        return None

    # -- plain claims ------------------------------------------------------------------------

    def _shell(self, world: SimWorld, history: History, step: Step) -> None:
        """Record until when a shell worker may rely on its claim.

        The memory maps ("plain", payload) to (who, until).
        """
        op, path = (*step.call, "", "")[:2]
        if not step.call or step.fault not in ("", LOST, LANDED):
            return
        until = world.elapsed + int(PLAIN_TTL * SECOND)
        if op == "rename" and world.moved:
            task = read(step.call[2])
            if task is not None:
                data = world.data(task.name)
                if ".claimed" in path:
                    # A shell reaper: the next holder looks the same as the one before.
                    history.set(("muddled", data))
                if ("muddled", data) not in history:
                    history.set(("plain", data), (step.actor, until * task.is_shell_claim))
        elif op != "sleep" and path.endswith(".lock"):
            files = world.files()
            # A janitor guarantees to see each beat until it has taken the lock.
            opened = type(step.result) is Half
            stands = {world.data(p) for p in files if is_plain(p) or (opened and taken(p, files))}
            for key, value in history.items():
                if key[0] != "plain" or ("muddled", key[1]) in history:
                    continue
                alive = value[1] > world.elapsed
                if value[0] != step.actor:
                    if alive:  # a zombie's heartbeat under another worker's claim
                        history.set(("muddled", key[1]))
                    continue
                if op == "write" and (alive or key[1] in stands):
                    history.set(key, (step.actor, until))
                elif op == "unlink" and alive:
                    history.set(("finished", key[1]))

    def _waits_again(self, world: SimWorld, history: History, step: Step, task: Task) -> str | None:
        """Check that no plain claim is requeued early or after its worker finished it."""
        if self.roles.get(step.actor) in _SHELLS:
            return None
        payload = world.data(task.name)
        if payload in self.parked:
            return f"I6: {task.name} was requeued too often, and is available again"
        if ("muddled", payload) in history:
            return None
        if ("finished", payload) in history:
            return f"I3: {task.name} revives a finished task"
        who, until = history.get(("plain", payload), ("", 0))
        crashed = who in history.results and history.results[who].kind == "crashed"
        if until > world.elapsed and not crashed:
            left = (until - world.elapsed) / SECOND
            return f"I4: {step.actor} requeued {task.name}, and {who} beat: {left:g} s are left"
        return None

    # -- the end -----------------------------------------------------------------------------

    def final(
        self, world: SimWorld, history: History, results: Mapping[str, Outcome]
    ) -> str | None:
        """Check that a janitor leaves no incomplete step after all actors ended."""
        if self.served and all(outcome.kind == "returned" for outcome in results.values()):
            values = [outcome.value for outcome in results.values()]
            if "done" not in values:
                return f"I6: no worker got the task: {values}"
        rest = settled(world, self.options)
        where: dict[bytes, list[str]] = {}
        ids: dict[str, str] = {}
        for path, data in rest.files.items():
            wrong = None
            if not path.startswith(self.litter or "\0"):
                wrong = self._resting(history, path, data, ids)
            if wrong is not None:
                return f"I6: at the end {wrong}; {', '.join(rest.errors)}"
            if holds_payload(path) and data:
                where.setdefault(data, []).append(path)
        for key, _ in history.items():
            must = key[0] == "must" and ("removed", key[1]) not in history
            if must and len(where.get(key[1], ())) != 1:
                return f"I3: at the end {key[1]!a} is in {where.get(key[1], 'no place')}"
            if key[0] != "finished" or ("muddled", key[1]) in history:
                continue
            if any("/" not in p for p in where.get(key[1], ())):
                return (
                    f"I3: at the end the finished {key[1]!a} is available again as {where[key[1]]}"
                )
        return None

    def _resting(self, history: History, path: str, data: bytes, ids: dict[str, str]) -> str | None:
        """Why a path must not exist when no actor runs; None if it may."""
        for folder in ("claims", "records", "new", "aside", "looks", "waiting"):
            if path.startswith(f".dibs/{folder}/") and not path.startswith(".dibs/looks/+"):
                return f"{path} is left over"
        task = read(path)
        if task is None:
            # A beat that died before its first byte leaves a file that could be another program's.
            return f"{path} is left over" if path.endswith(".lock") and data else None
        if task.state in (CLAIMED, HELD):
            return f"{path} stays claimed"
        if task.state == LATER:
            return f"{path} waits for ever"
        if task.state in (AVAILABLE, FREE):
            if task.id in ids and task.id not in self.doubled:
                return f"{task.id} has two names, {ids[task.id]} and {path}: no one may claim it"
            ids[task.id] = path
            shells_only = task.id in self.plain and ("hardened", task.id) not in history
            if shells_only and path != f"{task.id}.{AVAILABLE}":
                return f"{path} is a name that no shell worker sees"
        return None
