"""Opens the gateway of a home: its system, access control and enabled channels."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from functools import partial

from hermes_agent.app.chats.platforms import Platform, own_platform
from hermes_agent.app.chats.settings import ChannelSettings, GatewaySettings
from hermes_agent.app.opening import Options, open_system
from hermes_agent.app.operations.serving import facts_of, report_back
from hermes_agent.app.process import Tape
from hermes_agent.app.settings import SERVED, Settings
from hermes_agent.core.errors import ConfigError
from hermes_agent.gateway.access_control import AccessControl
from hermes_agent.gateway.channel import Kind, no_option
from hermes_agent.gateway.channel_runtime import Channels
from hermes_agent.gateway.channels import CHANNELS
from hermes_agent.gateway.server import Gateway
from hermes_agent.host.config import load
from hermes_agent.host.late import late
from hermes_agent.host.nearest import nearest_key
from hermes_agent.host.paths import Home


def kinds_of(settings: GatewaySettings) -> dict[str, Kind]:
    """The enabled channels. Raises `ConfigError` for an unknown one."""
    kinds: dict[str, Kind] = {}
    for name, channel in settings.channels.items():
        if name not in CHANNELS:
            raise ConfigError(no_channel(name))
        if channel.enabled:
            kinds[name] = kind_of(name)
    return kinds


def kind_of(name: str) -> Kind:
    """A channel of the table."""
    kind: Kind = late(CHANNELS[name])
    return kind


def unfit(settings: GatewaySettings) -> dict[str, str]:
    """Problems with channel names and options, by dotted key."""
    found: dict[str, str] = {}
    for name, channel in settings.channels.items():
        key = f"gateway.channels.{name}"
        if name not in CHANNELS:
            found[key] = no_channel(name)
            continue
        kind = kind_of(name)
        for option in channel.options.keys() - kind.options.keys():
            found[f"{key}.options.{option}"] = no_option(kind, option)
        for role in ("owners", "members", "guests"):
            if wrong := kind.wrong_people(getattr(channel, role)):
                found[f"{key}.{role}"] = wrong
    return found


def no_channel(name: str) -> str:
    """Error message for an unknown channel, with a suggestion."""
    near = nearest_key(name, tuple(CHANNELS))
    return f"There is no channel `{name}`. " + (
        f"Did you mean `{near}`?" if near else f"There are: {', '.join(CHANNELS)}."
    )


def platform_of(name: str) -> Platform | None:
    """Prompt facts of a channel, or of a built-in platform."""
    if name not in CHANNELS:
        return own_platform(name)
    return kind_of(name).platform


def left_on(kinds: Mapping[str, Kind], settings: GatewaySettings) -> dict[str, Kind]:
    """The channels that the settings do not disable."""
    there = ChannelSettings(enabled=True)
    return {name: kind for name, kind in kinds.items() if settings.channels.get(name, there).enabled}


@asynccontextmanager
async def open_gateway(
    home: Home,
    kinds: Mapping[str, Kind] | None = None,
    changed: Callable[[], None] = lambda: None,
    restart: Callable[[], None] | None = None,
    tape: Tape | None = None,
) -> AsyncIterator[Gateway]:
    """Context manager: run the gateway of a home. `kinds` replace the channels of the settings; `restart` restarts the
    process; `tape` as in `Options`. Whoever asked an earlier process for a restart is notified.

    Raises `HermesError` for an unusable home, database or setting.
    """
    loaded = load(home.ensure(), Settings).value
    settings = loaded.gateway
    channels = Channels(kinds=dict(kinds_of(settings) if kinds is None else kinds))
    access = AccessControl(
        settings.channels,
        lambda name: name in channels.kinds and channels.kinds[name].hash_ids,
        loaded.privacy.hash_ids,
    )
    options = Options(
        queue=SERVED,
        own_only=False,
        most=settings.max_runs,
        people=access.people,
        reviews=True,
        tape=tape,
        delivers=lambda surface: surface in CHANNELS or surface in channels.kinds,
        here=lambda surface: surface in channels.lines,
        restart=restart,
        pseudonyms=access.pseudonyms.hide,
        platform=lambda name: channels.kinds[name].platform if name in channels.kinds else platform_of(name),
    )
    async with open_system(home, options) as runtime:
        switched_on = kinds_of if kinds is None else partial(left_on, dict(kinds))
        gateway = Gateway(runtime, access, channels, switched_on, changed)
        await access.pseudonyms.load_salt(facts_of(runtime))
        await report_back(runtime)
        await gateway.start()
        try:
            async with gateway.reloading.following():
                yield gateway
        finally:
            await gateway.stop()
