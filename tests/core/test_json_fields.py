"""Every field that a verb prints with --json is in the manual."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from tests.core.test_cli import Command
from tests.core.test_docs import CLI

STORY = (
    ("where",),
    ("init",),
    ("paths",),
    ("add", "a", "b", "c", "d"),
    ("add", "a"),
    ("claim", "a", "--ttl", "60", "--meta", "why"),
    ("beat", "{a}", "--note", "half"),
    ("verify", "{a}"),
    ("claim", "a"),
    ("show", "a"),
    ("done", "{a}", "--result", "{file}"),
    ("done", "{a}"),
    ("claim", "b"),
    ("ask", "{b}", "which?"),
    ("claim", "b"),
    ("answer", "{b}", "this"),
    ("claim", "b"),
    ("fail", "{b}", "--reason", "broken", "--retry-in", "1h"),
    ("claim", "b"),
    ("show", "b"),
    ("prioritize", "{b}", "9"),
    ("run", "c", "--log", "--", "sh", "-c", "echo said; exit 3"),
    ("logs", "c"),
    ("ls", "reason~"),
    ("requeue", "--from", "{file}", "--dry-run"),
    ("requeue", "--from", "{file}"),
    ("undo",),
    ("park", "d.available", "--reason", "why"),
    ("undo", "{d}", "d.available"),
    ("claim", "d"),
    ("force-release", "{d}", "--reason", "why"),
    ("acquire", "lock", "--slots", "2"),
    ("acquire", "lock"),
    ("acquire", "lock"),
    ("renew", "{lock}"),
    ("status", "lock"),
    ("release", "{lock}"),
    ("status", "lock"),
    ("pause", "--reason", "why", "--locks"),
    ("claim",),
    ("pauses",),
    ("resume",),
    ("resume",),
    ("reap",),
    ("wait", "a", "c", "--timeout", "0.1"),
    ("wait", "id^=nothing"),
    ("log",),
    ("stats",),
    ("check",),
    ("check", "--probe"),
    ("prime",),
    ("setup", "agents-md", "--dry-run", "--file", "{file}.md"),
    ("completion", "bash"),
    ("copy", "{board}", "{board}.copy"),
    ("purge", "--done", "--older-than", "0"),
    ("forget", "a"),
    ("done", "a"),
    ("show", "nothing"),
)
"""Verbs, in an order in which each has something to say; `{a}` is the last claim on `a`."""
FREE = {"meta", "states"}
"""Fields whose own keys are not dibs' words."""


def keys(value: Any) -> Iterator[str]:
    """The names of all fields in an object, also of those within."""
    if isinstance(value, list):
        for each in value:
            yield from keys(each)
    if isinstance(value, dict):
        for key, inner in value.items():
            yield key
            if key not in FREE:
                yield from keys(inner)


def as_documented(printed: dict[str, Any]) -> dict[str, Any]:
    """An object without the figures of a probe, of which the manual gives examples only."""
    shown = ("ability", "grade", "text")
    return {key: printed[key] for key in shown} if "ability" in printed else printed


def test_the_manual_names_every_field_that_a_verb_prints(command: Command) -> None:
    section = CLI.partition("\n## JSON\n")[2].partition("\n## ")[0]
    named = {word for text in re.findall(r"`([^`]+)`", section) for word in text.split()}
    listed = command.path.with_name("list")
    listed.write_text("c\nnothing\n")
    (command.path / "stranger.txt").touch()
    names = {"file": str(listed), "board": str(command.path)}
    unnamed: dict[str, set[str]] = {}
    for verb in STORY:
        done = command.run("--json", *(word.format(**names) for word in verb))
        found = [json.loads(each) for each in done.stdout.splitlines() if each[:1] == b"{"]
        assert found or verb in (("check",), ("reap",)), (verb, done)
        for each in found:
            if each.get("id") and each.get("claim"):
                names[each["id"]] = each["claim"]
        if missing := set(keys([as_documented(each) for each in found])) - named:
            unnamed[" ".join(verb)] = missing
    assert unnamed == {}
