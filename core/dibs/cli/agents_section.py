"""The section about dibs in a project's AGENTS.md, between two marks."""

from __future__ import annotations

from dibs.cli.marked_section import MarkedSection

BEGIN = "<!-- dibs: begin (`dibs setup agents-md --remove` removes this section) -->"
END = "<!-- dibs: end -->"
TEXT = """\
## Tasks and locks: dibs

Several agents share this project's board. Run `dibs prime` first: it shows your claims and what is
available.

- Before any side effect claim the task (`dibs claim --owner ME --ttl 300`, or `dibs claim ID`) or
  the lock that covers it (`dibs acquire NAME`). Keep the exact name that is printed, here CLAIM.
- `dibs beat CLAIM` at least every third of the ttl, and before each side effect; with `--ttl 20m`
  before a step longer than the ttl. Exit code 5: stop that work at once.
- Finish with `dibs done CLAIM`. Else `dibs fail CLAIM --reason WHY`, `dibs ask CLAIM QUESTION` or
  `dibs release CLAIM`.
- Add work for others under an id that follows from the work, such as `github-issue-1842`: it is
  then added only once.
- Never touch the board's files, and leave `force-release`, `requeue`, `park`, `answer`,
  `prioritize`, `pause`, `resume` and `undo` to people.

`dibs help agents` prints the full page.
"""
SECTION = MarkedSection(BEGIN, TEXT, END)
