"""A fault of the dashboard becomes one line, and its details are kept in a file."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from dibs_tui.lifecycle import crash

pytestmark = pytest.mark.fast("dibs_tui.lifecycle")


@pytest.fixture
def report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the details of a fault are kept."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return tmp_path / "dibs" / "crash.txt"


def test_a_fault_is_one_line_that_names_the_file_with_its_details(report: Path) -> None:
    line = str(crash.crashed(ValueError("two\nlines\x1b[31m")))
    assert "\n" not in line
    assert "\x1b" not in line
    assert str(report) in line
    assert "ValueError" in report.read_text()


def test_only_the_owner_can_read_the_details_and_the_newest_fault_replaces_them(
    report: Path,
) -> None:
    crash.crashed(ValueError("first"))
    crash.crashed(ValueError("second"))
    assert "first" not in report.read_text()
    assert report.stat().st_mode & 0o777 == 0o600


def test_a_fault_whose_details_cannot_be_kept_is_reported_with_the_reason(report: Path) -> None:
    report.parent.write_text("a file where the folder belongs")
    assert f"saved in {report}: " in str(crash.crashed(ValueError("bad")))


def test_a_fault_in_a_thread_is_shown_in_one_line(report: Path) -> None:
    shown: list[str] = []

    def fails() -> None:
        raise ValueError("in a thread")

    with crash.report_thread_faults(shown.append):
        thread = threading.Thread(target=fails)
        thread.start()
        thread.join()
    (line,) = shown
    assert "in a thread" in line


def test_a_missing_library_is_named_and_a_missing_module_of_dibs_is_a_fault() -> None:
    missing = crash.not_installed(ModuleNotFoundError("no", name="textual.app"))
    assert missing is not None
    assert "needs textual, which is not installed" in str(missing)
    assert crash.not_installed(ModuleNotFoundError("no", name="dibs_tui.gone")) is None
