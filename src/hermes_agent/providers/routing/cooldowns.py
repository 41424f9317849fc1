"""Cool-downs: providers, models and keys that are not asked for a while after a failure. The protocol of their
store, and one in memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from hermes_agent.core.dataclass import dataclass
from hermes_agent.store.cooldowns import CoolDown


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """Uses of a credential in the last day, and the last one (seconds since 1970)."""

    calls: int = 0
    last: float = 0.0


class CoolDowns(Protocol):
    """Store of cool-downs and of the use of credentials.

    - `resting` returns the cool-downs in force at `now`;
    - `rest` stores cool-downs before it returns; a later one for the same thing replaces the earlier;
    - `uses` returns the uses of a provider's credentials since then, by name.
    """

    async def resting(self, now: float) -> Sequence[CoolDown]: ...

    async def rest(self, rests: Sequence[CoolDown]) -> None: ...

    async def uses(self, provider: str, since: float) -> Mapping[str, Use]: ...


class BriefCoolDowns:
    """Cool-downs in the memory of this process; counts no uses of credentials."""

    def __init__(self) -> None:
        self.kept: dict[tuple[str, str, str], CoolDown] = {}

    async def resting(self, now: float) -> Sequence[CoolDown]:
        return [rest for rest in self.kept.values() if rest.until > now]

    async def rest(self, rests: Sequence[CoolDown]) -> None:
        self.kept.update({(rest.provider, rest.credential, rest.model): rest for rest in rests})

    async def uses(self, provider: str, since: float) -> Mapping[str, Use]:  # noqa: ARG002 - nothing is counted here
        return {}
