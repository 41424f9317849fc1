"""Secret handles: `${secret:NAME}` in a call's arguments is replaced by the value only when the tool runs."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from hermes_agent.core.effects import Capability
from hermes_agent.core.errors import Refused
from hermes_agent.core.messages import ToolSchema
from hermes_agent.core.records import texts_in, with_texts
from hermes_agent.core.tool import Answer, CallContext, CallFacts, Tool
from hermes_agent.host.paths import write_private
from hermes_agent.tools.danger.shell import Simple, Unreadable, is_known, read
from hermes_agent.tools.permission.requests import CODE, COMMAND, HANDLE
from hermes_agent.tools.settings import SecretUse
from hermes_agent.tools.starting import lent_name

CLIENTS = frozenset(("curl", "wget", "http", "https", "xh"))


class OpenHandles:
    """Tool wrapper that replaces secret handles in arguments as the tool runs; model, log and checks see the names.

    `value` looks up a secret (empty: none), `uses` says where each may be sent; `folder` is private and holds a value
    while a command uses it.
    """

    def __init__(self, tool: Tool, value: Callable[[str], str], uses: Mapping[str, SecretUse], folder: Path) -> None:
        self._tool = tool
        self._value = value
        self._uses = uses
        self._folder = folder

    @property
    def schema(self) -> ToolSchema:
        return self._tool.schema

    @property
    def needs(self) -> frozenset[Capability]:
        return self._tool.needs

    def facts(self, arguments: Mapping[str, Any], workspace: str) -> CallFacts:
        return self._tool.facts(arguments, workspace)

    async def run(self, arguments: Mapping[str, Any], context: CallContext) -> Answer:
        names = set(HANDLE.findall(" ".join(texts_in(arguments))))
        for name in names:
            self._secret(name)
            self._check(name, self.schema.name, arguments)
        async with AsyncExitStack() as closing:
            return await self._tool.run(self._filled(arguments, closing, context.key), context)

    def _filled(self, arguments: Mapping[str, Any], closing: AsyncExitStack, key: str) -> Mapping[str, Any]:
        command = arguments.get(COMMAND)
        if isinstance(arguments.get(CODE), str) and HANDLE.search(arguments[CODE]):
            raise Refused(
                "A program cannot have a secret: it would be kept with its text.",
                hint="Put the handle into the arguments of a tool that the program calls.",
            )
        if not isinstance(command, str):
            filled: Mapping[str, Any] = with_texts(
                arguments, lambda text: HANDLE.sub(lambda found: self._secret(found[1]), text)
            )
            return filled
        if arguments.get("background"):
            raise Refused("A command in the background cannot have a secret.", hint="Run it in the foreground.")
        return {**arguments, COMMAND: in_files(command, lambda name: self._lend(name, closing, key))}

    def _secret(self, name: str) -> str:
        """The secret's value. Raises `Refused` if there is none."""
        found = self._value(name) if name in self._uses else ""
        if not found:
            raise Refused(f"There is no secret `{name}` for tools.", hint="The owner adds it: `hermes secrets`.")
        return found

    def _check(self, name: str, tool: str, arguments: Mapping[str, Any]) -> None:
        """Raise `Refused` if this call may not use that secret."""
        use = self._uses.get(name, SecretUse())
        command = arguments.get(COMMAND)
        if isinstance(command, str):
            allowed = all(_may_have(simple, use) for simple in _users(command, name))
        else:
            hosts = _hosts(texts_in(arguments))
            allowed = any(fnmatchcase(tool, glob) for glob in use.commands) or _all_in(hosts, use.hosts)
        if not allowed:
            where = ", ".join((*use.hosts, *use.commands)) or "nothing yet"
            raise Refused(
                f"The secret `{name}` may not be used there; it is for {where}.",
                hint=f"The owner decides: `hermes secrets allow {name}`.",
            )

    def _lend(self, name: str, closing: AsyncExitStack, key: str) -> str:
        """Write the value to a file that is deleted with `closing`, so that it is never in a command's text or
        records."""
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        path = self._folder / lent_name(key, name)
        write_private(path, self._secret(name).encode())
        closing.callback(path.unlink, missing_ok=True)
        return str(path)


def in_files(command: str, lend: Callable[[str], str]) -> str:
    """The command with each handle replaced by reading a file, quoted correctly."""

    def put(found: re.Match[str]) -> str:
        before = re.sub(r"\\.", "", command[: found.start()])
        quoted = _quote_open(before)
        if quoted == "'":
            raise Refused("A handle does not work in single quotes.", hint="Use double quotes around it.")
        reading = f"$(cat '{lend(found[1])}')"
        return reading if quoted else f'"{reading}"'

    return HANDLE.sub(put, command)


def _quote_open(text: str) -> str:
    """The open quote at the end of shell text; empty if none."""
    quote = ""
    for sign in text:
        if sign in "'\"" and quote in ("", sign):
            quote = "" if quote else sign
    return quote


def _users(command: str, name: str) -> list[Simple]:
    """The programs of a command that get the secret; all if unknown."""
    stand_in = f"secret_handle_{name}"
    try:
        simples = read(command.replace(f"${{secret:{name}}}", stand_in))
    except Unreadable:
        raise Refused("A command with a secret must be readable.", hint="Write it more simply.") from None
    found = [each for each in simples if stand_in in " ".join((*each.words, each.stdin, *each.variables.values()))]
    return [replace(each, words=tuple(word.replace(stand_in, "") for word in each.words)) for each in found] or simples


def _may_have(simple: Simple, use: SecretUse) -> bool:
    if simple.writes:
        return False  # It would go into a file.
    line = " ".join(simple.words)
    if any(fnmatchcase(line, glob) or fnmatchcase(simple.program, glob) for glob in use.commands):
        return True
    addresses = [word for word in simple.operands if "://" in word or not is_known(word)]
    return simple.program in CLIENTS and _all_in(_hosts(addresses), use.hosts)


def _hosts(texts: list[str]) -> list[str]:
    return [urlsplit(found).hostname or "?" for text in texts for found in re.findall(r"\w+://[^\s'\"]*", text) or ()]


def _all_in(hosts: list[str], allowed: tuple[str, ...]) -> bool:
    return bool(hosts) and all(any(fnmatchcase(host, glob) for glob in allowed) for host in hosts)
