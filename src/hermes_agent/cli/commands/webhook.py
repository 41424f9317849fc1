"""`hermes webhook`: the routes, and a signed report to try one out."""

from __future__ import annotations

import asyncio
import sys

import click

from hermes_agent.app.serving.settings import WebhookSettings
from hermes_agent.cli.output import remark, say, say_json, table
from hermes_agent.cli.surface import Surface, pass_surface
from hermes_agent.core.clock import SystemClock
from hermes_agent.core.errors import ConfigError, HermesError
from hermes_agent.host.http import Http
from hermes_agent.host.late import late

SIGNED = "hermes_agent.api.webhooks.signatures:signed"
ACCEPTED = 300


@click.group(short_help="Show webhook routes, and try one out.")
def webhook() -> None:
    """Webhook routes: section `webhooks.routes` of config.yaml."""


@webhook.command("list")
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
@pass_surface
def list_(surface: Surface, as_json: bool) -> None:
    """List the routes."""
    settings: WebhookSettings = surface.loaded.value.webhooks
    if as_json:
        say_json(settings.routes)
    elif not settings.routes:
        remark("There are no routes. docs/webhooks.md shows one.")
    else:
        rows = [
            (name, route.scheme, route.secret or "none", ", ".join(route.events) or "all", route.deliver)
            for name, route in settings.routes.items()
        ]
        say(table(rows, ("ROUTE", "SIGNED AS", "SECRET", "EVENTS", "DELIVERED TO")))


@webhook.command()
@click.argument("route")
@click.option("--event", default="test", show_default=True, help="The event that is reported.")
@click.option("--url", default="", help="Address of the server; by default where the settings say.")
@pass_surface
def test(surface: Surface, route: str, event: str, url: str) -> None:
    """Send the JSON on standard input to a route, signed as its sender would."""
    settings: WebhookSettings = surface.loaded.value.webhooks
    if route not in settings.routes:
        raise ConfigError(f"There is no route `{route}`. There are: {', '.join(settings.routes) or 'none'}.")
    chosen = settings.routes[route]
    secret = surface.secrets.get(chosen.secret) if chosen.secret else ""
    if not secret:
        raise ConfigError(f"webhooks.routes.{route}.secret names no secret that is set.")
    body = sys.stdin.buffer.read() or b"{}"
    proof: dict[str, str] = late(SIGNED)(chosen.scheme, secret, body, SystemClock().now(), event)
    address = f"{url or f'http://{settings.host}:{settings.port}'}/webhooks/{route}"
    say(asyncio.run(_post(address, body, {"content-type": "application/json", **proof})))


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
