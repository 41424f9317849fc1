"""Subcommand `hermes setup`: finds a model that answers, or asks for one, saves the choice, and tries it out."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

import click

from hermes_agent.app.operations.models import Answered, ask_once
from hermes_agent.app.places import no_wall
from hermes_agent.cli.exits import Exit
from hermes_agent.cli.offers import CONFIGURED, Candidate, ask_server, candidates, vendors, with_key
from hermes_agent.cli.operation import ask
from hermes_agent.cli.output import remark, say
from hermes_agent.cli.picker_choices import Choice, ask_secret, pick
from hermes_agent.cli.start import run_surface
from hermes_agent.cli.surface import Surface, pass_surface
from hermes_agent.core.errors import AuthRefused, HermesError, HomeError, NoModel, ProviderError, Stopped
from hermes_agent.host.config_edit import set_values, unset
from hermes_agent.host.paths import current_folder, environment, read_small, write_private
from hermes_agent.providers.local import USUAL_PLACES, server_address

SCRIPTED = (
    "This model is scripted: it shows how the program works and knows nothing. Run `hermes setup` again at a terminal "
    "to enter a key, or put one into the environment (for instance OPENROUTER_API_KEY)."
)
UNASKED = (
    "There is no terminal to ask you at. `hermes setup --non-interactive` takes the first model that answers. Or name "
    "one: `hermes config set OPENROUTER_API_KEY KEY`, then `hermes model set openrouter/MODEL`."
)
NONE_ANSWERED = (
    "None of the models answered; see above. Correct the key or start the server, then run `hermes setup` again; "
    "`hermes demo` shows the program without a model."
)
LEFT = "Nothing was changed. `hermes setup` goes on where you left, with what you typed."
AGAIN = "Check its address and key, or run `hermes setup` again."
TRY = "Try it: which folder shall it look at? (no: later)"
VENDOR, SERVER = "another vendor", "another server"
OTHERS = (Choice(name=VENDOR, about="with your key"), Choice(name=SERVER, about="by address"))
FIRST = (
    "Look around in this folder; only read. Then say in at most six short sentences what it is, and name three things "
    "that you could do for me here."
)
LATER = ("", "n", "no", "later")
UNAUTHORIZED = (401, 403)


@click.command(short_help="Find or choose a model, and check that it answers.")
@click.option("--non-interactive", is_flag=True, help="Ask nothing: take the first model that answers.")
@click.option("--no-local", is_flag=True, help="Do not look for model servers on this machine.")
@pass_surface
def setup(surface: Surface, non_interactive: bool, no_local: bool) -> int:
    """Find or choose a model, and check that it answers: keys in the environment, servers on this machine, your key.

    You may leave at each question with Ctrl-C and begin again later. The exit code is 5 if the model did not answer.
    """
    found = found_models(surface, local=not no_local)
    return first_that_answers(surface, found) if non_interactive else asked_for(surface, found)


def found_models(surface: Surface, *, local: bool = True) -> list[Candidate]:
    """The models that could be chosen in this home. Raises `ConfigError` for a wrong config.yaml."""
    surface.home.ensure()
    surface.loaded.strict()
    return asyncio.run(candidates(surface, USUAL_PLACES if local else ()))


def asked_for(surface: Surface, found: list[Candidate]) -> int:
    """Let the person choose, and try the model out in their folder. Returns the exit code."""
    try:
        code = Questions(surface).choose(found)
    except (click.Abort, KeyboardInterrupt) as error:
        remark("")
        if sys.stdin.isatty():
            raise Stopped(LEFT) from error
        raise HermesError(UNASKED) from error
    return code or first_run(surface)


def first_that_answers(surface: Surface, found: list[Candidate]) -> int:
    """Try the candidates in order and save the first that answers; the scripted one only where there is no other.
    Returns the exit code."""
    real = [candidate for candidate in found if not candidate.is_scripted]
    for candidate in real or found:
        if failure_of(surface, candidate) is None:
            keep(surface, candidate)
            return Exit.OK
    remark(NONE_ANSWERED)
    return Exit.PROVIDER


class Questions:
    """The questions of `hermes setup`. Answers other than keys are saved until a model is chosen, so that a person who
    left at a question finds them again."""

    def __init__(self, surface: Surface) -> None:
        self._surface = surface
        self._file = surface.home.cache / "setup.json"
        self._answers: dict[str, str] = {}
        with suppress(HomeError, ValueError):
            self._answers = dict(json.loads(read_small(self._file) or b"{}"))

    def choose(self, found: list[Candidate]) -> int:
        """Let the person choose until a model answers or is kept all the same. Returns the exit code."""
        ways: dict[str, Callable[[], Candidate | None]] = {each.model: partial(replace, each) for each in found}
        ways |= {VENDOR: self._vendor, SERVER: self._server}
        choices = [Choice(name=each.model, about=each.why) for each in found]
        # Before the scripted model, which nobody should choose by Enter.
        first = next((place for place, each in enumerate(found) if each.is_scripted), len(found))
        choices[first:first] = OTHERS
        while True:
            chosen = pick("Which model should answer?", choices)
            if chosen is None:
                raise click.Abort
            candidate = ways[chosen.name]()
            if candidate is None:
                continue
            failure = failure_of(self._surface, candidate)
            if isinstance(failure, AuthRefused) and (keyed := self._with_its_key(candidate)) is not None:
                candidate, failure = keyed, failure_of(self._surface, keyed)
            if failure is None or click.confirm("Keep it all the same?", default=False, err=True):
                keep(self._surface, candidate, answered=failure is None)
                self._file.unlink(missing_ok=True)
                return Exit.OK if failure is None else Exit.PROVIDER

    def _remember(self, name: str, answer: str) -> str:
        self._answers[name] = answer
        with suppress(HomeError):
            write_private(self._file, json.dumps(self._answers).encode(), durable=False)
        return answer

    def _text(self, name: str, question: str) -> str:
        said = click.prompt(question, default=self._answers.get(name), err=True)
        return self._remember(name, str(said).strip())

    def _vendor(self) -> Candidate | None:
        known = {each.name: each for each in vendors() if each.key_names and each.default_model}
        chosen = pick("Whose key do you have?", [Choice(name=name, about=each.title) for name, each in known.items()])
        if chosen is None:
            return None
        vendor = known[chosen.name]
        if vendor.keys_at:
            remark(f"You get a key at {vendor.keys_at}")
        return with_key(vendor, ask_secret(f"{vendor.title} key (not shown)"))

    def _server(self) -> Candidate | None:
        """A server by its address: completed, asked for its models, with a key if it wants one."""
        address = server_address(self._text("address", "Address of the server, such as 127.0.0.1:8000"))
        custom = next(each for each in vendors() if each.name == "custom")
        server = Candidate(model="", why=f"your server at {address}", base_url=address)
        remark(f"Asking {address} for its models ...")
        key = self._surface.secrets.get(custom.key_names[0])
        heard = asyncio.run(ask_server(address, key))
        while heard.status in UNAUTHORIZED:
            remark(f"It {'refused that key' if server.key else 'wants a key'} ({heard.status}).")
            key = ask_secret("Key of this server (not shown; empty: none)", empty=True)
            if not key:
                break
            server = replace(server, key_name=custom.key_names[0], key=key)
            heard = asyncio.run(ask_server(address, key))
        if not heard.status:
            remark(f"{address} {heard.why}. Is it running, and is this the address? Correct it, or choose another.")
            return None
        name = self._model(heard.models)
        return replace(server, model=f"custom/{name}") if name else None

    def _model(self, served: tuple[str, ...]) -> str:
        if len(served) == 1:
            remark(f"It serves {served[0]}.")
            return served[0]
        if served:
            chosen = pick("Which of its models?", [Choice(name=name) for name in served])
            return chosen.name if chosen else ""
        remark("It does not list its models.")
        return self._text("model", "Name of its model")

    def _with_its_key(self, candidate: Candidate) -> Candidate | None:
        """The candidate with another key, after its server refused a request; None for an empty one."""
        vendor = candidate.route(self._surface).vendor
        if not vendor.key_names:
            return None
        key = ask_secret(f"Another key for {candidate.model} (not shown; empty: none)", empty=True)
        return replace(candidate, key_name=vendor.key_names[0], key=key) if key else None


def failure_of(surface: Surface, candidate: Candidate) -> HermesError | None:
    """Ask the candidate a test question and report the result; None if it answered. Ctrl-C ends the waiting."""
    try:
        remark(f"Asking {candidate.model} ... (Ctrl-C ends the waiting)")
        route = candidate.route(surface)
        answered: Answered = ask(surface, partial(ask_once, secrets=surface.secrets, route=route))
    except (ProviderError, NoModel) as error:
        remark(str(error))
        return error
    except KeyboardInterrupt:
        remark(f"\n{candidate.model} had not answered yet. A server that loads a large model may take minutes.")
        return Stopped("The waiting was ended.")
    remark(f"It answers, in {answered.seconds:.1f} s.")
    return None


def keep(surface: Surface, candidate: Candidate, *, answered: bool = True) -> None:
    """Save the choice: the key in .env, the model in config.yaml."""
    if candidate.key:
        surface.secrets.set(candidate.key_name, candidate.key)
        remark(f"Your key is saved as {candidate.key_name} in {surface.home.env_file}, readable by you alone.")
    if candidate.why != CONFIGURED:
        address = {"model.base_url": candidate.base_url} if candidate.base_url else {}
        set_values(surface.home, surface.schema, {"model.default": candidate.model, **address})
        for key in ("model.provider", *(() if address else ("model.base_url",))):
            unset(surface.home, surface.schema, key)
    if said := no_wall(surface.home, surface.loaded.value.terminal, environment()):
        remark(said)
    if candidate.is_scripted:
        remark(SCRIPTED)
    if answered:
        words = f"The default model is now {candidate.model}. `hermes` starts a chat."
    else:
        words = f"Saved {candidate.model}, but it did not answer. {AGAIN}"
    say(words, model=candidate.model, answered=answered)


def first_run(surface: Surface) -> int:
    """Have the chosen model look at a folder of the person's, if they want. Returns the exit code."""
    if not sys.stdin.isatty() or surface.loaded.value.model.default.startswith("demo/"):
        return Exit.OK
    folder = current_folder()
    said = ""
    with suppress(click.Abort):
        said = str(click.prompt(TRY, default=str(folder), err=True)).strip()
    if said.lower() in LATER:
        return Exit.OK
    wanted = Path(said).expanduser()
    if not wanted.is_dir():
        remark(f"{wanted} is no folder. `cd` into one and type `hermes`.")
        return Exit.OK
    os.chdir(wanted)
    code = run_surface("one-shot", replace(surface.invocation, question=FIRST))
    remark("`hermes -c` goes on from here; `hermes` starts a new chat.")
    return code
