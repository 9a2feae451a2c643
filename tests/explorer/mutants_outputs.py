"""Faults in how notes, results and output are written and removed."""

from __future__ import annotations

from . import scenes_outputs as scenes
from .mutant import Mutant, mutant

MUTANTS: list[Mutant] = [
    mutant(
        "a note in the record",
        "Each note renews the time of the record, so a hung worker's lease lives.",
        scenes.HUNG,
        (
            "notes:write",
            'store.place(NOTES, stem, f"{text}\\n".encode())',
            'store.port.touch(f".dibs/records/{stem}")',
        ),
    ),
    mutant(
        "a note also beats",
        "A thread that only notes keeps the claim of a worker that hangs.",
        scenes.HUNG,
        ("claims:FilesClaim.note", "self._note(", "self._touch(self.record)\n    self._note("),
    ),
    mutant(
        "a note is not complete when it gets its name",
        "A reader or a crash finds a part of it.",
        scenes.NOTED,
        (
            "board_files:BoardFiles.place",
            "self.write(draft, data)",
            'self.write(draft, b"")\n'
            '        self.port.rename(draft, f"{folder}/{name}")\n'
            '        self.port.append(f"{folder}/{name}", data)\n'
            "        self.write(draft, data)",
        ),
    ),
    mutant(
        "a note stays after its claim",
        "The claim ended between the heartbeat and the note, and no janitor looks for notes.",
        scenes.NOTED,
        (
            "claims:FilesClaim._note",
            "if self._store.look(self.task.name) is False:",
            "if False:",
        ),
        ("janitor:reap_all", "store.keeps_notes()", "False"),
        ("checkup:_found", "writable and not store.port.read_only", "False"),
    ),
    mutant(
        "notes are swept by a listing",
        "A claim that was made after the listing loses its note.",
        scenes.FRESH_NOTE,
        ("notes:sweep", "stem not in live and is_over(store, stem)", "stem not in live"),
    ),
    mutant(
        "the result is written after the commit",
        "A crash in between leaves a commit without its result.",
        scenes.RESULTING,
        (
            "claims:FilesClaim._done_with",
            "outputs.write_result(store, self.name, result)\n    try:",
            "try:",
        ),
        (
            "claims:FilesClaim._done_with",
            'return self._end("done", dst)\n',
            'ended = self._end("done", dst)\n'
            "        outputs.write_result(store, self.name, result)\n        return ended\n",
        ),
    ),
    mutant(
        "the result of a lost reply is dropped",
        "The commit stands, and its owner removes the result because it is uncertain.",
        scenes.RESULTING,
        ("claims:FilesClaim._done_with", "except Lost:", "except Exception:"),
    ),
    mutant(
        "a repeated commit is not looked for",
        "The result of the second commit replaces that of the first.",
        scenes.REPEATED,
        ("claims:FilesClaim._done_with", "if there:", "if False:"),
    ),
    mutant(
        "a repeated commit takes any result",
        "Its worker believes that the board has the second result.",
        scenes.REPEATED,
        (
            "claims:FilesClaim._done_with",
            "outputs.result(store, self.name) != result",
            "outputs.result(store, self.name) is None",
        ),
    ),
    mutant(
        "the commit is looked for before the claim",
        "The claim is committed between the two looks, and its result is removed.",
        scenes.SWEPT,
        (
            "outputs:_is_current",
            'places = (f"{stem}.claimed", f"{stem}.held", f"{DONE}/{stem}", f"{FAILED}/{stem}")',
            'places = (f"{DONE}/{stem}", f"{FAILED}/{stem}", f"{stem}.claimed", f"{stem}.held")',
        ),
    ),
    mutant(
        "output of ended claims is kept",
        "What crashed attempts left is never removed.",
        (scenes.PRINTED, scenes.RESULTING),
        ("outputs:sweep", 'over or _is_old(store, f"{folder}/{entry}", now)', "over"),
    ),
    mutant(
        "a purge leaves the output of earlier attempts",
        "Only the purged claim's own files are removed.",
        scenes.PURGED,
        ("outputs:sweep", "pasts.get(names.escape(task.id), -1) >= task.fence", "False"),
    ),
    mutant(
        "forgetting removes output of any life",
        "The id was added again meanwhile, and the result of the new life goes with the old ones.",
        scenes.NEXT_LIFE,
        (
            "outputs:forget",
            "task.id in fences and task.fence <= fences[task.id]",
            "task.id in fences",
        ),
    ),
]
