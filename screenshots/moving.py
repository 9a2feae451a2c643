"""Records the first minute of the demo as a moving picture: a worker dies, and comes back too late.

python -m screenshots.moving [FILE]

Everything is real: the dashboard in a terminal, the demo's workers, and one more worker whose
process is killed while its child works on. It needs resvg-py and Pillow: pip install --group shots
"""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import pyte
from tests.tui.terminal import ROOT, Terminal

from screenshots import draw

SIZE = (120, 34)
_EVERY = 0.25
"""The least seconds between two frames."""
_LONGEST = 2.5
"""The most seconds that a frame stays, so that nothing is waited for."""
_LAST = 6.0
_PATIENCE = 45.0
_TASK = "render-0777"
_DASHBOARD = (sys.executable, "-m", "dibs_tui.cli", "demo")
_WORKER = """
import os, sys, dibs
board = dibs.open(sys.argv[1])
board.add(sys.argv[2], b"scene harbour/dawn.usd", priority=9)
here = board.host.process(os.getpid())
claim = board.claim(sys.argv[2], owner="agent-4", ttl=60, process=here)
assert claim is not None
claim.note("frame 812 of 1200")
print("claimed", flush=True)
if os.fork() == 0:  # it outlives its parent, and commits when it is told to
    sys.stdin.read()
    try:
        claim.done(b"1200 frames")
    except dibs.DibsError as error:
        print(f"refused: {error}", flush=True)
    os._exit(0)
while True:
    os.wait()
"""


class Frame(NamedTuple):
    """What the terminal showed, and since when."""

    at: float
    rows: list[list[draw.Cell]]


class Recorder:
    """A terminal that is looked at again and again while keys are pressed."""

    def __init__(self, shown: Terminal) -> None:
        self.shown = shown
        self.frames: list[Frame] = []

    def watch(self, seconds: float) -> None:
        """Record for some time."""
        self.until(lambda: False, seconds, needed=False)

    def until(
        self, holds: Callable[[], bool], seconds: float = _PATIENCE, *, needed: bool = True
    ) -> None:
        """Record until something holds."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self._look()
            if holds():
                return
            time.sleep(_EVERY)
        if needed:
            raise SystemExit(f"it never came to that:\n{self.shown.text}")

    def press(self, *keys: str, pause: float = 0.6) -> None:
        """Press keys as a person does."""
        for key in keys:
            self.shown.send(key)
            self.watch(pause)

    def _look(self) -> None:
        rows = [[_cell(char) for char in self.shown.cells(y)] for y in range(self.shown.rows)]
        if not self.frames or self.frames[-1].rows != rows:
            self.frames.append(Frame(time.monotonic(), rows))


def _cell(char: pyte.screens.Char) -> draw.Cell:
    ink, ground = _colour(char.fg, draw.INK), _colour(char.bg, draw.GROUND)
    if char.reverse:
        ink, ground = ground, ink
    return draw.Cell(char.data, ink, ground, char.bold, char.underscore, char.strikethrough)


def _colour(name: str, none: str) -> str:
    return none if name == "default" else f"#{name}"


def record() -> list[Frame]:
    """The first minute."""
    with tempfile.TemporaryDirectory(prefix="dibs-") as home, _demo(Path(home)) as shown:
        seen = Recorder(shown)
        seen.until(lambda: "live" in shown.text and "claimed" in shown.text)
        board = next(Path(home).glob("dibs-demo-*"))
        with _worker(board) as worker:
            seen.watch(3)
            worker.kill()
            seen.until(lambda: _row(shown, _TASK, "DEAD") is not None)
            seen.watch(1.5)
            _to_row(seen, _TASK)
            seen.watch(1.2)
            seen.press("X")
            seen.until(lambda: "exited" in shown.text)
            seen.watch(4.5)
            seen.press("y")
            seen.watch(1.5)
            seen.press("\x1b", pause=1.0)
            seen.until(lambda: _row(shown, _TASK, "DEAD") is None)
            seen.until(lambda: _taken(board))
            seen.watch(2)
            assert worker.stdin is not None
            worker.stdin.close()
            assert worker.stdout is not None
            if not worker.stdout.readline().startswith("refused"):
                raise SystemExit("the late commit was not refused")
            seen.until(lambda: "agent-4" in shown.text and "came back" in shown.text)
            seen.watch(5)
        return seen.frames


def _taken(board: Path) -> bool:
    """Whether another worker has the task again, or has finished it."""
    return any(board.glob(f"{_TASK}.f2*.claimed")) or any(board.glob(f"done/{_TASK}.f2*"))


def _to_row(seen: Recorder, ident: str) -> None:
    """Move the cursor of the stale panel to a task."""
    seen.press("4", pause=0.8)
    for _ in range(12):
        row = _row(seen.shown, ident)
        if row is not None and _under_cursor(seen.shown, row):
            return
        seen.press("\x1b[B", pause=0.3)


def _row(shown: Terminal, *words: str) -> int | None:
    """The first row with all of these words."""
    rows = (y for y, line in enumerate(shown.lines) if all(word in line for word in words))
    return next(rows, None)


def _under_cursor(shown: Terminal, row: int) -> bool:
    """Whether a row has another ground than those around it."""
    cells = shown.cells(row)
    other = shown.cells(row + 1 if row + 1 < shown.rows else row - 1)
    middle = len(cells) // 4
    return cells[middle].bg != other[middle].bg


@contextmanager
def _demo(home: Path) -> Iterator[Terminal]:
    """`dibs demo` on a terminal, with its board below `home`."""
    env = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": f"{ROOT / 'core'}:{ROOT / 'tui'}",
        "HOME": str(home),
        "TMPDIR": str(home),
        "USER": "ada",
        "LANG": "C.UTF-8",
        "TERM": "xterm-256color",
        "COLORTERM": "truecolor",
    }
    shown = Terminal(_DASHBOARD, env, columns=SIZE[0], rows=SIZE[1])
    try:
        yield shown
        shown.send("\x03")
        shown.leaves()
    finally:
        shown.end()


@contextmanager
def _worker(board: Path) -> Iterator[subprocess.Popen[str]]:
    """A worker that has claimed the task; its child outlives it."""
    env = {"PYTHONPATH": str(ROOT / "core"), "PATH": os.environ["PATH"]}
    with subprocess.Popen(
        [sys.executable, "-c", _WORKER, str(board), _TASK],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=env,
        text=True,
        start_new_session=True,
    ) as worker:
        assert worker.stdout is not None
        if worker.stdout.readline() != "claimed\n":
            raise SystemExit("the worker did not get its task")
        try:
            yield worker
        finally:
            with suppress(ProcessLookupError):
                os.killpg(worker.pid, signal.SIGKILL)


def gif(frames: list[Frame]) -> bytes:
    """The frames as a GIF that repeats, in few colours."""
    ends = [frame.at for frame in frames[1:]]
    times = [min(_LONGEST, end - frame.at) for frame, end in zip(frames, ends, strict=False)]
    images: list[Any] = [draw.pixels(draw.svg(frame.rows)) for frame in frames]
    palette = draw.palette(frame.rows for frame in frames)
    images = [image.quantize(palette=palette, dither=0) for image in images]
    out = io.BytesIO()
    lasts = [round(1000 * seconds) for seconds in (*times, _LAST)]
    images[0].save(
        out, "GIF", save_all=True, append_images=images[1:], duration=lasts, loop=0,
        optimize=True, disposal=1,
    )  # fmt: skip
    return out.getvalue()


def main(names: list[str]) -> None:
    """Record, and write the picture."""
    target = Path(names[0]) if names else ROOT / "screenshots" / "first-minute.gif"
    frames = record()
    target.write_bytes(gif(frames))
    seconds = frames[-1].at - frames[0].at
    size = target.stat().st_size
    print(f"{target.name}  {len(frames)} frames, {seconds:.0f} s, {size // 1000} kB")


if __name__ == "__main__":
    main(sys.argv[1:])
