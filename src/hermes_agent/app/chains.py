"""The chain of models of a run: the chosen one, `model.fallbacks`, and every key there is for each."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from hermes_agent.app.runtime import route_of
from hermes_agent.app.settings import Settings
from hermes_agent.core.errors import NoModel
from hermes_agent.host.config import Loaded
from hermes_agent.host.secrets import Secrets
from hermes_agent.providers.route import Route
from hermes_agent.providers.routing.chain import Chain, Leg, leg_of
from hermes_agent.providers.routing.cooldowns import CoolDowns


async def chain_of(
    loaded: Loaded[Settings],
    secrets: Secrets,
    model: str,
    cool_downs: CoolDowns,
    reachable: Callable[[Route], Awaitable[Route]],
) -> Chain:
    """The chain that begins with `model` (empty: the configured one). Raises `NoModel` where that one cannot be asked;
    a fallback that cannot is left out and named in `unusable`. `reachable` gives a route its address."""

    async def leg(name: str) -> Leg:
        route = await reachable(route_of(loaded, secrets, name))
        return leg_of(route, secrets.get, loaded.value.credentials.get(route.vendor.name))

    legs = [await leg(model)]
    unusable = []
    for name in loaded.value.model.fallbacks:
        try:
            found = await leg(name)
        except NoModel as reason:
            unusable.append(f"the fallback {name} cannot be asked: {reason}")
            continue
        if found.route.name not in {one.route.name for one in legs}:
            legs.append(found)
    return Chain(legs=tuple(legs), cool_downs=cool_downs, unusable=tuple(unusable))
