"""Text from a board, made safe and short for a terminal or a shell."""

from __future__ import annotations


def shown(text: str) -> str:
    """The text with all control characters escaped, so that a terminal only shows it."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else _escape(c) for c in text)


def command(verb: str, *words: str) -> str:
    """A command line of dibs with names or ids, quoted for the shell.

    They come after `--` if one begins with a dash.
    """
    from shlex import join

    dashes = ["--"] if any(word.startswith("-") and word != "-" for word in words) else []
    return join(["dibs", *verb.split(), *dashes, *words])


def padded(text: str, cells: int) -> str:
    """The text padded to a width in terminal cells; a longer one is not cut."""
    if not text.isascii():
        from unicodedata import combining, east_asian_width

        cells -= sum((east_asian_width(c) in "WF") - bool(combining(c)) for c in text)
    return text.ljust(cells)


def age(seconds: float | None) -> str:
    """A time span in short form: `8s`, `3m`, `2h`, `5d`; empty for None."""
    if seconds is None:
        return ""
    for unit, size in (("d", 86_400), ("h", 3600), ("m", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f}{unit}"
    return f"{seconds:.0f}s"


def _escape(char: str) -> str:
    code = ord(char)
    return (
        f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}" if code < 65536 else f"\\U{code:08x}"
    )


def some(words: list[str]) -> str:
    """The first three words and how many more there are."""
    more = len(words) - 3
    return ", ".join(words[:3]) + (f" and {more:,} more" if more > 0 else "")


def output_text(data: bytes) -> str:
    """The output of a program as text: control characters are shown, lines and tabs stay."""
    text = data.decode("utf-8", "replace")
    return "".join(char if char.isprintable() or char in "\n\t" else _escape(char) for char in text)
