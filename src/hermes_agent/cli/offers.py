"""The models that can be named: those of the catalogue and those of the settings, with what is known of each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import click
from click.shell_completion import CompletionItem

from hermes_agent.app.models.routes import sign_ins
from hermes_agent.cli.routes import key_name
from hermes_agent.cli.surface import Surface
from hermes_agent.core.dataclass import dataclass
from hermes_agent.providers.catalog import FREE, UNKNOWN, ModelFacts, Price, known_models, overridden
from hermes_agent.providers.route import load_vendor
from hermes_agent.providers.settings import ModelOverride
from hermes_agent.providers.vendor import Vendor
from hermes_agent.providers.vendors import VENDORS


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """One model. `price` is US dollars per million tokens, `output` the longest reply; None: not known. `ready` says
    whether it could be asked now."""

    model: str
    window: int
    output: int | None
    price: Price | None
    tools: bool
    images: bool
    files: bool
    thinking: tuple[str, ...]
    ready: bool


def offers_of(surface: Surface, vendor: str = "") -> list[Offer]:
    """The catalogue's models and the settings' own, of all vendors or of one."""
    vendors = {name: load_vendor(name) for name in VENDORS if not vendor or name == vendor}
    ready = {name: is_ready(surface, each) for name, each in vendors.items()}
    own: dict[str, ModelOverride] = surface.loaded.value.models
    mixing = [each.name for each in vendors.values() if each.mixes]
    mixtures = [f"{each}/{name}" for each in mixing for name in surface.loaded.value.moa]
    known = {**dict.fromkeys([*own, *mixtures], UNKNOWN), **known_models()}
    return [
        _offer(name, _known(vendors[maker], facts, own.get(name)), ready=ready[maker])
        for name, facts in known.items()
        if (maker := name.partition("/")[0]) in vendors
    ]


def searched(offers: Sequence[Offer], text: str) -> list[Offer]:
    """The offers whose name holds every word of the text; `images`, `files` and `ready` are abilities, not names."""
    words = text.lower().split()
    return [each for each in offers if all(_fits(each, word) for word in words)]


def is_ready(surface: Surface, vendor: Vendor) -> bool:
    """Whether the vendor could be asked now: with a key or a sign-in, or because it needs neither. Where requests are
    signed, there is a trace of credentials; those of a machine's role leave none."""
    if key_name(surface, vendor):
        return True
    if vendor.sign:
        return any(_is_there(surface, trace) for trace in vendor.sign_traces)
    if not vendor.needs_key:
        return True
    return bool(vendor.sign_in) and sign_ins(surface.secrets)(vendor) is not None


def _is_there(surface: Surface, trace: str) -> bool:
    if trace.startswith("~"):
        return Path(trace).expanduser().is_file()
    return bool((surface.secrets.get(trace) or "").strip())


def _known(vendor: Vendor, facts: ModelFacts, own: ModelOverride | None) -> ModelFacts:
    """The facts with what the settings say; what a vendor gives away costs nothing."""
    known = replace(facts, price=FREE) if vendor.free else facts
    return known if own is None else overridden(known, own)


class ModelName(click.ParamType[str]):
    """A model, as `vendor/model`; the shell completes the names that are known. Any other may be given, too."""

    name = "model"

    def shell_complete(self, _ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        names = [name for name in (*known_models(), *VENDORS) if name.startswith(incomplete)]
        return [CompletionItem(name) for name in names]


def _offer(name: str, facts: ModelFacts, *, ready: bool) -> Offer:
    return Offer(
        model=name,
        window=facts.window,
        output=facts.output,
        price=facts.price,
        tools=facts.tools,
        images=facts.images,
        files=facts.files,
        thinking=facts.efforts if facts.thinking else (),
        ready=ready,
    )


def _fits(offer: Offer, word: str) -> bool:
    match word:
        case "images":
            return offer.images
        case "files":
            return offer.files
        case "ready":
            return offer.ready
        case _:
            return word in offer.model.lower()
