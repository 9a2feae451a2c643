"""The man pages: dibs(1), and one of each command."""

from __future__ import annotations

from collections.abc import Iterator

from dibs.cli.topics import page
from reference.commands import ArgumentEntry, CommandEntry, commands, common

_ABOUT = """\
dibs is a job queue and lock service in a plain directory, with a live terminal dashboard. A task \
is a file; claiming it is one atomic rename. `dibs` alone, or `dibs BOARD`, opens the dashboard."""


def pages(version: str) -> dict[str, str]:
    """The text of each page by the name of its file."""
    found = list(commands())
    texts = {f"dibs-{command.word}": _command(command, version) for command in found}
    texts["dibs"] = _overview(found, version)
    return {f"{name}.1": "\n".join([*lines, ""]) for name, lines in sorted(texts.items())}


def _overview(found: list[CommandEntry], version: str) -> Iterator[str]:
    yield from _head("dibs", "job queue and lock service in a plain directory", version)
    yield from (".SH SYNOPSIS", ".B dibs", _roff("[-d BOARD] [--json] VERB …"))
    yield from (".SH DESCRIPTION", _roff(_ABOUT))
    yield from _list("OPTIONS", common())
    group = ""
    for command in found:
        if command.group != group:
            group = command.group
            yield f".SH {_quoted(group.split(' (')[0].upper())}"
        yield from _item(ArgumentEntry(f"dibs-{command.word}(1)", command.summary))
    for title, topic in (("EXIT STATUS", "exit-codes"), ("ENVIRONMENT", "environment")):
        yield f".SH {title}"
        yield from _as_it_is(str(page(topic)))
    yield from _list(
        "SEE ALSO", [ArgumentEntry("dibs help filters, dibs help agents", "more pages")]
    )


def _command(command: CommandEntry, version: str) -> Iterator[str]:
    name = f"dibs-{command.word}"
    yield from _head(name, command.summary.removesuffix("."), version)
    yield from (".SH SYNOPSIS", _roff(command.usage))
    if command.aliases:
        yield ".PP"
        yield _roff("; ".join(f"`dibs {alias}` is the same" for alias in command.aliases))
    yield from _list("OPTIONS", [*command.arguments, *common()])
    if command.notes:
        yield ".SH NOTES"
        yield from _as_it_is(command.notes)
    else:
        yield from (".SH EXIT STATUS", "See", ".BR dibs (1).")
    yield ".SH EXAMPLES"
    yield from _as_it_is("\n".join(command.examples))
    yield from (".SH SEE ALSO", ".BR dibs (1)")


def _head(name: str, summary: str, version: str) -> Iterator[str]:
    yield f'.TH {_quoted(name.upper())} 1 "" {_quoted(f"dibs {version}")} "dibs"'
    yield from (".SH NAME", f"{_roff(name)} \\- {_roff(summary)}")


def _list(title: str, arguments: list[ArgumentEntry]) -> Iterator[str]:
    yield f".SH {title}"
    for argument in arguments:
        yield from _item(argument)


def _item(argument: ArgumentEntry) -> Iterator[str]:
    yield ".TP"
    yield f"\\fB{_roff(argument.spelled)}\\fR"
    yield _roff(argument.text)


def _as_it_is(text: str) -> Iterator[str]:
    """Lines that keep their breaks; an empty line would be a warning of some readers."""
    yield ".nf"
    yield from (_roff(line) if line.strip() else ".PP" for line in text.strip("\n").splitlines())
    yield ".fi"


def _quoted(text: str) -> str:
    return f'"{_roff(text)}"'


def _roff(text: str) -> str:
    """A line of text that roff prints as it is; what is quoted as code is bold."""
    text = text.replace("\\", "\\e").replace("-", "\\-").replace('"', "\\(dq")
    text = "".join(c if c.isascii() else f"\\[u{ord(c):04X}]" for c in text)
    parts = text.split("`")
    text = "".join(f"\\fB{part}\\fR" if at % 2 else part for at, part in enumerate(parts))
    return f"\\&{text}" if text[:1] in (".", "'") else text
