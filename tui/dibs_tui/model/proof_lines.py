"""One observation about a holder, as a dialog and the details of a task show it."""

from __future__ import annotations

from dibs import Proof, Verdict
from dibs_tui.model.rows import Row, wrapped
from dibs_tui.text.safe import clean, fit

LABEL = 11
"""The cells of a label, such as `then` or `- process`."""
VERDICT_INKS = {
    Verdict.DEAD: "alarm",
    Verdict.EXPIRED: "alarm",
    Verdict.ALIVE: "ok-text",
    Verdict.UNKNOWN: "ask",
}
"""The ink of each verdict."""


def proof_lines(proof: Proof, cells: int) -> list[Row]:
    """One observation: `-` speaks for a release, `+` against it, `·` for neither."""
    sign = "+" if proof.weight > 0 else "-" if proof.weight < 0 else "·"
    look = {"+": "ok-text", "-": "alarm", "·": "muted"}[sign]
    text = clean(proof.text).removeprefix(f"{proof.kind} ")
    label = fit(f"{sign} {clean(proof.kind)}", LABEL - 1) + " "
    return wrapped(((label, look), (text, "muted")), cells, LABEL)
