"""The file system's clock, and how far this host can vouch for it.

`now` is the time that the file system gives a file just touched. Whether it stepped is seen by
comparing it with the boot-time clock: the two must have advanced alike for the last ttl. Samples
are kept in a small witness file per boot and mount, so that a process that has just started can
vouch as well. Where the clock is not trusted, `looks` decides.
"""

from __future__ import annotations

import errno
import json
from collections.abc import Iterable, Sequence
from contextlib import suppress
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from dibs.errors import NotABoard, StorageError, storage_error

if TYPE_CHECKING:
    from dibs.disk import Port, Stat
    from dibs.host import Host
    from dibs.looks import Looks

SECOND = 1_000_000_000
PROBE = ".dibs/probe"
LOOKS = ".dibs/looks"
WITNESS = ".dibs/witness"
WITNESS_BYTES = 1 << 16
WITNESSES = 512
"""More witness files are of boots that are over: whoever adds one removes the older half."""
_SAVE_EVERY = 5 * SECOND
_ESTIMATE_FOR = 60 * SECOND
_SAMPLES = 48
FAITHFUL = SECOND // 8
"""How far the times of a touched file may lie apart, for either to be believed."""
_NOT_OVER = (errno.EPERM, errno.EEXIST, errno.EACCES)
APART = 2 * SECOND
"""How far this host's clock may be from the server's where beats get the host's own time."""
COARSE = 10
"""Seconds of ttl below which whole seconds are too coarse: a tick of two is a fifth of it, and an
owner stops at four fifths."""


class Sample(NamedTuple):
    """The two clocks, read together."""

    fs: int
    boot: int


def vouches(samples: Iterable[Sample], now: Sample, ttl: float) -> bool:
    """Whether the clocks are known to have advanced alike for the last ttl.

    A step of less than a fifth of the ttl is harmless: an owner stops at four fifths.
    """
    for sample in sorted(samples, key=lambda s: -s.boot):
        if _apart(sample, now, ttl):
            return False
        if now.boot - sample.boot >= ttl * SECOND:
            return True
    return False


def doubt(samples: Sequence[Sample], now: Sample, ttl: float) -> str:
    """Why the clock cannot be vouched for over the last ttl, in words; empty where it can."""
    if vouches(samples, now, ttl):
        return ""
    apart = [s.boot for s in samples if _apart(s, now, ttl)]
    if apart:
        return f"it jumped less than {(now.boot - max(apart)) / SECOND:.0f} s ago"
    watched = now.boot - min((s.boot for s in samples), default=now.boot)
    return f"this host has watched it for {watched / SECOND:.0f} s only"


def _apart(sample: Sample, now: Sample, ttl: float) -> bool:
    """Whether the clocks did not advance alike since, by more than can be harmless."""
    return abs((now.fs - sample.fs) - (now.boot - sample.boot)) > slack(ttl)


def slack(ttl: float) -> int:
    """How far clocks may differ and do no harm: an owner stops at four fifths of its ttl."""
    return min(2 * SECOND, int(ttl * 0.15 * SECOND))


def from_the_future(beat: int, now: Sample) -> bool:
    """A beat that the file system's clock, as it stands, cannot have given."""
    return beat - now.fs > 2 * SECOND


def thin(samples: Sequence[Sample]) -> list[Sample]:
    """Fewer samples, newest first, the older the sparser: enough to vouch for any ttl.

    A sample goes only where its neighbours stay close for their age, so old ones are not lost
    one by one as they grow older.
    """
    ordered = sorted(samples, key=lambda s: s.boot)[-2 * _SAMPLES :]
    kept = ordered[:1]
    for sample, younger in pairwise(ordered[1:]):
        if younger.boot - kept[-1].boot > (ordered[-1].boot - younger.boot) // 2:
            kept.append(sample)
    return [*kept, *ordered[1:][-1:]][::-1][:_SAMPLES]


class Clock:
    """Reads the file system's clock through the probe and remembers what it saw."""

    def __init__(self, port: Port, host: Host) -> None:
        self._port = port
        self._host = host
        self._file: str | None = None
        """The witness; None before the first look at the clock, empty where none can be kept."""
        self._new = False
        self._samples: list[Sample] = []
        self._looks: Looks | None = None
        self._saved = 0
        self._dirty = False
        self.rename_moves_ctime: bool | None = None
        """What was found out about this mount, and is remembered with the rest."""

    def now(self) -> Sample:
        """The file system's now, made by touching the probe."""
        boot = self._port.boottime()
        try:
            stat = self._touch()
        except OSError as error:
            raise storage_error(error) from error
        sample = Sample(stat.mtime, boot)
        quick = self._port.boottime() - boot <= SECOND // 2  # else it says little of either clock
        # Some clients set the mtime by their own clock: it tells nothing of other hosts' beats.
        quick = quick and abs(stat.mtime - stat.ctime) <= FAITHFUL
        if self._file is None:
            tag = self._host.tag  # without a boot id another machine's clock could pass for ours
            self._file = f"{WITNESS}/{tag}-{stat.dev:x}" if tag else ""
            self._load()
        if quick and (not self._samples or boot - self._samples[0].boot >= SECOND // 4):
            self._samples = thin([sample, *self._samples])
        return sample

    def now_or_newest(self, newest: int) -> tuple[Sample, bool]:
        """Now, and whether it is exact: where nothing can be written, the newest time seen."""
        try:
            return self.now(), True
        except StorageError:
            return Sample(newest, self._port.boottime()), False

    def _touch(self) -> Stat:
        """The probe's times; in a plain directory those of a file that leaves nothing behind.

        A look must not make a board: the first act does, before it reads the clock.
        """
        port = self._port
        try:
            port.touch(PROBE)
        except FileNotFoundError:
            # Another user may touch it as soon as it has its name, so it has its mode by then.
            draft = f"{PROBE}.{port.nonce()}"
            try:
                port.create(draft, b"")
            except FileNotFoundError:
                return port.nameless()
            port.rename(draft, PROBE)
        return port.stat(PROBE)

    def trust(self, other: Clock) -> None:
        """Take over what another clock of this host has seen of the same file system."""
        self._samples = thin([*self._samples, *other._samples])

    def vouches_for(self, now: Sample, ttl: float) -> bool:
        """Whether the clock is known to have run evenly for the last ttl."""
        return vouches(self._fine(now, ttl), now, ttl)

    def doubt(self, now: Sample, ttl: float) -> str:
        """Why it is not known to have run evenly for the last ttl; empty where it is."""
        if self._fine(now, ttl) is not self._samples:
            return f"it ticks in whole seconds, too coarse for a ttl of {ttl:g} s"
        return doubt(self._samples, now, ttl)

    def _fine(self, now: Sample, ttl: float) -> list[Sample]:
        """The samples, unless their ticks are too coarse to tell an age against this ttl."""
        return [] if now.fs % SECOND == 0 and ttl < COARSE else self._samples

    def guess(self) -> Sample | None:
        """Now, reckoned from the last sample without a look at the disk; None before any."""
        if not self._samples:
            return None
        last, boot = self._samples[0], self._port.boottime()
        return Sample(last.fs + boot - last.boot, boot)

    def about(self) -> float:
        """Roughly the file system's time in seconds, for commentary only; mostly free."""
        boot = self._port.boottime()
        last = self._samples[0] if self._samples else None
        if last is None or boot - last.boot > _ESTIMATE_FOR:
            try:
                last = self.now()
            except StorageError:
                return 0.0
        return (last.fs + boot - last.boot) / SECOND

    def learn(self, *, anew: bool = False) -> bool:
        """Whether a rename moves a file's ctime here; found out by doing, once per mount and boot.

        Where it does not, a claim made from an old file would look old itself.
        """
        self.now()
        if anew or self.rename_moves_ctime is None:
            self.rename_moves_ctime = self._try_rename()
            self._dirty = True
            self.settle()
        return self.rename_moves_ctime

    def _try_rename(self) -> bool:
        port = self._port
        old, new = (f".dibs/new/{port.nonce()}" for _ in range(2))
        try:
            port.create(new, b"")
            port.create(old, b"")
            before = port.stat(old).ctime
            until = port.boottime() + 3 * SECOND
            while self.now().fs <= before and port.boottime() < until:
                port.sleep(0.005)  # one tick: milliseconds, on FAT two seconds
            self._replace(old, new)
            moved = port.stat(new).ctime > before
            port.unlink(new)
            if not moved:
                self._compare()
        except OSError as error:
            raise storage_error(error) from error
        return moved

    def _compare(self) -> None:
        """Where a touch gives a file its only time, whose clock it comes from: not a wrong one's.

        Over SFTP a new file has the server's time and a touched one this host's, beats too.
        """
        port, path = self._port, f".dibs/new/{self._port.nonce()}"
        port.create(path, b"")
        begun, made = port.boottime(), port.stat(path).mtime
        port.touch(path)
        touched = port.stat(path).mtime
        passed = port.boottime() - begun
        port.unlink(path)
        ahead = touched - made - passed // 2
        if abs(ahead) > APART + passed // 2:
            raise NotABoard(
                f"beats get this host's time here, which is {abs(ahead) / SECOND:.0f} s "
                f"{'ahead of' if ahead > 0 else 'behind'} the server's, so live claims would look "
                "silent: set the clock (NTP), then try again"
            )

    def _replace(self, old: str, new: str) -> None:
        """Rename one file over another, as a claim's record is changed; some servers refuse."""
        try:
            self._port.rename(old, new)
        except OSError as error:
            if error.errno not in _NOT_OVER:
                raise
            for path in (old, new):
                self._port.unlink(path)
            raise NotABoard(
                "a rename cannot replace a file here, so no claim's record could be changed: "
                "mount sshfs with -o workaround=rename, or use another directory"
            ) from error

    def patience(
        self, stem: str, beat: int, pulse: int, ttl: float, now: Sample, *, latest: int = 0
    ) -> float:
        """Seconds after which to ask again whether this claim may be reaped; 0: it may now.

        It was last beaten at `beat`; `pulse` changes with every beat even where a clock set back
        keeps `beat` from growing. `now` was read before both. Where it may have beaten as late as
        `latest`, by a clock that is behind, no age proves its silence: only its pulse does.
        """
        ahead = from_the_future(beat, now)
        if not ahead and now.fs - beat <= ttl * SECOND:
            return ttl - max(0, now.fs - beat) / SECOND + 0.001
        # Once more, as it may have stepped between `now` and the look at the claim.
        surely = not ahead and now.fs - latest > ttl * SECOND
        if surely and self.vouches_for(now, ttl) and vouches(self._samples, self.now(), ttl):
            return 0.0
        if self._looks is None:
            from dibs.looks import Looks  # seldom needed

            self._looks = Looks(self._port, self._host)
        return self._looks.patience(stem, pulse, ttl, now, ahead=ahead, again=self.now)

    def settle(self) -> None:
        """Write down what was learnt of the clock, now and then."""
        last = self._samples[0].boot if self._samples else 0
        if self._file and (self._dirty or last - self._saved >= _SAVE_EVERY):
            self._save(self._file)

    def _load(self) -> None:
        if not self._file:
            return
        try:
            fields: Any = json.loads(self._port.read(self._file, WITNESS_BYTES)[0])
            samples = [Sample(_int(fs), _int(boot)) for fs, boot in fields["samples"]]
            moves = fields.get("rename_moves_ctime")
        except FileNotFoundError:
            self._new = True
            return
        except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
            return
        self.rename_moves_ctime = moves if isinstance(moves, bool) else None
        boot = self._port.boottime()
        self._samples = thin([s for s in (*self._samples, *samples) if s.boot <= boot])
        self._saved = max((s.boot for s in self._samples), default=0)

    def _save(self, file: str) -> None:
        fields = {"samples": self._samples, "rename_moves_ctime": self.rename_moves_ctime}
        draft = f"{file}.{self._port.nonce()}"
        try:
            if self._new:
                self._make_room()
            self._port.create(draft, json.dumps(fields).encode())
            self._port.rename(draft, file)
        except OSError:  # a witness lost costs patience, nothing else
            with suppress(OSError):
                self._port.unlink(draft)
            return
        self._saved = self._samples[0].boot if self._samples else 0
        self._dirty = self._new = False

    def _make_room(self) -> None:
        """Each boot leaves a witness, and machines of one call each leave many."""
        entries = self._port.names(WITNESS)
        if len(entries) < WITNESSES:
            return
        ages = []
        for entry in entries:
            with suppress(OSError):
                ages.append((self._port.stat(f"{WITNESS}/{entry}").mtime, entry))
        for _, entry in sorted(ages)[: len(ages) // 2]:
            with suppress(OSError):
                self._port.unlink(f"{WITNESS}/{entry}")


def _int(value: object) -> int:
    """A time read from the directory, if it can be one."""
    if type(value) is not int or not -(2**63) <= value < 2**63:
        raise ValueError(value)
    return value
