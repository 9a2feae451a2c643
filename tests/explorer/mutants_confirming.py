"""Faults in how a claim is confirmed, and undone if no one has confirmed it."""

from __future__ import annotations

from . import scenes_confirming as scenes
from .mutant import Mutant, mutant

_TURN = "with turn(store, task, patience=0, lands=True) as mine:"

MUTANTS: list[Mutant] = [
    mutant(
        "an undo takes no turn",
        "The claim is confirmed between its look at the record and its rename.",
        scenes.UNDONE,
        ("confirming:release", _TURN, "for mine in (True,):"),
    ),
    mutant(
        "a confirmation takes no turn",
        "The claim is released after the confirmation has looked for its name.",
        scenes.UNDONE,
        (
            "claims:FilesClaim.confirm",
            "with confirming.turn(self._store, self.task) as mine:",
            "for mine in (True,):",
        ),
    ),
    mutant(
        "an undo does not look for a confirmation",
        "What its server remembers decides, and another one has given the claim away.",
        scenes.UNDONE,
        ("confirming:release", "facts.record.confirmed or facts.record.flaw", "facts.record.flaw"),
    ),
    mutant(
        "a confirmation is only a heartbeat",
        "It comes so soon after the claim that the record looks as it was made.",
        scenes.UNDONE,
        (
            "claims:FilesClaim.confirm",
            'try again")\n        self._renew(record._replace(confirmed=True))',
            'try again")\n        self._renew(record)',
        ),
    ),
    mutant(
        "a turn is over before its rename",
        "The rename got no reply, and lands after the claim was confirmed.",
        scenes.UNDONE_SLOWLY,
        ("confirming:turn", "if not lands:", "if lands:"),
    ),
    mutant(
        "a turn of another counts as one's own",
        "The file is there already, and that is taken for the lost reply of its own.",
        scenes.UNDONE,
        ("confirming:_made", "[0] == mine", "[0] != mine"),
    ),
    mutant(
        "a claim that is found by its name counts as one's own",
        "Another server made it for the same request, and gave it away; a pause requeues it.",
        scenes.TWINS_PAUSED,
        ("claims:take", "if found and terms.nonce:", "if False:"),
    ),
    mutant(
        "a claim that is found by its name is undone",
        "Its maker has not written the record yet, and gives it away after it was undone.",
        scenes.TWINS,
        ("claims:take", "if found and terms.nonce:", "if False:"),
    ),
]
