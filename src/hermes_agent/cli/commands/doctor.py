"""`hermes doctor`: looks at everything that an agent needs, and says what to do."""

from __future__ import annotations

import asyncio

import click

from hermes_agent.cli.checks import QUICK, Check, State, database, memory, model, place
from hermes_agent.cli.exits import Exit
from hermes_agent.cli.output import say, say_json, table
from hermes_agent.cli.surface import Surface, pass_surface


@click.command(short_help="Check this installation and say what to do.", epilog="Example: `hermes doctor --offline`.")
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
@click.option("--offline", is_flag=True, help="Ask no model.")
@pass_surface
def doctor(surface: Surface, as_json: bool, offline: bool) -> int:
    """Check this installation: Python, home, settings, keys, database, programs, whether commands run in their
    place, and whether the model answers.

    The exit code is 1 where something does not work.
    """
    checks = asyncio.run(examine(surface, offline=offline))
    if as_json:
        say_json(checks)
    else:
        say(table([(check.state.value, check.name, check.found) for check in checks]))
        for check in (each for each in checks if each.todo):
            say(f"{check.name}: {check.todo}")
    return Exit.FAILED if any(check.state is State.FAIL for check in checks) else Exit.OK


async def examine(surface: Surface, *, offline: bool) -> list[Check]:
    """Every check, in order; those behind one that failed are left out where they could not say more."""
    checks = [answer for check in QUICK for answer in check(surface)]
    if any(check.name == "home" and check.state is State.FAIL for check in checks):
        return checks
    checks += await database(surface)
    checks += await place(surface, offline=offline)
    return checks if offline else checks + await memory(surface) + await model(surface)
