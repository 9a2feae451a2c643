"""`dibs setup`: shown before it is written, written once, and removed byte for byte."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dibs.cli import agents_section, client_hooks
from dibs.cli.grammar import VERBS
from dibs.model.errors import BadName
from dibs.shipped import text
from tests.core.test_cli import Command
from tests.core.test_packaging import on_a_terminal
from tests.patience import PATIENCE

ENTRY = {"matcher": "Bash", "hooks": [{"type": "command", "command": "mine"}]}
HOOKS = st.fixed_dictionaries(
    {},
    optional={
        event: st.lists(st.sampled_from([ENTRY, {"hooks": []}, 7]), max_size=3)
        for event in [*client_hooks.EVENTS, "Notification"]
    },
)
VALUES = st.recursive(st.one_of(st.none(), st.integers(), st.text(max_size=5)), st.lists)
SETTINGS = st.dictionaries(st.text(max_size=4), VALUES, max_size=3).flatmap(
    lambda fields: st.one_of(st.just(fields), HOOKS.map(lambda hooks: {"hooks": hooks, **fields}))
)
SPACES = st.text(alphabet=" \t\r\n", max_size=3)


@st.composite
def texts(draw: st.DrawFn) -> str:
    """Settings as any tool may have written them."""
    indent = draw(st.sampled_from([None, 0, 2, 4, "\t"]))
    separators = draw(st.sampled_from([None, (",", ":"), (" , ", " : ")]))
    text = json.dumps(
        draw(SETTINGS), indent=indent, separators=separators, ensure_ascii=draw(st.booleans())
    )
    if draw(st.booleans()):
        text = text.replace("\n", "\r\n")
    if draw(st.booleans()):
        text = text.replace("[]", "[ ]").replace("{}", "{ \n}")
    return draw(SPACES) + text + draw(SPACES)


@given(texts())
def test_hooks_are_added_once_and_removed_byte_for_byte(text: str) -> None:
    after = client_hooks.added(text)
    assert client_hooks.added(after) == after
    assert client_hooks.removed(after) == text
    before, now = json.loads(text), json.loads(after)
    for event in client_hooks.EVENTS:
        old = before.get("hooks", {}).get(event, [])
        assert now["hooks"][event] == [client_hooks.entry(event), *old]
    assert {k: v for k, v in now.items() if k != "hooks"} == {
        k: v for k, v in before.items() if k != "hooks"
    }


@given(SETTINGS)
def test_hooks_are_removed_from_settings_that_the_client_has_written_anew(
    fields: dict[str, object],
) -> None:
    after = json.dumps(json.loads(client_hooks.added(json.dumps(fields))), indent=2)
    assert client_hooks.added(after) == after
    left = json.loads(client_hooks.removed(after) or "{}")

    def without_empty(value: dict[str, object]) -> dict[str, object]:
        hooks = value.get("hooks")
        some = {k: v for k, v in hooks.items() if v != []} if isinstance(hooks, dict) else {}
        return {k: v for k, v in value.items() if k != "hooks"} | ({"hooks": some} if some else {})

    assert without_empty(left) == without_empty(fields)


def test_what_was_added_around_the_hooks_stays() -> None:
    text = client_hooks.added(None)
    text = text.replace('"hooks": {', '"model": "x",\n  "hooks": {\n    "Notification": [],', 1)
    text = text.replace('"Stop": [', '"Stop": [ 7,', 1)
    left = client_hooks.removed(text)
    assert left is not None
    assert json.loads(left) == {"model": "x", "hooks": {"Notification": [], "Stop": [7]}}
    assert "dibs" not in left


def test_hooks_of_an_earlier_version_are_replaced() -> None:
    old = {"matcher": "Bash", "hooks": [{"type": "command", "command": "dibs hook pre-tool"}]}
    both = {"hooks": [*old["hooks"], {"type": "command", "command": "mine"}]}
    text = json.dumps({"hooks": {"PreToolUse": [ENTRY, old, both]}})
    after = json.loads(client_hooks.added(text))["hooks"]
    assert after["PreToolUse"] == [client_hooks.entry("PreToolUse"), ENTRY, both]
    left = json.loads(client_hooks.removed(client_hooks.added(text)) or "")
    assert left["hooks"]["PreToolUse"] == [ENTRY, both], "only an entry that is all of dibs goes"


BAD = {
    "white space": " \n",
    "torn": '{"hooks": {',
    "comments": '{"a": 1} // why',
    "a list": "[]",
    "hooks that are a list": '{"hooks": []}',
    "an event that is an object": '{"hooks": {"Stop": {}}}',
    "a key twice": '{"hooks": {}, "hooks": {}}',
    "an event twice": '{"hooks": {"Stop": [], "Stop": []}}',
    "deep": "[" * 100_000,
    "a mark of the byte order": "\ufeff{}",
}


@pytest.mark.parametrize("text", BAD.values(), ids=BAD)
def test_other_files_are_refused(text: str) -> None:
    for edit in (client_hooks.added, client_hooks.removed):
        with pytest.raises(BadName):
            edit(text)


@given(st.text(alphabet="a\n\r <!-", max_size=30))
def test_the_section_is_added_once_and_removed_byte_for_byte(text: str) -> None:
    after = agents_section.SECTION.added(text)
    assert agents_section.SECTION.added(after) == after
    assert agents_section.SECTION.removed(after) == text
    assert after.startswith(text)
    more = after + "and more\n"
    assert agents_section.SECTION.removed(more) == text + "and more\n"
    assert agents_section.SECTION.added(more) == more
    windows = after.replace("\r", "").replace("\n", "\r\n")
    assert agents_section.SECTION.removed(windows) == text.replace("\r", "").replace("\n", "\r\n")


def test_a_section_of_an_earlier_version_is_replaced_where_it_is() -> None:
    old = f"# Mine\n\n{agents_section.BEGIN}\nold\n{agents_section.END}\nmore\n"
    new = agents_section.SECTION.added(old)
    assert new.startswith("# Mine\n\n<!--")
    assert new.endswith("-->\nmore\n")
    assert "\nold\n" not in new
    with pytest.raises(BadName):
        agents_section.SECTION.added(old + old)
    with pytest.raises(BadName):
        agents_section.SECTION.removed(agents_section.BEGIN)


@pytest.mark.parametrize(
    "page", [agents_section.TEXT, text("AGENTS.md")], ids=["section", "AGENTS.md"]
)
def test_a_page_for_agents_names_every_act_that_is_for_people(page: str) -> None:
    (named,) = re.findall(r"`force-release`[^.:]*", page)
    acts = [word for word, verb in VERBS.items() if verb.group == "act"]
    assert [word for word in acts if f"`{word}`" not in named] == []


@pytest.fixture
def project(command: Command, tmp_path: Path) -> Path:
    """A repository, in a folder of which the command runs."""
    (tmp_path / "repo/.git").mkdir(parents=True)
    (tmp_path / "repo/src").mkdir()
    return tmp_path / "repo"


def setup(
    project: Path, *argv: str, text: bytes | None = b"", code: int = 0
) -> subprocess.CompletedProcess[str]:
    env = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2] / "core")}
    done = subprocess.run(
        [sys.executable, "-m", "dibs", *argv],
        cwd=project / "src",
        env=env,
        input=text,
        capture_output=True,
        timeout=PATIENCE,
    )
    out, err = done.stdout.decode(), done.stderr.decode()
    assert done.returncode == code, (out, err)
    assert err.count("\n") == (code != 0 or "--json" not in argv)
    assert "Traceback" not in err
    return subprocess.CompletedProcess(argv, done.returncode, out, err)


FILES = {"claude": ".claude/settings.json", "agents-md": "AGENTS.md"}
WHAT = pytest.mark.parametrize("what", FILES)


@WHAT
@pytest.mark.parametrize("remove", [[], ["--remove"]])
def test_an_empty_path_of_the_file_is_refused(project: Path, what: str, remove: list[str]) -> None:
    before = sorted(project.rglob("*"))
    done = setup(project, "setup", what, "--yes", "--file", "", *remove, code=2)
    assert "--file: it is empty" in done.stderr
    assert sorted(project.rglob("*")) == before


@pytest.mark.parametrize("file", [[], ["--file", "x"]])
def test_setup_in_a_deleted_working_directory_names_that(project: Path, file: list[str]) -> None:
    script = 'rmdir "$PWD"; exec "$0" -m dibs setup claude --yes "$@"'
    done = subprocess.run(
        ["sh", "-c", script, sys.executable, *file],
        cwd=project / "src",
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[2] / "core")},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    said = "dibs: the current directory: No such file or directory: go to another\n"
    assert (done.returncode, done.stdout, done.stderr) == (1, "", said)


@WHAT
def test_a_change_is_shown_and_only_written_when_that_is_wanted(project: Path, what: str) -> None:
    file = project / FILES[what]
    shown = setup(project, "setup", what, "--dry-run").stdout
    assert "dibs" in shown
    assert f"+++ {file}" in shown
    assert "--yes" in setup(project, "setup", what, code=2).stderr
    assert sorted(path.name for path in project.iterdir()) == [".git", "src"]
    assert setup(project, "setup", what, "--yes").stdout == shown
    text = file.read_bytes()
    assert setup(project, "setup", what, "--yes").stdout == ""
    assert file.read_bytes() == text
    setup(project, "setup", what, "--remove", code=2)
    assert file.read_bytes() == text
    setup(project, "setup", what, "--remove", "--yes")
    assert sorted(path.name for path in project.iterdir()) == [".git", "src"]
    setup(project, "setup", what, "--remove", "--yes")
    assert sorted(path.name for path in project.iterdir()) == [".git", "src"]


@WHAT
def test_an_existing_file_gets_back_every_byte_and_its_mode(project: Path, what: str) -> None:
    file = project / FILES[what]
    file.parent.mkdir(exist_ok=True)
    before = b'{"permissions": {"allow": ["Bash(ls)"]},\r\n\t"hooks":{"Stop":[ ]}}'
    file.write_bytes(before)
    file.chmod(0o640)
    for argv in ((), ("--remove",)):
        found = json.loads(setup(project, "--json", "setup", what, "--yes", *argv).stdout)
        assert found["status"] == ("removed" if argv else "written")
        assert found["file"] == str(file)
        assert found["diff"]
        assert (file.read_bytes() == before) == bool(argv)
        assert file.stat().st_mode & 0o777 == 0o640
    assert [path.name for path in file.parent.iterdir() if "dibs-" in path.name] == []


@WHAT
def test_another_file_can_be_named(project: Path, what: str) -> None:
    setup(project, "setup", what, "--yes", "--file", "other.txt")
    assert "dibs" in (project / "src/other.txt").read_text()
    setup(project, "setup", what, "--yes", "--remove", "--file", "other.txt")
    assert not (project / "src/other.txt").exists()


def fifo(file: Path) -> None:
    os.mkfifo(file)


def link(file: Path) -> None:
    other = file.parent / "other"
    other.write_text("{}")
    file.symlink_to(other)


def read_only(file: Path) -> None:
    file.write_text("{}")
    file.chmod(0o444)


def not_text(file: Path) -> None:
    file.write_bytes(b"{\xff}")


def identity(file: Path) -> tuple[int, ...]:
    """What changes if a file is written or replaced."""
    info = file.lstat()
    return info.st_ino, info.st_mode, info.st_size, info.st_mtime_ns, info.st_ctime_ns


@WHAT
@pytest.mark.parametrize("spoil", [link, read_only, not_text, fifo, Path.mkdir])
@pytest.mark.parametrize("more", [[], ["--remove"]])
def test_what_cannot_be_edited_is_one_line_and_stays(
    project: Path, what: str, spoil: object, more: list[str]
) -> None:
    file = project / FILES[what]
    file.parent.mkdir(exist_ok=True)
    spoil(file)  # type: ignore[operator]
    before = identity(file)
    said = setup(project, "setup", what, "--yes", *more, code=2).stderr
    assert str(file) in said
    assert "nothing was written" in said
    assert identity(file) == before
    assert not list(file.parent.glob("*.dibs-*"))


def test_settings_below_a_link_are_left_alone(project: Path) -> None:
    (project / "elsewhere").mkdir()
    (project / ".claude").symlink_to(project / "elsewhere")
    assert "symbolic link" in setup(project, "setup", "claude", "--yes", code=2).stderr
    assert list((project / "elsewhere").iterdir()) == []


@pytest.mark.parametrize("text", [b"", b"{}", b"{\n}\n", b"{ }\n", b"{\n\n}", b'{"hooks": {}}'])
def test_settings_with_nothing_in_them_are_brought_back_exactly(project: Path, text: bytes) -> None:
    file = project / ".claude/settings.json"
    file.parent.mkdir()
    file.write_bytes(text)
    setup(project, "setup", "claude", "--yes")
    assert set(client_hooks.EVENTS) == json.loads(file.read_bytes())["hooks"].keys()
    setup(project, "setup", "claude", "--yes")
    setup(project, "setup", "claude", "--remove", "--yes")
    assert file.read_bytes() == text


@pytest.mark.parametrize("there", [True, False])
def test_only_a_folder_that_setup_made_is_removed(project: Path, there: bool) -> None:
    folder = project / ".claude"
    if there:
        folder.mkdir()
    setup(project, "setup", "claude", "--yes")
    setup(project, "setup", "claude", "--remove", "--yes")
    assert folder.exists() == there
    assert not (folder / "settings.json").exists()


def test_invalid_json_is_refused_with_its_line(project: Path) -> None:
    file = project / ".claude/settings.json"
    file.parent.mkdir()
    file.write_text("{\n  oops\n}")
    said = setup(project, "setup", "claude", "--yes", code=2).stderr
    assert f"{file}: it is not valid JSON" in said
    assert "line 2" in said
    assert file.read_text() == "{\n  oops\n}"


def test_a_client_that_is_not_known_is_refused(project: Path) -> None:
    assert "claude" in setup(project, "setup", "nobody", code=2).stderr


def test_a_user_at_a_terminal_is_asked(project: Path) -> None:
    file = project / "AGENTS.md"
    argv = [sys.executable, "-m", "dibs", "setup", "agents-md", "--file", str(file)]
    core = str(Path(__file__).parents[2] / "core")
    code, said = on_a_terminal("sh", "-c", f"printf 'n\\n' | {' '.join(argv)}", PYTHONPATH=core)
    assert (code, file.exists()) == (2, False), said
    for answer, written in ((b"n\n", False), (b"y\n", True)):
        ours, theirs = os.openpty()
        with subprocess.Popen(
            argv, env=os.environ | {"PYTHONPATH": core}, stdin=theirs, stdout=theirs, stderr=theirs
        ) as process:
            os.close(theirs)
            said_now = b""
            while b"[y/N]" not in said_now:
                said_now += os.read(ours, 4096)
            assert b"## Tasks and locks" in said_now
            os.write(ours, answer)
            assert process.wait(PATIENCE) == 0
        os.close(ours)
        assert file.exists() == written


def test_hooks_that_would_find_no_dibs_are_set_up_with_a_warning(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = project / "bin/dibs"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", "/nowhere")
    assert "not on your PATH" in setup(project, "setup", "claude", "--yes").stderr
    assert "PATH" not in setup(project, "setup", "agents-md", "--yes").stderr
    setup(project, "setup", "claude", "--remove", "--yes")
    monkeypatch.setenv("PATH", str(program.parent))
    assert "PATH" not in setup(project, "setup", "claude", "--yes").stderr
