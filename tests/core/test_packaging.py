import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from contextlib import suppress
from email.parser import Parser
from pathlib import Path
from zipfile import ZipFile

import pytest

from dibs.cli.grammar import VERBS

CHECKOUT = Path(__file__).parents[2]
VERSION = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["project"]["version"]
CLAIM = re.compile(r"a\.f[1-9]\d*(a\d+)?\.me-[0-9A-F]{10}")
DASHBOARD = {"dibs_tui", "humanize", "rich", "textual", "watchfiles"}


def output(*command: str | Path, **env: str) -> str:
    done = subprocess.run(command, env=os.environ | env, capture_output=True, text=True)
    assert done.returncode == 0, f"{command} ended with {done.returncode}\n{done.stderr}"
    return done.stdout


def claimed(printed: str) -> str:
    """The name of the claim, the only output of `claim`."""
    name = printed.strip()
    assert CLAIM.fullmatch(name), printed
    return name


@pytest.fixture(scope="module")
def venv(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with pip and nothing else."""
    path = tmp_path_factory.mktemp("installed") / "venv"
    output(sys.executable, "-m", "venv", path)
    return path


@pytest.fixture(scope="module")
def wheel(venv: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    output(venv / "bin/pip", "wheel", "-q", "--no-deps", "-w", folder, CHECKOUT)
    (built,) = folder.iterdir()
    return built


@pytest.fixture(scope="module")
def dibs(venv: Path, wheel: Path) -> Path:
    """The console script, installed without the requirements of the dashboard."""
    output(venv / "bin/pip", "install", "-q", "--no-deps", wheel)
    return venv / "bin/dibs"


@pytest.mark.parametrize(
    ("modules", "allowed"),
    [("dibs", set()), ("dibs, dibs.cli", set()), ("dibs_tui.cli", {"dibs_tui"})],
)
def test_imports_of_a_worker_do_not_load_the_dashboard(modules: str, allowed: set[str]) -> None:
    path = os.pathsep.join(str(CHECKOUT / part) for part in ("core", "tui"))
    code = f"import sys, {modules}; print(*sys.modules)"
    loaded = output(sys.executable, "-c", code, PYTHONPATH=path).split()
    assert DASHBOARD & set(loaded) == allowed


def test_the_wheel_is_typed_and_holds_two_packages_and_nothing_else(wheel: Path) -> None:
    names = set(ZipFile(wheel).namelist())
    assert {"dibs/py.typed", "dibs/sh/dibs.sh", "dibs/AGENTS.md", "dibs_tui/py.typed"} <= names
    tops = {name.partition("/")[0] for name in names}
    assert tops == {"dibs", "dibs_tui", f"dibs-{VERSION}.dist-info", f"dibs-{VERSION}.data"}
    data = {name.rpartition("/") for name in names if ".data/" in name}
    assert {folder for folder, _, _ in data} == {f"dibs-{VERSION}.data/data/share/man/man1"}


def fields(wheel: Path, name: str) -> list[str]:
    """The values of a field of the metadata."""
    with ZipFile(wheel) as packed:
        text = packed.read(f"dibs-{VERSION}.dist-info/METADATA").decode()
    return Parser().parsestr(text).get_all(name) or []


def page_of(wheel: Path) -> str:
    """The page that an index shows."""
    with ZipFile(wheel) as packed:
        text = packed.read(f"dibs-{VERSION}.dist-info/METADATA").decode()
    return str(Parser().parsestr(text).get_payload())


LINKS = re.compile(r"\]\(([^)\s]+)\)")


def test_without_a_public_address_the_package_names_none(wheel: Path) -> None:
    assert fields(wheel, "Project-URL") == []
    assert page_of(wheel) == (CHECKOUT / "README.md").read_text()


def test_with_a_public_address_every_link_of_the_page_is_complete(
    venv: Path, tmp_path: Path
) -> None:
    for part in ("core", "tui"):
        shutil.copytree(
            CHECKOUT / part, tmp_path / part, ignore=shutil.ignore_patterns("__pycache__")
        )
    for name in ("README.md", "LICENSE"):
        shutil.copy(CHECKOUT / name, tmp_path)
    url = "https://forge.example/team/dibs"
    project = (CHECKOUT / "pyproject.toml").read_text()
    assert 'source-url = ""' in project
    project = project.replace('source-url = ""', f'source-url = "{url}/"')
    (tmp_path / "pyproject.toml").write_text(project)
    output(venv / "bin/pip", "wheel", "-q", "--no-deps", "-w", tmp_path / "out", tmp_path)
    (built,) = (tmp_path / "out").iterdir()
    found = LINKS.findall(page_of(built))
    assert len(found) == len(LINKS.findall((CHECKOUT / "README.md").read_text())) > 20
    assert [link for link in found if not link.startswith((f"{url}/", "#"))] == []
    assert f"{url}/raw/v{VERSION}/screenshots/first-minute.gif" in found
    assert f"{url}/blob/v{VERSION}/core/CLI.md#dibs-run" in found
    urls = dict(line.split(", ") for line in fields(built, "Project-URL"))
    assert urls["Source"] == url
    assert urls.keys() == {"Source", "Documentation", "Changelog", "Issues"}


def test_the_extra_all_needs_what_the_other_extras_need(wheel: Path) -> None:
    needs: dict[str, set[str]] = {}
    for line in fields(wheel, "Requires-Dist"):
        need, _, extra = line.partition("; extra == ")
        needs.setdefault(extra.strip("'\""), set()).add(need)
    public = needs.keys() - {"", "all", "dev"}
    assert public
    assert needs["all"] == set().union(*(needs[name] for name in public))
    assert needs["all"] <= needs["dev"], "the tests try every extra"


def test_every_requirement_has_a_lowest_version(wheel: Path) -> None:
    assert [line for line in fields(wheel, "Requires-Dist") if ">=" not in line] == []


def test_the_version_is_in_one_place() -> None:
    folders = ("core", "tui", "docs", "screenshots", ".ci", ".github")
    paths = [path for name in folders for path in (CHECKOUT / name).rglob("*") if path.is_file()]
    paths += [CHECKOUT / name for name in ("README.md", "SECURITY.md", "Dockerfile", "Makefile")]
    texts = {str(p): p.read_bytes() for p in paths if p.suffix not in (".pyc", ".png", ".gif")}
    literal = re.compile(rf"(?<![\d.]){re.escape(VERSION)}(?![\d.])".encode())
    assert [path for path, text in texts.items() if literal.search(text)] == []


def test_the_installed_package_has_a_man_page_of_each_command(dibs: Path) -> None:
    found = {path.name for path in (dibs.parents[1] / "share/man/man1").iterdir()}
    assert {f"dibs-{word}.1" for word in (*VERBS, "run", "board", "demo")} | {"dibs.1"} == found
    page = (dibs.parents[1] / "share/man/man1/dibs.1").read_text()
    assert f'"dibs {VERSION}"' in page


def test_the_installed_script_serves_a_worker_from_add_to_done(dibs: Path, board_dir: Path) -> None:
    def run(verb: str, *args: str) -> str:
        return output(dibs, "-d", board_dir, verb, *args)

    run("add", "a")
    run("fail", claimed(run("claim", "--owner", "me")))
    run("release", claimed(run("claim", "--owner", "me", "--wait")))
    claim = claimed(run("claim", "--owner", "me"))
    run("beat", claim)
    run("verify", claim)
    assert "a" in run("ls").split()
    run("done", claim)
    run("check")
    assert [path.name for path in (board_dir / "done").iterdir()] == [claim]


def test_the_installed_script_prints_the_page_for_agents(dibs: Path) -> None:
    assert output(dibs, "help", "agents") == (CHECKOUT / "core/dibs/AGENTS.md").read_text()


def test_the_installed_script_shows_a_board_as_text(dibs: Path, board_dir: Path) -> None:
    (board_dir / "hello.available").touch()
    assert "hello" in output(dibs, board_dir)
    assert "hello" in output(dibs, "board", board_dir)
    assert "hello" in output(dibs.with_name("python"), "-m", "dibs", board_dir)


def test_a_dashboard_without_its_requirements_prints_the_command_that_installs_them(
    dibs: Path, board_dir: Path, tmp_path: Path
) -> None:
    (board_dir / "hello.available").touch()
    for line in ([dibs, board_dir], [dibs, "board", board_dir], [dibs, "demo"]):
        code, output_text = on_a_terminal(*line, XDG_STATE_HOME=str(tmp_path))
        assert code == 2
        assert re.search(r"\w+, which is not installed: run `.* install .+`", output_text)
        assert "fault" not in output_text
        assert len(output_text.strip().splitlines()) == 1
    assert not list(tmp_path.rglob("crash.txt"))
    assert "hello" in output(dibs, "--once", board_dir)


def test_everything_else_works_without_the_requirements_of_the_dashboard(
    dibs: Path, board_dir: Path
) -> None:
    def run(*words: str) -> str:
        return output(dibs, "-d", board_dir, *words)

    run("init")
    run("add", "a", "b")
    assert run("run", "--loop", "--", "sh", "-c", "echo $DIBS_ID") == "a\nb\n"
    run("wait", "a", "b")
    lock = run("acquire", "nightly").strip()
    run("release", lock)
    for words in (["status", "nightly"], ["log"], ["show", "a"], ["stats"], ["paths"], ["pauses"]):
        assert run(*words) or words == ["pauses"]
    run("reap")
    run("check", "--probe")
    assert "complete" in run("completion", "bash")
    assert run("help", "agents") == (CHECKOUT / "core/dibs/AGENTS.md").read_text()
    assert "hello" not in output(dibs, "--once", board_dir)
    assert json.loads(output(dibs, "--json", board_dir))


def on_a_terminal(*command: str | Path, **env: str) -> tuple[int, str]:
    """The exit code and the output of a command that runs on a terminal."""
    ours, theirs = os.openpty()
    with subprocess.Popen(
        command, env=os.environ | env, stdin=theirs, stdout=theirs, stderr=theirs
    ) as process:
        os.close(theirs)
        output_text = b""
        with suppress(OSError):  # the terminal was closed
            while piece := os.read(ours, 4096):
                output_text += piece
        os.close(ours)
        return process.wait(), output_text.decode()


def test_an_uninstalled_source_tree_names_itself_and_shows_its_board(board_dir: Path) -> None:
    (board_dir / "hello.available").touch()
    bare = {"PYTHONPATH": str(CHECKOUT / "core")}
    for line, words in (
        (["--version"], "dibs (not installed: this is a source tree)"),
        (["ls"], "hello"),
        ([str(board_dir)], "hello"),
        (["board", str(board_dir)], "hello"),
    ):
        command = [sys.executable, "-S", "-m", "dibs", *line]
        assert words in output(*command, **bare, DIBS_DIR=str(board_dir))
