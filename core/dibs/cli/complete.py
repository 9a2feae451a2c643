"""Shell completion of verbs, options, ids and claims."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from dibs.cli import grammar, running
from dibs.cli.grammar import RUN, VERBS, parser_of

if TYPE_CHECKING:
    from dibs.cli.say import Voice

_WORDS = {word: verb.text for word, verb in VERBS.items()} | {"run": RUN}
_WANTS_CLAIM = ("claim", "claim?", "claim|mine", "waiting", "ended?", "asked")
# Anyone may choose an id, so the shell must never expand one: not in the list (`compgen -W` runs
# what a word contains) nor when a completed one is put on the command line.
_LIST = r"""dibs DIR ls --json 2>/dev/null | sed -n 's/.*"'"$wanted"'": "\([^"\\]*\)".*/\1/p'"""
_BASH = r"""_dibs() {
  local word=${COMP_LINE:0:COMP_POINT} verb= words= wanted= cut= name i dir=()
  word=${word##* } COMPREPLY=()
  for ((i = 1; i < COMP_CWORD; i++)); do
    case ${COMP_WORDS[i]} in
      --) [ "$verb" != run ] || return 0 ;;
      -d|--board|--dir)
        i=$((i + 1)); [ "${COMP_WORDS[i]}" != = ] || i=$((i + 1))
        [ "$i" -lt "$COMP_CWORD" ] || return 0
        dir=(-d "${COMP_WORDS[i]/#\~/$HOME}") ;;
      -*) ;;
      *) verb=${verb:-${COMP_WORDS[i]}} ;;
    esac
  done
  case $verb in
CASES
  esac
  [[ $COMP_WORDBREAKS != *=* ]] || cut=${word%"${word##*=}"}
  while IFS= read -r name; do
    printf -v name %q "$name"
    [[ $name != "$word"* ]] || COMPREPLY+=("${name#"$cut"}")
  done < <([ -z "$wanted" ] || LIST; printf '%s\n' $words)
}
complete -o default -F _dibs dibs
"""
_ZSH = r"""_dibs() {
  local verb found wanted i; local -a offered dir
  for ((i = 2; i < CURRENT; i++)); do
    case ${words[i]} in
      --) [[ $verb != run ]] || { _files; return } ;;
      -d|--board|--dir)
        (( ++i < CURRENT )) || { _files -/; return }; dir=(-d ${words[i]/#\~/$HOME}) ;;
      --board=*|--dir=*) dir=(-d ${${words[i]#*=}/#\~/$HOME}) ;;
      -*) ;;
      *) verb=${verb:-${words[i]}} ;;
    esac
  done
  case $verb in
CASES
  esac
  [[ -z $wanted ]] || found=$(LIST)
  offered=(${(f)found} $offered)
  compadd -a offered || _files
}
compdef _dibs dibs
"""
_FISH = r"""function __dibs_at
    set -l words (commandline -opc)
    set -e words[1]
    set -g __dibs_dir
    set -l verb
    set -l value
    for word in $words
        if test -n "$value"
            set value
            set __dibs_dir -d (string replace -r '^~' $HOME -- $word)
            continue
        end
        switch $word
            case --
                test "$verb" != run; or return 1
            case -d --board --dir
                set value yes
            case '--board=*' '--dir=*'
                set __dibs_dir -d (string replace -r '^--[a-z]*=' '' -- $word \
                    | string replace -r '^~' $HOME)
            case '-*'
            case '*'
                test -n "$verb"; or set verb $word
        end
    end
    test "$verb" = "$argv"
end
function __dibs_names
    set -l wanted $argv
    LIST
end
complete -c dibs -s d -l board -l dir -r -f -a '(__fish_complete_directories)'
"""


def completion(voice: Voice, args: argparse.Namespace) -> int:
    """Print the script that the shell sources."""
    script = {"bash": _bash, "zsh": _zsh, "fish": _fish}[args.shell]()
    if voice.json:
        voice.result("", {"shell": args.shell, "script": script})
    else:
        print(script, end="")
    return 0


def options(word: str) -> list[str]:
    """The long options of a verb."""
    parser = running.parser() if word == "run" else parser_of(word)
    return [o for a in parser._actions for o in a.option_strings if o.startswith("--")]


def _wants(word: str) -> str:
    """What to complete a verb's argument with: `claim`, `id`, or empty for neither."""
    wanted = VERBS[word].options.split() if word in VERBS else ["id?"]
    if any(option in _WANTS_CLAIM for option in wanted):
        return "claim"
    return "id" if {"id", "id?", "of?", "ids*", "tasks?", "name"} & set(wanted) else ""


def _bash() -> str:
    return _filled(_BASH, "words='{}'").replace("DIR", '"${dir[@]}"')


def _zsh() -> str:
    return _filled(_ZSH, "offered=({})").replace("DIR", "$dir")


def _filled(text: str, offer: str) -> str:
    """A script with the cases of all verbs; without a verb it offers the list of verbs."""
    cases = [f'    "") {offer.format(" ".join(_WORDS))} ;;']
    for word in _WORDS:
        offered = offer.format(" ".join(options(word)))
        cases.append(f"    {word}) wanted={_wants(word)} {offered} ;;")
    return text.replace("CASES", "\n".join(cases)).replace("LIST", _LIST)


def _fish() -> str:
    lines = [_FISH.replace("LIST", _LIST).replace("DIR", "$__dibs_dir").rstrip("\n")]
    for word, text in _WORDS.items():
        text = text.replace("'", "")
        lines.append(f"complete -c dibs -n '__dibs_at \"\"' -a {word} -d '{text}'")
        here = f"complete -c dibs -n '__dibs_at {word}'"
        lines += [
            f"{here} -l {option[2:]}" for option in options(word) if option not in grammar.PLACE
        ]
        if _wants(word):
            lines.append(f"{here} -f -a '(__dibs_names {_wants(word)})'")
    return "\n".join(lines) + "\n"
