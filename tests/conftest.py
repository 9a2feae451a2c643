from collections.abc import Generator
from pathlib import Path

import pytest


@pytest.fixture
def board_dir(tmp_path: Path) -> Path:
    """An empty directory to be a board."""
    path = tmp_path / "board"
    path.mkdir()
    return path


@pytest.hookimpl(wrapper=True, tryfirst=True)  # outermost, to print below pytest's own summary
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> Generator[None]:
    """List every skipped test where nobody can overlook it."""
    yield
    skipped = terminalreporter.getreports("skipped")
    if not skipped:
        return
    terminalreporter.section("SKIPPED, LOUDLY", red=True, bold=True)
    for report in skipped:
        why = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longreprtext
        terminalreporter.write_line(f"{report.nodeid}: {why.removeprefix('Skipped: ')}", red=True)
