"""The dashboard's settings: where each comes from, and one clear line for each that is wrong."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import NamedTuple

import pytest

import dibs
from dibs_tui.settings import config, keymap
from dibs_tui.settings.config import BadConfig, Config

pytestmark = pytest.mark.fast("dibs_tui.settings")


class Home:
    """A user's home with a `config.toml` in it, and the environment that points there."""

    def __init__(self, path: Path) -> None:
        self.environ = {"HOME": str(path)}
        self.file = path / ".config/dibs/config.toml"

    def write(self, text: str | bytes) -> None:
        self.file.parent.mkdir(parents=True, exist_ok=True)
        self.file.write_bytes(text if isinstance(text, bytes) else text.encode())

    def load(self, **flags: object) -> tuple[Config, dict[str, str]]:
        return config.load(flags, self.environ)

    def refusal(self, **flags: object) -> str:
        """The one-line error that says why nothing was loaded."""
        with pytest.raises(BadConfig) as caught:
            self.load(**flags)
        assert caught.value.exit_code == 2
        text = str(caught.value)
        assert text.isprintable()
        return text


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


def test_without_settings_everything_has_its_default(home: Home) -> None:
    found, sources = home.load(theme=None)
    assert found == Config()
    assert set(sources.values()) == {"default"}


def test_a_flag_overrides_the_environment_which_overrides_the_file(home: Home) -> None:
    assert home.load()[0].theme == "dibs-dark"
    home.write('theme = "dibs-light"\nread_only = true')
    assert home.load()[0][:4] == ("dibs-light", True, "auto", True)
    home.environ |= {"DIBS_THEME": "dibs-contrast", "DIBS_READ_ONLY": "0", "NO_COLOR": "1"}
    found, sources = home.load()
    assert found[:4] == ("dibs-contrast", False, "auto", False)
    assert (sources["theme"], sources["colour"]) == ("$DIBS_THEME", "$NO_COLOR")
    found, sources = home.load(theme="auto", read_only=True)
    assert found[:4] == ("auto", False, "auto", True)
    assert (sources["theme"], sources["read_only"]) == ("--theme", "--read-only")


def test_the_file_can_set_everything(home: Home) -> None:
    home.write(
        'theme = "dibs-colourblind"\ncolour = false\nglyphs = "ascii"\nread_only = true\n'
        'bell = false\nnotify = "osc9"\nalert_command = ["notify-send", "dibs"]\n'
        'alert_every = "1m"\npoll = 0.5\n'
        'evidence_command = ["squeue", "-j", "{metadata}"]\n'
        'still = 0\nwaiting_too_long = "2h"\nfailing_again = 2\nbulk_limit = 10\n'
        "mouse = false\nlocal = false\n"
        "[rights]\nforce_release = false\npark = true\nprioritise = true\n"
        '[keys]\nquit = "f4"\nrefresh = ["ctrl+r", "r"]\n'
    )
    found, sources = home.load()
    assert found == Config(
        "dibs-colourblind", False, "ascii", True, False, "osc9", ("notify-send", "dibs"),
        ("squeue", "-j", "{metadata}"), 60, 0.5, 0, 7200, 2, 10, False, False,
        {"force_release": False, "park": True, "prioritize": True},
        {"quit": ("f4",), "refresh": ("ctrl+r", "r")},
    )  # fmt: skip
    assert set(sources.values()) == {"config.toml"}


def test_the_file_is_where_xdg_says_unless_that_is_relative(tmp_path: Path) -> None:
    environ = {"HOME": "/home/me", "XDG_CONFIG_HOME": str(tmp_path)}
    assert config.path(environ) == f"{tmp_path}/dibs/config.toml"
    environ["XDG_CONFIG_HOME"] = "here"
    assert config.path(environ) == "/home/me/.config/dibs/config.toml"


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ('theme = "dibs-drak"', 'theme must be "dibs-dark", "dibs-light", '),
        ('themes = "auto"', "there is no setting 'themes'; did you mean theme?"),
        ("zzz = 1", "use one of theme, colour"),
        ("read_only = 1", "read_only must be true or false, got 1"),
        ("poll = 0.1", "poll must be 0.2 to 60 seconds"),
        ("poll = nan", "poll must be"),
        ("poll = true", "poll must be"),
        ('waiting_too_long = "soon"', "waiting_too_long must be"),
        ("failing_again = 2.5", "a whole number, 1 to"),
        ("bulk_limit = true", "a whole number, 1 to"),
        ('notify = "OSC9"', '"off", "osc9" or "osc777"'),
        ('alert_command = "ls -l"', 'a list of strings, such as ["notify-send", "dibs"]'),
        ('alert_command = ["ls", 1]', "a list of strings"),
        ("[rights]\nforce-release = false", "a table of true or false for force_release, requeue"),
        ("[rights]\npark = 0", "for force_release, requeue, park"),
        ("rights = false", "for force_release, requeue, park"),
        ("keys = 1", "a table of commands"),
        ("[keys]\nquit = 1", "a table of commands"),
        ("[keys]\nquit = []", "a table of commands"),
        ("[keys]\na.b = 'x'", "a table of commands"),
        ("theme = ", "correct or remove it"),
        ("tick = 1\ntick = 2", "line 2: tick is already set on line 1; correct or remove it"),
        (b"\xff\xfe", "correct or remove it"),
        (b"x = " + b"[" * 30_000, "correct or remove it"),
        (b"#" * 70_000, "larger than 65536 bytes"),
        (f'theme = "{"x" * 5000}"', "…"),
        ('theme = "\\u001b[2J"', "\\x1b"),
    ],
)
def test_an_error_in_the_file_is_one_line(home: Home, text: str | bytes, wanted: str) -> None:
    home.write(text)
    refusal = home.refusal()
    assert re.match(f"{re.escape(str(home.file))}( line [12]| is not valid TOML)?: ", refusal)
    assert wanted in refusal
    assert len(refusal) < 500


def test_an_invalid_setting_is_reported_with_its_line(home: Home) -> None:
    home.write("rights = 1")
    assert home.refusal().startswith(f"{home.file} line 1: rights must be a table")
    home.write("# seconds\nalert_every = 0\n")
    assert home.refusal().endswith(
        'config.toml line 2: alert_every must be 1 to 86400 seconds, or a time such as "5s", got 0'
    )


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ('poll = 5\n\n[rights]\npark = "no"\n', 4),
        ("[rights]\nundo = true\nrequeue = false\nparks = true\npark = false\n", 4),
        ('[keys]\npark = "f6"\n[rights]\nundo = true\npark = 1\n', 5),
        ('[rights]\npark = true\n[keys]\nquit = "f4"\npark = []\n', 5),
        ("[keys]\nquit = 'x'\na.b = 'x'\n", 3),
        ('[keys]\npark = "f6"\n[keys.quit]\nx = "y"\n', 3),
        ("poll = 5\nrights = {undo = true, park = 0}\n", 2),
        ("poll = 5\nrights.park = 0\n", 2),
    ],
)
def test_an_invalid_entry_of_a_table_is_reported_with_its_own_line(
    home: Home, text: str, line: int
) -> None:
    home.write(text)
    assert home.refusal().startswith(f"{home.file} line {line}: ")


def test_a_setting_is_not_confused_with_an_entry_of_a_table_before_it(home: Home) -> None:
    home.write('[keys]\nnotify = "f6"\n[notify]\nx = 1\n')
    assert home.refusal().startswith(f"{home.file} line 3: notify must be")


def test_an_invalid_setting_from_elsewhere_names_its_source(home: Home) -> None:
    assert home.refusal(poll=100).startswith("--poll: poll must be")
    home.environ["DIBS_READ_ONLY"] = "maybe"
    assert home.refusal() == "$DIBS_READ_ONLY: read_only must be true or false, got 'maybe'"
    home.environ["DIBS_THEME"] = "pink"
    assert home.refusal().startswith("$DIBS_THEME: theme must be")


@pytest.mark.parametrize("kind", ["fifo", "folder", "itself"])
def test_an_unreadable_file_is_reported_and_never_waited_for(home: Home, kind: str) -> None:
    home.file.parent.mkdir(parents=True)
    match kind:
        case "fifo":
            os.mkfifo(home.file)
        case "folder":
            home.file.mkdir()
        case _:
            home.file.symlink_to(home.file.name)
    assert "remove it" in home.refusal()


def test_a_link_to_the_users_own_file_is_followed(home: Home, tmp_path: Path) -> None:
    (tmp_path / "dotfiles").write_text("bell = false")
    home.file.parent.mkdir(parents=True)
    home.file.symlink_to(tmp_path / "dotfiles")
    assert not home.load()[0].bell


def test_an_invalid_setting_is_a_usage_error(home: Home) -> None:
    with pytest.raises(dibs.BadName):
        home.load(theme="pink")


def test_every_value_is_described_as_in_the_file(home: Home) -> None:
    home.write('poll = 5\nalert_command = ["a", "b c"]\n[keys]\nquit = "f4"')
    rows = config.described(*home.load())
    assert ("poll", "5", "config.toml") in rows
    assert ("theme", '"dibs-dark"', "default") in rows
    assert [key for key, _, _ in rows] == list(Config._fields)
    home.write("\n".join(f"{key} = {value}" for key, value, _ in rows))
    again = home.load()
    assert again[0] == Config(poll=5, alert_command=("a", "b c"), keys={"quit": ("f4",)})


def test_the_documented_defaults_can_be_written_and_read_back(home: Home) -> None:
    rows = config.described(Config(), dict.fromkeys(Config._fields, "default"))
    home.write("\n".join(f"{key} = {value}" for key, value, _ in rows))
    assert tomllib.loads(home.file.read_text())["waiting_too_long"] == 900
    assert home.load()[0] == Config()


class Some(NamedTuple):
    """A stand-in for a command of the registry."""

    id: str
    keys: tuple[str, ...]
    destructive: bool = False


COMMANDS = [
    Some("quit", ("q",)),
    Some("help", ("?",)),
    Some("back", ("escape",)),
    Some("refresh", ("ctrl+r", "ctrl+l")),
    Some("requeue", ("R",), destructive=True),
]


def test_valid_keys_are_spelled_as_in_textual() -> None:
    keys = {"quit": ["Q", "f4"], "refresh": ["ctrl+alt+x", ","]}
    wanted = {"quit": ("Q", "f4"), "refresh": ("alt+ctrl+x", "comma")}
    assert keymap.check(keys, COMMANDS) == wanted
    assert keymap.check({"help": ["/", "ä"]}, COMMANDS) == {"help": ("slash", "ä")}
    assert keymap.check({"requeue": ["T", "f7", "ctrl+t"]}, COMMANDS)
    assert keymap.check({}, COMMANDS) == {}


def test_two_commands_may_swap_their_keys() -> None:
    swapped = keymap.check({"quit": ["?"], "help": ["q"]}, COMMANDS)
    assert swapped == {"quit": ("question_mark",), "help": ("q",)}


@pytest.mark.parametrize(
    ("keys", "wanted"),
    [
        ({"qiut": ["x"]}, "there is no command 'qiut'; did you mean quit?"),
        ({"zzz": ["x"]}, "use one of quit, help"),
        ({"quit": ["pagedwon"]}, "'pagedwon' is not a key; did you mean \"pagedown\"?"),
        ({"quit": ["Ctrl+X"]}, 'did you mean "ctrl+x"?'),
        ({"quit": ["esc"]}, 'did you mean "escape"?'),
        ({"quit": ["ctrl+"]}, "is not a key"),
        ({"quit": [""]}, "is not a key"),
        ({"quit": ["xy"]}, 'keys are written like "x"'),
        ({"quit": ["\x1b"]}, "'\\x1b' is not a key"),
        ({"quit": ["shift+x"]}, "terminals never send 'shift+x'; write 'X'"),
        ({"quit": ["ctrl+X"]}, "terminals never send 'ctrl+X'; write 'ctrl+x'"),
        ({"quit": ["ctrl+shift+x"]}, "write 'ctrl+x'"),
        ({"quit": ["return"]}, 'called "enter"'),
        ({"quit": ["?"]}, "quit cannot have 'question_mark': help has it"),
        ({"quit": ["question_mark"]}, "help has it"),
        ({"quit": ["x"], "help": ["x"]}, "help cannot have 'x': quit has it"),
        ({"quit": ["ctrl+s"]}, "flow control"),
        ({"quit": ["ctrl+b"]}, "tmux"),
        ({"quit": ["ctrl+i"]}, "tab"),
        ({"quit": ["f11"]}, "terminal windows"),
        ({"requeue": ["enter"]}, "too easily pressed for an act"),
        ({"requeue": ["ctrl+d"]}, "vim users scroll with it"),
        ({"requeue": ["x"]}, "capital letter"),
    ],
)
def test_an_invalid_key_is_reported_in_one_line(keys: dict[str, list[str]], wanted: str) -> None:
    with pytest.raises(BadConfig) as caught:
        keymap.check(keys, COMMANDS)
    text = str(caught.value)
    assert text.startswith("config.toml [keys]: ")
    assert wanted in text
    assert text.isprintable()


def test_settings_import_no_screen() -> None:
    code = (
        "import sys; from dibs_tui.settings import config, keymap, memory; config.load({}); "
        "memory.load(''); print({m.split('.')[0] for m in sys.modules} & {'textual', 'rich'})"
    )
    root = Path(__file__).parents[2]
    env = {"PYTHONPATH": f"{root / 'core'}:{root / 'tui'}", "HOME": "/nowhere"}
    argv = [sys.executable, "-c", code]
    done = subprocess.run(argv, env=env, capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"
