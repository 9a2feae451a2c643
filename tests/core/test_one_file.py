"""`dibs.pyz`: the core, the command line and `run` in one file that needs only Python."""

from __future__ import annotations

import ast
import os
import shutil
import signal
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

import dibs
from dibs.cli.grammar import VERBS
from one_file.__main__ import CORE, MOST, PACKAGE, SERVER, SHARED, bare, pyz
from tests.core.test_packaging import VERSION
from tests.patience import PATIENCE


def pythons() -> Iterator[str]:
    """Every Python here that dibs supports: the one of the tests, and those beside it."""
    yield sys.executable
    beside = sorted(Path(sys.base_prefix).parent.glob("3.*/bin/python3"))
    for path in [*beside, *(shutil.which(f"python3.{minor}") for minor in range(11, 20))]:
        if path is not None and version_of(str(path)) >= (3, 11):
            yield str(path)


def version_of(python: str) -> tuple[int, ...]:
    """The version of a Python; empty if it does not start."""
    code = "import sys; print(*sys.version_info[:3])"
    done = subprocess.run([python, "-I", "-c", code], capture_output=True, text=True)
    return tuple(map(int, done.stdout.split()))


@pytest.fixture(scope="module")
def one_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file, built as the script builds it, far from any checkout."""
    path = tmp_path_factory.mktemp("one") / "dibs.pyz"
    done = subprocess.run(
        [sys.executable, "-m", "one_file", path],
        env=os.environ | {"PYTHONPATH": str(CORE)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return path


def run(
    one_file: Path, *words: str | Path, python: str = sys.executable, cwd: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """A command of the file, with nothing installed: no site-packages, no environment."""
    return subprocess.run(
        [python, "-I", "-S", one_file, *words],
        cwd=cwd or one_file.parent,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )


def output(one_file: Path, *words: str | Path, python: str = sys.executable) -> str:
    done = run(one_file, *words, python=python)
    assert (done.returncode, done.stderr) == (0, ""), words
    return done.stdout


def test_it_is_short_and_the_same_source_makes_the_same_file(one_file: Path) -> None:
    assert one_file.stat().st_size <= MOST
    assert one_file.read_bytes() == pyz()
    assert os.access(one_file, os.X_OK)


def test_every_python_here_makes_the_same_code() -> None:
    """Not the same bytes: they may compress with other versions of zlib."""
    code = "import hashlib, one_file.__main__ as m; print(hashlib.md5(repr(sorted(m.files()))"
    digests = {
        python: subprocess.run(
            [python, "-c", f"{code}.encode()).hexdigest())"],
            env={"PYTHONPATH": str(CORE), "PYTHONDONTWRITEBYTECODE": "1"},
            capture_output=True,
            check=True,
        ).stdout
        for python in pythons()
    }
    assert len(set(digests.values())) == 1, digests


class _WithoutTypes(ast.NodeTransformer):
    """Leaves out the types of variables, but not those of a class's fields."""

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        kept = [each if isinstance(each, ast.AnnAssign) else self.visit(each) for each in node.body]
        node.body = kept
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        if node.value is None:
            return ast.copy_location(ast.Pass(), node)
        return ast.copy_location(ast.Assign([node.target], node.value), node)


def _text(node: ast.stmt) -> ast.Constant | None:
    """The text of a statement that is only a text."""
    found = node.value if isinstance(node, ast.Expr) else None
    return found if isinstance(found, ast.Constant) and isinstance(found.value, str) else None


def _only_types(node: ast.stmt) -> bool:
    """Whether a statement does nothing at run time."""
    found = isinstance(node, ast.If) and not node.orelse
    return found and ast.unparse(node.test) == "TYPE_CHECKING"  # type: ignore[attr-defined]


@pytest.mark.fast("one_file")
@pytest.mark.parametrize("path", sorted(PACKAGE.rglob("*.py")), ids=str)
def test_its_code_is_that_of_the_package_line_by_line(path: Path) -> None:
    source = path.read_text()
    ours, theirs = _WithoutTypes().visit(ast.parse(source)), ast.parse(bare(source))
    for node in ast.walk(ours):
        if isinstance(body := getattr(node, "body", None), list):
            texts = [text for each in body if (text := _text(each)) is not None]
            for text in texts:
                text.value = ""
            if len(texts) < len(body):
                kept = [each for each in body if _text(each) is None and not _only_types(each)]
                node.body = kept  # type: ignore[attr-defined]
        if isinstance(node, ast.arg):
            node.annotation = None
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            node.returns = None
        elif isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            node.body = [ast.copy_location(ast.Pass(), node.body[0])]
    assert ast.dump(ours) == ast.dump(theirs)
    for one, other in zip(ast.walk(ours), ast.walk(theirs), strict=True):
        assert getattr(one, "lineno", 0) == getattr(other, "lineno", 0)


def test_every_python_here_works_with_it_from_add_to_done(one_file: Path, tmp_path: Path) -> None:
    for number, python in enumerate(pythons()):
        from_add_to_done(one_file, tmp_path / str(number), python)


def from_add_to_done(one_file: Path, board_dir: Path, python: str) -> None:
    def dibs(*words: str) -> str:
        return output(one_file, "-d", board_dir, *words, python=python)

    dibs("init")
    dibs("add", "a", "b")
    claim = dibs("claim", "--owner", "me").strip()
    dibs("beat", claim, "--note", "half")
    dibs("verify", claim)
    dibs("done", claim)
    assert dibs("run", "--", "sh", "-c", "echo $DIBS_ID") == "b\n"
    lock = dibs("acquire", "nightly").strip()
    dibs("release", lock)
    assert [path.name.split(".")[0] for path in sorted((board_dir / "done").iterdir())] == [
        "a",
        "b",
    ]
    assert dibs("--version") == f"dibs {VERSION}\n"


def test_what_an_old_python_reads_before_it_is_refused_compiles_there(one_file: Path) -> None:
    with zipfile.ZipFile(one_file) as archive:
        for name in ("__main__.py", "dibs/__init__.py"):
            tree = ast.parse(archive.read(name), feature_version=(3, 6))
            found = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
            assert [node.module for node in found if node.module == "__future__"] == []
    code = (
        "import sys, runpy; sys.version_info = (3, 6, 8, 'final', 0); sys.version = '3.6.8 (old)'\n"
        f"sys.argv = ['dibs.pyz', 'ls']; runpy.run_path({str(one_file)!r}, run_name='__main__')"
    )
    done = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "dibs: Python 3.11 or newer is needed, this is 3.6.8\n"


def test_an_older_python_gets_one_line(one_file: Path) -> None:
    older = [
        str(path)
        for path in Path(sys.base_prefix).parent.glob("3.*/bin/python3")
        if (3, 7) <= version_of(str(path)) < (3, 11)
    ]
    if not older:
        pytest.skip("NO OLDER PYTHON WAS TRIED: none is beside the one of the tests")
    for python in older:
        done = run(one_file, "ls", python=python)
        assert done.returncode == 1
        assert done.stderr.startswith("dibs: Python 3.11 or newer is needed, this is 3.")
        assert len(done.stderr.splitlines()) == 1


def test_all_its_modules_can_be_imported_and_each_verb_has_the_help_of_the_package(
    one_file: Path,
) -> None:
    names = [
        ".".join(path.relative_to(CORE).with_suffix("").parts).removesuffix(".__init__")
        for path in PACKAGE.rglob("*.py")
        if path.parent.name not in ("mcp", "postgres")
        and path.name != "__main__.py"
        and (SERVER not in path.parents or path in SHARED)
    ]
    code = (
        "import importlib, os, sys; sys.path.insert(0, sys.argv[1]); os.environ['COLUMNS'] = '80'\n"
        "for name in sys.argv[2].split(): importlib.import_module(name)\n"
        "for verb in sys.argv[3].split(): sys.modules['dibs.cli'].main([verb, '--help'])\n"
    )
    printed = [
        subprocess.run(
            [sys.executable, "-I", "-S", "-c", code, place, " ".join(names), " ".join(VERBS)],
            capture_output=True,
            text=True,
            check=True,
            timeout=PATIENCE,
        ).stdout
        for place in (one_file, CORE)
    ]
    assert printed[0] == printed[1]
    assert len(names) > 100


def test_it_has_the_page_for_agents_and_the_shell_library(one_file: Path, tmp_path: Path) -> None:
    assert output(one_file, "help", "agents") == (PACKAGE / "AGENTS.md").read_text()
    assert output(one_file, "help", "shell") == (PACKAGE / "sh/dibs.sh").read_text()
    assert "`dibs help shell` prints it" in output(one_file, "-d", tmp_path, "paths")


def test_it_lies_beside_the_board_under_a_relative_path(one_file: Path, tmp_path: Path) -> None:
    shutil.copy(one_file, tmp_path)
    here = Path("dibs.pyz")
    run(here, "-d", "tasks", "init", cwd=tmp_path)
    run(here, "-d", "tasks", "add", "a", cwd=tmp_path)
    command = ("cd / && echo $DIBS_ID",)
    done = run(here, "-d", "tasks", "run", "--", "sh", "-c", *command, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "a\n"), done.stderr


def test_python_imports_dibs_from_it_and_does_not_need_it_any_more(
    one_file: Path, tmp_path: Path
) -> None:
    copy = shutil.copy(one_file, tmp_path)
    code = (
        "import os, sys; sys.path.insert(0, sys.argv[1]); import dibs; os.remove(sys.argv[1])\n"
        "board = dibs.open(sys.argv[2], create=True); board.add('a', b'x')\n"
        "claim = board.claim(); print(claim.payload(), dibs.__spec__.name); claim.done()\n"
        "print(board.check())\n"
        "try: board.claim(ttl='x')\n"
        "except dibs.BadName as error: import traceback; traceback.print_exc()\n"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code, copy, tmp_path / "b"],
        capture_output=True,
        text=True,
    )
    assert done.stdout == "b'x' dibs\n[]\n", done.stderr
    assert "raise " in done.stderr.splitlines()[-2]  # the lines of the source are there


def test_the_guard_of_run_starts_from_it_and_ends_the_work_of_a_killed_run(
    one_file: Path, board_dir: Path
) -> None:
    board = dibs.open(board_dir, create=True)
    board.add("a")
    with subprocess.Popen(
        [sys.executable, "-I", "-S", one_file, "-d", board_dir, "run", "--", "sh", "-c",
         "echo $$; exec sleep 1000"],
        stdout=subprocess.PIPE,
        text=True,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        pid = int(process.stdout.readline())
        process.send_signal(signal.SIGKILL)
    end = time.monotonic() + PATIENCE
    while Path(f"/proc/{pid}").exists() or board.snapshot().counts()["claimed"]:
        assert time.monotonic() < end
        time.sleep(0.05)
    (event,) = [event for event in board.log.of("a") if event.verb == "fail"]
    assert event.reason == "dibs run was killed"


@pytest.mark.parametrize(
    "words", [["demo"], ["--once", "b"], ["board", "b", "--wall"], ["b", "--theme=light"]]
)
def test_what_only_the_dashboard_can_do_names_what_to_install(
    one_file: Path, scratch: Path, words: list[str]
) -> None:
    (scratch / "b").mkdir()
    done = run(one_file, *words, cwd=scratch)
    assert (done.returncode, done.stdout) == (2, "")
    line = "dibs: the dashboard is not a part of this command: run "
    line += "`uv tool install .` in a checkout of dibs\n"
    assert done.stderr == line


def test_a_board_is_listed_instead_with_a_line_that_says_so(
    one_file: Path, board_dir: Path
) -> None:
    (board_dir / "hello.available").touch()
    for words in (["board", board_dir], [board_dir]):
        done = run(one_file, *words)
        assert done.returncode == 0
        assert "hello" in done.stdout
        assert done.stderr.splitlines()[0].endswith("` in a checkout of dibs")


def test_a_board_in_a_database_names_what_to_install(one_file: Path) -> None:
    done = run(one_file, "-d", "postgresql://ann@host/tasks", "ls")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "`uv tool install '.[postgres]'` in a checkout of dibs" in done.stderr


def test_mcp_names_what_to_install(one_file: Path, board_dir: Path) -> None:
    done = run(one_file, "-d", board_dir, "mcp")
    assert done.returncode == 2
    assert "`uv tool install '.[mcp]'` in a checkout of dibs" in done.stderr


def test_serve_and_deliveries_name_what_to_install_and_token_works(
    one_file: Path, board_dir: Path
) -> None:
    for word in ("serve", "deliveries"):
        done = run(one_file, "-d", board_dir, word)
        assert done.returncode == 2
        assert "not in this file" in done.stderr
        assert "`uv tool install '.[serve]'` in a checkout of dibs" in done.stderr
    made = run(one_file, "-d", board_dir, "token", "add", "ci", "--role", "worker")
    assert made.stdout.startswith("dibs_")
