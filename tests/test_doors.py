"""The pages for the next engineer: what they name exists."""

from __future__ import annotations

import ast
import re
from functools import cache

import pytest

from dibs.cli.grammar import ALIASES, VERBS
from dibs_tui.model.commands import COMMANDS, spelled
from tests.test_tree import ROOT

PAGES = ("CONTRIBUTING.md", "docs/architecture.md")
ROOTS = (ROOT, ROOT / "core", ROOT / "tui")
"""Modules are named as they are imported, other files from the top of the tree."""
WORDS = {*VERBS, *ALIASES, "run", "demo", "board"}
OTHERS = {"apt", "make", "pip", "pytest", "python", "tmux", "uv", "dibs"}
"""Commands of which the pages show lines."""
FOREIGN = {
    *("ls", "mv", "link", "unlink", "utime", "chmod -R", "rename(2)", "RENAME_NOREPLACE"),
    *("getattr", "DataTable", "pg_current_snapshot()", "pg_snapshot_xmin", "mypy --strict"),
    *("X", "y", "<id>.<stamp>.<claim>", "board.toml", "known/", "gone/", ".dibs/free/"),
    *(".dibs/claims", "postgresql://", "https://", "dibs", "files | postgres | name"),
    *("pip install pre-commit && pre-commit install", ".venv", "uv run", "uv sync"),
}
"""What is named and is nothing of ours, or is no code: keys, calls, and files on a board."""

pytestmark = pytest.mark.fast("tests.suite")


def spans(page: str) -> list[str]:
    """What a page names in code quotes, apart from fenced blocks."""
    text = re.sub(r"^```.*?^```$", "", (ROOT / page).read_text(), flags=re.DOTALL | re.MULTILINE)
    return re.findall(r"`([^`]+)`", text)


def lines(page: str) -> list[str]:
    """The lines of a page's shell blocks."""
    blocks = re.findall(r"^```sh\n(.*?)^```$", (ROOT / page).read_text(), re.DOTALL | re.MULTILINE)
    return [line.partition("#")[0].strip() for block in blocks for line in block.splitlines()]


@cache
def defined() -> dict[str, set[str]]:
    """Every class, function and constant of the tree, each class with what it has."""
    found: dict[str, set[str]] = {}
    for folder in ("core", "tui", "tests", "screenshots"):
        for path in (ROOT / folder).rglob("*.py"):
            for node in ast.parse(path.read_text()).body:
                if isinstance(node, ast.ClassDef):
                    parts = found.setdefault(node.name, set())
                    parts |= {one.name for one in node.body if isinstance(one, ast.FunctionDef)}
                elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                    found.setdefault(node.name, set())
                elif isinstance(node, (ast.Assign, ast.AnnAssign)):
                    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                    for target in targets:
                        if isinstance(target, ast.Name):
                            found.setdefault(target.id, set())
    return found


def there(name: str) -> bool:
    """Whether a path exists; it may hold `*`."""
    return any(any(root.glob(name.rstrip("/"))) for root in ROOTS)


def is_module(name: str) -> bool:
    """Whether a module exists that can be run: a package or a file."""
    path = name.replace(".", "/")
    return there(path) or there(f"{path}.py")


def targets() -> set[str]:
    """What can be made."""
    return set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))


def wrong(line: str) -> str:
    """What a command line of a page names and does not exist."""
    words = line.replace(".venv/bin/", "").split()
    if words[0] not in OTHERS:
        return f"the command {words[0]}"
    for at, word in enumerate(words):
        if word == "make" and words[at + 1] not in targets():
            return f"make {words[at + 1]}"
        if word == "dibs" and at + 1 < len(words) and words[at + 1] not in WORDS:
            return f"dibs {words[at + 1]}"
        if word == "-m" and words[0] == "python" and not is_module(words[at + 1]):
            return words[at + 1]
        if word.startswith(("tests/", "screenshots/")) and not there(word):
            return word
    return ""


def known(span: str) -> bool:
    """Whether what is named exists."""
    if span in FOREIGN or there(span) or span in defined():
        return True
    if re.match(r"(make|dibs|pytest|python -m|\.venv/bin/\w+) ", span):
        return not wrong(span)
    owner, _, part = span.partition(".")
    if part in defined().get(owner, ()):
        return True
    if span.startswith("pytest.mark."):
        return f'"{span.split(".")[2].split("(")[0]}(' in (ROOT / "pyproject.toml").read_text()
    if span.startswith("--"):
        return f'"{span}"' in (ROOT / "tests/explorer/runner.py").read_text()
    if not re.fullmatch(r"[a-z_]+(\.[a-z_]+)*", span):
        return False
    name = span.replace(".", "/")
    return any(there(f"{top}{name}/__init__.py") for top in ("", "dibs/", "dibs_tui/")) or there(
        f"dibs/{name}.py"
    )


@pytest.mark.parametrize("page", PAGES)
def test_a_page_names_in_code_only_what_exists(page: str) -> None:
    named = spans(page)
    assert len(named) > 30
    assert [span for span in named if not known(span)] == []


@pytest.mark.parametrize("page", PAGES)
def test_every_line_of_a_pages_shell_blocks_names_what_exists(page: str) -> None:
    assert [found for line in lines(page) if line and (found := wrong(line))] == []


@pytest.mark.parametrize("page", PAGES)
def test_every_link_of_a_page_leads_somewhere(page: str) -> None:
    folder = (ROOT / page).parent
    for link in re.findall(r"\]\(([^)#:]+)\)", (ROOT / page).read_text()):
        assert (folder / link).exists(), link


def test_what_does_not_exist_is_noticed() -> None:
    gone = (
        "dibs/files/gone.py",
        "NoSuchClass",
        "FilesClaim.vanish",
        "make nothing",
        "dibs nothing",
    )
    assert not [span for span in gone if known(span)]


def test_each_make_target_has_its_line_and_each_line_its_target() -> None:
    table = re.findall(r"^\| `make ([a-z]+)` \|", (ROOT / "CONTRIBUTING.md").read_text(), re.M)
    assert sorted(table) == sorted(targets())


def test_make_sets_up_and_tests_with_the_commands_of_the_readme() -> None:
    readme = (ROOT / "README.md").read_text()
    (line,) = re.findall(r"^<!-- test command -->\n```sh\n(.*)\n```$", readme, re.MULTILINE)
    set_up, _, suite = line.rpartition(" && ")
    recipe = (ROOT / "Makefile").read_text().replace("$(BIN)", ".venv/bin")
    assert f"\t{set_up}\n" in recipe
    assert f"\t{suite}\n" in recipe


def test_the_hooks_before_a_commit_run_what_check_runs_and_fetch_nothing() -> None:
    hooks = (ROOT / ".pre-commit-config.yaml").read_text()
    entries = re.findall(r"^ +entry: \.venv/bin/(.*)$", hooks, re.MULTILINE)
    recipe = (ROOT / "Makefile").read_text()
    assert entries
    assert all(f"\t$(BIN)/{entry}\n" in recipe for entry in entries)
    assert re.findall(r"repo: (.*)", hooks) == ["local"]
    assert "://" not in hooks


def test_the_readmes_table_of_keys_has_keys_of_acts() -> None:
    _, _, text = (ROOT / "README.md").read_text().partition("\n## The dashboard\n")
    text, _, _ = text.partition("\n## ")
    keys = re.findall(r"^\| ((?:`[^`]+` ?)+)\|", text, re.MULTILINE)
    named = {key for cell in keys for key in re.findall(r"`([^`]+)`", cell)}
    acts = {spelled(key) for one in COMMANDS if one.group == "act" for key in one.keys}
    assert {"X", "u"} <= named <= acts
