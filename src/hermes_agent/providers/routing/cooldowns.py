"""Cool-downs: what is not asked for a while, because it failed; one memory for all processes on a store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from hermes_agent.core.dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Rest:
    """Something of a provider that is not asked before `until` (seconds since 1970).

    An empty `credential` means all of them, an empty `model` every model. `mark` is of the key that rests, so that
    another value under the same name does not; `reason` is the class of the error.
    """

    provider: str
    credential: str = ""
    model: str = ""
    mark: str = ""
    until: float
    reason: str

    def covers(self, provider: str, credential: str, model: str) -> bool:
        """Whether this key of this provider rests for this model."""
        return self.provider == provider and self.credential in {"", credential} and self.model in {"", model}


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """How often a credential was used in the last day, and when last (seconds since 1970)."""

    calls: int = 0
    last: float = 0.0


class CoolDowns(Protocol):
    """What rests, and how credentials were used.

    - `resting` gives what has not ended at `now`;
    - `rest` keeps the rests before it returns; a later one for the same thing replaces the earlier;
    - `uses` gives the uses of a provider's credentials since then, by name.
    """

    async def resting(self, now: float) -> Sequence[Rest]: ...

    async def rest(self, rests: Sequence[Rest]) -> None: ...

    async def uses(self, provider: str, since: float) -> Mapping[str, Use]: ...


class BriefCoolDowns:
    """Cool-downs that end with this process."""

    def __init__(self) -> None:
        self.kept: dict[tuple[str, str, str], Rest] = {}

    async def resting(self, now: float) -> Sequence[Rest]:
        return [rest for rest in self.kept.values() if rest.until > now]

    async def rest(self, rests: Sequence[Rest]) -> None:
        self.kept.update({(rest.provider, rest.credential, rest.model): rest for rest in rests})

    async def uses(self, provider: str, since: float) -> Mapping[str, Use]:  # noqa: ARG002 - nothing is counted here
        return {}
