"""Every kind of place, made on a folder of the test's; what this machine cannot do is skipped by name."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from hermes_agent.host.late import late
from hermes_agent.sandbox.backends.local import LocalPlace
from hermes_agent.sandbox.jail import CannotJail, jail_of, scrubbed, toolchains
from hermes_agent.sandbox.place import PLACES, Place
from hermes_agent.sandbox.settings import ContainerSettings, SingularitySettings
from hermes_agent.sandbox.walls import SYSTEM, Walls
from tests.sandbox.podman import ARGUMENTS, IMAGE, NoPodman, podman, remove_containers
from tests.sandbox.sshd import NoServer, server


def seen_environment() -> dict[str, str]:
    return scrubbed({**os.environ, "COLOUR": "blue"})


def local(folder: Path) -> Place:
    place: Place = late(PLACES["local"])(folder=folder / "exec", env=seen_environment())
    return place


def jailed(kind: str) -> Callable[[Path], Place]:
    def make(folder: Path) -> Place:
        readable = (*SYSTEM, *toolchains(str(Path.home()), os.environ))
        made = Walls(readable=readable, closed=(str(folder / "exec"),), person=str(Path.home()))
        try:
            jail = jail_of(kind, made)
        except CannotJail as reason:
            pytest.skip(f"no {kind} here: {reason}")
        return LocalPlace(folder=folder / "exec", env=seen_environment(), jail=lambda: jail)

    return make


def docker(folder: Path) -> Place:
    try:
        command = podman()
    except NoPodman as reason:
        pytest.skip(f"no containers here: {reason}")
    settings = ContainerSettings(image=IMAGE, command=command, arguments=ARGUMENTS, processes=100, tmp_mb=16)
    place: Place = late(PLACES["docker"])(folder / "docker", settings, Walls(), dict(os.environ), {"TERM": "dumb"})
    return place


def ssh(folder: Path) -> Place:
    try:
        settings = server()
    except NoServer as reason:
        pytest.skip(f"no ssh server here: {reason}")
    told = {"TERM": "dumb"}
    place: Place = late(PLACES["ssh"])(folder, settings, Walls(), {}, told, home=str(folder / "account"))
    return place


def singularity(folder: Path) -> Place:
    """Its command is a double: Debian has no apptainer. It keeps no walls, so only the rest is tested."""
    double = folder / "apptainer"
    double.write_text(DOUBLE)
    double.chmod(0o755)
    settings = SingularitySettings(image="any.sif", command=(str(double), str(folder)))
    place: Place = late(PLACES["singularity"])(
        folder / "singularity", settings, Walls(), dict(os.environ), {"TERM": "dumb"}, records=str(folder / "records")
    )
    return place


DOUBLE = """#!/bin/sh
# Stands for apptainer: instances are files, and what runs in one runs here.
folder=$1; shift
case $1 in
exec) [ -e "$folder/${2#instance://}" ] || { echo "no such instance" >&2; exit 255; }; shift 2; exec "$@" ;;
instance) case $2 in
    list) [ -e "$folder/$3" ] && echo "$3 1 any.sif"; exit 0 ;;
    start) for last; do :; done; : >"$folder/$last" ;;
    esac ;;
esac
"""


MAKERS: dict[str, Callable[[Path], Place]] = {
    "local": local,
    "bubblewrap": jailed("bubblewrap"),
    "landlock": jailed("landlock"),
    "docker": docker,
    "ssh": ssh,
    "singularity": singularity,
}


def remove_what_was_made(kind: str) -> None:
    """What a test of this kind of place would leave on the machine."""
    if kind == "docker":
        remove_containers()
