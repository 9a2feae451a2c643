"""The shell library in the scripts of its users: handlers, options, names and open files."""

import os
import re
import shutil
from pathlib import Path

import pytest

from tests.core.library import LIBRARY, SHELLS, Fleet
from tests.stress.running import marked, until

TOOLS = (
    "mv rm touch stat tr od awk head tail grep mkdir chgrp sync readlink wc id uname sleep cd kill"
)
STRICT = """set -Eeuo pipefail; trap 'exit 9' ERR
shopt -s failglob; GLOBIGNORE='*.available'
declare -i n x r i b f; declare -u name stem"""


def test_a_handler_that_stops_early_under_errexit_commits_nothing(fleet: Fleet) -> None:
    fleet.add("a")
    assert fleet.sh("set -e; h() { false; echo went on; }; process_loop h; echo $-")[0] != "w"
    assert fleet.names()[0].startswith("failed/a.f5a5.")


@pytest.mark.parametrize("fields", ["\n\t", ""], ids=["strict", "none"])
def test_the_loop_beats_with_any_field_separator_of_the_caller(scratch: Path, fields: str) -> None:
    fleet = Fleet(scratch, SHELLS[0])
    fleet.add("a")
    beaten = 'stat -c %y "$DIBS_DIR/.dibs/records/$DIBS_CLAIM"'
    # It ends also when the record is gone, so that nothing is left of a test that has failed.
    waits = f'while [ "$({beaten})" = "$x" ]; do sleep 0.1; done'
    handler = f"h() {{ x=$({beaten}); {waits}; {beaten}; }}"
    assert fleet.sh(f"IFS='{fields}'; {handler}; process_loop h", DIBS_TTL="10")
    assert fleet.names()[0].startswith("done/a.f1.")


def test_a_loop_ends_even_if_its_caller_ignores_signals(fleet: Fleet) -> None:
    fleet.add("a")
    fleet.sh("trap '' TERM HUP INT; process_loop true")
    assert fleet.names()[0].startswith("done/a.f1.")


def test_a_loop_leaves_neither_processes_nor_open_files_behind(fleet: Fleet) -> None:
    fleet.add("a")
    pipe = fleet.path.parent / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    fleet.sh(f"exec 9> '{pipe}'; process_loop sleep 0.2", DIBS_TTL="60")
    assert os.read(reader, 1) == b""  # a remaining writer would block it
    os.close(reader)
    claim = fleet.names()[0].removeprefix("done/")
    until(lambda: not marked(claim))


def test_a_slow_beat_that_the_end_of_its_loop_overtakes_is_no_late_holder(fleet: Fleet) -> None:
    fleet.add("a")
    fleet.instead_of("touch", 'case $2 in */records/*) sleep 1 ;; esac; exec "$REAL" "$@"')
    done = fleet.run("process_loop sleep 1; sleep 1.2", DIBS_TTL="1.8")
    assert (done.returncode, done.stderr) == (0, b"")
    assert [e.verb for e in fleet.board().log.of("a")] == ["claim", "done"]


def test_aliases_and_functions_named_like_the_tools_are_not_used(fleet: Fleet) -> None:
    fleet.add("a", "b")
    functions = f'for t in {TOOLS}; do eval "$t() {{ echo pwned; return 3; }}"; done'
    fleet.sh("next_task && done_task", before=functions)
    aliases = "alias mv='mv -i' rm='rm -i' cd='echo' id='echo' sleep='echo' kill='echo'"
    fleet.sh("process_loop true", before=aliases)
    assert [n[:9] for n in fleet.names()] == ["done/a.f1", "done/b.f1"]
    assert {e.by for e in fleet.board().log.read()} == {"me"}


def test_a_conflicting_readonly_variable_is_reported_and_nothing_is_done(fleet: Fleet) -> None:
    fleet.add("a")
    done = fleet.run("readonly owner=bob; (next_task)")
    assert done.returncode == 2
    assert b"owner" in done.stderr
    assert fleet.names() == ["a.available"]


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")
def test_common_options_of_bash_scripts_do_no_harm(scratch: Path) -> None:
    fleet = Fleet(scratch, ["bash"])
    fleet.add("a", "b")
    script = "next_task; heartbeat; reap_stale; done_task; h() { [ $DIBS_ID = c ]; }"
    fleet.sh(f"{script}; process_loop h; reap_stale", before=STRICT)
    assert [n[:11] for n in fleet.names()] == ["done/a.f1.m", "failed/b.f5"]


def test_the_path_of_the_payload_may_contain_newlines(fleet: Fleet) -> None:
    path = fleet.path.parent / "\nnew\n/\nline\n"
    path.mkdir(parents=True)
    (path / "a.available").write_text("payload")
    script = 'next_task > /dev/null; cat "$DIBS_PAYLOAD"; echo ",$DIBS_ID"'
    assert fleet.sh(script, DIBS_DIR=str(path)) == "payload,a"


def test_the_example_of_the_page_runs_unchanged(fleet: Fleet) -> None:
    page = (LIBRARY.parents[2] / "CLI.md").read_text()
    blocks = re.findall(r"^```shell\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    (example,) = (block for block in blocks if "dibs.sh" in block)
    fleet.path.rename(fleet.path.parent / "tasks")
    fleet.path = fleet.path.parent / "tasks"
    fleet.add("a")
    fleet.sh("", before=example.replace("/path/to/dibs.sh", str(LIBRARY)))
    assert fleet.names()[0].startswith("done/a.f1.me-")
    (written,) = fleet.path.parent.glob("out-a.f1.me-*")
    assert written.read_text() == "payload of a\n"


def test_every_short_name_is_freed_of_the_callers_definition() -> None:
    text = re.sub(r"^\s*#.*$", "", LIBRARY.read_text(), flags=re.MULTILINE)
    used = set(re.findall(r"(?:^|[\s;({&|])([a-z]\w*)=", text)) | set(
        re.findall(r"for (\w+) in", text)
    )
    freed = text.partition("dibs_fresh() {\n  unset -v ")[2].partition("||")[0].split()
    assert {n for n in used if not n.startswith("dibs_")} - {"names"} <= set(freed)
