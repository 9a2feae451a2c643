"""The hostile mount has the faults that it is set to: otherwise the other tests prove nothing."""

from __future__ import annotations

import errno
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from dibs.files.disk import Disk
from tests.filesystems.hostile.faults import SECOND, Faults
from tests.filesystems.hostile.mount import Pair, pair, why_not
from tests.patience import PATIENCE

if why_not():
    pytest.skip(f"NO HOSTILE FILE SYSTEM WAS TRIED: {why_not()}", allow_module_level=True)


@pytest.fixture
def mounts(tmp_path: Path) -> Iterator[Pair]:
    with pair(tmp_path) as made:
        (made.below / "old").write_text("text")
        yield made


def fails(code: int, act: object, *args: object) -> None:
    with pytest.raises(OSError, match=r"\[Errno") as caught:
        act(*args)  # type: ignore[operator]
    assert caught.value.errno == code


def test_one_host_sees_at_once_what_the_other_does(mounts: Pair) -> None:
    near, far = mounts.near.place, mounts.far.place
    os.rename(near / "old", near / "new")
    assert os.listdir(far) == ["new"]
    assert (far / "new").read_text() == "text"
    assert os.stat(far / "new").st_dev != os.stat(near / "new").st_dev


@pytest.mark.parametrize("code", [errno.ENOENT, errno.EIO])
def test_a_lost_reply_follows_a_change_that_happened(code: int, mounts: Pair) -> None:
    near = mounts.near.place
    mounts.near.be(Faults(lose=1, codes=(code,)))
    fails(code, os.rename, near / "old", near / "new")
    fails(code, os.link, near / "new", near / "second")
    fails(code, os.mkdir, near / "folder")
    fails(code, os.unlink, near / "second")
    fails(code, os.utime, near / "new", (5, 5))
    assert sorted(os.listdir(mounts.below)) == ["folder", "new"]
    assert os.stat(mounts.below / "new").st_mtime == 5
    assert mounts.near.counts()["lost"] == 5


def test_only_the_chosen_change_is_lost(mounts: Pair) -> None:
    near = mounts.near.place
    mounts.near.be(Faults(lose=1, at=2))
    (near / "one").mkdir()
    fails(errno.EIO, os.mkdir, near / "two")
    (near / "three").mkdir()
    assert len(os.listdir(mounts.below)) == 4


def test_a_call_that_fails_does_nothing(mounts: Pair) -> None:
    mounts.near.be(Faults(fail=1, codes=(errno.EIO,), calls=("rename",)))
    fails(errno.EIO, os.rename, mounts.near.place / "old", mounts.near.place / "new")
    assert os.listdir(mounts.below) == ["old"]


def test_a_full_and_a_read_only_mount_refuse_writes(mounts: Pair) -> None:
    near = mounts.near.place
    mounts.near.be(Faults(full=True))
    fails(errno.ENOSPC, (near / "new").write_text, "text")
    os.rename(near / "old", near / "new")
    mounts.near.be(Faults(read_only=True))
    fails(errno.EROFS, os.rename, near / "new", near / "old")
    assert (near / "new").read_text() == "text"


def test_unsupported_calls_are_refused(mounts: Pair) -> None:
    near = mounts.near.place
    mounts.near.be(Faults(links=False, noreplace=False, sync_folders=False))
    fails(errno.EPERM, os.link, near / "old", near / "new")
    fd = os.open(near, os.O_RDONLY)
    try:
        fails(errno.EINVAL, os.fsync, fd)
    finally:
        os.close(fd)
    disk = Disk(str(near))
    disk.rename("old", "new", keep=True)
    assert not disk.keeps


def test_an_existing_file_is_kept_without_faults(mounts: Pair) -> None:
    (mounts.below / "new").write_text("theirs")
    disk = Disk(str(mounts.near.place))
    fails(errno.EEXIST, disk.rename, "old", "new", True)
    assert disk.keeps
    assert (mounts.below / "new").read_text() == "theirs"


def test_times_can_be_coarse_ahead_or_a_single_one(mounts: Pair) -> None:
    old = mounts.near.place / "old"
    now = time.time()
    mounts.near.be(Faults(tick=2 * SECOND))
    os.utime(old)
    assert os.stat(old).st_mtime_ns % (2 * SECOND) == 0
    mounts.near.be(Faults(offset=3600))
    assert 3590 < os.stat(old).st_mtime - now < 3610
    mounts.near.be(Faults(skew=60))
    os.utime(old)
    found = os.stat(old)
    assert 50 < found.st_mtime - now < 70
    assert found.st_ctime - now < 10
    mounts.near.be(Faults(one_time=True))
    assert os.stat(old).st_ctime == os.stat(old).st_mtime


def test_only_the_other_host_sees_attributes_and_names_late(mounts: Pair) -> None:
    near, far = mounts.near.place, mounts.far.place
    mounts.far.be(Faults(stale=30, negative=30))
    assert os.stat(far / "old").st_mtime > 5
    assert not (far / "new").exists()
    os.utime(near / "old", (5, 5))
    os.rename(near / "old", near / "new")
    assert os.stat(near / "new").st_mtime == 5
    assert os.stat(far / "old").st_mtime > 5
    assert not (far / "new").exists()
    mounts.far.calm()
    assert not (far / "old").exists()
    assert (far / "new").exists()


def test_listings_miss_and_double_names_that_the_other_host_renames(mounts: Pair) -> None:
    near, far = mounts.near.place, mounts.far.place
    mounts.far.be(Faults(listing=30))
    assert os.listdir(far) == ["old"]
    os.rename(near / "old", near / "new")
    seen = {tuple(sorted(os.listdir(far))) for _ in range(100)}
    assert seen == {(), ("new",), ("old",), ("new", "old")}
    assert os.listdir(near) == ["new"]


def test_it_hangs_until_the_fault_is_removed(mounts: Pair) -> None:
    mounts.near.be(Faults(hang=30))
    found: list[str] = []
    looking = threading.Thread(target=lambda: found.extend(os.listdir(mounts.near.place)))
    looking.start()
    looking.join(0.3)
    assert looking.is_alive()
    mounts.near.calm()
    looking.join(PATIENCE)
    assert found == ["old"]


def test_the_kernel_caches_only_if_it_is_asked_to(tmp_path: Path) -> None:
    with pair(tmp_path, attr_timeout=30, entry_timeout=30, negative_timeout=30) as made:
        (made.below / "old").touch()
        far = made.far.place
        assert not (far / "new").exists()
        assert (far / "old").exists()
        os.rename(made.below / "old", made.below / "new")
        assert not (far / "new").exists()
        assert (far / "old").exists()
        assert os.listdir(far) == ["new"]


def test_it_unmounts_when_it_ends(tmp_path: Path) -> None:
    with pair(tmp_path) as made:
        place = made.near.place
        assert os.path.ismount(place)
    assert not os.path.ismount(place)
