"""`hermes worker`: works on what gateways and API servers of the same database take in."""

from __future__ import annotations

import click

from hermes_agent.app.api_settings import SERVED
from hermes_agent.app.opening import Options, open_system
from hermes_agent.app.reloading import Reloading
from hermes_agent.cli.output import announce, remark
from hermes_agent.cli.recording_option import recording_of
from hermes_agent.cli.surface import Surface, pass_surface
from hermes_agent.host.late import late
from hermes_agent.host.loops import run, told_to_end

PLATFORM_OF = "hermes_agent.gateway.opening:platform_of"


@click.command(short_help="Run the sessions of gateways and API servers.")
@pass_surface
def worker(surface: Surface) -> None:
    """Run the sessions of gateways and API servers on the same home, or the same PostgreSQL database. It ends within
    two seconds of Ctrl-C, SIGTERM or SIGHUP; another worker resumes its runs."""
    run(_work(surface))


async def _work(surface: Surface) -> None:
    model = surface.invocation.model
    tape = recording_of(surface.invocation)
    options = Options(queue=SERVED, own_only=False, model=model, reviews=True, tape=tape, platform=late(PLATFORM_OF))
    with told_to_end() as told:
        async with open_system(surface.home.ensure(), options) as runtime:
            if runtime.notice:
                remark(runtime.notice)
            announce(f"Working on {SERVED}.")
            async with Reloading(runtime, [], lambda: None).following():
                await told.wait()
