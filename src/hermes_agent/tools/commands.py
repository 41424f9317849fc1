"""Reads a shell command as words: which programs it runs with which arguments, and where it writes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import PurePath
from shlex import shlex

# Programs that run the command which follows them, and their options that take a value.
PREFIXES = {
    "sudo": ("-u", "-g", "-h", "-p", "-C", "-D", "-R", "-T"),
    "doas": ("-u", "-C"),
    "env": ("-u", "-C", "-S"),
    "nohup": (),
    "nice": ("-n",),
    "ionice": ("-c", "-n"),
    "time": (),
    "timeout": ("-k", "-s"),
    "setsid": (),
    "stdbuf": ("-i", "-o", "-e"),
    "command": (),
    "builtin": (),
    "exec": ("-a",),
    "xargs": ("-I", "-n", "-P", "-L", "-d", "-a", "-s"),
    "strace": ("-e", "-o", "-p"),
}
SHELLS = frozenset(("sh", "bash", "zsh", "dash", "ksh", "fish", "ash"))
_SEPARATORS = frozenset((";", "&&", "||", "&", "|", "|&", "\n", "(", ")", ";;"))
_REDIRECTS = (">", ">>", ">|", "&>", "&>>", "<>", ">&")
_KEYWORDS = frozenset(
    ("if", "then", "else", "elif", "do", "while", "until", "!", "{", "}", "time", "done", "fi", "esac")
)
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*\+?=")
_SUBSTITUTION = re.compile(r"\$\(([^()]*(?:\([^()]*\)[^()]*)*)\)|`([^`]*)`")
_HEREDOC = re.compile(r"<<(-?)\s*(['\"]?)(\w+)\2([^\n]*)\n(.*?)^\t*\3\s*$", re.DOTALL | re.MULTILINE)
_DEPTH = 6


class Unreadable(ValueError):
    """The command cannot be read as words: a quote that never ends, or too much nesting."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Simple:
    """One program and its arguments. `writes` are the targets of its redirections, `prefixes` what it is run through
    (`sudo`, `xargs`, ...), `fed_by` the program whose output it reads, `folder` where it runs, as far as is known."""

    words: tuple[str, ...]
    writes: tuple[str, ...] = ()
    prefixes: tuple[str, ...] = ()
    fed_by: str = ""
    folder: str = ""

    @property
    def program(self) -> str:
        """The program's name without its folder."""
        return PurePath(self.words[0]).name if self.words else ""

    @property
    def arguments(self) -> tuple[str, ...]:
        return self.words[1:]

    @property
    def operands(self) -> tuple[str, ...]:
        """The arguments that are no options."""
        return tuple(word for word in self.arguments if not word.startswith("-"))

    def has(self, short: str, *long: str) -> bool:
        """Whether it has one of the short option's letters (also bundled: `-rf`) or one of the long options."""
        for word in self.arguments:
            if word.startswith("--"):
                if word.partition("=")[0] in long:
                    return True
            elif word.startswith("-") and any(letter in word[1:] for letter in short):
                return True
        return False


def read(command: str, depth: int = 0) -> tuple[Simple, ...]:
    """The simple commands in `command`, also those in substitutions, `sh -c`, `eval` and here-documents for shells.

    Raises `Unreadable`.
    """
    if depth > _DEPTH:
        raise Unreadable("nested too deeply")
    plain, scripts = _without_heredocs(command.replace("\\\n", " "))
    found = [simple for words, fed_by in _pipelines(_tokens(plain)) for simple in _simple(words, fed_by)]
    inner = [body for simple in found for body in _scripts_of(simple)]
    inner += [first or second for first, second in _SUBSTITUTION.findall(plain)]
    return (*found, *(simple for body in (*inner, *scripts) for simple in read(body, depth + 1)))


def _tokens(command: str) -> list[str]:
    lexer = shlex(command, posix=True, punctuation_chars="();<>|&\n")
    lexer.whitespace = " \t\r"
    lexer.whitespace_split = True
    lexer.commenters = ""
    try:
        return [piece for token in lexer for piece in _pieces(token)]
    except ValueError as error:
        raise Unreadable(str(error)) from error


def _pieces(token: str) -> Iterator[str]:
    """shlex gives runs of punctuation as one token; take them apart."""
    if not token or any(character not in "();<>|&\n" for character in token):
        yield token
        return
    yield from re.findall(r"&>>|&>|>>|>\||<>|>&|<<<|<<|&&|\|\||\|&|;;|.|\n", token)


def _pipelines(tokens: list[str]) -> Iterator[tuple[list[str], str]]:
    """Words between separators, with the program that feeds them through a pipe."""
    words: list[str] = []
    fed_by = ""
    for token in [*tokens, ";"]:
        if token not in _SEPARATORS:
            words.append(token)
            continue
        if words:
            yield words, fed_by
        program = next((PurePath(word).name for word in words if not _ASSIGNMENT.match(word)), "")
        fed_by = (fed_by or program) if token in ("|", "|&") else ""
        words = []


def _simple(words: list[str], fed_by: str) -> Iterator[Simple]:
    kept: list[str] = []
    writes: list[str] = []
    rest = iter(words)
    for word in rest:
        if word in _REDIRECTS:
            writes.append(next(rest, ""))
        elif word in ("<", "<<<", "<<"):
            next(rest, "")
        else:
            kept.append(word)
    if kept and kept[-1].isdecimal() and writes:
        kept.pop()
    while kept and (kept[0] in _KEYWORDS or _ASSIGNMENT.match(kept[0])):
        kept.pop(0)
    simple = Simple(words=tuple(kept), writes=tuple(writes), fed_by=fed_by)
    yield _unwrapped(simple)


def _unwrapped(simple: Simple) -> Simple:
    """The command behind `sudo`, `env`, `timeout` and the like."""
    while simple.program in PREFIXES and len(simple.words) > 1:
        takes_value = PREFIXES[simple.program]
        words = list(simple.words[1:])
        while words and (words[0].startswith("-") or _ASSIGNMENT.match(words[0])):
            option = words.pop(0)
            if option in takes_value and words:
                words.pop(0)
        if simple.program == "timeout" and words:
            words.pop(0)
        if not words:
            break
        simple = replace(simple, words=tuple(words), prefixes=(*simple.prefixes, simple.program))
    return simple


def _scripts_of(simple: Simple) -> Iterator[str]:
    """Shell text that this command gets as an argument."""
    if simple.program in SHELLS:
        for index, word in enumerate(simple.arguments):
            if re.fullmatch(r"-\w*c\w*", word) and index + 1 < len(simple.arguments):
                yield simple.arguments[index + 1]
                return
    if simple.program == "eval":
        yield " ".join(simple.arguments)


def _without_heredocs(command: str) -> tuple[str, list[str]]:
    """The command without the bodies of here-documents, and those bodies that a shell will run."""
    scripts: list[str] = []

    def take(found: re.Match[str]) -> str:
        before = command[: found.start()].rpartition("\n")[2]
        words = re.findall(r"[\w./-]+", f"{before} {found[4]}")
        if any(PurePath(word).name in SHELLS for word in words):
            scripts.append(found[5])
        return f" {found[4]}\n"

    return _HEREDOC.sub(take, command), scripts
