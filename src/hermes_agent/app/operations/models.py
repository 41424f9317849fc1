"""Operations on models: send a test question, list API keys with their state, and end cool-downs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import TYPE_CHECKING

from hermes_agent.app.models import Answerer, Models, StoredCoolDowns, started
from hermes_agent.core.clock import RandomIds
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.messages import ModelRequest, Reply, said
from hermes_agent.core.section import Section, freeze
from hermes_agent.host.http import Http
from hermes_agent.host.secrets import Secrets
from hermes_agent.providers.broker import Broker
from hermes_agent.providers.route import Route, load_vendor
from hermes_agent.providers.routing.chain import BriefCoolDowns, Use, credentials_of, single
from hermes_agent.providers.settings import CredentialSettings
from hermes_agent.providers.vendors import VENDORS
from hermes_agent.replay.seam import Book, StoredLedger
from hermes_agent.store.cooldowns import CoolDown

if TYPE_CHECKING:
    from hermes_agent.app.operations.access import Access, HomeSystem

SYSTEM = "You are being tested. Answer in one short sentence."
QUESTION = "Say hello."
PATIENCE = 60.0
LONGEST_REPLY = 500
DAY = 24 * 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """Result of a test question to a model: its route, the seconds it took, and the reply."""

    route: str
    seconds: float
    reply: Reply


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyState:
    """State of one API key by name, or (`credential` empty) of one model in cool-down. `rests`: seconds of cool-down
    left (0: usable), `reason` its error, `model` what it applies to (empty: all); `calls` in the last 24 hours."""

    vendor: str
    credential: str = ""
    source: str = ""
    strategy: str = ""
    rests: float = 0.0
    reason: str = ""
    model: str = ""
    calls: int = 0


async def ask_once(
    access: Access[HomeSystem], secrets: Secrets, route: Route, principal: str = "cli:setup"
) -> Answered:
    """Send a test question and wait for the reply; the call is recorded in the ledger. Starts an in-process vendor
    if needed. Raises `ProviderError`."""
    loaded, clock = access.system.loaded, access.system.clock
    async with AsyncExitStack() as closing:

        async def reachable(found: Route) -> Route:
            if found.base_url:
                return found
            return replace(found, base_url=await started(found.vendor, closing))

        http = Http()
        closing.push_async_callback(http.close)
        ledger = StoredLedger(Book(store=access.system.store, clock=clock, rules=loaded.value.rules), principal)
        if route.vendor.mixes:
            answering = Models(
                loaded=loaded,
                secrets=secrets,
                cool_downs=BriefCoolDowns(),
                reachable=reachable,
                http=http,
                clock=clock,
            )
            broker: Answerer = await answering.model(route.name, ledger)
        else:
            settings = loaded.value.model
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


async def wake_keys(access: Access[HomeSystem], vendor: str = "") -> int:
    """End all cool-downs, of one vendor or all. Returns their number. Owner only."""
    access.check_owner("Only the owner wakes keys.")
    return await access.system.store.cool_downs.forget(vendor)


async def list_keys(access: Access[HomeSystem], secrets: Secrets, vendor: str = "") -> list[KeyState]:
    """List all keys and cooled-down models, of one vendor or all. Owner only."""
    access.check_owner("Only the owner sees which keys there are.")
    now = access.system.clock.now()
    cool_downs = StoredCoolDowns(access.system.store, access.system.clock)
    resting = await cool_downs.resting(now)
    found = []
    for name in VENDORS:
        if vendor in {"", name}:
            uses = await cool_downs.uses(name, now - DAY)
            settings = access.system.settings.credentials.get(name, CredentialSettings())
            found += _states(name, secrets, settings, resting, uses, now)
    return found


def _states(
    vendor: str,
    secrets: Secrets,
    settings: CredentialSettings,
    resting: Sequence[CoolDown],
    uses: Mapping[str, Use],
    now: float,
) -> list[KeyState]:
    found = []
    for one in credentials_of(load_vendor(vendor), secrets.get, settings):
        mine = [rest for rest in resting if (rest.provider, rest.credential, rest.mark) == (vendor, one.name, one.mark)]
        last = max(mine, key=lambda rest: rest.until, default=None)
        found.append(
            KeyState(
                vendor=vendor,
                credential=one.name,
                source=secrets.source(one.name),
                strategy=settings.strategy,
                rests=0.0 if last is None else last.until - now,
                reason="" if last is None else last.reason,
                model="" if last is None else last.model,
                calls=uses.get(one.name, Use()).calls,
            )
        )
    models = [rest for rest in resting if rest.provider == vendor and not rest.credential]
    found += [KeyState(vendor=vendor, rests=one.until - now, reason=one.reason, model=one.model) for one in models]
    return found
