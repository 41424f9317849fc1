"""One program with its arguments, as it was found in a command."""

from __future__ import annotations

import re
from collections.abc import Mapping
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
    """One program and its arguments.

    `writes` are the targets of its redirections, `reads` what its input is redirected from, `prefixes` what it is run
    through (`sudo`, `xargs`, ...), `fed_by` the programs whose output it reads, `stdin` that input where it is
    known, `folder` where it runs, `variables` what is set for it, `runs` what earlier files of this command hold:
    path to content, None where it was fetched.
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
        """The arguments that are no options."""
        found: list[str] = []
        for index, word in enumerate(self.arguments):
            if word == "--":
                return (*found, *self.arguments[index + 1 :])
            if not word.startswith("-") or word == "-":
                found.append(word)
        return tuple(found)

    def has(self, short: str, *long: str) -> bool:
        """Whether it has one of the short option's letters (also bundled: `-rf`) or one of the long options, also
        shortened as GNU programs take them (`--rec`)."""
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
        """What is given to the first of these options: `-o X`, `-oX`, `--output X`, `--output=X`; else empty."""
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
    """Whether a word is written out, or follows from what is."""
    return not any(sign in word for sign in UNKNOWN)
