"""The sections of a task's details, for the pane and for the full view."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from dibs import Verdict
from dibs.model.beat_history import BeatHistory
from dibs.model.entries import entry
from dibs.model.events import NOTHING_MOVED
from dibs.model.holder import NO_RECORD
from dibs.model.metadata import values_of
from dibs_tui.model import beats, payload
from dibs_tui.model.last_reasons import last_line
from dibs_tui.model.proof_lines import VERDICT_INKS, proof_lines
from dibs_tui.model.rows import EMPTY, Row, all_wrapped, beside, row, wrapped
from dibs_tui.model.task_line import GLYPHS
from dibs_tui.model.timeline import became, timeline
from dibs_tui.text.addresses import address_in
from dibs_tui.text.ages import clock, short
from dibs_tui.text.safe import clean, clean_lines, fit, width

if TYPE_CHECKING:
    from dibs import Entry, Event, Holder, Output, Question
    from dibs_tui.model.board import BoardModel
    from dibs_tui.model.payload import Payload
    from dibs_tui.model.task_details import TaskDetails

TWO_COLUMNS = 97
_GAP = 3
_LABEL = 10
_MIN_LINES = 6
_RESULT_LINES = 12
_LAST_LINES = 8
"""The lines of output in the overview."""
_BADGES = {"late": "LATE", "claimed": "ALIVE", "held": "ALIVE", "gone": "GONE"}
"""The badge of a state that has no verdict; any other has its own name."""
_loud = re.compile(r"\b(error|exception|fatal|traceback|panic)\b", re.IGNORECASE).search
_warns = re.compile(r"\bwarn(ing)?\b", re.IGNORECASE).search


class DetailSections:
    """One task as it is now, from the model and from what was last read of the board."""

    def __init__(self, model: BoardModel, known: TaskDetails) -> None:
        self.model = model
        self.known = known
        self.task = known.task
        self.holder: Holder | None = model.holders.get(self.task.name) or known.holder
        self.gone = known.gone or (model.complete and self.task.name not in model.tasks)

    @property
    def entry(self) -> Entry:
        """The task as filters and table cells read it."""
        return entry(self.task, self.holder, self.model.now, self._since)

    @property
    def state(self) -> str:
        """The state of the task, or `late`, or `gone`."""
        if self.gone:
            return "gone"
        state = self.model.state_of(self.task)
        late = state in ("claimed", "held") and self.model.late(self.task.name)
        return "late" if late else state

    @property
    def _since(self) -> int | None:
        """When an unclaimed task got into its state."""
        since = self.model.since.get(self.task.name)
        times = (e.at for e in reversed(self.known.events or ()) if e.dst == self.task.name)
        at = next(times, None)
        return since if since is not None or at is None else int(at * 1e9)

    # Sections

    def title(self) -> Row:
        """The glyph, the id and the holder."""
        holder, state = self.holder, self.state
        line: Row = ((f"{GLYPHS[state]} ", state), (clean(self.task.id), "strong"))
        if holder is None or not self.task.live or self.gone:
            return line
        who = clean(self.entry.owner) or "unknown owner"
        line += ((f"  {who}", "text"),)
        host = clean(holder.host)
        return (*line, (" on ", "muted"), (host, "text")) if host and host != who else line

    def headline(self, cells: int) -> list[Row]:
        """The state as a badge, and the fact that decides in a sentence."""
        badge, ink, words = self._deciding()
        indent = len(badge) + 4
        line: Row = ((f" {badge} ", f"badge {ink}"), ("  ", "text"), (words, "strong"))
        return wrapped(line, cells, indent)

    def _deciding(self) -> tuple[str, str, str]:
        state, holder = self.state, self.holder
        if self.gone:
            return "GONE", "muted", self._became()
        verdict = self.model.stale.get(self.task.name) or self.known.verdict
        if self.task.live and holder is not None:
            words = self._beat_sentence(holder)
            if verdict is not None and (state == "stale" or verdict is not Verdict.ALIVE):
                return verdict.upper(), VERDICT_INKS[verdict], self._why(verdict) + words
            return _BADGES[state], "late" if state == "late" else "ok-text", words
        waited = self.entry.age
        age = f" for {short(waited)}" if waited is not None else ""
        if state == "asked":
            return "ASKS", "ask", clean(self.entry.question, 200) or f"waits for an answer{age}"
        reason = clean(last_line(self.model.reasons.get(self.task.id, "")), 200)
        if state == "failed" and reason:
            return "FAILED", "fail", reason
        words = {"available": "waits to be claimed", "free": "no one holds it"}.get(state, state)
        return state.upper(), state, f"{words}{age}"

    def _why(self, verdict: Verdict) -> str:
        if verdict is not Verdict.DEAD or self.holder is None:
            return ""
        process = self.holder.process
        return f"process {process.pid} exited, " if process is not None else "it exited, "

    def _beat_sentence(self, holder: Holder) -> str:
        history = self.model.beat_histories.get(self.task.name, BeatHistory((holder.beat,)))
        return beats.sentence(history, holder.beat, holder.ttl, self.model.now.fs)

    def notes(self, cells: int) -> list[Row]:
        """Why a part could not be read."""
        trouble = self.known.trouble
        return wrapped(row(clean(trouble), "failed"), cells) if trouble else []

    def overview(self, cells: int, height: int) -> list[Row]:
        """All sections, in two columns where there is room."""
        wide = cells >= TWO_COLUMNS
        left = (cells - _GAP) // 2 if wide else cells
        right = cells - left - _GAP if wide else cells
        one = [self.doing(left), self.claim(left) or self.fields(left)]
        one += [self.beats(left), self.proofs(left), self.result(left)]
        two = [self.questions(right), self.last_output(right)]
        two += [self.timeline(right, max(_MIN_LINES, height // 3) if not wide else 0)]
        notes = self.notes(cells)
        most = max(_MIN_LINES, height - sum(len(part) + 1 for part in one if part) - len(notes) - 2)
        if not wide:
            return _spaced(notes, *one, *two, self.payload(cells, _MIN_LINES))
        one.append(self.payload(left, most))
        return _spaced(notes, beside(_spaced(*one), _spaced(*two), left + _GAP))

    def doing(self, cells: int) -> list[Row]:
        """What the holder said last about its work."""
        holder = self.holder
        if holder is None or not holder.note or not self.task.live:
            return []
        entry = self.entry
        ago = f"{short(entry.progress)} ago" if entry.progress is not None else ""
        return [_ruled("doing", ago, cells), *wrapped(row(clean(holder.note), "bright"), cells)]

    def fields(self, cells: int) -> list[Row]:
        """What the exact name says of a task that no one holds, and the payload's size."""
        lines = [self._position(), *self._age(), _field("name", (clean(self.task.name), "muted"))]
        if self.known.payload is not None:
            lines.append(_field("payload", (self.known.payload.summary, "text")))
        return [_ruled(self.task.kind, self.state, cells), *all_wrapped(lines, cells, _LABEL)]

    def _position(self) -> Row:
        task = self.task
        if task.kind == "lock":
            return _field("fence", (f"{task.fence}", "text"))
        attempts = f"{task.attempts + 1}" if task.live else f"{task.attempts}"
        label = "attempt" if task.live else "attempts"
        rest = f" · fence {task.fence} · priority {task.priority}"
        return _field(label, (attempts, "text"), (rest, "muted"))

    def claim(self, cells: int) -> list[Row]:
        """Who holds the task, by its record or by the lock of a shell claim."""
        holder, shell = self.holder, self.task.is_shell_claim
        if holder is None or not self.task.live:
            return []
        entry = self.entry
        lines = [_field("owner", (clean(entry.owner) or "unknown", "text"))]
        if holder.host and not shell:
            lines.append(_field("host", (clean(holder.host), "text")))
        if holder.process is not None:
            p = holder.process
            boot = f" since boot {clean(p.boot)[:8]}" if p.boot else ""
            lines.append(_field("process", (f"pid {p.pid}", "text"), (boot, "muted")))
        held = short(entry.held) if entry.held is not None else ""
        lines.append(_field("held", (held, "text"), (f", since {clock(holder.since)}", "muted")))
        lines += [] if self.gone else [self._lease(entry, default=holder.default_ttl)]
        lines += [self._position(), *self._metadata()]
        if self.known.payload is not None:
            lines.append(_field("payload", (self.known.payload.summary, "muted")))
        lines.append(_field("name", (clean(self.task.name), "muted")))
        if shell:
            lock = "missing" if holder.flaw else clean(holder.lock.rstrip("\n"))
            lines.append(_field("lock", (lock, "text" if holder.lock else "late")))
        elif holder.flaw == NO_RECORD:
            lines.append(_field("record", ("missing", "late")))
        elif holder.flaw:
            lines.append(_field("problem", (clean(holder.flaw), "failed")))
        return [_ruled("claim", "", cells), *all_wrapped(lines, cells, _LABEL)]

    def _metadata(self) -> Iterator[Row]:
        """The holder's metadata as `key=value`, or as the lines that it is."""
        text = self.entry.metadata
        values = values_of(text) if text.startswith("{") else {}
        pieces: list[tuple[str, str]] = []
        for key, value in values.items():
            look = "url" if address_in(value) else "text"
            shown = clean(value).removeprefix("https://").removeprefix("http://")
            pieces += [(f"{clean(key)}=", "faint"), (shown, look), (" ", "text")]
        if pieces:
            yield _field("metadata", *pieces[:-1])
        elif text:
            first, *rest = clean_lines(text).split("\n")
            yield _field("metadata", (first, "url" if address_in(first) else "text"))
            yield from (_field("", (line, "text")) for line in rest)

    def proofs(self, cells: int) -> list[Row]:
        """The evidence on the holder: each observation behind the verdict, as of the last look."""
        evidence = self.known.evidence
        if evidence is None or self.gone or not self.task.live:
            return []
        lines = [line for proof in evidence.proofs for line in proof_lines(proof, cells)]
        return [_ruled("evidence", evidence.verdict.upper(), cells), *lines]

    def questions(self, cells: int) -> list[Row]:
        """What was asked about the task and answered, the newest first."""
        lines: list[Row] = []
        for question in reversed(self.known.questions):
            when = f"{clock(question.at)}, fence {question.fence}"
            lines += [_ruled("question", when, cells)]
            lines += all_wrapped(_asked(question), cells, _LABEL + 2)
        return lines

    def beats(self, cells: int) -> list[Row]:
        """How regularly the holder beats, and how much of the lease is left."""
        holder = self.holder
        if holder is None or self.gone or not self.task.live:
            return []
        now = self.model.now.fs
        history = self.model.beat_histories.get(self.task.name, BeatHistory((holder.beat,)))
        chart = beats.chart(history, holder.beat, holder.ttl, now, cells)
        # The board keeps only the last beat; older ones are those that this dashboard saw.
        often = f"every {short(history.cadence / 1e9)}, " if history.cadence else ""
        last = f"{often}last {short((now - holder.beat) / 1e9)} ago"
        return [_ruled("beats", last, cells), *chart]

    def all_beats(self, cells: int) -> list[Row]:
        """The same, followed by every beat that this dashboard saw."""
        found = self.beats(cells)
        if not found or self.holder is None:
            none = row("not claimed, so there are none", "muted")
            return [_ruled("beats", "", cells), *wrapped(none, cells)]
        history = self.model.beat_histories.get(self.task.name, BeatHistory())
        words = wrapped(row(self._beat_sentence(self.holder), "text"), cells)
        listed = all_wrapped(beats.intervals(history, self.model.now.fs), cells)
        seen = f"since {clock(history.beats[0])}" if history.beats else ""
        return [*words, EMPTY, *found, EMPTY, _ruled("seen here", seen, cells), *listed]

    def payload(self, cells: int, most: int = 0) -> list[Row]:
        """The payload: at most this many lines, or everything that was read."""
        known = self.known.payload
        if known is None:
            words = "not read" if self.gone or self.known.trouble else "reading …"
            return [_ruled("payload", "", cells), row(words, "muted")]
        lines = _content(known, cells, most)
        more = [row("… more", "muted")] if most and len(lines) > most else []
        cut = [row(known.cut, "late")] if known.cut else []
        title = _ruled("payload", known.summary, cells)
        return [title, *all_wrapped(cut, cells), *(lines[:most] if more else lines), *more]

    def result(self, cells: int) -> list[Row]:
        """The result with which the task was done."""
        data = self.known.result
        if data is None:
            return []
        shown = payload.read(data, len(data))
        title = _ruled("result", shown.summary, cells)
        return [title, *_content(shown, cells, _RESULT_LINES)[:_RESULT_LINES]]

    def output(self, cells: int, *, wrap: bool = True, find: str = "") -> list[Row]:
        """The end of what the work printed, with each gap; lines with `find` are pointed at."""
        found = self.known.output
        if found is None:
            words = "no output was kept: `dibs run --log` keeps it"
            return [*wrapped(row(words, "muted"), cells)]
        kept = payload.size_of(sum(len(data) for _, data in found.parts))
        facts = f"  stdout and stderr · {kept} shown of {payload.size_of(found.end)}"
        title: Row = ((f"attempt {self.known.attempt}", "text"), (facts, "muted"))
        return [*wrapped(title, cells), EMPTY, *_output_rows(found, cells, wrap, find)]

    def last_output(self, cells: int) -> list[Row]:
        """The last lines that the work printed."""
        found = self.known.output
        if found is None or not found.parts:
            return []
        part = found._replace(parts=found.parts[-1:])
        rows = [line for line in _output_rows(part, cells, False) if line][-_LAST_LINES:]
        return [_ruled("output", "last lines", cells), *rows]

    def timeline(self, cells: int, most: int = 0) -> list[Row]:
        """The history of the task from the log, newest first."""
        events, earlier = self.known.events, self.known.earlier
        title = _ruled("timeline", "newest first", cells)
        if events is None:
            return [title, row("reading the log …", "muted")]
        if not events:
            none = "no entries in the log: a change without dibs leaves none"
            return [title, *wrapped(row(none, "muted"), cells)]
        cut = max(0, len(events) - most) if most else 0
        now = self.model.now.fs / 1e9
        lines = timeline(events[cut:], now, cells, earlier + cut)
        return [title, *all_wrapped(self._unrecorded(events), cells, _LABEL), *lines]

    def _unrecorded(self, events: Sequence[Event]) -> Iterator[Row]:
        """A note where the last change is not in the log: a crash, or a change without dibs."""
        last = next((e for e in reversed(events) if e.verb not in NOTHING_MOVED), None)
        names = [task.name for task in self.known.found or ()]
        if last is not None and last.dst and names and last.dst not in names:
            words = f"not in the log: the change to {clean(names[0])}, without dibs or in a crash"
            yield row(words, "late")

    def files(self, cells: int) -> list[Row]:
        """Every file of the task."""
        lines: list[Row] = []
        for file in self.known.files:
            look = "late" if file.status == "missing" else "muted"
            lines += wrapped(row(clean(file.path)), cells, 2)
            what: Row = (("  " + clean(file.what), "muted"), (f", {clean(file.status)}", look))
            lines += wrapped(what, cells, 2)
        none = "searching …" if self.known.found is None else "this board keeps no files"
        return [_ruled("files", "", cells), *(lines or [row(none, "muted")])]

    # Parts

    def _age(self) -> Iterator[Row]:
        age = self.entry.age
        if age is not None:
            waits = {"available": "waiting", "free": "free", "asked": "asked"}.get(
                self.task.state, "ended"
            )
            at = self.model.now.fs - int(age * 1e9)
            when = f" ago, at {clock(at)}" if waits == "ended" else f", since {clock(at)}"
            yield _field(waits, (short(age), "text"), (when, "muted"))

    def _lease(self, entry: Entry, *, default: bool) -> Row:
        assert entry.age is not None
        assert entry.ttl is not None
        left, ttl = entry.ttl - entry.age, entry.ttl
        ink = next(ink for part, ink in _LEASE if left / ttl >= part)
        ink = "lock" if self.task.kind == "lock" and left / ttl >= 0.5 else ink
        full = max(0, min(16, round(16 * left / ttl)))
        words = f" {short(left)} left" if left > 0 else f" expired {short(-left)} ago"
        of = f" of {short(ttl)}" + (", the board's default" if default else "")
        look = f"bold {ink}" if ink in ("l1", "l2") else "text"
        return _field("lease", ("━" * full, ink), ("─" * (16 - full), "line"), (words, look),
                      (of, "muted"))  # fmt: skip

    def _became(self) -> str:
        """What became of a name that is gone."""
        known, name, ident = self.known, self.task.name, clean(self.task.id)
        if known.events is None or known.found is None:
            return f"{ident} is no longer {self.task.state}; looking up what happened to it"
        found = became(reversed(known.events), name, self.model.now.fs / 1e9)
        words = f"{ident} {found or f'is no longer {self.task.state}'}"
        others = [task for task in known.found if task.name != name]
        now = ", ".join(f"{task.state} as {clean(task.name)}" for task in others[:3])
        return f"{words}; now {now}" if now else f"{words}; no task has this id now"


@lru_cache(maxsize=4)
def _content(known: Payload, cells: int, most: int) -> list[Row]:
    """A payload's lines, wrapped; cached, because the page is drawn every second."""
    if known.kind == "binary":
        return list(payload.dump(known.data[: 16 * (most + 1) if most else None], cells))
    return all_wrapped(known.lines[: most + 1 if most else None], cells)


FOUND = ("▸ ", "bold accent")
"""The gutter of a line that a search has found."""


@lru_cache(maxsize=8)
def _output_rows(found: Output, cells: int, wrap: bool, find: str = "") -> list[Row]:
    """The lines of an output; control characters are shown as text."""
    find = find.casefold()
    lines: list[Row] = []
    room = max(8, cells - 2)
    for missing, data in found.gaps():
        if missing:
            words = f"{payload.size_of(missing)} not kept or not shown: see the verb `logs`"
            lines += wrapped((("┄ ", "line"), (f"{words} ┄", "faint")), cells, 2)
        text = clean_lines(data.decode("utf-8", "replace").removesuffix("\n"))
        for line in text.split("\n"):
            ink = "fail" if _loud(line) else "late" if _warns(line) else "text"
            gutter = ("┃ " if ink != "text" else "│ ", ink if ink != "text" else "line")
            parts = wrapped(row(line, ink), room) if wrap else [row(fit(line, room), ink)]
            first = FOUND if find and find in line.casefold() else gutter
            lines += [(first if n == 0 else gutter, *part) for n, part in enumerate(parts)]
    return lines


_LEASE = ((2 / 3, "l5"), (1 / 2, "l4"), (1 / 3, "l3"), (1 / 6, "l2"), (float("-inf"), "l1"))
"""The ink of a lease by the part that is left."""


def _ruled(title: str, facts: str, cells: int) -> Row:
    """The heading of a section: its title, what is known at once, and a rule."""
    facts = f"  {facts}" if facts else ""
    used = width(title) + width(facts) + 1
    if used > cells:
        return row(fit(title + facts, cells), "strong")
    return (title, "strong"), (f"{facts} ", "muted"), ("─" * (cells - used), "line")


def _spaced(*parts: Sequence[Row]) -> list[Row]:
    """Parts with an empty line between them."""
    found: list[Row] = []
    for part in parts:
        if part:
            found += [EMPTY, *part] if found else part
    return found


def _field(label: str, *pieces: tuple[str, str]) -> Row:
    return (f"{label:<{_LABEL}}", "faint"), *pieces


def _asked(question: Question) -> Iterator[Row]:
    """The lines of a question and of its answer."""
    who = fit(clean(question.owner), _LABEL - 1)
    first, *rest = clean_lines(question.text).split("\n")
    yield ("? ", "bold ask"), (f"{who} ", "muted"), (first, "text")
    yield from ((((" " * (_LABEL + 2)), "text"), (line, "text")) for line in rest)
    if question.flaw:
        yield ("! ", "failed"), (clean(question.flaw), "failed")
    if question.answer is None:
        yield ("  ", "text"), ("not answered yet", "muted")
        return
    who = fit(clean(question.answered_by), _LABEL - 1)
    first, *rest = clean_lines(question.answer).split("\n")
    yield ("→ ", "ok-text"), (f"{who} ", "muted"), (first, "text")
    yield from ((((" " * (_LABEL + 2)), "text"), (line, "text")) for line in rest)
