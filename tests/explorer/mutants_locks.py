"""Drafts of free locks that were broken: the name was removed, or the fence kept elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from typing import Any

from dibs import adding, names
from dibs.claims import Claim
from dibs.names import FREE, Stamp, Task
from dibs.store import KNOWN, PAST, Store

from . import scenes_locks as scenes
from .mutant import Mutant, mutant, swapped

Patch = Callable[[], AbstractContextManager[Any]]
_FIXED = f"{names.free_folder('l')}/l"
_FENCES = f"{PAST}/fences"


@contextmanager
def _fixed_name() -> Iterator[None]:
    """The free lock has one name for good, and a file says at which fence it was released."""
    waiting, read_any, release = names.waiting_name, names.read_any, Claim.release

    def fixed(ident: str, stamp: Stamp, word: str = names.AVAILABLE) -> str:
        return _FIXED if word == FREE else waiting(ident, stamp, word)

    def read(name: str) -> Task | None:
        return _free(0) if name == _FIXED else read_any(name)

    def free(self: Store, ident: str) -> list[Task]:
        fences = [0]
        with suppress(FileNotFoundError):
            fences += map(int, self.port.read(_FENCES, 999)[0].split())
        return [_free(fences[-1])] if self.there(_FIXED) else []

    def noted(self: Claim, reason: str = "") -> Task:
        self._store.port.append(_FENCES, b"%d\n" % self.fence)
        return release(self, reason)

    with ExitStack() as stack:
        for owner, name, value in (
            (names, "waiting_name", fixed),
            (names, "read_any", read),
            (Store, "free", free),
            (Claim, "release", noted),
        ):
            stack.enter_context(swapped(owner, name, value))
        yield


def _free(fence: int) -> Task:
    return Task(_FIXED, "l", FREE, fence, 0, names.DEFAULT_PRIORITY, "")


def _removing(*, floor: str = "", finishes: bool = False) -> Patch:
    """Whoever releases a lock removes it if it is idle, with its entry in `known/`.

    `floor`: whether the next to make it reads how far the fences went `before` its entry is
    there, or `after`. `finishes`: a remover goes on where another was faster, as it may have died.
    """

    @contextmanager
    def patched() -> Iterator[None]:
        release, begin, latest = Claim.release, adding._begin, adding.latest_life

        def released(self: Claim, reason: str = "") -> Task:
            task, store = release(self, reason), self._store
            for idle in store.free("l"):
                if floor:
                    with suppress(FileExistsError):
                        store.port.create(f"{PAST}/l.f{idle.fence}", b"")
                try:
                    store.port.unlink(idle.name)
                except FileNotFoundError:
                    if not finishes:
                        break
                with suppress(FileNotFoundError):
                    store.port.unlink(f"{KNOWN}/l.0")
            return task

        def begun(store: Store, ident: str, nonce: str, priority: int) -> adding.Life:
            low = _floor(store)
            life = begin(store, ident, nonce, priority)
            return life._replace(stamp=Stamp(low if floor == "before" else _floor(store)))

        def helped(store: Store, ident: str) -> adding.Life | None:
            life = latest(store, ident)
            return life and life._replace(stamp=Stamp(_floor(store)))

        with swapped(Claim, "release", released), ExitStack() as stack:
            if floor:
                stack.enter_context(swapped(adding, "_begin", begun))
                stack.enter_context(swapped(adding, "latest_life", helped))
            yield

    return patched


def _floor(store: Store) -> int:
    return max((int(name.rpartition(".f")[2]) for name in store.ended(PAST)), default=0)


def _draft(name: str, breaks: str, patched: Patch) -> Mutant:
    return Mutant(name, breaks, (scenes.TURNS.name, scenes.RELEASED.name), patched)


MUTANTS: list[Mutant] = [
    _draft(
        "the fence is beside a fixed name of the free lock",
        "It is read, the lock is acquired and released meanwhile, and one fence is granted twice.",
        _fixed_name,
    ),
    _draft(
        "an idle lock is removed with its entry in `known/`",
        "Whoever makes it anew begins at fence 1.",
        _removing(),
    ),
    _draft(
        "how far the fences went is read before `known/` is written",
        "The lock is removed in between, and its fences begin lower.",
        _removing(floor="before"),
    ),
    _draft(
        "two removers unlink one entry of `known/`",
        "The second unlinks the entry of the lock that was made meanwhile: it is made twice.",
        _removing(floor="after", finishes=True),
    ),
    mutant(
        "a lock that no listing shows is made anew",
        "It moved from one folder to the other between the listings, and two hold it.",
        (scenes.RELEASED_UNRECORDED, scenes.RELEASED, scenes.TURNS),
        (
            "locks:_publish",
            "    found = search(store, [ident], quiet=1)[ident]\n    if not found:\n",
            "    found = store.find(ident)\n    if not found:\n"
            "        store.write(draft, b'')\n"
            "        adding.publish(store, draft, names.waiting_name(ident, life.stamp, FREE))\n"
            "        return None\n    if not found:\n",
        ),
    ),
    mutant(
        "a free lock is acquired without a look for its holder",
        "A copy of the free name lies beside the holder, and two hold the lock.",
        scenes.COPIED,
        ("locks:_find", "    if held:\n", "    if held and not store.free(ident):\n"),
    ),
    mutant(
        "of several copies of a free lock the highest is acquired",
        "The next to come takes the copy that is left.",
        (scenes.COPIES, scenes.COPIED),
        ("locks:_find", "only(ident, free) if free", "free[-1] if free"),
    ),
]
