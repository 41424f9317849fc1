"""What goes on behind a session: its background commands that still run, and reviews of this process."""

from __future__ import annotations

from hermes_agent.app.system import System
from hermes_agent.core.errors import HermesError
from hermes_agent.sandbox.place import Place
from hermes_agent.tools.starting import exec_name


async def count_commands(system: System, session: str) -> int:
    """The background commands of a session that still run; 0 where the place cannot be asked."""
    place, count = system.snapshots.now.needs.get(Place), 0
    try:
        for exec_id in await place.list(exec_name(session)):
            running = await place.attach(exec_id)
            count += running is not None and await running.poll() is None
    except HermesError:
        return 0
    return count


def is_reviewing(system: System) -> bool:
    """Whether this process reviews a conversation now."""
    jobs = system.learner.reviewing
    return jobs is not None and jobs.busy
