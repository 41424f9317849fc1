"""Subcommands about work: `hermes goals`, `hermes cron` and `hermes kanban`, with one round of what is due."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import click

from hermes_agent.app.operations import goals as operations
from hermes_agent.app.operations.access import Access
from hermes_agent.app.operations.cron import CRON, is_idle
from hermes_agent.app.operations.goals import GOAL_NOUN, Criterion, GoalFacts, Wish, criterion_of, goal_text
from hermes_agent.app.operations.kanban import KANBAN
from hermes_agent.app.operations.sessions import get_session
from hermes_agent.app.settings import SERVED
from hermes_agent.cli.commands.verbs import group_of
from hermes_agent.cli.exits import Exit
from hermes_agent.cli.operation import ask_system
from hermes_agent.cli.output import remark, say, show
from hermes_agent.cli.surface import Surface, pass_surface
from hermes_agent.core.chat import Conversation
from hermes_agent.core.shown import plural
from hermes_agent.host.late import late

if TYPE_CHECKING:
    from hermes_agent.app.system import System

cron = group_of(CRON)
kanban = group_of(KANBAN)
OPENING = "hermes_agent.app.opening"
BOARD = "hermes_agent.app.work.board"
PAUSE = 0.2


@cron.command(short_help="Run what is due now, and end.")
@pass_surface
def tick(surface: Surface) -> None:
    """Run what is due now, and end when it is done: for those who have a scheduler of their own."""
    ask_system(surface, _until_idle, surface.invocation.model, queue=SERVED, own_only=False)
    say("Nothing is due any more.")


async def _until_idle(access: Access[System]) -> None:
    while not await is_idle(access):
        await access.system.clock.sleep(PAUSE)


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


goals = group_of(GOAL_NOUN)


async def _pursued(access: Access[System], begun: GoalFacts) -> GoalFacts:
    """Wait until the goal stands still, and what it is then."""
    remark(f"{begun.id}: working on it; Ctrl-C leaves, `hermes goals resume {begun.id}` continues.")
    work = operations.work_of(access)
    work.watch(begun.session)
    await work.settled(begun.id)
    return await operations.show_goal(access, begun.id)


async def _session(access: Access[System]) -> str:
    """A new session in this folder."""
    where = Conversation(platform="cli", chat_kind="folder", chat=access.folder)
    hermes, owner = access.system.hermes, access.system.owner
    return (await hermes.open_session(where, owner, workspace=access.folder, new=True)).id


async def _add(access: Access[System], wish: Wish) -> GoalFacts:
    """Write the goal down, and begin: one that is refused begins no session."""
    if not wish.later:
        access.system.route()  # Without a model nothing is begun.
    if not wish.criteria and (proof := operations.proof_in(access.folder)):
        remark(f'A model will judge it. With --command "{proof}" the tests decide.')
    made = await operations.set_goal(access, replace(wish, later=True))
    return made if wish.later else await _resume(access, made.id, None, None)


async def _resume(access: Access[System], name: str, turns: int | None, budget: float | None) -> GoalFacts:
    goal = await operations.show_goal(access, name)
    session = goal.session or await _session(access)
    resumed = await operations.resume_goal(access, goal.id, turns, budget, session)
    if (await get_session(access, session)).surface != "cli":
        remark(f"{goal.id}: the server of its chat continues it.")
        return resumed
    return await _pursued(access, resumed)


def _ended(found: GoalFacts) -> int:
    show(found, goal_text)
    return Exit.OK if found.met else Exit.FAILED


@goals.command()
@click.argument("text")
@click.option("--command", "commands", multiple=True, metavar="CMD", help="Done when this exits with 0.")
@click.option("--file", "files", multiple=True, metavar="PATH", help="Done when it is there: PATH [contains TEXT].")
@click.option("--board", "cards", multiple=True, metavar="CARD", help="Done when this card is done.")
@click.option("--judge", "words", multiple=True, metavar="WORDS", help="Done when a model finds proof of this.")
@click.option("--constraint", "constraints", multiple=True, metavar="WORDS", help="What must hold meanwhile.")
@click.option("--turns", type=int, help="Turns that it may take.")
@click.option("--money", type=float, help="US dollars that it may cost.")
@click.option("--tokens", type=int, help="Tokens that it may take.")
@click.option("--anyway", is_flag=True, help="Begin although the criteria hold already.")
@click.option("--later", is_flag=True, help="Only write it down; `resume` begins.")
@pass_surface
def add(  # noqa: PLR0913  click hands each option by its name
    surface: Surface,
    text: str,
    commands: tuple[str, ...],
    files: tuple[str, ...],
    cards: tuple[str, ...],
    words: tuple[str, ...],
    constraints: tuple[str, ...],
    turns: int | None,
    money: float | None,
    tokens: int | None,
    anyway: bool,
    later: bool,
) -> int:
    """Set a goal and work on it in this folder until it is reached, or something stops it.

    The exit code is 0 if the goal is reached, else 1.
    """
    given = (("command", commands), ("file", files), ("board", cards), ("judge", words))
    criteria: tuple[Criterion, ...] = tuple(criterion_of(kind, each) for kind, all_of in given for each in all_of)
    wish = Wish(
        text=text,
        criteria=criteria,
        constraints=constraints,
        turns=turns,
        money=money,
        tokens=tokens,
        anyway=anyway,
        later=later,
    )
    found = ask_system(surface, partial(_add, wish=wish), attended=False)
    code = _ended(found)
    return Exit.OK if later else code


@goals.command()
@click.argument("name", metavar="[ID]", default="")
@click.option("--turns", type=int, help="Turns more that it may take.")
@click.option("--budget", type=float, help="US dollars that it may cost in all.")
@pass_surface
def resume(surface: Surface, name: str, turns: int | None, budget: float | None) -> int:
    """Continue a goal here, until it is reached or something stops it."""
    act = partial(_resume, name=name, turns=turns, budget=budget)
    return _ended(ask_system(surface, act, attended=False))


@goals.command()
@click.argument("name", metavar="[ID]", default="")
@pass_surface
def check(surface: Surface, name: str) -> int:
    """Check the criteria of a goal now, and show the receipts. The exit code is 0 if all hold, else 1."""
    return _ended(ask_system(surface, partial(operations.check_goal, name=name)))
