"""Subcommand `hermes checkpoints`: list, compare, restore and prune file checkpoints."""

from __future__ import annotations

import asyncio
from pathlib import Path

import click

from hermes_agent.app.operations.checkpoints import (
    checkpoints_of,
    count_folders,
    folder_of,
    prune_folders,
    restore_report,
    when,
)
from hermes_agent.cli.output import say, show, table
from hermes_agent.cli.surface import Surface, pass_surface
from hermes_agent.core.clock import SystemClock
from hermes_agent.host.paths import current_folder
from hermes_agent.tools.checkpoints.checkpoints import Checkpoint, Checkpoints

ROOT = click.option("--root", default="", metavar="FOLDER", help="The folder; by default the one that you are in.")
NUMBER = click.argument("number", type=click.IntRange(min=1))
FILE = click.argument("file", default="")


@click.group(short_help="List checkpoints of changed files, and restore them.")
def checkpoints() -> None:
    """List checkpoints of changed files, and restore them."""


@checkpoints.command("list")
@ROOT
@click.option("--all", "everywhere", is_flag=True, help="The folders that have checkpoints, and how many.")
@pass_surface
def list_(surface: Surface, root: str, *, everywhere: bool) -> None:
    """List the checkpoints of a folder, the latest first."""
    kept = _kept(surface)
    if everywhere:
        _list_folders(kept)
        return
    found = asyncio.run(kept.of(_root(root)))
    rows = [(str(each.number), when(each.at), each.told.why, each.told.session or "-") for each in found]
    listed = table(rows, ("N", "TAKEN", "BEFORE", "SESSION"), right=(0,)) if rows else "No checkpoint of this folder."
    show([_plain(each) for each in found], lambda _: listed)


@checkpoints.command("show")
@NUMBER
@ROOT
@pass_surface
def show_(surface: Surface, number: int, root: str) -> None:
    """Show one checkpoint, and which files changed since."""
    kept, folder = _kept(surface), _root(root)
    chosen = asyncio.run(kept.find(folder, number))
    diff = asyncio.run(kept.diff(folder, number))
    changed = [line.partition(" b/")[2] for line in diff.splitlines() if line.startswith("diff --git ")]
    head, lines = f"{number}  {when(chosen.at)}  before {chosen.told.why}", changed or ["Nothing changed since."]
    show({**_plain(chosen), "changed": changed}, lambda _: "\n  ".join((head, *lines)))


@checkpoints.command()
@NUMBER
@FILE
@ROOT
@pass_surface
def diff(surface: Surface, number: int, file: str, root: str) -> None:
    """Show what changed since a checkpoint, in all files or in one."""
    text = asyncio.run(_kept(surface).diff(_root(root), number, file))
    told = {"number": number, "diff": text}
    show(told, lambda _: text.rstrip("\n") or "Nothing changed since.")


@checkpoints.command()
@NUMBER
@FILE
@ROOT
@pass_surface
def restore(surface: Surface, number: int, file: str, root: str) -> None:
    """Restore all files, or one, to a checkpoint. Hermes takes a checkpoint first, so you can undo this."""
    done = asyncio.run(_kept(surface).restore(_root(root), number, file))
    told = {"written": done.written, "removed": done.removed, "undo": done.undo.number}
    show(told, lambda _: restore_report(done, number))


@checkpoints.command()
@click.option("--keep", type=click.IntRange(min=1), help="Number of checkpoints to keep; default: checkpoints.keep.")
@ROOT
@click.option(
    "--all", "everywhere", is_flag=True, help="All folders; also delete the checkpoints of folders that are gone."
)
@pass_surface
def prune(surface: Surface, keep: int | None, root: str, *, everywhere: bool) -> None:
    """Delete the older checkpoints of a folder."""
    gone = asyncio.run(prune_folders(_kept(surface), None if everywhere else _root(root), keep))
    say(f"{gone} forgotten.", forgotten=gone)


def _list_folders(kept: Checkpoints) -> None:
    found = asyncio.run(count_folders(kept))
    rows = [(root, str(count)) for root, count in found]
    listed = table(rows, ("FOLDER", "CHECKPOINTS"), right=(1,)) if rows else "No checkpoints."
    show([{"root": root, "checkpoints": count} for root, count in found], lambda _: listed)


def _kept(surface: Surface) -> Checkpoints:
    return checkpoints_of(surface.home, surface.loaded.value.checkpoints, SystemClock())


def _root(named: str) -> Path:
    return folder_of(named, current_folder())


def _plain(each: Checkpoint) -> dict[str, object]:
    told_ = each.told
    return {"number": each.number, "at": each.at, "before": told_.why, "session": told_.session, "whole": told_.whole}
