"""Slash commands that control runs: /stop, /continue, /steer and /queue; and /restart, which restarts the gateway."""

from __future__ import annotations

from dataclasses import replace

from hermes_agent.app.commands.command import Desk, Done, command
from hermes_agent.app.operations.serving import note_asker
from hermes_agent.core.chat import Busy
from hermes_agent.core.errors import HermesError
from hermes_agent.core.shown import plural
from hermes_agent.host.late import late

ALL = "all"
STOP_ALL = "hermes_agent.app.operations.agents:stop_all"


@command("stop", "End the run at once; with `all` background agents too.", arguments="[all]", while_running=True)
async def stop(desk: Desk, rest: str) -> Done:
    """Stop the run at once, with the agents that it waits for; with `all` also those in the background."""
    if rest not in ("", ALL):
        raise HermesError("Say `/stop`, or `/stop all`.")
    stopped = await desk.hermes.stop(desk.record.id)
    others = await late(STOP_ALL)(desk.access) if rest else 0
    told = "Stopped." if stopped or others else "Nothing is running."
    return Done(text=f"{told} {plural(others, 'agent')} stopped too." if others else told)


@command("continue", "Resume a run that was stopped or reached a limit.", arguments="[words]")
async def go_on(desk: Desk, rest: str) -> Done:
    """Resume a run that was stopped or reached a limit."""
    return Done(submit=replace(desk.message(rest), resumes=True))


@command("steer", "Say something the model reads at its next turn.", arguments="WORDS", while_running=True)
async def steer(desk: Desk, rest: str) -> Done:
    """Send a message that the model reads at its next turn."""
    return Done(submit=replace(desk.message(_words(rest)), busy=Busy.STEER))


@command("queue", "Say something that is read when the run is over.", arguments="WORDS", while_running=True)
async def queue(desk: Desk, rest: str) -> Done:
    """Send a message that is read after the run."""
    return Done(submit=replace(desk.message(_words(rest)), busy=Busy.QUEUE))


def _words(rest: str) -> str:
    if not rest:
        raise HermesError("Say what: `/steer WORDS` or `/queue WORDS`.")
    return rest


@command("restart", "Restart the gateway.", while_running=True)
async def restart(desk: Desk, _: str) -> Done:
    """Restart the gateway after running work has finished; the rest resumes afterwards."""
    if desk.runtime.restart is None:
        raise HermesError(
            "There is no gateway in this process: `hermes gateway restart` restarts the one of this home."
        )
    await note_asker(desk.runtime, desk.inbound)
    desk.runtime.restart()
    return Done(
        text="Restarting. Running work may finish first; the rest resumes afterwards. I will say when I am back."
    )
