"""What the commands about skills share: the library, the hub, who asks, and names that a shell completes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click
from click.shell_completion import CompletionItem

from hermes_agent.app.operations.skills import open_skills
from hermes_agent.cli.operation import ask
from hermes_agent.cli.output import remark
from hermes_agent.cli.skills.waiting import Waiting
from hermes_agent.cli.surface import Surface
from hermes_agent.core.errors import HermesError
from hermes_agent.host.paths import find_home
from hermes_agent.skills.changes import By
from hermes_agent.skills.depot.lock import Lock
from hermes_agent.skills.hub.installing import Hub
from hermes_agent.skills.hub.sources import Sources
from hermes_agent.skills.hub.taps import Taps
from hermes_agent.skills.places import BUNDLED, Root, found_in
from hermes_agent.skills.skill import Layer

if TYPE_CHECKING:
    from hermes_agent.app.operations.access import Access, HomeSystem

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


def with_hub(surface: Surface, act: Callable[[Hub, By], Awaitable[T]]) -> T:
    """Open what comes from elsewhere, act in the name of the person at this terminal, close it. What takes longer than
    two seconds is told, and what did not answer."""
    waiting = Waiting()

    async def run(access: Access[HomeSystem]) -> T:
        async with open_skills(access) as shelf:
            sources = Sources(
                taps=Taps(shelf.writer.home),
                cache=surface.home.cache,
                clock=access.system.clock,
                variables=surface.variables,
                tell=waiting.hear,
            )
            try:
                return await act(Hub(sources=sources, writer=shelf.writer, clock=access.system.clock), shelf.by)
            finally:
                waiting.end()
                for problem in sources.problems:
                    remark(problem)

    return ask(surface, run)
