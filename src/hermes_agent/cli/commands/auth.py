"""Subcommands `hermes login`, `logout` and `auth`: sign in to model vendors, and list sign-ins and keys."""

from __future__ import annotations

import asyncio
from datetime import datetime

import click
from click.shell_completion import CompletionItem

from hermes_agent.cli.completing import Known
from hermes_agent.cli.offers import key_name
from hermes_agent.cli.output import columns, remark, show
from hermes_agent.cli.surface import Surface, pass_surface
from hermes_agent.core.clock import SystemClock
from hermes_agent.core.errors import NoModel
from hermes_agent.host.config_edit import set_value
from hermes_agent.host.http import Http
from hermes_agent.providers.route import load_vendor
from hermes_agent.providers.signin.token_refresh import SignedIn, TokenRefresh, sign_in_of
from hermes_agent.providers.signin.ways import Shown, SignIn, by_device
from hermes_agent.providers.vendor import Vendor
from hermes_agent.providers.vendors import VENDORS

WAYS = columns(VENDOR="vendor", HOW="how", WHERE="where", STATE="state", UNTIL=lambda way: way["until"] or " ")
"""A key or sign-in for a vendor: `how` names it, `state` describes it."""


class VendorName(click.ParamType[Vendor]):
    """Click type: a vendor with a sign-in."""

    name = "vendor"

    def convert(self, value: str, _param: click.Parameter | None, _ctx: click.Context | None) -> Vendor:
        vendor = load_vendor(value)
        if not vendor.sign_in:
            names = ", ".join(f"`{each.name}`" for each in with_sign_in())
            raise NoModel(
                f"{vendor.title} takes a key, no sign-in: `hermes config set {(vendor.key_names or ('KEY',))[0]}`. "
                f"One can sign in to {names}."
            )
        return vendor

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        return Known("signins").shell_complete(ctx, param, incomplete)


@click.command(short_help="Sign in to a vendor instead of using a key.")
@click.argument("vendor", type=VendorName(), metavar="VENDOR")
@pass_surface
def login(surface: Surface, vendor: Vendor) -> None:
    """Sign in to VENDOR (openai-codex) instead of using a key.

    Hermes shows a page and a code. After your sign-in there it saves the tokens in auth.json, for
    you alone, and renews them.
    """
    facts = sign_in_of(vendor)
    signed_in = asyncio.run(sign_in(surface, facts))
    if not surface.loaded.value.model.default:
        set_value(surface.home, surface.schema, "model.default", f"{vendor.name}/{vendor.default_model}")
    who = f" as {signed_in.person}" if signed_in.person else ""
    effective = surface.loaded.value.model.default
    note = f"{effective} stays the default model; `hermes model set {vendor.name}` changes that."
    if effective.partition("/")[0] == vendor.name:
        note = f"The default model is now {effective}."
    show(way_of(facts, signed_in), f"Signed in to {facts.title}{who}.", notes=(note,))


@click.command(short_help="Sign out of a vendor.")
@click.argument("vendor", type=VendorName(), metavar="VENDOR")
@pass_surface
def logout(surface: Surface, vendor: Vendor) -> None:
    """Sign out of VENDOR: remove its tokens from auth.json.

    The vendor's own list of devices may show it until it expires.
    """
    forgotten = asyncio.run(token_refresh_of(surface).forget(vendor.name))
    said = f"Signed out of {vendor.title}." if forgotten else f"You are not signed in to {vendor.title}."
    show({"vendor": vendor.name, "forgotten": forgotten}, said)


@click.group(short_help="Show who is signed in, and which keys there are.")
def auth() -> None:
    """Show who is signed in, and which keys there are; never a key or a token itself."""


@auth.command("list")
@pass_surface
def list_(surface: Surface) -> None:
    """List the sign-ins and keys with which vendors can be asked."""
    nothing = "There is no key and no sign-in: `hermes setup`, or `hermes login openai-codex`."
    show([*sign_ins(surface), *keys(surface)], WAYS, nothing=nothing)


async def sign_in(surface: Surface, facts: SignIn) -> SignedIn:
    """Run a vendor's sign-in flow and save its tokens. Raises `ProviderError`."""
    renewal, http = token_refresh_of(surface), Http()
    try:
        return await renewal.keep(facts, await by_device(renewal.issuer(facts, http), tell, SystemClock()))
    finally:
        await http.close()


def tell(shown: Shown) -> None:
    """Show the sign-in page and code."""
    remark(f"Open {shown.page}")
    remark(f"and enter the code {shown.code} there. Share it with no one: a person who asks for it wants your account.")
    remark("Waiting ... (Ctrl-C ends it)")


def sign_ins(surface: Surface) -> list[dict[str, str]]:
    """The saved sign-ins."""
    kept = token_refresh_of(surface).file.read()
    return [way_of(sign_in_of(vendor), kept[vendor.name]) for vendor in with_sign_in() if vendor.name in kept]


def keys(surface: Surface) -> list[dict[str, str]]:
    """The API keys found, with their source."""
    return [
        {"vendor": vendor.name, "how": name, "where": surface.secrets.source(name), "state": "there", "until": ""}
        for vendor in map(load_vendor, VENDORS)
        if (name := key_name(surface, vendor))
    ]


def way_of(facts: SignIn, signed_in: SignedIn) -> dict[str, str]:
    """A sign-in as a row."""
    state = (
        f"sign in again: {signed_in.lost}" if signed_in.lost else "renewed by itself" if signed_in.refresh else "ends"
    )
    until = datetime.fromtimestamp(signed_in.expires).astimezone().isoformat(timespec="minutes")
    who = f"sign-in ({signed_in.person})" if signed_in.person else "sign-in"
    return {"vendor": facts.vendor, "how": who, "where": "auth.json", "state": state, "until": until}


def with_sign_in() -> list[Vendor]:
    """The vendors with a sign-in."""
    return [vendor for vendor in map(load_vendor, VENDORS) if vendor.sign_in]


def token_refresh_of(surface: Surface) -> TokenRefresh:
    """The token store of this home, which renews tokens."""
    return TokenRefresh(surface.home, SystemClock(), surface.secrets.get)
