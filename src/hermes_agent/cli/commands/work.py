"""Subcommands `hermes cron` and `hermes kanban`, each with one round of what is due."""

from __future__ import annotations

import asyncio

from hermes_agent.app.operations.access import Access
from hermes_agent.app.operations.cron import CRON, is_idle
from hermes_agent.app.operations.kanban import KANBAN
from hermes_agent.app.settings import SERVED
from hermes_agent.cli.commands.verbs import group_of
from hermes_agent.cli.output import say
from hermes_agent.cli.surface import Surface, pass_surface
from hermes_agent.core.shown import plural
from hermes_agent.host.late import late

cron = group_of(CRON)
kanban = group_of(KANBAN)
OPENING = "hermes_agent.app.opening"
BOARD = "hermes_agent.app.work.board"
PAUSE = 0.2


@cron.command(short_help="Run what is due now, and end.")
@pass_surface
def tick(surface: Surface) -> None:
    """Run what is due now, and end when it is done: for those who have a scheduler of their own."""
    asyncio.run(_tick(surface))
    say("Nothing is due any more.")


async def _tick(surface: Surface) -> None:
    opening = late(OPENING)
    options = opening.Options(queue=SERVED, own_only=False, model=surface.invocation.model)
    async with opening.open_system(surface.home.ensure(), options) as system:
        while not await is_idle(Access(system=system, who=system.owner)):
            await system.clock.sleep(PAUSE)


@kanban.command(short_help="Start processes for ready cards, and end.")
@pass_surface
def dispatch(surface: Surface) -> None:
    """Look after the cards once, and end: record the processes that are over, start those that have room. For those who
    have a scheduler of their own; the processes go on by themselves."""
    say(f"{plural(asyncio.run(_dispatch(surface)), 'card')} at work.")


async def _dispatch(surface: Surface) -> int:
    opening, board = late(OPENING), late(BOARD)
    async with opening.open_system(board.base_of(surface.home).ensure(), opening.Options(attended=False)) as system:
        dispatcher = board.dispatcher_of(system.snapshots.now.needs)
        try:
            return int(await board.one_round(dispatcher, system.clock))
        finally:
            await dispatcher.close()
