"""One small question to a model, to see that it answers: the same way, and in the same ledger, as every other call."""

from __future__ import annotations

from dataclasses import dataclass

from hermes_agent.app.ledger import StoredLedger
from hermes_agent.cli.surface import Surface
from hermes_agent.core.clock import SystemClock
from hermes_agent.core.ids import RandomIds
from hermes_agent.core.messages import said
from hermes_agent.core.model import ModelRequest, Reply
from hermes_agent.core.section import Section, freeze
from hermes_agent.host.http import Http
from hermes_agent.providers.broker import Broker
from hermes_agent.providers.route import Route
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
    """Ask and wait for the whole answer. Raises `ProviderError`."""
    clock, http = SystemClock(), Http()
    began = clock.monotonic()
    call = RandomIds().short()
    settings = surface.loaded.value.model
    ledger = StoredLedger(store, clock, principal)
    broker = Broker(route, ledger=ledger, http=http, clock=clock, settings=settings)
    request = ModelRequest(
        call_id=f"test-{call}",
        session="",
        run="",
        turn=1,
        purpose="test",
        prefix=freeze((Section(name="identity", text=SYSTEM),), ()),
        messages=(said(QUESTION),),
        deadline=began + PATIENCE,
        max_output=LONGEST_REPLY,
        effort="low",
    )
    try:
        replies = [item async for item in broker.ask(request) if isinstance(item, Reply)]
    finally:
        await http.close()
    return Answered(route=broker.name, seconds=clock.monotonic() - began, reply=replies[-1])
