"""The faults of a hostile mount; sent to it as one line of JSON."""

from __future__ import annotations

import errno
import json
from dataclasses import asdict, dataclass, replace
from typing import Any

CHANGES = (
    *("create", "mkdir", "rename", "link", "unlink", "utimens", "write", "chmod", "chown"),
    *("truncate", "symlink", "rmdir"),
)
"""The calls that change the disk."""
SECOND = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Faults:
    """The faults of one mount at one time; none by default."""

    lose: float = 0.0
    """The share of the changes that happen and are then answered with an error."""
    fail: float = 0.0
    """The share of all calls that are answered with an error and do nothing."""
    codes: tuple[int, ...] = (errno.EIO,)
    """The errors, used in turn."""
    calls: tuple[str, ...] = ()
    """The calls that are lost or fail; all calls if it is empty."""
    at: int = 0
    """The number of the only change that is lost; 0 for a share of all."""
    delay: float = 0.0
    """The largest delay of a call, in seconds."""
    stale: float = 0.0
    """Seconds for which old attributes and names are returned."""
    negative: float = 0.0
    """Seconds for which a name that was missing stays missing."""
    listing: float = 0.0
    """Seconds for which a listing may miss, double or still show the changes of others."""
    tick: int = 0
    """The resolution of the times, in nanoseconds."""
    offset: float = 0.0
    """Seconds by which all times are ahead of this machine's clock."""
    skew: float = 0.0
    """Seconds by which the times that this mount sets are ahead; those of other mounts are not."""
    one_time: bool = False
    """Whether the ctime is replaced by the mtime, as over SFTP."""
    copies: float = 0.0
    """The share of the renames that leave the old name behind: no guarantee holds then."""
    links: bool = True
    noreplace: bool = True
    sync_folders: bool = True
    full: bool = False
    read_only: bool = False
    hang: float = 0.0
    """Seconds from now for which no call is answered."""

    def struck_at(self, at: int) -> Faults:
        """The same, with only that change's reply lost."""
        return replace(self, at=at)

    def line(self) -> str:
        """The faults as a line for the pipe."""
        return json.dumps(asdict(self))


def parse(line: str) -> Faults:
    """The faults in such a line."""
    fields: dict[str, Any] = json.loads(line)
    fields |= {key: tuple(fields[key]) for key in ("codes", "calls")}
    return Faults(**fields)


CALM = Faults()
LOST = {
    f"replies are lost as {errno.errorcode[code]}": Faults(lose=0.3, codes=(code,))
    for code in (errno.ENOENT, errno.EIO, errno.ESTALE)
}
REFUSED = {
    "no hard links": Faults(links=False),
    "no RENAME_NOREPLACE": Faults(noreplace=False),
    "no fsync of folders": Faults(sync_folders=False),
}
TIMES = {
    "times of a second": Faults(tick=SECOND),
    "times of two seconds": Faults(tick=2 * SECOND),
    "times an hour ahead": Faults(offset=3600.0),
    "times an hour behind": Faults(offset=-3600.0),
    "one time of a second": Faults(tick=SECOND, one_time=True),
}
SEEN_LATE = {
    "attributes seen late": Faults(stale=0.2),
    "names missing for long": Faults(negative=0.5),
    "listings that miss and double": Faults(listing=0.5),
    "everything seen late": Faults(stale=0.2, negative=0.5, listing=0.5),
}
BROKEN = {
    "calls fail": Faults(fail=0.1, codes=(errno.EIO, errno.ESTALE)),
    "calls are slow": Faults(delay=0.002),
    "the disk is full": Faults(full=True),
    "the mount is read-only": Faults(read_only=True),
    "the mount hangs": Faults(hang=0.5),
}
WEATHER = CALM, *LOST.values(), *REFUSED.values(), *SEEN_LATE.values(), *BROKEN.values()
NAMED = {**LOST, **REFUSED, **TIMES, **SEEN_LATE, **BROKEN}


def both(one: Faults, other: Faults) -> Faults:
    """The faults of both."""
    plain, changed = asdict(CALM), asdict(other)
    return replace(one, **{k: v for k, v in changed.items() if v != plain[k]})
