"""The file system's clock, and whether this host trusts it.

`now` is the time that the file system gives to a file that was just touched. To detect that the
clock was set, it is compared with the boot-time clock: both must have advanced alike for the last
ttl. Samples are kept in a small witness file per boot and mount, so a process that has just
started can trust the clock as well. Where the clock is untrusted, `looks` decides.
"""

from __future__ import annotations

import errno
import json
from collections.abc import Iterable, Sequence
from contextlib import suppress
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from dibs.model.errors import NotABoard, StorageError, storage_error
from dibs.model.sample import SECOND, Sample, from_the_future

if TYPE_CHECKING:
    from dibs.files.looks import Looks
    from dibs.files.port import Port, Stat
    from dibs.host import Host

PROBE = ".dibs/probe"
LOOKS = ".dibs/looks"
WITNESS = ".dibs/witness"
WITNESS_BYTES = 1 << 16
WITNESSES = 512
"""With more witness files, most are of past boots: whoever adds one removes the older half."""
_SAVE_EVERY = 5 * SECOND
_ESTIMATE_FOR = 60 * SECOND
_SAMPLES = 48
FAITHFUL = SECOND // 8
"""How far mtime and ctime of a touched file may differ for either to be trusted."""
_NOT_OVER = (errno.EPERM, errno.EEXIST, errno.EACCES)
APART = 2 * SECOND
"""How far this host's clock may be from the server's, where beats get the host's own time."""
COARSE = 10
"""Below this ttl in seconds, whole seconds are too coarse: a tick of two is a fifth of the ttl, and
an owner stops at four fifths."""


def ran_evenly(samples: Iterable[Sample], now: Sample, ttl: float) -> bool:
    """Whether both clocks are known to have advanced alike for the last ttl.

    A step of less than a fifth of the ttl is harmless: an owner stops at four fifths.
    """
    for sample in sorted(samples, key=lambda s: -s.boot):
        if _apart(sample, now, ttl):
            return False
        if now.boot - sample.boot >= ttl * SECOND:
            return True
    return False


def doubt(samples: Sequence[Sample], now: Sample, ttl: float) -> str:
    """Why the clock is untrusted for the last ttl, in words; empty if it is trusted."""
    if ran_evenly(samples, now, ttl):
        return ""
    apart = [s.boot for s in samples if _apart(s, now, ttl)]
    if apart:
        return f"it jumped less than {(now.boot - max(apart)) / SECOND:.0f} s ago"
    watched = now.boot - min((s.boot for s in samples), default=now.boot)
    return f"this host has watched it for only {watched / SECOND:.0f} s"


def _apart(sample: Sample, now: Sample, ttl: float) -> bool:
    """Whether the clocks have drifted apart since the sample by more than is harmless."""
    return abs((now.fs - sample.fs) - (now.boot - sample.boot)) > slack(ttl)


def slack(ttl: float) -> int:
    """How far clocks may differ without harm: an owner stops at four fifths of its ttl."""
    return min(2 * SECOND, int(ttl * 0.15 * SECOND))


def thin(samples: Sequence[Sample]) -> list[Sample]:
    """Fewer samples, newest first and sparser with age, which still cover any ttl.

    A sample is dropped only if its neighbours stay close for their age. So old samples do not
    disappear one by one as they grow older.
    """
    ordered = sorted(samples, key=lambda s: s.boot)[-2 * _SAMPLES :]
    kept = ordered[:1]
    for sample, younger in pairwise(ordered[1:]):
        if younger.boot - kept[-1].boot > (ordered[-1].boot - younger.boot) // 2:
            kept.append(sample)
    return [*kept, *ordered[1:][-1:]][::-1][:_SAMPLES]


class Clock:
    """Reads the file system's clock through the probe file and remembers the samples."""

    def __init__(self, port: Port, host: Host) -> None:
        self._port = port
        self._host = host
        self._file: str | None = None
        """The witness file; None before the clock was read, empty where none can be kept."""
        self._new = False
        self._samples: list[Sample] = []
        self._looks: Looks | None = None
        self._saved = 0
        self._dirty = False
        self._probe_is_ours = False
        """Whether the last look at the probe found one name; looked at before the first touch."""
        self.rename_moves_ctime: bool | None = None
        """Found out once for this mount, and kept in the witness; None if it is not known yet."""

    def now(self) -> Sample:
        """The file system's current time, from touching the probe file."""
        boot = self._port.boottime()
        try:
            stat = self._touch()
        except OSError as error:
            raise storage_error(error) from error
        sample = Sample(stat.mtime, boot)
        quick = self._port.boottime() - boot <= SECOND // 2  # else the two were not read together
        # Some clients set the mtime by their own clock, which says nothing of other hosts' beats.
        quick = quick and abs(stat.mtime - stat.ctime) <= FAITHFUL
        if self._file is None:
            tag = self._host.tag  # empty without a boot id: another host's samples could be ours
            self._file = f"{WITNESS}/{tag}-{stat.dev:x}" if tag else ""
            self._load()
        if quick and (not self._samples or boot - self._samples[0].boot >= SECOND // 4):
            self._samples = thin([sample, *self._samples])
        return sample

    def now_or_newest(self, newest: int) -> tuple[Sample, bool]:
        """The time and True; where nothing can be written, `newest` and False."""
        try:
            return self.now(), True
        except StorageError:
            return Sample(newest, self._port.boottime()), False

    def _touch(self) -> Stat:
        """The probe's times; without a board, those of a file that leaves no trace.

        Reading must not make a board. The first act makes it, before it reads the clock.
        """
        port, looked = self._port, self._probe_is_ours
        with suppress(FileNotFoundError):
            while True:
                if looked:
                    port.touch(PROBE)
                stat = port.stat(PROBE)
                if not stat.regular:
                    raise NotABoard(f"{PROBE} is not a plain file: remove it")
                self._probe_is_ours = stat.links == 1  # else it shares its times, as after `cp -al`
                if not self._probe_is_ours:
                    break
                if looked:
                    return stat
                looked = True
        return self._new_probe()

    def _new_probe(self) -> Stat:
        """Make the probe, or replace one with a second name; returns its times."""
        port = self._port
        # Other users may touch it as soon as it has its name, so its mode is set before that.
        draft = f"{PROBE}.{port.nonce()}"
        try:
            port.create(draft, b"")
        except FileNotFoundError:
            return port.nameless()
        port.rename(draft, PROBE)
        stat = port.stat(PROBE)
        self._probe_is_ours = stat.regular and stat.links == 1
        return stat

    def trust(self, other: Clock) -> None:
        """Add the samples that another clock of this host took of the same file system."""
        self._samples = thin([*self._samples, *other._samples])

    def trusts(self, now: Sample, ttl: float) -> bool:
        """Whether the clock is trusted: known to have run evenly for the last ttl."""
        return ran_evenly(self._fine(now, ttl), now, ttl)

    def doubt(self, now: Sample, ttl: float) -> str:
        """Why the clock is untrusted for the last ttl; empty if it is trusted."""
        if self._fine(now, ttl) is not self._samples:
            return f"it ticks in whole seconds, too coarse for a ttl of {ttl:g} s"
        return doubt(self._samples, now, ttl)

    def _fine(self, now: Sample, ttl: float) -> list[Sample]:
        """The samples; none if the clock's ticks are too coarse to measure an age for this ttl."""
        return [] if now.fs % SECOND == 0 and ttl < COARSE else self._samples

    def guess(self) -> Sample | None:
        """Now, computed from the last sample without the disk; None before the first sample."""
        if not self._samples:
            return None
        last, boot = self._samples[0], self._port.boottime()
        return Sample(last.fs + boot - last.boot, boot)

    def about(self) -> float:
        """Roughly the file system's time in seconds, for display; usually without the disk."""
        boot = self._port.boottime()
        fs, then = self._samples[0] if self._samples else (0, -2 * _ESTIMATE_FOR)
        if boot - then > _ESTIMATE_FOR:
            try:
                fs, then = self.now()
            except StorageError:
                return 0.0
        return (fs + boot - then) / SECOND

    def learn(self, *, again: bool = False) -> bool:
        """Whether a rename updates a file's ctime here; tried out once per mount and boot.

        Where it does not, a claim made from an old file would look old itself.
        """
        self.now()
        if again or self.rename_moves_ctime is None:
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
                port.sleep(0.005)  # one tick: milliseconds, two seconds on FAT
            self._replace(old, new)
            moved = port.stat(new).ctime > before
            port.unlink(new)
            if not moved:
                self._compare()
        except OSError as error:
            raise storage_error(error) from error
        return moved

    def _compare(self) -> None:
        """Raise if a touch sets files to this host's time, and that is wrong by the server's clock.

        Called where a touch gives a file its only time. Over SFTP a new file gets the server's
        time, but a touched one, which is what a heartbeat is, gets this host's.
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
                f"heartbeats get this host's time here, which is {abs(ahead) / SECOND:.0f} s "
                f"{'ahead of' if ahead > 0 else 'behind'} the server's, so live claims would look "
                "stale: set the clock (NTP), then try again"
            )

    def _replace(self, old: str, new: str) -> None:
        """Rename one file over another, as a change of a record does; some servers refuse it."""
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
        """Seconds until this claim should be checked again; 0 means that it may be reaped now.

        It was last beaten at `beat`. `pulse` changes with every beat, even where the clock was set
        back and `beat` does not grow. `now` was read before both. If the last beat may be as late
        as `latest`, by a clock that is behind, only an unchanged `pulse` proves that it is stale.
        """
        ahead = from_the_future(beat, now)
        if not ahead and now.fs - beat <= ttl * SECOND:
            return ttl - max(0, now.fs - beat) / SECOND + 0.001
        # Check the clock again: it may have stepped between `now` and reading the claim.
        expired = not ahead and now.fs - latest > ttl * SECOND
        if expired and self.trusts(now, ttl) and ran_evenly(self._samples, self.now(), ttl):
            return 0.0
        if self._looks is None:
            from dibs.files.looks import Looks  # rarely needed

            self._looks = Looks(self._port, self._host)
        return self._looks.patience(stem, pulse, ttl, now, ahead=ahead, again=self.now)

    def settle(self) -> None:
        """Write what was learned of the clock to the witness, every few seconds."""
        last = self._samples[0].boot if self._samples else 0
        if self._file and (self._dirty or last - self._saved >= _SAVE_EVERY):
            self._save(self._file)

    def _load(self) -> None:
        if not self._file:
            return
        try:
            fields: Any = json.loads(self._port.read(self._file, WITNESS_BYTES)[0])
            samples = [Sample(fs, boot) for fs, boot in fields["samples"]]
            moves = fields.get("rename_moves_ctime")
        except FileNotFoundError:
            self._new = True
            return
        except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
            return
        if any(type(time) is not int or abs(time) >= 2**63 for pair in samples for time in pair):
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
        except OSError:  # without a witness, a claim is only reaped later
            with suppress(OSError):
                self._port.unlink(draft)
            return
        self._saved = self._samples[0].boot if self._samples else 0
        self._dirty = self._new = False

    def _make_room(self) -> None:
        """Remove the older half of the witnesses: each boot leaves one, short-lived VMs many."""
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
