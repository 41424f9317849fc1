"""The commands, paths, hosts and tools that a text names."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Literal, NamedTuple

Sort = Literal["command", "path", "host", "tool"]
FENCE = re.compile(r"^```[ \t]*(\w*)[^\n]*\n(.*?)^```", re.MULTILINE | re.DOTALL)
SHELLS = frozenset({"", "sh", "bash", "shell", "console", "zsh"})
TICKED = re.compile(r"`([^`\n]{2,300})`")
PROMPTED = re.compile(r"^\s*[$>]\s+(\S.*)$", re.MULTILINE)
PATH = re.compile(r"(?<![\w./~-])(?:~|\.{1,2})?/?(?:[\w.@+-]+/)+[\w.@+-]*|(?<![\w./-])[\w-]+\.[a-z]\w{0,4}(?![\w/])")
HOST = re.compile(
    r"(?:https?|ssh|ftp|wss?|git)://([^\s/'\"`)>\]]+)"
    r"|(?:(?<![\w.+-])[\w.+-]+|(?<=[\w.+-]))@((?:[\w-]+\.)+[a-z]{2,24})"
    r"|(?<![\w.@/-])((?:[\w-]+\.)+(?:com|org|net|io|dev|app|ai|co|example|test|info|xyz|ru|cn|de|uk|me|sh|gg|tk|site|"
    r"online|cloud|onion))(?![\w-])"
    r"|(?<![\d.])(\d{1,3}(?:\.\d{1,3}){3})(?![\d.])",
    re.IGNORECASE,
)
SLOT = re.compile(r"<[^<>]*>|\$\{?\w+\}?|\{\{?[\w ]+\}?\}|\[[^\[\]]*\]|…|\.\.\.")
"""What stands for a value in a command: it cannot occur as it is written."""
WORD = re.compile(r"[a-zA-Z][\w.+-]*")
LONGEST = 300


class Named(NamedTuple):
    """One command, path, host or tool that a text names."""

    sort: Sort
    text: str


def named_in(text: str, tools: Collection[str] = ()) -> tuple[Named, ...]:
    """The commands, paths, hosts and tools that a text names, each once. `tools` are the existing tool names."""
    found = [Named("command", each) for each in commands_in(text)]
    hosts = hosts_in(text)
    found += [Named("host", host) for host in hosts]
    found += [Named("path", path) for path in _paths(text) if path.lower() not in hosts]
    ticked = {match[1] for match in TICKED.finditer(text)}
    found += [Named("tool", name) for name in sorted(ticked & set(tools))]
    return tuple(dict.fromkeys(found))


def hosts_in(text: str) -> tuple[str, ...]:
    """The hosts that a text names, each once."""
    named = (next(filter(None, match.groups())).lower().rstrip(".:") for match in HOST.finditer(text))
    return tuple(dict.fromkeys(host.partition("@")[2] or host for host in named))


def commands_in(text: str) -> list[str]:
    """The commands in a text: lines of shell blocks, and text in backticks or after a prompt of at least two words,
    the first of which could be a program."""
    found: list[str] = []
    for language, body in FENCE.findall(text):
        if language.lower() in SHELLS:
            found += [line.strip().removeprefix("$ ") for line in body.splitlines()]
    rest = FENCE.sub("", text)
    found += [match[1].strip() for match in TICKED.finditer(rest)]
    found += [match[1].strip() for match in PROMPTED.finditer(rest)]
    return [each for each in dict.fromkeys(found) if _is_command(each)]


def stretches(command: str) -> list[str]:
    """The fixed parts of a command, between its slots."""
    return [" ".join(part.split()) for part in SLOT.split(command) if len(part.split()) > 0 and WORD.search(part)]


def _is_command(text: str) -> bool:
    words = text.split()
    return (
        len(words) > 1
        and len(text) <= LONGEST
        and not text.startswith("#")
        and bool(WORD.match(words[0].lstrip("./~")))
    )


def _paths(text: str) -> list[str]:
    plain = re.sub(r"\w+://\S+", " ", text)
    found = [match[0].rstrip(".,:;") for match in PATH.finditer(plain)]
    return [path for path in dict.fromkeys(found) if len(path) > 2 and WORD.search(path) and not _is_prose(path)]


def _is_prose(path: str) -> bool:
    """`and/or`, `e.g`, `1.2`: no paths."""
    if path.startswith(("/", "./", "../", "~")):
        return False
    if "/" not in path:
        return path.lower() in {"e.g", "i.e", "etc"} or path.split(".")[-1].lower() in {"g", "e"}
    return "." not in path and "_" not in path and "-" not in path and path.count("/") < 2  # and/or
