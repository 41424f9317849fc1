"""A shell command as a syntax tree, made by tree-sitter's grammar of bash."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING, Any

from hermes_agent.host.late import late

if TYPE_CHECKING:
    from tree_sitter import Node

LONGEST = 200_000
"""Characters of a command that are read; a longer one waits for a person."""

# The grammar knows a here-document only as the last redirection of its command; the shell takes it anywhere.
_HEREDOC_FIRST = r"(<<-?\s*(?:'\w+'|\"\w+\"|\\?\w+))((?:[ \t]+\d?(?:>>|>&|>\||>|<)[ \t]*&?[\w./~-]+)+)"


class Unreadable(ValueError):
    """The command cannot be read: it is no valid shell text, too long, or nested too deeply."""


def parse(command: str) -> Node:
    """The tree of a command. Raises `Unreadable` where any part of it could not be understood."""
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
    parser = late("tree_sitter:Parser")(_language())
    root: Node = parser.parse(text.encode("utf-8", "replace")).root_node
    return root


@cache
def _language() -> Any:  # noqa: ANN401 - a type of a library that is loaded when it is used
    return late("tree_sitter:Language")(late("tree_sitter_bash:language")())


def _broken(root: Node) -> Node | None:
    """The first thing that is wrong. A redirection without a command is right: the grammar misses a name there."""
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
