"""The sections that load completion in bash, zsh and fish, when it is first needed."""

from __future__ import annotations

import os

from dibs.cli.marked_section import MarkedSection

_LAZY = """\
_dibs() { local script; script=$(dibs completion SHELL) && eval "$script" && _dibs "$@"; }
"""
_BASH = "complete -o default -F _dibs dibs\n"
_ZSH = """\
(( $+functions[compdef] )) || { autoload -Uz compinit && compinit; }
compdef _dibs dibs
"""
_FISH = "command -q dibs; and dibs completion fish | source\n"


def _section(shell: str, text: str) -> MarkedSection:
    begin = f"# dibs: begin (`dibs setup {shell} --remove` removes this section)"
    return MarkedSection(begin, text, "# dibs: end")


BASH = _section("bash", _LAZY.replace("SHELL", "bash") + _BASH)
ZSH = _section("zsh", _LAZY.replace("SHELL", "zsh") + _ZSH)
FISH = _section("fish", _FISH)


def bash_file() -> str:
    """What an interactive bash reads."""
    return os.path.expanduser("~/.bashrc")


def zsh_file() -> str:
    """What an interactive zsh reads."""
    return os.path.join(os.environ.get("ZDOTDIR") or os.path.expanduser("~"), ".zshrc")


def fish_file() -> str:
    """What fish reads when it first completes `dibs`."""
    config = os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")
    return os.path.join(config, "fish/completions/dibs.fish")
