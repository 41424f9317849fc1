"""Subcommand `hermes config`: read, change, check and explain settings."""

from __future__ import annotations

import json
import re
from typing import Any

import click

from hermes_agent.cli.exits import Exit
from hermes_agent.cli.output import remark, say, shortened, show as print_value, table
from hermes_agent.cli.picker_choices import ask_secret, edit as edit_in_editor
from hermes_agent.cli.surface import Surface, pass_surface
from hermes_agent.core.errors import ConfigError
from hermes_agent.host.config_edit import TELLING, explain, known, plain_of, replace_text, set_value, source_of, unset
from hermes_agent.host.late import late
from hermes_agent.host.paths import read_small, write_private
from hermes_agent.host.schema import Plain, PlainMap, build, find, plain_at, with_value
from hermes_agent.host.yaml_check import parse_value
from hermes_agent.providers.route import load_vendor

SECRET_NAME = re.compile(r"[A-Z][A-Z0-9_]*_[A-Z0-9_]+")
CHANNEL, PROVIDER = "gateway.channels.", "model.provider"
DEFAULT = "default"
VALUE = 60
"""Columns of a value in the list of settings."""
UNFIT = "hermes_agent.gateway.opening:unfit"


@click.group(short_help="Read and change the settings.")
def config() -> None:
    """Read and change the settings in config.yaml, and the keys in .env."""


@config.command()
@click.option("--all", "every", is_flag=True, help="Also the settings that have their default.")
@pass_surface
def show(surface: Surface, every: bool) -> None:
    """Show the settings that are set, with their values and where they come from. Keys are named, never shown."""
    loaded = surface.loaded
    values = hidden(surface, plain_of(loaded.value))
    facts = {
        "file": str(surface.home.config_file),
        "settings": values,
        "sources": loaded.sources,
        "problems": [str(problem) for problem in loaded.problems],
        "keys": {name: surface.secrets.source(name) for name in surface.secrets.kept},
    }
    rows = [(key, shortened(written(value), VALUE), source_of(loaded, key)) for key, value in leaves(surface, values)]
    rows.sort(key=lambda row: row[2] == DEFAULT)
    chosen = [row for row in rows if every or row[2] != DEFAULT]
    left = f"{len(rows) - len(chosen)} more have their default: `hermes config show --all` lists them."
    notes = (f"{name} is set in .env" for name in surface.secrets.kept)
    words = table(chosen, ("SETTING", "VALUE", "FROM")) if chosen else "Nothing is set: every setting has its default."
    print_value(facts, words, notes=filter(None, (*notes, left * (len(chosen) < len(rows)), loaded.notice)))


@config.command()
@click.argument("key")
@pass_surface
def get(surface: Surface, key: str) -> None:
    """Print the value of one setting."""
    known(surface.schema, key)
    loaded = surface.loaded
    value = plain_at(plain_of(loaded.value), key)
    say(written(value), key=key, value=hidden_value(surface, key, value), source=source_of(loaded, key))
    if loaded.notice:
        remark(loaded.notice)


@config.command("set", context_settings={"ignore_unknown_options": True})  # Ids of groups begin with a minus.
@click.argument("key")
@click.argument("value", required=False)
@pass_surface
def set_(surface: Surface, key: str, value: str | None) -> None:
    """Change one setting. A name like OPENAI_API_KEY is a key: it goes to .env, and Hermes asks for a missing VALUE."""
    if SECRET_NAME.fullmatch(key):
        surface.secrets.set(key, value if value is not None else ask_secret(key))
        say(f"Saved {key} in {surface.home.env_file}", key=key, source=".env")
        return
    if value is None:
        raise click.UsageError(f"The value of `{key}` is missing.")
    refuse(surface, key, value)
    set_value(surface.home, surface.schema, key, value)
    loaded = surface.loaded
    now, source = plain_at(plain_of(loaded.value), key), source_of(loaded, key)
    say(f"{key} = {written(now)}  ({source})", key=key, value=now, source=source)


@config.command("unset")
@click.argument("key")
@pass_surface
def unset_(surface: Surface, key: str) -> None:
    """Remove one setting from config.yaml (or one key from .env); the default applies again."""
    is_key = SECRET_NAME.fullmatch(key)
    removed = surface.secrets.unset(key) if is_key else unset(surface.home, surface.schema, key)
    say(f"{key} is no longer set." if removed else f"{key} was not set.", key=key, removed=removed)


@config.command()
@pass_surface
def edit(surface: Surface) -> int:
    """Open config.yaml in $EDITOR. Hermes saves only a valid file."""
    home = surface.home.ensure()
    draft = home.cache / "config.edit.yaml"
    write_private(
        draft, read_small(home.config_file) or b"# The settings of Hermes; `hermes config show --all` lists them.\n"
    )
    while True:
        edit_in_editor(file=draft)
        checked = replace_text(home, surface.schema, read_small(draft) or b"")
        if not checked.problems:
            draft.unlink()
            say(f"{home.config_file} is valid and in force.")
            return Exit.OK
        for problem in checked.problems:
            remark(str(problem))
        if not click.confirm("Edit again?", default=True, err=True):
            remark(f"Nothing was changed. Your text is kept in {draft}.")
            return Exit.CONFIG


@config.command()
@pass_surface
def check(surface: Surface) -> int:
    """Check config.yaml and .env, and show each error with its line."""
    loaded = surface.loaded
    for text in (*map(str, loaded.problems), *surface.secrets.warnings):
        say(text)
    if loaded.problems:
        remark(loaded.remedy)
        return Exit.CONFIG
    wrong = channels(loaded.value)
    for key, text in wrong.items():
        say(f"{place_of(surface, key)}: {text}")
    if wrong:
        return Exit.CONFIG
    say(f"{surface.home.config_file}: no errors" + ("" if loaded.basis == "file" else " (there is no file: defaults)"))
    return Exit.OK


@config.command("explain")
@click.argument("key")
@pass_surface
def explain_(surface: Surface, key: str) -> None:
    """Explain one setting: its meaning, value, source and default."""
    found, value, source, default = explain(surface.loaded, surface.schema, key)
    value = hidden_value(surface, key, value)
    facts = {"key": key, "value": value, "source": source, "default": default}
    rows = [("value", written(value)), ("from", source), ("default", written(default)), ("takes", found.expected)]
    words = "\n".join(filter(None, (found.doc, table(rows))))
    print_value({**facts, "takes": found.expected, "meaning": found.doc}, words)


@config.command()
@pass_surface
def path(surface: Surface) -> None:
    """Print where config.yaml is."""
    say(str(surface.home.config_file))


def refuse(surface: Surface, key: str, text: str) -> None:
    """Raise `ConfigError` for a value that no vendor or channel could take."""
    value, problem = parse_value(text, known(surface.schema, key), key)
    if problem:
        raise ConfigError(problem)
    if key == PROVIDER and text:
        load_vendor(text)
    if key.startswith(CHANNEL):
        settings = build(surface.schema, with_value(plain_of(surface.loaded.value), key, value))
        for wrong, why in channels(settings).items():
            if key == wrong or key.startswith(f"{wrong}."):
                raise ConfigError(why)


def channels(settings: Any) -> dict[str, str]:  # noqa: ANN401  a schema of a test
    """Problems with channel settings, by dotted key; they are checked against the table of channels, not the schema."""
    found: dict[str, str] = late(UNFIT)(settings.gateway) if hasattr(settings, "gateway") else {}
    return found


def place_of(surface: Surface, key: str) -> str:
    """File and line where a key is set, or the nearest one."""
    sources = surface.loaded.sources
    lines = [where for name, where in sources.items() if name == key or name.startswith(f"{key}.")]
    lines += [where for name, where in sources.items() if key.startswith(f"{name}.")]
    line = min((int(each.rpartition(":")[2]) for each in lines if each.rpartition(":")[2].isdigit()), default=0)
    return f"{surface.home.config_file}:{line}" if line else str(surface.home.config_file)


def written(value: Plain) -> str:
    """A value in the form that `hermes config set` accepts."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def leaves(surface: Surface, values: PlainMap, prefix: str = "") -> list[tuple[str, Plain]]:
    """All settings by dotted key, including those of free-named sections."""
    found: list[tuple[str, Plain]] = []
    for name, value in values.items():
        key = f"{prefix}{name}"
        entry = find(surface.schema, key)
        opened = entry is not None and entry.schema is not None
        if opened and isinstance(value, dict) and value:
            found += leaves(surface, value, f"{key}.")
        else:
            found.append((key, value))
    return found


def hidden(surface: Surface, values: PlainMap, prefix: str = "") -> PlainMap:
    """The values with everything masked that is or looks like a secret."""
    return {name: hidden_value(surface, f"{prefix}{name}", value) for name, value in values.items()}


def hidden_value(surface: Surface, key: str, value: Plain) -> Plain:
    """One value with secrets masked at any depth."""
    if isinstance(value, dict):
        return hidden(surface, value, f"{key}.")
    if isinstance(value, list):
        return [hidden_value(surface, key, item) for item in value]
    if not isinstance(value, str):
        return value
    return "[secret]" if value and TELLING.search(key) else surface.secrets.redact(value)
