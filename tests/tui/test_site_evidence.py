"""A site's own evidence: one line of a command, shown as an observation, whatever it prints."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest
from textual.pilot import Pilot

import dibs
from dibs import Holder
from dibs_tui.acting.site_evidence import CHARS, arguments, ask
from dibs_tui.app import DibsApp
from dibs_tui.settings.config import Config
from tests.patience import PATIENCE
from tests.tui.board_models import task_of
from tests.tui.hostile import CASES, forbidden
from tests.tui.live import drive, text_of, until
from tests.tui.test_act_screen import opened, state

FACTS = {"host": "web-3", "owner": "ann", "metadata": "job 42"}
CLAIM = f"task-1.f1.ann-{1:010X}.claimed"


def holder(**facts: str) -> Holder:
    found = FACTS | facts
    return Holder(
        task_of(CLAIM), 0, 60.0, 0, found["owner"], found["host"], None, found["metadata"]
    )


def python(code: str) -> tuple[str, ...]:
    return (sys.executable, "-c", code)


def says(code: str, limit: float = PATIENCE, **facts: str) -> str:
    name = Path(sys.executable).name
    found = ask(python(code), holder(**facts), limit)
    assert found.isprintable()
    assert found.startswith(f"{name} ")
    return found.removeprefix(f"{name} ")


def test_the_command_gets_host_owner_and_metadata_as_arguments() -> None:
    assert says("import sys; print(sys.argv[1:])") == "says: ['web-3', 'ann', 'job 42']"
    assert says("import sys; print(sys.argv[1:])", metadata="$(id); `x`") == (
        "says: ['web-3', 'ann', '$(id); `x`']"
    )


PLACED = [
    (("squeue", "-j", "{metadata}"), ["squeue", "-j", "job 42"]),
    (("ping", "-c1", "{host}.example"), ["ping", "-c1", "web-3.example"]),
    (("x", "{host}{owner}", "--m={metadata}"), ["x", "web-3ann", "--m=job 42"]),
    (("x",), ["x", "web-3", "ann", "job 42"]),
    (("{host}",), ["{host}", "web-3", "ann", "job 42"]),
]


@pytest.mark.parametrize(("command", "argv"), PLACED)
def test_facts_are_put_where_the_command_wants_them(
    command: tuple[str, ...], argv: list[str]
) -> None:
    assert arguments(command, FACTS) == (argv, "")


def test_a_fact_never_becomes_an_option_or_another_fact() -> None:
    for command in (("x",), ("x", "{host}")):
        argv, why = arguments(command, FACTS | {"host": "-oProxyCommand=x"})
        assert (argv, why) == ([], "the host begins with a dash, as an option does")
    assert arguments(("x", "--m={metadata}"), FACTS | {"metadata": "-x"}) == (["x", "--m=-x"], "")
    assert arguments(("x", "{metadata}"), FACTS | {"metadata": "{host}"}) == (["x", "{host}"], "")
    assert arguments(("x", "{owner}"), FACTS | {"owner": "a\0b"})[1] == "the owner contains a NUL"
    assert (
        arguments(("x", "{metadata}"), FACTS | {"metadata": ""})[1] == "the claim has no metadata"
    )
    assert arguments(("x",), FACTS | {"metadata": ""}) == (["x", "web-3", "ann", ""], "")


def test_only_the_first_line_is_shown_with_the_exit_code() -> None:
    assert says("print(); print('  RUNNING 2:10  '); print('more')") == "says: RUNNING 2:10"
    assert says("import sys; print('gone'); sys.exit(3)") == "says: gone (exit 3)"
    assert says("import sys; print('noise', file=sys.stderr)") == "says nothing"


@pytest.mark.parametrize("text", CASES.values(), ids=CASES)
def test_hostile_output_is_shown_as_text(text: str) -> None:
    data = text.encode("utf-8", "surrogatepass")
    found = says(f"import sys; sys.stdout.buffer.write({data!r})")
    assert not forbidden(found)
    assert len(found) <= CHARS


def test_endless_output_is_cut() -> None:
    found = says("import sys\nwhile True: sys.stdout.write('x' * 4096)", limit=PATIENCE)
    assert "says: xxx" in found
    assert len(found) < CHARS + 40


def test_a_command_that_hangs_is_ended_with_all_that_it_started(tmp_path: Path) -> None:
    child = tmp_path / "child"
    code = f"""
import os, subprocess, sys, time
found = subprocess.Popen(["sleep", "3600"])
open({str(child)!r}, "w").write(str(found.pid))
print("asking the scheduler", flush=True)
time.sleep(3600)
"""
    assert says(code, limit=3.0) == "says: asking the scheduler (ended after 3 s)"
    pid = int(child.read_text())
    end = time.monotonic() + PATIENCE
    while running(pid):
        assert time.monotonic() < end
        time.sleep(0.02)


def running(pid: int) -> bool:
    """Whether a process runs; a zombie that no one has waited for yet has ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_a_command_that_cannot_be_run_is_an_observation_too(tmp_path: Path) -> None:
    assert ask(("/no/such",), holder()) == "such cannot be run: No such file or directory"
    script = tmp_path / "not-executable"
    script.touch()
    script.chmod(0o644)
    if os.geteuid():
        assert "Permission denied" in ask((str(script),), holder())


def test_the_dialog_shows_the_line_and_the_verdict_stays(path: Path, board: dibs.Board) -> None:
    board.add("task-1")
    board.claim("task-1", owner="web-3", ttl=600, metadata="job 42", process=None)
    command = python("import sys; print('DEAD [/b] EXPIRED', sys.argv[1:]) or sys.exit(1)")

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await until(pilot, lambda: "3 claimed 1" in text_of(app))
        await opened(app, pilot, "3", "down", "X")
        await until(pilot, lambda: "says: DEAD [/b] EXPIRED" in text_of(app))
        assert "ALIVE" in text_of(app)
        assert "refused: its owner is ALIVE" in text_of(app)
        await pilot.press("y")
        assert state(board, "task-1") == "claimed"

    drive(path, steps, config=Config(evidence_command=command))
