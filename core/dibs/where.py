"""Which board is used where none is named: found, never made by accident."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from dibs.files.engine import located
from dibs.files.paths import STICKY, identity, not_a_folder, refuse_inside
from dibs.model.addresses import without_password
from dibs.model.errors import BadName, Exists, NoBoard, NotABoard, NotMounted, storage_error
from dibs.model.lazy import LazyModule
from dibs.model.names import match_scheme, read
from dibs.pointers import (
    Pointer,
    common_directory,
    read_pointer,
    refuse_address,
    refuse_planted,
    repository_of,
    same,
    write_pointer,
)

if TYPE_CHECKING:
    import shlex

    from dibs import chosen
    from dibs.files import lost_mounts
else:
    chosen, lost_mounts, shlex = map(LazyModule, ("dibs.chosen", "dibs.files.lost_mounts", "shlex"))

VARIABLES = ("DIBS_BOARD", "DIBS_DIR")
DIRECTORY, TASKS, POINTED, GIT = "directory", "tasks", "dibs.toml", "git"
"""The rules by which a board is found: a directory is one, or holds task files; a pointer names it,
perhaps one in git's common directory."""
EMPTY = "the path of the board is empty: -d takes a directory, as do DIBS_BOARD and DIBS_DIR"


class FoundBoard(NamedTuple):
    """A board, and why it is this one."""

    where: str
    """As it was named, else an absolute path or a URL."""
    rule: str
    """One of the rules, or the variable that names it."""
    file: str = ""
    """The pointer that names it."""

    @property
    def source(self) -> str:
        """What names it, in a few words."""
        here = "the current directory"
        return self.file or {DIRECTORY: here, TASKS: here}.get(self.rule, self.rule)

    @property
    def why(self) -> str:
        """The reason, in words."""
        return {
            DIRECTORY: "the nearest directory upwards that is a board",
            TASKS: "the current directory, which holds task files",
            POINTED: f"named by {self.file}",
            GIT: f"named by {self.file}, which all worktrees of the repository share",
        }.get(self.rule, f"named by {self.rule}")


def find(environ: Mapping[str, str] = os.environ) -> FoundBoard:
    """The board of the environment, else of the current directory; `NoBoard` if there is none."""
    named = _named(environ)
    if named is not None:
        return named
    start = located(os.curdir)
    found = nearest(start, environ)
    if found is None or found.where != start:
        _refuse_unmounted(start)
    if found is None:
        raise NoBoard(
            f"no board was found: neither {start} nor a directory above it is a board or "
            f"names one: {_help(start)}"
        )
    if found.file:
        _require_board(found)
    return found


def nearest(start: str, environ: Mapping[str, str] = os.environ) -> FoundBoard | None:
    """What the nearest directory upwards says, whether or not its board exists.

    The walk ends at the home directory, at the border of a mount and at the root: what is above
    belongs to others, and where an automounter serves it each look is a request to a server.
    """
    folder, home = start, identity(environ.get("HOME") or os.devnull)
    device = None
    while True:
        try:
            info = os.stat(folder)
            if device not in (None, info.st_dev):
                return None
            found = _said_by(folder, info, first=folder == start)
        except PermissionError:  # this user can use no board from here upwards
            return None
        except OSError as error:
            raise storage_error(error) from error
        above = os.path.dirname(folder)
        if found is not None or above == folder or (info.st_dev, info.st_ino) == home:
            return found
        folder, device = above, info.st_dev


def _said_by(folder: str, info: os.stat_result, *, first: bool) -> FoundBoard | None:
    """What one directory says: it is a board, or has a pointer, or is the top of a repository."""
    inner = os.path.join(folder, ".dibs")
    sticky = bool(info.st_mode & STICKY)
    try:
        entry = os.lstat(inner)
    except FileNotFoundError:
        pass
    else:
        if not first or sticky:  # who stands in the board itself, means it
            refuse_planted(info, entry, inner)
        _refuse_no_folder(folder, entry)
        return FoundBoard(folder, DIRECTORY)
    if pointer := read_pointer(folder):
        refuse_address(pointer)
        return _pointed(pointer, POINTED)
    if first and not sticky and os.access(folder, os.R_OK) and holds_tasks(folder):
        refuse_inside(folder)
        return FoundBoard(folder, TASKS)
    common = common_directory(folder)
    if common and (pointer := read_pointer(common)):
        git = os.path.join(folder, ".git")
        refuse_planted(info, os.lstat(git), git)
        return _pointed(pointer, GIT)
    return None


def _pointed(pointer: Pointer, rule: str) -> FoundBoard:
    return FoundBoard(pointer.where, rule, pointer.file)


def holds_tasks(folder: str) -> bool:
    """Whether a directory holds task files, as those of workers that only know `mv`."""
    with os.scandir(folder) as entries:
        return any(read(entry.name) is not None for entry in entries)


def _require_board(found: FoundBoard) -> None:
    """Refuse a pointer to what is no board: a verb would make one there.

    Also an address that this user has not chosen.
    """
    if match_scheme(found.where):
        chosen.require(found.where, found.file)
    if _is_board(found.where):
        return
    _refuse_unmounted(found.where)
    there, remedy = "does not exist", f"mount it, or make it with {_init('-d', found.where)}"
    if os.path.isdir(found.where):
        there = "is not a board"
    elif os.path.lexists(found.where):
        link = os.path.islink(found.where) and not os.path.exists(found.where)
        there = "is a link to nothing" if link else "is not a directory"
        remedy = "correct that line"
    raise NoBoard(
        f"{found.file} names the board {found.where}, which {there}: {remedy}, or name another "
        "with `dibs -d BOARD VERB`"
    )


def _is_board(where: str) -> bool:
    """Whether a named place is a board or holds task files; a URL is not looked at."""
    if match_scheme(where):
        return True
    try:
        with suppress(FileNotFoundError):
            _refuse_no_folder(where, os.lstat(os.path.join(where, ".dibs")))
            return True
        return holds_tasks(where)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:
        raise storage_error(error) from error


def _refuse_no_folder(folder: str, entry: os.stat_result) -> None:
    """Refuse a `.dibs` that is a file or a link, as the board itself would."""
    if not stat.S_ISDIR(entry.st_mode):
        raise NotABoard(f"{folder}: {not_a_folder('.dibs')}")


def _refuse_unmounted(folder: str) -> None:
    why = lost_mounts.why(folder)
    if why:
        raise NotMounted(f"{folder}: {why}")


def _help(start: str) -> str:
    """The two commands that help."""
    top, common = repository_of(start)
    made = "`dibs init` makes one here"
    if common:
        line = shlex.join(["dibs", "init", os.path.relpath(_beside(top), start)])
        made = f"`{line}` makes one for this repository"
    return f"{made}, and `dibs -d BOARD VERB` names one"


def _beside(top: str) -> str:
    """A place for the board of a repository where git does not take its tasks for files."""
    return f"{top}-tasks"


def _init(*options: str) -> str:
    return f"`{shlex.join(['dibs', *map(without_password, options), 'init'])}`"


def _named(environ: Mapping[str, str]) -> FoundBoard | None:
    """The board of the environment; refused if its two variables differ."""
    given = {name: environ[name] for name in VARIABLES if name in environ}
    if not given:
        return None
    variable = next(iter(given))
    where = given[variable]
    if not where:
        raise BadName(EMPTY)
    if given.get(VARIABLES[1]) not in (None, "", where):
        raise BadName("DIBS_BOARD and DIBS_DIR name different boards: unset one")
    return FoundBoard(where, f"${variable}")


class Appointment(NamedTuple):
    """The board that `init` makes, and the pointer to it."""

    where: str
    file: str = ""
    """The pointer; empty without one."""
    new: bool = False
    """Whether the pointer was written just now."""
    hint: str = ""
    """What a person should know."""

    def withdraw(self) -> None:
        """Remove a new pointer again, as the board could not be made."""
        if self.new:
            with suppress(OSError):
                os.unlink(self.file)


def appoint(given: str | None) -> Appointment:
    """Choose the board to make, and let a repository's pointer name it.

    Without a path it is the board that is found here, so that `init` in a second worktree makes no
    second board; else the current directory. What a pointer names must be a board already: the
    pointer may be a stranger's. The pointer is written into git's common directory,
    the one place that all worktrees share: a file in the work tree is in one of them, or says in
    each something else.
    """
    made = _appointed(given)
    if given is not None and match_scheme(given):
        chosen.note(given)
    return made


def _appointed(given: str | None) -> Appointment:
    start = located(os.curdir)
    found = nearest(start)
    if given is None:
        if found is not None and found.file:
            _require_board(found)
        where = found.where if found is not None else start
    else:
        where = given if match_scheme(given) else located(given)
    top, common = repository_of(start)
    inside = found is not None and bool(common) and _belongs(found, top, common)
    if found is None:
        if common:
            return _shared(where, common, top)
        return Appointment(where, hint=_away(where) if given is not None else "")
    if inside and not same(found.where, where):
        raise Exists(
            f"this repository uses the board {without_password(found.where)} ({found.why}), not "
            f"{without_password(where)}: `dibs init` without a path makes sure of it, and "
            f"{_init('-d', where)} makes another board"
        )
    if common and (not found.file if inside else given is not None):
        return _shared(where, common, top)
    if not same(found.where, where):
        return Appointment(where, hint=_away(where))
    another = "" if inside else "; `dibs init .` makes another one here"
    used = "this board is used here" if _is_board(where) else "this new board is used from now on"
    hint = f"{used}: {found.why}{another}" if found.where != start else ""
    return Appointment(where, found.file, hint=hint)


def _shared(where: str, common: str, top: str) -> Appointment:
    """The board that a new pointer names, or one that names it already."""
    file, new = write_pointer(common, where)
    hint = f"all worktrees of this repository use this board: {file} names it"
    if without_password(where) != where:
        hint += ", without the password: give that in PGPASSWORD or in ~/.pgpass"
    inside = new and not match_scheme(where) and os.path.commonpath((where, top)) == top
    if new and not inside:
        hint += "; remove that file if it should use another one"
    if inside and os.path.commonpath((where, common)) != common:
        line = f"add /{os.path.relpath(where, top)}/ to .gitignore"
        if where == top:
            line = f"remove .dibs and that file and make {_beside(top)}"
        hint += f"; {line}, or git takes its tasks for files of the project"
    return Appointment(where, file, new, hint)


def _belongs(found: FoundBoard, top: str, common: str) -> bool:
    """Whether a board was found by what is in this repository, and not outside of it."""
    if found.rule == GIT:
        return os.path.dirname(found.file) == common
    folder = os.path.dirname(found.file) if found.file else found.where
    return os.path.commonpath((folder, top)) == top


def _away(where: str) -> str:
    """How to use a board that is elsewhere, where there is no repository to have a pointer."""
    command = shlex.join(["dibs", "-d", without_password(where)])
    inside = "" if match_scheme(where) else ", or work inside it"
    return f"the board is made: name it with `{command} VERB` or $DIBS_BOARD{inside}"
