"""The pages of `dibs help TOPIC`; imported only when one is printed."""

from __future__ import annotations

from dibs.model.filters import META, NUMBERS, TEXTS

EXITS = """\
exit codes:
  0  success
  1  storage error, or the answer could not be written
  2  usage error, bad input such as an id instead of an exact claim name, or no board found
  3  refused: the board has changed, as the message says; or the token may not do this
  4  nothing to claim or to wait for, not due, held, paused, or the time is up; `status` says which
  5  lost or uncertain: stop working on the claim
  6  `check` found a fault, a `--fail-if` condition holds, or a task of `wait` failed"""
_EXIT_CODES = f"""\
{EXITS}

`dibs run` passes on the exit code of its command: `dibs help run`. With --json the field `status`
says more than the code.
"""
_FILTERS = f"""\
filters, for `ls`, `watch`, `wait` and the dashboard; all terms must hold:
  WORD          the id contains WORD
  FIELD=TEXT    equal; != not equal, ^= begins with, ~ contains, !~ does not contain
                (owner=NAME also finds TOKEN/NAME, as a server keeps it)
                {" ".join(TEXTS)} {META}KEY
  FIELD<NUMBER  less; also = != <= > >=; a time may have a unit: ms s m h d
                {" ".join(NUMBERS)}
  !TERM         the term does not hold

Quote a term with < or > for the shell:

  dibs ls owner=web-3 'age>5m' state=stale '!id~tmp'
"""
_ENVIRONMENT = """\
variables that dibs reads:
  DIBS_BOARD      the board, if -d does not name one; DIBS_DIR is its alias
  DIBS_CLAIM      the claim of `dibs note`
  DIBS_HOST       the name of this host (default: its host name)
  DIBS_TOKEN      the token for a board at http://…; DIBS_TOKEN_FILE names a
                  file with it that only its user can read
  DIBS_SESSION    the session of the claims that `--mine` means (default:
                  CLAUDE_CODE_SESSION_ID)
  DIBS_THEME, DIBS_READ_ONLY, NO_COLOR    settings of the dashboard

variables that `dibs serve` reads, for the hook "ci" of the board's settings:
  DIBS_HOOK_CI              its secret; or
  DIBS_HOOK_CI_FILE         a file with the secret, which only its user can read

variables that `dibs run` sets for its command:
  DIBS_BOARD, DIBS_DIR      the board
  DIBS_ID                   the id of the task or lock
  DIBS_CLAIM, DIBS_FENCE    the exact name of the claim, and its fence
  DIBS_PAYLOAD              the path of the payload
  DIBS_RESULT               a path for the result
  DIBS_ANSWERS              the questions about the task and their answers, as JSON
  DIBS_SLOT                 the number of the slot of the lock

Those of the shell library are in `dibs help shell`.
"""
_TEXTS = {"environment": _ENVIRONMENT, "exit-codes": _EXIT_CODES, "filters": _FILTERS}
_FILES = {"agents": "AGENTS.md", "shell": "sh/dibs.sh"}
"""Pages that are files of the package; in `dibs.pyz` they have no path."""


def page(topic: str) -> str | None:
    """The text of a topic; None if there is no such topic."""
    if topic in _FILES:
        from dibs.shipped import text

        return text(_FILES[topic])
    return _TEXTS.get(topic)
