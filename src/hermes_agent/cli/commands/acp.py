"""Subcommand `hermes acp`: the agent in editors, its check, and the settings of editors."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import click
import msgspec

from hermes_agent.cli.output import remark, say
from hermes_agent.cli.surface import Surface, pass_surface
from hermes_agent.cli.table import COMMANDS
from hermes_agent.core.errors import ConfigError, HermesError
from hermes_agent.host.late import late
from hermes_agent.host.paths import read_small

SERVE, CHECK = "hermes_agent.acp.serve:serve", "hermes_agent.acp.check:check"
CLAIM, RUN = "hermes_agent.acp.transport:claim_stdio", "hermes_agent.host.loops:run"
MISSING = "The agent in editors needs the extra `acp`: pip install 'hermes-runtime[acp]' ({})."
NAME = "Hermes"
FILES = {"zed": ".config/zed/settings.json", "jetbrains": ".jetbrains/acp.json"}
"""Settings of editors that are JSON, below the person's home folder."""
PROGRAMS = {
    "neovim": """-- CodeCompanion: lua/plugins/codecompanion.lua
require("codecompanion").setup({{
  interactions = {{ chat = {{ adapter = "hermes" }} }},
  adapters = {{ acp = {{ hermes = function()
    return require("codecompanion.adapters").extend("gemini_cli", {{
      name = "hermes", formatted_name = "Hermes",
      commands = {{ default = {words} }}, env = {env},
    }})
  end }} }},
}})
-- Avante
require("avante").setup({{ provider = "hermes", acp_providers = {{
  hermes = {{ command = {command}, args = {args}, env = {env} }},
}} }})""",
    "emacs": """;; agent-shell: M-x hermes-shell
(defun hermes-shell ()
  (interactive)
  (agent-shell-start
   :config (agent-shell-make-agent-config
            :identifier 'hermes :buffer-name "Hermes" :mode-line-name "Hermes"
            :shell-prompt "Hermes> " :shell-prompt-regexp "Hermes> "
            :client-maker (lambda (buffer)
                            (agent-shell--make-acp-client
                             :command {command} :command-params '({params})
                             :environment-variables '({variables}) :context-buffer buffer)))))""",
}
LARGEST = 1 << 20


@click.group(invoke_without_command=True, short_help="Serve the agent to an editor.")
@click.option("--check", is_flag=True, help="Try it out with a scripted model, and say what it can do.")
@click.pass_context
def acp(context: click.Context, check: bool) -> None:
    """Serve the agent to an editor by the Agent Client Protocol, on standard input and output.

    Editors start it themselves: `hermes acp install zed` shows what to tell them.
    """
    surface = context.ensure_object(Surface)
    if context.invoked_subcommand is not None:
        return
    try:
        if check:
            say(late(RUN)(late(CHECK)(surface.loaded, surface.secrets)))
            return
        if sys.stdin.isatty():
            remark("This speaks with an editor, which starts it itself: `hermes acp install --help`. Ctrl-D ends it.")
        handles = late(CLAIM)()  # Before anything else can print.
        late(RUN)(late(SERVE)(surface.home, handles, surface.invocation.model))
    except ModuleNotFoundError as error:
        raise HermesError(MISSING.format(error.name)) from error


@acp.command()
@click.argument("editor", type=click.Choice([*FILES, *PROGRAMS]))
@click.option("--write", is_flag=True, help="Write it into the editor's settings; the old ones stay as a `.bak`.")
@pass_surface
def install(surface: Surface, editor: str, write: bool) -> None:
    """Show what the settings of an editor need, or write it into them."""
    command, args, env = _started(surface)
    if editor in PROGRAMS:
        if write:
            raise ConfigError(f"The settings of {editor} are a program: paste there what `install` shows.")
        say(_program(editor, command, args, env))
        return
    entry = {"command": command, "args": args, "env": env}
    file = Path.home() / FILES[editor]
    ours = {"agent_servers": {NAME: {"type": "custom", **entry} if editor == "zed" else entry}}
    if not write:
        say(json.dumps(ours, indent=2))
        remark(f"This belongs into {file}; `--write` puts it there.")
        return
    backup = _write(file, ours)
    say(f"{file} names {NAME} now.{f' The old file is {backup}.' if backup else ''}")


@acp.command()
@click.pass_context
def setup(context: click.Context) -> None:
    """Choose a model, as `hermes setup` does: editors call it so."""
    context.invoke(late(COMMANDS["setup"]))


def _started(surface: Surface) -> tuple[str, list[str], dict[str, str]]:
    """How an editor starts this program: command, arguments and variables."""
    command, args = shutil.which("hermes") or "", list[str]()
    if not command:
        command, args = sys.executable, ["-m", "hermes_agent"]
    profile = surface.invocation.profile
    args += [*(["-p", profile] if profile else []), "acp"]
    home = surface.variables.get("HERMES_HOME", "")
    return command, args, {"HERMES_HOME": home} if home else {}


def _program(editor: str, command: str, args: list[str], env: dict[str, str]) -> str:
    def lua(values: list[str]) -> str:
        return f"{{ {', '.join(map(json.dumps, values))} }}"

    return PROGRAMS[editor].format(
        command=json.dumps(command),
        args=lua(args),
        words=lua([command, *args]),
        env=f"{{ {', '.join(f'{name} = {json.dumps(value)}' for name, value in env.items())} }}",
        params=" ".join(map(json.dumps, args)),
        variables=" ".join(json.dumps(f"{name}={value}") for name, value in env.items()),
    )


def _write(file: Path, ours: dict[str, Any]) -> Path | None:
    """Add to an editor's settings; the file with the old ones. Raises `ConfigError` for settings that are no JSON."""
    content = read_small(file, LARGEST)
    settings: Any = {}
    try:
        settings = msgspec.json.decode(content) if content and content.strip() else {}
    except msgspec.DecodeError:
        settings = None
    if not isinstance(settings, dict) or not isinstance(settings.get("agent_servers", {}), dict):
        raise ConfigError(f"{file} is no plain JSON (it may have comments): paste there what `install` shows.")
    settings["agent_servers"] = {**settings.get("agent_servers", {}), **ours["agent_servers"]}
    backup = file.with_name(f"{file.name}.bak") if content is not None else None
    file.parent.mkdir(parents=True, exist_ok=True)
    if backup is not None:
        shutil.copy2(file, backup)
    file.write_text(json.dumps(settings, indent=2) + "\n")
    return backup
