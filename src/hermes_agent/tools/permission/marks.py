"""Text in which secrets were hidden is not written back where they are."""

from __future__ import annotations

import re
from collections.abc import Mapping

from hermes_agent.core.effects import Capability, Effect
from hermes_agent.host.redaction import MARKER
from hermes_agent.tools.danger.paths import written
from hermes_agent.tools.permission.requests import COMMAND, Request
from hermes_agent.tools.syntax.reading import read
from hermes_agent.tools.syntax.tree import Unreadable

SECRET_FILES = re.compile(
    r"(^|/)(\.env(\..*)?|.*\.env|[^/]*(config|settings|secrets?|credentials?|auth)[^/]*\.(ya?ml|toml|json|ini|cfg|conf)"
    r"|\.npmrc|\.pypirc|\.netrc|credentials|config)$",
    re.IGNORECASE,
)


def overwrites_a_secret(request: Request) -> str:
    """The file into which a call would write a mark in place of a secret; empty where it would not."""
    if request.facts.effect is Effect.READS or not MARKER.search(_text(request.arguments)):
        return ""
    command = request.arguments.get(COMMAND)
    paths: list[str] = list(request.facts.paths or ()) if Capability.FS_WRITE in request.needs else []
    if isinstance(command, str):
        try:
            paths = [path for simple in read(command).simples for path in written(simple)]
        except Unreadable:
            return "a file"
    return next((path for path in paths if SECRET_FILES.search(path)), "")


def _text(value: object) -> str:
    match value:
        case str():
            return value
        case Mapping():
            return " ".join(map(_text, value.values()))
        case list() | tuple():
            return " ".join(map(_text, value))
        case _:
            return ""
