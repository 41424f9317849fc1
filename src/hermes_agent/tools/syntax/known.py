"""What programs print, as far as that follows from their words alone."""

from __future__ import annotations

import base64
import binascii
import codecs
import re
from collections.abc import Callable

from hermes_agent.tools.syntax.simple import NAME, Simple, is_known

_NAMES = {"date", "seq", "nproc", "whoami", "hostname", "uname", "wc", "id", "basename", "arch", "tty", "uuidgen", "ls"}
_LISTS = {"find", "rg", "grep", "fd", "fdfind"}
_OF_GIT = {"rev-parse", "branch", "describe", "ls-files", "diff", "symbolic-ref", "log", "rev-list", "status", "show"}
# What tools print for a shell to take in, as their manuals say.
_HOOKS = re.compile(
    r"(ssh-agent( -\w)*|(pyenv|rbenv|nodenv|goenv|jenv) (init|virtualenv-init)( -+[\w-]*)*|direnv (hook|export) \w+"
    r"|(starship|zoxide|atuin|mise|fnm|rtx) (init|activate|env)( [\w-]+)*|(/\S+/)?brew shellenv|opam env|fnm env.*"
    r"|luarocks path.*|dircolors.*|lesspipe|register-python-argcomplete \w+|(\w+) completion \w+|minikube docker-env)"
)


def output_of(simple: Simple) -> str | None:
    """The text that a program prints, None where it is not known."""
    if simple.program in ("echo", "printf"):
        return _printed(simple) if all(map(is_known, simple.arguments)) else None
    return None if simple.stdin is None else _filtered(simple, simple.stdin)


def _filtered(simple: Simple, fed: str) -> str | None:
    match simple.program:
        case "cat" if simple.operands in ((), ("-",)):
            return fed
        case "tee":
            return fed
        case "base64" if simple.has("dD", "--decode"):
            return _decoded(lambda: base64.b64decode("".join(fed.split()), validate=False))
        case "xxd" if simple.has("r"):
            return _decoded(lambda: bytes.fromhex("".join(fed.split())))
        case "rev":
            return "\n".join(line[::-1] for line in fed.split("\n"))
        case _:
            return None


def substituted(simples: list[Simple]) -> str | None:
    """What stands in place of `$(...)`: the text, a `NAME`, or None where nobody knows."""
    if not simples:
        return ""
    known = output_of(simples[-1])
    return known.rstrip("\n") if known is not None else _kind_of(simples[0], simples[-1])


def _kind_of(first: Simple, last: Simple) -> str | None:
    """What a program prints by its nature: a folder, names, a number."""
    match first.program:
        case "pwd":
            return first.folder
        case "mktemp":
            return f"/tmp/{NAME}"
        case "git" if set(first.operands) & _OF_GIT:
            return "." if "--show-toplevel" in first.arguments else NAME
        case "dirname" if len(first.operands) == 1 and is_known(first.operands[0]):
            return first.operands[0].rpartition("/")[0] or "."
        case program:
            starts = [word for word in first.operands if word.startswith(("/", "~", "..")) or not is_known(word)]
            lists = program in _LISTS | _NAMES and last.program in {*_LISTS, *_NAMES, *_FILTERS}
            return NAME if lists and not starts else None


_FILTERS = {"sort", "head", "tail", "uniq", "cut", "tr", "wc", "awk", "sed"}


def is_a_hook(source: str) -> bool:
    """Whether a substitution is one of those that tools tell people to `eval`."""
    return bool(_HOOKS.fullmatch(" ".join(source.split())))


def lists_names(fed_by: tuple[str, ...]) -> bool:
    """Whether what comes through a pipe are names below the folder."""
    return bool(fed_by) and fed_by[0] in {*_LISTS, *_NAMES, "git"}


def _printed(simple: Simple) -> str | None:
    words = list(simple.arguments)
    if simple.program == "printf":
        parts = iter(words[1:])
        return re.sub(r"%[sb]", lambda _: _escaped(next(parts, "")), _escaped(words[0])) if words else None
    options = ""
    while words and re.fullmatch(r"-[neE]+", words[0]):
        options += words.pop(0)[1:]
    text = " ".join(words)
    return (_escaped(text) if "e" in options else text) + ("" if "n" in options else "\n")


def _escaped(text: str) -> str:
    return re.sub(r"\\(x[0-9a-fA-F]{1,2}|u[0-9a-fA-F]{4}|0?[0-7]{1,3}|[abfnrtv\\'\"e])", _unescape, text)


def _unescape(found: re.Match[str]) -> str:
    code = found[1]
    if code == "e":
        return "\x1b"
    if code[0] in "xu":
        return chr(int(code[1:], 16))
    if code[0] in "01234567":
        return chr(int(code, 8) & 0xFF)
    return codecs.decode(f"\\{code}", "unicode_escape")


def unescaped(text: str) -> str:
    """The text between `$'` and `'` as bash means it."""
    return _escaped(text)


def _decoded(make: Callable[[], bytes]) -> str | None:
    try:
        return make().decode("utf-8", "replace")
    except (ValueError, binascii.Error):
        return None
