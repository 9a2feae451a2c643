"""What could not be sent to the hooks of a served board, as scripts and the dashboard get it."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from textual.pilot import Pilot

import dibs
from dibs.cli import main
from dibs.serve.delivery_access import MOST, SEND, access, findings
from dibs_tui.app import DibsApp
from tests.serve.server_process import ServerProcess, add_token
from tests.tui.dialogs import asked, without_waiting
from tests.tui.live import drive, text_of, until
from tests.tui.test_deliveries import fail, kept, opened


@pytest.fixture
def behind(served: ServerProcess) -> dibs.Board:
    """The board as the server has it, with two failed deliveries."""
    found = dibs.open(served.board)
    fail(found, 1, "deploy-1", "HTTP 500")
    fail(found, 2, "x\x1b[2J", "no answer", "other")
    return found


def test_both_sides_list_the_same(served: ServerProcess, behind: dibs.Board) -> None:
    there, here = access(dibs.open(served.url)), access(behind)
    assert there.hooks() == here.hooks()
    assert there.failed() == here.failed()
    assert findings(dibs.open(served.url)) == findings(behind)
    assert [one.text for one in findings(behind)] == [
        "1 failed; the last: HTTP 500",
        "1 failed; the last: no answer",
    ]


def test_exactly_what_is_named_is_sent_again_and_the_log_says_who(
    served: ServerProcess, behind: dibs.Board
) -> None:
    there = access(dibs.open(served.url))
    first, second = there.failed()
    assert [one.id for one in there.act(SEND, [first.id, first.id.replace("1", "2")])] == [first.id]
    assert [one.id for one in kept(behind).queued()] == [first.id]
    assert there.failed() == [second]
    last = next(iter(behind.log.newest_first()))
    assert (last.verb, last.by) == ("hook", "op")


def test_the_verb_lists_sends_and_removes_over_http(
    served: ServerProcess, behind: dibs.Board, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--json", "-d", served.url, "deliveries"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    hooks = [(row["hook"], row["failed"]) for row in rows if "failed" in row]
    assert hooks == [("ci", 1), ("other", 1)]
    ident = next(row["delivery"] for row in rows if row.get("id") == "deploy-1")
    assert main(["-d", served.url, "deliveries", "send", ident]) == 0
    assert main(["-d", served.url, "deliveries", "rm", "--all"]) == 0
    assert main(["-d", served.url, "deliveries", "rm", ident]) == 3
    assert "no failed delivery has the id" in capsys.readouterr().err
    assert (len(kept(behind).queued()), kept(behind, "other").failed()) == (1, [])


def test_a_reader_may_look_and_not_act_and_a_prefix_is_refused(
    served: ServerProcess, behind: dibs.Board, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DIBS_TOKEN", add_token(served.board, "rita", "reader"))
    there = access(dibs.open(served.url))
    (ident, *_) = [each.id for each in there.failed()]
    with pytest.raises(dibs.ReadOnly):
        there.act(SEND, [ident])
    monkeypatch.setenv("DIBS_TOKEN", add_token(served.board, "part", "operator", "web-"))
    with pytest.raises(dibs.ReadOnly):
        access(dibs.open(served.url)).failed()


class Hostile:
    """A session whose server answers what no terminal may show as it is."""

    def __init__(self, row: dict[str, object]) -> None:
        self.row = row

    def get(self, path: str, **query: object) -> dict[str, object]:
        assert query == {"limit": MOST}
        return {"failed": [self.row]}


@pytest.mark.parametrize("at", [float("nan"), 1e300, -1.0])
def test_a_time_that_is_none_is_not_taken_from_a_server(at: float, served: ServerProcess) -> None:
    session = dibs.open(served.url).served  # type: ignore[attr-defined]
    fields = {"hook": "ci", "id": "i", "tries": 1, "verb": "v", "task": "t", "reason": "r"}
    session.get = Hostile({**fields, "at": at}).get
    (found,) = access(dibs.open(served.url)).__class__(session).failed()  # type: ignore[call-arg]
    assert found.at == 0.0


def test_the_dashboard_shows_a_failed_hook_over_http_and_sends_again(
    served: ServerProcess, behind: dibs.Board, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    without_waiting(monkeypatch, tmp_path)
    assert os.environ["DIBS_TOKEN"]

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await pilot.press("8")
        await until(pilot, lambda: "1 failed; the last: HTTP 500" in text_of(app))
        assert ":deliveries" in text_of(app)
        await until(pilot, lambda: "8 problems 2" in text_of(app))
        await opened(app, pilot)
        await asked(app, pilot, "y — send again")
        assert "\x1b" not in text_of(app)
        await pilot.press("y")
        await until(pilot, lambda: "2 events queued." in text_of(app))
        await pilot.press("escape")

    drive(served.url, steps)
    assert len(kept(behind).queued()) == 1


def test_a_readers_dashboard_shows_it_although_it_may_not_check_the_files(
    served: ServerProcess, behind: dibs.Board, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    without_waiting(monkeypatch, tmp_path)
    monkeypatch.setenv("DIBS_TOKEN", add_token(served.board, "rita", "reader"))

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await pilot.press("8")
        await until(pilot, lambda: "1 failed; the last: HTTP 500" in text_of(app))

    drive(served.url, steps)


def test_a_readers_board_without_problems_is_clear_and_says_what_was_not_checked(
    served: ServerProcess, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    without_waiting(monkeypatch, tmp_path)
    monkeypatch.setenv("DIBS_TOKEN", add_token(served.board, "rita", "reader"))
    dibs.open(served.board).add("a")

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await pilot.press("8")
        await until(pilot, lambda: "files are not checked: http" in text_of(app))
        assert "✓ all clear" in text_of(app)

    drive(served.url, steps)
