"""Models that a person can choose: those of the catalogue and the settings, with what is known of each."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

from hermes_agent.app.models import sign_ins
from hermes_agent.core.dataclass import dataclass
from hermes_agent.host.config import Loaded
from hermes_agent.host.secrets import Secrets
from hermes_agent.providers.catalog import FREE, UNKNOWN, ModelFacts, Price, known_models, overridden
from hermes_agent.providers.route import load_vendor
from hermes_agent.providers.settings import ModelOverride
from hermes_agent.providers.vendor import Vendor
from hermes_agent.providers.vendors import VENDORS


class Configured(Protocol):
    """Settings and secrets: those of a command, or of a running system."""

    @property
    def loaded(self) -> Loaded[Any]: ...

    @property
    def secrets(self) -> Secrets: ...


def key_name(configured: Configured, vendor: Vendor) -> str:
    """The name under which the vendor's key is set; empty if it is not."""
    return next((name for name in vendor.key_names if configured.secrets.get(name)), "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """A model in the list of `hermes model`. `price` in US dollars per million tokens, `output` the longest reply in
    tokens; None: unknown. `ready`: whether it could be asked now."""

    model: str
    window: int
    output: int | None
    price: Price | None
    tools: bool
    images: bool
    files: bool
    thinking: tuple[str, ...]
    ready: bool


def offers_of(configured: Configured, vendor: str = "") -> list[Offer]:
    """The models of the catalogue and settings, of all vendors or one."""
    vendors = {name: load_vendor(name) for name in VENDORS if not vendor or name == vendor}
    ready = {name: is_ready(configured, each) for name, each in vendors.items()}
    own: dict[str, ModelOverride] = configured.loaded.value.models
    mixing = [each.name for each in vendors.values() if each.mixes]
    mixtures = [f"{each}/{name}" for each in mixing for name in configured.loaded.value.moa]
    known = {**dict.fromkeys([*own, *mixtures], UNKNOWN), **known_models()}
    return [
        _offer(name, _known(vendors[maker], facts, own.get(name)), ready=ready[maker])
        for name, facts in known.items()
        if (maker := name.partition("/")[0]) in vendors
    ]


def is_ready(configured: Configured, vendor: Vendor) -> bool:
    """Whether a vendor could be asked now: with a key or sign-in, or because it needs neither. For signed requests,
    whether traces of credentials exist; those of an instance role leave none."""
    if key_name(configured, vendor):
        return True
    if vendor.sign:
        return any(_is_there(configured, trace) for trace in vendor.sign_traces)
    if not vendor.needs_key:
        return True
    return bool(vendor.sign_in) and sign_ins(configured.secrets)(vendor) is not None


def _is_there(configured: Configured, trace: str) -> bool:
    if trace.startswith("~"):
        return Path(trace).expanduser().is_file()
    return bool((configured.secrets.get(trace) or "").strip())


def _known(vendor: Vendor, facts: ModelFacts, own: ModelOverride | None) -> ModelFacts:
    """Model facts with overrides from the settings; free vendors cost nothing."""
    known = replace(facts, price=FREE) if vendor.free else facts
    return known if own is None else overridden(known, own)


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
