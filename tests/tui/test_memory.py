"""The remembered view: it survives restarts, and an invalid file does no harm."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dibs_tui.settings import memory
from dibs_tui.settings.memory import Remembered
from tests.core.tools import NOBODY

pytestmark = pytest.mark.fast("dibs_tui.settings")

LEFT = Remembered(
    panel="stale",
    sort={"claimed": ("held", True), "all": ("id", False)},
    columns={"claimed": ("id", "owner", "left"), "done": ()},
    pane=True,
    compact=True,
    theme="dibs-light",
    muted=True,
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=8,
)


class State:
    """A user's state folder, and the environment that points there."""

    def __init__(self, path: Path) -> None:
        self.environ = {"XDG_STATE_HOME": str(path)}
        self.file = path / "dibs/view.json"

    def load(self) -> Remembered:
        return memory.load("/b", self.environ)

    def save(self, remembered: Remembered, board: str = "/b") -> None:
        memory.save(remembered, board, self.environ)


@pytest.fixture
def state(tmp_path: Path) -> State:
    return State(tmp_path / "state")


def test_the_view_is_restored(state: State) -> None:
    assert state.load() == Remembered()
    state.save(LEFT)
    assert state.load() == LEFT
    state.save(Remembered())
    assert state.load() == Remembered()
    assert os.listdir(state.file.parent) == ["view.json"]
    assert state.file.stat().st_mode & 0o777 == 0o600
    assert state.file.parent.stat().st_mode & 0o777 == 0o700


def test_each_board_has_its_own_view_and_all_share_one_theme(state: State) -> None:
    state.save(LEFT)
    other = LEFT._replace(panel="done", sort={}, theme="dibs-dark", muted=False)
    state.save(other, "/other")
    assert memory.load("/other", state.environ) == other
    assert state.load() == LEFT._replace(theme="dibs-dark", muted=False)
    assert memory.load("/never/seen", state.environ) == Remembered(theme="dibs-dark")


def test_of_a_temporary_board_only_the_theme_is_kept(state: State) -> None:
    state.save(LEFT)
    state.save(LEFT._replace(panel="feed", theme="dibs-contrast"), "")
    assert memory.load("", state.environ) == Remembered(theme="dibs-contrast", muted=True)
    assert state.load() == LEFT._replace(theme="dibs-contrast")


def test_the_file_stays_small_and_forgets_the_oldest_boards(
    state: State,
) -> None:
    places = [f"/{n}/{'x' * 2000}" for n in range(60)]
    for place in places:
        state.save(LEFT, place)
    assert state.file.stat().st_size < 65_536
    kept = [memory.load(place, state.environ) == LEFT for place in places]
    assert kept[-1]
    assert not kept[0]
    assert kept == sorted(kept)


def test_an_earlier_format_without_boards_gives_no_view(
    state: State,
) -> None:
    state.file.parent.mkdir(parents=True)
    state.file.write_text(json.dumps(LEFT._asdict()))
    assert state.load() == Remembered(theme=LEFT.theme, muted=True)


def test_the_file_is_where_xdg_says() -> None:
    assert memory.path({"XDG_STATE_HOME": "/s"}) == "/s/dibs/view.json"
    assert memory.path({"HOME": "/h"}) == "/h/.local/state/dibs/view.json"
    assert memory.path({"HOME": "/h", "XDG_STATE_HOME": "s"}) == memory.path({"HOME": "/h"})


@pytest.mark.parametrize(
    "data",
    [
        *(b"", b"null", b"[]", b"{", b"\xff", b"[" * 60_000, b'"x"', b"9" * 5000),
        b"{" + b'"panel": "a",' * 9000 + b'"pane": true}',
    ],
)
def test_an_invalid_file_is_ignored(state: State, data: bytes) -> None:
    state.save(LEFT)
    state.file.write_bytes(data)
    assert state.load() == Remembered()
    state.save(LEFT)
    assert state.load() == LEFT


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("panel", 7),
        ("panel", "a\x1b[2J"),
        ("theme", ["x"]),
        ("pane", 1),
        ("sort", {"all": "id"}),
        ("sort", {"all": ["id", "yes"]}),
        ("sort", ["all"]),
        ("columns", {"all": "id"}),
        ("columns", {"all": [1]}),
        ("columns", {"a b": ["id"]}),
        ("muted", None),
    ],
)
def test_only_the_invalid_part_is_forgotten(state: State, key: str, value: object) -> None:
    state.save(LEFT)
    fields = LEFT._asdict() | {key: value, "other": 1}
    state.file.write_text(json.dumps(fields | {"boards": {"/b": fields, "/c": 7}}))
    assert state.load() == LEFT._replace(**{key: getattr(Remembered(), key)})


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(st.dictionaries(st.sampled_from(Remembered._fields), JSON))
def test_no_remembered_value_makes_it_fail(state: State, fields: dict[str, object]) -> None:
    state.file.parent.mkdir(parents=True, exist_ok=True)
    state.file.write_text(json.dumps(fields | {"boards": {"/b": fields}}))
    found = state.load()
    state.save(found)
    assert state.load() == found


@pytest.mark.parametrize("kind", ["link", "dangling", "itself", "fifo", "folder"])
def test_an_unsafe_path_is_never_followed(state: State, tmp_path: Path, kind: str) -> None:
    other = tmp_path / "other"
    other.write_text('{"panel": "evil"}')
    state.file.parent.mkdir(parents=True)
    match kind:
        case "link":
            state.file.symlink_to(other)
        case "dangling":
            state.file.symlink_to(tmp_path / "nothing")
        case "itself":
            state.file.symlink_to(state.file.name)
        case "fifo":
            os.mkfifo(state.file)
        case _:
            state.file.mkdir()
    assert state.load() == Remembered()
    state.save(LEFT)
    assert other.read_text() == '{"panel": "evil"}'
    assert not (tmp_path / "nothing").exists()
    assert state.load() == (Remembered() if kind == "folder" else LEFT)
    assert os.listdir(state.file.parent) == ["view.json"]


def test_leftovers_of_a_killed_process_are_removed(state: State, tmp_path: Path) -> None:
    state.file.parent.mkdir(parents=True)
    (tmp_path / "other").write_text("keep")
    (state.file.parent / f"view.json.{os.getpid()}").symlink_to(tmp_path / "other")
    state.save(LEFT)
    assert state.load() == LEFT
    assert (tmp_path / "other").read_text() == "keep"
    assert os.listdir(state.file.parent) == ["view.json"]


def test_a_draft_of_another_process_is_removed_once_it_is_old(state: State) -> None:
    state.file.parent.mkdir(parents=True)
    for name, age in (("view.json.1", 60), ("view.json.2", 7200)):
        (state.file.parent / name).touch()
        os.utime(state.file.parent / name, (time.time() - age,) * 2)
    state.save(LEFT)
    assert sorted(os.listdir(state.file.parent)) == ["view.json", "view.json.1"]


def test_an_unwritable_folder_is_ignored_quietly(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for place in (tmp_path / "file", Path("/proc"), Path("/dev/null")):
        state = State(place)
        state.save(LEFT)
        assert state.load() == Remembered()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder to another user")
def test_nothing_is_written_into_another_users_folder(state: State) -> None:
    state.file.parent.mkdir(parents=True)
    os.chown(state.file.parent, NOBODY, NOBODY)
    state.save(LEFT)
    assert os.listdir(state.file.parent) == []
