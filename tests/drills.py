"""What the default run of the tests leaves out: `make drills` and CI run everything.

The default run stands for every package, every verb on every engine, every screen and act, the
explorer in short and the pages, in a few minutes. Drills find rare faults: storms, kills, losses,
real mounts, terminals and browsers, and the complete contract on all engines. A test that is
slow because it starts many processes or waits for real leases belongs here: name its module, or
the test, below. `DRILLS` is the only place that says so.
"""

from __future__ import annotations

from typing import Any

import pytest

EVERY_ENGINE = (
    "tests/contract/test_verbs_deadline.py",
    "tests/contract/test_verbs_lives.py",
    "tests/contract/test_verbs_locks.py",
    "tests/contract/test_verbs_operator.py",
    "tests/contract/test_verbs_reader.py",
    "tests/contract/test_verbs_worker.py",
)
"""What the default run tests on each engine; the rest of the contract it tests on files only."""

DRILLS: dict[str, tuple[str, ...]] = {
    "the explorer at length": (
        "tests/explorer/test_explorer.py"
        "::test_the_shipped_code_keeps_the_invariants_and_every_mutant_breaks_one",
    ),
    "storms, kills and random runs": (
        "tests/contract/test_reference.py",
        "tests/contract/test_storm.py",
        "tests/core/test_journal_long.py",
        "tests/core/test_plain_races.py",
        "tests/serve/test_safety.py",
        "tests/stress/",
        "tests/tui/test_act_storm.py",
        "tests/tui/test_demo_crew.py",
        "tests/tui/test_incident.py",
        "tests/tui/test_large_boards.py",
        "tests/tui/test_watching_trouble.py",
    ),
    "losses, outages and hostile peers": (
        "tests/core/test_mcp.py",
        "tests/core/test_notify_trouble.py",
        "tests/postgres/",
        "tests/remote/",
        "tests/serve/test_attacks.py",
        "tests/serve/test_fuzzed.py",
        "tests/serve/test_hooks.py",
    ),
    "real file systems": (
        "tests/core/test_probe_mounts.py",
        "tests/filesystems/",
        "tests/serve/test_hung_storage.py"
        "::test_while_a_mount_hangs_all_is_answered_and_afterwards_all_goes_on",
        "tests/tui/test_full_disk.py",
        "tests/tui/test_mounts.py",
        "tests/tui/test_storage_denied.py",
        "tests/tui/test_storage_hanging.py",
        "tests/tui/test_storage_trouble.py",
    ),
    "real terminals, slow links and browsers": (
        "tests/serve/test_browser.py",
        "tests/serve/test_in_chromium.py",
        "tests/tui/test_act_cli_races.py",
        "tests/tui/test_act_hostile.py",
        "tests/tui/test_clicks.py::test_a_click_of_a_real_terminal_opens_a_tab",
        "tests/tui/test_end_to_end.py",
        "tests/tui/test_end_to_end_keys.py",
        "tests/tui/test_exit.py",
        "tests/tui/test_glyphs.py::test_a_terminal_gets_ascii_only",
        "tests/tui/test_hostile_screens.py",
        "tests/tui/test_inks.py",
        "tests/tui/test_keys_in_order.py",
        "tests/tui/test_pasted_keys.py",
        "tests/tui/test_slow_link.py",
        "tests/tui/test_terminals.py",
    ),
    "every screen in every theme, size and hostile text": (
        "tests/tui/test_contrast.py",
        "tests/tui/test_demo_still.py",
        "tests/tui/test_inspect_looks.py",
    ),
    "streams, shells and other versions": (
        "tests/core/test_cli_completion.py",
        "tests/core/test_cli_streams.py",
        "tests/core/test_compatibility.py",
        "tests/core/test_fresh_callers.py",
        "tests/core/test_hostile_content.py",
        "tests/core/test_hostile_files.py",
        "tests/core/test_hostile_folders.py",
        "tests/core/test_one_file.py::test_every_python_here_makes_the_same_code",
        "tests/core/test_one_file.py::test_every_python_here_works_with_it_from_add_to_done",
        "tests/core/test_other_systems.py::test_the_contract_of_boards_holds",
        "tests/core/test_packaging.py",
        "tests/core/test_shell_hostile.py",
        "tests/core/test_shell_loop.py",
        "tests/core/test_shell_pause.py",
        "tests/core/test_shell_presence.py",
    ),
}
"""The drills: paths of folders (with a / at the end), modules, or tests, by what they try."""

KEPT = (
    "tests/core/test_cli_streams.py::test_a_closed_standard_output_is_one_line_and_exit_1",
    "tests/core/test_mcp.py::test_a_call_that_makes_no_sense_is_refused_in_words",
    "tests/core/test_mcp.py::test_a_task_goes_from_add_to_done",
    "tests/core/test_mcp.py::test_a_worker_never_imports_the_sdk",
    "tests/core/test_mcp.py::test_there_is_one_resource_and_one_prompt",
    "tests/core/test_packaging.py::test_the_version_is_in_one_place",
    "tests/postgres/test_docs.py",
    "tests/postgres/test_hostile_text.py",
    "tests/postgres/test_steps.py",
    "tests/remote/test_tokens.py",
    "tests/serve/test_browser.py::test_a_dashboard_follows_the_size_of_its_page",
    "tests/serve/test_browser.py::test_without_a_login_there_is_no_dashboard",
    "tests/stress/test_found.py",
    "tests/stress/test_run.py",
    "tests/stress/test_run_refused.py",
    "tests/tui/test_end_to_end.py::test_a_filter_shows_what_matches_and_escape_clears_it",
    "tests/tui/test_end_to_end.py::test_changes_by_other_processes_are_shown_at_once",
    "tests/tui/test_end_to_end.py::test_each_view_has_its_key",
    "tests/tui/test_exit.py::test_a_key_ends_it_and_restores_the_terminal",
    "tests/tui/test_exit.py::test_without_a_terminal_one_frame_is_printed",
    "tests/tui/test_inspect_looks.py::test_every_section_of_every_hostile_task_is_harmless_and_fits",
    "tests/tui/test_storage_trouble.py::test_a_directory_that_is_renamed_away_is_missing_until_it_is_back",
    "tests/tui/test_terminals.py::test_a_dumb_terminal_gets_one_frame_of_plain_text",
)
"""What the default run keeps of them: enough to see that each kind works at all."""

LEFT_OUT = "drills_left_out"
PATHS = tuple(path for paths in DRILLS.values() for path in paths)


def is_drill(nodeid: str, engine: str = "files", fast: bool = False) -> bool:
    """Whether a test is a drill, by its id, its engine and whether it is in the fast lane."""
    name = nodeid.partition("[")[0]
    if nodeid.startswith("tests/contract/") and engine != "files":
        return not name.startswith(EVERY_ENGINE)
    if fast or any(covers(path, name) for path in KEPT):
        return False
    return any(covers(path, name) for path in PATHS)


def covers(path: str, name: str) -> bool:
    """Whether a folder, a module or a test of the tables is, or has, the test of this name."""
    return name == path or name.startswith(path if path.endswith("/") else f"{path}::")


def engine_of(item: pytest.Item) -> str:
    """The engine that a test of the contract runs on; "files" for all other tests."""
    callspec = getattr(item, "callspec", None)
    return str(callspec.params.get("places", "files")) if callspec else "files"


def fast(item: pytest.Item) -> bool:
    """Whether a test is in the fast lane: these stand for the packages, so they always run."""
    return item.get_closest_marker("fast") is not None


class Drills:
    """The plugin of pytest that leaves the drills out, and says how many there are."""

    def __init__(self, config: pytest.Config) -> None:
        self.left_out = 0
        self._wanted = config.option.drills or bool(config.option.markexpr)
        """Also if the command line chooses tests by their marks."""
        named = (argument.partition("::")[0] for argument in config.args)
        self._named = {str(config.invocation_params.dir / path) for path in named}
        """A module that the command line names runs completely."""

    def pytest_collection_modifyitems(
        self, config: pytest.Config, items: list[pytest.Item]
    ) -> None:
        """Mark every drill, and deselect those that the command line does not ask for."""
        drills = [item for item in items if is_drill(item.nodeid, engine_of(item), fast(item))]
        for item in drills:
            item.add_marker(pytest.mark.drill)
        if self._wanted:
            return
        out = {item for item in drills if str(item.path) not in self._named}
        self.left_out = len(out)
        if out:
            config.hook.pytest_deselected(items=list(out))
            items[:] = [item for item in items if item not in out]

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Let the main process of xdist know how many were left out, if this is a worker."""
        output: dict[str, object] | None = getattr(session.config, "workeroutput", None)
        if output is not None:
            output[LEFT_OUT] = self.left_out

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Learn it from a worker; each of them has collected all tests."""
        left_out = getattr(node, "workeroutput", {}).get(LEFT_OUT, 0)
        self.left_out = max(self.left_out, left_out)

    def notice(self) -> str:
        """The last line of the output; empty if nothing was left out."""
        many = "drill" if self.left_out == 1 else "drills"
        return f"{self.left_out:,} {many} not run: `make drills`" if self.left_out else ""
