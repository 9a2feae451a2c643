"""The head's first line tells what is worth knowing of the file system, where there is room."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest

import dibs
from dibs_tui.follow import Follower
from dibs_tui.model.seen import Status
from dibs_tui.reader import Reader
from dibs_tui.widgets.head import Head
from tests.filesystems.hostile.faults import SECOND, Faults
from tests.filesystems.hostile.mount import hostile
from tests.filesystems.hostile.mount import why_not as why_no_hostile
from tests.tui.hearing import passed_through, soon
from tests.tui.listed import still
from tests.tui.test_head import Room

SFTP = ("sshfs", "whole seconds")
COARSE = ("whole seconds",)


def first(cells: int, *, live: bool = False, trouble: str = "", traits: tuple[str, ...]) -> str:
    """The line as it stands on a terminal of so many columns."""

    async def run() -> str:
        app = Room(still())
        async with app.run_test(size=(cells, 3)) as pilot:
            head = app.query_one(Head)
            head.tell(Status(time.monotonic(), live=live, trouble=trouble, traits=traits))
            await pilot.pause()
            return app.screen._compositor.render_strips()[0].text

    return asyncio.run(run())


@pytest.mark.parametrize(
    ("cells", "live", "traits", "shown"),
    [
        (80, False, (), "↻ polling every 1s  as of"),
        (80, False, ("sshfs",), "↻ polling · sshfs  as of"),
        (80, False, SFTP, "↻ polling · sshfs  as of"),
        (120, False, SFTP, "↻ polling · sshfs · whole seconds  as of"),
        (80, True, (), "● live  as of"),
        (120, True, COARSE, "● live · whole seconds  as of"),
        (120, False, ("\x1b[2Jx[/]",), "↻ polling · \\x1b[2Jx[/]  as of"),
    ],
)
def test_the_mode_names_the_file_system(
    cells: int, live: bool, traits: tuple[str, ...], shown: str
) -> None:
    line = first(cells, live=live, traits=traits)
    assert shown in line
    assert line.rstrip().endswith("22:13:20"), "the clock stands where it stood"


def test_trouble_is_all_that_is_told_of_a_disk_in_trouble() -> None:
    assert "✗ failed  as of" in first(120, trouble="failed", traits=SFTP)


def test_a_mount_that_others_change_is_named(tmp_path: Path) -> None:
    with passed_through(tmp_path) as (place, _, _):
        (place / "t.available").touch()
        reader = Reader(str(place))
        reader.start()
        try:
            assert soon(lambda: bool(reader.status.fresh))
            assert not reader.status.live
            assert reader.status.traits == ("fuse",)
        finally:
            reader.stop()
            reader.join(5)


@pytest.mark.skipif(bool(why_no_hostile()), reason=f"NOT TRIED: {why_no_hostile()}")
@pytest.mark.parametrize(("faults", "whole"), [(Faults(tick=SECOND), True), (Faults(), False)])
def test_a_clock_of_whole_seconds_is_noticed(faults: Faults, whole: bool, tmp_path: Path) -> None:
    (tmp_path / "below").mkdir()
    dibs.open(tmp_path / "below", create=True)
    with hostile(tmp_path / "below", tmp_path / "place") as mount, mount.wrong(faults):
        board = dibs.open(mount.place)
        follower = Follower(board, lambda seen: None, board.view(ended=False))
        assert not follower.whole_seconds, "nothing was read yet"
        for _ in range(2):
            follower._read_clock()
        assert follower.whole_seconds == whole
