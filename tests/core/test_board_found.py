"""Which board is used where none is named: it is found, and never made by accident."""

from __future__ import annotations

import errno
import json
import os
import random
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dibs
from dibs import pointers
from dibs.cli.grammar import ALIASES, VERBS
from dibs.files import lost_mounts
from tests.contract.command import call
from tests.core.tools import NOBODY
from tests.patience import PATIENCE

CHECKOUT = Path(dibs.__file__).parents[2]
CLAIM = "a.f1.me-0123456789"
GIVEN = {
    "add": ["b"], "acquire": ["door"], "answer": [CLAIM, "yes"], "ask": [CLAIM, "what?"],
    "beat": [CLAIM], "completion": ["bash"], "done": [CLAIM], "fail": [CLAIM], "forget": ["a"],
    "force-release": [CLAIM, "--reason", "why"], "hook": ["stop"], "logs": ["a"], "note": ["text"],
    "park": ["a.available"], "pause": ["--reason", "why"], "prioritize": ["a.available", "9"],
    "prioritise": ["a.available", "9"], "purge": ["--done", "--older-than", "1h"],
    "release": [CLAIM], "renew": [CLAIM], "requeue": [f"failed/{CLAIM}"],
    "setup": ["claude", "--dry-run"], "run": ["--", "true"], "show": ["a"], "status": ["door"],
    "token": ["ls"], "verify": [CLAIM],
}  # fmt: skip
LINES = [
    [verb, *GIVEN.get(verb, [])] for verb in sorted({*VERBS, *ALIASES, "run"} - {"init", "copy"})
]
"""Every verb that is for a board; `copy` names both of its own."""
MORE = [
    *([], ["board"], ["--once"], ["--wall"], ["--once", "--reap"], ["check", "--probe"]),
    *(["check", "--repair"], ["reap", "--every", "1s"], ["claim", "--wait", "1s"]),
    *(["run", "--loop", "--wait", "--", "true"], ["requeue", "--from", "/dev/null"]),
    *(["add", "a", "b", "--max-waiting", "1"], ["watch", "--notify", "true"]),
]
root_only = pytest.mark.skipif(os.geteuid() != 0, reason="NO OTHER USER WAS TRIED: not root")
needs_git = pytest.mark.skipif(not shutil.which("git"), reason="NO REPOSITORY WAS TRIED: no git")


class Terrain:
    """Folders below a home, and `dibs` without any named board in them."""

    def __init__(self, home: Path) -> None:
        self.home = home
        path = f"{CHECKOUT / 'core'}:{CHECKOUT / 'tui'}:{':'.join(sys.path)}"
        own = {"HOME": str(home), "PYTHONPATH": path, "USER": "tester", "LC_ALL": "C.UTF-8"}
        self.env = {k: v for k, v in os.environ.items() if k[:4] not in ("DIBS", "GIT_")} | own
        self.env |= {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}

    def folder(self, name: str) -> Path:
        path = self.home / name
        path.mkdir(parents=True, exist_ok=True)
        return path

    def board(self, name: str) -> Path:
        path = self.folder(name)
        dibs.open(path, create=True)
        return path

    def start(self, folder: Path, *argv: str, **env: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "dibs", *argv],
            cwd=folder,
            env=self.env | env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(
        self, folder: Path, *argv: str, module: str = "dibs", **env: str
    ) -> subprocess.CompletedProcess[str]:
        if module == "dibs":
            done = call(argv, self.env | env, cwd=folder)
            out, err = done.stdout.decode(), done.stderr.decode()
            return subprocess.CompletedProcess(argv, done.returncode, out, err)
        return subprocess.run(
            [sys.executable, "-m", module, *argv],
            cwd=folder,
            env=self.env | env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )

    def refused(self, folder: Path, *argv: str, code: int = 2, **env: str) -> str:
        """The line on stderr of a command that must be refused and make nothing."""
        before = self.tree()
        done = self.run(folder, *argv, **env)
        assert (done.returncode, done.stdout) == (code, ""), done
        assert done.stderr.startswith("dibs: "), done
        assert done.stderr.removesuffix("\n").isprintable(), done
        assert self.tree() == before
        return done.stderr

    def where(self, folder: Path, *argv: str, **env: str) -> tuple[str, str]:
        """The board that is used in a folder, and the rule."""
        done = self.run(folder, *argv, "where", "--json", **env)
        assert done.returncode == 0, done
        found = json.loads(done.stdout)
        return found["board"], found["rule"]

    def tree(self) -> list[str]:
        """Everything below the home."""
        return sorted(str(path) for path in self.home.rglob("*"))

    def boards(self) -> list[str]:
        """Every board below the home."""
        return sorted(str(path.parent) for path in self.home.rglob(".dibs"))

    def git(self, folder: Path, *argv: str) -> None:
        who = ["-c", "user.name=me", "-c", "user.email=me@host"]
        line = ["git", *who, "-c", "protocol.file.allow=always", *argv]
        subprocess.run(line, cwd=folder, env=self.env, check=True, capture_output=True)

    def repository(self, name: str = "repo") -> Path:
        path = self.folder(name)
        self.git(path, "init", "-q")
        self.git(path, "commit", "-q", "--allow-empty", "-m", "first")
        return path

    def worktrees(self) -> list[Path]:
        """A repository with two more worktrees, one of them far away."""
        main = self.repository()
        others = [self.home / "beside", self.folder("far/away") / "tree"]
        for path in others:
            self.git(main, "worktree", "add", "-q", str(path))
        return [main, *others]


@pytest.fixture
def terrain(scratch: Path) -> Terrain:
    return Terrain(scratch)


# Nothing is made by accident


@pytest.mark.parametrize("argv", [*LINES, *MORE], ids=" ".join)
def test_an_empty_folder_stays_empty_under_every_verb_but_init(
    terrain: Terrain, argv: list[str]
) -> None:
    folder = terrain.folder("empty")
    for module in ("dibs", "dibs_tui.cli"):
        if module == "dibs" and argv in MORE[1:5]:  # the dashboard's own
            continue
        for words in (argv, ["--json", *argv]):
            done = terrain.run(folder, *words, module=module, DIBS_CLAIM=CLAIM)
            assert terrain.tree() == [str(folder)], (module, done)
            if argv[:1] in (["completion"], ["setup"], ["hook"]):  # they use none, or never fail
                assert done.returncode == 0, done
                continue
            said = json.loads(done.stdout)["error"] if words != argv else done.stderr
            assert done.returncode == 2, done
            assert said.count("\n") == (words == argv), done
            assert f"no board was found: neither {folder} nor a directory above it is" in said
            assert "`dibs init`" in said
            assert "`dibs -d BOARD VERB`" in said
            if words != argv:
                assert json.loads(done.stdout)["status"] == "board-missing"
                assert done.stderr == ""


def test_the_demo_leaves_the_folder_alone(terrain: Terrain) -> None:
    folder = terrain.folder("empty")
    done = terrain.run(folder, "demo", "--seed", "--once", module="dibs_tui.cli")
    assert (done.returncode, terrain.tree()) == (0, [str(folder)]), done


def test_an_explicit_directory_needs_no_init(terrain: Terrain) -> None:
    folder = terrain.folder("tasks")
    for env, argv in (({}, ["-d", "tasks"]), ({"DIBS_BOARD": "tasks"}, [])):
        assert terrain.run(terrain.home, *argv, "claim", **env).returncode == 4
        assert terrain.boards() == [str(folder)]
        shutil.rmtree(folder / ".dibs")


def test_the_working_directory_is_a_board_if_it_holds_task_files(terrain: Terrain) -> None:
    folder = terrain.folder("fleet")
    (folder / "Cargo.lock").touch()
    (folder / "notes.txt").touch()
    terrain.refused(folder, "claim")
    (folder / "t.available").touch()
    assert terrain.where(folder) == (str(folder), "tasks")
    assert terrain.run(folder, "claim").stdout.startswith("t.f1.")
    assert terrain.where(folder) == (str(folder), "directory")


def test_task_files_above_the_working_directory_make_no_board(terrain: Terrain) -> None:
    (terrain.folder("fleet") / "t.available").touch()
    terrain.refused(terrain.folder("fleet/sub"), "claim")


def test_task_files_in_a_folder_of_a_board_make_no_second_one(terrain: Terrain) -> None:
    board = terrain.board("board")
    (board / "done/t.available").touch()
    for verb in ("claim", "ls"):
        assert "give that board" in terrain.refused(board / "done", verb)


def test_task_files_in_a_sticky_directory_make_no_board(terrain: Terrain) -> None:
    """Anyone may have put them there, and no user could move another's."""
    folder = terrain.folder("tmp")
    (folder / "t.available").touch()
    folder.chmod(0o1777)
    assert "no board was found" in terrain.refused(folder, "ls")


# The order


def test_a_subfolder_uses_the_board_above(terrain: Terrain) -> None:
    board = terrain.board("board")
    deep = terrain.folder("board/a/b/c")
    assert terrain.run(board, "acquire", "door", "--owner", "me").returncode == 0
    assert "held by me" in terrain.run(deep, "status", "door").stdout
    assert terrain.run(deep, "acquire", "door").returncode == 4
    assert terrain.where(deep) == (str(board), "directory")
    assert terrain.boards() == [str(board)]


def test_each_rule_comes_before_the_next(terrain: Terrain) -> None:
    one, two, three, four = (terrain.board(name) for name in ("p/one", "two", "three", "four"))
    deep = terrain.folder("p/one/x/y")
    variables = {"DIBS_BOARD": str(three)}
    assert terrain.where(deep, "-d", str(four), **variables) == (str(four), "-d")
    assert terrain.where(deep, **variables) == (str(three), "$DIBS_BOARD")
    assert terrain.where(deep, DIBS_DIR=str(three)) == (str(three), "$DIBS_DIR")
    assert terrain.where(deep) == (str(one), "directory")
    (deep.parent / "dibs.toml").write_text(f'board = "{two}"')
    assert terrain.where(deep) == (str(two), "dibs.toml")
    (one / "dibs.toml").write_text(f'board = "{four}"')
    assert terrain.where(one) == (str(one), "directory")


def test_a_pointer_is_relative_to_its_file(terrain: Terrain) -> None:
    board = terrain.board("project/queue")
    (terrain.home / "project/dibs.toml").write_text('# ours\nboard = "queue"\n')
    deep = terrain.folder("project/src/a")
    assert terrain.where(deep) == (str(board), "dibs.toml")
    done = terrain.run(deep, "where")
    assert done.stdout == f"{board}\n"
    assert done.stderr == f"dibs: named by {terrain.home}/project/dibs.toml\n"


def test_a_pointer_to_no_board_is_refused_until_init_makes_it(terrain: Terrain) -> None:
    project = terrain.folder("project")
    (project / "dibs.toml").write_text('board = "queue"')
    deep = terrain.folder("project/a")
    assert f"{project}/queue, which does not exist" in terrain.refused(deep, "claim")
    (project / "queue").mkdir()
    assert f"{project}/queue, which is not a board" in terrain.refused(deep, "add", "x")
    (project / "queue/dibs.toml").write_text('board = "../elsewhere"')
    assert f"{project}/queue, which is not a board" in terrain.refused(deep, "add", "x")
    assert f"`dibs -d {project}/queue init`" in terrain.refused(deep, "init")
    done = terrain.run(deep, "-d", f"{project}/queue", "init")
    assert (done.returncode, done.stdout) == (0, f"{project}/queue\n")
    assert terrain.run(deep, "add", "x").returncode == 0
    assert terrain.boards() == [f"{project}/queue"]
    assert "this board is used here" in terrain.run(deep, "init").stderr


def test_init_makes_no_board_where_the_pointer_of_a_stranger_leads(terrain: Terrain) -> None:
    project, victim = terrain.folder("own/project"), terrain.folder("victim")
    (project / "dibs.toml").write_text('board = "../../victim/etc"')
    victim.joinpath("etc").mkdir()
    said = terrain.refused(project, "init")
    assert f"{project}/dibs.toml names the board {victim}/etc, which is not a board" in said
    assert f"`dibs -d {victim}/etc init`" in said
    assert "is used here" not in said


def test_init_of_a_place_that_a_pointer_names_says_that_it_is_new(terrain: Terrain) -> None:
    (terrain.home / "dibs.toml").write_text('board = "queue"')
    deep = terrain.folder("deep")
    done = terrain.run(deep, "init", "../queue")
    assert (done.returncode, done.stdout) == (0, f"{terrain.home}/queue\n")
    assert "this new board is used from now on" in done.stderr
    assert "this board is used here" in terrain.run(deep, "init", "../queue").stderr


@pytest.mark.parametrize("argv", [["init", ""], ["--json", "init", ""], ["init", "--", ""]])
def test_init_of_an_empty_path_makes_no_board(terrain: Terrain, argv: list[str]) -> None:
    assert "empty" in terrain.refused(terrain.folder("x"), *argv)


@pytest.mark.parametrize("kind", ["file", "fifo", "link to nothing"])
def test_a_pointer_to_what_is_no_directory_says_what_it_is(terrain: Terrain, kind: str) -> None:
    there = terrain.home / "there"
    if kind == "file":
        there.touch()
    elif kind == "fifo":
        os.mkfifo(there)
    else:
        there.symlink_to("nowhere")
    (terrain.home / "dibs.toml").write_text('board = "there"')
    what = "is a link to nothing" if kind == "link to nothing" else "is not a directory"
    for verb in ("ls", "where", "init"):
        said = terrain.refused(terrain.home, verb)
        assert f"{there}, which {what}: correct that line, or name another" in said


@pytest.mark.parametrize("kind", ["file", "link", "link to nothing"])
@pytest.mark.parametrize("pointed", [False, True])
def test_a_mark_that_is_no_folder_is_refused_by_where_as_by_every_verb(
    terrain: Terrain, kind: str, pointed: bool
) -> None:
    board = terrain.folder("board")
    if kind == "file":
        (board / ".dibs").touch()
    else:
        target = terrain.board("real") / ".dibs" if kind == "link" else "nowhere"
        (board / ".dibs").symlink_to(target)
    here = board
    if pointed:
        here = terrain.folder("here")
        (here / "dibs.toml").write_text('board = "../board"')
    expected = f"dibs: {board}: .dibs is not a real folder, and a board never follows links"
    for argv in (["where"], ["ls"], ["claim"], ["init"], ["-d", str(board), "ls"]):
        assert terrain.refused(here, *argv, code=1).startswith(expected), argv


ADDRESSES = [
    "https://host/board",
    "HTTP://host/board",
    "postgresql://deploy:s3cret@127.0.0.1:1/jobs?sslmode=disable",
    "postgres://127.0.0.1:1/jobs",
    "other+scheme://host/board",
]


@pytest.mark.parametrize("address", ADDRESSES)
def test_a_pointer_in_a_work_tree_names_no_address(terrain: Terrain, address: str) -> None:
    (terrain.home / "dibs.toml").write_text(f'board = "{address}"')
    for argv in (["ls"], ["where"], ["init"]):
        refused = terrain.refused(terrain.home, *argv)
        assert f"{terrain.home}/dibs.toml names " in refused
        assert "would receive your token or password" in refused
        assert "s3cret" not in refused


@pytest.mark.parametrize("address", [ADDRESSES[0], ADDRESSES[2]])
def test_the_pointer_of_a_repository_names_an_address_only_if_its_user_chose_it(
    terrain: Terrain, address: str
) -> None:
    git = terrain.folder("repo/.git")
    for part in ("HEAD", "objects", "refs"):
        (git / part).mkdir()
    (git / "dibs.toml").write_text(f'board = "{address}"')
    shown = address.replace(":s3cret", "")
    repo = git.parent
    for argv in (["ls"], ["where"], ["init"], ["claim"]):
        refused = terrain.refused(repo, *argv)
        assert "would receive your token or password: if you trust it" in refused
        assert f"dibs init {shown}" in refused.replace("'", "")
    terrain.run(repo, "init", address)  # its server is not there
    assert json.loads(terrain.run(repo, "--json", "where").stdout)["board"] == shown
    noted = terrain.home / ".local/state/dibs/chosen-addresses"
    assert noted.read_text() == f"{shown}\n"
    assert noted.stat().st_mode & 0o077 == 0
    other = terrain.folder("other")
    shutil.move(git, other / ".git")
    (other / ".git/dibs.toml").write_text('board = "https://elsewhere/board"')
    assert "https://elsewhere/board" in terrain.refused(other, "ls")


def test_two_variables_that_differ_are_refused_before_anything_is_found(terrain: Terrain) -> None:
    board = terrain.board("board")
    said = terrain.refused(board, "where", DIBS_BOARD="a", DIBS_DIR="b")
    assert "DIBS_BOARD and DIBS_DIR name different boards" in said


def test_an_answer_and_a_refusal_name_the_board_in_full(terrain: Terrain) -> None:
    board = terrain.board("board")
    deep = terrain.folder("board/a")
    for argv in (["claim"], ["run", "--", "true"], ["show", "nothing"], ["verify", CLAIM]):
        assert str(board) in terrain.run(deep, *argv).stderr, argv
    for argv in (["claim"], ["add", "x"], ["ls"], ["show", "x"], ["log"], ["paths"], ["stats"]):
        for line in terrain.run(deep, "--json", *argv).stdout.splitlines():
            assert json.loads(line)["board"] == str(board), argv
    frame = terrain.run(deep, "--json", module="dibs_tui.cli").stdout
    assert json.loads(frame)["board"] == str(board)


# Where the walk ends


def test_nothing_above_the_home_is_used(terrain: Terrain) -> None:
    terrain.board("x")
    home = terrain.folder("x/home")
    deep = terrain.folder("x/home/a/b")
    assert terrain.where(deep) == (f"{terrain.home}/x", "directory")
    terrain.refused(deep, "ls", HOME=str(home))
    terrain.refused(home, "ls", HOME=f"{home}/")
    board = terrain.board("x/home")
    assert terrain.where(deep, HOME=str(home)) == (str(board), "directory")


def test_nothing_beyond_the_border_of_a_mount_is_used(terrain: Terrain) -> None:
    board = terrain.board("board")
    inner = terrain.folder("board/mount/a")
    assert terrain.where(inner) == (str(board), "directory")
    script = 'mount -t tmpfs none "$1" && mkdir "$1/a" && cd "$1/a" && exec "$2" -m dibs ls'
    line = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", script, "sh"]
    try:
        done = subprocess.run(
            [*line, str(inner.parent), sys.executable], env=terrain.env,
            capture_output=True, text=True, timeout=PATIENCE,
        )  # fmt: skip
    except FileNotFoundError:
        pytest.skip("NO MOUNT WAS TRIED: there is no unshare")
    if "unshare:" in done.stderr or "mount:" in done.stderr:
        pytest.skip(f"NO MOUNT WAS TRIED: {done.stderr.strip()}")
    assert (done.returncode, "no board was found" in done.stderr) == (2, True), done


def test_a_board_above_a_missing_mount_is_not_used(
    terrain: Terrain, monkeypatch: pytest.MonkeyPatch
) -> None:
    terrain.board("board")
    point = terrain.folder("board/mount")
    table = terrain.home / "fstab"
    table.write_text(f"server:/x {point} nfs4 noauto 0 0\n")
    monkeypatch.setattr(lost_mounts, "FSTAB", str(table))
    for name in ("DIBS_BOARD", "DIBS_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(point)
    with pytest.raises(dibs.NotMounted, match="mount it first"):
        dibs.open()


@root_only
def test_a_folder_that_this_user_may_not_enter_ends_the_walk(terrain: Terrain) -> None:
    terrain.board("x")
    deep = terrain.folder("x/private/deep")
    deep.chmod(0o777)
    deep.parent.chmod(0o700)
    script = "import os, sys; os.chdir(sys.argv[1]); os.setuid(int(sys.argv[2])); import dibs\n"
    script += "try: dibs.open()\nexcept dibs.DibsError as error: print(type(error).__name__)"
    warmed = "import dibs.where, dibs.board, dibs.files.engine;" + script
    done = subprocess.run(
        [sys.executable, "-c", warmed, str(deep), str(NOBODY)],
        env=terrain.env, capture_output=True, text=True, timeout=PATIENCE,
    )  # fmt: skip
    assert (done.stdout, done.stderr) == ("NoBoard\n", "")


# Hostile content

HOSTILE: dict[str, bytes] = {
    "empty": b"",
    "other": b'bord = "x"',
    "unknown key": b'board = "x"\n"\\u001b[31m" = 1',
    "number": b"board = 1",
    "list": b'board = ["x"]',
    "no path": b'board = ""',
    "escape": b'board = "x\\u001b[2Jy"',
    "newline": b'board = "x\\ny"',
    "nul": b'board = "x\\u0000y"',
    "direction": 'board = "x\u202ey"'.encode(),
    "long": b'board = "' + b"x" * 3000 + b'"',
    "huge": b'board = "x"\n#' + b"x" * 100_000,
    "deep": b"board = " + b"[" * 4000,
    "broken": b"\x1b]0;title\x07 = =",
    "bytes": b'board = "\xff"',
    "home": b'board = "~/tasks"',
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_pointer_is_refused_in_one_line(terrain: Terrain, name: str) -> None:
    deep = terrain.folder("project/a")
    pointer = deep.parent / "dibs.toml"
    pointer.write_bytes(HOSTILE[name])
    for argv in (["claim"], ["ls"], ["init"]):
        said = terrain.refused(deep, *argv)
        assert said.startswith(f"dibs: {pointer}"), said
        assert len(said) < 500, said
    done = terrain.run(deep, "--once", module="dibs_tui.cli")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1), done


MADE: dict[str, Callable[[Path], object]] = {
    "folder": lambda path: path.mkdir(),
    "fifo": os.mkfifo,
    "loop": lambda path: path.symlink_to(path.name),
    "device": lambda path: path.symlink_to("/dev/zero"),
    "nowhere": lambda path: path.symlink_to("nothing"),
    "link": lambda path: path.symlink_to("/etc/passwd"),
}


@given(
    st.one_of(
        st.from_regex(rb'(#[^\n]*\n){0,2}board = "[^\n]*"\n', fullmatch=True),
        st.text().map(lambda text: f'board = "{text}"\n'.encode("utf-8", "surrogatepass")),
    )
)
def test_what_is_read_without_a_parser_is_what_the_parser_reads(data: bytes) -> None:
    if pointers._match_written(data) is None:
        return
    try:
        expected = tomllib.loads(data.decode())
    except UnicodeDecodeError:
        with pytest.raises(UnicodeDecodeError):
            pointers._parsed(data)
    else:
        assert pointers._parsed(data) == expected


@pytest.mark.parametrize("name", MADE)
def test_what_is_no_plain_file_is_no_pointer(terrain: Terrain, name: str) -> None:
    deep = terrain.folder("project/a")
    MADE[name](deep.parent / "dibs.toml")
    said = terrain.refused(deep, "claim")
    assert said == (
        f"dibs: {deep.parent}/dibs.toml is not a plain file: replace it by one, or remove it\n"
    )


@root_only
def test_what_a_stranger_put_into_a_directory_of_everyone_is_not_followed(
    terrain: Terrain,
) -> None:
    everyone, board = terrain.folder("everyone"), terrain.board("board")
    everyone.chmod(0o1777)
    mine = terrain.folder("everyone/mine")
    pointer = everyone / "dibs.toml"
    pointer.write_text(f'board = "{board}"')
    assert terrain.where(mine) == (str(board), "dibs.toml")
    os.chown(pointer, NOBODY, NOBODY)
    for folder in (mine, everyone):
        said = terrain.refused(folder, "claim")
        assert f"{pointer} is another user's (uid {NOBODY})" in said
        assert "`dibs -d BOARD VERB`" in said
    assert terrain.where(mine, "-d", str(board)) == (str(board), "-d")
    pointer.unlink()
    (everyone / ".dibs").mkdir()
    assert terrain.where(mine) == (str(everyone), "directory")
    os.chown(everyone / ".dibs", NOBODY, NOBODY)
    for folder in (mine, everyone):
        assert "another user's" in terrain.refused(folder, "claim")
    everyone.chmod(0o777)  # a board of several users: who stands in it, means it
    assert "another user's" in terrain.refused(mine, "claim")
    assert terrain.where(everyone) == (str(everyone), "directory")


@root_only
def test_a_repository_that_a_stranger_put_into_a_directory_of_everyone_is_not_followed(
    terrain: Terrain,
) -> None:
    everyone, board = terrain.folder("everyone"), terrain.board("board")
    everyone.chmod(0o1777)
    theirs = layout(terrain.folder("theirs"))
    (theirs / "dibs.toml").write_text(f'board = "{board}"')
    git = everyone / ".git"
    git.write_text(f"gitdir: {theirs}\n")
    assert terrain.where(everyone) == (str(board), "git")
    os.chown(git, NOBODY, NOBODY)
    assert f"{git} is another user's" in terrain.refused(everyone, "claim")


@pytest.mark.parametrize("links", [True, False])
def test_a_pointer_is_written_once_also_where_there_are_no_hard_links(
    terrain: Terrain, monkeypatch: pytest.MonkeyPatch, links: bool
) -> None:
    def refused(*_: object) -> None:
        raise PermissionError(errno.EPERM, "no links")

    if not links:
        monkeypatch.setattr(os, "link", refused)
    common, one, two = terrain.folder(".git"), f"{terrain.home}/one", f'{terrain.home}/a "\\b'
    file = f"{common}/dibs.toml"
    assert pointers.write_pointer(str(common), two) == (file, True)
    assert pointers.read_pointer(str(common)) == (file, two)
    assert pointers.write_pointer(str(common), two) == (file, False)
    with pytest.raises(dibs.Exists, match="names the board"):
        pointers.write_pointer(str(common), one)
    assert os.listdir(common) == ["dibs.toml"]


# Repositories, as git lays them out


def layout(folder: Path) -> Path:
    """What makes a folder a repository."""
    for name in ("objects", "refs"):
        (folder / name).mkdir(parents=True)
    (folder / "HEAD").write_text("ref: refs/heads/main\n")
    return folder


@needs_git
def test_twenty_acquires_from_random_folders_of_three_worktrees_give_one_holder(
    terrain: Terrain,
) -> None:
    trees = terrain.worktrees()
    assert terrain.run(trees[0], "init", "tasks").returncode == 0
    board = str(trees[0] / "tasks")
    seed = random.randrange(1 << 32)
    chance = random.Random(seed)
    folders = []
    for _ in range(20):
        depth = chance.randrange(4)
        folder = chance.choice(trees).joinpath(*(chance.choice("abc") for _ in range(depth)))
        folder.mkdir(parents=True, exist_ok=True)
        folders.append(folder)
    line = ("--json", "acquire", "deploy/production", "--ttl", "600")
    started = [terrain.start(folder, *line) for folder in folders]
    said = [json.loads(one.communicate(timeout=PATIENCE)[0]) for one in started]
    codes = sorted(one.returncode for one in started)
    assert codes == [0] + [4] * 19, (seed, said)
    assert {row["board"] for row in said} == {board}, seed
    holders = {row["claim"] for row in said}
    assert len(holders) == 1, (seed, said)
    assert terrain.boards() == [board], seed


@needs_git
def test_init_in_a_second_worktree_makes_no_second_board(terrain: Terrain) -> None:
    main, beside, far = terrain.worktrees()
    first = terrain.run(main, "init", "tasks")
    pointer = main / ".git/dibs.toml"
    assert first.stdout == f"{main}/tasks\n"
    assert first.stderr == (
        f"dibs: all worktrees of this repository use this board: {pointer} names it; "
        "add /tasks/ to .gitignore, or git takes its tasks for files of the project\n"
    )
    kept = pointer.read_bytes()
    assert b'board = "../tasks"' in kept
    for folder, argv in ((main, ["init", "tasks"]), (beside, ["init"]), (far, ["init"])):
        done = terrain.run(folder, *argv)
        assert (done.returncode, done.stdout) == (0, f"{main}/tasks\n"), done
        assert str(pointer) in done.stderr
        assert ".gitignore" not in done.stderr
    said = terrain.refused(beside, "init", "tasks", code=3)
    assert f"{main}/tasks" in said
    assert f"{beside}/tasks" in said
    found = json.loads(terrain.run(far, "--json", "init").stdout)
    assert (found["board"], found["pointer"]) == (f"{main}/tasks", str(pointer))
    assert pointer.read_bytes() == kept
    assert terrain.boards() == [f"{main}/tasks"]


@needs_git
def test_init_outside_of_the_work_tree_says_nothing_about_git_ignoring_it(
    terrain: Terrain, tmp_path: Path
) -> None:
    main, *_ = terrain.worktrees()
    done = terrain.run(main, "init", str(tmp_path / "elsewhere"))
    assert (done.returncode, ".gitignore" in done.stderr) == (0, False)
    pointer = main / ".git/dibs.toml"
    assert f"{pointer} names it; remove that file if it should use another one" in done.stderr
    assert "remove that file" not in terrain.run(main, "init").stderr, "it was not written now"


@needs_git
def test_a_board_for_a_repository_is_proposed_outside_of_the_work_tree(terrain: Terrain) -> None:
    main, *_ = terrain.worktrees()
    (main / "src").mkdir()
    said = terrain.refused(main / "src", "ls", code=2)
    assert f"`dibs init ../../{main.name}-tasks` makes one for this repository" in said
    here = terrain.run(main, "init")
    assert f"make {main}-tasks, or git takes its tasks for files" in here.stderr
    (main / ".git/dibs.toml").unlink()
    shutil.rmtree(main / ".dibs")
    done = terrain.run(main / "src", "init", f"../../{main.name}-tasks")
    assert (done.returncode, done.stdout) == (0, f"{main}-tasks\n")


@needs_git
def test_inits_of_different_boards_at_the_same_time_make_one(terrain: Terrain) -> None:
    trees = terrain.worktrees()
    for turn in range(5):
        started = [terrain.start(tree, "init", f"t{turn}") for tree in trees for _ in range(2)]
        for one in started:
            one.communicate(timeout=PATIENCE)
        codes = [one.returncode for one in started]
        (board,) = terrain.boards()
        assert sorted(codes) in ([0, 3, 3, 3, 3, 3], [0, 0, 3, 3, 3, 3]), (codes, board)
        (pointer,) = (trees[0] / ".git").glob("dibs.toml*")
        shutil.rmtree(board)
        pointer.unlink()


@needs_git
def test_a_board_that_cannot_be_made_leaves_no_pointer(terrain: Terrain) -> None:
    main = terrain.repository()
    (main / "tasks").touch()
    terrain.refused(main, "init", "tasks", code=1)
    control = terrain.run(main, "init", "a\x1bb")
    assert (control.returncode, control.stderr.count("\n")) == (2, 1), control
    assert control.stderr.rstrip("\n").isprintable()
    assert not (main / ".git/dibs.toml").exists()
    assert terrain.boards() == []


@needs_git
def test_a_board_of_the_repository_itself_is_shared_too(terrain: Terrain) -> None:
    main, beside, _ = terrain.worktrees()
    dibs.open(main, create=True)  # made by an earlier dibs, which wrote no pointer
    terrain.refused(beside, "ls")
    assert terrain.run(terrain.folder("repo/a"), "init").stdout == f"{main}\n"
    assert terrain.where(beside) == (str(main), "git")
    assert terrain.where(main) == (str(main), "directory")


@needs_git
def test_the_pointer_of_a_repository_comes_before_what_is_above_it(terrain: Terrain) -> None:
    above, main = terrain.board("x"), terrain.repository("x/repo")
    assert terrain.where(main) == (str(above), "directory")
    assert terrain.run(main, "init").stdout == f"{above}\n"
    assert not (main / ".git/dibs.toml").exists()
    assert terrain.run(main, "init", "tasks").returncode == 0
    assert terrain.where(main) == (f"{main}/tasks", "git")
    assert terrain.where(above) == (str(above), "directory")


@needs_git
def test_a_pointer_in_the_work_tree_comes_before_that_of_the_repository(terrain: Terrain) -> None:
    main, beside, _ = terrain.worktrees()
    own = terrain.board("own")
    terrain.run(main, "init", "tasks")
    (beside / "dibs.toml").write_text(f'board = "{own}"')
    assert terrain.where(beside) == (str(own), "dibs.toml")
    assert terrain.where(main) == (f"{main}/tasks", "git")
    assert str(own) in terrain.refused(beside, "init", "tasks", code=3)


@needs_git
def test_the_repository_and_its_board_can_be_moved_together(terrain: Terrain) -> None:
    main = terrain.repository()
    terrain.run(main, "init", "tasks")
    moved = main.rename(terrain.home / "moved")
    assert terrain.where(moved) == (f"{moved}/tasks", "git")


@needs_git
def test_worktrees_of_a_bare_repository_share_its_pointer(terrain: Terrain) -> None:
    main = terrain.repository()
    bare = terrain.home / "x/bare.git"
    terrain.git(main, "clone", "-q", "--bare", str(main), str(bare))
    trees = [terrain.home / "one", terrain.home / "two"]
    for tree in trees:
        terrain.git(bare, "worktree", "add", "-q", "-b", tree.name, str(tree))
    assert terrain.run(trees[0], "init", str(terrain.home / "tasks")).returncode == 0
    for folder in (*trees, bare, bare / "hooks"):
        assert terrain.where(folder)[0] == f"{terrain.home}/tasks"
    assert (bare / "dibs.toml").exists()
    (bare / "dibs.toml").unlink()
    assert terrain.run(bare, "init", str(terrain.home / "tasks")).returncode == 0
    assert terrain.where(trees[1]) == (f"{terrain.home}/tasks", "git")


@needs_git
def test_a_submodule_uses_the_board_of_its_project_or_its_own(terrain: Terrain) -> None:
    part, whole = terrain.repository("part"), terrain.repository("whole")
    terrain.git(whole, "submodule", "add", "-q", str(part), "part")
    terrain.run(whole, "init", "tasks")
    assert terrain.where(whole / "part") == (f"{whole}/tasks", "git")
    assert terrain.run(whole / "part", "init").stdout == f"{whole}/tasks\n"
    terrain.run(whole / "part", "init", "own")
    assert terrain.where(whole / "part") == (f"{whole}/part/own", "git")
    assert terrain.where(whole) == (f"{whole}/tasks", "git")
    assert (whole / ".git/modules/part/dibs.toml").exists()


@needs_git
def test_git_dir_in_the_environment_moves_no_board(terrain: Terrain) -> None:
    """A hook leaves it there for commands that work in another repository."""
    one, two = terrain.repository("one"), terrain.repository("two")
    for path in (one, two):
        terrain.run(path, "init", "tasks")
    variables = {"GIT_DIR": str(one / ".git"), "GIT_WORK_TREE": str(one)}
    variables |= {"GIT_COMMON_DIR": str(one / ".git")}
    assert terrain.where(two, **variables) == (f"{two}/tasks", "git")
    hook = one / ".git/hooks/post-commit"
    found = terrain.home / "found"
    hook.write_text(f'#!/bin/sh\n"{sys.executable}" -m dibs where > "{found}"\n')
    hook.chmod(0o755)
    terrain.git(one, "commit", "-q", "--allow-empty", "-m", "second")
    assert found.read_text() == f"{one}/tasks\n"


BROKEN: dict[str, Callable[[Path], object]] = {
    "fifo": os.mkfifo,
    "loop": lambda path: path.symlink_to(path.name),
    "device": lambda path: path.symlink_to("/dev/zero"),
    "empty file": lambda path: path.touch(),
    "no path": lambda path: path.write_text("gitdir: \n"),
    "control": lambda path: path.write_bytes(b"gitdir: a\x00b\n"),
    "long": lambda path: path.write_text("gitdir: " + "x/" * 100_000),
    "gone": lambda path: path.write_text("gitdir: /nowhere/at/all\n"),
    "itself": lambda path: path.write_text("gitdir: .git\n"),
    "empty folder": lambda path: path.mkdir(),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_repository_is_none(terrain: Terrain, name: str) -> None:
    deep = terrain.folder("x/a/b")
    BROKEN[name](deep.parent / ".git")
    assert "no board was found" in terrain.refused(deep, "claim")
    assert terrain.run(deep, "init").stdout == f"{deep}\n"
    shutil.rmtree(deep / ".dibs")
    board = terrain.board("x")
    assert terrain.where(deep) == (str(board), "directory")


@pytest.mark.parametrize("content", [b"", b"\0", b"x" * 100_000, b"../../nowhere\n"])
def test_a_broken_worktree_is_none(terrain: Terrain, content: bytes) -> None:
    own, tree = layout(terrain.folder("own")), terrain.folder("tree")
    (tree / ".git").write_text(f"gitdir: {own}\n")
    (own / "dibs.toml").write_text(f'board = "{terrain.board("board")}"')
    assert terrain.where(tree)[1] == "git"
    (own / "commondir").write_bytes(content)
    assert "no board was found" in terrain.refused(tree, "claim")


# init where there is no repository


def test_init_outside_a_repository_makes_the_board_only(terrain: Terrain) -> None:
    folder = terrain.folder("x")
    done = terrain.run(folder, "init", "tasks")
    assert done.stdout == f"{folder}/tasks\n"
    ways = f"name it with `dibs -d {folder}/tasks VERB` or $DIBS_BOARD, or work inside it"
    assert done.stderr == f"dibs: the board is made: {ways}\n"
    assert not list(terrain.home.rglob("dibs.toml"))
    terrain.refused(folder, "ls")
    assert terrain.run(folder, "init").stdout == f"{folder}\n"
    assert terrain.run(folder, "ls").returncode == 0


def test_init_below_a_board_confirms_that_one(terrain: Terrain) -> None:
    board, deep = terrain.board("x"), terrain.folder("x/a")
    done = terrain.run(deep, "init")
    assert (done.stdout, terrain.boards()) == (f"{board}\n", [str(board)])
    assert "`dibs init .` makes another one here" in done.stderr
    assert terrain.run(deep, "init", ".").stdout == f"{deep}\n"
    assert terrain.where(deep) == (str(deep), "directory")


def test_init_takes_one_place(terrain: Terrain) -> None:
    terrain.refused(terrain.home, "-d", "one", "init", "two")
    done = terrain.run(terrain.home, "init", "two", DIBS_BOARD="one")
    assert done.stdout == f"{terrain.home}/two\n"
    assert "the environment names another board" in done.stderr
    assert terrain.run(terrain.home, "init", DIBS_BOARD="one").stdout == f"{terrain.home}/one\n"


# Python


def test_python_finds_the_same_board(terrain: Terrain) -> None:
    board, deep = terrain.board("x"), terrain.folder("x/a")
    other, empty = terrain.board("y"), terrain.folder("empty")
    script = "import dibs\ntry: print(dibs.open(create=True).location.where)\n"
    script += "except dibs.NoBoard as error: print(error.exit_code, error)"

    def opened(folder: Path, **env: str) -> str:
        line = [sys.executable, "-c", script]
        return subprocess.run(
            line, cwd=folder, env=terrain.env | env, capture_output=True, text=True, check=True
        ).stdout

    assert opened(deep) == f"{board}\n"
    assert opened(deep, DIBS_BOARD=str(other)) == f"{other}\n"
    assert opened(empty).startswith("2 no board was found: ")
    assert list(empty.iterdir()) == []


# What it costs


@pytest.mark.parametrize("named", ["-d", "DIBS_BOARD", "DIBS_DIR"])
def test_a_claim_on_a_named_board_looks_for_no_other(terrain: Terrain, named: str) -> None:
    board = terrain.board("board")
    dibs.open(board).add("a")
    line = ["-X", "importtime", "-m", "dibs"]
    argv, env = (["-d", str(board)], {}) if named == "-d" else ([], {named: str(board)})
    done = subprocess.run(
        [sys.executable, *line, *argv, "claim"], env=terrain.env | env,
        cwd=terrain.home, capture_output=True, text=True, check=True,
    )  # fmt: skip
    loaded = {row.rpartition("|")[2].strip() for row in done.stderr.splitlines()}
    assert "dibs.files.claims" in loaded
    assert not loaded & {"dibs.where", "dibs.pointers", "dibs.files.lost_mounts", "tomllib"}
