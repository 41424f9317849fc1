"""A limit of money holds across `kill -9`, between processes, with calls side by side, as the model server counts it.

The server keeps its own bill: every answer that it began to write is charged whole, also where nobody waited for it.
"""

import asyncio
import json
import random
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from hermes_agent.core.clock import SystemClock
from hermes_agent.core.errors import LimitReached
from hermes_agent.core.messages import ModelRequest, Usage, said
from hermes_agent.core.spending import Limit, Rules, Scope, nanos
from hermes_agent.host.http import Http
from hermes_agent.providers.broker import Broker
from hermes_agent.providers.demo.script import Answer, Call, Heard, Pace
from hermes_agent.providers.route import choose
from hermes_agent.providers.routing.chain import single
from hermes_agent.providers.settings import ModelSettings
from hermes_agent.replay.seam import Book, StoredLedger
from hermes_agent.store.database import open_store
from hermes_agent.store.usage import GroupBy
from hermes_agent.testing.model_servers import KEY, ModelServer, openai_model, serving, serving_in_thread
from tests.children import Said, said_by, started
from tests.providers.asking import PREFIX

IN, OUT = 4.0, 400.0  # US dollars per million tokens
LONGEST = 100
LIMIT = 1.0
LIMIT_REACHED = 6
CONFIG = """model:
  default: custom/m
  base_url: {url}
  price_input: {tokens_in}
  price_output: {tokens_out}
  max_output: {longest}
agent:
  max_turns: 100
store:
  url: "{store}"
budget:
  {scope}: {{money: {limit}}}
"""


def endless(heard: Heard) -> Answer:
    """One more tool call each time, as long as the reply may be: about five cents, a hundred turns of it."""
    assert heard.max_output is not None
    tokens = len(heard.prompt.encode()) // 4
    usage = Usage(input=tokens, output=min(LONGEST, heard.max_output))
    return Answer(pieces=(Call("todo", {}),), usage=usage, pace=Pace(first=0.03))


def bill(server: ModelServer) -> float:
    """What the server charges, in US dollars."""
    usages = [exchange.usage for exchange in server.exchanges if exchange.usage is not None]
    return sum(usage.input * IN + usage.output * OUT for usage in usages) / 1e6


class Shop:
    """A home whose model costs money, and the program on it."""

    def __init__(self, folder: Path, url: str, scope: str, store: str = "") -> None:
        self.home, self.work = folder / "home", folder / "work"
        self.home.mkdir()
        self.work.mkdir()
        prices = {"tokens_in": IN, "tokens_out": OUT, "longest": LONGEST, "limit": LIMIT}
        (self.home / "config.yaml").write_text(CONFIG.format(url=url, scope=scope, store=store, **prices))

    def child(self, *arguments: str) -> subprocess.Popen[bytes]:
        return started(*arguments, home=self.home, folder=self.work, CUSTOM_API_KEY=KEY)

    def limits(self) -> list[dict[str, float]]:
        """What `hermes cost --limits` shows."""
        shown: list[dict[str, float]] = json.loads(said_by(self.child("cost", "--limits", "--json")).out)
        return shown


def killed_until_the_limit(
    shop: Shop, chance: random.Random, kills: int, spent: Callable[[], float]
) -> tuple[Said, int]:
    """Run, kill and take up again, until a run ends by itself; what it said, and how often it was killed. Before its
    first call there would be nothing to take up. Near its limit it is left alone: killed after its end, before its
    last word, it would be asked for another run."""
    child, done = shop.child("-z", "Go"), 0
    while True:
        try:
            return said_by(child) if done == kills else wait(child, chance.uniform(0.6, 1.0)), done
        except subprocess.TimeoutExpired:
            if not spent():
                continue
            if done and spent() > LIMIT / 2:
                return said_by(child), done
            child.kill()
            child.communicate()
            done += 1
            child = shop.child("-c", "-z", "")


def wait(child: subprocess.Popen[bytes], seconds: float) -> Said:
    out, err = child.communicate(timeout=seconds)
    return Said(code=child.returncode, out=out.decode(), err=err.decode())


@pytest.mark.timeout(120)
@pytest.mark.parametrize("scope", ["run", "day"])
def test_a_loop_that_would_cost_five_stops_at_one_also_across_kills(tmp_path, scope):
    chance = random.Random(scope)
    with serving_in_thread(openai_model(endless)) as server:
        shop = Shop(tmp_path, server.url, scope)
        said, kills = killed_until_the_limit(shop, chance, kills=4, spent=lambda: bill(server))
        spent = bill(server)

        assert (said.code, kills > 0) == (LIMIT_REACHED, True)
        assert f"`budget.{scope}.money`" in said.out + said.err
        assert 0.5 < spent <= LIMIT
        (line,) = shop.limits()
        assert spent <= line["used"] + line["reserved"] + 1e-9
        assert line["used"] + line["reserved"] <= LIMIT


@pytest.mark.timeout(120)
def test_a_limit_of_the_day_is_there_after_a_restart_and_a_limit_of_the_run_begins_anew(tmp_path):
    with serving_in_thread(openai_model(endless)) as server:
        for scope in ("day", "run"):
            (tmp_path / scope).mkdir()
            shop, before = Shop(tmp_path / scope, server.url, scope), bill(server)
            assert said_by(shop.child("-z", "Go")).code == LIMIT_REACHED
            once = bill(server) - before
            assert said_by(shop.child("-c", "-z", "Go on")).code == LIMIT_REACHED
            twice = bill(server) - before

            assert 0.85 < once <= LIMIT
            assert once <= twice <= LIMIT if scope == "day" else LIMIT < twice <= 2 * LIMIT


@pytest.mark.timeout(120)
def test_processes_share_the_limit_of_the_day(tmp_path, database_url):
    with serving_in_thread(openai_model(endless)) as server:
        shop = Shop(tmp_path, server.url, "day", store=database_url)
        (shop.work / "other").mkdir()
        children = [shop.child("-z", f"Go {number}") for number in range(3)]
        said = [said_by(child) for child in children]

        assert [each.code for each in said] == [LIMIT_REACHED] * 3
        assert 0.8 < bill(server) <= LIMIT


async def test_calls_side_by_side_share_a_limit(database_url):
    rules = Rules(limits=(Limit(scope=Scope.DAY, money=nanos(LIMIT)),))
    http, clock, refused = Http(), SystemClock(), []
    store = await open_store(database_url)
    async with serving(openai_model(endless)) as server:
        settings = ModelSettings(
            default="custom/m", base_url=server.url, price_input=IN, price_output=OUT, max_output=LONGEST
        )
        book = Book(store=store, clock=clock, rules=rules)
        ledger = StoredLedger(book, "cli:ann")
        broker = Broker(single(choose(settings, lambda _: KEY), http, clock, settings), ledger)

        async def ask(number: int) -> None:
            messages = (said("Go " * 1_000),)
            request = ModelRequest(
                call_id=f"c{number}", session="", run="", turn=1, purpose="chat", prefix=PREFIX, messages=messages
            )
            try:
                async for _ in broker.ask(request):
                    pass
            except LimitReached:
                refused.append(number)

        async with asyncio.TaskGroup() as group:
            for number in range(100):
                group.create_task(ask(number))

        (total,) = await store.usage.totals(GroupBy.PROVIDER)
        await http.close()
        await store.close()

    assert 0.5 < bill(server) <= LIMIT
    assert total.cost == pytest.approx(bill(server))
    assert total.calls + len(refused) == 100
