"""`/restart`: the process begins again, and says so in the chat that asked."""

from __future__ import annotations

from hermes_agent.app.commands.command import Command, Desk, Done
from hermes_agent.app.restart_notice import note_asker
from hermes_agent.core.errors import HermesError


async def restart(desk: Desk, _: str) -> Done:
    """Begin again, when what runs has finished; what is left goes on afterwards."""
    if desk.runtime.restart is None:
        raise HermesError(
            "There is no gateway in this process: `hermes gateway restart` restarts the one of this home."
        )
    await note_asker(desk.runtime, desk.inbound)
    desk.runtime.restart()
    return Done(text="Restarting: what runs may finish, the rest goes on afterwards. I say when I am back.")


RESTART = Command(name="restart", summary="Begin again, with a new program.", act=restart, while_running=True)
