"""A route: everything needed to ask one model (vendor, address, key, facts), chosen from the settings and the
available keys."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import field, replace
from difflib import get_close_matches
from types import MappingProxyType
from typing import Literal
from urllib.parse import quote, urlsplit

from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import NoModel
from hermes_agent.host.http import Http
from hermes_agent.providers.catalog import (
    FREE,
    UNKNOWN,
    ModelFacts,
    Price,
    find,
    find_like,
    known_models,
    nearest,
    overridden,
)
from hermes_agent.providers.settings import ModelOverride, ModelSettings
from hermes_agent.providers.vendor import LEVELS, USUAL_LEVEL, Level, Vendor
from hermes_agent.providers.vendors import VENDORS

Secrets = Callable[[str], str | None]
WAYS_ON = "`hermes setup` chooses one, `hermes demo` shows how it works without a key."
DEFAULT_VENDOR = "openrouter"
DEFAULT_OUTPUT = 32_000
# Of a server that must be asked for its window, before it was asked.
LOCAL_WINDOW = 8_192
GAP = re.compile(r"\{([A-Z_]+)\}")
NOTHING: Mapping[str, ModelOverride] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """A key of a sign-in for the next request, and the headers that go with it."""

    key: str = field(repr=False)
    headers: tuple[tuple[str, str], ...] = ()


KeySource = Callable[..., Awaitable[Grant]]
"""Gives a key that can be used now, for `http`; with `refused`, a key that the vendor did not take, another one. Raises
`ProviderError` with what to do, where there is none."""
SignIns = Callable[[Vendor], KeySource | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """A vendor, an address, a key and a model, with the model's facts. The key is never shown; `credential` is its
    name. `cache_ttl` is how long the vendor should cache a prompt, where it can be told. `region` is empty where
    the vendor has none.

    For a sign-in, `source` gives the keys and the `headers` of each: see `renewed`.
    """

    vendor: Vendor
    base_url: str
    key: str = field(repr=False)
    model: str
    facts: ModelFacts
    credential: str = ""
    cache_ttl: Literal["5m", "1h"] = "5m"
    region: str = ""
    source: KeySource | None = field(default=None, repr=False, compare=False)
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)

    @property
    def name(self) -> str:
        """`vendor/model`, as a person writes it; also the maker of thinking parts."""
        return f"{self.vendor.name}/{self.model}"

    @property
    def dialect(self) -> str:
        """The protocol of this model: its own where it has one, otherwise the vendor's."""
        return self.facts.dialect or self.vendor.dialect

    @property
    def host(self) -> str:
        """The host of the address."""
        return urlsplit(self.base_url).netloc

    @property
    def prefills(self) -> bool:
        """Whether a request may contain the beginning of the reply."""
        return self.facts.prefill if self.facts.prefill is not None else self.vendor.quirks.prefill != ""

    def url(self, path: str) -> str:
        """The address with the dialect's path; a query in the base URL (`?api-version=...`) stays at the end."""
        base, mark, query = self.base_url.partition("?")
        return f"{base.rstrip('/')}{path}{mark}{query}"

    def key_header(self, usual: Literal["authorization", "x-api-key"]) -> dict[str, str]:
        """The header with the key, `usual` being the dialect's name for it; none without a key."""
        if not self.key:
            return {}
        if self.source is not None:
            return {"authorization": f"Bearer {self.key}", **dict(self.headers)}
        name = self.vendor.key_header or usual
        return {name: f"Bearer {self.key}" if name == "authorization" else self.key}

    async def renewed(self, http: Http, *, refused: str = "") -> Route:
        """The route with a valid key: itself where nothing changed. `refused` is a key that the vendor rejected.
        Raises as `KeySource` does."""
        if self.source is None:
            return self
        grant = await self.source(http, refused=refused)
        if grant.key == self.key:
            return self
        return replace(self, key=grant.key, headers=grant.headers)

    def effort(self, wanted: str, *, tools: bool) -> Level | None:
        """The nearest reasoning level that the model has; None where it has none.

        `tools` tells whether the request has tools: some models then have fewer levels.
        """
        levels = self.facts.efforts
        if tools and self.facts.tool_efforts is not None:
            levels = self.facts.tool_efforts
        if not levels or not self.facts.thinking:
            return None
        return nearest(wanted if wanted in LEVELS else USUAL_LEVEL, levels)


def load_vendor(name: str) -> Vendor:
    """The facts of a vendor; an unknown name raises `NoModel` with the nearest known one."""
    if name not in VENDORS:
        near = get_close_matches(name, VENDORS, n=1)
        guess = f" Did you mean `{near[0]}`?" if near else ""
        raise NoModel(f"No vendor is called `{name}`.{guess} Known: {', '.join(VENDORS)}.")
    return VENDORS[name]


def nobody(_vendor: Vendor) -> KeySource | None:
    """Key source without any sign-in."""
    return None


def choose(
    settings: ModelSettings,
    secrets: Secrets,
    models: Mapping[str, ModelOverride] = NOTHING,
    sign_ins: SignIns = nobody,
) -> Route:
    """The route that the settings name; where they name none, the first vendor of the table with a key.

    `secrets` gives the value of a name like `OPENAI_API_KEY`, or None; `models` are a person's corrections to the
    catalogue, `sign_ins` gives the key sources of signed-in vendors. Raises `NoModel` with a sentence that says
    what is missing and what to do.
    """
    vendor, model = _named(settings, secrets) if settings.default else _first_ready(settings, secrets, sign_ins)
    region = _region(vendor, settings, secrets)
    base_url = _address(vendor, region, settings, secrets)
    if not base_url and not vendor.server and not vendor.mixes:
        raise NoModel(f"`{vendor.name}` needs an address: set `model.base_url`, e.g. {vendor.address}.")
    if not model:
        raise NoModel(f"{vendor.title} needs a model's name: set `model.default` to `{vendor.name}/MODEL`.")
    if vendor.model_prefix and "/" not in model:
        model = vendor.model_prefix + model
    key = _sound_key(vendor, secrets)
    source = None if key or not vendor.sign_in else sign_ins(vendor)
    if vendor.needs_key and not key and source is None:
        raise NoModel(_no_key(vendor, model, secrets))
    return Route(
        vendor=vendor,
        base_url=base_url.rstrip("/"),
        key=key,
        model=model,
        facts=_facts(vendor, model, settings, models),
        cache_ttl=settings.cache_ttl,
        region=region,
        source=source,
    )


def vendor_of(settings: ModelSettings) -> str:
    """The vendor of `settings.default`; empty where that names none."""
    first, slash, _ = settings.default.partition("/")
    if first in VENDORS:
        return first
    if settings.provider:
        return settings.provider
    if settings.base_url:
        return "custom"
    if settings.default and not slash:
        return _only_vendor_of(settings.default)
    return DEFAULT_VENDOR if slash else ""


def has_own_address(vendor: str) -> bool:
    """Whether the vendor has an address without `model.base_url`."""
    if vendor not in VENDORS:
        return False
    facts = load_vendor(vendor)
    return bool(facts.base_url or facts.server or facts.mixes)


def _named(settings: ModelSettings, secrets: Secrets) -> tuple[Vendor, str]:
    first, slash, rest = settings.default.partition("/")
    vendor = load_vendor(vendor_of(settings))
    if first == vendor.name:
        return vendor, rest or vendor.default_model
    if slash and not settings.provider and not settings.base_url and not find_key(vendor, secrets)[1]:
        load_vendor(first)  # names the nearest vendor
    return vendor, settings.default


def _only_vendor_of(model: str) -> str:
    """The vendor whose model this is: from the catalogue; otherwise the word itself is taken for a vendor."""
    for name in known_models():
        vendor, _, known = name.partition("/")
        if known == model:
            return vendor
    return model


def _first_ready(settings: ModelSettings, secrets: Secrets, sign_ins: SignIns) -> tuple[Vendor, str]:
    if settings.provider:
        vendor = load_vendor(settings.provider)
        return vendor, vendor.default_model
    for name in VENDORS:
        vendor = load_vendor(name)
        if not (vendor.default_model and vendor.needs_key):
            continue
        if find_key(vendor, secrets)[1] or (vendor.sign_in and sign_ins(vendor) is not None):
            return vendor, vendor.default_model
    raise NoModel(f"There is no model to ask: no key was found and none is configured. {WAYS_ON}")


def _region(vendor: Vendor, settings: ModelSettings, secrets: Secrets) -> str:
    named = ((secrets(name) or "").strip() for name in vendor.region_names)
    return settings.region or next((region for region in named if region), vendor.region)


def _address(vendor: Vendor, region: str, settings: ModelSettings, secrets: Secrets) -> str:
    if settings.base_url:
        return settings.base_url
    said = (secrets(vendor.base_url_env) or "").strip() if vendor.base_url_env else ""
    if said or not region or not vendor.regions:
        return said or _filled(vendor.base_url, vendor, secrets)
    if region in vendor.regions:
        return _filled(vendor.regions[region], vendor, secrets)
    near = get_close_matches(region, vendor.regions, n=1)
    guess = f" Did you mean `{near[0]}`?" if near else ""
    where = " or ".join(("`model.region`", *vendor.region_names))
    raise NoModel(f"{vendor.title} has no region `{region}` ({where}).{guess} Known: {', '.join(vendor.regions)}.")


def _filled(address: str, vendor: Vendor, secrets: Secrets) -> str:
    """The address with each `{NAME}` in it replaced by what stands under that name."""
    for name in GAP.findall(address):
        value = (secrets(name) or "").strip()
        if not value:
            raise NoModel(f"{vendor.title} needs {name}: put it into the environment or `.env`. {WAYS_ON}")
        address = address.replace(f"{{{name}}}", quote(value, safe=""))
    return address


def find_key(vendor: Vendor, secrets: Secrets) -> tuple[str, str]:
    """The variable and value of this vendor's key; both empty where there is none."""
    found = ((name, (secrets(name) or "").strip()) for name in vendor.key_names)
    return next(((name, key) for name, key in found if key), ("", ""))


def _sound_key(vendor: Vendor, secrets: Secrets) -> str:
    name, key = find_key(vendor, secrets)
    if not (key.isascii() and key.isprintable() and " " not in key):
        raise NoModel(f"The key for {vendor.title} ({name}) holds characters that no key has: enter it anew.")
    return key


def _no_key(vendor: Vendor, model: str, secrets: Secrets) -> str:
    usual = load_vendor(DEFAULT_VENDOR)
    served = {name.rpartition("/")[0] for name in known_models()}
    if vendor.name != usual.name and find_key(usual, secrets)[1] and f"{usual.name}/{vendor.name}" in served:
        through = f" With the key for {usual.title} that is there: `{usual.name}/{vendor.name}/{model}`."
    else:
        through = ""
    if not vendor.key_names:
        return f"{vendor.title} needs a sign-in: `hermes login {vendor.name}`. {WAYS_ON}"
    where = f" (you get one at {vendor.keys_at})" if vendor.keys_at else ""
    into = f"put {vendor.key_names[0]} into the environment or `.env`"
    return f"{vendor.title} needs a key{where}: {into}.{through} {WAYS_ON}"


def _facts(vendor: Vendor, model: str, settings: ModelSettings, models: Mapping[str, ModelOverride]) -> ModelFacts:
    known = find(vendor, model) or find_like(vendor, model)
    facts = known or UNKNOWN
    if vendor.window_probe and vendor.free and known is None:
        facts = replace(facts, window=LOCAL_WINDOW)
    if vendor.free:
        facts = replace(facts, price=FREE)
    for name in (f"{vendor.name}/{model}", f"{vendor.name}/{model.removeprefix(vendor.model_prefix)}"):
        if name in models:
            facts = overridden(facts, models[name])
            break
    if settings.cache_ttl == "1h" and facts.price is not None and _is_told(vendor, model, facts):
        facts = replace(facts, price=facts.price.kept_an_hour())
    if settings.window is not None:
        facts = replace(facts, window=settings.window)
    if settings.price_input is not None and settings.price_output is not None:
        paid, written = settings.price_input, settings.price_output
        facts = replace(facts, price=Price(input=paid, output=written, cached=paid, cache_write=paid))
    return facts


def _is_told(vendor: Vendor, model: str, facts: ModelFacts) -> bool:
    """Whether requests to this model say how long a prompt is kept; it is more to write then, where writing costs."""
    marked = facts.cache_marks or (bool(vendor.quirks.cache_marks) and model.startswith(vendor.quirks.cache_marks))
    told = marked or (facts.dialect or vendor.dialect) == "anthropic"
    return told and facts.price is not None and facts.price.cache_write > facts.price.input


def output_limit(route: Route, wanted: int | None) -> int:
    """The reply limit in tokens where the dialect requires one: the model's limit, at most 32,000."""
    known = route.facts.output or DEFAULT_OUTPUT
    return min(known, DEFAULT_OUTPUT if wanted is None else wanted)
