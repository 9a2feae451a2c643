"""The documentation matches the code, and its examples run unchanged."""

from __future__ import annotations

import argparse
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from dibs.cli import grammar, look, running, topics
from dibs.cli.grammar import VERBS, parser_of
from dibs.cli.refusal import status
from dibs.cli.stats import gather
from dibs.model.errors import DibsError
from dibs.model.filters import NUMBERS, TEXTS
from tests.core.tools import Place
from tests.patience import PATIENCE

ROOT = Path(__file__).parents[2]
CLI, AGENTS = ((ROOT / name).read_text() for name in ("core/CLI.md", "core/dibs/AGENTS.md"))
COMMON = {"--help", "--board", "--dir", "--json"}
AGENTS_WORDS = 1200


def fences(page: str, language: str) -> list[str]:
    """The blocks of a page in one language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)


def row(word: str) -> str:
    """A verb's line in the table of verbs."""
    (line,) = re.findall(rf"^\| `{word}`(?: \(alias [^|]*\))? \|.*\|.*\|$", CLI, re.MULTILINE)[:1]
    return str(line)


def parser_for(word: str) -> argparse.ArgumentParser:
    return running.parser() if word == "run" else parser_of(word)


@pytest.mark.parametrize("word", [*VERBS, "run"])
def test_the_page_has_every_verb_with_every_option_and_no_other(word: str) -> None:
    parser = parser_for(word)
    known = {o for a in parser._actions for o in a.option_strings if o.startswith("--")} - COMMON
    arguments = row(word).split(" | ")[1]
    assert set(re.findall(r"`(--[a-z-]+)", arguments)) == known
    for action in parser._actions:
        if not action.option_strings and action.choices is None:
            assert str(action.metavar) in arguments


def test_the_page_has_the_same_exit_codes_as_the_help() -> None:
    listed = re.findall(r"^\| ([0-6]) \| (.*) \|$", CLI, re.MULTILINE)
    assert listed == re.findall(r"^  ([0-6])  (.*)$", topics.EXITS, re.MULTILINE)


def test_the_page_has_every_refusal_field_figure_and_filter(place: Place) -> None:
    kinds = [DibsError]
    for kind in kinds:
        kinds += kind.__subclasses__()
    words = {status(kind.__new__(kind)) for kind in kinds} - {"dibs-error", "stop"}
    for word in [*words, *gather(place.board).values, *TEXTS, *NUMBERS]:
        assert f"`{word}`" in CLI


def test_the_page_has_every_event() -> None:
    run = ROOT / "core/dibs/run"
    beside = (run.parent / name for name in ("intake.py", "model/waiters.py"))
    pages = (run / "job.py", run / "supervisor.py", *beside)
    code = "".join(page.read_text() for page in pages)
    events = set(re.findall(r"(?:report\(|outcome(?:, [^=]*)? = )\"([a-z]+)\"", code))
    events |= set(
        re.findall(r"\"([a-z]+)\" if isinstance\(stop, Lost\) else \"([a-z]+)\"", code)[0]
    )
    _, _, table = CLI.partition("| event | further fields |")
    listed = set(re.findall(r"`([a-z]+)`", "".join(re.findall(r"^\| (`.*?) \|", table, re.M))))
    assert listed == events | {"renewed"}


def test_the_page_for_agents_is_short() -> None:
    assert len(AGENTS.split()) <= AGENTS_WORDS


@pytest.mark.parametrize("name", ["serve", "serve-tls"])
def test_systemd_accepts_the_units(tmp_path: Path, name: str) -> None:
    serve, tls = fences((ROOT / "docs/running-serve.md").read_text(), "ini")
    unit = {"serve": serve, "serve-tls": serve + tls}[name]
    path = tmp_path / f"dibs-{name}.service"
    path.write_text(unit.replace("/usr/local/bin/dibs", sys.executable))
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
    """Run a script unchanged; every line of it must succeed."""
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


def test_the_examples_of_the_command_line_page_run_unchanged(env: dict[str, str]) -> None:
    run(
        env, "dibs -d tasks init; for id in a b; do echo $id | dibs -d tasks add $id --file -; done"
    )
    (block,) = fences(CLI, "sh")
    assert run(env, block) == "one at a time\n"
    work = Path(env["HOME"]) / "work"
    assert [path.read_text() for path in sorted(work.glob("out-?.f1.*"))] == ["a\n", "b\n"]


def test_the_examples_for_agents_run_unchanged(env: dict[str, str]) -> None:
    task, supervised, lease = fences(AGENTS, "sh")
    out = run(env, "\n".join([task, supervised, lease]))
    work = Path(env["HOME"]) / "work"
    assert (work / "report-7.out").read_text() == "the work of fence 1\n"
    assert (work / "report-8.out").read_text() == "work\n"
    assert "the side effect" in out
    done = (work.parent / "example-tasks/done").iterdir()
    names = sorted(path.name.partition(".")[0] for path in done)
    assert names == ["report-7", "report-8"]


def test_each_page_that_is_named_exists() -> None:
    for page in (ROOT / "README.md", *(ROOT / "docs").glob("*.md"), *(ROOT / "core").rglob("*.md")):
        for link in re.findall(r"\]\(([^)#:]+)\)", page.read_text()):
            assert (page.parent / link).exists(), f"{page}: {link}"


@pytest.mark.parametrize("word", ["dibs", *VERBS, "run"])
def test_each_verbs_help_ends_with_examples_that_the_command_line_accepts(word: str) -> None:
    text = grammar.overview() if word == "dibs" else parser_for(word).format_help()
    _, found, lines = text.partition("\nexample")
    assert found
    for line in lines.splitlines()[1:]:
        commands = example_commands(line)
        assert commands
        for command in commands:
            assert word in ("dibs", *command)
            assert grammar.parse(command).run is not None


def example_commands(line: str) -> list[list[str]]:
    """The arguments of each `dibs` in a line of shell."""
    plain = line.replace('"$(', "$(").replace(')"', ")")
    found: list[list[str]] = []
    reading = False
    for word in shlex.shlex(plain, posix=True, punctuation_chars="();|&>"):
        if word == "dibs":
            found.append([])
            reading = True
        elif set(word) <= set("();|&>"):
            reading = False
        elif reading:
            found[-1].append(word)
    return found


@pytest.mark.parametrize("word", ["claim", "renew", "run"])
def test_help_of_a_verb_is_its_help_page(word: str, capsys: pytest.CaptureFixture[str]) -> None:
    for argv in (["help", word], [word, "--help"]):
        with pytest.raises(SystemExit) as caught:
            grammar.parse(argv)
        assert caught.value.code == 0
        assert capsys.readouterr().out.startswith(f"usage: dibs {word} ")


def test_the_help_of_ls_names_every_field_and_state_and_that_of_paths_prints_no_path() -> None:
    words = re.findall(r"[a-z]+", parser_of("ls").format_help())
    assert {*TEXTS, *NUMBERS, *look.ORDER} <= set(words)
    line = [sys.executable, "-m", "dibs_tui.cli", "paths", "--help"]
    done = subprocess.run(line, capture_output=True, text=True, check=True, timeout=PATIENCE)
    assert done.stdout.split() == parser_of("paths").format_help().split()
