"""The commands of the README run in their order in one shell, and print what it shows."""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.core.tools import NOBODY
from tests.patience import PATIENCE

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
BLOCK = re.compile(r"^```(sh|python|text)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
ADDRESS = "127.0.0.1:7373"
ANOTHER = (
    "setpriv",
    f"--reuid={NOBODY}",
    f"--regid={NOBODY}",
    "--clear-groups",
    "--inh-caps=-all,+dac_read_search",
    "--ambient-caps=-all,+dac_read_search",
)
"""Another user than root. It may read all files, because Python can be in root's home."""
END = "--- the end of a block ---"
OTHER_EACH_TIME = (
    (r"[0-9A-F]{10}", "NONCE"),
    (r"\d{4}-\d\d-\d\dT[\d:]+Z", "TIME"),
    (r"\b\d+ ?s\b", "AGE"),
    (r"(process\s+|boot |pid:\[)[0-9a-f]+", r"\1NUMBER"),
    (r"\s+", " "),
)


class Tour:
    """An account with dibs and an empty home; not root's, where `setpriv` can become another."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.path = home / "bin"
        self.path.mkdir()
        for name, code in (("dibs", "-m dibs_tui.cli"), ("python3", "-W error")):
            program = self.path / name
            program.write_text(f'#!/bin/sh\nexec {sys.executable} {code} "$@"\n')
            program.chmod(0o755)
        self.become: tuple[str, ...] = ()
        if os.geteuid() == 0 and shutil.which("setpriv"):
            self.become = ANOTHER
            os.chown(home, NOBODY, NOBODY)
            if self.run("dibs --version")[0] != 0:
                self.become = ()
                os.chown(home, 0, 0)

    def run(self, script: str, cwd: str = "/") -> tuple[int, str]:
        """The exit code of a script, every line of which must succeed, and what it prints."""
        env = {
            "HOME": str(self.home),
            "LANG": "C.UTF-8",
            "PATH": f"{self.path}:{os.environ['PATH']}",
            "PYTHONPATH": f"{ROOT / 'core'}:{ROOT / 'tui'}",
        }
        with (
            tempfile.TemporaryFile() as printed,
            subprocess.Popen(
                [*self.become, "sh", "-euc", script],
                cwd=cwd,
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=printed,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            ) as shell,
        ):
            try:
                code = shell.wait(PATIENCE * 2)
            finally:
                with suppress(ProcessLookupError):
                    os.killpg(shell.pid, signal.SIGKILL)
            printed.seek(0)
            return code, printed.read().decode()


@pytest.fixture
def tour() -> Iterator[Tour]:
    """Not below the tests' own folder, which only their user may enter."""
    home = Path(tempfile.mkdtemp(prefix="dibs-readme-"))
    yield Tour(home)
    shutil.rmtree(home)


def blocks(text: str) -> list[tuple[str, str]]:
    return BLOCK.findall(text)


def free_address() -> str:
    """An address of this host on which nothing listens."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return f"127.0.0.1:{server.getsockname()[1]}"


def shown(text: str) -> list[str]:
    """The lines of a text, without what differs each time."""
    for pattern, word in OTHER_EACH_TIME[:-1]:
        text = re.sub(pattern, word, text)
    return [re.sub(*OTHER_EACH_TIME[-1], line).strip() for line in text.splitlines()]


def missing(expected: str, printed: str) -> str:
    """The first line of a text block that is not in the output, after those before it; or ""."""
    lines = iter(shown(printed))
    for line in shown(expected):
        pattern = re.escape(line).replace("…", ".*")
        if not any(re.fullmatch(pattern, other) for other in lines):
            return line
    return ""


@pytest.mark.parametrize("where", ["/", "another board"])
def test_the_commands_run_in_their_order_and_print_what_the_readme_shows(
    tour: Tour, where: str
) -> None:
    _, _, text = README.partition("\n## Five minutes\n")
    text, _, _ = text.partition("\n## The dashboard\n")
    before, title, http = text.partition("\n### Over HTTP\n")
    assert ADDRESS in http
    lacks = [tool for tool in ("curl", "jq") if shutil.which(tool) is None]
    lacks += [name for name in ("aiohttp",) if find_spec(name) is None]
    found = blocks(before if lacks else before + title + http)
    script, address = [], free_address()
    for language, block in found:
        if language == "python":
            (path,) = re.findall(r"Save this as `(.*)`", text)
            script.append(f"cat > {path} <<'THE END'\n{block}THE END\n")
        elif language == "sh":
            own = block.replace(ADDRESS, address)
            script.append(f"{own}echo; echo '{END}'\n")
    if where == "another board":
        where = str(tour.home / "other")
        assert tour.run(f"dibs -d {where} init") == (0, f"{where}\n")
    code, printed = tour.run("".join(script), where)
    assert code == 0, printed
    parts = iter(printed.split(END))
    for language, block in found:
        if language == "sh":
            last = next(parts)
        elif language == "text":
            assert not missing(block, last), (missing(block, last), last)
    assert {name for name in os.listdir(tour.home) if name[0] != "."} <= {
        "bin",
        "dibs-tour",
        "other",
    }
    unseen = [f"without {', '.join(lacks)}"] if lacks else []
    if os.geteuid() == 0 and not tour.become:
        unseen.append("as root, because setpriv is missing or not allowed here")
    if unseen:
        pytest.skip(f"THE README WAS NOT TRIED IN FULL: {' and '.join(unseen)}")


def test_the_snippet_over_http_shows_why_there_is_no_lock(tour: Tour) -> None:
    lacks = [tool for tool in ("curl", "jq") if shutil.which(tool) is None]
    if lacks or find_spec("aiohttp") is None:
        pytest.skip(f"without {', '.join(lacks or ['aiohttp'])}")
    snippet = blocks(README.partition("\n### Over HTTP\n")[2])[0][1]
    start, answer, use = snippet.replace(ADDRESS, free_address()).partition("answer=")
    use, kill, end = use.partition("kill ")
    code, printed = tour.run(
        f"export DIBS_BOARD=~/board; dibs init; {start}"
        f"claim=$(dibs acquire nightly --owner ada)\n{answer}{use}"
        f"dibs release $claim\nTOKEN=wrong\n{answer}{use}{kill}{end}"
    )
    assert code == 0, printed
    assert re.search(r'^no lock: .*"status": ?"held"', printed, re.MULTILINE), printed
    assert re.search(r'^no lock: .*"code": ?"unauthorized"', printed, re.MULTILINE), printed


def test_a_line_that_is_not_printed_or_not_in_order_is_noticed() -> None:
    printed = "a  1 s\nbuild.f1.web-3-917C8F947E\nc and more\n"
    assert not missing("a 2 s\nbuild.f1.web-3-0123456789\nc …\n", printed)
    assert missing("build.f2.web-3-0123456789\n", printed)
    assert missing("c and more\na 1 s\n", printed)


def test_each_section_is_there_in_its_order() -> None:
    titles = re.findall(r"^## (.*)$", README, re.MULTILINE)
    assert titles == [
        "Use it when",
        "How it compares",
        "Install",
        "Five minutes",
        "Workers",
        "The dashboard",
        "What is guaranteed",
        "Documentation",
        "Contributing",
    ]
