"""A request that was so slow on its way that another worker has the task when it arrives."""

from __future__ import annotations

from collections.abc import Callable
from threading import Thread
from typing import Any

import dibs
from tests.filesystems.remote import await_
from tests.patience import PATIENCE
from tests.postgres.boards import Site
from tests.postgres.proxy import Proxy

ACTS: dict[str, Callable[[dibs.Claim], object]] = {
    "beat": lambda claim: claim.beat(note="late", metadata="late=1"),
    "note": lambda claim: claim.note("late"),
    "done": lambda claim: claim.done(b"late"),
    "fail": lambda claim: claim.fail("late"),
    "release": lambda claim: claim.release("late"),
    "ask": lambda claim: claim.ask("late?"),
}
_BUSY = """
SELECT count(*) FROM pg_stat_activity
WHERE datname = current_database() AND application_name = 'slow' AND state <> 'idle'
"""


def late(site: Site, proxy: Proxy, verb: str) -> str:
    """What goes wrong when this act of an old holder reaches the server late; "" if nothing."""
    site.clear()
    board = site.board
    board.add("build")
    claim = dibs.open(f"{proxy.url(site.database)}?application_name=slow").claim("build", ttl=1)
    assert claim is not None
    said: list[str] = []
    proxy.stall()
    caller = Thread(target=_call, args=(ACTS[verb], claim, said))
    caller.start()
    try:
        taken = board.wait_for(lambda: board.claim("build", owner="second", ttl=600), PATIENCE)
        assert taken is not None
        before = _rows(site)
    finally:
        proxy.flow()
    caller.join(PATIENCE)
    await_(lambda: site.sql(_BUSY) == [(0,)], "the late request is never done")
    if said not in (["Lost"], ["Uncertain"]):
        return f"{verb} returned {said}"
    return "" if _rows(site) == before else f"{verb}: {before} became {_rows(site)}"


def _call(act: Callable[[dibs.Claim], object], claim: dibs.Claim, said: list[str]) -> None:
    try:
        act(claim)
    except dibs.DibsError as error:
        said.append(type(error).__name__)
    else:
        said.append("done")


def _rows(site: Site) -> list[Any]:
    """The newer claim as it is stored, beat and all."""
    task = "SELECT name, state, fence, attempts, since FROM dibs.task WHERE eid <> ''"
    return site.each(("SELECT * FROM dibs.claim", task))
