"""`hermes model auxiliary`: who works beside the model that answers, for which purpose."""

from __future__ import annotations

import click

from hermes_agent.app.auxiliary.settings import AuxiliaryModel, Purpose, TitleModel
from hermes_agent.cli.output import say, say_json, table
from hermes_agent.cli.routes import route_to
from hermes_agent.cli.surface import Surface, pass_surface
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import NoModel
from hermes_agent.providers.route import Route

WITHOUT = {**dict.fromkeys(Purpose, "the one that answers"), Purpose.VISION: "none"}
"""Who does the work where no model is named for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PurposeModel:
    """Who works for a purpose: `model` is empty where none is named; limits in seconds of one call, US dollars and
    tokens of a day. `note` says what is wrong with it."""

    purpose: str
    model: str
    seconds: float | None
    money: float | None
    tokens: int | None
    note: str


@click.command(epilog="Example: `hermes model set ollama/qwen3 --for title` names one.")
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
@pass_surface
def auxiliary(surface: Surface, as_json: bool) -> None:
    """List which models work beside the one that answers, each for a purpose (section `auxiliary`)."""
    chosen = surface.loaded.value.auxiliary
    found = [purpose_model(surface, purpose, chosen.of(purpose)) for purpose in Purpose]
    if as_json:
        say_json(found)
        return
    rows = [(each.purpose, each.model or WITHOUT[Purpose(each.purpose)], *limits(each), each.note) for each in found]
    say(table(rows, ("PURPOSE", "MODEL", "SECONDS", "$/DAY", "TOKENS/DAY", ""), right=(2, 3, 4)))


def purpose_model(surface: Surface, purpose: Purpose, chosen: AuxiliaryModel) -> PurposeModel:
    """The model of a purpose as the settings have it, and whether it can be asked."""
    note = ""
    if isinstance(chosen, TitleModel) and not chosen.enabled:
        note = "turned off"
    elif chosen.model:
        try:
            single(surface, chosen.model)
        except NoModel as error:
            note = f"cannot be asked: {error}"
    return PurposeModel(
        purpose=purpose,
        model=chosen.model,
        seconds=chosen.seconds,
        money=chosen.money,
        tokens=chosen.tokens,
        note=note,
    )


def single(surface: Surface, name: str) -> Route:
    """The route to a model that may work for a purpose. Raises `NoModel`, also for a mixture."""
    route = route_to(surface, name)
    if route.vendor.mixes:
        raise NoModel(f"{route.name} is a mixture, which only answers conversations: name a single model here.")
    return route


def limits(each: PurposeModel) -> tuple[str, str, str]:
    """The limits as columns."""
    seconds = "-" if each.seconds is None else f"{each.seconds:g}"
    money = "-" if each.money is None else f"{each.money:g}"
    return seconds, money, "-" if each.tokens is None else f"{each.tokens:,}"
