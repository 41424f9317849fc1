"""What goes on behind a session: agents, its background commands that still run, and reviews of this process."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes_agent.app.settings import SERVED
from hermes_agent.app.work import DELEGATION
from hermes_agent.core.errors import HermesError
from hermes_agent.sandbox.place import Place
from hermes_agent.tools.starting import exec_name

if TYPE_CHECKING:
    from hermes_agent.app.system import System
    from hermes_agent.work.delegation.delegation import Delegation


def delegation_in(system: System) -> Delegation:
    """The delegation of the current settings."""
    found: Delegation = system.snapshots.now.needs.made(DELEGATION)
    return found


async def resume_agents(system: System, session: str) -> bool:
    """Work on the agents of a session that an earlier process left behind. False where there are none."""
    if not await system.store.children.has_open(session):
        return False
    return bool(await delegation_in(system).resume_agents(session))


async def awaits_reports(system: System, session: str) -> bool:
    """Whether agents of a session still work, or it has reports to answer."""
    store = system.store
    return (
        system.hermes.runs(session) or await store.children.has_open(session) or await store.inbox.has_other(session, 0)
    )


async def hand_over(system: System, session: str) -> int:
    """Leave the agents of a session, and what comes of them, to the processes that serve this home; how many agents.
    0 where nobody serves."""
    left = [child for child in await system.store.children.of(session) if child.is_open]
    if not left or not await system.store.activity.serving():
        return 0
    await delegation_in(system).hand_over(left, SERVED)
    return len(left)


async def work_on(system: System, session: str) -> None:
    """Work on one agent's session until it has ended."""
    system.hermes.scheduler.expect(session)
    await delegation_in(system).wait([session], lambda _: None)
    await system.hermes.idle()


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
