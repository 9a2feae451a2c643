"""The one look of all dialogs: the fact that decides, its evidence, what follows, the buttons."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from typing import ClassVar, Protocol, TypeVar, runtime_checkable

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.segment import Segment
from rich.style import Style
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.events import Key as KeyEvent
from textual.renderables.background_screen import BackgroundScreen
from textual.screen import ModalScreen, Screen
from textual.widget import Widget
from textual.widgets import Button, Input, Static

from dibs_tui.acting.brief import Brief, below, lead
from dibs_tui.model.commands import Command
from dibs_tui.model.rows import EMPTY, Row
from dibs_tui.text.safe import clean
from dibs_tui.widgets.key_line import Key, key_parts
from dibs_tui.widgets.lines import Lines
from dibs_tui.widgets.page import Page
from dibs_tui.widgets.ribbon import Ribbon
from dibs_tui.widgets.toasts import Toasts

DEAF = 0.2
"""Seconds after opening in which no key confirms: keys typed ahead were meant for the board."""

Result = TypeVar("Result")
_WIDTH, _PLAN_WIDTH = 94, 104
_SIDES, _FRAME = 4, 6
"""The columns left free beside the box, and those of its frame and margin."""
_AROUND, _EDGES = 5, 2
"""The lines left free above and below the box, and those of its frame."""
_LOW = 20
"""Lines below which only the line of keys is left free."""
_MIN_READING = 3
"""If the part that scrolls had fewer lines than this, what follows would move into it."""
_STEPS = frozenset(("down", "up", "page-down", "page-up", "top", "bottom"))
"""The commands that move the board's cursor; results that need no scrolling leave with them."""
_PARTS = "#lead, #then, #hint, #yes, #cancel, #yes-key, #place, #dialog-keys"
"""What has to be mounted before anything is drawn."""
_SHADES = {"256": "#6c6c6c", "standard": "#808080"}
"""The one ink behind a dialog where a blend has no colours: 242, and 8."""


@runtime_checkable
class Commanded(Protocol):
    """An app with a registry of commands."""

    commands: tuple[Command, ...]
    """The registry, with the user's keys."""

    def key_again(self, event: KeyEvent) -> None:
        """Give a key also to the screen below, which it has led back to."""


class Dialog(ModalScreen[Result]):
    """A box over the board; Enter never confirms, and Cancel has the focus."""

    CSS_PATH = "dialog.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [
        ("escape", "leave", "cancel"),
        ("up", "scroll(-1)", "up"),
        ("down", "scroll(1)", "down"),
        ("pageup", "page(-1)", "page up"),
        ("pagedown", "page(1)", "page down"),
    ]
    HEADING: ClassVar[str] = ""
    YES: ClassVar[str] = ""
    """The act in a word; empty for a dialog without one."""
    OFFERS_HELP: ClassVar[bool] = True
    """Whether the help can be opened over it."""
    LEAVES: ClassVar[frozenset[str]] = frozenset()
    """The commands of the board whose keys close the results, although keys of this dialog too."""
    BOTTOM_LIST: ClassVar[bool] = False
    """Whether the part that scrolls stands below all others."""

    def __init__(self, *, wide: bool = False) -> None:
        super().__init__()
        self.brief: Brief | None = None
        """What is shown; None until it is known."""
        self.over = False
        """Whether only the result is left to read."""
        self._list_last = wide or self.BOTTOM_LIST
        self.set_class(wide, "-wide")
        self._wide = wide
        self._long = False
        """Whether a part of what scrolls is out of sight."""
        self._opened = time.monotonic()

    # What each dialog defines

    def heading(self) -> str:
        """The title in the frame."""
        return self.HEADING

    def fields(self) -> ComposeResult:
        """The fields to fill in, made by `field`."""
        yield from ()

    def body(self) -> ComposeResult:
        """A widget in place of the part that scrolls."""
        page = Page(id="reading", ground="raise")
        page.can_focus = False
        yield page

    def why_not(self) -> str:
        """What is missing before `y` works; empty if nothing is."""
        return ""

    def yes(self) -> str:
        """The act in a word, for the button and the keys; empty if there is none now."""
        return self.YES

    def command(self) -> str:
        """The command that does the same, as it is shown; empty for none."""
        return ""

    def command_note(self) -> str:
        """What the shown command leaves out; empty for nothing."""
        return ""

    def list_head(self) -> Sequence[Row]:
        """The column heads over a list."""
        return ()

    def more_keys(self) -> Iterator[Key]:
        """Keys of this dialog, besides those that all have."""
        yield from ()

    # The box

    def compose(self) -> ComposeResult:
        """The box, and the line of keys at the foot of the screen."""
        with Vertical(id="dialog") as box:
            box.border_title = Content(self.heading())
            yield Lines(id="lead")
            if not self._list_last:
                yield from self.body()
            yield Lines(id="then")
            yield from self.fields()
            if self._list_last:
                yield Lines(id="list-head")
                yield from self.body()
            yield Static(Content(""), id="hint")
            with Horizontal(id="buttons"):
                yield Button(Content("Cancel"), id="cancel")
                yield Static(Content("Esc"), classes="key", id="cancel-key")
                act = Button(Content(self.yes()), id="yes")
                act.can_focus = False
                yield act
                yield Static(Content("y"), classes="key", id="yes-key")
                yield Static(Content(""), id="place")
        yield Ribbon(id="dialog-keys")
        yield Toasts()

    def on_mount(self) -> None:
        """Put the focus on Cancel."""
        self.first_focus().focus()
        self.show()
        self.call_after_refresh(self.show)

    def first_focus(self) -> Widget:
        """The widget that has the focus first."""
        return self.query_one("#cancel")

    @property
    def cells(self) -> int:
        """The width of the text in the box, beside the scroll bar."""
        width = _PLAN_WIDTH if self._wide else _WIDTH
        return max(8, min(width, self.app.size.width - _SIDES) - _FRAME - 1)

    @property
    def reading(self) -> Page:
        """The part that scrolls."""
        return self.query_one("#reading", Page)

    @property
    def text(self) -> str:
        """All that the dialog says, whether it is in sight or not."""
        parts = [part.text for part in (*self.query(Lines), *self.query(Page))]
        return "\n".join([*parts, self.hint()])

    def put(self, brief: Brief) -> None:
        """Show this."""
        self.brief = brief
        self.show()

    def show(self) -> None:
        """Draw what has changed."""
        if not self.is_mounted or len(self.query(_PARTS)) < _PARTS.count("#"):
            return  # it is being opened or closed
        why = self.why_not()
        yes = "" if self.over else self.yes()
        self.set_class(bool(yes) and not why and self.brief is not None, "-sure")
        self.query_one("#hint", Static).update(Content(self.hint()))
        self._show_buttons(yes)
        self._fit()
        self.show_keys()

    def hint(self) -> str:
        """What the operator has to do first, in the line above the buttons."""
        return "" if self.over or self.brief is None else self.why_not()

    def _show_buttons(self, yes: str) -> None:
        act, cancel = self.query_one("#yes", Button), self.query_one("#cancel", Button)
        act.display = self.query_one("#yes-key").display = bool(yes)
        label = f"{yes[:1].upper()}{yes[1:]}"
        if act.label != Content(label):
            act.label = Content(label)
        close = Content("Close" if self.over else "Cancel")
        if cancel.label != close:
            cancel.label = close

    def _fit(self) -> None:
        """Lay the parts out: what scrolls gets the lines that are left."""
        brief, size = self.brief or Brief("…", "muted", "loading …"), self.app.size
        box = self.query_one("#dialog")
        box.styles.max_width = max(8, size.width - _SIDES)
        free = size.height - (_AROUND if size.height >= _LOW else 1) - _EDGES
        top, cells = lead(brief, self.cells), self.cells
        then: list[Row] = []
        if not self.over:
            then = below(brief, clean(self.command()), self.command_note(), cells)
        heads = list(self.list_head())
        reading = brief.reading
        fixed = sum(line.display for line in self.query(".line")) + self._hint_lines() + 1
        if reading and free - len(top) - len(then) - fixed - len(heads) < _MIN_READING:
            reading, then = [*then, *reading], []
        if len(top) + len(then) + fixed + len(heads) > free and not reading:
            reading, then = then, []
        if (most := max(1, free - fixed - len(heads) - _MIN_READING)) < len(top) and (
            reading or len(top) + fixed > free
        ):
            reading, top = [*top[most:], *reading], top[:most]
        need = len(top) + len(then) + fixed + len(heads)
        gaps = 1 + (bool(reading)) + (bool(then) and not self._list_last)
        roomy = need + gaps + len(reading) <= free or (size.height >= 30 and len(reading) > 3)
        lines = max(1, min(len(reading), free - need - (gaps if roomy else 0))) if reading else 0
        self.query_one("#lead", Lines).put(self._spaced(top, roomy))
        blank = roomy and bool(then)
        self.query_one("#then", Lines).put([EMPTY, *then] if blank else then)
        if self.query("#reading"):
            self._fit_reading(reading, lines, roomy=roomy)
        if self.query("#list-head"):
            self.query_one("#list-head", Lines).put([EMPTY, *heads] if roomy and heads else heads)

    def _spaced(self, top: list[Row], roomy: bool) -> list[Row]:
        return [EMPTY, *top] if roomy and top else top

    def _fit_reading(self, rows: Sequence[Row], lines: int, *, roomy: bool) -> None:
        page, long = self.reading, len(rows) > lines
        page.display = bool(lines)
        page.styles.height = lines
        page.styles.margin = (1 if roomy and not self._list_last else 0, 0, 0, 0)
        self._long = long
        page.put(rows)
        first = int(page.scroll_y) + 1
        place = f"{first:,}-{min(len(rows), first + lines - 1):,} of {len(rows):,}" if long else ""
        self.query_one("#place", Static).update(Content(place))

    def _hint_lines(self) -> int:
        return max(1, -(-len(self.hint()) // self.cells))

    # Keys

    def show_keys(self) -> None:
        """Draw the keys that apply now in the last line of the screen."""
        ribbon = self.query_one("#dialog-keys", Ribbon)
        ribbon.put_parts(key_parts(self.keys(), self.app.size.width))

    def keys(self) -> Iterable[Key]:
        """The keys that apply now, for the footer."""
        if self.has_class("-sure"):
            typing = isinstance(self.focused, Input)
            yield Key("Enter, then y" if typing else "y", self.yes(), "confirm")
        yield from self.more_keys()
        if not self.over and len(self._fields_shown()) > 0:
            labels = [
                str(line.query_one(".label", Static).content) for line in self._fields_shown()
            ]
            yield Key("Tab", labels[0] if len(labels) == 1 else "next field", "app.focus_next")
        if self.command():
            yield Key("c", "copy command", "copy")
        if self._long:
            yield Key("PgDn", "more", "page(1)")
        yield Key("Esc", "close" if self.over else "cancel", "leave")
        command = self._command("help")
        if self.OFFERS_HELP and command is not None and not isinstance(self.focused, Input):
            key = "?" if "question_mark" in command.keys else command.keys[0]
            yield Key(key, "help", "help", right=True)

    def _command(self, ident: str = "", key: str = "") -> Command | None:
        """A command of the board that has a key, by its id or by that key."""
        known = self.app.commands if isinstance(self.app, Commanded) else ()
        return next((c for c in known if c.keys and (c.id == ident or key in c.keys)), None)

    def on_key(self, event: KeyEvent) -> None:
        """Open the help, or say of another key of the board that it does nothing here.

        Results are a notice: they leave with such a key, and it does its work.
        """
        command = self._command(key=event.key)
        bound = event.key in self.active_bindings  # these run only after this handler
        if command is None or (bound and not self._passes_on(command)):
            return
        if command.group == "move" and not self._passes_on(command):
            return
        event.stop()
        if command.id == "help":
            self.action_help()
        elif self.over and isinstance(self.app, Commanded):
            self.action_leave()
            self.app.key_again(event)
        else:
            self.not_here(command.title)

    def _passes_on(self, command: Command) -> bool:
        """Whether the results leave with this key, although the dialog has a use for it."""
        if not self.over or isinstance(self.focused, Input):
            return False
        return command.id in self.LEAVES or (command.id in _STEPS and not self._long)

    def not_here(self, title: str) -> None:
        """Say that a command of the board does nothing in this dialog."""
        self.notify(f"{title}: not in this dialog; Esc cancels it", timeout=3)

    def not_yet(self, why: str) -> None:
        """Say what is missing before the key works: what the hint says may be overlooked."""
        self.notify(f"{self.yes() or 'act'}: {why}", severity="warning", markup=False, timeout=4)

    def action_help(self) -> None:
        """Show what every key does, over the dialog."""
        if self.OFFERS_HELP and isinstance(self.app, Commanded):
            from dibs_tui.screens.help import HelpScreen

            self.app.push_screen(HelpScreen(self.app.commands))

    def _fields_shown(self) -> list[Widget]:
        return [line for line in self.query(".line") if line.display]

    async def on_ribbon_clicked(self, event: Ribbon.Clicked) -> None:
        """Run the key that was clicked."""
        if event.action:
            await self.run_action(event.action)

    def on_descendant_focus(self) -> None:
        """Update the hint and the keys: they depend on where one types."""
        self.show()

    def on_resize(self) -> None:
        """Fit the text into the new size."""
        self.call_after_refresh(self.show)

    def on_input_changed(self) -> None:
        """Check again what is missing."""
        self.show()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Enter leaves the field for Cancel, where `y` is a key and not text; it never confirms."""
        self.query_one("#cancel").focus()

    async def on_button_pressed(self, event: Button.Pressed) -> None:
        """Cancel, or confirm by the mouse."""
        event.stop()
        await self.run_action("confirm" if event.button.id == "yes" else "leave")

    def action_scroll(self, by: int) -> None:
        """Scroll the part that scrolls."""
        if self.query("#reading"):
            self.reading.scroll_relative(y=by, animate=False)
            self.call_after_refresh(self.show)

    def action_page(self, by: int) -> None:
        """Scroll by pages; a line of the last one stays in sight."""
        if self.query("#reading"):
            self.action_scroll(by * max(1, self.reading.size.height - 1))

    @property
    def deaf(self) -> bool:
        """Whether the dialog has just opened, so that no key confirms."""
        return time.monotonic() - self._opened < DEAF

    def action_confirm(self) -> None:
        """Nothing, in a dialog without an act."""

    def action_leave(self) -> None:
        """Close it."""
        self.dismiss()

    def copied(self, text: str) -> None:
        """Copy a text, and say so."""
        self.app.copy_to_clipboard(text)
        self.notify("copied", timeout=2)

    # What is behind the box

    def render(self) -> RenderableType:
        """The screen below: blended, or in one ink where the terminal has few colours."""
        found = super().render()
        shade = _SHADES.get(self.app.console.color_system or "")
        if shade is None or not isinstance(found, BackgroundScreen) or self._takes_all_colours:
            return found
        return _OneInk(found.screen, shade, self.app.theme_variables["bg"])

    @property
    def _takes_all_colours(self) -> bool:
        """Whether a blend reaches the terminal as it is, or no colour at all does."""
        return self.app.is_headless or self.app.no_color


class _OneInk:
    """A screen drawn in one ink on one ground."""

    def __init__(self, screen: Screen[object], ink: str, ground: str) -> None:
        self._screen = screen
        self._style = Style(color=ink, bgcolor=ground)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for text, _, control in console.render(self._screen._compositor, options):
            yield Segment(text, None if control else self._style, control)


def field(
    label: str, ident: str, value: str = "", placeholder: str = "", *, replaced: bool = False,
    **more: object,
) -> Widget:  # fmt: skip
    """A labelled field, in which the first keys may replace the value; `more` goes to `Input`."""
    typed = Input(
        value=value, placeholder=placeholder, id=ident, compact=True, select_on_focus=replaced,
        **more,  # type: ignore[arg-type]
    )  # fmt: skip
    name = Static(Content(label), classes="label")
    return Horizontal(name, typed, classes="line", id=f"{ident}-line")
