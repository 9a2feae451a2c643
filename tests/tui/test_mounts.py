"""Which file system a path is on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from dibs.files import mounts
from dibs.files.mounts import UNKNOWN, Mount, holding, kind, read, settle
from tests.filesystems.mounts import mounted, remount, tmpfs, why_not
from tests.tui.recorder import passed_through

pytestmark = pytest.mark.fast("dibs_tui.model")

PLAIN = """\
27 1 254:0 / / rw,relatime - ext4 /dev/vda rw
25 27 0:23 / /dev/shm rw,nosuid shared:4 master:1 - tmpfs tmpfs rw,size=24684100k
30 27 0:40 /export /mnt/nfs rw,relatime - nfs4 server:/export rw,vers=4.2
31 30 0:41 / /mnt/nfs/ro ro,relatime - ext4 /dev/sdb1 rw
32 27 0:42 / /mnt/image rw - squashfs /dev/loop0 ro
33 27 0:43 / /mnt/a\\040b\\134c\\011d\\012e rw - tmpfs a\\040source rw
"""


@pytest.mark.parametrize(
    ("path", "mount"),
    [
        ("/", Mount("ext4", "/dev/vda", False, False, "/")),
        ("/home/x", Mount("ext4", "/dev/vda", False, False, "/")),
        ("/dev/shm", Mount("tmpfs", "tmpfs", False, False, "/dev/shm")),
        ("/dev/shm/x", Mount("tmpfs", "tmpfs", False, False, "/dev/shm")),
        ("/dev/shmem", Mount("ext4", "/dev/vda", False, False, "/")),
        ("/mnt/nfs/x/y", Mount("nfs4", "server:/export", True, False, "/mnt/nfs")),
        ("/mnt/nfs/ro/x", Mount("ext4", "/dev/sdb1", False, True, "/mnt/nfs/ro")),
        ("/mnt/image/x", Mount("squashfs", "/dev/loop0", False, True, "/mnt/image")),
        (
            "/mnt/a b\\c\td\ne/x",
            Mount("tmpfs", "a source", False, False, "/mnt/a b\\c\td\ne"),
        ),
    ],
)
def test_a_path_is_on_the_nearest_mount_above_it(path: str, mount: Mount) -> None:
    assert holding(path, read(PLAIN.encode())) == mount


OVER = {
    "one place mounted twice": (
        "27 1 0:1 / / rw - ext4 root rw\n"
        "30 27 0:2 / /mnt rw - tmpfs first rw\n"
        "31 30 0:3 / /mnt rw - tmpfs second rw\n"
    ),
    "one place mounted twice on the same parent": (
        "27 1 0:1 / / rw - ext4 root rw\n"
        "30 27 0:2 / /mnt rw - tmpfs first rw\n"
        "31 27 0:3 / /mnt rw - tmpfs second rw\n"
    ),
    "a mount hidden by a later one above it": (
        "27 1 0:1 / / rw - ext4 root rw\n"
        "30 27 0:2 / /mnt/sub rw - nfs4 first rw\n"
        "31 27 0:3 / /mnt rw - tmpfs second rw\n"
    ),
    "an old mount moved below a newer one": (
        "27 1 0:1 / / rw - ext4 root rw\n"
        "30 31 0:2 / /mnt/sub rw - tmpfs second rw\n"
        "31 27 0:3 / /mnt rw - tmpfs first rw\n"
    ),
    "the root mounted over": (
        "1 1 0:2 / / rw - rootfs rootfs rw\n27 1 0:1 / / rw - tmpfs second rw\n"
    ),
}


@pytest.mark.parametrize("table", OVER)
def test_a_mount_hidden_by_another_is_ignored(table: str) -> None:
    assert holding("/mnt/sub/x", read(OVER[table].encode())).source == "second"


REMOTE = """nfs nfs4 cifs smb3 smbfs afs davfs ceph glusterfs lustre gpfs beegfs 9p virtiofs vboxsf
prl_fs drvfs fuse fuse.sshfs fuse.glusterfs fuse.bindfs autofs"""
LOCAL = "ext4 xfs btrfs zfs f2fs tmpfs overlay vfat fuseblk ntfs3 fusectl"


@pytest.mark.parametrize("fstype", REMOTE.split())
def test_other_hosts_can_change_files_on(fstype: str) -> None:
    assert holding("/x", read(f"27 1 0:1 / / rw - {fstype} source rw\n".encode())).network


@pytest.mark.parametrize("fstype", LOCAL.split())
def test_only_this_kernel_changes_files_on(fstype: str) -> None:
    assert not holding("/x", read(f"27 1 0:1 / / rw - {fstype} source rw\n".encode())).network


def test_invalid_lines_are_skipped() -> None:
    invalid = b"\n27\nx y 0:1 / / rw - ext4 dev rw\n27 1 0:1 / / rw - ext4\n27 1 0:1 / / rw\n"
    assert read(invalid) == []
    assert holding("/x", []) == UNKNOWN


def test_bytes_that_are_not_utf8_are_kept() -> None:
    table = read(b"27 1 0:1 / /\xff rw - tmpfs t\rt rw\n")
    assert holding(os.fsdecode(b"/\xff/x"), table).source == "t\rt"


def test_without_a_mount_table_nothing_is_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mounts, "TABLE", str(tmp_path / "none"))
    assert kind(str(tmp_path)) == UNKNOWN
    assert (UNKNOWN.fstype, UNKNOWN.network) == ("unknown", False)


def _remote_at(point: Path) -> list[mounts.MountEntry]:
    return read(
        f"27 1 0:1 / / rw - ext4 dev rw\n30 27 0:2 / {point} rw - nfs4 server:/ rw\n".encode()
    )


def test_links_to_a_mount_are_followed_but_not_read_on_it(tmp_path: Path) -> None:
    remote = tmp_path / "remote"
    remote.mkdir()
    (remote / "back").symlink_to("/")
    (tmp_path / "first").symlink_to("second")
    (tmp_path / "second").symlink_to(remote)
    table = _remote_at(remote)
    assert settle(f"{tmp_path}/first/back/../x", table) == f"{remote}/x"
    assert settle(f"{tmp_path}/first/back/usr", table) == f"{remote}/back/usr"
    assert holding(settle(f"{tmp_path}/first/back/usr", table), table).fstype == "nfs4"


def test_links_off_a_mount_are_followed_as_the_kernel_does(tmp_path: Path) -> None:
    (tmp_path / "a/b").mkdir(parents=True)
    (tmp_path / "link").symlink_to("a/b")
    for path in ("link/../x", "link/./y//z", "missing/x"):
        full = f"{tmp_path}/{path}"
        assert settle(full, _remote_at(tmp_path / "no")) == os.path.realpath(full)


def test_a_loop_of_links_ends(tmp_path: Path) -> None:
    (tmp_path / "ring").symlink_to("ring")
    assert settle(f"{tmp_path}/ring/x", _remote_at(tmp_path / "no")) == f"{tmp_path}/ring/x"


def test_a_path_may_be_relative_and_need_not_exist(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert kind("none/../none/x") == kind(str(tmp_path))
    assert kind(".").fstype not in ("", "unknown")


# Real mounts


def _need_mounts() -> None:
    if why_not():
        pytest.skip(f"NO FILE SYSTEM WAS TRIED: {why_not()}")


def test_a_real_mount_is_found_through_a_link_too(tmp_path: Path) -> None:
    _need_mounts()
    with tmpfs(tmp_path) as place:
        found = kind(str(place / "board"))
        assert found == Mount("tmpfs", "none", False, False, str(place))
        (tmp_path / "link").symlink_to(place)
        assert kind(str(tmp_path / "link/board")) == found
        remount(place, ["ro"])
        assert kind(str(place)).read_only
    assert kind(str(place)).point != str(place)


@pytest.mark.parametrize("name", ["a b", "tab\tnewline\n", "back\\040slash", "#", "é\r"])
def test_a_real_mount_is_found_whatever_its_name(name: str, tmp_path: Path) -> None:
    _need_mounts()
    with mounted(tmp_path / name, "mount", "-t", "tmpfs", "named") as place:
        assert kind(str(place / "x")) == Mount("tmpfs", "named", False, False, str(place))


def test_a_real_mount_hidden_by_another_is_ignored(tmp_path: Path) -> None:
    _need_mounts()
    outer, how = tmp_path / "outer", ("mount", "-t", "tmpfs")
    (outer / "inner").mkdir(parents=True)
    with mounted(outer / "inner", *how, "hidden"):
        assert kind(str(outer / "inner/x")).source == "hidden"
        with mounted(outer, *how, "first"), mounted(outer, *how, "second"):
            assert kind(str(outer / "inner/x")).source == "second"


def test_a_mount_in_user_space_is_remote_and_may_hang(tmp_path: Path) -> None:
    with passed_through(tmp_path) as (place, _, pid):
        (place / "board").mkdir()
        (tmp_path / "link").symlink_to(place)
        code = "import sys; from dibs.files.mounts import kind; print(kind(sys.argv[1]))"
        os.kill(pid, signal.SIGSTOP)
        try:
            done = subprocess.run(
                [sys.executable, "-c", code, tmp_path / "link/board"],
                env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
                capture_output=True,
                text=True,
                timeout=10,
            )
        finally:
            os.kill(pid, signal.SIGCONT)
        assert done.stdout.startswith("Mount(fstype='fuse")
        assert "network=True" in done.stdout
