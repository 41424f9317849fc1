"""Subcommand `hermes setup`: finds a model that answers, or asks for one, and saves the choice."""

from __future__ import annotations

import asyncio
import sys
from dataclasses import replace
from functools import partial

import click

from hermes_agent.app.operations.models import Answered, ask_once
from hermes_agent.app.places import no_wall
from hermes_agent.cli.exits import Exit
from hermes_agent.cli.offers import BUILT_IN, CONFIGURED, Candidate, candidates, vendors, with_key
from hermes_agent.cli.operation import ask
from hermes_agent.cli.output import remark, say, table
from hermes_agent.cli.surface import Surface, pass_surface
from hermes_agent.core.errors import AuthRefused, HermesError, NoModel, ProviderError
from hermes_agent.host.config_edit import set_value, unset
from hermes_agent.host.paths import environment
from hermes_agent.providers.local import USUAL_PLACES
from hermes_agent.providers.vendor import Vendor

SCRIPTED = (
    "This model is scripted: it shows how the program works and knows nothing. Run `hermes setup` again at a terminal "
    "to enter a key, or put one into the environment (for instance OPENROUTER_API_KEY)."
)
UNASKED = (
    "There is no terminal to ask you at. `hermes setup --non-interactive` takes the first model that answers. Or name "
    "one: `hermes config set OPENROUTER_API_KEY KEY`, then `hermes model set openrouter/MODEL`."
)


@click.command(short_help="Find or choose a model, and check that it answers.")
@click.option("--non-interactive", is_flag=True, help="Ask nothing: take the first model that answers.")
@click.option("--no-local", is_flag=True, help="Do not look for model servers on this machine.")
@pass_surface
def setup(surface: Surface, non_interactive: bool, no_local: bool) -> int:
    """Find or choose a model, and check that it answers: keys in the environment, servers on this machine, your key."""
    surface.home.ensure()
    surface.loaded.strict()
    found = asyncio.run(candidates(surface, () if no_local else USUAL_PLACES))
    if non_interactive:
        return first_that_answers(surface, found)
    try:
        return chosen_by_person(surface, found)
    except click.Abort as error:
        if sys.stdin.isatty():
            raise
        remark("")
        raise HermesError(UNASKED) from error


def first_that_answers(surface: Surface, found: list[Candidate]) -> int:
    """Try the candidates in order and save the first that answers. Returns the exit code."""
    for candidate in found:
        if failure_of(surface, candidate) is None:
            keep(surface, candidate)
            return Exit.OK
    remark("None of the models answered; see above.")
    return Exit.PROVIDER


def chosen_by_person(surface: Surface, found: list[Candidate]) -> int:
    """Let the person choose until a model answers."""
    rows = [(f"{number}", candidate.model, candidate.why) for number, candidate in enumerate(found, 1)]
    rows += [
        (f"{len(found) + 1}", "another vendor", "with your key"),
        (f"{len(found) + 2}", "another server", "by address"),
    ]
    while True:
        say("Which model should answer?")
        say(table(rows))
        number = click.prompt("Number", default=1, type=click.IntRange(1, len(found) + 2), err=True)
        candidate = found[number - 1] if number <= len(found) else asked(by_address=number == len(found) + 2)
        failure = failure_of(surface, candidate)
        if isinstance(failure, AuthRefused) and (keyed := with_its_key(surface, candidate)) is not None:
            candidate, failure = keyed, failure_of(surface, keyed)
        if failure is None or click.confirm("Keep it all the same?", default=False, err=True):
            keep(surface, candidate, answered=failure is None)
            return Exit.OK


def asked(*, by_address: bool) -> Candidate:
    """Prompt for another vendor or server; a key is not echoed."""
    if by_address:
        address = click.prompt("Address of an OpenAI-compatible server, such as http://127.0.0.1:8000/v1", err=True)
        name = click.prompt("Name of its model", err=True)
        return Candidate(model=f"custom/{name.strip()}", why="your server", base_url=address.strip().rstrip("/"))
    known: dict[str, Vendor] = {each.name: each for each in vendors() if each.key_names and each.default_model}
    name = click.prompt("Vendor", type=click.Choice(list(known)), err=True)
    if known[name].keys_at:
        remark(f"You get a key at {known[name].keys_at}")
    key = click.prompt(f"{known[name].title} key (not shown)", hide_input=True, err=True)
    return with_key(known[name], key.strip())


def with_its_key(surface: Surface, candidate: Candidate) -> Candidate | None:
    """Prompt for the key of a server that rejected a request without one; None if that does not apply."""
    vendor = candidate.route(surface).vendor
    if vendor.needs_key or not vendor.key_names:
        return None
    key = click.prompt(
        "Key of this server (not shown; empty: none)", default="", show_default=False, hide_input=True, err=True
    )
    return replace(candidate, key_name=vendor.key_names[0], key=key.strip()) if key.strip() else None


def failure_of(surface: Surface, candidate: Candidate) -> HermesError | None:
    """Ask the candidate a test question and report the result; None if it answered."""
    remark(f"Asking {candidate.model} ({candidate.why}) ...")
    try:
        route = candidate.route(surface)
        answered: Answered = ask(surface, partial(ask_once, secrets=surface.secrets, route=route))
    except (ProviderError, NoModel) as error:
        remark(str(error))
        return error
    remark(f"It answers, in {answered.seconds:.1f} s.")
    return None


def keep(surface: Surface, candidate: Candidate, *, answered: bool = True) -> None:
    """Save the choice: the key in .env, the model in config.yaml."""
    if candidate.key:
        surface.secrets.set(candidate.key_name, candidate.key)
        remark(f"Your key is saved as {candidate.key_name} in {surface.home.env_file}, readable by you alone.")
    if candidate.why != CONFIGURED:
        set_value(surface.home, surface.schema, "model.default", candidate.model)
        unset(surface.home, surface.schema, "model.provider")
        if candidate.base_url:
            set_value(surface.home, surface.schema, "model.base_url", candidate.base_url)
        else:
            unset(surface.home, surface.schema, "model.base_url")
    if said := no_wall(surface.home, surface.loaded.value.terminal, environment()):
        remark(said)
    if candidate.why == BUILT_IN:
        remark(SCRIPTED)
    if answered:
        say(f"The default model is now {candidate.model}. `hermes` starts a chat.")
    else:
        say(f"Saved {candidate.model}, but it did not answer. Check its address and key, or run `hermes setup` again.")
