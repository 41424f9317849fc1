"""Operations on what a session chooses for itself: reasoning, approvals and a plan only, and consent to MCP servers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes_agent.app.operations.access import Access
from hermes_agent.app.snapshot import APPROVE, EFFORT, TOOLSETS
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.effects import Capability
from hermes_agent.core.errors import HermesError
from hermes_agent.core.events import Pinned, Unpinned
from hermes_agent.core.messages import Origin
from hermes_agent.providers.vendor import LEVELS as LEVELS
from hermes_agent.tools.permission.unasked import AUTO_EDIT as AUTO_EDIT

if TYPE_CHECKING:
    from hermes_agent.app.system import System

PLAN = "plan"
"""The pin of a session that only plans."""
PLAN_WORDS = "Read only: make a plan and change nothing until the person says otherwise."
CHANGES = (Capability.FS_WRITE, Capability.EXEC, Capability.MESSAGE, Capability.SCHEDULE)
"""What no call that changes something may need where "read only" is pinned."""
DENIED = (*CHANGES, Capability.MCP, Capability.MEMORY, Capability.SKILLS)
"""The same while a session only plans."""
CONSENTS = "acp.servers"
PRESETS = {
    "all": "",
    "coding": "files shell code web todo skills memory recall clarify mcp delegation",
}
"""What a session may be begun with: its toolsets (empty: all of its surface)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Choices:
    """What holds in a session: its reasoning, its approvals (`ask`, `smart`, `auto-edit` or `off`), whether it only
    plans, and the preset of its toolsets."""

    effort: str
    approvals: str
    plans: bool
    toolsets: str


async def choices_of(access: Access[System]) -> Choices:
    """What the session of this access chose, or has from the settings."""
    chosen = await access.system.store.facts.of(f"session:{access.session}")
    settings = access.system.settings
    return Choices(
        effort=chosen.get(EFFORT) or settings.model.reasoning_effort,
        approvals="off" if settings.approvals.mode == "off" else chosen.get(APPROVE) or settings.approvals.mode,
        plans=PLAN in (await access.system.hermes.view(access.session)).pins,
        toolsets=next((name for name, held in PRESETS.items() if held == chosen.get(TOOLSETS, "")), "all"),
    )


async def choose_approvals(access: Access[System], mode: str) -> None:
    """Set who is asked first in the session: `ask` a person, `auto-edit` a person and not about files, or `smart` the
    auxiliary model. Empty: as the settings."""
    usual = access.system.settings.approvals.mode
    await access.system.store.facts.set(f"session:{access.session}", APPROVE, "" if mode == usual else mode)


async def choose_plan(access: Access[System], *, plans: bool) -> None:
    """Have the session only plan, or work again. Raises `HermesError` if it is busy elsewhere."""
    hermes = access.system.hermes
    if (PLAN in (await hermes.view(access.session)).pins) is plans:
        return
    whose = Origin(access.who.standing.value)
    pinned = Pinned(pin=PLAN, text=PLAN_WORDS, denies=DENIED, origin=whose)
    async with hermes.holding(access.session, beside_run=True) as journal:
        await journal.commit(pinned if plans else Unpinned(pin=PLAN))


async def choose_toolsets(access: Access[System], preset: str) -> None:
    """Set the toolsets of the session by a preset. Raises `HermesError` once it has begun: its prompt names them."""
    if (await access.system.hermes.view(access.session)).prefix_hash:
        raise HermesError("The tools of a session stay as it began: choose them before its first message.")
    await access.system.store.facts.set(f"session:{access.session}", TOOLSETS, PRESETS[preset])


async def agreed(access: Access[System], digest: str) -> bool:
    """Whether the person agreed for good to the servers with that hash."""
    return bool((await access.system.store.facts.of(CONSENTS)).get(digest))


async def agree(access: Access[System], digest: str) -> None:
    """Keep that the person agreed to them."""
    await access.system.store.facts.set(CONSENTS, digest, "yes")
