"""Shell completion of verbs, options, ids and claims."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from dibs.cli.grammar import VERBS, parser_of

if TYPE_CHECKING:
    from dibs.cli.say import Voice

_WANTS_CLAIM = ("claim", "claim?", "waiting", "ended?")
_BASH = """\
_dibs() {
  local word=${COMP_WORDS[COMP_CWORD]} verb=${COMP_WORDS[1]}
  if [ "$COMP_CWORD" -le 1 ]; then
    COMPREPLY=($(compgen -W "%(verbs)s" -- "$word")); return
  fi
  case "$verb" in
%(cases)s
  esac
}
complete -o default -F _dibs dibs
"""
_ZSH = "autoload -U +X bashcompinit && bashcompinit\n" + _BASH
_LIST = 'dibs ls --json 2>/dev/null | sed -n \'s/.*"%s": "\\([^"\\\\]*\\)".*/\\1/p\''


def completion(voice: Voice, args: argparse.Namespace) -> int:
    """Print what the shell should source."""
    print({"bash": _bash(_BASH), "zsh": _bash(_ZSH), "fish": _fish()}[args.shell], end="")
    return 0


def options(word: str) -> list[str]:
    """The long options of a verb."""
    return [o for a in parser_of(word)._actions for o in a.option_strings if o.startswith("--")]


def _wants(word: str) -> str:
    """What a verb's argument is: a claim, an id, or nothing that could be listed."""
    wanted = VERBS[word].options.split()
    if any(option in _WANTS_CLAIM for option in wanted):
        return "claim"
    return "id" if {"id", "id?", "name"} & set(wanted) else ""


def _bash(text: str) -> str:
    cases = []
    for word in VERBS:
        listed = f"$({_LIST % _wants(word)}) " if _wants(word) else ""
        words = f"{listed}{' '.join(options(word))}"
        cases.append(f'    {word}) COMPREPLY=($(compgen -W "{words}" -- "$word")) ;;')
    return text % {"verbs": " ".join([*VERBS, "run"]), "cases": "\n".join(cases)}


def _fish() -> str:
    lines = []
    for word, verb in VERBS.items():
        text = verb.text.replace("'", "")
        lines.append(f"complete -c dibs -n __fish_use_subcommand -a {word} -d '{text}'")
        seen = f"-n '__fish_seen_subcommand_from {word}'"
        lines += [f"complete -c dibs {seen} -l {option[2:]}" for option in options(word)]
        if _wants(word):
            listed = (_LIST % _wants(word)).replace("'", "\\'")
            lines.append(f"complete -c dibs {seen} -f -a '({listed})'")
    lines.append("complete -c dibs -n __fish_use_subcommand -a run -d 'work on claims, supervised'")
    return "\n".join(lines) + "\n"
