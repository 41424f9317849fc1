"""Subcommands `hermes worker` (runs sessions of gateways and API servers on its database) and `hermes api`."""

from __future__ import annotations

import asyncio
import secrets
from contextlib import AsyncExitStack
from functools import partial

import click

from hermes_agent.app.chats.platforms import PlatformOf
from hermes_agent.app.opening import Options, open_system
from hermes_agent.app.operations.background import work_on
from hermes_agent.app.reloading import Reloading
from hermes_agent.app.settings import API_KEY, DRAIN_SECONDS, SERVED, Settings
from hermes_agent.app.work import queue_of
from hermes_agent.cli.options import recording_of
from hermes_agent.cli.output import announce, remark, say
from hermes_agent.cli.surface import Surface, pass_surface
from hermes_agent.core.clock import SystemClock
from hermes_agent.core.errors import ConfigError, LostLease, Stopped
from hermes_agent.host.config import load
from hermes_agent.host.late import late
from hermes_agent.host.loops import PATIENCE, run as run_loop, told_to_end
from hermes_agent.host.tasks import spawn

CARDS = "hermes_agent.app.work.board"
PLATFORM_OF = "hermes_agent.gateway.opening:platform_of"


def _platform_of() -> PlatformOf:
    found: PlatformOf = late(PLATFORM_OF)
    return found


@click.command(short_help="Run the sessions of gateways and API servers.")
@click.option("--session", default="", metavar="SESSION", help="Work on this agent's session alone, to its end.")
@click.option("--card", default="", metavar="ID", help="Work on this card of the board alone; the dispatcher says so.")
@click.option("--epoch", default=0, metavar="N", help="The claim of that card.")
@pass_surface
def worker(surface: Surface, session: str, card: str, epoch: int) -> None:
    """Run the sessions of gateways and API servers on the same home, or the same PostgreSQL database, and start the
    processes of cards. It ends within two seconds of Ctrl-C, SIGTERM or SIGHUP; another worker resumes its runs."""
    if card:
        run_loop(_work_on_card(surface, card, epoch))
    else:
        run_loop(_work_on(surface, session) if session else _work(surface))


async def _work_on(surface: Surface, session: str) -> None:
    options = Options(queue=queue_of(session), model=surface.invocation.model, attended=False)
    with told_to_end() as told:
        async with open_system(surface.home.ensure(), options) as runtime:
            work = spawn(work_on(runtime, session), name=f"work on {session}")
            over = spawn(told.wait(), name="told to end")
            try:
                await asyncio.wait((work, over), return_when=asyncio.FIRST_COMPLETED)
            finally:
                work.cancel()
                over.cancel()


async def _work(surface: Surface) -> None:
    model = surface.invocation.model
    tape = recording_of(surface.invocation)
    options = Options(queue=SERVED, own_only=False, model=model, reviews=True, tape=tape, platform=_platform_of())
    with told_to_end() as told:
        async with open_system(surface.home.ensure(), options) as runtime:
            if runtime.notice:
                remark(runtime.notice)
            announce(f"Working on {SERVED}.")
            async with Reloading(runtime, [], lambda: None).following():
                await told.wait()


async def _work_on_card(surface: Surface, card: str, epoch: int) -> None:
    """Work on one card; a claim that is gone is no failure."""
    home, cards, clock = surface.home.ensure(), late(CARDS), SystemClock()
    base = cards.base_of(home)
    async with AsyncExitStack() as closing:
        told = closing.enter_context(told_to_end())
        settings = load(base, Settings).usable().value
        board = await closing.enter_async_context(cards.own_board(base, settings, clock))
        try:
            holding, person = await cards.held_for(await cards.adopt(board, card, epoch), settings)
        except LostLease as error:
            remark(str(error))
            return
        standing = partial(cards.standing_beside, person)
        options = Options(queue=f"card:{card}", attended=False, holding=holding, standing=standing)
        system = await closing.enter_async_context(open_system(home, options))
        work = spawn(cards.CardWorker(holding, system.hermes, person, clock).work(), name=f"card {card}")
        ending = spawn(told.wait(), name="asked to end")
        await asyncio.wait((work, ending), return_when=asyncio.FIRST_COMPLETED)
        if not work.done():
            work.cancel()
            raise Stopped(f"{card}: stopped; another process goes on.")
        await work


SERVE = "hermes_agent.api.serve:serve"
BYTES_OF_A_KEY = 32


@click.group(short_help="Serve the agent to programs, over HTTP.")
def api() -> None:
    """Serve the agent to programs: OpenAI's chat completions and responses, runs, sessions and search."""


@api.command()
@pass_surface
def run(surface: Surface) -> None:
    """Serve until Ctrl-C, SIGTERM or SIGHUP. Address: section `api` of config.yaml, by default 127.0.0.1:8642."""
    run_loop(_serve(surface))


async def _serve(surface: Surface) -> None:
    with told_to_end(DRAIN_SECONDS + PATIENCE) as told:
        home, tape = surface.home.ensure(), recording_of(surface.invocation)
        await late(SERVE)(home, announce, until_told=told.wait, tape=tape, platform=_platform_of())


@api.command()
@click.option("--new", "make", is_flag=True, help="Make another one; the old one no longer works.")
@pass_surface
def key(surface: Surface, make: bool) -> None:
    """Print the owner's key of the API; make one if there is none."""
    kept = surface.secrets
    source = kept.source(API_KEY)
    if make and source == "environment":
        raise ConfigError(f"{API_KEY} comes from the environment: change it there.")
    if make or not source:
        surface.home.ensure()
        kept.set(API_KEY, secrets.token_urlsafe(BYTES_OF_A_KEY))
        remark(f"Saved in {surface.home.env_file} as {API_KEY}.")
    say(kept.get(API_KEY))
