"""Subcommands `hermes webhook` (manage routes and send a signed test event) and `hermes send`."""

from __future__ import annotations

import asyncio
import base64
import json
import mimetypes
import re
import secrets
import sys
from functools import partial
from pathlib import Path
from typing import Any

import click

from hermes_agent.api.webhooks.signatures import signed
from hermes_agent.app.chats.settings import GatewaySettings, place_named
from hermes_agent.app.operations import chats
from hermes_agent.app.settings import WebhookRoute, WebhookSettings
from hermes_agent.cli.operation import ask
from hermes_agent.cli.output import columns, remark, say, show
from hermes_agent.cli.surface import Surface, pass_surface
from hermes_agent.core.chat import Attachment, Content, Conversation, Letter, SlotState
from hermes_agent.core.clock import RandomIds, SystemClock
from hermes_agent.core.errors import ConfigError, HermesError
from hermes_agent.gateway.channels import CHANNELS
from hermes_agent.gateway.state import read_state
from hermes_agent.host.config_edit import set_values, unset
from hermes_agent.host.http import Http
from hermes_agent.host.secrets import check_name

PATIENCE = 30.0
"""Seconds that are waited for the receipt."""


@click.command(short_help="Send a message to a chat.")
@click.option(
    "-t",
    "--target",
    required=True,
    metavar="CHANNEL[:CHAT[:THREAD]]",
    help="Where, e.g. telegram:123456; a channel alone: its home chat.",
)
@click.option("--file", "files", multiple=True, type=click.Path(exists=True, dir_okay=False), help="A file to add.")
@click.argument("words", nargs=-1)
@pass_surface
def send(surface: Surface, target: str, files: tuple[str, ...], words: tuple[str, ...]) -> None:
    """Send a message; without words, standard input. The gateway delivers it."""
    text = " ".join(words) or sys.stdin.read()
    if not text.strip() and not files:
        raise ConfigError("There is nothing to send.")
    content = Content(text=text, files=tuple(map(_attachment, files)))
    letter = Letter(
        key=f"send:{RandomIds().short()}", to=place_of(target, surface.loaded.value.gateway), content=content
    )
    patience = PATIENCE if read_state(surface.home) is not None else 0.0
    slot = ask(surface, partial(chats.send, letter=letter, patience=patience))
    if slot is not None and slot.state is SlotState.FAILED:
        raise HermesError(f"It could not be sent: {slot.error}")
    if slot is not None and slot.state is SlotState.SENT:
        say("Sent.", state=slot.state.value)
    else:
        say("Queued in the outbox: " + ("the gateway delivers it." if patience else "no gateway runs now."))


def place_of(target: str, settings: GatewaySettings | None = None) -> Conversation:
    """Parse a delivery target; a channel alone means its home chat (`/sethome`). Raises `ConfigError`."""
    place = place_named(target, settings.channels if settings else {})
    if place is None or place.platform not in CHANNELS:
        raise ConfigError(
            f"`{target}` names no chat: CHANNEL:CHAT[:THREAD], or a channel that has a home (`/sethome`), "
            f"with {', '.join(CHANNELS)}."
        )
    return place


def _attachment(path: str) -> Attachment:
    whole = Path(path).resolve()
    media_type = mimetypes.guess_type(whole.name)[0] or "application/octet-stream"
    return Attachment(path=str(whole), name=whole.name, media_type=media_type)


SCHEMES = ("generic", "github", "gitlab", "svix")
ROUTE = re.compile(r"[\w-]{1,60}", re.ASCII)
NO_WORD = re.compile(r"\W")
ACCEPTED = 300
ROUTES = columns(
    ROUTE=lambda each: each[0],
    SIGNED_AS=lambda each: each[1].scheme,
    SECRET=lambda each: each[1].secret or "none",
    EVENTS=lambda each: ", ".join(each[1].events) or "all",
    DELIVERED_TO=lambda each: each[1].deliver,
)


@click.group(short_help="Show webhook routes, and try one out.")
def webhook() -> None:
    """Webhook routes: section `webhooks.routes` of config.yaml."""


@webhook.command("list")
@pass_surface
def list_(surface: Surface) -> None:
    """List the routes."""
    settings: WebhookSettings = surface.loaded.value.webhooks
    nothing = "There are no routes: `hermes webhook add` makes one."
    show(settings.routes, lambda routes: ROUTES(routes.items()), nothing=nothing)


@webhook.command()
@click.argument("route")
@click.option("--scheme", type=click.Choice(SCHEMES), help="How requests are signed; default of a new route: generic.")
@click.option("--secret", default="", metavar="NAME", help="Name of its secret; without a value one is made.")
@click.option("--event", "events", multiple=True, help="An event to accept; repeatable. Default: all.")
@click.option(
    "--filter", "filters", multiple=True, metavar="FIELD=PATTERN", help="A pattern that a field must match; repeatable."
)
@click.option("--prompt", default="", help="The agent's prompt; {a.b} is a field of the payload.")
@click.option("--skill", "skills", multiple=True, help="A skill to put before the prompt; repeatable.")
@click.option("--deliver", default="", metavar="TARGET", help="Where the reply goes, as for `hermes send -t`.")
@click.option("--deliver-only", is_flag=True, help="Deliver the filled prompt itself, and ask no model.")
@pass_surface
def add(surface: Surface, /, **given: Any) -> None:  # noqa: ANN401  click hands each option by its name
    """Add or change a route, and show its address and secret for the sender."""
    route, secret = given["route"], given["secret"]
    if not ROUTE.fullmatch(route):
        raise ConfigError(f"`{route}` cannot name a route: use letters, digits, `-` and `_`.")
    if given["deliver"] not in ("", "log"):
        place_of(given["deliver"], surface.loaded.value.gateway)
    known = surface.loaded.value.webhooks.routes.get(route, WebhookRoute())
    secret = secret or known.secret or f"WEBHOOK_{NO_WORD.sub('_', route).upper()}_SECRET"
    scheme = given["scheme"] or known.scheme
    wanted = {
        "secret": secret,
        "scheme": scheme,
        "events": json.dumps(given["events"]) if given["events"] else "",
        "filters": json.dumps(dict(map(_filter, given["filters"]))) if given["filters"] else "",
        "prompt": given["prompt"],
        "skills": json.dumps(given["skills"]) if given["skills"] else "",
        "deliver": given["deliver"],
        "deliver_only": "true" if given["deliver_only"] else "",
    }
    check_name(secret)
    kept = surface.secrets
    is_new, enables = not kept.get(secret), not surface.loaded.value.webhooks.enabled
    changes = {f"webhooks.routes.{route}.{name}": value for name, value in wanted.items() if value}
    changes |= {"webhooks.enabled": "true"} if enables else {}
    # In one write, and before its secret, without which a server takes nothing: none serves half a route.
    set_values(surface.home, surface.schema, changes)
    if is_new:
        kept.set(secret, made_secret(scheme))
    if enables:
        remark("Webhooks are enabled from now on: `hermes api run` and `hermes gateway run` take them.")
    settings: WebhookSettings = surface.loaded.value.webhooks
    address = f"http://{settings.host}:{settings.port}/webhooks/{route}"
    shown = kept.get(secret) if is_new else f"the saved one, {secret}"
    say(f"Address: {address}\nSecret:  {shown}", route=route, address=address, secret=secret)
    remark("Give both to the sender. For a sender on another machine, put your proxy's name into the address.")


@webhook.command()
@click.argument("route")
@pass_surface
def remove(surface: Surface, route: str) -> None:
    """Remove a route from the settings; its secret stays."""
    _known(surface, route)
    unset(surface.home, surface.schema, f"webhooks.routes.{route}")
    say(f"The route {route} is removed.", route=route)


def made_secret(scheme: str) -> str:
    """Generate a secret of 32 random bytes in the scheme's format."""
    if scheme == "svix":
        return f"whsec_{base64.b64encode(secrets.token_bytes(32)).decode()}"
    return secrets.token_hex(32)


def _filter(text: str) -> tuple[str, str]:
    field, sign, pattern = text.partition("=")
    if not sign or not field:
        raise ConfigError(f"`{text}` is not a filter: FIELD=PATTERN, such as repository.full_name=me/.*")
    try:
        re.compile(pattern)
    except re.error as error:
        raise ConfigError(f"`{pattern}` is not a regular expression ({error}).") from error
    return field, pattern


def _known(surface: Surface, route: str) -> WebhookRoute:
    settings: WebhookSettings = surface.loaded.value.webhooks
    if route not in settings.routes:
        raise ConfigError(f"There is no route `{route}`. There are: {', '.join(settings.routes) or 'none'}.")
    return settings.routes[route]


@webhook.command()
@click.argument("route")
@click.option("--event", default="", help="The event to send; by default the first that the route accepts.")
@click.option("--url", default="", help="Address of the server; by default where the settings say.")
@pass_surface
def test(surface: Surface, route: str, event: str, url: str) -> None:
    """Send the JSON on standard input (without any: `{}`) to a route, signed as its sender would."""
    settings: WebhookSettings = surface.loaded.value.webhooks
    chosen = _known(surface, route)
    secret = surface.secrets.get(chosen.secret) if chosen.secret else ""
    if not secret:
        raise ConfigError(f"webhooks.routes.{route}.secret names no secret that is set.")
    body = (b"" if sys.stdin.isatty() else sys.stdin.buffer.read()) or b"{}"
    event = event or next(iter(chosen.events), "test")
    proof = signed(chosen.scheme, secret, body, SystemClock().now(), event)
    address = f"{url or f'http://{settings.host}:{settings.port}'}/webhooks/{route}"
    answer = asyncio.run(_post(address, body, {"content-type": "application/json", **proof}))
    say(answer)
    if '"status":"ignored"' in answer:  # Whatever else may listen there answers as it likes.
        remark("The route accepts other events, or one of its filters rejected this payload.")


async def _post(address: str, body: bytes, headers: dict[str, str]) -> str:
    http = Http()
    try:
        answer = await http.client(address).post(address, content=body, headers=headers, timeout=30)
    except http.failures as error:
        raise HermesError(
            f"{address} cannot be reached ({error}): `hermes api run` or `hermes gateway run` with `webhooks.enabled`."
        ) from error
    finally:
        await http.close()
    if answer.status_code >= ACCEPTED:
        raise HermesError(f"{answer.status_code}: {answer.text}")
    return str(answer.text)
