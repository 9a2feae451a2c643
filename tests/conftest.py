import signal
from collections.abc import Generator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.filesystems import machine

PYTHONS_OWN = {signal.SIGPIPE, signal.SIGXFSZ}
"""Signals that Python itself ignores, and gives back to every program that it starts."""


def use_one_profile() -> None:
    """Try the same examples everywhere: with or without `CI`, a database or a warm cache.

    Without a deadline and a limit on drawing, because the first text that is drawn builds a table
    of all characters, which takes seconds on a slow machine.
    """
    settings.register_profile(
        "dibs",
        deadline=None,
        derandomize=True,
        database=None,
        print_blob=True,
        suppress_health_check=[HealthCheck.too_slow],
    )
    settings.load_profile("dibs")


def listen_to_every_signal() -> None:
    """Start every program as a shell starts it in the foreground: no signal ignored or blocked.

    A suite that is started in the background ignores SIGINT, under `nohup` SIGHUP, and whatever it
    starts would inherit that. A handler is not inherited, so this process goes on ignoring them.
    """
    for number in signal.valid_signals() - PYTHONS_OWN:
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, lambda *_: None)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


use_one_profile()
listen_to_every_signal()


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
