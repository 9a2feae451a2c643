"""The pages beside the code say what the code does, and their examples run as they stand."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from dibs.cli import grammar, running
from dibs.cli.grammar import VERBS, parser_of
from dibs.cli.refusal import status
from dibs.cli.stats import gather
from dibs.errors import DibsError
from dibs.filters import NUMBERS, TEXTS
from tests.core.tools import Place
from tests.patience import PATIENCE

ROOT = Path(__file__).parents[2]
README, CLI, AGENTS = (
    (ROOT / name).read_text() for name in ("README.md", "core/CLI.md", "core/AGENTS.md")
)
COMMON = {"--help", "--dir", "--json"}
AGENTS_WORDS = 1200


def fences(page: str, language: str) -> list[str]:
    """The blocks of a page in one language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)


def row(word: str) -> str:
    """A verb's line in the table of verbs."""
    (line,) = re.findall(rf"^\| `{word}` \|.*\|.*\|$", CLI, re.MULTILINE)[:1]
    return str(line)


@pytest.mark.parametrize("word", [*VERBS, "run"])
def test_the_page_has_every_verb_with_every_option_and_no_other(word: str) -> None:
    parser = running.parser() if word == "run" else parser_of(word)
    known = {o for a in parser._actions for o in a.option_strings if o.startswith("--")} - COMMON
    arguments = row(word).split(" | ")[1]
    assert set(re.findall(r"`(--[a-z-]+)", arguments)) == known
    for action in parser._actions:
        if not action.option_strings and action.choices is None and word != "renew":
            assert str(action.metavar) in arguments


def test_the_page_has_every_exit_code_as_the_help_has_it() -> None:
    told = re.findall(r"^\| ([0-6]) \| (.*) \|$", CLI, re.MULTILINE)
    assert told == re.findall(r"^  ([0-6])  (.*)$", grammar.EXITS, re.MULTILINE)


def test_the_page_has_every_refusal_field_figure_and_filter(place: Place) -> None:
    kinds = [DibsError]
    for kind in kinds:
        kinds += kind.__subclasses__()
    words = {status(kind.__new__(kind)) for kind in kinds} - {"dibs-error", "stop"}
    for word in [*words, *gather(place.board).values, *TEXTS, *NUMBERS]:
        assert f"`{word}`" in CLI


def test_the_page_has_every_event() -> None:
    run = ROOT / "core/dibs/run"
    code = "".join((run / name).read_text() for name in ("job.py", "supervisor.py"))
    told = set(re.findall(r"(?:tell\(|outcome(?:, [^=]*)? = )\"([a-z]+)\"", code))
    told |= set(re.findall(r"\"([a-z]+)\" if isinstance\(stop, Lost\) else \"([a-z]+)\"", code)[0])
    _, _, table = CLI.partition("| event | further fields |")
    listed = set(re.findall(r"`([a-z]+)`", "".join(re.findall(r"^\| (`.*?) \|", table, re.M))))
    assert listed == told | {"renewed"}


def test_the_page_for_agents_is_short() -> None:
    assert len(AGENTS.split()) <= AGENTS_WORDS


def test_the_janitors_unit_is_one_that_systemd_takes(tmp_path: Path) -> None:
    (unit,) = fences(CLI, "ini")
    path = tmp_path / "dibs-janitor.service"
    path.write_text(unit.replace("/usr/local/bin/dibs", sys.executable).replace("User=tasks\n", ""))
    tool = shutil.which("systemd-analyze")
    if tool is None:
        pytest.skip("THE UNIT WAS NOT TRIED: systemd-analyze is not installed")
    done = subprocess.run([tool, "verify", path], capture_output=True, text=True, timeout=PATIENCE)
    if "Failed to" in done.stderr and path.name not in done.stderr:
        pytest.skip(f"THE UNIT WAS NOT TRIED: {done.stderr.strip()}")
    assert path.name not in done.stderr


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    """An environment with `dibs` on the path, as after an installation."""
    binary = tmp_path / "bin" / "dibs"
    binary.parent.mkdir()
    binary.write_text(f'#!/bin/sh\nexec {sys.executable} -m dibs "$@"\n')
    binary.chmod(0o755)
    (tmp_path / "work").mkdir()
    path = f"{binary.parent}:{os.environ['PATH']}"
    return os.environ | {"PATH": path, "PYTHONPATH": str(ROOT / "core"), "HOME": str(tmp_path)}


def run(env: dict[str, str], script: str) -> str:
    """Execute a script as it stands; every line of it must succeed."""
    done = subprocess.run(
        ["sh", "-eu", "-c", script],
        env=env,
        cwd=Path(env["HOME"]) / "work",
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, (script, done.stdout, done.stderr)
    return done.stdout


def test_the_readmes_examples_run_as_they_stand(env: dict[str, str]) -> None:
    _, _, tour = README.partition("## Five minutes")
    examples = [text for text in fences(tour, "sh") if ".venv" not in text]
    assert len(examples) >= 4
    work = Path(env["HOME"]) / "work"
    for language, blocks in (("sh", examples), ("python", fences(tour, "python"))):
        assert blocks
        for block in blocks:
            if language == "python":
                (work / "worker.py").write_text(block)
                assert "available" in run(env, f"{sys.executable} -W error worker.py")
            else:
                run(env, block)
    assert (work / "tasks").is_dir()


def test_the_command_lines_examples_run_as_they_stand(env: dict[str, str]) -> None:
    run(
        env, "dibs -d tasks init; for id in a b; do echo $id | dibs -d tasks add $id --file -; done"
    )
    (block,) = fences(CLI, "sh")
    assert run(env, block) == "one at a time\n"
    work = Path(env["HOME"]) / "work"
    assert [(work / f"out-{name}-1").read_text() for name in "ab"] == ["a\n", "b\n"]


def test_the_janitors_lines_run_with_the_little_that_cron_gives(env: dict[str, str]) -> None:
    home = env["HOME"]
    (table,) = re.findall(r"^```\n(PATH=.*?)^```$", CLI, re.DOTALL | re.MULTILINE)
    for real, there in (("/usr/local", home), ("/srv", home), ("/var/lib/node_exporter", home)):
        table = table.replace(real, there)
    path, *lines = table.splitlines()
    (Path(home) / "tasks").mkdir()
    for line in lines:
        command = ["env", "-i", f"HOME={home}", path, "sh", "-c", line.split(maxsplit=5)[5]]
        done = subprocess.run(command, cwd=home, capture_output=True, text=True, timeout=PATIENCE)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", ""), done
    assert "dibs_tasks" in (Path(home) / "dibs.prom").read_text()


def test_the_agents_examples_run_as_they_stand(env: dict[str, str]) -> None:
    task, supervised, lease = fences(AGENTS, "sh")
    out = run(env, "\n".join([task, supervised, lease]))
    work = Path(env["HOME"]) / "work"
    assert (work / "report-7.out").read_text() == "the work of fence 1\n"
    assert (work / "report-8.out").read_text() == "work\n"
    assert "the side effect" in out
    names = sorted(path.name.partition(".")[0] for path in (work / "tasks/done").iterdir())
    assert names == ["report-7", "report-8"]


def test_each_page_that_is_named_is_there() -> None:
    for page in (README, CLI, AGENTS):
        for link in re.findall(r"\]\(([^)#:]+)\)", page):
            assert (ROOT / link).exists(), link
