"""Earlier, broken designs of free locks: the name was removed, or the fence was kept elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from typing import Any

from dibs.files import lives
from dibs.files.board_files import KNOWN, PAST, BoardFiles
from dibs.files.claims import FilesClaim
from dibs.model import names
from dibs.model.task import AVAILABLE, DEFAULT_PRIORITY, FREE, Stamp, Task

from . import scenes_locks as scenes
from .mutant import Mutant, mutant, swapped

Patch = Callable[[], AbstractContextManager[Any]]
_FIXED = f"{names.free_folder('l')}/l"
_FENCES = f"{PAST}/fences"


@contextmanager
def _fixed_name() -> Iterator[None]:
    """Give the free lock one fixed name, and a file with the fence at its release."""
    waiting, read_any, release = names.unclaimed_name, names.read_any, FilesClaim.release

    def fixed(ident: str, stamp: Stamp, word: str = AVAILABLE) -> str:
        return _FIXED if word == FREE else waiting(ident, stamp, word)

    def read(name: str) -> Task | None:
        return _free(0) if name == _FIXED else read_any(name)

    def free(self: BoardFiles, ident: str) -> list[Task]:
        fences = [0]
        with suppress(FileNotFoundError):
            fences += map(int, self.port.read(_FENCES, 999)[0].split())
        return [_free(fences[-1])] if self.there(_FIXED) else []

    def noted(self: FilesClaim, reason: str = "") -> Task:
        self._store.port.append(_FENCES, b"%d\n" % self.fence)
        return release(self, reason)

    with ExitStack() as stack:
        for owner, name, value in (
            (names, "unclaimed_name", fixed),
            (names, "read_any", read),
            (BoardFiles, "free", free),
            (FilesClaim, "release", noted),
        ):
            stack.enter_context(swapped(owner, name, value))
        yield


def _free(fence: int) -> Task:
    return Task(_FIXED, "l", FREE, fence, 0, DEFAULT_PRIORITY, "")


def _removing(*, floor: str = "", finishes: bool = False) -> Patch:
    """Make a release remove an idle lock with its entry in `known/`.

    `floor`: whether the next maker reads the highest fence `before` its entry exists, or `after`.
    `finishes`: a remover continues where another was faster, because that one may have died.
    """

    @contextmanager
    def patched() -> Iterator[None]:
        release, begin, latest = FilesClaim.release, lives._begin, lives.latest_life

        def released(self: FilesClaim, reason: str = "") -> Task:
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

        def begun(store: BoardFiles, ident: str, nonce: str, priority: int) -> lives.Life:
            low = _floor(store)
            life = begin(store, ident, nonce, priority)
            return life._replace(stamp=Stamp(low if floor == "before" else _floor(store)))

        def helped(store: BoardFiles, ident: str) -> lives.Life | None:
            life = latest(store, ident)
            return life and life._replace(stamp=Stamp(_floor(store)))

        with swapped(FilesClaim, "release", released), ExitStack() as stack:
            if floor:
                stack.enter_context(swapped(lives, "_begin", begun))
                stack.enter_context(swapped(lives, "latest_life", helped))
            yield

    return patched


def _floor(store: BoardFiles) -> int:
    return max((int(name.rpartition(".f")[2]) for name in store.ended(PAST)), default=0)


def _draft(name: str, breaks: str, patched: Patch) -> Mutant:
    return Mutant(name, breaks, (scenes.TURNS.name, scenes.RELEASED.name), patched)


MUTANTS: list[Mutant] = [
    _draft(
        "the fence is beside a fixed name of the free lock",
        "The lock is acquired and released after it is read, and one fence is granted twice.",
        _fixed_name,
    ),
    _draft(
        "an idle lock is removed with its entry in `known/`",
        "The next to make it starts at fence 1.",
        _removing(),
    ),
    _draft(
        "the highest fence is read before `known/` is written",
        "The lock is removed in between, and its fences start lower.",
        _removing(floor="before"),
    ),
    _draft(
        "two removers unlink one entry of `known/`",
        "The second unlinks the entry of a lock that was just made: it is made twice.",
        _removing(floor="after", finishes=True),
    ),
    mutant(
        "a lock that no listing shows is made again",
        "It moved between the folders during the listings, and two hold it.",
        (scenes.RELEASED_UNRECORDED, scenes.RELEASED, scenes.TURNS),
        (
            "locks:_publish",
            "    found = search(store, [ident], quiet=1)[ident]\n    if not found:\n",
            "    found = store.find(ident)\n    if not found:\n"
            "        store.write(draft, b'')\n"
            "        lives.publish(store, draft, names.unclaimed_name(ident, life.stamp, FREE))\n"
            "        return None\n    if not found:\n",
        ),
    ),
    mutant(
        "a free lock is acquired without a check for a holder",
        "A copy of the free name is beside the holder, and two hold the lock.",
        scenes.COPIED,
        ("locks:_find", "    if held:\n", "    if held and not store.free(ident):\n"),
    ),
    mutant(
        "the highest of several copies of a free lock is acquired",
        "The next worker takes the copy that is left.",
        (scenes.COPIES, scenes.COPIED),
        ("locks:_find", "only(ident, free) if free", "free[-1] if free"),
    ),
]
