"""Writes what is made from the program: docs/cli.md, docs/configuration.md, and the cards of the built-in tools.

Without an argument it writes them; with --check it changes nothing and fails where a page is not what it would write.
"""

import sys
from collections.abc import Iterator
from pathlib import Path

import click

from hermes_agent.app.manifest import FILE as CARDS, TOOLSETS, BuiltIn, written
from hermes_agent.app.settings import Settings
from hermes_agent.app.toolkit import needs_without_store
from hermes_agent.cli.exits import MEANINGS
from hermes_agent.cli.group import hermes
from hermes_agent.host.config import OVERRIDES
from hermes_agent.host.paths import Home
from hermes_agent.host.schema import Setting, describe, walk

DOCS = Path(__file__).parent.parent / "docs"
MADE = "<!-- Written by .ci/manual.py; a change belongs into the program. -->\n"
WIDTH = 80


def cli_page() -> str:
    """Every command's own help, and the exit codes."""
    parts = [f"# Command line\n\n{MADE}"]
    parts.append(
        "`hermes` starts a chat; `hermes -z PROMPT` prints one reply and nothing else. Results go to standard output, "
        "remarks to standard error, both without control codes. Commands that list something take `--json`.\n"
    )
    parts.append("## Exit codes\n\n| code | meaning |\n|--:|---|")
    parts += [f"| {code.value} | {meaning} |" for code, meaning in MEANINGS.items()]
    for path, command in commands(hermes, "hermes"):
        help_text = command.get_help(click.Context(command, info_name=path, max_content_width=WIDTH)).rstrip()
        parts.append(f"\n{'#' * min(4, 2 + path.count(' '))} {path}\n\n```text\n{help_text}\n```")
    return "\n".join(parts) + "\n"


def commands(command: click.Command, path: str) -> Iterator[tuple[str, click.Command]]:
    """A command and everything below it, each with the words that lead to it."""
    yield path, command
    if isinstance(command, click.Group):
        context = click.Context(command, info_name=path)
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            if inner is not None and not inner.hidden:
                yield from commands(inner, f"{path} {name}")


def configuration_page() -> str:
    """Every setting with what it takes, its default and its meaning."""
    overrides = ", ".join(f"`{name}` for `{key}`" for name, key in OVERRIDES.items())
    parts = [f"# Settings\n\n{MADE}"]
    parts.append(
        "`hermes config set KEY VALUE` changes one setting and keeps your comments. `hermes config explain KEY` says "
        "where a value comes from. Settings stand in `config.yaml` in the home (`HERMES_HOME`, by default "
        "`~/.hermes`), keys in `.env` beside it or in the environment.\n\nA key that is not listed here is an error; "
        "the sentence names its line and the nearest key. After a mistake in the file the last good settings stay in "
        "force, and every surface says so. Without any good settings nothing runs.\n"
    )
    parts.append(f"The environment may say one thing instead of the file: {overrides}.\n")
    top = [(name, entry) for name, entry in describe(Settings).items() if entry.schema is None]
    if top:
        parts.append(settings_table(top))
    for name, entry in describe(Settings).items():
        if entry.schema is not None:
            inside = f"{name}." if entry.kind == "section" else f"{name}.NAME."
            leaves = [(key, leaf) for key, leaf in walk(entry.schema, inside) if leaf.schema is None]
            parts.append(f"## {name}\n\n{entry.doc}\n{inner_sections(name, entry.schema)}\n{settings_table(leaves)}")
    return "\n".join(parts)


def inner_sections(name: str, schema: type[object]) -> str:
    """What each section inside of this one is about."""
    inner = [(key, entry) for key, entry in describe(schema).items() if entry.kind == "section"]
    lines = [f"- `{name}.{key}`: {entry.doc}" for key, entry in inner]
    return "\n" + "\n".join(lines) + "\n" if lines else ""


def settings_table(leaves: list[tuple[str, Setting]]) -> str:
    """Rows of a Markdown table; a `|` in a text would end its cell."""
    rows = ["| setting | takes | default | meaning |", "|---|---|---|---|"]
    for key, leaf in leaves:
        cells = (f"`{key}`", leaf.expected, default_of(leaf), leaf.doc)
        rows.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(rows) + "\n"


def default_of(leaf: Setting) -> str:
    """The default as a person would write it."""
    match leaf.default:
        case None | "":
            return "nothing"
        case bool():
            return str(leaf.default).lower()
        case list() | tuple() | dict():
            return ", ".join(leaf.default) or "nothing"
        case _:
            return str(leaf.default)


def tool_cards() -> str:
    """What a prompt says of the built-in tools."""
    built_in = BuiltIn(needs_without_store(Home(root=DOCS, base=DOCS), Settings()))
    return written({name: built_in.load(name) for name in TOOLSETS})


def main() -> int:
    pages = {DOCS / "cli.md": cli_page(), DOCS / "configuration.md": configuration_page(), CARDS: tool_cards()}
    if "--check" not in sys.argv[1:]:
        for page, text in pages.items():
            page.write_text(text)
        return 0
    old = [page for page, text in pages.items() if not page.exists() or page.read_text() != text]
    for page in old:
        print(f"{page} is not what the program says: python .ci/manual.py writes it")
    return 1 if old else 0


if __name__ == "__main__":
    sys.exit(main())
