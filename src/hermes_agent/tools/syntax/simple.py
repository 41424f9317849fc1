"""A simple command (one program with its arguments), and what it prints as far as that is known."""

from __future__ import annotations

import base64
import binascii
import codecs
import re
from collections.abc import Callable, Mapping
from dataclasses import field

from hermes_agent.core.dataclass import dataclass

# What stands in a word for something that reading cannot know; characters of no script (Unicode's private use).
VARIABLE = "\ue000"  # the value of a variable that was not set here
COMPUTED = "\ue001"  # what another program prints
NAME = "\ue002"  # a name below the folder: a date, a number, a match of a glob, a file that a listing gave
PIPE = "\ue003"  # the path of a process substitution
UNKNOWN = (VARIABLE, COMPUTED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Simple:
    """One program call in a shell command.

    - `writes`: redirection targets; `reads`: input redirections; `stdin`: the input text if known;
    - `prefixes`: what it is run through (`sudo`, `xargs`, ...); `fed_by`: programs whose output it reads;
    - `folder`: where it runs; `variables`: those set for it;
    - `files`: what this command wrote before: path to content, None if it was downloaded.
    """

    words: tuple[str, ...]
    writes: tuple[str, ...] = ()
    reads: tuple[str, ...] = ()
    prefixes: tuple[str, ...] = ()
    fed_by: tuple[str, ...] = ()
    stdin: str | None = None
    folder: str = ""
    variables: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, str | None] = field(default_factory=dict)
    source: str = ""

    @property
    def program(self) -> str:
        """The program's name without its folder."""
        first = self.words[0] if self.words else ""
        return first.rstrip("/").rpartition("/")[2] or first

    @property
    def arguments(self) -> tuple[str, ...]:
        return self.words[1:]

    @property
    def operands(self) -> tuple[str, ...]:
        """The arguments that are not options."""
        found: list[str] = []
        for index, word in enumerate(self.arguments):
            if word == "--":
                return (*found, *self.arguments[index + 1 :])
            if not word.startswith("-") or word == "-":
                found.append(word)
        return tuple(found)

    def has(self, short: str, *long: str) -> bool:
        """Whether it has one of the short option's letters (also bundled: `-rf`) or one of the long options, also
        abbreviated (`--rec`)."""
        for word in self.arguments:
            if word == "--":
                return False
            if word.startswith("--"):
                given = word.partition("=")[0]
                if given in long or (len(given) > 4 and any(option.startswith(given) for option in long)):
                    return True
            elif word.startswith("-") and any(letter in word[1:] for letter in short):
                return True
        return False

    def value(self, *options: str) -> str:
        """The value of the first of these options: `-o X`, `-oX`, `--output X`, `--output=X`; else empty."""
        for index, word in enumerate(self.arguments):
            for option in options:
                bundled = len(option) == 2 and option[1] != "-" and re.fullmatch(rf"-[A-Za-z]*{option[1]}", word)
                if word == option or bundled:
                    return self.arguments[index + 1] if index + 1 < len(self.arguments) else ""
                if option.startswith("--") and word.startswith(f"{option}="):
                    return word.partition("=")[2]
                if not option.startswith("--") and word.startswith(option) and not word.startswith("--"):
                    return word[len(option) :]
        return ""


def is_known(word: str) -> bool:
    """Whether a word is literal or follows from known values."""
    return not any(sign in word for sign in UNKNOWN)


_NAMES = {"date", "seq", "nproc", "whoami", "hostname", "uname", "wc", "id", "basename", "arch", "tty", "uuidgen", "ls"}
_LISTS = {"find", "rg", "grep", "fd", "fdfind"}
_OF_GIT = {"rev-parse", "branch", "describe", "ls-files", "diff", "symbolic-ref", "log", "rev-list", "status", "show"}
# What tools print for a shell to take in, as their manuals say.
_HOOKS = (
    r"(ssh-agent( -\w)*|(pyenv|rbenv|nodenv|goenv|jenv) (init|virtualenv-init)( -+[\w-]*)*|direnv (hook|export) \w+"
    r"|(starship|zoxide|atuin|mise|fnm|rtx) (init|activate|env)( [\w-]+)*|(/\S+/)?brew shellenv|opam env|fnm env.*"
    r"|luarocks path.*|dircolors.*|lesspipe|register-python-argcomplete \w+|(\w+) completion \w+|minikube docker-env)"
)


def output_of(simple: Simple) -> str | None:
    """The text that a program prints; None if unknown."""
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
    """The result of `$(...)`: the text, a `NAME`, or None if unknown."""
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
    """Whether a substitution is a known tool hook, meant for `eval`."""
    return bool(re.fullmatch(_HOOKS, " ".join(source.split())))


def lists_names(fed_by: tuple[str, ...]) -> bool:
    """Whether the pipe carries file names below the folder."""
    return bool(fed_by) and fed_by[0] in {*_LISTS, *_NAMES, "git"}


def _printed(simple: Simple) -> str | None:
    words = list(simple.arguments)
    if simple.program == "printf":
        parts = iter(words[1:])
        return re.sub(r"%[sb]", lambda _: unescaped(next(parts, "")), unescaped(words[0])) if words else None
    options = ""
    while words and re.fullmatch(r"-[neE]+", words[0]):
        options += words.pop(0)[1:]
    text = " ".join(words)
    return (unescaped(text) if "e" in options else text) + ("" if "n" in options else "\n")


def unescaped(text: str) -> str:
    """Decode escapes of bash's `$'...'`."""
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


def _decoded(make: Callable[[], bytes]) -> str | None:
    try:
        return make().decode("utf-8", "replace")
    except (ValueError, binascii.Error):
        return None
