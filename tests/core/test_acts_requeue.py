"""Requeueing a list: each line resolves to one exact name and gets its own outcome."""

from __future__ import annotations

import errno
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import dibs
from dibs import cli
from tests.contract.test_acts_requeue import failed
from tests.core.test_cli import Command
from tests.core.tools import Place
from tests.patience import PATIENCE


class Desk(Command):
    """The command, with a list on its standard input or in a file."""

    def requeue(self, lines: str | bytes, *argv: str, code: int = 0) -> list[dict[str, Any]]:
        data = lines if isinstance(lines, bytes) else lines.encode("utf-8", "surrogateescape")
        command = [sys.executable, "-m", "dibs", "-d", str(self.path), "--json"]
        done = subprocess.run(
            [*command, "requeue", "--from", "-", *argv],
            input=data,
            env=self.env,
            capture_output=True,
            timeout=PATIENCE,
        )
        assert (done.returncode, done.stderr) == (code, b""), done
        return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.fixture
def desk(place: Place) -> Desk:
    return Desk(place.path)


def statuses(found: list[dict[str, Any]]) -> list[tuple[str, str]]:
    return [(line["given"], line["status"]) for line in found]


def test_one_task_can_keep_its_attempts(place: Place, desk: Desk) -> None:
    kept, reset = failed(place, "a", "b")
    assert desk("requeue", kept, "--keep-attempts") == "a.f1a1.available"
    assert desk("requeue", reset) == "b.f1.available"


def test_ids_and_exact_names_are_requeued_in_their_order(place: Place, desk: Desk) -> None:
    failed(place, "a", "v1.2")
    (exact,) = failed(place, "c")
    place.board.add("d")
    claim = place.board.claim("d")
    assert claim is not None
    done = claim.done().name
    found = desk.requeue(f"# from the pager\n\na\r\n  v1.2\t\n{exact.partition('/')[2]}\nd\na\n")
    assert [line["status"] for line in found] == ["requeued"] * 4
    assert [line["given"] for line in found] == ["a", "v1.2", exact.partition("/")[2], "d"]
    assert [line["claim"] for line in found] == [
        "a.f1.available",
        "v1=2E2.f1.available",
        "c.f1.available",
        "d.f1.available",
    ]
    assert found[3]["name"] == done
    assert place.names() == sorted(line["claim"] for line in found)


def test_the_reason_and_the_attempts_apply_to_all(place: Place, desk: Desk) -> None:
    failed(place, "a", "b")
    desk.requeue("a\nb", "--keep-attempts", "--reason", "web-3 is fixed")
    assert place.names() == ["a.f1a1.available", "b.f1a1.available"]
    assert place.board.log.of("b")[-1].reason == "web-3 is fixed"


def test_refused_and_unknown_tasks_do_not_stop_the_others_and_give_exit_3(
    place: Place, desk: Desk
) -> None:
    failed(place, "good", "last")
    place.board.add("waits")
    place.board.add("busy")
    claim = place.board.claim("busy", owner="web-9")
    assert claim is not None
    lines = ["missing", "waits", "good", "busy", "failed/gone.f1.me-0123456789", "last"]
    found = desk.requeue("\n".join(lines), code=3)
    assert statuses(found) == [
        ("missing", "unknown"),
        ("waits", "refused"),
        ("good", "requeued"),
        ("busy", "refused"),
        ("failed/gone.f1.me-0123456789", "unknown"),
        ("last", "requeued"),
    ]
    assert "claimed by web-9" in found[3]["error"]
    assert [now["claim"] for now in found[3]["now"]] == [claim.name]
    claim.verify()


def test_an_id_of_two_ended_tasks_is_refused_for_a_person_to_choose(
    place: Place, desk: Desk
) -> None:
    (name,) = failed(place, "a")
    other = "done/a.f9.me-0123456789"
    (place.path / other).write_bytes(b"another")
    (found,) = desk.requeue("a", code=3)
    assert found["status"] == "refused"
    assert name in found["error"]
    assert other in found["error"]
    assert statuses(desk.requeue(other)) == [(other, "requeued")]


def test_an_id_that_is_available_again_is_refused(place: Place, desk: Desk) -> None:
    (name,) = failed(place, "a")
    (place.path / "a.available").write_bytes(b"added by a shell")
    before = place.names()
    assert statuses(desk.requeue(f"a\n{name}", code=3)) == [("a", "refused"), (name, "refused")]
    assert place.names() == before


def test_one_task_named_twice_is_requeued_once(place: Place, desk: Desk) -> None:
    (name,) = failed(place, "a")
    assert statuses(desk.requeue(f"a\n{name}", code=3)) == [("a", "requeued"), (name, "refused")]
    assert place.names() == ["a.f1.available"]


def test_a_dry_run_shows_the_exact_names_and_changes_nothing(place: Place, desk: Desk) -> None:
    names = failed(place, "a", "b")
    found = desk.requeue("a\nb", "--dry-run")
    assert [(line["status"], line["name"]) for line in found] == [
        ("would-requeue", name) for name in names
    ]
    assert statuses(desk.requeue("a\nc", "--dry-run", code=3))[1] == ("c", "unknown")
    assert place.names() == sorted(names)


def test_a_task_that_the_disk_refuses_does_not_stop_the_others(
    place: Place, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], scratch: Path
) -> None:
    first, _ = failed(place, "a", "b")

    def refuse(path: str) -> None:
        if path == first:
            raise OSError(errno.EACCES, "no")

    place.port.before["rename"] = refuse
    monkeypatch.setattr("dibs.cli.boards.open", lambda path, create=False: place.board)
    (scratch / "list").write_text("a\nb\n")
    assert cli.main(["-d", str(place.path), "requeue", "--from", str(scratch / "list")]) == 3
    out, err = capsys.readouterr()
    assert [line.split()[0] for line in out.splitlines()] == ["refused", "requeued"]
    assert err == "dibs: 1 refused, 1 requeued\n"
    assert place.names() == ["b.f1.available", first]


def test_a_task_that_another_operator_requeued_meanwhile_is_left_alone(
    place: Place, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], scratch: Path
) -> None:
    failed(place, "a", "b")

    def overtake(path: str) -> None:
        place.port.before.clear()
        other = place.another()[0]
        other.requeue(other.find("b")[0].name)
        assert other.claim("b", owner="web-9") is not None

    place.port.before["rename"] = overtake
    monkeypatch.setattr("dibs.cli.boards.open", lambda path, create=False: place.board)
    (scratch / "list").write_text("a\nb\n")
    assert cli.main(["-d", str(place.path), "requeue", "--from", str(scratch / "list")]) == 3
    out = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in out] == ["requeued", "refused"]
    assert "claimed by web-9" in out[1]


def listings(place: Place, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The folders that are listed from here on."""
    found: list[str] = []
    listed = place.port.names

    def noted(folder: str) -> list[str]:
        found.append(folder)
        return listed(folder)

    monkeypatch.setattr(place.port, "names", noted)
    return found


def test_many_are_requeued_with_one_listing_of_the_board(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = failed(place, *(f"t{n}" for n in range(20)))
    listed = listings(place, monkeypatch)
    for name in names:
        place.board.requeue(name)
    assert listed == [""]


@pytest.mark.parametrize("ident", ["b", "v1.2"])
def test_a_task_that_a_shell_adds_between_two_requeues_is_seen(place: Place, ident: str) -> None:
    first, second = failed(place, "a", ident)
    place.board.requeue(first)
    (place.path / f"{ident}.available").write_bytes(b"added by a shell")
    with pytest.raises(dibs.Changed, match="on the board already"):
        place.board.requeue(second)


def test_only_one_of_two_ended_tasks_with_one_id_is_requeued(place: Place) -> None:
    (name,) = failed(place, "a")
    other = "done/a.f9.me-0123456789"
    (place.path / other).write_bytes(b"another")
    place.board.requeue(name)
    with pytest.raises(dibs.Changed, match="on the board already"):
        place.board.requeue(other)


def test_one_listing_serves_all_requeues_within_a_second(place: Place) -> None:
    first, second = failed(place, "a", "b")
    place.board.requeue(first)
    (place.path / "b.f7.available").write_bytes(b"copied by hand")
    place.world.advance(1.1)
    with pytest.raises(dibs.Changed, match="on the board already"):
        place.board.requeue(second)


INVALID = [
    "a\x1b[2Jb",
    "\x00",
    "\u202ea",
    "\udcff\udcfe",
    "é" * 200,
    "x" * 100_000,
    "../../etc/passwd",
    "done/",
    "x.claimed/1f",
    "--reason",
    "a,b;c",
]


def test_invalid_lines_are_unknown_and_never_printed_raw(place: Place, desk: Desk) -> None:
    failed(place, "good")
    text = "\n".join([*INVALID, "good"])
    found = desk.requeue(text, "--dry-run", code=3)
    assert statuses(found) == [*((line, "unknown") for line in INVALID), ("good", "would-requeue")]
    path = place.path.parent / "list"
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    output = desk(
        "requeue", "--from", str(path), code=3
    )  # the helper refuses what is not printable
    assert output == f"dibs: {len(INVALID)} unknown, 1 requeued"


def test_ids_with_special_characters_are_found(place: Place, desk: Desk) -> None:
    idents = ["a\x1b[2Jb", "é/..", "\udcff", "-x"]
    failed(place, *idents)
    assert statuses(desk.requeue("\n".join(idents))) == [(i, "requeued") for i in idents]


@pytest.mark.parametrize("lines", [b"", b"\n\n# nothing\n", b"\xef\xbb\xbf\r\n"])
def test_an_empty_list_is_done(desk: Desk, lines: bytes) -> None:
    assert desk.requeue(lines) == []


def test_options_that_exclude_each_other_are_bad_input(place: Place, desk: Desk) -> None:
    (name,) = failed(place, "a")
    for argv in ([], [name, "--from", "-"], [name, "--dry-run"], ["--from", "/nowhere"]):
        desk("requeue", *argv, code=2)
    assert f"give `dibs requeue {name}`" in desk("requeue", "a", code=2)
    assert place.names() == [name]


def test_a_name_that_one_listing_missed_is_searched_again(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    (name,) = failed(place, "a")
    real = place.port.names
    missed: list[str] = []

    def names(folder: str) -> list[str]:
        listed = real(folder)
        if folder == "failed" and not missed:
            missed.append(folder)
            return []
        return listed

    monkeypatch.setattr(place.port, "names", names)
    assert place.board.resolve("a") == [dibs.Resolved("a", name)]


def test_a_dry_run_refuses_the_same_states_as_the_act(command: Command) -> None:
    command("add", "a")
    source = command.path.parent / "list"
    source.write_text("a.available\n")
    for option in ((), ("--dry-run",)):
        done = command.run("requeue", "--from", str(source), *option)
        assert done.returncode == 3
        assert done.stdout.startswith(b"refused ")
        assert b"nothing was done, it is available" in done.stdout
