"""Shell completion: the names that fit an argument or option, looked up in the home and its settings."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import partial
from typing import Any

import click
from click.shell_completion import CompletionItem

from hermes_agent.cli.options import Invocation
from hermes_agent.cli.surface import Surface
from hermes_agent.core.errors import HermesError
from hermes_agent.host.config_edit import keys
from hermes_agent.host.late import late

MOST = 200
"""Rows of the store among which completion looks."""
Row = tuple[str, str]
OPERATIONS = "hermes_agent.app.operations"
OPEN, OPEN_WHOLE = "hermes_agent.cli.operation:ask", "hermes_agent.cli.operation:ask_system"
LISTS: dict[str, tuple[str, dict[str, int]]] = {
    "agents": (f"{OPERATIONS}.agents:list_agents", {}),
    "approvals": (f"{OPERATIONS}.approvals:list_approvals", {}),
    "cards": (f"{OPERATIONS}.board:list_cards", {}),
    "goals": (f"{OPERATIONS}.goals:list_goals", {}),
    "jobs": (f"{OPERATIONS}.cron:list_jobs", {}),
    "lessons": (f"{OPERATIONS}.learning:list_learned", {"limit": MOST}),
    "servers": (f"{OPERATIONS}.mcp.servers:list_servers", {}),
    "sessions": (f"{OPERATIONS}.sessions:list_sessions", {"limit": MOST}),
}
"""Operations that list what has an id or a name, and what they are asked with."""
IDS, WORDS = ("id", "session", "name"), ("title", "what", "text", "goal", "name")
TABLES = {
    "channels": "hermes_agent.gateway.channels:CHANNELS",
    "surfaces": "hermes_agent.cli.commands.tools:SURFACES",
    "toolsets": "hermes_agent.app.manifest:TOOLSETS",
    "vendors": "hermes_agent.providers.vendors:VENDORS",
}


async def list_rows(name: str, access: Any) -> list[Row]:  # noqa: ANN401 - an access to the system that the operation needs
    """What an operation of `LISTS` finds, each with a word on it."""
    where, given = LISTS[name]
    found = await late(where)(access, **given)
    return [(_first(row, IDS), _first(row, WORDS)) for row in getattr(found, "cards", found)]


def _first(row: object, names: tuple[str, ...]) -> str:
    return next((str(value) for name in names if (value := getattr(row, name, ""))), "")


def _listed(name: str, opening: str, surface: Surface) -> Iterable[Row]:
    found: list[Row] = late(opening)(surface, partial(list_rows, name))
    return found


def _named(where: str, _surface: Surface) -> Iterator[Row]:
    return ((name, "") for name in late(where))


def _people(surface: Surface) -> Iterator[Row]:
    for name, channel in surface.loaded.value.gateway.channels.items():
        yield from ((user, name) for user in (*channel.owners, *channel.members, *channel.guests))
    found = late(OPEN)(surface, late(f"{OPERATIONS}.chats:list_pairings"))
    yield from ((each.user, f"{each.channel} {each.name}") for each in found.paired)


def _models(surface: Surface) -> Iterator[Row]:
    known = late("hermes_agent.providers.catalog:known_models")()
    yield from ((name, "") for name in (*surface.loaded.value.models, *known, *late(TABLES["vendors"])))


def _skills(surface: Surface) -> Iterator[Row]:
    places = late("hermes_agent.skills.skill")
    layers, home = late("hermes_agent.skills.skill:Layer"), surface.home.skills
    for path, layer in ((home, layers.USER), (places.BUNDLED, layers.BUNDLED)):
        yield from ((found.folder.name, layer.value) for found in places.found_in(places.Root(path=path, layer=layer)))
    yield from _installed(surface)


def _installed(surface: Surface) -> Iterator[Row]:
    return ((name, "") for name in late("hermes_agent.skills.depot:Lock")(surface.home.skills).get().skills)


SOURCES: dict[str, Callable[[Surface], Iterable[Row]]] = {
    "bundles": lambda at: (
        (name, "") for name in late("hermes_agent.skills.invoke:bundles_of")(at.home.skills).names()
    ),
    "hooks": lambda at: ((name, "") for name in at.loaded.value.hooks),
    "installed": _installed,
    "keys": lambda at: ((name, at.secrets.source(name)) for name in at.secrets.kept),
    "models": _models,
    "people": _people,
    "profiles": lambda at: ((each.name, "") for each in (at.home.base / "profiles").glob("*")),
    "routes": lambda at: ((name, "") for name in at.loaded.value.webhooks.routes),
    "settings": lambda at: keys(at.schema),
    "signins": lambda _: ((each.name, each.title) for each in late("hermes_agent.cli.commands.auth:with_sign_in")()),
    "skills": _skills,
    "taps": lambda at: (
        (tap.name, tap.url) for tap in late("hermes_agent.skills.hub.sources:Taps")(at.home.skills).all()
    ),
    **{name: partial(_listed, name, OPEN) for name in ("approvals", "cards", "jobs", "servers", "sessions")},
    **{name: partial(_listed, name, OPEN_WHOLE) for name in ("goals", "lessons")},
    **{name: partial(_named, where) for name, where in TABLES.items()},
}
"""What may be completed -> the names with a word on each."""

FITTING = {
    "against": "sessions",
    "agent": "sessions",
    "assignee": "profiles",
    "bundles name": "bundles",
    "card": "cards",
    "channel": "channels",
    "child": "cards",
    "curator name": "skills",
    "diff": "sessions",
    "file": "files",
    "folder": "files",
    "goals name": "goals",
    "hooks name": "hooks",
    "id": "approvals",
    "job": "jobs",
    "key": "settings",
    "learn adopt name": "skills",
    "learn name": "lessons",
    "mcp name": "servers",
    "model": "models",
    "model name": "models",
    "parent": "cards",
    "parents": "cards",
    "path": "files",
    "profile": "profiles",
    "resume": "sessions",
    "root": "files",
    "route": "routes",
    "secrets name": "keys",
    "session": "sessions",
    "skill": "installed",
    "skills": "skills",
    "skills name": "skills",
    "skills names": "installed",
    "skills tap name": "taps",
    "target": "channels",
    "tap_name": "taps",
    "to": "channels",
    "tools name": "surfaces",
    "toolsets": "toolsets",
    "user": "people",
    "vendor": "vendors",
}
"""Arguments and options, where it matters with the group or command before them -> what fits there."""


class Known(click.ParamType[str]):
    """Click type of a text for which names are known (`SOURCES`); others are taken too. `files` are completed by the
    shell."""

    def __init__(self, source: str) -> None:
        self.name, self._source = source.rstrip("s"), source

    def shell_complete(self, ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """Names with this beginning, else those of which the word on them holds it; none if the home is unusable."""
        if self._source == "files":
            return [CompletionItem(incomplete, type="file")]
        found: dict[str, str] = {}
        with suppress(HermesError):
            profile = ctx.find_root().params.get("profile") or ""
            surface = ctx.find_object(Surface) or Surface(invocation=Invocation(profile=profile))
            found = dict(SOURCES[self._source](surface))
        fits = [name for name in found if name.startswith(incomplete)]
        fits = fits or [name for name, about in found.items() if incomplete.lower() in about.lower()]
        return [CompletionItem(name, help=" ".join(found[name].split()) or None) for name in fits]


def completed(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The completion of a global option."""
    source = FITTING.get(param.name or "")
    return Known(source).shell_complete(ctx, param, incomplete) if source else []


def complete(command: click.Command, path: str) -> None:
    """Give each text that the command takes, and for which names are known, its completion."""
    ways = (f"{path} ", f"{path.rpartition(' ')[0]} ", "")
    for param in command.params:
        source = next((FITTING[f"{way}{param.name}"] for way in ways if f"{way}{param.name}" in FITTING), None)
        if source and param.type is click.STRING:
            param.type = Known(source)
