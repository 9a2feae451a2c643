"""What a probe reports on real file systems, and on two paths to one folder."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

from dibs.files.probing import peer
from dibs.files.probing.probe import probe, quick
from dibs.model.fitness import BAD, GOOD, NOTE, Ability, Fitness, verdict
from tests.core.test_cli import Command
from tests.core.tools import settle
from tests.filesystems import gluster, sshfs
from tests.filesystems.hostile.faults import SECOND, Faults
from tests.filesystems.hostile.mount import Hostile, hostile
from tests.filesystems.hostile.mount import why_not as why_no_hostile
from tests.filesystems.mounts import KINDS, bindfs, mounted, tmpfs, why_not
from tests.filesystems.remote import Remote

if why_not():
    pytest.skip(f"NO FILE SYSTEM WAS TRIED: {why_not()}", allow_module_level=True)

ROUNDS = 20
Server = Callable[[Path], AbstractContextManager[Remote]]


def tried(place: Path, other: Path | None = None) -> tuple[dict[str, Ability], Fitness]:
    """The result of a probe, which must leave the board unchanged."""
    settle(place)
    lines = list(probe(str(place), str(other) if other else "", ROUNDS))
    assert not list((place / ".dibs").glob("trial.*"))
    return {line.ability: line for line in lines}, verdict(lines)


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Probe once: that is enough here."""
    monkeypatch.setattr(peer, "_LOOKS", 1)


@pytest.mark.parametrize("kind", ["tmpfs", "ext4", "xfs", "btrfs", "overlay"])
def test_a_file_system_of_this_kernel_is_fine(kind: str, tmp_path: Path) -> None:
    with KINDS[kind](tmp_path) as place:
        found, said = tried(place / "board")
        assert said.text == "fine"
        assert found["mount"].figures == {"fstype": kind, "network": False}
        assert quick(str(place / "board")).text == "fine"


def test_a_mount_of_a_user_space_process_is_polled(tmp_path: Path) -> None:
    with bindfs(tmp_path) as place:
        found, said = tried(place / "board")
        assert said.text == "fine with polling"
        assert found["keep"].grade == NOTE, "bindfs knows no RENAME_NOREPLACE"
        assert quick(str(place / "board")).text == "fine with polling"


@pytest.mark.kernel("vfat")
def test_a_file_system_that_ignores_case_is_reported(tmp_path: Path) -> None:
    with KINDS["vfat"](tmp_path) as place:
        found, said = tried(place / "board")
        assert (found["names"].grade, found["names"].figures["cases"]) == (NOTE, False)
        assert said.text == "fine, least ttl 14 s"


def test_a_bind_mount_and_its_folder_are_one_directory(tmp_path: Path) -> None:
    with tmpfs(tmp_path) as place:
        (place / "board").mkdir()
        with mounted(tmp_path / "second", "mount", "--bind", place / "board") as second:
            found, said = tried(place / "board", second)
    assert said.text == "fine"
    assert {line.grade for line in found.values() if line.ability[:4] == "peer"} == {GOOD}
    assert found["peer-rename"].figures["both"] == 0


def test_changes_through_a_passthrough_mount_are_seen_at_once_and_races_work(
    tmp_path: Path,
) -> None:
    with bindfs(tmp_path) as place:
        (tmp_path / "below/board").mkdir()
        found, said = tried(place / "board", tmp_path / "below/board")
    assert said.text == "fine with polling"
    for race in ("peer-rename", "peer-link"):
        figures = found[race].figures
        assert (found[race].grade, figures["both"], figures["none"]) == (GOOD, 0, 0)
        assert 0 not in (figures["mine"], figures["theirs"]), "no race was run"


REMOTE: dict[str, tuple[Server, Callable[[], str], str]] = {
    "glusterfs": (gluster.volume, gluster.why_not, "fine with polling, least ttl [6-9] s"),
    "sshfs": (sshfs.served, sshfs.why_not, "fine with polling, least ttl 1[0-5] s"),
}


@pytest.mark.parametrize("kind", REMOTE)
def test_two_mounts_of_a_server_are_measured_against_each_other(kind: str, tmp_path: Path) -> None:
    served, why_no_server, text = REMOTE[kind]
    if why_no_server():
        pytest.skip(f"THIS FILE SYSTEM WAS NOT TRIED: {why_no_server()}")
    with served(tmp_path) as remote:
        found, said = tried(*(way.place / "board" for way in remote.ways))
    assert re.fullmatch(text, said.text)
    assert (found["peer"].text.partition(" ")[0], found["keep"].grade) == (kind, NOTE)
    for race in ("peer-rename", "peer-link"):
        assert (found[race].grade, found[race].figures["both"]) == (GOOD, 0)
    assert found["times"].figures["rename_moves_ctime"] == (kind == "glusterfs")


@contextmanager
def bad(folder: Path, faults: Faults, **options: float) -> Iterator[tuple[Path, Hostile]]:
    """A board on a mount with faults; its folder below has none."""
    if why_no_hostile():
        pytest.skip(f"NO FAULTS WERE TRIED: {why_no_hostile()}")
    below = folder / "below"
    settle(below / "board")
    with hostile(below, folder / "hostile", **options) as mount:
        mount.be(faults)
        try:
            yield mount.place / "board", mount
        finally:
            mount.calm()


@pytest.mark.parametrize(
    ("faults", "ability", "grade", "text"),
    [
        (Faults(links=False), "link", NOTE, "fine with polling"),
        (Faults(noreplace=False), "keep", NOTE, "fine with polling"),
        (Faults(sync_folders=False), "sync", NOTE, "fine with polling"),
        (Faults(skew=30.0), "times", NOTE, "fine with polling"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_missing_abilities_are_found_with_their_consequences(
    faults: Faults, ability: str, grade: str, text: str, tmp_path: Path
) -> None:
    with bad(tmp_path, faults) as (board, _):
        lines = {line.ability: line for line in probe(str(board), "", ROUNDS)}
    assert lines[ability].grade == grade, lines[ability]
    assert re.fullmatch(text, verdict(lines.values()).text)


def test_a_read_only_mount_is_rejected(tmp_path: Path) -> None:
    with bad(tmp_path, Faults(read_only=True)) as (board, _):
        found = verdict(probe(str(board), "", ROUNDS))
    assert found.text.startswith("do not use: write: ")


def test_init_warns_of_clocks_that_need_a_longer_ttl(tmp_path: Path) -> None:
    with bad(tmp_path, Faults(tick=SECOND)) as (board, _):
        settle(board, ttl=5)
        done = Command(board).run("init")
    assert (done.returncode, done.stdout) == (0, f"{board}\n".encode())
    assert re.fullmatch(
        r"dibs: fine with polling, least ttl 1[0-4] s, but this board's ttl is 5 s: "
        r"raise it in .dibs/board.toml \(`dibs -d [^`]* check --probe` shows details\)\n",
        done.stderr.decode(),
    )


def test_long_caches_need_a_longer_ttl(tmp_path: Path) -> None:
    late = Faults(stale=1.1)
    with bad(tmp_path, late) as (board, _):
        lines = {
            line.ability: line for line in probe(str(tmp_path / "below/board"), str(board), ROUNDS)
        }
    assert (lines["peer-beats"].grade, lines["peer-names"].grade) == (NOTE, NOTE)
    assert 1 < float(str(lines["peer-beats"].figures["lag"])) < 3
    assert 5 < verdict(lines.values()).least_ttl < 16


def test_a_mount_that_never_shows_changes_is_rejected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(peer, "LIMIT", 0.3)
    with bad(tmp_path, Faults(stale=60.0)) as (board, _):
        lines = {
            line.ability: line for line in probe(str(tmp_path / "below/board"), str(board), ROUNDS)
        }
    assert lines["peer-beats"].grade == BAD
    assert verdict(lines.values()).status == "unfit"


def test_a_probe_waits_for_a_disk_that_hangs_for_a_moment(tmp_path: Path) -> None:
    with bad(tmp_path, Faults()) as (board, mount):
        lines = probe(str(board), "", ROUNDS)
        next(lines)
        mount.be(Faults(hang=0.3))
        assert verdict(lines).status == "fine"
