"""Whatever order calls are reserved, settled and lost in, in several processes, no limit is ever passed."""

from collections import Counter
from dataclasses import dataclass, field, replace
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from hermes_agent.core.messages import Usage
from hermes_agent.core.spending import NANO, Bid, Grant, Limit, Rules, Scope, nanos
from hermes_agent.store.database import Store
from tests.databases import OpenAnother
from tests.store.accounts.test_accounts import ROW

CALL, RUN, PERSON, DAY = nanos(0.9), nanos(1.5), nanos(2.0), nanos(2.5)
RUN_TOKENS, DAY_TOKENS = 20_000, 25_000
RULES = Rules(
    limits=(
        Limit(scope=Scope.CALL, money=CALL),
        Limit(scope=Scope.RUN, money=RUN, tokens=RUN_TOKENS),
        Limit(scope=Scope.PRINCIPAL, money=PERSON),
        Limit(scope=Scope.DAY, money=DAY, tokens=DAY_TOKENS),
    )
)


@dataclass(frozen=True, kw_only=True)
class Asked:
    """A process asks for a call of a run: `question` in hundredths of a dollar, `rate` in nanodollars per token."""

    process: int
    run: int
    question: int
    rate: int


@dataclass(frozen=True, kw_only=True)
class Ended:
    """The oldest open call of a process ends, and cost that share of what was reserved; None: nobody knows."""

    process: int
    share: float | None


@dataclass(frozen=True, kw_only=True)
class Died:
    """A process is gone, and with it what it knew of its calls."""

    process: int


@dataclass(kw_only=True)
class Charged:
    """What a call may really have cost: what was reserved for it, until it is known to be less."""

    run: int
    money: int
    tokens: int


@dataclass
class World:
    """Three processes on one database, a day that nobody used before, and the truth."""

    stores: list[Store]
    day: str = field(default_factory=lambda: uuid4().hex)
    truth: dict[str, Charged] = field(default_factory=dict)
    running: dict[int, list[str]] = field(default_factory=lambda: {0: [], 1: [], 2: []})

    async def happen(self, step: Asked | Ended | Died) -> None:
        match step:
            case Asked():
                await self.ask(step)
            case Ended(process=process, share=share) if self.running[process]:
                await self.end(process, self.running[process].pop(0), share)
            case Died(process=process):
                self.running[process].clear()

    async def ask(self, asked: Asked) -> None:
        store, call = self.stores[asked.process], uuid4().hex
        bid = Bid(model="m", tokens=100, longest=4_000, question=nanos(asked.question / 100), rate=float(asked.rate))
        whose = {"run": f"{self.day} {asked.run}", "principal": f"cli:{asked.run % 2}", "day": self.day}
        row = replace(ROW, call_id=call, job="", **whose)
        opened = await store.write(lambda tx: store.usage.reserve(tx, row, bid, RULES))
        if isinstance(opened.granted, Grant):
            self.truth[call] = Charged(run=asked.run, money=opened.granted.money or 0, tokens=opened.granted.tokens)
            self.running[asked.process].append(call)

    async def end(self, process: int, call: str, share: float | None) -> None:
        store, charged, usage, cost = self.stores[process], self.truth[call], Usage(known=False), None
        if share is not None:
            charged.money, charged.tokens = int(charged.money * share), int(charged.tokens * share)
            usage, cost = Usage(output=charged.tokens), charged.money / NANO
        await store.write(lambda tx: store.usage.complete(tx, call, usage, cost, "ended", 1.0))

    def judge(self) -> None:
        money, tokens = Counter(), Counter()
        for charged in self.truth.values():
            assert charged.money <= CALL
            for key in (f"run {charged.run}", f"person {charged.run % 2}", "day"):
                money[key] += charged.money
                tokens[key] += charged.tokens
        assert all(money[f"run {run}"] <= RUN and tokens[f"run {run}"] <= RUN_TOKENS for run in range(3))
        assert all(money[f"person {person}"] <= PERSON for person in range(2))
        assert (money["day"] <= DAY, tokens["day"] <= DAY_TOKENS) == (True, True)

    async def books(self) -> tuple[int, int]:
        """What the rows say was used or reserved."""
        spent = await self.stores[0].usage.spent(Scope.DAY, [self.day])
        return spent.money + spent.held_money, spent.tokens + spent.held_tokens


PROCESSES = st.integers(0, 2)
ASKED = st.builds(
    Asked, process=PROCESSES, run=st.integers(0, 2), question=st.integers(0, 40), rate=st.integers(2_500, 225_000)
)
ENDED = st.builds(Ended, process=PROCESSES, share=st.none() | st.floats(0, 1))
DIED = st.builds(Died, process=PROCESSES)


@pytest.fixture
async def three(open_another: OpenAnother) -> list[Store]:
    """Three processes' stores on one database."""
    return [await open_another() for _ in range(3)]


@pytest.mark.timeout(120)
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(ASKED | ENDED | DIED, max_size=25))
async def test_no_limit_is_ever_passed(three: list[Store], steps: list[Asked | Ended | Died]):
    world = World(three)
    for step in steps:
        await world.happen(step)
        world.judge()

    known = list(world.truth.values())
    assert await world.books() == (sum(call.money for call in known), sum(call.tokens for call in known))
