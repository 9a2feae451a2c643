"""The section about dibs in a project's AGENTS.md, between two marks."""

from __future__ import annotations

from dibs.model.errors import BadName

BEGIN = "<!-- dibs: begin (`dibs setup agents-md --remove` removes this section) -->"
END = "<!-- dibs: end -->"
TEXT = """\
## Tasks and locks: dibs

Several agents share this project's board. Run `dibs prime` first: it shows your claims and what is
available.

- Before any side effect claim the task (`dibs claim --owner ME --ttl 300`, or `dibs claim ID`) or
  the lock that covers it (`dibs acquire NAME`). Keep the exact name that is printed, here CLAIM.
- `dibs beat CLAIM` at least every third of the ttl, and before each side effect. Exit code 5: stop
  that work at once.
- Finish with `dibs done CLAIM`. Else `dibs fail CLAIM --reason WHY`, `dibs ask CLAIM QUESTION` or
  `dibs release CLAIM`.
- Add work for others under an id that follows from the work, such as `github-issue-1842`: it is
  then added only once.
- Never touch the board's files, and leave `force-release`, `requeue`, `park`, `answer`,
  `prioritize`, `pause`, `resume` and `undo` to people.

`dibs help agents` prints the full page.
"""
_SECTION = f"{BEGIN}\n{TEXT}{END}\n"


def added(text: str | None) -> str:
    """The page with the section of today; None stands for a file that does not exist."""
    if text is None:
        return _SECTION
    span = _span(text)
    if span is None:
        return f"{text}\n{_SECTION}"
    return text[: span[0]] + _SECTION + text[span[1] :]


def removed(text: str) -> str | None:
    """The page without the section; None if nothing else was ever in it."""
    span = _span(text)
    if span is None:
        return text
    start, end = span
    if start == 0 and end == len(text):
        return None
    line_end = "\r\n" if text[:end].endswith("\r\n") else "\n"
    return text[:start].removesuffix(line_end) + text[end:]


def _span(text: str) -> tuple[int, int] | None:
    """Where the section is; None if there is none. Anything but one pair of marks is refused."""
    counts = text.count(BEGIN), text.count(END)
    if counts == (0, 0):
        return None
    start, end = text.find(BEGIN), text.find(END)
    if counts != (1, 1) or end < start:
        raise BadName("its marks of dibs are not one pair: repair them by hand")
    after = end + len(END)
    after += text.startswith("\r", after)
    return start, after + text.startswith("\n", after)
