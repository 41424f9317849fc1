"""Operations on models: list those that a person can choose, send a test question, list API keys with their state, and
end cool-downs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

from hermes_agent.app.models import Answerer, Models, StoredCoolDowns, sign_ins, started
from hermes_agent.app.operations.access import Access, HomeSystem
from hermes_agent.core.clock import RandomIds
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.messages import ModelRequest, Reply, said
from hermes_agent.core.section import Section, freeze
from hermes_agent.host.config import Loaded
from hermes_agent.host.http import Http
from hermes_agent.host.secrets import Secrets
from hermes_agent.providers.broker import Broker
from hermes_agent.providers.catalog import FREE, UNKNOWN, ModelFacts, Price, known_models, overridden
from hermes_agent.providers.route import Route, load_vendor
from hermes_agent.providers.routing.chain import BriefCoolDowns, Use, credentials_of, single
from hermes_agent.providers.settings import CredentialSettings, ModelOverride
from hermes_agent.providers.vendor import Vendor
from hermes_agent.providers.vendors import VENDORS
from hermes_agent.replay.seam import Book, StoredLedger
from hermes_agent.store.cooldowns import CoolDown

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


class Configured(Protocol):
    """Settings and secrets: those of a command, or of a running system."""

    @property
    def loaded(self) -> Loaded[Any]: ...

    @property
    def secrets(self) -> Secrets: ...


def key_name(configured: Configured, vendor: Vendor) -> str:
    """The name under which the vendor's key is set; empty if it is not."""
    return next((name for name in vendor.key_names if configured.secrets.get(name)), "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """A model in the list of `hermes model`. `price` in US dollars per million tokens, `output` the longest reply in
    tokens; None: unknown. `ready`: whether it could be asked now."""

    model: str
    window: int
    output: int | None
    price: Price | None
    tools: bool
    images: bool
    files: bool
    thinking: tuple[str, ...]
    ready: bool


def offers_of(configured: Configured, vendor: str = "", served: Sequence[str] = ()) -> list[Offer]:
    """The models of the catalogue and settings, of all vendors or one; first those that a server lists (`served`)."""
    vendors = {name: load_vendor(name) for name in VENDORS if not vendor or name == vendor}
    ready = {name: is_ready(configured, each) for name, each in vendors.items()}
    own: dict[str, ModelOverride] = configured.loaded.value.models
    mixing = [each.name for each in vendors.values() if each.mixes]
    mixtures = [f"{each}/{name}" for each in mixing for name in configured.loaded.value.moa]
    known = {**dict.fromkeys([*served, *own, *mixtures], UNKNOWN), **known_models()}
    return [
        _offer(name, _known(vendors[maker], facts, own.get(name)), ready=ready[maker])
        for name, facts in known.items()
        if (maker := name.partition("/")[0]) in vendors
    ]


def is_ready(configured: Configured, vendor: Vendor) -> bool:
    """Whether a vendor could be asked now: with a key or sign-in, or because it needs neither. For signed requests,
    whether traces of credentials exist; those of an instance role leave none."""
    if key_name(configured, vendor):
        return True
    if vendor.sign:
        return any(_is_there(configured, trace) for trace in vendor.sign_traces)
    if not vendor.needs_key:
        return True
    return bool(vendor.sign_in) and sign_ins(configured.secrets)(vendor) is not None


def _is_there(configured: Configured, trace: str) -> bool:
    if trace.startswith("~"):
        return Path(trace).expanduser().is_file()
    return bool((configured.secrets.get(trace) or "").strip())


def _known(vendor: Vendor, facts: ModelFacts, own: ModelOverride | None) -> ModelFacts:
    """Model facts with overrides from the settings; free vendors cost nothing."""
    known = replace(facts, price=FREE) if vendor.free else facts
    return known if own is None else overridden(known, own)


def _offer(name: str, facts: ModelFacts, *, ready: bool) -> Offer:
    return Offer(
        model=name,
        window=facts.window,
        output=facts.output,
        price=facts.price,
        tools=facts.tools,
        images=facts.images,
        files=facts.files,
        thinking=facts.efforts if facts.thinking else (),
        ready=ready,
    )
