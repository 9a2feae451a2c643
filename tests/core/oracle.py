"""A second parser of the name grammar, written from the protocol, without regular expressions."""

from __future__ import annotations

SAFE = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-"

Fields = tuple[str, str, int, int, int, str, int, int, int]
"""id, state, fence, attempts, priority, claim, question, answer, not before"""
Counters = tuple[int, int, int, int, int, int]
"""fence, attempts, priority, question, answer, not before"""
ZERO: Counters = (0, 0, 5, 0, 0, 0)


def _fields(ident: str, word: str, stamp: Counters = ZERO, claim: str = "") -> Fields:
    return (ident, word, *stamp[:3], claim, *stamp[3:])


class Oracle:
    """Reads names as sections 1 and 2 of the protocol say."""

    def board(self, name: str) -> Fields | None:
        """A name in the directory of the board."""
        if name.startswith(".") or "/" in name or "\0" in name:
            return None
        parts = name.split(".")
        if parts[1:] and parts[-1] in (
            *("available", "claimed", "free", "held"),
            *("later", "asked"),
        ):
            found = self._hardened(parts)
            if found is not None:
                return found
        return self._plain(parts)

    def ended(self, folder: str, name: str) -> Fields | None:
        """A name in `done/` or `failed/`: `<id>.<stamp>.<claim>`."""
        parts = name.split(".")
        if len(parts) != 3:
            return None
        ident, stamp = self.ident(parts[0]), self.stamp(parts[1])
        if ident is None or stamp is None or stamp[-1] or not self.claim(parts[2]):
            return None
        return _fields(ident, folder, stamp, parts[2])

    def _hardened(self, parts: list[str]) -> Fields | None:
        ident, word = self.ident(parts[0]), parts[-1]
        if ident is None:
            return None
        match parts[1:-1]:
            case [] if word in ("available", "claimed", "free"):
                return _fields(ident, word)
            case [text] if word in ("available", "claimed", "free", "later"):
                stamp = self.stamp(text)
                if stamp is not None and stamp != ZERO and bool(stamp[-1]) == (word == "later"):
                    return _fields(ident, word, stamp)
            case [text, claim] if word in ("claimed", "held", "asked") and self.claim(claim):
                stamp = self.stamp(text)
                if stamp is not None and not stamp[-1]:
                    return _fields(ident, word, stamp, claim)
        return None

    def _plain(self, parts: list[str]) -> Fields | None:
        """`<anything>.available`, `<anything>.claimed`, `<anything>.claimed-by-<owner>`."""
        at = [n for n, part in enumerate(parts) if self._is_state_word(part)]
        if not at or at[0] == 0:
            return None
        word, rest = parts[at[0]], parts[at[0] + 1 :]
        if word.startswith("claimed-by-"):
            if rest and self._is_state_word(rest[-1]):
                return None
            if any(part.startswith("claimed-by-") for part in rest):
                return None
            if not word.removeprefix("claimed-by-") + "".join(rest):
                return None
            word = "claimed"
        elif rest or word not in ("available", "claimed"):
            return None
        before = parts[: at[0]]
        stamp = self.stamp(before[-1]) if len(before) > 1 else None
        if stamp is not None and stamp != ZERO and not stamp[-1]:
            ident = self.ident(".".join(before[:-1]), complete=False)
            if ident is not None:
                return _fields(ident, word, stamp)
        ident = self.ident(".".join(before)) or ".".join(before)
        if not 1 <= self._escaped_length(ident) <= 120:
            return None
        return _fields(ident, word)

    def _is_state_word(self, part: str) -> bool:
        known = ("available", "claimed", "free", "held", "lock")
        return part in known or part.startswith("claimed-by-")

    def _escaped_length(self, ident: str) -> int:
        try:
            raw = ident.encode("utf-8", "surrogateescape")
        except UnicodeEncodeError:
            return 0
        return sum(1 if chr(byte) in SAFE else 3 for byte in raw)

    def ident(self, text: str, *, complete: bool = True) -> str | None:
        """The id of its canonical escaped form; None for any other text."""
        raw, at = bytearray(), 0
        while at < len(text):
            if text[at] in SAFE:
                raw.append(ord(text[at]))
                at += 1
                continue
            code = text[at + 1 : at + 3]
            if text[at] != "=" or len(code) != 2 or not set(code) <= set("0123456789ABCDEF"):
                return None
            if chr(int(code, 16)) in SAFE:
                return None
            raw.append(int(code, 16))
            at += 3
        if not 1 <= len(text) <= 120:
            return None
        return raw.decode("utf-8", "surrogateescape")

    def stamp(self, text: str) -> Counters | None:
        """`f<fence>`, then each only if it is needed `a`, `p`, `q` with its `r`, and `n`."""
        if not text.startswith("f"):
            return None
        text, n, not_before = text.partition("n")
        text, q, asked = text.partition("q")
        question, r, answer = asked.partition("r")
        if n and (not self._number(not_before, 11) or not_before == "0"):
            return None
        if q and (not self._number(question, 18) or question == "0"):
            return None
        if r and (not self._number(answer, 9) or answer == "0"):
            return None
        head, p, priority = text[1:].partition("p")
        fence, a, attempts = head.partition("a")
        if not self._number(fence, 18) or (p and priority not in tuple("012346789")):
            return None
        if a and (not self._number(attempts, 9) or attempts == "0"):
            return None
        return (
            *(int(fence), int(attempts or 0), int(priority or 5)),
            *(int(question or 0), int(answer or 0), int(not_before or 0)),
        )

    def _number(self, text: str, digits: int) -> bool:
        if not text or not set(text) <= set("0123456789") or len(text) > digits:
            return False
        return text == "0" or not text.startswith("0")

    def claim(self, text: str) -> bool:
        """`<owner>-<nonce>`."""
        owner, dash, nonce = text[:-11], text[-11:-10], text[-10:]
        good = len(nonce) == 10 and set(nonce) <= set("0123456789ABCDEF")
        return good and dash == "-" and 1 <= len(owner) <= 40 and set(owner) <= set(SAFE)
