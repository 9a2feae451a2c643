from collections.abc import Generator
from pathlib import Path

import pytest

from tests.filesystems import machine


@pytest.fixture
def board_dir(tmp_path: Path) -> Path:
    """An empty directory to be a board."""
    path = tmp_path / "board"
    path.mkdir()
    return path


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave what this kernel cannot do to the machine that `test_machine.py` boots for it."""
    marks = {item: item.get_closest_marker("kernel") for item in items}
    there = [item for item, mark in marks.items() if mark and not machine.knows(mark.args[0])]
    if there and not machine.why_not():
        config.hook.pytest_deselected(items=there)
        items[:] = [item for item in items if item not in there]


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
