"""The mandate of a session in which nobody types: what narrows its runs (tools, turns, time, money)."""

from __future__ import annotations

from enum import StrEnum

from hermes_agent.core.clock import Clock
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.effects import Capability
from hermes_agent.core.spending import Limit, Scope


class Work(StrEnum):
    """The kinds of work without a person. Each is also the platform (surface) of its sessions."""

    CHILD = "child"
    CARD = "card"
    CRON = "cron"


@dataclass(frozen=True, slots=True, kw_only=True)
class Mandate:
    """What the runs of a session may do beside what their principal may. It narrows, and never widens.

    - `parent` is the session that gave the work (empty: none), `depth` how many sessions are above it;
    - `toolsets` are those that it has (None: all of its surface; never empty), `denied` capabilities that its calls
      lack;
    - `turns` are the model calls of one run (None: `agent.max_turns`);
    - `until` is the end of all its work, in seconds since 1970: it holds on any machine (None: no end), `seconds` the
      longest of one run;
    - `money` (nanodollars) and `tokens` limit each of its runs, `job_money` and `job_tokens` all sessions of its job;
    - `effort` replaces `model.reasoning_effort` (empty: it does not);
    - `learns`: whether its runs are reviewed; `remembers`: whether its prompt has notes;
    - `role` is a section of its prompt: who it works for and how.
    """

    kind: Work
    parent: str = ""
    depth: int = 0
    toolsets: tuple[str, ...] | None = None
    denied: tuple[Capability, ...] = ()
    turns: int | None = None
    until: float | None = None
    seconds: float | None = None
    money: int | None = None
    tokens: int | None = None
    job_money: int | None = None
    job_tokens: int | None = None
    effort: str = ""
    learns: bool = False
    remembers: bool = False
    role: str = ""

    @property
    def limits(self) -> tuple[Limit, ...]:
        """Its limits of money and tokens."""
        own = Limit(scope=Scope.RUN, money=self.money, tokens=self.tokens)
        job = Limit(scope=Scope.JOB, money=self.job_money, tokens=self.job_tokens)
        return tuple(each for each in (own, job) if (each.money, each.tokens) != (None, None))

    def deadline(self, clock: Clock) -> float | None:
        """The end of a run that begins now, as a moment of `clock.monotonic`."""
        left = [self.seconds, None if self.until is None else self.until - clock.now()]
        return min((clock.monotonic() + each for each in left if each is not None), default=None)
