"""Completion in the real shells: the test types a line, presses tab and reads the line."""

from __future__ import annotations

import os
import pty
import re
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import dibs
from dibs.cli.running import parser
from tests.core.test_cli import Command
from tests.core.tools import settle
from tests.patience import PATIENCE

RUN = {o for a in parser()._actions for o in a.option_strings if o.startswith("--")}
START = {"bash": ["bash", "--norc", "--noprofile", "-i"], "zsh": ["zsh", "-f", "-i"]}
LOAD = {"bash": ".", "zsh": "autoload -U compinit; compinit -D -u; ."}


def needed(shell: str) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"THE COMPLETION OF {shell} WAS NOT TRIED: it is not installed")


@pytest.fixture
def command(scratch: Path) -> Command:
    """`dibs` on the PATH of a shell, on a board with the one task `task-7`."""
    settle(scratch / "board")
    dibs.open(scratch / "board").add("task-7")
    found = Command(scratch / "board")
    program = scratch / "bin/dibs"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m dibs "$@"\n')
    program.chmod(0o755)
    found.env |= {"DIBS_DIR": str(found.path), "PATH": f"{program.parent}:/usr/bin:/bin"}
    found.env |= {"TERM": "dumb", "HOME": str(scratch), "LC_ALL": "C"}
    for shell in ("bash", "zsh", "fish"):
        (scratch / f"dibs.{shell}").write_bytes(found.run("completion", shell).stdout)
    return found


class Prompt:
    """An interactive shell on its own terminal, with the completion loaded."""

    def __init__(self, shell: str, command: Command, load: str = "") -> None:
        self._seen = ""
        self.pid, self._keys = pty.fork()
        if not self.pid:
            os.chdir(command.path)
            os.execvpe(shell, START[shell], command.env)
        load = load or f"{LOAD[shell]} {command.path.with_name(f'dibs.{shell}')}"
        self._type(f"PS1='> '; {load}; echo rea''dy\n")
        self._wait(r"ready\r*\n")

    def complete(self, line: str) -> str:
        """The line after tab is pressed at its end, as the shell prints it."""
        self._type(f"{line}\t\x01echo GOT \x05 END\n")
        return self._wait(r"\nGOT (.*?) *END").group(1)

    def _type(self, keys: str) -> None:
        os.write(self._keys, keys.encode())

    def _wait(self, pattern: str) -> re.Match[str]:
        end = time.monotonic() + PATIENCE
        while (found := re.search(pattern, self._seen)) is None:
            left = end - time.monotonic()
            assert left > 0, self._seen
            if select.select([self._keys], [], [], left)[0]:
                self._seen += os.read(self._keys, 4096).decode("utf-8", "replace")
        self._seen = self._seen[found.end() :]
        return found

    def end(self) -> None:
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        os.close(self._keys)


@pytest.fixture(params=["bash", "zsh"])
def prompt(request: pytest.FixtureRequest, command: Command) -> Iterator[Prompt]:
    needed(request.param)
    found = Prompt(request.param, command)
    yield found
    found.end()


@pytest.fixture
def fish(command: Command) -> Callable[[str], set[str]]:
    """What fish offers for a line."""
    needed("fish")
    source = f"source {command.path.with_name('dibs.fish')}"

    def offered(line: str) -> set[str]:
        done = subprocess.run(
            ["fish", "--no-config", "-c", f"{source}; complete -C '{line}'"],
            cwd=command.path,
            env=command.env,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )
        assert (done.returncode, done.stderr) == (0, "")
        return {line.partition("\t")[0] for line in done.stdout.splitlines()}

    return offered


def test_bash_and_zsh_complete_the_options_of_run(prompt: Prompt) -> None:
    for option in sorted(RUN):
        short = option[:-1]
        if sum(o.startswith(short) for o in RUN) == 1:
            assert prompt.complete(f"dibs run {short}") == f"dibs run {option}"


def test_bash_and_zsh_complete_ids_for_run_and_nothing_of_dibs_after_the_dashes(
    prompt: Prompt,
) -> None:
    assert prompt.complete("dibs run ta") == "dibs run task-7"
    assert prompt.complete("dibs run --loop -- make --loc") == "dibs run --loop -- make --loc"


def test_bash_and_zsh_complete_verbs_options_and_claims(prompt: Prompt, command: Command) -> None:
    claim = dibs.open(command.path).claim("task-7")
    assert claim is not None
    assert prompt.complete("dibs verif") == "dibs verify"
    assert prompt.complete("dibs add --prio") == "dibs add --priority"
    assert prompt.complete("dibs show ta") == "dibs show task-7"
    assert prompt.complete("dibs done ta") == f"dibs done {claim.name}"


def test_bash_and_zsh_complete_from_the_board_named_in_the_line(
    prompt: Prompt, command: Command
) -> None:
    settle(other := command.path.with_name("other"))
    board = dibs.open(other)
    board.add("v1.2")
    board.add("v1.3")
    assert prompt.complete(f"dibs -d {other} verif") == f"dibs -d {other} verify"
    assert prompt.complete(f"dibs --json --dir={other} show v1.2").endswith("show v1.2")
    assert prompt.complete(f"dibs -d {other} park v") == f"dibs -d {other} park v1=2E"
    assert prompt.complete("dibs park -d ../other v1=2E2") == (
        "dibs park -d ../other v1=2E2.available"
    )


HOSTILE_IDS = ["a$(touch bad)", "b`touch bad`", "*(e:touch bad:)", "c d", "e;f", "g'h"]


def test_bash_and_zsh_neither_run_nor_expand_an_id(prompt: Prompt, command: Command) -> None:
    board = dibs.open(command.path)
    for ident in HOSTILE_IDS:
        board.add(ident)
        begin = ident[0].replace("*", r"\*")
        assert prompt.complete(f"dibs show {begin}") == f"dibs show {ident}"
    assert not (command.path / "bad").exists()


@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_setup_makes_a_shell_complete_and_a_missing_dibs_is_quiet(
    shell: str, command: Command
) -> None:
    needed(shell)
    home = Path(command.env["HOME"])
    assert command.run("setup", shell, "--yes").returncode == 0
    prompt = Prompt(shell, command, f". {home}/.{shell}rc")
    try:
        assert prompt.complete("dibs verif") == "dibs verify"
        assert prompt.complete("dibs show ta") == "dibs show task-7"
    finally:
        prompt.end()
    (home / "bin/dibs").rename(home / "bin/gone")
    prompt = Prompt(shell, command, f". {home}/.{shell}rc")
    try:
        assert prompt.complete("dibs verif") == "dibs verif"
        assert prompt.complete("dibs verif") == "dibs verif"
    finally:
        prompt.end()


def test_setup_makes_fish_complete(command: Command) -> None:
    needed("fish")
    assert command.run("setup", "fish", "--yes").returncode == 0
    line = ["fish", "-c", "complete -C 'dibs verif'"]
    done = subprocess.run(line, env=command.env, capture_output=True, text=True, timeout=PATIENCE)
    assert done.stdout.split("\t")[0].strip() == "verify", done


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_setup_for_a_shell_is_taken_out_byte_for_byte(shell: str, command: Command) -> None:
    home = Path(command.env["HOME"])
    file = home / {"fish": ".config/fish/completions/dibs.fish"}.get(shell, f".{shell}rc")
    command.env.pop("XDG_CONFIG_HOME", None)
    command.env.pop("ZDOTDIR", None)
    before = "alias ll='ls -l' # é"
    file.parent.mkdir(parents=True, exist_ok=True)
    for text in (None, before):
        if text is not None:
            file.write_text(text)
        for _ in range(2):
            assert command.run("setup", shell, "--yes").returncode == 0
        assert file.read_text().count("dibs: begin") == 1
        assert command.run("setup", shell, "--remove", "--yes").returncode == 0
        assert (file.read_text() if file.exists() else None) == text


def test_fish_completes_the_options_of_run(fish: Callable[[str], set[str]]) -> None:
    assert fish("dibs run --") >= RUN
    assert fish("dibs run --lo") == {"--lock", "--loop", "--log", "--log-json"}


def test_fish_completes_ids_for_run_and_nothing_of_dibs_after_the_dashes(
    fish: Callable[[str], set[str]],
) -> None:
    assert fish("dibs run ta") == {"task-7"}
    assert fish("dibs run --loop -- ta") == {"task-7.available"}, (
        "a file, which the command may want"
    )
    assert not fish("dibs run --loop -- make --lo") & RUN


def test_fish_completes_verbs_options_and_claims(
    fish: Callable[[str], set[str]], command: Command
) -> None:
    claim = dibs.open(command.path).claim("task-7")
    assert claim is not None
    assert fish("dibs verif") == {"verify"}
    assert "--priority" in fish("dibs add --prio")
    assert fish("dibs done ta") == {claim.name}


def test_fish_completes_from_the_board_named_in_the_line(
    fish: Callable[[str], set[str]], command: Command
) -> None:
    settle(other := command.path.with_name("other"))
    dibs.open(other).add("far")
    assert fish(f"dibs -d {other} verif") == {"verify"}
    assert fish(f"dibs --json --dir={other} show fa") == {"far"}
    assert fish("dibs show -d ../other fa") == {"far"}


def test_fish_neither_runs_nor_expands_an_id(
    fish: Callable[[str], set[str]], command: Command
) -> None:
    board = dibs.open(command.path)
    for ident in HOSTILE_IDS:
        board.add(ident)
    assert fish("dibs show ") >= set(HOSTILE_IDS)
    assert not (command.path / "bad").exists()
