"""Short reading of shell commands: which programs run, with which words, as far as that can be told without running."""

from __future__ import annotations

import os.path
import re
from collections.abc import Mapping
from dataclasses import field, replace
from pathlib import Path

from hermes_agent.core.dataclass import dataclass
from hermes_agent.tools.danger.verdict import COMPUTED, NAME, PIPE, VARIABLE, named

SPLIT = "\ue004"  # ends a word, also in quotes: IFS, the elements of an array
LONGEST, DEEPEST, MOST = 200_000, 12, 2000
SHELLS = named("sh bash zsh dash ksh mksh fish ash rbash csh tcsh pwsh")
WRAPPERS = named(
    "nohup setsid command builtin unbuffer fakeroot busybox toybox sudo doas env nice ionice time timeout stdbuf"
    " exec xargs parallel strace watch nsenter unshare systemd-run pkexec prlimit setpriv runuser taskset chrt"
)
"""Programs that run the command behind them."""
_VALUED = frozenset(f"-{letter}" for letter in "ugpChDRTnksIPLdaEoecUlFJb")
_DROPPED = named("if then else elif fi do done while until ! { } coproc")
_NAMES = named("date seq nproc whoami hostname uname wc id basename arch tty uuidgen ls")
_GIVEN = {**dict.fromkeys(named("UID USER HOSTNAME ? $ ! # -"), NAME), "HOME": "~", "IFS": SPLIT, "TMPDIR": "/tmp"}
_ASSIGNED = re.compile(r"([A-Za-z_]\w*)(\[[^\]\n]*\])?(\+?)=")
_OPERATORS = re.compile(r"(?:\d*(<<<|<<-?|<>|<&|>>|>&|>\||<(?!\()|>(?!\())|(&>>?))|\|\||&&|;;&?|;&|\|&|[|&;()\n]")
_ARITHMETIC = re.compile(r"\(\(((?:[^()]|\((?:[^()]|\([^()]*\))*\))*)\)\)")
_EXPANSION = re.compile(r"\{([!#]?)(\w+|[@*?$!#-])(?:\[[^\]]*\])?|[A-Za-z_]\w*|[\d@*?$!#-]")


class Unreadable(ValueError):
    """A shell command cannot be read: something never ends, or it is too long or nested too deeply."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Simple:
    """One program call: its words (with the files that it reads from), the files that it writes to by redirection, what
    it is fed, its folder and its own variables."""

    words: tuple[str, ...]
    writes: tuple[str, ...] = ()
    stdin: str = ""
    folder: str = ""
    variables: Mapping[str, str] = field(default_factory=dict)

    @property
    def program(self) -> str:
        first = self.words[0] if self.words else ""
        return first.rstrip("/").rpartition("/")[2] or first

    @property
    def operands(self) -> tuple[str, ...]:
        end = self.words.index("--") if "--" in self.words else len(self.words)
        return (*(word for word in self.words[1:end] if word[:1] != "-" or word == "-"), *self.words[end + 1 :])

    def has(self, short: str, *long: str) -> bool:
        """Whether it has a short option of these letters (also bundled: `-rf`), or a long one, also abbreviated."""
        operands = frozenset(self.operands)
        words = [word for word in self.words[1:] if word not in operands]
        if any(len(word) > 4 and option.startswith(word.partition("=")[0]) for word in words for option in long):
            return True
        return any(set(short) & set(word[1:]) for word in words if word[:2] != "--")

    def value(self, *options: str) -> str:
        """The value of the first of these options: `-o X`, `-oX`, `--output X`, `--output=X`; else empty."""
        for option in options:
            form = rf"-(?!-)\w*?{option[1]}\0?" if len(option) == 2 else rf"{option}[=\0]"
            if found := re.search(rf"\0{form}([^\0]*)", "\0".join((*self.words, ""))):
                return found[1]
        return ""


def is_known(word: str) -> bool:
    return VARIABLE not in word and COMPUTED not in word


def read(command: str, folder: str = "") -> list[Simple]:
    """The programs that `command` runs in `folder`, in order, wherever they stand in it. Raises `Unreadable`."""
    if len(command) > LONGEST:
        raise Unreadable(f"it is longer than {LONGEST:,} characters")
    reader = _Reader(command.replace("\r\n", "\n"), 0, {"PWD": folder}, [], "", 0)
    reader.commands("")
    return reader.found


class _Reader:
    """Reads one text from `at` on, and adds the programs to `found`. `state` is the shell's: variables by their names,
    the folder as `PWD`. A function's body is read where it stands. `fed` is the input of the first commands."""

    def __init__(self, text: str, at: int, state: dict[str, str], found: list[Simple], fed: str, depth: int) -> None:
        if depth > DEEPEST or len(found) > MOST:
            raise Unreadable("it is nested too deeply")
        self.text, self.at, self.state, self.found, self.depth = text, at, state, found, depth
        self.after_line, self._pattern, self._base, self._fed = 0, False, fed, fed
        self._begin()

    def _begin(self) -> None:
        self._words, self._variables, self._stdin = list[str](), dict[str, str](), ""
        self._files = {False: list[str](), True: list[str]()}  # redirected from, and to

    def _reader_of(self, text: str, at: int = 0, fed: str = "", found: list[Simple] | None = None) -> _Reader:
        return _Reader(text, at, dict(self.state), self.found if found is None else found, fed, self.depth + 1)

    def _match(self, pattern: str) -> re.Match[str]:
        found = re.compile(pattern, re.DOTALL).match(self.text, self.at)
        if found is None:
            raise Unreadable(f"near `{self.text[self.at - 1 : self.at + 40].strip()}`")
        self.at = found.end()
        return found

    def commands(self, close: str) -> None:
        """Read commands to the closing sign, or to the end of the text. Raises `Unreadable`."""
        while self._match(r"(?:[ \t]|\\\n|#[^\n]*)*").end() < len(self.text):
            found = _OPERATORS.match(self.text, self.at)
            if found and self._words in ([], ["for"]) and _ARITHMETIC.match(self.text, self.at):
                self.expanded("$", quoted=True)
            elif found and (found[1] or found[2]):
                self.at = found.end()
                self._redirect(found[1] or ">")
            elif found:
                self.at = found.end()
                if self._separated(found[0], close):
                    return
            elif self._words or not self._assigned():
                is_first, words = not self._words and not self._variables, self.word(split=True).split(SPLIT)
                self._words += [word for word in words if word] if len(words) > 1 else words
                if is_first and self._words and self._words[0] in _DROPPED:
                    self._words.clear()
        self._finish("")
        if close:
            raise Unreadable(f"`{close}` is missing")

    def _separated(self, sign: str, close: str) -> bool:
        if sign == "(" and self._words and (found := re.compile(r"[ \t]*\)").match(self.text, self.at)):
            self.at = found.end()  # The name of a function, whose body follows.
            self._words.clear()
            return False
        closes = sign == close == ")" and not self._pattern and self._words[:1] != ["case"]
        self._finish(sign)
        if sign == "(":
            inner = self._reader_of(self.text, self.at, self._fed)
            inner.after_line = self.after_line
            inner.commands(")")
            self.at, self.after_line = inner.at, inner.after_line
        elif sign == "\n" and self.after_line:
            self.at, self.after_line = self.after_line, 0
        return closes

    def _assigned(self) -> bool:
        if found := _ASSIGNED.match(self.text, self.at):
            self.at, value = found.end(), self.state.get(found[1], "") if found[3] else ""
            array = self.text.startswith("(", self.at)
            self.at += array
            while array and not self._match(r"\s*(\)|(?![;&|<>(]))")[1] and self.at < len(self.text):
                value += SPLIT + self.word(split=True)
            self._variables[found[1]] = value if array else value + self.word(split=False)
        return found is not None

    def _redirect(self, sign: str) -> None:
        self._match(r"[ \t]*")
        if sign[:2] == "<<" and sign != "<<<":
            quote, word = self._match(r"(['\"\\]?)([\w.:!@%+-]+)['\"]?").groups()
            start = self.after_line or (self.text.find("\n", self.at) + 1 or len(self.text))
            self._stdin = re.split(rf"^\t*{re.escape(word)}$", self.text[start:], maxsplit=1, flags=re.MULTILINE)[0]
            self.after_line = self.text.find("\n", start + len(self._stdin)) + 1 or len(self.text)
            self._stdin = self._stdin if quote else self._reader_of(self._stdin).quoted("")
        elif sign == "<<<":
            self._stdin = f"{self.word(split=False)}\n"
        else:
            self._files[sign not in ("<", "<&")].append(self.word(split=False))

    def word(self, *, split: bool) -> str:
        made = ""
        while found := re.compile(r"[^ \t\n;&|()<>]|[<>](?=\()").match(self.text, self.at):
            self.at += 1
            match found[0]:
                case "\\":
                    made += self._match(r".?")[0].strip("\n")
                case "'":
                    made += self._match(r"([^']*)'")[1]
                case '"':
                    made += self.quoted('"')
                case "$" | "`" as sign:
                    text = self.expanded(sign, quoted=False)
                    made += re.sub(r"[ \t\n]+", SPLIT, text) if split and text[:1] != "'" else text.removeprefix("'")
                case "<" | ">":
                    self.expanded("$", quoted=True)
                    made += PIPE
                case sign:
                    made += sign
        return made

    def quoted(self, close: str) -> str:
        made = ""
        while self.at < len(self.text):
            sign, following = self.text[self.at], self.text[self.at + 1 : self.at + 2]
            self.at += 1
            if sign == close:
                return made
            if sign == "\\":
                made += following.strip("\n") if following in ('"', "\\", "$", "`", "\n") else sign + following
                self.at += 1
            else:
                made += self.expanded(sign, quoted=True) if sign in "$`" else sign
        if close:
            raise Unreadable(f"`{close}` never ends")
        return made

    def expanded(self, sign: str, *, quoted: bool) -> str:
        following = self.text[self.at : self.at + 1]
        if sign == "`":
            script = re.sub(r"\\([`$\\])", r"\1", self._match(r"((?:\\.|[^`\\])*)`")[1])
            return self._printed(self._reader_of(script, 0, "", []), "")
        if following == "(":
            found = _ARITHMETIC.match(self.text, self.at)
            if not found:
                return self._printed(self._reader_of(self.text, self.at + 1, "", []), ")")
            self.at = found.end()
            return self._reader_of(found[1]).quoted("")[:0] + NAME
        if following in ("'", '"') and following and not quoted:
            self.at += 1
            return "'" + (self.quoted('"') if following == '"' else unescaped(self._match(r"((?:\\.|[^'\\])*)'")[1]))
        return self._variable(sign)

    def _variable(self, sign: str) -> str:
        found = _EXPANSION.match(self.text, self.at)
        if found is None:
            return sign
        self.at, name = found.end(), found[2] or found[0]
        value = self.state.get(name, _GIVEN.get(name, VARIABLE))
        operator, rest = (self._match(r":?[-=+?]|[%#]+|[/^,@:]|")[0], self.quoted("}")) if found[2] else ("", "")
        if found[1] == "#":
            return NAME
        if operator.endswith(("-", "=", "+")):
            return value if is_known(value) and operator[-1] != "+" else rest
        cuts = not operator or operator[0] in "%#" or operator[-1] == "?" or name == "IFS"
        return value if cuts else VARIABLE  # Cutting from a path leads nowhere else.

    def _printed(self, inner: _Reader, close: str) -> str:
        inner.commands(close)
        self.found += inner.found
        self.at = inner.at if close else self.at
        found = [each for each in inner.found if each.program != "cd"]
        return printed(found[0]).rstrip("\n") if len(found) == 1 else COMPUTED if found else ""

    def _finish(self, sign: str) -> None:
        words, variables, writes = tuple(self._words), self._variables, tuple(self._files[True])
        words, fed = (*words, *(self._files[False] if words else ())), self._stdin or self._fed
        simple = Simple(words=words, writes=writes, stdin=fed, folder=self.state["PWD"], variables=variables)
        first, patterned = words[0] if words else "", self._pattern
        self._begin()
        self._pattern = sign[:2] in (";;", ";&") or ((patterned or first == "case") and sign != ")" and first != "esac")
        if patterned:  # of a `case`
            return
        if first in ("for", "select") and len(words) > 1:
            self.state[words[1]] = SPLIT.join(words[3:]) or VARIABLE
        elif first not in ("case", "esac") and (words or variables or writes):
            self.state |= variables if not words else {}
            self._add(simple)
        if sign in ("|", "|&"):
            self._fed = printed(simple)
        elif words or sign not in ("\n", "", "("):
            self._fed = self._base

    def _add(self, simple: Simple) -> None:
        self.found.append(simple)
        self._remember(simple)
        if (inside := unwrapped(simple)) is not None:
            self._add(inside)
        for script in scripts_of(simple):
            inner = self._reader_of(script, 0, "" if script == simple.stdin else simple.stdin)
            inner.commands("")
            self.state = inner.state if simple.program == "eval" else self.state

    def _remember(self, simple: Simple) -> None:
        state = self.state
        match simple.program:
            case "cd" | "pushd":
                to = next((word for word in simple.words[1:] if word[:1] != "-" or word == "-"), "~")
                joined = to if to[:1] in ("~", VARIABLE) else os.path.normpath(Path(state["PWD"]) / to)
                state["PWD"] = VARIABLE if to == "-" or joined[:1] == VARIABLE else joined
            case "export" | "declare" | "local" | "readonly" | "typeset":
                pairs = [each.partition("=") for each in simple.operands]
                state |= {name: value for name, sign, value in pairs if sign}


def unescaped(text: str) -> str:
    codes = r"\\(?:x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|[0-7]{1,3}|[abfnrtv\\'\"])"
    return re.sub(codes, lambda found: found[0].encode().decode("unicode_escape"), text)


def printed(simple: Simple) -> str:
    program, words = simple.program, simple.words[1:]
    if program in _NAMES or program not in ("echo", "printf") or not all(map(is_known, words)):
        return (
            f"/tmp/{NAME}"
            if program == "mktemp"
            else NAME
            if program in _NAMES and is_known("".join(words))
            else COMPUTED
        )
    return unescaped(" ".join(word for word in words if not re.fullmatch("-[neE]+", word)))


def unwrapped(simple: Simple) -> Simple | None:
    """The command that a program such as `sudo` or `xargs` runs; None for other programs."""
    words, program, variables = list(simple.words[1:]), simple.program, dict(simple.variables)
    if program not in WRAPPERS or (program == "command" and simple.has("vV")):
        return None
    while words and re.match(rf"-|{_ASSIGNED.pattern}|[\d.]+[smhd]?$", words[0]):
        word = words.pop(0)
        if word in _VALUED and words:
            words.pop(0)
    if program in ("xargs", "parallel"):
        words += simple.stdin.split()[:50] or [COMPUTED]
    return replace(simple, words=tuple(words), writes=(), variables=variables) if words else None


def scripts_of(simple: Simple) -> list[str]:
    """The shell scripts among what a command is given: of `sh -c`, `eval`, `trap`, and its input."""
    program, words = simple.program, simple.words[1:]
    if program in SHELLS:
        at = next((place for place, word in enumerate(words, 1) if re.fullmatch(r"-\w*c|--command", word)), 0)
        return list(words[at : at + 1]) if at else [simple.stdin] * (simple.operands in ((), ("-",), ("/dev/stdin",)))
    return {"eval": [" ".join(words)], "trap": list(simple.operands[:1])}.get(program, [])
