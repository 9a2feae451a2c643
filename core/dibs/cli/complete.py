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
# Anybody may have chosen an id, so no shell may expand one: neither where they are listed (`compgen
# -W` runs what stands in a word) nor where one comes to stand on the line.
_LIST = r"""dibs DIR ls --json 2>/dev/null | sed -n 's/.*"'"$wanted"'": "\([^"\\]*\)".*/\1/p'"""
_BASH = r"""_dibs() {
  local word=${COMP_LINE:0:COMP_POINT} verb= words= wanted= cut= name i dir=()
  word=${word##* } COMPREPLY=()
  for ((i = 1; i < COMP_CWORD; i++)); do
    case ${COMP_WORDS[i]} in
      --) [ "$verb" != run ] || return 0 ;;
      -d|--dir)
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
      -d|--dir) (( ++i < CURRENT )) || { _files -/; return }; dir=(-d ${words[i]/#\~/$HOME}) ;;
      --dir=*) dir=(-d ${${words[i]#--dir=}/#\~/$HOME}) ;;
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
            case -d --dir
                set value yes
            case '--dir=*'
                set __dibs_dir -d (string replace -- --dir= '' $word | string replace -r '^~' $HOME)
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
complete -c dibs -s d -l dir -r -f -a '(__fish_complete_directories)'
"""


def completion(voice: Voice, args: argparse.Namespace) -> int:
    """Print what the shell should source."""
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
    """What a verb's argument is: a claim, an id, or nothing that could be listed."""
    wanted = VERBS[word].options.split() if word in VERBS else ["id?"]
    if any(option in _WANTS_CLAIM for option in wanted):
        return "claim"
    return "id" if {"id", "id?", "ids*", "name"} & set(wanted) else ""


def _bash() -> str:
    return _filled(_BASH, "words='{}'").replace("DIR", '"${dir[@]}"')


def _zsh() -> str:
    return _filled(_ZSH, "offered=({})").replace("DIR", "$dir")


def _filled(text: str, offer: str) -> str:
    """A script with what each verb takes, the list of verbs where there is none yet."""
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
        lines += [f"{here} -l {option[2:]}" for option in options(word) if option != "--dir"]
        if _wants(word):
            lines.append(f"{here} -f -a '(__dibs_names {_wants(word)})'")
    return "\n".join(lines) + "\n"
