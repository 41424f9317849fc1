"""Subcommand `hermes mcp`: add, change, import, show and test MCP servers."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from dataclasses import fields, replace
from functools import partial
from itertools import chain, count
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click
import msgspec

from hermes_agent.app.mcp.foreign import KNOWN, PERSONAL, read_servers
from hermes_agent.app.operations.mcp.servers import MCP, forget_server, said_of, sign_in_to, sign_out_of, test_server
from hermes_agent.cli.commands.verbs import group_of
from hermes_agent.cli.operation import ask
from hermes_agent.cli.output import remark, say
from hermes_agent.cli.surface import Surface, pass_surface
from hermes_agent.core.errors import ConfigError, HermesError
from hermes_agent.host.config_edit import set_value, set_values, unset
from hermes_agent.host.late import late
from hermes_agent.host.loops import run as run_loop
from hermes_agent.host.paths import current_folder
from hermes_agent.host.secrets import SHORTEST_HIDDEN
from hermes_agent.sandbox.jail import SECRET
from hermes_agent.tools.mcp.settings import HANDLE, McpServerSettings, Server, check, secrets_in

if TYPE_CHECKING:
    from hermes_agent.host.schema import Plain

mcp = group_of(MCP)
HEADERS = ("authorization", "cookie")
SERVE = "hermes_agent.mcp_server.stdio:serve"


@mcp.command()
@click.argument("name")
@click.argument("command", nargs=-1)
@click.option("--url", default="", help="Address of a server elsewhere, instead of a command.")
@click.option("--sse", is_flag=True, help="Talk to the address by the older SSE.")
@click.option("--header", "headers", multiple=True, metavar="NAME=VALUE", help="A header of each request.")
@click.option("--env", multiple=True, metavar="NAME=VALUE", help="A variable of the program.")
@click.option("--auth", type=click.Choice(["none", "oauth"]), default="none", help="Whether one signs in to it.")
@click.option("--no-test", is_flag=True, help="Do not connect to it now.")
@pass_surface
def add(  # noqa: PLR0913 - what a server may be
    surface: Surface,
    name: str,
    command: tuple[str, ...],
    url: str,
    sse: bool,
    headers: tuple[str, ...],
    env: tuple[str, ...],
    auth: Literal["none", "oauth"],
    no_test: bool,
) -> None:
    """Add a server: `hermes mcp add NAME -- COMMAND ARGUMENTS`, or with `--url`.

    A value that looks like a secret is saved as one, and the settings only name it.
    """
    program, *args = command or ("",)
    settings = McpServerSettings(
        command=program,
        args=tuple(args),
        url=url,
        transport="sse" if sse else "http",
        headers=_pairs(headers),
        env=_pairs(env),
        auth=auth,
    )
    _write(surface, Server(name=name, settings=settings))
    say(f"Saved {name} in {surface.home.config_file}.", name=name)
    if auth == "oauth":
        remark(f"Sign in to it: `hermes mcp login {name}`.")
    elif not no_test:
        _try(surface, name)


@mcp.command()
@click.argument("name")
@pass_surface
def remove(surface: Surface, name: str) -> None:
    """Remove a server from the settings."""
    _check_known(surface, name)
    unset(surface.home, surface.schema, f"mcp_servers.{name}")
    ask(surface, partial(forget_server, name=name))
    say(f"{name} is removed. Secrets that were saved for it stay: `hermes secrets list`.", name=name)


@mcp.command()
@click.argument("name")
@pass_surface
def enable(surface: Surface, name: str) -> None:
    """Offer the tools of a server again."""
    _switch(surface, name, on=True)


@mcp.command()
@click.argument("name")
@pass_surface
def disable(surface: Surface, name: str) -> None:
    """Offer the tools of a server no more."""
    _switch(surface, name, on=False)


@mcp.command()
@click.argument("name")
@click.argument("setting")
@click.argument("value")
@pass_surface
def configure(surface: Surface, name: str, setting: str, value: str) -> None:
    """Change a setting of a server, as `trust hints` or `tools.include "[read_*]"`."""
    _check_known(surface, name)
    set_value(surface.home, surface.schema, f"mcp_servers.{name}.{setting}", value)
    say(f"{name}: {setting} is {surface.secrets.redact(value)}. It counts from the next session on.", name=name)


@mcp.command("import")
@click.argument("file", required=False, type=click.Path(path_type=Path))
@pass_surface
def import_(surface: Surface, file: Path | None) -> None:
    """Take servers from a file of Claude, Cursor or VS Code; without FILE, from where those programs keep them.

    Servers that the settings already have stay as they are.
    """
    found = [each for path in ([file] if file else _places()) if (each := read_servers(path))]
    if not found:
        raise ConfigError(f"{file} is not there." if file else "No file of another program names servers here.")
    for each in found:
        for server in each.servers:
            if server.name in surface.loaded.value.mcp_servers:
                remark(f"{server.name}: the settings have one of this name; that of {each.path} is left out.")
                continue
            _write(surface, server)
            needs = secrets_in(msgspec.json.encode(server.settings).decode())
            say(f"{server.name}: taken from {each.path}{', and gets the secrets ' * bool(needs)}{', '.join(needs)}")
        for why in each.skipped or (() if each.servers else (f"{each.path} names no servers.",)):
            remark(why)


@mcp.command()
@click.argument("name")
@click.option("--paste", is_flag=True, help="The browser is on another machine: paste the address where it ends.")
@pass_surface
def login(surface: Surface, name: str, paste: bool) -> None:
    """Sign in to a server (`auth: oauth`)."""

    async def show(address: str) -> None:
        say(f"Open this address, and sign in:\n{address}")

    async def pasted() -> str:
        prompt = "The address where the browser ended"
        return str(await asyncio.to_thread(click.prompt, prompt, type=str))

    say(said_of(ask(surface, partial(sign_in_to, name=name, show=show, paste=pasted if paste else None))))


@mcp.command()
@click.argument("name")
@pass_surface
def logout(surface: Surface, name: str) -> None:
    """Forget the sign-in to a server, and have its issuer revoke it."""
    revoked = ask(surface, partial(sign_out_of, name=name))
    say(f"The sign-in to {name} is forgotten{' and revoked' if revoked else ''}.", name=name, revoked=revoked)


@mcp.command()
@click.argument("name")
@click.option("--paste", is_flag=True, help="As with `login`.")
@click.pass_context
def reauth(context: click.Context, name: str, paste: bool) -> None:
    """Sign in to a server anew, with a new registration."""
    ask(context.ensure_object(Surface), partial(sign_out_of, name=name, client=True))
    context.invoke(login, name=name, paste=paste)


@mcp.command()
@click.option("--approve", is_flag=True, help="Let that program approve calls of runs, also of those that it started.")
@pass_surface
def serve(surface: Surface, approve: bool) -> None:
    """Serve this home to another program as an MCP server, over standard input and output."""
    try:
        serving = late(SERVE)
    except ModuleNotFoundError as error:
        raise HermesError(f"This needs the extra `mcp`: pip install 'hermes-runtime[mcp]' ({error.name}).") from error
    run_loop(serving(surface.home.ensure(), remark, model=surface.invocation.model, approve=approve))


def _places() -> list[Path]:
    here, home = current_folder(), Path.home()
    return list(dict.fromkeys([*(here / name for name in KNOWN), *(home / name for name in PERSONAL)]))


def _pairs(given: tuple[str, ...]) -> dict[str, str]:
    pairs = [each.partition("=") for each in given]
    if wrong := [name for name, equals, _ in pairs if not (name and equals)]:
        raise ConfigError(f"`{wrong[0]}` is not NAME=VALUE.")
    return {name: value for name, _, value in pairs}


def _write(surface: Surface, server: Server) -> None:
    """Write a server into the settings, and its secrets apart. Raises `ConfigError`."""
    check(server)
    if server.name in surface.loaded.value.mcp_servers:
        raise ConfigError(f"There is an MCP server {server.name} already: `hermes mcp remove {server.name}`.")
    server = replace(server, settings=replace(server.settings, **_kept_apart(surface, server)))
    usual = McpServerSettings()
    values = {field.name: getattr(server.settings, field.name) for field in fields(McpServerSettings)}
    changed = {key: value for key, value in values.items() if value != getattr(usual, key)}
    for key in ("env", "headers"):
        if key in changed:
            changed[key] = _without_secrets(surface, server.name, changed[key])
    texts = {f"mcp_servers.{server.name}.{key}": _text(value) for key, value in changed.items()}
    set_values(surface.home, surface.schema, texts)


def _kept_apart(surface: Surface, server: Server) -> dict[str, Any]:
    """The address and the arguments of a server, with what is a secret in them saved as one."""
    url, args = server.settings.url, list(server.settings.args)
    for literal in replace(server, settings=replace(server.settings, env={}, headers={})).literals:
        if len(literal) >= SHORTEST_HIDDEN and literal in "\n".join((url, *args)):
            what = f"what is a secret in the {'address' if url else 'arguments'}"
            number = 1 + url.count("${") + "".join(args).count("${")
            handle = _saved(surface, f"MCP_{server.name}_{number}", literal, what)
            url, *args = (each.replace(literal, handle) for each in (url, *args))
    return {"url": url, "args": tuple(args)}


def _without_secrets(surface: Surface, server: str, values: Mapping[str, str]) -> dict[str, str]:
    kept = dict(values)
    for name, value in values.items():
        if not HANDLE.search(value) and (SECRET.search(name.replace("-", "_")) or name.lower() in HEADERS):
            kept[name] = _saved(surface, f"MCP_{server}_{name}", value, f"the value of {name}")
    return kept


def _saved(surface: Surface, name: str, value: str, what: str) -> str:
    """Save a value as a secret of this name, or with a number where another has it; what stands for it."""
    name = re.sub(r"\W", "_", name).upper()
    names = chain((name,), (f"{name}_{number}" for number in count(2)))
    free = next(each for each in names if surface.secrets.get(each) in ("", value))
    surface.secrets.set(free, value)
    remark(f"Saved {what} as the secret {free}.")
    return f"${{secret:{free}}}"


def _text(value: Plain | tuple[str, ...]) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _check_known(surface: Surface, name: str) -> None:
    known = surface.loaded.value.mcp_servers
    if name not in known:
        raise ConfigError(f"There is no MCP server `{name}` in the settings. There are: {', '.join(known) or 'none'}.")


def _switch(surface: Surface, name: str, *, on: bool) -> None:
    _check_known(surface, name)
    set_value(surface.home, surface.schema, f"mcp_servers.{name}.enabled", "true" if on else "false")
    say(f"{name} is {'on' if on else 'off'}, from the next session on.", name=name, enabled=on)


def _try(surface: Surface, name: str) -> None:
    try:
        say(said_of(ask(surface, partial(test_server, name=name))))
    except HermesError as error:
        remark(f"{error}")
