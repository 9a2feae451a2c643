"""A claim whose answer was lost: its maker undoes it, while another server gives it away again."""

from __future__ import annotations

from dibs.files import claims
from dibs.files.claims import FilesClaim, attach
from dibs.host import Terms

from .desk import Desk, Options, board, claimed, task
from .invariants import JANITOR, OPERATOR
from .scenario import Faults
from .scene import Part, scene
from .scenes_claims import MINE, REAPER, held, one, renames
from .simdisk import SimWorld

SERVER = "the client has gone"
TWIN = "00000000AF"


def confirms(desk: Desk) -> str:
    """Get the claim by its name from another server than the one that made it, then finish."""
    claim = attach(desk.store, MINE)
    desk.port.note(("beats", claim.name))
    claim.confirm()  # refused if it was undone or has expired: then this process never had it
    desk.mine(claim)
    desk.done(claim)
    return "done"


def confirms_twice(desk: Desk) -> str:
    """The same, asked for once more by a client that did not get this answer either."""
    attach(desk.store, MINE).confirm()
    return confirms(desk)


def undoes(desk: Desk) -> str:
    """Release it for a client that has gone."""
    return "released" if attach(desk.store, MINE).release_unconfirmed(SERVER) else "kept"


UNDONE = scene(
    "a claim is confirmed while its maker undoes it",
    held,
    [Part("ann", confirms), Part("srv", undoes, JANITOR)],
    Faults(crashes=1, lost=1, late=1, failed=1, total=1),
)
UNDONE_TWICE = scene(
    "a server and a client undo a claim that is confirmed twice",
    held,
    [Part("ann", confirms_twice), Part("srv", undoes, JANITOR), Part("bob", undoes, JANITOR)],
    Faults(crashes=1),
    mode="bounded",
)
UNDONE_LATE = scene(
    "an expired claim is reaped, confirmed and undone",
    held,
    [Part("ann", confirms), Part("srv", undoes, JANITOR), REAPER],
    Faults(crashes=1, advances=1, advance_by=(11.0,)),
    mode="bounded",
)


def _long_lease(world: SimWorld) -> None:
    board(world)
    claimed(world, MINE, ttl=60)


UNDONE_SLOWLY = scene(
    "the rename of an undo lands late",
    _long_lease,
    [Part("ann", confirms), Part("srv", undoes, JANITOR)],
    Faults(late=1, advances=1, advance_by=(11.0,)),
    strikes=lambda who, call: who == "srv" and renames(who, call),
)


def _twin(desk: Desk) -> FilesClaim | None:
    """Claim for a request that two servers got: both make the same name."""
    terms = Terms(desk.store.host, desk.store.settings, "ann", None, "", None, TWIN)
    return claims.take(desk.store, task("t.available"), terms)


def gives_away(desk: Desk) -> str:
    """Claim for a client that is there, which finishes."""
    claim = desk.mine(_twin(desk))
    if claim is None:
        return "nothing"
    desk.done(claim)
    return "done"


def takes_back(desk: Desk) -> str:
    """Claim for a client that has gone."""
    claim = _twin(desk)
    if claim is None:
        return "nothing"
    return "released" if claim.release_unconfirmed(SERVER) else "kept"


TWINS = scene(
    "two servers make one claim for one request, and one undoes it",
    one,
    [Part("ann", gives_away), Part("srv", takes_back, JANITOR)],
    Faults(lost=1, failed=1, total=1),
    mode="bounded",
)
TWINS_PAUSED = scene(
    "two servers make one claim for one request, and a pause comes between",
    one,
    [
        Part("ann", gives_away),
        Part("srv", takes_back, JANITOR),
        Part("opr", Desk.pause, OPERATOR),
    ],
    options=Options(pauses=True),
    mode="bounded",
)
SCENARIOS = [TWINS, TWINS_PAUSED, UNDONE, UNDONE_TWICE, UNDONE_LATE, UNDONE_SLOWLY]
