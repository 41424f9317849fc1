"""What the commands about skills share: the library, the hub, who asks, and names that a shell completes."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import click
from click.shell_completion import CompletionItem

from hermes_agent.app.household import local_owner
from hermes_agent.app.skills import Skills
from hermes_agent.cli.output import remark
from hermes_agent.cli.session_lookup import lookup_session
from hermes_agent.cli.skills.waiting import Waiting
from hermes_agent.cli.surface import Surface
from hermes_agent.core.clock import SystemClock
from hermes_agent.core.errors import HermesError
from hermes_agent.host.paths import find_home
from hermes_agent.skills.changes import By
from hermes_agent.skills.depot.lock import Lock
from hermes_agent.skills.hub.installing import Hub
from hermes_agent.skills.hub.sources import Sources
from hermes_agent.skills.hub.taps import Taps
from hermes_agent.skills.places import BUNDLED, Root, found_in
from hermes_agent.skills.skill import Layer
from hermes_agent.skills.writing import Writer
from hermes_agent.store.versions import Author

T = TypeVar("T")
JSON = click.option("--json", "as_json", is_flag=True, help="As JSON.")


class Names(click.ParamType[str]):
    """A name of which a shell is told those there are in a folder of skills."""

    def __init__(self, name: str, there: Callable[[Path], Iterable[str]]) -> None:
        self.name, self._there = name, there

    def shell_complete(self, _ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """Those that begin like this; none where the home cannot be read."""
        with suppress(HermesError):
            names = sorted(set(self._there(find_home().skills)))
            return [CompletionItem(name) for name in names if name.startswith(incomplete)]
        return []


def _skills(home: Path) -> Iterable[str]:
    roots = (Root(path=home, layer=Layer.USER), Root(path=BUNDLED, layer=Layer.BUNDLED))
    yield from (found.folder.name for root in roots for found in found_in(root))
    yield from Lock(home).get().skills


SKILL = Names("skill", _skills)
INSTALLED = Names("installed", lambda home: Lock(home).get().skills)
TAP = Names("tap", lambda home: (tap.name for tap in Taps(home).all()))


def by_owner() -> By:
    """The person at this terminal."""
    return By(author=Author.OWNER, principal=local_owner().key)


def with_skills(surface: Surface, act: Callable[[Skills, Writer], Awaitable[T]]) -> T:
    """Open the library, act, close it."""

    async def run() -> T:
        async with lookup_session(surface) as store:
            kept = Skills(surface.home, surface.loaded.value.skills, SystemClock())
            try:
                return await act(kept, kept.writer(store))
            finally:
                await kept.close()

    return asyncio.run(run())


def with_hub(surface: Surface, act: Callable[[Hub], Awaitable[T]]) -> T:
    """The same with what comes from elsewhere. What takes longer than two seconds is told, and what did not answer."""
    waiting = Waiting()

    async def run(_: Skills, writer: Writer) -> T:
        sources = Sources(
            taps=Taps(writer.home),
            cache=surface.home.cache,
            clock=SystemClock(),
            variables=surface.variables,
            tell=waiting.hear,
        )
        try:
            return await act(Hub(sources=sources, writer=writer, clock=SystemClock()))
        finally:
            waiting.end()
            for problem in sources.problems:
                remark(problem)

    return with_skills(surface, run)
