"""A start loads only what it uses."""

import subprocess
import sys

from tests.architecture.source import ROOT

HEAVY = {"click", "httpx2", "prompt_toolkit", "rich", "starlette", "asyncpg", "yaml", "ruamel", "tree_sitter"}


def imports_of(*arguments: str) -> set[str]:
    """The top-level modules that a run of Python with these arguments imports."""
    result = subprocess.run(
        [sys.executable, "-X", "importtime", *arguments],
        env={"PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        timeout=25,
        check=True,
    )
    lines = (line.rpartition("|")[2].strip() for line in result.stderr.splitlines() if line.startswith("import time:"))
    return {line.split(".")[0] for line in lines}


def test_showing_the_version_loads_nothing_heavy():
    start = "import sys; sys.argv[1:] = ['--version']; from hermes_agent.cli.main import main; sys.exit(main())"
    assert imports_of("-c", start) & HEAVY == set()


def test_a_heavy_import_is_found():
    assert imports_of("-c", "import click.core") & HEAVY == {"click"}
