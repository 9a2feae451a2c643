"""The guides run: every `sh` block of a page in order, in a new directory, without root."""

from __future__ import annotations

import os
import re
import shutil
import site
import subprocess
import sys
from contextlib import suppress
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import pytest

from dibs.cli import topics
from dibs.cli.grammar import COMMANDS
from dibs.model.task import STATES
from dibs_tui.settings.config import load
from tests.core.test_docs import ROOT, example_commands, parser_for
from tests.core.test_readme import free_address
from tests.core.tools import NOBODY, give
from tests.patience import PATIENCE

DOCS = ROOT / "docs"
KINDS = ("tutorials", "how-to", "explanation")
PAGES = sorted(str(page.relative_to(DOCS)) for kind in KINDS for page in DOCS.glob(f"{kind}/*.md"))
PACKAGES = (str(ROOT / "core"), str(ROOT / "tui"), *site.getsitepackages())
MARK = "\f"
"""What divides the output of one block from that of the next; no verb prints it."""


class Block(NamedTuple):
    """A fenced block of a page."""

    language: str
    text: str


def blocks(page: str) -> list[Block]:
    """The fenced blocks of a page in docs/, in order."""
    text = (DOCS / page).read_text()
    found = re.findall(r"^```(\S*)\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    return [Block(*each) for each in found]


def of(page: str, language: str) -> list[str]:
    """The blocks of a page in one language."""
    return [block.text for block in blocks(page) if block.language == language]


def expected(text: str) -> re.Pattern[str]:
    """What the output of a block must be: `…` is any text, and nonces differ each time."""
    lines = []
    for line in text.rstrip().splitlines():
        if line == "…":
            lines.append(r"(?:.*\n)*?")
            continue
        pattern = re.escape(re.sub(r"[0-9A-F]{10}\b", "\0", line))
        pattern = pattern.replace("\0", "[0-9A-F]{10}").replace("…", ".*")
        lines.append(rf"{pattern}\s*?\n")
    return re.compile("".join(lines))


class Place(NamedTuple):
    """A new directory with `dibs` on the path, and who works there."""

    work: Path
    env: dict[str, str]
    user: int | None

    def run(
        self, script: str, program: tuple[str, ...] = ("sh", "-eu", "-c"), code: int | None = 0
    ) -> str:
        """The output of a script, which must end with that exit code; None: any."""
        done = subprocess.run(
            [*program, script],
            env=self.env,
            cwd=self.work,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=4 * PATIENCE,
            user=self.user,
            group=self.user,
            extra_groups=None if self.user is None else [],
        )
        assert code in (done.returncode, None), f"exit code {done.returncode}:\n{done.stdout}"
        return done.stdout


@cache
def pythons() -> list[tuple[str, int | None]]:
    """The Pythons to run dibs with, each with the user; without root, this process's own."""
    if os.geteuid():
        return [(sys.executable, None)]
    systems = f"/usr/bin/python3.{sys.version_info.minor}"
    return [(sys.executable, NOBODY), (systems, NOBODY), (sys.executable, None)]


@pytest.fixture
def at(scratch: Path) -> Place:
    """The directory in which a page is followed, of a user who can only write there."""
    binary, work = scratch / "bin" / "dibs", scratch / "work"
    binary.parent.mkdir()
    work.mkdir()
    give(work, NOBODY)
    path = f"{binary.parent}:{os.environ['PATH']}"
    env = {"PATH": path, "HOME": str(work), "LC_ALL": "C.UTF-8"}
    for python, user in pythons():
        packages = f"PYTHONPATH={':'.join(PACKAGES)}"
        binary.write_text(f'#!/bin/sh\n{packages} exec {python} -m dibs_tui.cli "$@"\n')
        binary.chmod(0o755)
        place = Place(work, env, user)
        with suppress(AssertionError):  # that user may not start that Python
            place.run("dibs --version")
            return place
    raise AssertionError("no Python can be started")


def follow(place: Place, page: str) -> None:
    """Run the `sh` blocks of a page and compare what they print with the `text` after them."""
    found = blocks(page)
    shell = [at for at, block in enumerate(found) if block.language == "sh"]
    script = "".join(f"printf '{MARK}'\n{found[at].text}" for at in shell)
    outputs = place.run(script).split(MARK)[1:]
    for at, output in zip(shell, outputs, strict=True):
        after = found[at + 1] if at + 1 < len(found) else None
        if after is not None and after.language == "text":
            shown = f"{found[at].text}\n--- printed:\n{output}"
            assert expected(after.text).fullmatch(output), shown


@pytest.mark.parametrize("page", [page for page in PAGES if of(page, "sh")])
def test_a_page_runs_in_its_order_and_prints_what_it_shows(at: Place, page: str) -> None:
    if any("git " in block for block in of(page, "sh")) and not shutil.which("git"):
        pytest.skip("A PAGE WAS NOT FOLLOWED: git is not installed")
    follow(at, page)


@pytest.mark.parametrize("page", PAGES)
def test_each_command_that_a_page_only_names_has_verbs_and_options_that_exist(page: str) -> None:
    text = (DOCS / page).read_text()
    plain = re.sub(r"^```.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE)
    lines = [line for block in of(page, "shell") for line in block.splitlines()]
    for line in [*lines, *re.findall(r"`(dibs [^`]*)`", plain)]:
        for command in example_commands(re.sub(r"postgresql://\S+", "tasks", line)):
            assert unknown(command) == [], line


def unknown(command: list[str]) -> list[str]:
    """What a command names that the command line does not have."""
    while command[:1] in (["-d"], ["--json"]):
        command = command[2 if command[0] == "-d" else 1 :]
    if command in ([], ["."], ["demo"], ["tasks"], ["/srv/jobs"]):  # the dashboard
        return []
    if command[0] == "help":
        return [] if topics.page(command[1]) else command
    if command[0] not in COMMANDS:
        return command
    parser = parser_for(command[0])
    known = {option for action in parser._actions for option in action.option_strings}
    given = command[: command.index("--")] if "--" in command else command
    return [word for word in given if word.startswith("-") and word not in known]


SERVED = {
    "http.md": '"status": "acquired"',
    "browser.md": "303 See Other",
    "engines.md": "report-1.f1.web-",
}
"""A page whose first blocks start a server, and what they print at last."""


@pytest.mark.parametrize("page", SERVED)
def test_a_page_with_a_server_runs_from_nothing(at: Place, page: str) -> None:
    lacks = [tool for tool in ("curl",) if shutil.which(tool) is None]
    lacks += [name for name in ("aiohttp",) if find_spec(name) is None]
    if lacks:
        pytest.skip(f"A PAGE WAS NOT FOLLOWED: without {', '.join(lacks)}")
    number = {"http.md": 1}.get(page, 2)
    address = free_address()
    script = "".join(of(page, "sh")[:number]).replace("127.0.0.1:7373", address)
    script = script.replace(" serve &", f" serve --listen {address} &")
    printed = at.run(f"trap 'kill $server' EXIT\n{script}")
    assert SERVED[page] in printed, printed


def test_the_crontabs_run_in_the_environment_of_cron_and_say_nothing(at: Place) -> None:
    """The first minute, and the next: then the day's task exists, and is done."""
    tables = of("how-to/cron.md", "crontab")
    assert len(tables) == 3
    for made in of("how-to/cron.md", "shell"):
        at.run(made.replace("sudo ", "").replace("/srv", str(at.work)))
    at.run("dibs init tasks")
    for name in ("backup.sh", "report.sh"):
        at.run(f"printf '#!/bin/sh\necho $DIBS_ID >> {at.work}/ran\n' > jobs/{name}")
        at.run(f"chmod +x jobs/{name}")
    binary = at.env["PATH"].partition("/bin:")[0]
    for text in (table for table in tables for _ in range(2)):
        for real, here in (("/usr/local", binary), ("/srv", str(at.work))):
            text = text.replace(real, here)
        path, *lines = text.replace("/var/lib/node_exporter", str(at.work)).splitlines()
        for line in lines:
            command = line.split(maxsplit=5)[5].replace("\\%", "%")
            cron = ("env", "-i", f"HOME={at.work}", path, "sh", "-c")
            assert at.run(command, cron, code=None) == "", line
    first, second, *reports = (at.work / "ran").read_text().split()
    assert (first, second) == ("nightly", "nightly")
    assert len(reports) == len(set(reports)) >= 1, "a report a day, also around midnight"
    assert "dibs_tasks" in (at.work / "dibs.prom").read_text()


UNITS = of("how-to/systemd.md", "ini")


@pytest.mark.parametrize("unit", UNITS, ids=[Path(unit.split()[1]).name for unit in UNITS])
def test_systemd_accepts_a_unit(unit: str, tmp_path: Path) -> None:
    tool = shutil.which("systemd-analyze")
    if tool is None:
        pytest.skip("THE UNIT WAS NOT TRIED: systemd-analyze is not installed")
    for text in UNITS:  # a timer needs its service
        there = text.replace("/usr/local/bin/dibs", sys.executable).replace("User=tasks\n", "")
        (tmp_path / Path(text.split()[1]).name).write_text(there)
    path = tmp_path / Path(unit.split()[1]).name
    line = [tool, "verify", str(path)]
    done = subprocess.run(line, capture_output=True, text=True, timeout=PATIENCE)
    name = path.name.replace("@", "@test_instance")
    if "Failed to" in done.stderr and path.name not in done.stderr and name not in done.stderr:
        pytest.skip(f"THE UNIT WAS NOT TRIED: {done.stderr.strip()}")
    assert path.name not in done.stderr
    assert name not in done.stderr


def test_the_dashboard_accepts_the_settings_of_a_page(tmp_path: Path) -> None:
    (text,) = of("how-to/slurm.md", "toml")
    (tmp_path / "dibs").mkdir()
    (tmp_path / "dibs/config.toml").write_text(text)
    config, sources = load({}, {"XDG_CONFIG_HOME": str(tmp_path)})
    assert "{metadata}" in config.evidence_command
    assert sources["evidence_command"] == "config.toml"


def test_the_picture_of_the_protocol_has_every_state_and_only_what_exists() -> None:
    (picture,) = (text for text in of("explanation/protocol.md", "text") if "───▶" in text)
    boxes = set(re.findall(r"│ ([a-z]+) +│", picture))
    assert boxes == set(STATES) - {"stale"}  # no name on disk has it
    words = set(re.findall(r"[a-z]+(?:-[a-z]+)*", picture.replace("too many attempts", "")))
    assert words - boxes - {"due"} <= set(COMMANDS)


def test_no_page_is_forgotten_by_the_map() -> None:
    text = (DOCS / "README.md").read_text()
    for page in PAGES:
        assert f"]({page})" in text, page
