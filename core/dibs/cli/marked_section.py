"""A section between two marks in a file of the user."""

from __future__ import annotations

from typing import NamedTuple

from dibs.model.errors import BadName


class MarkedSection(NamedTuple):
    """A section that `dibs setup` writes into a file, and takes out again byte for byte."""

    begin: str
    text: str
    end: str

    def added(self, text: str | None) -> str:
        """The file with the section of today; None stands for a file that does not exist."""
        section = f"{self.begin}\n{self.text}{self.end}\n"
        if text is None:
            return section
        span = self._span(text)
        if span is None:
            return f"{text}\n{section}"
        return text[: span[0]] + section + text[span[1] :]

    def removed(self, text: str) -> str | None:
        """The file without the section; None if nothing else was ever in it."""
        span = self._span(text)
        if span is None:
            return text
        start, end = span
        if start == 0 and end == len(text):
            return None
        line_end = "\r\n" if text[:end].endswith("\r\n") else "\n"
        return text[:start].removesuffix(line_end) + text[end:]

    def _span(self, text: str) -> tuple[int, int] | None:
        """Where the section is, if there is one. Anything but one pair of marks is refused."""
        counts = text.count(self.begin), text.count(self.end)
        if counts == (0, 0):
            return None
        start, end = text.find(self.begin), text.find(self.end)
        if counts != (1, 1) or end < start:
            raise BadName("its marks of dibs are not one pair: repair them by hand")
        after = end + len(self.end)
        after += text.startswith("\r", after)
        return start, after + text.startswith("\n", after)
