"""`hermes model`: which models there are, which one answers, and whether it does."""

from __future__ import annotations

from dataclasses import dataclass

import click

from hermes_agent.cli.asking import ask_once
from hermes_agent.cli.opened import with_store
from hermes_agent.cli.output import remark, say, say_json, table
from hermes_agent.cli.routes import key_name, route_to
from hermes_agent.cli.surface import Surface, pass_surface
from hermes_agent.host.config_edit import set_value
from hermes_agent.host.explain import source_of
from hermes_agent.providers.catalog import Price, known_models
from hermes_agent.providers.route import load_vendor
from hermes_agent.providers.vendor import Vendor
from hermes_agent.providers.vendors import VENDORS


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """One model of the catalogue. `price` is US dollars per million tokens, in and out; None: not known. `ready` says
    whether it could be asked now."""

    model: str
    window: int
    input: float | None
    output: float | None
    ready: bool


@click.group(short_help="Show, choose and test the model.")
def model() -> None:
    """Show, choose and test the model. MODEL is written as vendor/model."""


@model.command("list")
@click.option("--vendor", default="", help="Only this vendor's.")
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
@pass_surface
def list_(surface: Surface, vendor: str, as_json: bool) -> None:
    """List the models of the catalogue. A model that is not in it can be asked all the same, by its name."""
    if vendor:
        load_vendor(vendor)
    offers = [offer for offer in offers_of(surface) if offer.model.startswith(f"{vendor}/" if vendor else "")]
    if as_json:
        say_json(offers)
        return
    rows = [
        (each.model, f"{each.window:,}", _price(each.input), _price(each.output), "yes" if each.ready else "no key")
        for each in offers
    ]
    say(table(rows, ("MODEL", "WINDOW", "$/M IN", "$/M OUT", "READY"), right=(1, 2, 3)))


@model.command()
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
@pass_surface
def show(surface: Surface, as_json: bool) -> None:
    """Show which model answers, where it is asked, and where the choice comes from."""
    loaded = surface.loaded
    route = route_to(surface, surface.invocation.model)
    price: Price | None = route.facts.price
    rows = [
        ("model", route.name),
        ("address", route.base_url),
        ("key", key_of(surface, route.vendor)),
        ("window", f"{route.facts.window:,} tokens"),
        ("price", f"${price.input:g} in, ${price.output:g} out per million tokens" if price else "unknown"),
        ("chosen by", chosen_by(surface, source_of(loaded, "model.default"))),
    ]
    if as_json:
        say_json(dict(rows))
    else:
        say(table(rows))
    if loaded.notice:
        remark(loaded.notice)


@model.command("set")
@click.argument("name", metavar="MODEL")
@pass_surface
def set_(surface: Surface, name: str) -> None:
    """Choose the model that answers from now on."""
    route = route_to(surface, name)
    set_value(surface.home, surface.schema, "model.default", route.name)
    say(f"{route.name} answers from now on.")
    effective = surface.loaded.value.model.default
    if effective != route.name:
        remark(f"But HERMES_MODEL says {effective}, and the environment comes first.")


@model.command()
@click.argument("name", metavar="[MODEL]", default="")
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
@pass_surface
def test(surface: Surface, name: str, as_json: bool) -> None:
    """Ask the model one small question, and show what came back and how long it took."""
    route = route_to(surface, name or surface.invocation.model)
    answered = with_store(surface, lambda store: ask_once(surface, store, route))
    if as_json:
        say_json(answered)
        return
    usage, cost = answered.reply.usage, answered.reply.cost
    say(answered.reply.message.text.strip())
    tokens = f"{usage.input:,} tokens in, {usage.output:,} out" if usage.known else "tokens unknown"
    money = f"${cost:.6f}" if cost is not None else "price unknown"
    remark(f"{answered.route} at {route.host}: {answered.seconds:.2f} s, {tokens}, {money}")


def offers_of(surface: Surface) -> list[Offer]:
    """The catalogue's models of the vendors that this program speaks to."""
    vendors = {name: load_vendor(name) for name in VENDORS}
    found = []
    for name, facts in known_models().items():
        vendor = vendors.get(name.partition("/")[0])
        if vendor is not None:
            price = facts.price
            offer = Offer(
                model=name,
                window=facts.window,
                input=price.input if price else None,
                output=price.output if price else None,
                ready=not vendor.needs_key or key_name(surface, vendor) != "",
            )
            found.append(offer)
    return found


def key_of(surface: Surface, vendor: Vendor) -> str:
    """Where this vendor's key comes from, in words; never the key."""
    name = key_name(surface, vendor)
    if name:
        return f"{name} ({surface.secrets.source(name)})"
    return "none" if vendor.needs_key else "none needed"


def chosen_by(surface: Surface, source: str) -> str:
    """Who decided on the model."""
    if surface.invocation.model:
        return "--model"
    return "the first vendor with a key" if source == "default" else source


def _price(dollars: float | None) -> str:
    return "?" if dollars is None else f"{dollars:g}"
