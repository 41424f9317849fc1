"""`hermes model credentials`: the keys of each vendor by name, which of them rest, and how to wake them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import click

from hermes_agent.app.operations.models import KeyState, list_keys, wake_keys
from hermes_agent.cli.operation import ask, show
from hermes_agent.cli.output import table
from hermes_agent.cli.surface import Surface, pass_surface
from hermes_agent.providers.route import load_vendor


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
        woken = ask(surface, partial(wake_keys, vendor=vendor))
        words = f"{woken} of them can be used again." if woken else "Nothing rested."
        show({"woken": woken}, lambda _: words, as_json=as_json)
        return
    states = ask(surface, partial(list_keys, secrets=surface.secrets, vendor=vendor))
    show(states, _listed, as_json=as_json, nothing="There is no key: `hermes setup` asks for one.")


def _listed(states: Sequence[KeyState]) -> str:
    rows = [(one.vendor, one.credential or "-", one.source, f"{one.calls:,}", _state(one)) for one in states]
    return table(rows, ("VENDOR", "KEY", "FROM", "CALLS", "STATE"), right=(3,))


def _state(one: KeyState) -> str:
    if not one.rests:
        return "ready"
    return f"rests {one.rests:.0f} s{f' for {one.model}' if one.model else ''}: {one.reason}"
