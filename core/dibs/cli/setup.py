"""The verb `setup`: it shows its change of a file of the user before it writes it."""

from __future__ import annotations

import argparse
import os
import shutil
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from dibs.board import locate
from dibs.cli import agents_section, client_hooks, shell_sections
from dibs.model.errors import BadName, Refused, StorageError

if TYPE_CHECKING:
    from dibs.cli.marked_section import MarkedSection
    from dibs.cli.say import Voice

FILE_BYTES = 4 << 20
"""The longest file that is edited."""


class _Edit(NamedTuple):
    """What one kind of setup edits, and how."""

    file: Callable[[], str]
    """Its path if none is given."""
    added: Callable[[str | None, bool], str]
    """The text with what dibs needs; None stands for no file, and False for no folder of it."""
    removed: Callable[[str], str | None]
    """The text without it; None if the file was made by setup and can go."""
    made_folder: Callable[[str], bool] = lambda text: False
    """Whether setup made the folder of a file with that text."""


def setup(voice: Voice, args: argparse.Namespace) -> int:
    """Show how a file has to change, and write it if that is wanted."""
    target = _TARGETS[args.what]
    if args.file is None or not os.path.isabs(args.file):
        locate(os.curdir)  # refused if this directory is gone
    path = args.file or target.file()
    before = _read(path)
    after = _edited(target, before, path, remove=args.remove)
    if after == before:
        return _say(voice, path, "unchanged", "nothing to remove" if args.remove else "set up")
    diff = "".join(_diff(path, before, after))
    if not voice.json:
        for line in diff.split("\n")[:-1]:
            voice.result(line, {})
    if args.dry_run:
        return _say(voice, path, "dry-run", "nothing was written", diff)
    if not args.yes and not _confirmed(voice, path):
        return _say(voice, path, "unchanged", "nothing was written", diff)
    if _read(path) != before:
        raise Refused(f"{path}: it has changed meanwhile, so nothing was written: run it again")
    _write(path, after)
    if after is None and before is not None and target.made_folder(before):
        with suppress(OSError):  # others use it
            os.rmdir(os.path.dirname(path))
    text = "done"
    if args.what != "agents-md" and not args.remove and shutil.which("dibs") is None:
        what = "the hooks do" if args.what == "claude" else "completion does"
        text = f"done, but dibs is not on your PATH: until it is, {what} nothing"
    return _say(voice, path, "removed" if args.remove else "written", text, diff)


def _edited(target: _Edit, before: str | None, path: str, *, remove: bool) -> str | None:
    """The text that the file needs; None for no file."""
    try:
        if remove:
            return None if before is None else target.removed(before)
        after = target.added(before, os.path.isdir(os.path.dirname(path) or os.curdir))
        clean = None if before is None else target.removed(before)
        if target.removed(after) != clean:
            raise BadName("setup could not be undone exactly in this file: edit it by hand")
    except BadName as error:
        raise BadName(f"{path}: {error}, so nothing was written") from None
    return after


def _say(voice: Voice, path: str, status: str, text: str, diff: str = "") -> int:
    fields = {"status": status, "file": path, **({"diff": diff} if diff else {})}
    if voice.json:
        voice.result("", fields)
    voice.words(f"{path}: {text}")
    return 0


def _top() -> str:
    """The top of the repository around the current directory, else this directory."""
    here = folder = os.path.realpath(os.curdir)
    while not os.path.lexists(os.path.join(folder, ".git")):
        above = os.path.dirname(folder)
        if above == folder:
            return here
        folder = above
    return folder


def _section(file: Callable[[], str], section: MarkedSection) -> _Edit:
    return _Edit(file, lambda text, folder: section.added(text), section.removed)


_TARGETS = {
    "claude": _Edit(
        lambda: os.path.join(_top(), ".claude/settings.json"),
        lambda text, folder: client_hooks.added(text, folder=folder),
        client_hooks.removed,
        client_hooks.made_folder,
    ),
    "agents-md": _section(lambda: os.path.join(_top(), "AGENTS.md"), agents_section.SECTION),
    "bash": _section(shell_sections.bash_file, shell_sections.BASH),
    "zsh": _section(shell_sections.zsh_file, shell_sections.ZSH),
    "fish": _section(shell_sections.fish_file, shell_sections.FISH),
}


def _read(path: str) -> str | None:
    """The text of a file that can be edited; None if there is none."""
    folder = os.path.dirname(path)
    for each in (folder, path):
        if each.endswith((".claude", os.path.basename(path))) and os.path.islink(each):
            raise BadName(f"{each}: it is a symbolic link, so nothing was written: name its target")
    try:
        with open(path, "rb", opener=_without_waiting) as file:
            info = os.fstat(file.fileno())
            if not stat.S_ISREG(info.st_mode):
                raise BadName(f"{path}: it is not a regular file, so nothing was written")
            data = file.read(FILE_BYTES + 1)
    except FileNotFoundError:
        return None
    except (IsADirectoryError, NotADirectoryError) as error:
        why = f"{path}: {error.strerror}: nothing was written: give the path of a file"
        raise BadName(why) from None
    except OSError as error:
        raise StorageError(f"{path}: {error.strerror}: nothing was written") from None
    if len(data) > FILE_BYTES:
        raise BadName(f"{path}: it is longer than {FILE_BYTES >> 20} MiB: nothing was written")
    if not info.st_mode & stat.S_IWUSR or not os.access(path, os.W_OK):
        raise BadName(f"{path}: it is read-only, so nothing was written: `chmod u+w` it")
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise BadName(f"{path}: it is not UTF-8 text, so nothing was written") from None


def _without_waiting(path: str, flags: int) -> int:
    """Open a file; a FIFO does not block."""
    return os.open(path, flags | os.O_NONBLOCK)


def _diff(path: str, before: str | None, after: str | None) -> Iterator[str]:
    from difflib import unified_diff

    old, new = ((text or "").splitlines(keepends=True) for text in (before, after))
    was, will = (path if text is not None else os.devnull for text in (before, after))
    for line in unified_diff(old, new, was, will):
        yield line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"


def _confirmed(voice: Voice, path: str) -> bool:
    """Ask the user; without a terminal `--yes` has to say so."""
    if voice.json or not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise BadName(f"{path}: nothing was written: give --yes to write it, --dry-run to look")
    try:
        return input("Write this? [y/N] ").strip().lower() in ("y", "yes")
    except EOFError:
        return False


def _write(path: str, text: str | None) -> None:
    """Replace the file at once, or remove it."""
    folder = os.path.dirname(path) or os.curdir
    try:
        if text is None:
            os.remove(path)
            return
        os.makedirs(folder, exist_ok=True)
        _replace(path, text.encode())
    except OSError as error:
        raise StorageError(f"{path}: {error.strerror}: nothing was written") from None


def _replace(path: str, data: bytes) -> None:
    draft = f"{path}.dibs-{os.getpid()}"
    try:
        with open(draft, "xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
            with suppress(FileNotFoundError):
                info = os.lstat(path)
                with suppress(PermissionError):
                    os.fchown(file.fileno(), info.st_uid, info.st_gid)
                os.fchmod(file.fileno(), stat.S_IMODE(info.st_mode))
        os.replace(draft, path)
    except BaseException:
        with suppress(OSError):
            os.remove(draft)
        raise
