"""The hooks of an agent's client, with calls as Claude Code sends them (tests/core/hooks)."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import dibs
from dibs.cli import hook as hooks
from dibs.cli import main
from tests.contract.command import call as run_dibs
from tests.core.test_cli import CORE, Command
from tests.core.tools import Place
from tests.patience import PATIENCE

CALLS = Path(__file__).with_name("hooks")
SESSION = "5f0c1f0e-6a2b-4c1d-9a55-2f3b7c8d9e10"
OTHER = "00000000-6a2b-4c1d-9a55-2f3b7c8d9e10"


def call(name: str, cwd: object = "/", **changed: object) -> bytes:
    """A recorded call of the client, from a directory."""
    fields = json.loads((CALLS / f"{name}.json").read_text())
    return json.dumps(fields | {"cwd": str(cwd)} | changed).encode()


class Client:
    """Runs hooks as a client does, and notes what they answer."""

    def __init__(self, command: Command) -> None:
        self.command = command
        self.cwd = command.path.parent

    def send(self, event: str, data: bytes, **env: str) -> subprocess.CompletedProcess[str]:
        argv = ["-d", self.command.where, "hook", event]
        done = run_dibs(argv, self.command.env | env, given=data)
        out, err = done.stdout.decode(), done.stderr.decode()
        assert done.returncode == 0, err
        assert len(err.splitlines()) <= 1, err
        assert "Traceback" not in err
        return subprocess.CompletedProcess(argv, 0, out, err)

    def __call__(self, event: str, name: str = "", **changed: object) -> str:
        """Send a recorded call; it must not complain."""
        done = self.send(event, call(name or event, self.cwd, **changed))
        assert done.stderr == ""
        return done.stdout

    def refusal(self, name: str = "pre-tool-bash", **changed: object) -> str:
        """Why the tool is refused; empty if it may run."""
        answer = self("pre-tool", name, **changed)
        if not answer:
            return ""
        found = json.loads(answer)["hookSpecificOutput"]
        assert (found["hookEventName"], found["permissionDecision"]) == ("PreToolUse", "deny")
        return str(found["permissionDecisionReason"])


@pytest.fixture
def client(command: Command) -> Client:
    """A client whose commands belong to the session of the recorded calls."""
    command.env["DIBS_SESSION"] = SESSION
    for ident in ("a", "b"):
        command("add", ident)
    return Client(command)


@pytest.fixture
def hooked(place: Place, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., None]]:
    """Serves a hook in this process, on a board whose clock a test can move."""
    board = place.board
    monkeypatch.setattr("dibs.cli.boards.board_of", lambda args: place.other())
    before = os.getcwd()

    def serve(event: str, name: str = "", **changed: object) -> None:
        hooks.EVENTS[event](place.other(), hooks.read(call(name or event, "", **changed)))

    board.add("a")
    yield serve
    os.chdir(before)


def beats(place: Place) -> list[float]:
    """The ages of the claims, in seconds."""
    return [round(row.age or 0.0) for row in place.other().entries() if row.state == "claimed"]


def claimed(place: Place, session: str = SESSION, ident: str = "a", ttl: float = 60) -> dibs.Claim:
    claim = place.board.claim(ident, ttl=ttl, metadata=f"session={session}")
    assert claim is not None
    return claim


@pytest.mark.parametrize("name", ["post-tool-bash", "post-tool-subagent"])
def test_a_tool_call_beats_once_in_a_third_of_the_ttl(
    place: Place, hooked: Callable[..., None], name: str
) -> None:
    claimed(place)
    place.advance(19)
    hooked("post-tool", name)
    assert beats(place) == [19]
    place.advance(2)
    hooked("post-tool", name)
    assert beats(place) == [0]
    place.advance(19)
    hooked("post-tool", name)
    assert beats(place) == [19]


@pytest.mark.parametrize(("ttl", "soon"), [(60, 5), (300, 10)])
def test_a_tool_starts_with_nearly_the_whole_lease(
    place: Place, hooked: Callable[..., None], ttl: int, soon: int
) -> None:
    claimed(place, ttl=ttl)
    for shell in ("make", "dibs wait b"):
        place.advance(soon - 1)
        hooked("pre-tool", "pre-tool-bash", tool_input={"command": shell})
        assert beats(place) == [soon - 1]
        place.advance(2)
        hooked("pre-tool", "pre-tool-bash", tool_input={"command": shell})
        assert beats(place) == [0]
    place.advance(soon + 1)
    hooked("pre-tool", "pre-tool-read")
    assert beats(place) == [soon + 1]


def test_a_claim_that_is_lost_as_its_heartbeat_is_sent_stops_the_tool(
    place: Place,
    hooked: Callable[..., None],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    claim = claimed(place)
    place.advance(20)
    beat = hooks._beat

    def taken(*args: Any) -> None:
        place.other().force_release(f"{claim.name}.claimed", "stuck")
        beat(*args)

    monkeypatch.setattr(hooks, "_beat", taken)
    hooked("pre-tool", "pre-tool-write")
    assert '"deny"' in (said := capsys.readouterr().out)
    assert claim.name in said


@pytest.mark.parametrize(
    "session", [OTHER, SESSION[:-1], f"{SESSION}0", SESSION.upper(), "child-of-" + SESSION]
)
def test_the_tool_calls_of_another_session_do_not_beat(
    place: Place, hooked: Callable[..., None], monkeypatch: pytest.MonkeyPatch, session: str
) -> None:
    monkeypatch.setenv("DIBS_SESSION", SESSION)  # as a nested client inherits it
    claimed(place)
    place.advance(30)
    for event, name in (("post-tool", "post-tool-bash"), ("stop", ""), ("session-end", "")):
        hooked(event, name, session_id=session)
    assert beats(place) == [30]


def test_an_expired_claim_is_not_beaten_and_stops_side_effects(
    place: Place, hooked: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    claim = claimed(place)
    place.advance(61)
    hooked("post-tool", "post-tool-bash")
    (row,) = place.other().entries()
    assert row.state == "stale"
    assert not any(event.verb == "refused" for event in place.board.log.of("a"))
    hooked("pre-tool", "pre-tool-write")
    said = capsys.readouterr().out
    assert claim.name in said
    assert "its lease has expired" in said


def test_the_stop_of_a_turn_beats_and_shows_the_user_what_is_held(
    place: Place, hooked: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    hooked("stop")
    assert capsys.readouterr().out == ""
    claim = claimed(place)
    place.advance(30)
    hooked("stop")
    assert beats(place) == [0]
    assert claim.name in json.loads(capsys.readouterr().out)["systemMessage"]


def test_a_session_starts_with_its_claims_and_how_to_work(client: Client) -> None:
    claim = client.command("claim", "--owner", "me")
    lock = client.command("acquire", "door")
    client.command.env["DIBS_SESSION"] = OTHER
    foreign = client.command("claim", "--owner", "you")
    said = client("session-start")
    assert claim in said
    assert lock in said
    assert foreign not in said
    assert client.command.where in said
    for word in ("dibs claim", "dibs beat", "dibs done", "dibs ask", "Exit code 5"):
        assert word in said


def tokens(text: str) -> int:
    """At least as many tokens as a model's: short pieces of words, and each sign alone."""
    return len(re.findall(r"[A-Za-z]{1,5}|[0-9]{1,3}|[^\sA-Za-z0-9]", text))


def test_the_start_of_a_session_takes_less_than_400_tokens(client: Client) -> None:
    worst = "é" * 19 + "x"
    for ident in (worst, "report-7", "report-8", "report-9", "report-10", "report-11"):
        client.command("add", ident)
        client.command("claim", ident, "--owner", "claude-1")
    said = client("session-start")
    assert "more: `dibs ls --mine`" in said
    assert tokens(said) < 400
    listed = [line for line in said.splitlines() if line.startswith("Yours")]
    assert listed
    for line in listed:
        assert client.command("verify", line.split()[1]) == ""
    few = client("session-start", session_id=OTHER)
    assert "You have no claims." in few
    assert tokens(few) < 400


def test_the_commands_of_a_session_learn_its_id(client: Client, tmp_path: Path) -> None:
    file = tmp_path / "env"
    file.write_text("export OTHER=1\n")
    for _ in range(2):
        done = client.send("session-start", call("session-start"), CLAUDE_ENV_FILE=str(file))
        assert done.stderr == ""
    assert file.read_text() == f"export OTHER=1\nexport DIBS_SESSION={SESSION}\n"
    client.send("stop", call("stop", session_id="x; rm -rf /"), CLAUDE_ENV_FILE=str(file))
    evil = call("session-start", session_id="x; rm -rf /")
    assert "session_id" in client.send("session-start", evil, CLAUDE_ENV_FILE=str(file)).stderr
    assert file.read_text().count("\n") == 2


@pytest.mark.parametrize(
    ("kind", "why"),
    [
        ("/dev/full", "not a regular file"),
        ("/dev/zero", "not a regular file"),
        ("fifo", "not a regular file"),
        ("long", "longer than 1 MiB"),
        ("folder", "Is a directory"),
    ],
)
def test_a_file_for_the_environment_that_is_no_small_file_is_left_alone(
    client: Client, tmp_path: Path, kind: str, why: str
) -> None:
    path = tmp_path / kind
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    elif kind == "long":
        path.write_bytes(b"#" * ((1 << 20) + 1))
    limited = f"ulimit -v 1000000; exec {sys.executable} -m dibs"
    done = subprocess.run(
        ["sh", "-c", f"{limited} -d {client.command.where} hook session-start"],
        input=call("session-start"),
        capture_output=True,
        env=client.command.env | {"CLAUDE_ENV_FILE": str(path)},
        timeout=PATIENCE,
    )
    said = f"dibs: hook session-start: {path}: {why}: claims are not tied to this session\n"
    assert (done.returncode, done.stderr.decode()) == (0, said)
    assert b"dibs claim" in done.stdout
    assert kind != "long" or path.stat().st_size == (1 << 20) + 1


def test_all_that_is_wrong_is_one_line(client: Client, tmp_path: Path) -> None:
    client.command.where = str(tmp_path / "missing")
    said = client.send("session-start", call("session-start"), CLAUDE_ENV_FILE=str(tmp_path)).stderr
    begin = f"dibs: hook session-start: {tmp_path}: Is a directory: claims are not tied to "
    assert said.startswith(begin)
    assert said.count("\n") == 1
    assert client.command.where in said


@pytest.mark.parametrize("argv", [[], ["stop", "more"], ["stop", "--unheard-of"], ["--", "a", "b"]])
def test_a_hook_with_invalid_arguments_never_breaks_a_client(
    command: Command, argv: list[str], capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(["-d", command.where, "hook", *argv]) == 0
    said = capfd.readouterr()
    assert said.out == ""
    assert said.err.startswith("dibs: hook: ")
    assert said.err.count("\n") == 1


@pytest.mark.parametrize("cwd", ["a\0b", "/\ud800", "/no/such/directory"])
def test_a_directory_of_the_input_that_cannot_be_entered_is_said_plainly(
    client: Client, cwd: str
) -> None:
    said = client.send("stop", call("stop", cwd)).stderr
    assert said.startswith("dibs: hook stop: the cwd of the input")
    assert "Error" not in said
    assert "Errno" not in said


@pytest.mark.parametrize("by", ["force-release", "park", "reap", "resume"])
def test_a_side_effect_after_a_lost_claim_is_refused_until_the_agent_asks(
    client: Client, by: str
) -> None:
    command = client.command
    with subprocess.Popen(["sleep", "600"]) as holder:
        claim = command("claim", "a", "--owner", "me", "--ttl", "600", "--pid", str(holder.pid))
        assert client.refusal() == ""
        holder.kill()
    if by == "resume":
        command.env["DIBS_SESSION"] = OTHER
        command("claim", "--resume", claim)
        command.env["DIBS_SESSION"] = SESSION
    elif by == "expired":
        os.utime(command.path / f".dibs/records/{claim}", (1, 1))
        command("reap", claim)
    else:
        command(by, f"{claim}.claimed", "--reason", "stuck")
    for name in ("pre-tool-bash", "pre-tool-write"):
        why = client.refusal(name)
        assert claim in why
        assert why.count(". ") == 0, "one sentence"
    assert client.refusal(session_id=OTHER) == ""
    assert client.refusal("pre-tool-read") == ""
    assert client.refusal(tool_input={"command": f"dibs verify {claim}"}) == ""
    assert claim in client("session-start")
    command("verify", claim, code=5)
    assert client.refusal() == ""
    assert claim not in client("session-start")


@pytest.mark.parametrize("end", ["done", "fail", "release", "ask", "resume"])
def test_a_claim_that_the_session_has_ended_itself_is_not_lost(client: Client, end: str) -> None:
    claim = client.command("claim", "a", "--owner", "me")
    argv = {"ask": ["ask", claim, "why?"], "resume": ["claim", "--resume", claim]}
    client.command(*argv.get(end, [end, claim]))
    assert client.refusal() == ""


@pytest.mark.parametrize(
    "shell",
    [
        "dibs run -- rm -rf x",
        "dibs verify x; rm x",
        "dibs ls | tee x",
        "dibs ls > x",
        "dibs ls `rm x`",
        "dibs ls $(rm x)",
        "dibs ls & rm x",
        "dibs ls\nrm x",
        "dibs force-release x",
        "dibs-evil verify",
        "/tmp/dibs verify x",
        "./dibs verify x",
        "dibs -d x;reboot;dibs verify x",
        "dibs -d $(reboot) verify x",
        "dibs -d `reboot` verify x",
        "echo dibs ls",
        "",
    ],
)
def test_only_single_commands_of_dibs_pass_after_a_loss(shell: str) -> None:
    assert not hooks._match_dibs(shell)


@pytest.mark.parametrize(
    "shell",
    [
        "dibs prime",
        "dibs -d tasks verify a.f1.me-0123456789",
        'dibs -d "$BOARD" verify x',
        ' dibs --json done "$claim" ',
    ],
)
def test_a_single_command_of_dibs_passes_after_a_loss(shell: str) -> None:
    assert hooks._match_dibs(shell)


def test_the_end_of_a_session_releases_its_claims_and_no_others(client: Client) -> None:
    command = client.command
    mine = [command("claim", "a", "--owner", "me"), command("acquire", "door")]
    command.env["DIBS_SESSION"] = OTHER
    other = command("claim", "b", "--owner", "me")
    assert client("session-end") == ""
    (row,) = map(json.loads, command("--json", "ls", "state=claimed").splitlines())
    assert row["claim"] == other
    assert command("status", "door") == "free"
    task = json.loads(command("--json", "ls", "state=available"))
    assert (task["id"], task["attempts"]) == ("a", 0)
    for claim in mine:
        command("verify", claim, code=5)
    assert "session ended: prompt_input_exit" in command("log", "a")


def test_a_command_under_run_outlives_the_session(client: Client) -> None:
    command = client.command
    script = f"{sys.executable} -m dibs -d {command.where} hook session-end < call; echo still here"
    (command.path.parent / "call").write_bytes(call("session-end", command.path.parent))
    done = subprocess.run(
        [sys.executable, "-m", "dibs", "-d", command.where, "run", "--", "sh", "-c", script],
        cwd=command.path.parent,
        env=command.env,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert (done.returncode, done.stdout) == (0, "still here\n"), done


GARBAGE = {
    "nothing": b"",
    "no JSON": b"{",
    "not UTF-8": b"\xff\xfe\x00",
    "a list": b"[]",
    "no session": b'{"cwd": "/"}',
    "a number as session": b'{"session_id": 7}',
    "control characters": b'{"session_id": "a\\u001b[2J"}',
    "deep": b"[" * 200_000,
    "no directory": b'{"session_id": "s", "cwd": "/no/such\\u001b[2J\\ndirectory"}',
    "a NUL in the directory": b'{"session_id": "s", "cwd": "/\\u0000"}',
    "half of a surrogate": b'{"session_id": "s", "cwd": "/\\ud800"}',
}


@pytest.mark.parametrize("event", [*hooks.EVENTS, "unheard-of", ""])
@pytest.mark.parametrize("data", GARBAGE.values(), ids=GARBAGE)
def test_malformed_input_never_breaks_a_client(
    event: str, data: bytes, command: Command, monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    done = served(event, data, command.where, monkeypatch, capfd)
    assert done.out == ""
    assert done.err.startswith(f"dibs: hook {event}")
    assert done.err.count("\n") == 1
    assert done.err.rstrip("\n").isprintable()


def served(
    event: str, data: bytes, where: str, monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> Any:  # fmt: skip
    """What a hook prints that is served in this process; it must exit with 0."""

    class Stdin:
        class buffer:
            @staticmethod
            def read(size: int) -> bytes:
                return data[:size]

    monkeypatch.setattr(sys, "stdin", Stdin)
    before = os.getcwd()
    try:
        assert main(["-d", where, "hook", event]) == 0
    finally:
        os.chdir(before)
    return capfd.readouterr()


@pytest.mark.parametrize("event", hooks.EVENTS)
def test_a_missing_or_unreadable_board_never_breaks_a_client(
    event: str, scratch: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    (scratch / "file").write_text("x")
    (scratch / "torn/.dibs").mkdir(parents=True)
    (scratch / "torn/.dibs/records").write_text("no folder")
    (scratch / "torn/.dibs/claims").touch()
    data = call("post-tool-bash")
    for where in ("missing", "file", "torn"):
        done = served(event, data, str(scratch / where), monkeypatch, capfd)
        assert done.out == ""
        assert done.err.count("\n") == 1, done.err


@pytest.mark.parametrize("event", hooks.EVENTS)
def test_a_hook_makes_no_board(
    event: str, scratch: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    served(event, call("post-tool-bash", scratch), str(scratch), monkeypatch, capfd)
    assert list(scratch.iterdir()) == []


def test_invalid_records_and_a_torn_log_do_not_stop_a_hook(client: Client) -> None:
    claim = client.command("claim", "a")
    records = client.command.path / ".dibs/records"
    (records / "x.f1.me-0123456789").write_bytes(b"\xff{" * 100 + SESSION.encode())
    (records / "y.f1.me-0123456789").mkdir()
    (records / "z").symlink_to("/etc/passwd")
    os.mkfifo(records / "w.f1.me-0123456789")
    for journal in (client.command.path / ".dibs/journal").iterdir():
        with journal.open("ab") as file:
            file.write(b'{"at": 1e400, "verb": "reap", "src": "\x1b[2J\n\xff')
    assert claim in client("session-start")
    assert client.refusal() == ""


def test_what_another_user_wrote_into_the_log_cannot_reach_the_terminal(client: Client) -> None:
    claim = client.command("claim", "a")
    board = dibs.open(client.command.path)
    board.force_release(claim, "stuck", by="eve")
    journal = next((client.command.path / ".dibs/journal").iterdir())
    journal.write_text(journal.read_text().replace('"eve"', json.dumps("\x1b[2J" + "e" * 500)))
    why = client.refusal()
    assert claim in why
    assert why.isprintable()
    assert len(why) < 500
    assert all(line.isprintable() for line in client("session-start").splitlines())


def test_a_closed_standard_output_is_no_error_for_the_client(client: Client) -> None:
    client.command("claim", "a")
    line = f"exec {sys.executable} -m dibs -d {client.command.where} hook session-start >&-"
    for script in (line, line.replace(">&-", ">/dev/full")):
        done = subprocess.run(
            ["sh", "-c", script],
            input=call("session-start"),
            capture_output=True,
            env=client.command.env,
            timeout=PATIENCE,
        )
        assert done.returncode == 0, done
        assert done.stderr.count(b"\n") <= 1


NOT_NEEDED = ("difflib", "subprocess", "hashlib", "dibs.files.board_index", "dibs.cli.prime")


def test_the_hook_of_each_tool_call_imports_little(client: Client) -> None:
    client.command("claim", "a")
    for event, name in (("post-tool", "post-tool-bash"), ("pre-tool", "pre-tool-bash")):
        code = (
            "import sys; from dibs.cli import main; main(sys.argv[1:]);"
            "print(*sys.modules, file=sys.stderr)"
        )
        done = subprocess.run(
            [sys.executable, "-c", code, "-d", client.command.where, "hook", event],
            input=call(name),
            capture_output=True,
            env=client.command.env | {"PYTHONPATH": str(CORE)},
            timeout=PATIENCE,
        )
        loaded = set(done.stderr.decode().split())
        assert "dibs.cli.hook" in loaded
        unwanted = {*NOT_NEEDED, *(["dibs.cli.mine"] if event == "post-tool" else [])}
        assert unwanted & loaded == set()
