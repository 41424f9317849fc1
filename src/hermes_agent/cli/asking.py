"""One small question to a model, to see that it answers: the same way, and in the same ledger, as every other call."""

from __future__ import annotations

from contextlib import AsyncExitStack
from dataclasses import replace

from hermes_agent.app.models.models import Answerer, Models
from hermes_agent.cli.surface import Surface
from hermes_agent.core.clock import SystemClock
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.ids import RandomIds
from hermes_agent.core.messages import said
from hermes_agent.core.model import ModelRequest, Reply
from hermes_agent.core.section import Section, freeze
from hermes_agent.host.http import Http
from hermes_agent.host.late import late
from hermes_agent.providers.broker import Broker
from hermes_agent.providers.route import Route
from hermes_agent.providers.routing.chain import single
from hermes_agent.providers.routing.cooldowns import BriefCoolDowns
from hermes_agent.replay.ledger import Book, StoredLedger
from hermes_agent.store.database import Store

SYSTEM = "You are being tested. Answer in one short sentence."
QUESTION = "Say hello."
PATIENCE = 60.0
LONGEST_REPLY = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """What came back: seconds until the end, and the call's own figures."""

    route: str
    seconds: float
    reply: Reply


async def ask_once(surface: Surface, store: Store, route: Route, principal: str = "cli:setup") -> Answered:
    """Ask and wait for the whole answer; a vendor that lives in this process is started. Raises `ProviderError`."""
    clock = SystemClock()
    async with AsyncExitStack() as closing:

        async def reachable(found: Route) -> Route:
            if found.base_url:
                return found
            return replace(found, base_url=await closing.enter_async_context(late(found.vendor.server)()))

        http = Http()
        closing.push_async_callback(http.close)
        ledger = StoredLedger(Book(store=store, clock=clock, rules=surface.loaded.value.rules), principal)
        if route.vendor.mixes:
            answering = Models(
                loaded=surface.loaded,
                secrets=surface.secrets,
                cool_downs=BriefCoolDowns(),
                reachable=reachable,
                http=http,
                clock=clock,
            )
            broker: Answerer = await answering.model(route.name, ledger)
        else:
            settings = surface.loaded.value.model
            broker = Broker(single(await reachable(route), http, clock, settings), ledger)
        began = clock.monotonic()
        request = _request(f"test-{RandomIds().short()}", began + PATIENCE)
        replies = [item async for item in broker.ask(request) if isinstance(item, Reply)]
        return Answered(route=broker.name, seconds=clock.monotonic() - began, reply=replies[-1])


def _request(call_id: str, deadline: float) -> ModelRequest:
    return ModelRequest(
        call_id=call_id,
        session="",
        run="",
        turn=1,
        purpose="test",
        prefix=freeze((Section(name="identity", text=SYSTEM),), ()),
        messages=(said(QUESTION),),
        deadline=deadline,
        max_output=LONGEST_REPLY,
        effort="low",
    )
