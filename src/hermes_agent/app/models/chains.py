"""The chain of models of a run: the chosen one, `model.fallbacks`, and every key there is for each."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from dataclasses import replace

from hermes_agent.app.models.routes import route_of
from hermes_agent.app.settings import Settings
from hermes_agent.core.errors import NoModel
from hermes_agent.host.config import Loaded
from hermes_agent.host.secrets import Secrets
from hermes_agent.providers.route import Route
from hermes_agent.providers.routing.chain import Chain, Leg, leg_of
from hermes_agent.providers.routing.cooldowns import CoolDowns

log = logging.getLogger(__name__)

Reachable = Callable[[Route], Awaitable[Route]]
"""Gives a route its address."""


async def chain_of(
    loaded: Loaded[Settings], secrets: Secrets, model: str, cool_downs: CoolDowns, reachable: Reachable
) -> Chain:
    """The chain that begins with `model` (empty: the configured one). Raises `NoModel` where that one cannot be asked;
    a fallback that cannot is left out and named in `unusable`."""
    legs = [await _leg(loaded, secrets, model, reachable)]
    unusable = []
    for name in loaded.value.model.fallbacks:
        try:
            found = await _leg(loaded, secrets, name, reachable)
        except NoModel as reason:
            unusable.append(f"the fallback {name} cannot be asked: {reason}")
            continue
        if found.route.name not in {one.route.name for one in legs}:
            legs.append(found)
    return Chain(legs=tuple(legs), cool_downs=cool_downs, unusable=tuple(unusable))


async def chain_before(
    first: str, loaded: Loaded[Settings], secrets: Secrets, model: str, cool_downs: CoolDowns, reachable: Reachable
) -> Chain:
    """`chain_of` with `first` before it; where that one cannot be asked it is left out, and the log says why. Raises
    `NoModel` where `model` cannot be asked either."""
    chain = await chain_of(loaded, secrets, model, cool_downs, reachable)
    try:
        leg = await _leg(loaded, secrets, first, reachable)
    except NoModel as reason:
        log.warning("%s cannot be asked, %s is asked instead: %s", first, chain.legs[0].route.name, reason)
        return replace(chain, unusable=(f"{first} cannot be asked: {reason}", *chain.unusable))
    behind = tuple(each for each in chain.legs if each.route.name != leg.route.name)
    return replace(chain, legs=(leg, *behind))


async def chain_alone(
    first: str, loaded: Loaded[Settings], secrets: Secrets, cool_downs: CoolDowns, reachable: Reachable
) -> Chain:
    """The chain of `first` and no other. Raises `NoModel`."""
    return Chain(legs=(await _leg(loaded, secrets, first, reachable),), cool_downs=cool_downs)


async def _leg(loaded: Loaded[Settings], secrets: Secrets, name: str, reachable: Reachable) -> Leg:
    route = route_of(loaded, secrets, name)
    if route.vendor.mixes:
        raise NoModel(f"{route.name} is a mixture, which only answers conversations: name a single model here.")
    route = await reachable(route)
    return leg_of(route, secrets.get, loaded.value.credentials.get(route.vendor.name))
