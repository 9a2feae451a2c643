import gc
import os
import signal
from collections.abc import Generator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from dibs.model.sessions import VARIABLES
from tests.drills import Drills
from tests.filesystems import machine
from tests.homes import USERS_HOME, files_that_name, live_in_an_empty_home, live_in_memory

DRILLS = "drills"
"""The name of the plugin that leaves them out."""
PYTHONS_OWN = {signal.SIGPIPE, signal.SIGXFSZ}
"""The signals that Python ignores itself and restores for each program that it starts."""


def use_one_profile() -> None:
    """Make hypothesis try the same examples with or without `CI`, a database or a warm cache.

    There is no deadline and no limit on drawing: the first text that is drawn builds a table of
    all characters, which takes seconds on a slow machine.
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
    """Let each program that a test starts receive all signals, as in the foreground of a shell.

    A suite that runs in the background ignores SIGINT, and under `nohup` SIGHUP, and each program
    that it starts would inherit that. A handler is not inherited, so this process still ignores
    them.
    """
    for number in signal.valid_signals() - PYTHONS_OWN:
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, lambda *_: None)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def belong_to_no_session() -> None:
    """Let claims name no session, also if an agent's client runs this suite."""
    for name in VARIABLES:
        os.environ.pop(name, None)


use_one_profile()
listen_to_every_signal()
belong_to_no_session()
live_in_an_empty_home()
live_in_memory()


@pytest.fixture
def board_dir(tmp_path: Path) -> Path:
    """An empty directory for a board."""
    path = tmp_path / "board"
    path.mkdir()
    return path


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that runs everything."""
    parser.addoption("--drills", action="store_true", help="run the drills too: tests/drills.py")


def pytest_configure(config: pytest.Config) -> None:
    """Leave the drills out, unless they are asked for."""
    config.pluginmanager.register(Drills(config), DRILLS)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect the tests that `test_machine.py` runs in a virtual machine instead."""
    marks = {item: item.get_closest_marker("kernel") for item in items}
    there = [item for item, mark in marks.items() if mark and not machine.knows(mark.args[0])]
    if there and not machine.why_not():
        config.hook.pytest_deselected(items=there)
        items[:] = [item for item in items if item not in there]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> Generator[None]:
    """Collect the garbage of a module, also what the dashboard has frozen.

    A frozen object is never collected, so each dashboard would stay, with all its tables.
    """
    yield
    last = nextitem is None or nextitem.path != item.path
    if last and gc.get_freeze_count():
        gc.unfreeze()
        gc.collect()


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail if a board of this session is remembered in the home of the user."""
    base = getattr(session.config, "_tmp_path_factory").getbasetemp()  # noqa: B009
    for path in files_that_name(base, os.environ[USERS_HOME]):
        print(f"\n{path} names a board of this session: a test has written there")
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.hookimpl(wrapper=True, tryfirst=True)  # outermost, to print below the summary of pytest
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> Generator[None]:
    """List every skipped test at the very end of the output, and the number of drills."""
    yield
    skipped = terminalreporter.getreports("skipped")
    if skipped:
        terminalreporter.section("SKIPPED, LOUDLY", red=True, bold=True)
    for report in skipped:
        why = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longreprtext
        terminalreporter.write_line(f"{report.nodeid}: {why.removeprefix('Skipped: ')}", red=True)
    drills = terminalreporter.config.pluginmanager.get_plugin(DRILLS)
    if drills is not None and drills.notice():
        terminalreporter.write_line(drills.notice(), bold=True)
