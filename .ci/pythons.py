"""The other versions of Python that the program promises to run on, and an environment of the tests for each."""

import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
SUITS = "import fcntl, ssl, sys, venv; sys.exit('%d.%d' % sys.version_info[:2] != sys.argv[1])"


class NoPython(Exception):
    """The suite cannot run under a version here, with the reason."""


def others() -> list[str]:
    """The versions that pyproject.toml names, such as `3.12`, without the one that runs."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    names = [each.rpartition(" ")[2] for each in project["classifiers"] if "Python :: 3." in each]
    return [name for name in names if name != "{}.{}".format(*sys.version_info)]


def provide(version: str) -> Path:
    """The interpreter of an environment from the lock of the tests, which is made when it is not there."""
    python = next((each for each in candidates(version) if suits(each, version)), None)
    if python is None:
        raise NoPython(f"no python{version} on the PATH, of pyenv or of uv")
    env = Path(sys.prefix).with_name(f".venv-{version}")
    made = subprocess.run(
        [python, "-I", ROOT / ".ci/environment.py", ROOT, env, ROOT / "requirements-dev.lock"], check=False
    )
    if made.returncode:
        raise NoPython(f"{env} could not be made")
    return env / "bin" / "python"


def candidates(version: str) -> Iterator[str]:
    """A version manager keeps versions that are not on the PATH, or a stand-in there that leads nowhere."""
    yield f"python{version}"
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    yield from map(str, sorted(pyenv.glob(f"versions/{version}.*/bin/python")))
    if shutil.which("uv"):
        command = ["uv", "python", "find", "--no-python-downloads", version]
        yield subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()


def suits(python: str, version: str) -> bool:
    try:
        return not subprocess.run([python, "-I", "-c", SUITS, version], capture_output=True, check=False).returncode
    except OSError:
        return False
