"""Operations on permanent approvals: list what a person allowed for good, and withdraw one."""

from __future__ import annotations

import asyncio

from hermes_agent.app.operations.access import Access, HomeSystem, Noun, place, verb
from hermes_agent.app.process import APPROVALS
from hermes_agent.core.clock import moment
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import HermesError
from hermes_agent.tools.permission.remembered import Approval, RememberedFile

OWNERS = "Only the owner sees and withdraws what was allowed for good."


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowance:
    """A permanent approval as people see it; `program` is what it is bound to (empty: nothing but its words)."""

    id: str
    what: str
    tool: str
    folder: str
    program: str
    when: float

    def __str__(self) -> str:
        bound = f"  by {self.program.partition(' ')[0]}" if self.program else ""
        return f"{self.id}  {moment(self.when)}  {self.tool}: {' '.join(self.what.split())}  in {self.folder}{bound}"


async def list_approvals(access: Access[HomeSystem]) -> list[Allowance]:
    """What was allowed for good, oldest first. For the owner."""
    return [_shown(each) for each in await asyncio.to_thread(_kept(access).list)]


async def withdraw_approval(access: Access[HomeSystem], id: str) -> str:  # noqa: A002 - the argument's name
    """Withdraw one approval; the call is asked about again. Raises `HermesError`."""
    kept = _kept(access)
    found = [each for each in await asyncio.to_thread(kept.list) if each.key.startswith(id) and id]
    if len(found) != 1:
        raise HermesError(f"No approval is called {id}. `hermes approvals list` shows them.")
    await kept.withdraw(found[0].key)
    return f"Withdrawn: {' '.join(found[0].what.split())}. It is asked about again."


def _kept(access: Access[HomeSystem]) -> RememberedFile:
    access.check_owner(OWNERS)
    return RememberedFile(access.system.home.root / APPROVALS, access.system.clock)


def _shown(each: Approval) -> Allowance:
    program = each.program
    return Allowance(
        id=each.key[:6], what=each.what, tool=each.tool, folder=each.folder, program=program, when=each.when
    )


ALLOWED = Noun(
    name="approvals",
    offline=True,
    short_help="List what you allowed for good, and revoke it.",
    help="List what you allowed for good, and revoke it.",
    verbs=(
        verb(
            "list",
            "List permanent approvals and rules.",
            list_approvals,
            text=lambda found: "\n".join(map(str, found)),
            nothing="Nothing is allowed for good.",
        ),
        verb("revoke", "Revoke an approval, so that the call is asked about again.", withdraw_approval, place("id")),
    ),
)
