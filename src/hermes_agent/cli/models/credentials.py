"""`hermes model credentials`: the keys of each vendor by name, which of them rest, and how to wake them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import click

from hermes_agent.app.models.models import StoredCoolDowns
from hermes_agent.cli.output import remark, say, say_json, table
from hermes_agent.cli.session_lookup import with_store
from hermes_agent.cli.surface import Surface, pass_surface
from hermes_agent.core.clock import SystemClock
from hermes_agent.core.dataclass import dataclass
from hermes_agent.providers.route import load_vendor
from hermes_agent.providers.routing.chain import credentials_of
from hermes_agent.providers.routing.cooldowns import Rest, Use
from hermes_agent.providers.settings import CredentialSettings
from hermes_agent.providers.vendors import VENDORS
from hermes_agent.store.database import Store

DAY = 24 * 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyState:
    """A key, by its name. `rests` is for how many seconds (0: it may be used), `reason` the error that it rests for,
    `model` the one that it rests for (empty: for all); `calls` are those of the last 24 hours."""

    vendor: str
    credential: str
    source: str
    strategy: str
    rests: float
    reason: str
    model: str
    calls: int


@click.command(
    short_help="Show the keys and what rests.", epilog="Example: `hermes model credentials --vendor openai --reset`."
)
@click.option("--vendor", default="", help="Only this vendor's.")
@click.option("--reset", is_flag=True, help="Use everything again that rests.")
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
@pass_surface
def credentials(surface: Surface, vendor: str, reset: bool, as_json: bool) -> None:
    """Show the keys of each vendor by name, how often each was used in a day, and what rests after a failure.

    Several keys for one vendor: NAME_2, NAME_3 and so on in .env, or the section `credentials` of config.yaml.
    """
    if vendor:
        load_vendor(vendor)
    if reset:
        woken = with_store(surface, lambda store: store.cool_downs.forget(vendor))
        if as_json:
            say_json({"woken": woken})
        else:
            say(f"{woken} of them can be used again." if woken else "Nothing rested.")
        return
    states = with_store(surface, lambda store: states_of(surface, store, vendor))
    if as_json:
        say_json(states)
    elif states:
        rows = [(one.vendor, one.credential or "-", one.source, f"{one.calls:,}", _state(one)) for one in states]
        say(table(rows, ("VENDOR", "KEY", "FROM", "CALLS", "STATE"), right=(3,)))
    else:
        remark("There is no key: `hermes setup` asks for one.")


async def states_of(surface: Surface, store: Store, vendor: str) -> list[KeyState]:
    """Every key that is there and every model that rests."""
    now = SystemClock().now()
    cool_downs = StoredCoolDowns(store, SystemClock())
    resting = await cool_downs.resting(now)
    found = []
    for name in VENDORS:
        if vendor in {"", name}:
            found += _states(surface, name, resting, await cool_downs.uses(name, now - DAY), now)
    return found


def _states(
    surface: Surface, vendor: str, resting: Sequence[Rest], uses: Mapping[str, Use], now: float
) -> list[KeyState]:
    settings = surface.loaded.value.credentials.get(vendor, CredentialSettings())
    found = []
    for one in credentials_of(load_vendor(vendor), surface.secrets.get, settings):
        mine = [rest for rest in resting if (rest.provider, rest.credential, rest.mark) == (vendor, one.name, one.mark)]
        last = max(mine, key=lambda rest: rest.until, default=None)
        found.append(
            KeyState(
                vendor=vendor,
                credential=one.name,
                source=surface.secrets.source(one.name),
                strategy=settings.strategy,
                rests=0.0 if last is None else last.until - now,
                reason="" if last is None else last.reason,
                model="" if last is None else last.model,
                calls=uses.get(one.name, Use()).calls,
            )
        )
    return [*found, *(_model(rest, now) for rest in resting if rest.provider == vendor and not rest.credential)]


def _model(rest: Rest, now: float) -> KeyState:
    """A model that rests, whatever the key."""
    return KeyState(
        vendor=rest.provider,
        credential="",
        source="",
        strategy="",
        rests=rest.until - now,
        reason=rest.reason,
        model=rest.model,
        calls=0,
    )


def _state(one: KeyState) -> str:
    if not one.rests:
        return "ready"
    return f"rests {one.rests:.0f} s{f' for {one.model}' if one.model else ''}: {one.reason}"
