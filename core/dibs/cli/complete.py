"""Shell completion of verbs, options, ids and claims."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from dibs.cli import running
from dibs.cli.grammar import VERBS, parser_of

if TYPE_CHECKING:
    from dibs.cli.say import Voice

_WORDS = {word: verb.text for word, verb in VERBS.items()} | {
    "run": "work on claims with a command, supervised"
}
_WANTS_CLAIM = ("claim", "claim?", "waiting", "ended?")
_BASH = """\
_dibs() {
  local word=${COMP_WORDS[COMP_CWORD]} verb=${COMP_WORDS[1]}
  if [ "$COMP_CWORD" -le 1 ]; then
    COMPREPLY=($(compgen -W "%(verbs)s" -- "$word")); return
  fi
  [[ " ${COMP_WORDS[*]:0:$COMP_CWORD} " != *" -- "* ]] || return
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
    parser = running.parser() if word == "run" else parser_of(word)
    return [o for a in parser._actions for o in a.option_strings if o.startswith("--")]


def _wants(word: str) -> str:
    """What a verb's argument is: a claim, an id, or nothing that could be listed."""
    wanted = VERBS[word].options.split() if word in VERBS else ["id?"]
    if any(option in _WANTS_CLAIM for option in wanted):
        return "claim"
    return "id" if {"id", "id?", "name"} & set(wanted) else ""


def _bash(text: str) -> str:
    cases = []
    for word in _WORDS:
        listed = f"$({_LIST % _wants(word)}) " if _wants(word) else ""
        words = f"{listed}{' '.join(options(word))}"
        cases.append(f'    {word}) COMPREPLY=($(compgen -W "{words}" -- "$word")) ;;')
    return text % {"verbs": " ".join(_WORDS), "cases": "\n".join(cases)}


def _fish() -> str:
    lines = []
    for word, text in _WORDS.items():
        text = text.replace("'", "")
        lines.append(f"complete -c dibs -n __fish_use_subcommand -a {word} -d '{text}'")
        seen = f"-n '__fish_seen_subcommand_from {word}; and not contains -- -- (commandline -opc)'"
        lines += [f"complete -c dibs {seen} -l {option[2:]}" for option in options(word)]
        if _wants(word):
            listed = (_LIST % _wants(word)).replace("'", "\\'")
            lines.append(f"complete -c dibs {seen} -f -a '({listed})'")
    return "\n".join(lines) + "\n"
