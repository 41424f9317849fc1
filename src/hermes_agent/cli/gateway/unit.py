"""systemd integration: the gateway's unit file, and enabling or removing the service."""

from __future__ import annotations

import getpass
from collections.abc import Sequence
from pathlib import Path

from hermes_agent.cli.surface import Surface
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import HermesError, HomeError
from hermes_agent.host.paths import reason, way_out
from hermes_agent.host.process import Finished, run

RUNNING = Path("/run/systemd/system")
"""It is there where systemd runs (sd_booted(3))."""
WATCHDOG_SECONDS = 60
SPARE_SECONDS = 30
UNIT = """[Unit]
Description=Hermes gateway of {home}
Wants=network-online.target
After=network-online.target

[Service]
Type=notify
NotifyAccess=main
ExecStart={command}
ExecReload=/bin/kill -USR2 $MAINPID
Environment={environment}
{user}Restart=on-failure
RestartSec=5
# A loop that hangs gives no sign of life, and the gateway is started anew.
WatchdogSec={watchdog}
TimeoutStartSec=120
# What runs may finish ({drain:.0f} s) before it is killed.
TimeoutStopSec={stop:.0f}
# A command that was begun outlives the gateway, which finds it again.
KillMode=process

[Install]
WantedBy={target}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """The systemd unit file of a gateway: path and `text`, and whether it is a system or a user unit."""

    path: Path
    text: str
    system: bool

    @property
    def name(self) -> str:
        """The unit name."""
        return self.path.name

    def systemctl(self, *words: str) -> list[str]:
        """The systemctl command line for this unit's manager."""
        return ["systemctl", *([] if self.system else ["--user"]), *words]


def unit_of(surface: Surface, command: Sequence[str], *, system: bool) -> Unit:
    """The unit for a home's gateway. Raises `HomeError` if the user's config folder is unknown."""
    home, profile = surface.home, surface.invocation.profile
    drain: float = surface.loaded.value.gateway.drain_seconds
    text = UNIT.format(
        home=plain(str(home.root)),
        command=" ".join(quoted(word).replace("$", "$$") for word in command),
        environment=quoted(f"HERMES_HOME={home.base}"),
        user=f"User={getpass.getuser()}\n" if system else "",
        watchdog=WATCHDOG_SECONDS,
        drain=drain,
        stop=drain + SPARE_SECONDS,
        target="multi-user.target" if system else "default.target",
    )
    folder = Path("/etc/systemd/system") if system else own_folder(surface) / "systemd" / "user"
    return Unit(path=folder / f"hermes-gateway{f'-{profile}' if profile else ''}.service", text=text, system=system)


def own_folder(surface: Surface) -> Path:
    """The user's config folder. Raises `HomeError`."""
    if named := surface.variables.get("XDG_CONFIG_HOME", ""):
        return Path(named)
    if not surface.variables.get("HOME"):
        raise HomeError("HOME is not set: nobody's own units are known. `--system` installs one of the machine.")
    return Path(surface.variables["HOME"]) / ".config"


def quoted(word: str) -> str:
    """Quote a word for a unit file (systemd.service(5))."""
    escaped = plain(word).replace("\\", "\\\\").replace('"', '\\"')
    return escaped if escaped and not set(escaped) & set(" \t\"'\\;") else f'"{escaped}"'


def plain(word: str) -> str:
    """Escape systemd specifiers, on one line."""
    return " ".join(word.split("\n")).replace("%", "%%")


async def install(unit: Unit, surface: Surface) -> None:
    """Write the unit, start the service and enable it at boot. Raises `HermesError`."""
    try:
        unit.path.parent.mkdir(parents=True, exist_ok=True)
        unit.path.write_text(unit.text)
    except OSError as error:
        out = "run it as root, or without --system." if unit.system else way_out(error, unit.path)
        raise HomeError(f"{unit.path} cannot be written ({reason(error)}): {out}") from error
    for words in (("daemon-reload",), ("enable", unit.name), ("restart", unit.name)):
        await _run_systemctl(unit.systemctl(*words), surface)


async def uninstall(unit: Unit, surface: Surface) -> None:
    """Stop the service and remove its unit. Raises `HermesError` if there is none."""
    if not unit.path.exists():
        raise HermesError(f"There is no {unit.path}.")
    await _run_systemctl(unit.systemctl("disable", "--now", unit.name), surface)
    unit.path.unlink()
    await _run_systemctl(unit.systemctl("daemon-reload"), surface)


async def _run_systemctl(argv: Sequence[str], surface: Surface) -> None:
    try:
        done: Finished = await run(argv, env=surface.variables, seconds=180.0)
    except (OSError, TimeoutError) as error:
        raise HermesError(f"`{' '.join(argv)}` did not work: {str(error) or 'it took too long'}") from error
    if done.code:
        raise HermesError(f"`{' '.join(argv)}` did not work: {done.err.decode(errors='replace').strip()}")
