"""Operations on agents that other agents started: list, show, read, stop, and say something to them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from hermes_agent.app.operations.access import Access, Noun, place, verb
from hermes_agent.app.operations.background import delegation_in
from hermes_agent.app.operations.sessions import get_session
from hermes_agent.core.chat import Standing
from hermes_agent.core.clock import moment
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import HermesError
from hermes_agent.core.messages import Origin
from hermes_agent.host.late import late
from hermes_agent.store.work.children import Child
from hermes_agent.work.delegation.delegation import DELEGATION, Task
from hermes_agent.work.delegation.report import Report, log_of, report_of, shown
from hermes_agent.work.delegation.tools import DelegationTools, Wish, named

if TYPE_CHECKING:
    from hermes_agent.app.system import System

ALL = "all"
PARENTS = "hermes_agent.app.work.delegation:Parents"
TOOLS = "hermes_agent.app.work.delegation:delegation_tools"
GUESTS = "Guests have no agents."


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentReport:
    """An agent and its report."""

    agent: Child
    report: Report

    @property
    def text(self) -> str:
        """The report as its parent reads it."""
        return shown(self.agent, self.report)


async def list_agents(access: Access[System]) -> list[Child]:
    """The agents of this conversation, with theirs; from a terminal those of all conversations, open ones first."""
    _check(access)
    children = access.system.store.children
    if access.session:
        return await below(access, access.session)
    return await children.latest("" if access.sees_all else access.who.key)


async def below(access: Access[System], session: str) -> list[Child]:
    """The agents of a session, each followed by its own."""
    found: list[Child] = []
    for child in await access.system.store.children.of(session):
        found += [child, *await below(access, child.session)]
    return found


async def agents_of(access: Access[System], session: str, run: str) -> list[AgentReport]:
    """The agents of one run of a session, with their reports. Raises `UnknownSession`."""
    _check(access)
    await get_session(access, session)
    found = [child for child in await access.system.store.children.of(session) if run and child.run == run]
    return [AgentReport(agent=child, report=report_of(child)) for child in found]


async def show_agent(access: Access[System], agent: str) -> AgentReport:
    """An agent's report."""
    child = await _named(access, agent)
    return AgentReport(agent=child, report=report_of(child))


async def log_agent(access: Access[System], agent: str) -> list[str]:
    """The steps of an agent, a line each."""
    child = await _named(access, agent)
    return log_of(await access.system.store.history.entries(child.session))


async def say_agent(access: Access[System], agent: str, words: str) -> str:
    """Say something to an agent; one that has ended goes on."""
    child = await _named(access, agent)
    identity = f"{child.session}:{access.system.ids.short()}"
    await delegation_in(access.system).say(child, words, access.who, Origin(access.who.standing.value), identity)
    return f"Told {child.session}. Its next report comes as a message to its conversation."


async def start_agent(access: Access[System], words: str, identity: str) -> str:
    """Start an agent for a person, once for this identity; its report comes as a message to their conversation."""
    _check(access)
    needs, key = access.system.snapshots.now.needs, f"{access.session}-{identity}"
    parent = await late(PARENTS)(needs).of(access.session, [access.who.key], identity)
    if DELEGATION not in parent.toolsets:
        raise HermesError("There are no agents in this conversation: its toolset `delegation` is off.")
    wish = Wish(key=key, origin=Origin(access.who.standing.value))
    tools: DelegationTools = late(TOOLS)(needs)
    [session] = await tools.start(parent, [Task(goal=words)], wish)
    return f"Started {session}; its report comes as a message. `/agents` shows it."


async def stop_agent(access: Access[System], agent: str) -> str:
    """Stop an agent and its own, or all."""
    if agent != ALL:
        stopped = await delegation_in(access.system).stop(child := await _named(access, agent))
        return f"{child.session} {'is stopped' if stopped else 'has ended already'}."
    return f"Stopped: {await stop_all(access)}."


async def stop_all(access: Access[System]) -> int:
    """Stop all agents of this conversation (from a terminal: of all conversations); how many."""
    delegation = delegation_in(access.system)
    return sum([await delegation.stop(child) for child in await list_agents(access) if child.is_open])


async def _named(access: Access[System], name: str) -> Child:
    exact = None if access.session or not access.sees_all else await access.system.store.children.get(name)
    return exact or named(await list_agents(access), name)


def _check(access: Access[System]) -> None:
    if access.who.standing is Standing.GUEST:
        raise HermesError(GUESTS)


def table_of(children: Sequence[Child]) -> str:
    """One line for each agent."""
    return "\n".join(
        f"{child.session}  {child.outcome or child.state:<8}  {moment(child.created)}  {brief(child.goal)}"
        for child in children
    )


def brief(text: str) -> str:
    """The beginning of a text, on one line."""
    return " ".join(text.split())[:80]


AGENT = place("agent", metavar="AGENT")
AGENTS = Noun(
    name="agents",
    short_help="List, read and stop the agents that agents started.",
    help="List, read and stop the agents that agents started. AGENT is its session, or the beginning of it.",
    verbs=(
        verb("list", "List agents.", list_agents, text=table_of, nothing="There are no agents."),
        verb("show", "Show an agent's report.", show_agent, AGENT, text=lambda found: found.text),
        verb("log", "Show what an agent did.", log_agent, AGENT, text="\n".join, nothing="Nothing yet."),
        verb("stop", "Stop an agent and its own, or `all`.", stop_agent, AGENT),
    ),
)
