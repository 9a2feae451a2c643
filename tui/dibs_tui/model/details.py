"""What is shown of one task, section by section: the pane and the full view are made of these."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from dibs.entries import entry
from dibs.journal import NOTHING_MOVED
from dibs_tui import payload
from dibs_tui.ages import clock, short
from dibs_tui.model import beats
from dibs_tui.model.columns import bar
from dibs_tui.model.life import timeline, word
from dibs_tui.model.line import GLYPHS
from dibs_tui.model.rhythm import Rhythm
from dibs_tui.model.rows import EMPTY, Row, all_wrapped, beside, heading, row, wrapped
from dibs_tui.text import clean, clean_lines, width

if TYPE_CHECKING:
    from dibs import Entry, Event, Facts, Proof
    from dibs_tui.dossier import Dossier
    from dibs_tui.model.board import BoardModel
    from dibs_tui.payload import Payload

TWO_COLUMNS = 92
_LABEL = 10
_LEAST = 6
_EVIDENCE = {
    "dead": ("its process has ended", "failed"),
    "expired": ("silent past its lease, by a clock that can be vouched for", "stale"),
    "alive": ("heard of within its lease", "claimed"),
    "unknown": ("nobody can tell whether it is alive", "late"),
}


class Details:
    """One task as it is now, by the model and by what the disk told last."""

    def __init__(self, model: BoardModel, known: Dossier) -> None:
        self.model = model
        self.known = known
        self.task = known.task
        self.facts: Facts | None = model.facts.get(self.task.name) or known.facts
        self.gone = known.gone or (model.whole and self.task.name not in model.tasks)

    @property
    def entry(self) -> Entry:
        """Its row as filters and cells read it."""
        return entry(self.task, self.facts, self.model.now, self._since)

    @property
    def state(self) -> str:
        """The board's word, or `late`, or `gone`."""
        if self.gone:
            return "gone"
        state = self.model.state_of(self.task)
        late = state in ("claimed", "held") and self.model.late(self.task.name)
        return "late" if late else state

    @property
    def _since(self) -> int | None:
        """When it came to be what it is, where nobody holds it."""
        since = self.model.since.get(self.task.name)
        told = (e.at for e in reversed(self.known.events or ()) if e.dst == self.task.name)
        at = next(told, None)
        return since if since is not None or at is None else int(at * 1e9)

    # Sections

    def title(self) -> Row:
        """State and id."""
        state = self.state
        return (f"{GLYPHS[state]} {state} ", state), (clean(self.task.id), "strong")

    def notes(self, cells: int) -> list[Row]:
        """What became of it where it is gone, and why something could not be found out."""
        lines = [row(self._became(), "stale")] if self.gone else []
        if self.known.trouble:
            lines.append(row(clean(self.known.trouble), "failed"))
        return all_wrapped(lines, cells)

    def overview(self, cells: int, height: int) -> list[Row]:
        """Everything, the long parts cut so that it fills about so many lines."""
        wide = cells >= TWO_COLUMNS
        left, room = (cells // 2 - 1, (cells - 1) // 2) if wide else (cells, cells)
        fields = self.fields(left)
        claim = [*self.claim(room), *self.metadata(room)]
        life = self.life(cells if claim else room, max(_LEAST, height // 3))
        lines = self.notes(cells)
        if wide:
            lines += beside(fields, claim or life, left + 2)
        else:
            lines += [*fields, *(claim or life)]
        lines += [*self.beats(cells), *self.proofs(cells), *life] if claim else []
        return [*lines, *self.payload(cells, max(_LEAST, height - len(lines) - 2))]

    def fields(self, cells: int) -> list[Row]:
        """What the name tells, and what the board says of it."""
        state, task = self.state, self.task
        lines = [
            _field("state", (f"{GLYPHS[state]} {state}", state)),
            *self._evidence(),
            _field("id", (clean(task.id), "strong")),
            _field("name", (clean(task.name), "text")),
            _field("kind", (task.kind, "text")),
            _field("priority", (f"{task.priority}", "text"), (", 9 goes first", "muted")),
            _field("attempts", (f"{task.attempts}", "text")),
            _field("fence", (f"#{task.fence}", "text")),
        ]
        lines += [] if task.live else self._age()
        content = self.known.payload
        told = (content.told, "text") if content is not None else ("…", "muted")
        lines.append(_field("payload", told))
        return [*_headed("task", cells, lines)]

    def claim(self, cells: int) -> list[Row]:
        """Who holds it, by the record or the plain lock."""
        facts, record = self.facts, self.facts.record if self.facts else None
        if facts is None or not self.task.live:
            return []
        entry = self.entry
        lines = [_field("owner", (clean(entry.owner) or "nobody said", "strong"))]
        if record is not None and record.host:
            lines.append(_field("host", (clean(record.host), "text")))
        if record is not None and record.process is not None:
            p = record.process
            boot = f" since boot {clean(p.boot)[:8]}" if p.boot else ""
            lines.append(_field("process", (f"pid {p.pid}", "text"), (boot, "muted")))
        lines.append(_field("claimed", *_moment(facts.since, entry.held)))
        whose = "" if record is not None and record.ttl is not None else " the board's"
        lines.append(_field("ttl", (f"{facts.ttl:g} s", "text"), (whose, "muted")))
        lines += [] if self.gone else [self._lease(entry)]
        if record is None and not self.task.plain:
            lines.append(_field("record", ("there is none", "late")))
        if self.task.plain:
            lock = "there is none" if facts.lock is None else clean(facts.lock.rstrip("\n"))
            lines.append(_field("lock", (lock, "text" if facts.lock else "late")))
        if record is not None and record.flaw:
            lines.append(_field("flaw", (clean(record.flaw), "failed")))
        return [*_headed("claim", cells, lines)]

    def proofs(self, cells: int) -> list[Row]:
        """All that the verdict on its holder rests on, as it was looked up last."""
        evidence = self.known.evidence
        if evidence is None or self.gone or not self.task.live:
            return []
        lines = [_proof(proof) for proof in evidence.proofs]
        title = heading(f"evidence · {evidence.verdict.upper()}", cells)
        return [title, *all_wrapped(lines, cells, _LABEL)]

    def metadata(self, cells: int) -> list[Row]:
        """What the claimant wrote, an object as a table."""
        text = self.entry.metadata
        if not text:
            return []
        return [*_headed("metadata", cells, _table(text))]

    def beats(self, cells: int) -> list[Row]:
        """How regularly it beats, against its lease."""
        facts = self.facts
        if facts is None or self.gone or not self.task.live:
            return []
        now = self.model.now.fs
        rhythm = self.model.rhythms.get(self.task.name, Rhythm((facts.beat,)))
        words = beats.sentence(rhythm, facts.beat, facts.ttl, now)
        look = self.state if self.state in ("late", "stale") else "text"
        chart = beats.chart(rhythm, facts.beat, facts.ttl, now, cells - 1)
        title = f"beats, as seen since {clock(rhythm.beats[0])}"  # the board keeps the last only
        return [*_headed(title, cells, [row(words, look)]), *chart]

    def all_beats(self, cells: int) -> list[Row]:
        """The same, with every beat that was seen."""
        found = self.beats(cells)
        if not found:
            return [*_headed("beats", cells, [row("nobody holds it, so nothing beats", "muted")])]
        rhythm = self.model.rhythms.get(self.task.name, Rhythm())
        listed = beats.intervals(rhythm, self.model.now.fs)
        return [*found, EMPTY, *all_wrapped(listed, cells)]

    def payload(self, cells: int, most: int = 0) -> list[Row]:
        """The content, all that was read of it or so many lines."""
        known = self.known.payload
        if known is None:
            words = "never read" if self.gone or self.known.trouble else "being read …"
            return [*_headed("payload", cells, [row(words, "muted")])]
        lines = _content(known, cells, most)
        more = [row("… and more", "muted")] if most and len(lines) > most else []
        cut = [row(known.cut, "late")] if known.cut else []
        title = heading(f"payload · {known.told}", cells)
        return [title, *all_wrapped(cut, cells), *(lines[:most] if more else lines), *more]

    def life(self, cells: int, most: int = 0) -> list[Row]:
        """The timeline from the journal."""
        events, earlier = self.known.events, self.known.earlier
        if events is None:
            lines = [row("the journal is being read …", "muted")]
        elif not events:
            lines = [row("the journal tells nothing of it: shells leave no trace there", "muted")]
        else:
            cut = max(0, len(events) - most) if most else 0
            now = self.model.now.fs / 1e9
            lines = [*timeline(events[cut:], now, cells, earlier + cut), *self._untold(events)]
        return [*_headed("timeline", cells, lines)]

    def _untold(self, events: Sequence[Event]) -> Iterator[Row]:
        """A step of which no line tells: its writer crashed in it, or was a plain shell."""
        last = next((e for e in reversed(events) if e.verb not in NOTHING_MOVED), None)
        names = [task.name for task in self.known.found or ()]
        if last is not None and last.dst and names and last.dst not in names:
            words = f"how it came to be {clean(names[0])} no line tells: a crash, or a shell"
            yield row(words, "late")

    def files(self, cells: int) -> list[Row]:
        """Every file name that has to do with it."""
        lines: list[Row] = []
        for file in self.known.files:
            told = "late" if file.told == "not there" else "muted"
            lines += wrapped(row(clean(file.path)), cells, 2)
            lines.append((("  " + clean(file.what), "muted"), (f", {clean(file.told)}", told)))
        return [*_headed("files", cells, lines or [row("being looked for …", "muted")])]

    # Parts

    def _evidence(self) -> Iterator[Row]:
        verdict = self.model.stale.get(self.task.name) or self.known.verdict
        if verdict and self.task.live and not self.gone:
            why, look = _EVIDENCE[verdict]
            yield _field("evidence", (verdict.upper(), look), (f" {why}", "text"))
        elif self.task.live and not self.gone:
            yield _field("evidence", ("…", "muted"))

    def _age(self) -> Iterator[Row]:
        age = self.entry.age
        if age is not None:
            waits = {"available": "waiting", "free": "free"}.get(self.task.state, "ended")
            yield _field(waits, *_moment(self.model.now.fs - int(age * 1e9), age))

    def _lease(self, entry: Entry) -> Row:
        assert entry.age is not None
        assert entry.ttl is not None
        left = entry.ttl - entry.age
        look = self.state if self.state in ("late", "stale") else "claimed"
        words = f" {short(left)} left" if left > 0 else f" over for {short(-left)}"
        return _field("lease", (bar(left / entry.ttl, 10), look), (words, look))

    def _became(self) -> str:
        """What is known of a name that is gone."""
        known, name, ident = self.known, self.task.name, clean(self.task.id)
        if known.events is None or known.found is None:
            return f"gone: {ident} is no longer {self.task.state}; looking for what became of it"
        moves = [event for event in known.events if event.verb not in NOTHING_MOVED]
        event = next((e for e in reversed(moves) if e.src == name), None)
        words = f"gone: {ident} is no longer {self.task.state}"
        if event is not None:
            by = f" by {clean(event.by)}" if event.by else ""
            ago = short(self.model.now.fs / 1e9 - event.at)
            words = f"gone: {ident} was {clean(word(event.verb))}{by} {ago} ago"
        others = [task for task in known.found if task.name != name]
        now = ", ".join(f"{task.state} as {clean(task.name)}" for task in others[:3])
        return f"{words}; now {now}" if now else f"{words}; nothing carries that id now"


@lru_cache(maxsize=4)
def _content(known: Payload, cells: int, most: int) -> list[Row]:
    """A payload's lines as they fit; kept, because they are asked for every second."""
    if known.kind == "binary":
        return list(payload.dump(known.data[: 16 * (most + 1) if most else None], cells))
    return all_wrapped(known.lines[: most + 1 if most else None], cells)


def _field(label: str, *pieces: tuple[str, str]) -> Row:
    return (f"{label:<{_LABEL}}", "muted"), *pieces


def _proof(proof: Proof) -> Row:
    """What speaks for the holder's life, for its end, or for neither."""
    sign = "+" if proof.weight > 0 else "-" if proof.weight < 0 else "·"
    look = "claimed" if proof.weight > 0 else "stale" if proof.weight < 0 else "muted"
    return (f"{sign} {proof.kind:<{_LABEL - 2}}", look), (clean(proof.text), "text")


def _moment(at: int, age: float | None) -> tuple[tuple[str, str], ...]:
    return (clock(at), "text"), (f", {short(age)} ago", "text")


def _headed(title: str, cells: int, lines: Iterable[Row]) -> Iterator[Row]:
    """A section: its rule, its lines."""
    yield heading(title, cells)
    for line in lines:
        yield from wrapped(line, cells, _LABEL)


def _table(metadata: str) -> Iterator[Row]:
    """The keys and values of a JSON object, or the lines of a text."""
    try:
        fields = json.loads(metadata)
    except (ValueError, RecursionError):
        fields = None
    if not isinstance(fields, dict):
        yield from map(row, clean_lines(metadata).split("\n"))
        return
    for key, value in fields.items():
        told = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        name = clean(key)
        yield (name + " " * max(1, _LABEL - width(name)), "key"), (clean(told), "text")
