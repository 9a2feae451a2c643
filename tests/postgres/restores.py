"""A server whose past is put back, in ways that keep its cluster, its database and its timeline."""

from __future__ import annotations

from pathlib import Path

import dibs
from dibs.model.events import Cursor
from tests.postgres.boards import Site
from tests.postgres.standby import Standby


def read(log: dibs.Log, cursor: Cursor) -> tuple[list[str], Cursor]:
    """The ids of what happened since, which nothing repeats."""
    events, after = log.since(cursor)
    assert log.since(after)[0] == []
    return [event.id for event in events], after


def dumped(site: Site) -> Path:
    """A dump of the board."""
    dump = site.server.folder / f"{site.database}.dump"
    site.server.run("pg_dump", "-Fc", f"--file={dump}", f"--dbname={site.where}")
    dump.chmod(0o644)
    return dump


def restored_over_the_board(site: Site) -> None:
    """A dump is restored into the database that it is of."""
    board = site.board
    board.acquire("door", owner="before").release()
    dump = dumped(site)
    lost, after = _lost(board)
    command = ("pg_restore", "--clean", "--if-exists", "--exit-on-error")
    site.server.run(*command, f"--dbname={site.where}", dump)
    log = site.board.log
    assert [read(log, cursor)[0] for cursor in (after, log.end())] == [[], []]
    _goes_on(site, lost, after)


def started_as_a_primary(site: Site) -> None:
    """A base backup is started without a file that asks for a recovery."""
    board = site.board
    board.acquire("door", owner="before").release()
    backup = Standby(site.server)
    try:
        backup.make()
        lost, after = _lost(board)
        for name in ("standby.signal", "postgresql.auto.conf"):
            (backup.data / name).unlink()
        backup.start()
        there = site._replace(server=backup, where=backup.url(site.database))
        _goes_on(there, lost, after)
        backup.restart()
        there.board.add("later")
        (backup.data / "backup_label.old").unlink()
        backup.restart()
        there.board.add("last")
        assert len(there.floors()) == 1, "a start is not a history"
    finally:
        backup.end()


def _lost(board: dibs.Board) -> tuple[dibs.Claim, Cursor]:
    """A claim that is not in the backup, and the position of a reader that has seen it."""
    lost = board.acquire("door", owner="lost")
    for ident in ("a", "b", "c"):
        board.add(ident)
    return lost, board.log.end()


def _goes_on(site: Site, lost: dibs.Claim, after: Cursor) -> None:
    """The board gives other fences, and the reader sees what happens from now on."""
    board = site.board
    taken = board.acquire("door", owner="next")
    assert taken.fence > lost.fence, "a fence is given again"
    board.add("new")
    assert not board.log.missed(after)
    assert read(board.log, after)[0] == ["door", "new"]
    assert board.check() == []
    assert len(site.floors()) == 1, "one history"
