"""Every example in the help runs, on a board where it makes sense."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

import pytest

import dibs
from dibs.cli.examples import EXAMPLES
from tests.core.tools import settle
from tests.patience import PATIENCE

CHECKOUT = Path(dibs.__file__).parents[2]
LINES = [line for lines in EXAMPLES.values() for line in lines]
NAMED = re.compile(r"\S*report-7\.f[1-9a-z]*\.web-3-0A1B2C3D4E(\.asked)?")
"""The name of a claim in an example; here it is the one that the scene has printed as $name."""
CLAIM = "dibs add report-7; claim=$(dibs claim --owner web-3); name=$claim; DIBS_CLAIM=$claim"
STALE = "dibs add report-7; name=$(sh -c 'dibs claim --owner web-3 --pid $$')"
FAILED = f'{CLAIM}; name=$(dibs park "$(dibs fail "$claim")")'
DONE = f'{CLAIM}; dibs done "$claim"'
TRY = "dibs run report-7 --log -- sh -c 'echo made; exit 1' || true"
OUTPUT = f"dibs add report-7; {TRY}"

COPIED = "srv/tasks"
SELF_SIGNED = "-x509 -newkey rsa:2048 -nodes -subj /CN=x -keyout key.pem -out cert.pem"


class Scene(NamedTuple):
    """What is there before an example, and what shows that it has worked."""

    before: str = "dibs add report-7"
    until: str = ""
    """For an example that runs until stopped: a command that succeeds once it has worked."""
    code: int = 0


SCENES = {
    "dibs init && dibs add report-7": Scene(""),
    "dibs add report-7 --file report-7.json --priority 9": Scene("echo {} > report-7.json"),
    "dibs add nightly --in 1h": Scene(""),
    "dibs add a b c --max-waiting 1000 --wait 5m": Scene(""),
    "dibs claim report-7 --resume report-7.f3.web-3-0A1B2C3D4E": Scene(CLAIM),
    'dibs release "$lock" --reason "not needed"': Scene("lock=$(dibs acquire deploy)"),
    "dibs run --loop --wait -- sh -c 'build < \"$DIBS_PAYLOAD\"'": Scene(
        until="dibs ls state=done | grep report-7"
    ),
    "dibs run --loop --wait --log --timeout 2h --idle 10m -- ./work.sh": Scene(
        until="dibs ls state=done | grep report-7"
    ),
    'lock=$(dibs acquire deploy --owner web-3 --ttl 60 --meta "release 1.4")': Scene(""),
    'dibs acquire deploy --lease "$lock" --ttl 120': Scene("lock=$(dibs acquire deploy)"),
    "dibs ls --mine": Scene(CLAIM),
    "dibs logs report-7 --follow": Scene(OUTPUT),
    "dibs logs report-7 --attempt 2": Scene(f"{OUTPUT}; {TRY}"),
    "dibs log --last 20 --follow": Scene(until="grep -q add out"),
    "dibs watch state=stale --notify 'notify-send -u critical'": Scene(
        STALE, until="grep stale notified"
    ),
    "dibs --json watch id=deploy": Scene(
        "", until='dibs release "$(dibs acquire deploy)" && grep deploy out'
    ),
    "dibs wait report-7 report-8 --timeout 2h": Scene(
        f'{DONE}; dibs add report-8; dibs done "$(dibs claim)"'
    ),
    "dibs wait 'id^=report-' && make summary": Scene(DONE),
    'dibs force-release report-7.f3.web-3-0A1B2C3D4E --reason "host is down"': Scene(CLAIM),
    "dibs requeue failed/report-7.f3a5.web-3-0A1B2C3D4E": Scene(FAILED),
    "dibs requeue --from failed.txt --dry-run": Scene(f"{FAILED}; echo report-7 > failed.txt"),
    'dibs answer report-7.f3.web-3-0A1B2C3D4E.asked "yes, until 2.0"': Scene(
        f'{CLAIM}; name=$(dibs ask "$claim" "until when?")'
    ),
    "dibs resume": Scene("dibs pause --reason r"),
    "dibs resume --host 'web-*'": Scene("dibs pause --reason r --host 'web-*'"),
    "dibs undo": Scene("dibs add report-7; dibs prioritize report-7.available 9", code=2),
    "dibs undo report-7.f0p9.available report-7.available": Scene(
        "dibs add report-7; dibs prioritize report-7.available 9"
    ),
    "dibs undo --all report-7.f0p9.available report-7.available": Scene(
        "dibs add report-7; dibs prioritize report-7.available 9"
    ),
    "dibs reap --every 30s": Scene(STALE, until="grep report-7 out"),
    'dibs reap report-7.f3.web-3-0A1B2C3D4E --reason "host is down"': Scene(STALE),
    "dibs -d /mnt/tasks check --probe --peer /srv/tasks": Scene("ln -s srv mnt"),
    "dibs copy /srv/tasks 'postgresql://db.example/tasks'": Scene(
        f"dibs -d {COPIED} add report-7; dibs -d {COPIED} pause --locks --reason moving"
    ),
    "dibs -d /srv/tasks serve": Scene(until="grep ^http: out"),
    "dibs serve --listen '0.0.0.0:7373' --tls-cert cert.pem --tls-key key.pem": Scene(
        f"dibs token add ci --role worker; openssl req {SELF_SIGNED}", until="grep ^https: out"
    ),
    "dibs token rm ci": Scene("dibs token add ci --role worker"),
    "dibs forget report-7": Scene(f"{DONE}; dibs purge --done --older-than 0"),
    "dibs forget --from old-ids.txt": Scene(
        f"{DONE}; dibs purge --done --older-than 0; echo report-7 > old-ids.txt"
    ),
}
WITH_CLAIM = ("beat", "note", "verify", "ask", "done", "fail", "release")
"""The verbs of which all other examples act on a claim."""


def scene_of(word: str, line: str) -> Scene:
    return SCENES.get(line) or Scene(CLAIM if word in WITH_CLAIM else "dibs add report-7")


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """A folder with two boards, and the programs and scripts that the examples use."""
    for board in (tmp_path / "tasks", tmp_path / "srv/tasks", tmp_path / "srv/jobs"):
        settle(board)
    (tmp_path / "bin").mkdir()
    programs = {
        "bin/dibs": f'exec {sys.executable} -m dibs_tui.cli "$@"',
        "bin/make": "echo made",
        "bin/build": "cat",
        "bin/claude": 'shift 4; exec "$@"',  # as it does when it starts a server
        "bin/notify-send": f'echo "$@" >> {tmp_path}/notified',
        **dict.fromkeys(("backup.sh", "train.sh", "work.sh"), "echo worked"),
    }
    for name, text in programs.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755)
    (tmp_path / "answer.json").write_text("42")
    return tmp_path


def started(work: Path, script: str) -> subprocess.Popen[bytes]:
    """A script in that folder, with `tasks` as the board; its output goes to the file `out`."""
    core, tui = CHECKOUT / "core", CHECKOUT / "tui"
    env = os.environ | {
        "PATH": f"{work / 'bin'}:{os.environ['PATH']}",
        "PYTHONPATH": f"{core}:{tui}",
        "DIBS_BOARD": str(work / "tasks"),
        "DIBS_SESSION": "s-1",
        "HOME": str(work),
    }
    with open(work / "out", "wb") as out:
        return subprocess.Popen(
            ["bash", "-euac", script], cwd=work, env=env, stdin=subprocess.DEVNULL,
            stdout=out, stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip


def succeeds(work: Path, command: str) -> bool:
    env = os.environ | {
        "PATH": f"{work / 'bin'}:{os.environ['PATH']}",
        "PYTHONPATH": f"{CHECKOUT / 'core'}:{CHECKOUT / 'tui'}",
        "DIBS_BOARD": str(work / "tasks"),
    }
    line = ["bash", "-euc", command]
    return not subprocess.run(line, cwd=work, env=env, capture_output=True, timeout=60).returncode


@pytest.mark.parametrize(
    ("word", "line"), [(word, line) for word, lines in EXAMPLES.items() for line in lines]
)
def test_an_example_of_the_help_runs(work: Path, word: str, line: str) -> None:
    scene = scene_of(word, line)
    text = NAMED.sub('"$name"', line).replace("/srv/", f"{work}/srv/")
    text = text.replace("/mnt/", f"{work}/mnt/")
    text = text.replace(
        "postgresql://db.example/", f"{work}/srv/copied-"
    )  # tests/postgres has both
    if word == "serve":
        if "--tls-cert" in line and shutil.which("openssl") is None:
            pytest.skip("NO TLS: openssl is not installed")
        text = text.replace(":7373", ":0") if ":7373" in text else f"{text} --listen 127.0.0.1:0"
    before = f"{{ {scene.before or ':'}; }} >before 2>&1\n"
    process = started(work, f"{before}{'exec ' if scene.until else ''}{text}")
    try:
        if scene.until:
            end = time.monotonic() + PATIENCE
            while not succeeds(work, scene.until):
                assert process.poll() is None, (work / "out").read_text()
                assert time.monotonic() < end, (work / "out").read_text()
            process.send_signal(signal.SIGINT)
        code = process.wait(PATIENCE)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    said = (work / "before").read_text() + (work / "out").read_text()
    stopped = (0,) if word == "serve" else (130, -signal.SIGINT)  # a server ends well by a signal
    assert code in (stopped if scene.until else (scene.code,)), said
    assert "Traceback" not in said


def test_every_scene_belongs_to_an_example() -> None:
    assert [line for line in SCENES if line not in LINES] == []
