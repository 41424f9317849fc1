"""Operations on agents in the background that a surface needs before it knows whether there are any."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes_agent.app.work import DELEGATION

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


async def work_on(system: System, session: str) -> None:
    """Work on one agent's session until it has ended."""
    system.hermes.scheduler.expect(session)
    await delegation_in(system).wait([session], lambda _: None)
    await system.hermes.idle()
