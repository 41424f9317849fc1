"""Shell syntax trees (tree-sitter-bash) and word expansion as the shell would do it."""

from __future__ import annotations

import os.path
import re
from collections.abc import Callable, Iterator
from dataclasses import field, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hermes_agent.core.dataclass import dataclass
from hermes_agent.host.late import libraries
from hermes_agent.tools.syntax.simple import (
    COMPUTED,
    NAME,
    PIPE,
    VARIABLE,
    Simple,
    is_known,
    output_of,
    substituted,
    unescaped,
)

if TYPE_CHECKING:
    from tree_sitter import Node

LONGEST = 200_000
"""Characters of a command that are read; a longer one waits for a person."""

# The grammar knows a here-document only as the last redirection of its command; the shell takes it anywhere.
_HEREDOC_FIRST = r"(<<-?\s*(?:'\w+'|\"\w+\"|\\?\w+))((?:[ \t]+\d?(?:>>|>&|>\||>|<)[ \t]*&?[\w./~-]+)+)"


class Unreadable(ValueError):
    """A shell command cannot be parsed: it is invalid, too long, or nested too deeply."""


def parse(command: str) -> Node:
    """Parse a command into a syntax tree. Raises `Unreadable` if any part is invalid."""
    if len(command) > LONGEST:
        raise Unreadable(f"it is longer than {LONGEST:,} characters")
    text = command.replace("\r\n", "\n")
    root = _parsed(text)
    if root.has_error and "<<" in text:
        root = _parsed(re.sub(_HEREDOC_FIRST, r"\2 \1", text))
    if root.has_error and (bad := _broken(root)) is not None:
        raise Unreadable(f"near `{text_of(bad)[:40].strip()}`" if text_of(bad).strip() else "something is missing")
    return root


def text_of(node: Node) -> str:
    """The source of a node."""
    return (node.text or b"").decode("utf-8", "replace")


def _parsed(text: str) -> Node:
    parser = libraries.tree_sitter.Parser(_language())
    root: Node = parser.parse(text.encode("utf-8", "replace")).root_node
    return root


@cache
def _language() -> Any:  # noqa: ANN401 - a type of a library that is loaded when it is used
    return libraries.tree_sitter.Language(libraries.tree_sitter_bash.language())


def _broken(root: Node) -> Node | None:
    """The first syntax error. A redirection without a command is valid, though the grammar reports it."""
    return next((node for node in _errors(root) if not _is_bare_redirection(node)), None)


def _errors(root: Node) -> Iterator[Node]:
    waiting = [root]
    while waiting:
        node = waiting.pop()
        if node.is_error or node.is_missing:
            yield node
        elif node.has_error:
            waiting.extend(reversed(node.children))


def _is_bare_redirection(node: Node) -> bool:
    around = node.parent.parent if node.parent is not None else None
    return node.is_missing and node.type == "word" and around is not None and around.type == "command"


_FETCHERS = {"curl", "wget", "aria2c", "scp", "rsync", "ftp", "nc", "ncat", "fetch", "base64", "openssl", "xxd", "http"}
# Variables that every shell has, as far as they matter here.
GIVEN = {
    "HOME": "~",
    "PWD": ".",
    "IFS": " ",
    **dict.fromkeys(("UID", "EUID", "PPID", "RANDOM", "SECONDS", "LINENO", "HOSTNAME", "USER", "LOGNAME"), NAME),
    **dict.fromkeys(("?", "$", "!", "#", "-", "_", "BASHPID", "EPOCHSECONDS", "COLUMNS", "LINES"), NAME),
}


@dataclass(slots=True, kw_only=True)
class Scope:
    """State of the shell while a command is interpreted: folder, variables, functions and aliases. `files`: what this
    command wrote, path to content, None if unknown."""

    folder: str
    variables: dict[str, str] = field(default_factory=dict)
    functions: dict[str, Node] = field(default_factory=dict)
    aliases: dict[str, str] = field(default_factory=dict)
    files: dict[str, str | None] = field(default_factory=dict)
    calling: tuple[str, ...] = ()

    def value(self, name: str) -> str:
        """A variable's value; `VARIABLE` if unknown."""
        return self.variables.get(name, GIVEN.get(name, VARIABLE))

    def inner(self) -> Scope:
        """A copy for a subshell."""
        return replace(self, variables=dict(self.variables), functions=dict(self.functions), aliases=dict(self.aliases))

    def go_to(self, words: tuple[str, ...]) -> None:
        """Follow a `cd`."""
        to = next((word for word in words if not word.startswith("-") or word == "-"), "~")
        if to == "-" or to[:1] in ("~", VARIABLE) or self.folder[:1] in ("~", VARIABLE):
            self.folder = to if to[:1] != "-" else VARIABLE
        else:
            self.folder = os.path.normpath(Path(self.folder) / to)

    def path(self, path: str) -> str:
        """A path as a key of `files`."""
        return os.path.normpath(Path(self.folder) / path)

    def note_files(self, simple: Simple) -> None:
        """Record what this program writes to files, in case they are run later."""
        fetched = simple.program in _FETCHERS or any(program in _FETCHERS for program in simple.fed_by)
        content = output_of(simple)
        targets = list(simple.writes)
        if simple.program == "tee":
            targets, content = [*targets, *simple.operands], simple.stdin
        for path in targets:
            self.files[self.path(path)] = None if content is None and fetched else (content or "")
        if fetched:
            named = (simple.value("-o", "--output", "-O", "--output-document"), *_last_parts(simple))
            self.files.update({self.path(path): None for path in named if path})
        if simple.program in ("mv", "cp", "install") and len(simple.operands) == 2:
            source, target = map(self.path, simple.operands)
            if source in self.files:
                self.files[target] = self.files[source]


def _last_parts(simple: Simple) -> Iterator[str]:
    """The file names that a download chooses itself: the last part of its URL."""
    if simple.program == "wget" or simple.has("O", "--remote-name"):
        yield from (word.rpartition("/")[2] for word in simple.operands if is_known(word) and PIPE not in word)


Substitute = Callable[["Node"], list[Simple]]
MOST_BRACES = 64
_QUOTED = {"{": "\ue010", "}": "\ue011", ",": "\ue012"}  # braces and commas that quotes protect
_HIDE, _SHOW = str.maketrans(_QUOTED), str.maketrans({sign: plain for plain, sign in _QUOTED.items()})
_BRACES = r"\{([^{}]*,[^{}]*)\}"
_AS_THEY_STAND = frozenset(
    (
        *("number", "string_content", "extglob_pattern", "regex", "test_operator", "variable_name", "file_descriptor"),
        *("heredoc_content", "special_variable_name"),
    )
)
_CUTS = {"%", "%%", "#", "##"}
_DEFAULTS = {":-", "-", ":=", "="}


def expand(node: Node, scope: Scope, substitute: Substitute) -> tuple[str, ...]:
    """Expand one source word; several words if it has braces."""
    if text_of(node).strip() in ("$@", "$*", '"$@"'):
        value = scope.value("@")
        return tuple(value.split("\0")) if is_known(value) else (value,)
    text = _Word(scope, substitute).text(node)
    if node.type in ("simple_expansion", "expansion") and is_known(text) and " " in text.strip():
        return tuple(text.split())  # Unquoted, the shell splits it.
    return tuple(word.translate(_SHOW) for word in _braced(text))


def value_of(node: Node, scope: Scope, substitute: Substitute) -> str:
    """Expand a word without splitting or braces: in an assignment or here-string."""
    return _Word(scope, substitute).text(node).translate(_SHOW)


def filled(body: Node, scope: Scope, substitute: Substitute) -> str:
    """The text of a here-document with its variables expanded."""
    source, at, pieces = body.text or b"", 0, []
    for child in body.named_children:
        pieces.append(source[at : child.start_byte - body.start_byte].decode("utf-8", "replace"))
        pieces.append(value_of(child, scope, substitute))
        at = child.end_byte - body.start_byte
    return "".join((*pieces, source[at:].decode("utf-8", "replace")))


def _braced(text: str) -> Iterator[str]:
    found = re.search(_BRACES, text)
    if found is None or text.count("{") > MOST_BRACES // 8:
        yield text
        return
    for part in found[1].split(",")[:MOST_BRACES]:
        yield from _braced(f"{text[: found.start()]}{part}{text[found.end() :]}")


class _Word:
    def __init__(self, scope: Scope, substitute: Substitute) -> None:
        self._scope = scope
        self._substitute = substitute

    def text(self, node: Node) -> str:
        """The text of a word's node."""
        if node.type in _AS_THEY_STAND:
            return text_of(node)
        return self._quoted(node) if node.type.endswith(("string", "word")) else self._expanded(node)

    def _quoted(self, node: Node) -> str:
        source = text_of(node)
        match node.type:
            case "word":
                return _unquoted(source)
            case "raw_string":
                return source.strip()[1:-1].translate(_HIDE)
            case "ansi_c_string":
                return unescaped(source.strip()[2:-1]).translate(_HIDE)
            case _:
                return self._joined(node, quoted=True).translate(_HIDE)

    def _expanded(self, node: Node) -> str:
        match node.type:
            case "concatenation" | "command_name":
                return self._joined(node, quoted=False)
            case "simple_expansion":
                return self._scope.value(text_of(node).strip()[1:])
            case "expansion":
                return self._braces(node)
            case "command_substitution":
                known = substituted(self._substitute(node))
                return COMPUTED if known is None else known
            case "process_substitution" | "arithmetic_expansion" | "brace_expression":
                self._substitute(node)
                return PIPE if node.type == "process_substitution" else NAME
            case "array":
                return " ".join(self.text(child) for child in node.named_children)
            case kind:
                raise Unreadable(f"there is a {kind.replace('_', ' ')} where a word was expected")

    def _joined(self, node: Node, *, quoted: bool) -> str:
        """The parts of a word with the text between them, which the grammar omits."""
        source, start = node.text or b"", node.start_byte
        at, pieces = 0, []
        for child in node.children:
            begin, end = child.start_byte - start, child.end_byte - start
            pieces.append(_plain(source[at:begin], quoted=quoted))
            at = end
            if child.is_named:
                raw = child.text or b""
                blank = raw[: len(raw) - len(raw.lstrip())] if child.type != "string_content" else b""
                text = self.text(child)
                pieces.append(f"{blank.decode()}{_in_quotes(text) if child.type == 'string_content' else text}")
            elif not (quoted and child.type in ('"', '$"')):
                pieces.append(child.type)
        pieces.append(_plain(source[at:], quoted=quoted))
        return "".join(pieces)

    def _braces(self, node: Node) -> str:
        """`${...}`: the variable, its default, or a part of it."""
        names = [text_of(child) for child in node.named_children if child.type.endswith("variable_name")]
        operators = [child.type for child in node.children if not child.is_named]
        rest = [child for child in node.named_children if not child.type.endswith("variable_name")]
        operator = next((sign for sign in operators if sign not in ("${", "}")), "")
        defaults = operator in _DEFAULTS and len(rest) == 1
        for child in () if defaults else rest:
            self._substitute(child)
        if operators[:2] == ["${", "#"] or operator in ("@", "!"):
            return NAME if operator == "#" else VARIABLE
        value = self._scope.value(names[0]) if names else VARIABLE
        if not operator or operator in _CUTS:
            return value  # Cutting from a path leads nowhere else.
        if defaults:
            given = self.text(rest[0])
            return value if is_known(value) else given if is_known(given) else VARIABLE
        return value if operator in _DEFAULTS else VARIABLE


def _plain(raw: bytes, *, quoted: bool) -> str:
    text = raw.decode("utf-8", "replace")
    return _in_quotes(text) if quoted else _unquoted(text)


def _unquoted(text: str) -> str:
    """Unquoted text: a backslash escapes the next character and joins lines."""
    return re.sub(r"\\(\n|.|$)", lambda found: found[1].strip("\n").translate(_HIDE), text, flags=re.DOTALL)


def _in_quotes(text: str) -> str:
    """Text in double quotes: a backslash escapes only special characters."""
    return re.sub(r"\\([\"\\$`\n])", lambda found: found[1].strip("\n"), text)
