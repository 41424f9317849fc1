"""Subcommand `hermes model`: list, search, choose and test models, and show keys and background models."""

from __future__ import annotations

from functools import partial

import click

from hermes_agent.app.auxiliary.settings import AuxiliaryModel, Purpose, TitleModel
from hermes_agent.app.operations.models import KeyState, ask_once, list_keys, wake_keys
from hermes_agent.cli.exits import Exit
from hermes_agent.cli.offers import (
    Offer,
    all_offers,
    key_name,
    refuse_typo,
    route_to,
    route_without,
    searched,
    single,
)
from hermes_agent.cli.operation import ask
from hermes_agent.cli.output import columns, remark, show, table
from hermes_agent.cli.picker_choices import Choice, pick
from hermes_agent.cli.surface import Surface, pass_surface
from hermes_agent.core.errors import NoModel
from hermes_agent.host.config_edit import set_value, source_of
from hermes_agent.providers.abilities import abilities, limits_of
from hermes_agent.providers.catalog import Price, catalogue_date
from hermes_agent.providers.route import Route, load_vendor


@click.group(short_help="Show, choose and test the model.")
def model() -> None:
    """Show, choose and test the model. MODEL is written as vendor/model."""


@model.command("list")
@click.option("--vendor", default="", help="Only this vendor's.")
@click.option("--ready", is_flag=True, help="Only those that could be asked now.")
@pass_surface
def list_(surface: Surface, vendor: str, ready: bool) -> None:
    """List the models of the configured server and of the catalogue. Others can be asked by their names, too."""
    if vendor:
        load_vendor(vendor)
    show([offer for offer in all_offers(surface, vendor) if offer.ready or not ready], OFFERS, nothing=NONE_READY)


@model.command()
@click.argument("words", nargs=-1, required=True)
@pass_surface
def search(surface: Surface, words: tuple[str, ...]) -> None:
    """Find models by parts of their names; `images`, `files` and `ready` find those that are so."""
    nothing = f"Nothing of the catalogue fits `{' '.join(words)}`."
    show(searched(all_offers(surface), " ".join(words)), OFFERS, nothing=nothing)


@model.command("show")
@click.argument("name", metavar="[MODEL]", default="")
@pass_surface
def show_(surface: Surface, name: str) -> None:
    """Show a model, without a name the default one: its address, abilities and price."""
    loaded = surface.loaded
    route, missing = route_without(surface, name or surface.invocation.model)
    rows = [
        ("model", route.name),
        ("address", route.base_url or "in this process"),
        ("dialect", route.dialect),
        ("key", key_of(surface, route)),
        ("window", f"{route.facts.window:,} tokens"),
        ("longest reply", f"{route.facts.output:,} tokens" if route.facts.output else "unknown"),
        ("price", price_of(route.facts.price)),
        *abilities(route.facts).items(),
        ("catalogue", catalogue_date()),
    ]
    if not name:
        rows.append(("chosen by", chosen_by(surface, source_of(loaded, "model.default"))))
    figures = {"window": route.facts.window, "longest reply": route.facts.output, "price": route.facts.price}
    limits = limits_of(route)
    notes = filter(None, (*limits, missing, loaded.notice))
    show({**dict(rows), **figures, "limits": limits}, table(rows), notes=notes)


@model.command("set")
@click.argument("name", metavar="MODEL")
@click.option(
    "--for",
    "purpose",
    type=click.Choice([each.value for each in Purpose]),
    help="Only for this purpose.",
)
@click.option("--force", is_flag=True, help="Accept a name that is not in the catalogue.")
@pass_surface
def set_(surface: Surface, name: str, purpose: str | None, force: bool) -> None:
    """Set the default model, or the model of a background purpose (--for)."""
    if not force:
        refuse_typo(surface, route_without(surface, name)[0])
    if purpose is None:
        keep(surface, name)
        return
    route = single(surface, name)
    set_value(surface.home, surface.schema, f"auxiliary.{purpose}.model", route.name)
    kept = {"model": route.name, "effective": route.name, "notes": limits_of(route)}
    show(kept, f"{route.name} now works for `{purpose}`.")


@model.command("pick")
@click.option("--vendor", default="", help="Only this vendor's.")
@click.option("--all", "every", is_flag=True, help="Include models without a key.")
@pass_surface
def pick_(surface: Surface, vendor: str, every: bool) -> int:
    """Choose the model from a list that shrinks while you type; without a terminal the list is numbered."""
    if vendor:
        load_vendor(vendor)
    offers = [offer for offer in all_offers(surface, vendor) if offer.ready or every]
    chosen = pick("Which model should answer?", [Choice(name=each.model, about=about(each)) for each in offers])
    if chosen is None:
        remark("Nothing was changed.")
        return Exit.STOPPED
    keep(surface, chosen.name)
    return Exit.OK


@model.command()
@click.argument("name", metavar="[MODEL]", default="")
@pass_surface
def test(surface: Surface, name: str) -> None:
    """Ask the model one small question, and show what came back and how long it took."""
    route = route_to(surface, name or surface.invocation.model)
    answered = ask(surface, partial(ask_once, secrets=surface.secrets, route=route))
    usage, cost = answered.reply.usage, answered.reply.cost
    tokens = f"{usage.input:,} tokens in, {usage.output:,} out" if usage.known else "tokens unknown"
    money = f"${cost:.6f}" if cost is not None else "price unknown"
    where = f"at {route.host}" if route.host else "in this process"
    took = f"{answered.route} {where}: {answered.seconds:.2f} s, {tokens}, {money}"
    show(answered, answered.reply.message.text.strip(), notes=(took, *limits_of(route)))


OFFERS = columns(
    (1, 2, 3, 4, 5),
    MODEL="model",
    WINDOW="window",
    REPLY=lambda each: each.output or "?",
    **{"$/M IN": lambda each: _price(each, "input")},
    CACHED=lambda each: _price(each, "cached"),
    **{"$/M OUT": lambda each: _price(each, "output")},
    READY=lambda each: "yes" if each.ready else "no key",
)
NONE_READY = "None could be asked now: `hermes setup` chooses one."


def _price(offer: Offer, part: str) -> str:
    return "?" if offer.price is None else f"{getattr(offer.price, part):g}"


def keep(surface: Surface, name: str) -> None:
    """Save the chosen model and print what it means."""
    route, missing = route_without(surface, name)
    set_value(surface.home, surface.schema, "model.default", route.name)
    notes = (*limits_of(route), *([missing] if missing else []))
    effective = surface.loaded.value.model.default
    words = f"{route.name} is now the default model." if missing else f"The default model is now {route.name}."
    but = f"But HERMES_MODEL says {effective}, and the environment comes first."
    facts = {"model": route.name, "effective": effective, "notes": notes}
    show(facts, words, notes=notes if effective == route.name else (but, *notes))


def key_of(surface: Surface, route: Route) -> str:
    """Where the key comes from, in words; never the key itself."""
    name = key_name(surface, route.vendor)
    if name:
        return f"{name} ({surface.secrets.source(name)})"
    if route.source is not None:
        return "a sign-in (auth.json)"
    return "none" if route.vendor.needs_key else "none needed"


def chosen_by(surface: Surface, source: str) -> str:
    """What determined the model: an option, a setting or a default."""
    if surface.invocation.model:
        return "--model"
    return "the first vendor with a key" if source == "default" else source


def price_of(price: Price | None) -> str:
    """A price as text."""
    if price is None:
        return "unknown"
    words = f"${price.input:g} in, ${price.output:g} out per million tokens; ${price.cached:g} from a cache"
    if price.long is None:
        return words
    return f"{words}; above {price.long_from:,} tokens ${price.long.input:g} in, ${price.long.output:g} out"


def about(offer: Offer) -> str:
    """An offer's window and price as text."""
    price = offer.price
    cost = "price unknown" if price is None else f"${price.input:g} in, ${price.output:g} out"
    return f"{offer.window:,} tokens, {cost}{'' if offer.ready else ', no key'}"


@click.command(short_help="Show the keys and their pauses.")
@click.option("--vendor", default="", help="Only this vendor's.")
@click.option("--reset", is_flag=True, help="End all pauses.")
@pass_surface
def credentials(surface: Surface, vendor: str, reset: bool) -> None:
    """Show the keys of each vendor by name, how often each was used in a day, and what is paused after a failure.

    Several keys for one vendor: NAME_2, NAME_3 and so on in .env, or the section `credentials` of config.yaml.
    """
    if vendor:
        load_vendor(vendor)
    if reset:
        woken = ask(surface, partial(wake_keys, vendor=vendor))
        show({"woken": woken}, f"{woken} of them can be used again." if woken else "Nothing was paused.")
    else:
        states = ask(surface, partial(list_keys, secrets=surface.secrets, vendor=vendor))
        listed = columns((3,), VENDOR="vendor", KEY="credential", FROM="source", CALLS="calls", STATE=_state)
        show(states, listed, nothing="There is no key: `hermes setup` asks for one.")


def _state(one: KeyState) -> str:
    if not one.rests:
        return "ready"
    return f"paused for {one.rests:.0f} s{f' for {one.model}' if one.model else ''}: {one.reason}"


WITHOUT = {**dict.fromkeys(Purpose, "the session's model"), Purpose.VISION: "none"}
"""Who does the work where no model is named for it."""


@click.command()
@pass_surface
def auxiliary(surface: Surface) -> None:
    """List the background models by purpose (section `auxiliary`)."""
    chosen = surface.loaded.value.auxiliary
    listed = columns(
        (2, 3, 4),
        PURPOSE="purpose",
        MODEL=lambda each: each["model"] or WITHOUT[each["purpose"]],
        SECONDS=lambda each: _figure(each["seconds"]),
        **{"$/DAY": lambda each: _figure(each["money"]), "TOKENS/DAY": lambda each: _figure(each["tokens"])},
        _="note",
    )
    show([purpose_model(surface, purpose, chosen.of(purpose)) for purpose in Purpose], listed)


def purpose_model(surface: Surface, purpose: Purpose, chosen: AuxiliaryModel) -> dict[str, object]:
    """A purpose's configured model (empty: none), its limits (seconds per call, US dollars and tokens per day), and
    `note`: why it cannot be asked."""
    note = ""
    if isinstance(chosen, TitleModel) and not chosen.enabled:
        note = "turned off"
    elif chosen.model:
        try:
            single(surface, chosen.model)
        except NoModel as error:
            note = f"cannot be asked: {error}"
    figures = {name: getattr(chosen, name) for name in ("model", "seconds", "money", "tokens")}
    return {"purpose": purpose, **figures, "note": note}


def _figure(limit: float | None) -> str:
    return "-" if limit is None else f"{limit:,}" if isinstance(limit, int) else f"{limit:g}"


model.add_command(credentials)
model.add_command(auxiliary)
