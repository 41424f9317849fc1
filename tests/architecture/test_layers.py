"""The import contracts of pyproject.toml catch what they are there for; `./check` runs them over the program itself."""

import subprocess
import sys
import tomllib
from collections.abc import Collection
from pathlib import Path

import pytest

from tests.architecture.source import PACKAGE, ROOT

LINT = "from importlinter.cli import lint_imports_command; lint_imports_command()"

# A file, a line that it may not have, and a word of the contract that refuses it.
VIOLATIONS = [
    ("core/clock.py", "import hermes_agent.host.paths", "Layers"),
    ("host/paths.py", "import hermes_agent.store.database", "Layers"),
    ("store/database.py", "import hermes_agent.sandbox.place", "Layers"),
    ("tools/files.py", "import hermes_agent.skills.library", "Layers"),
    ("app/opening.py", "def late():\n    import hermes_agent.cli.main", "Layers"),
    ("novel/thing.py", "x = 1", "Layers"),
    ("agent/loop.py", "import hermes_agent.host.paths", "The small loop"),
    ("gateway/server.py", "import hermes_agent.store.database", "One front door"),
    ("api/serve.py", "import hermes_agent.runs.scheduler", "One front door"),
    ("mcp_server/adapter.py", "import hermes_agent.store.database", "One front door"),
    ("replay/seam.py", "import hermes_agent.runs.front", "Layers"),
    ("runs/front.py", "import hermes_agent.testing.clock", "Nothing that ships"),
    ("providers/dialects/chat.py", "import hermes_agent.providers.dialects.messages", "Dialects"),
    ("gateway/channels/irc.py", "import hermes_agent.gateway.channels.xmpp", "Channels"),
    ("app/commands/new.py", "import hermes_agent.app.commands.stop", "Slash commands"),
    ("work/cron/model.py", "import hermes_agent.work.board.model", "kinds of work"),
    ("core/spending.py", "import hermes_agent.core.clock", "No cycles"),
]

PROGRAM = {
    "core/clock.py": "import hermes_agent.core.spending",
    "core/spending.py": "",
    "host/paths.py": "import hermes_agent.core.clock",
    "store/database.py": "import hermes_agent.host.paths",
    "sandbox/place.py": "",
    "scanner/scan.py": "",
    "agent/loop.py": "import hermes_agent.store.database",
    "tools/files.py": "import hermes_agent.sandbox.place",
    "skills/library.py": "",
    "memory/notes.py": "",
    "learning/jobs.py": "import hermes_agent.agent.loop",
    "providers/dialects/chat.py": "",
    "providers/dialects/messages.py": "",
    "work/cron/model.py": "",
    "work/board/model.py": "",
    "replay/seam.py": "import hermes_agent.agent.loop",
    "runs/front.py": "import hermes_agent.replay.seam",
    "app/opening.py": "import hermes_agent.runs.front",
    "app/commands/new.py": "",
    "app/commands/stop.py": "",
    "gateway/server.py": "import hermes_agent.app.opening",
    "api/serve.py": "import hermes_agent.app.opening",
    "acp/serve.py": "import hermes_agent.app.opening",
    "mcp_server/adapter.py": "import hermes_agent.app.opening",
    "gateway/channels/irc.py": "",
    "gateway/channels/xmpp.py": "",
    "cli/main.py": "import hermes_agent.gateway.server",
    "testing/clock.py": "import hermes_agent.core.clock",
}


def lint(root: Path, program: dict[str, str]) -> subprocess.CompletedProcess[str]:
    for name, text in program.items():
        file = root / "src/hermes_agent" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    for folder in [root / "src/hermes_agent", *(root / "src/hermes_agent").rglob("*/")]:
        (folder / "__init__.py").touch()
    arguments = ["--no-cache", "--no-logo", "--config", str(ROOT / "pyproject.toml")]
    command = [sys.executable, "-P", "-c", LINT, *arguments]
    environment = {"PYTHONPATH": str(root / "src"), "PATH": "", "COLUMNS": "300"}
    return subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, timeout=25, check=False)


def test_a_program_that_keeps_the_contracts_passes(tmp_path: Path):
    result = lint(tmp_path, PROGRAM)
    assert (result.returncode, result.stderr) == (0, ""), result.stdout


@pytest.mark.parametrize(("file", "line", "contract"), VIOLATIONS)
def test_a_broken_contract_is_found(tmp_path: Path, file: str, line: str, contract: str):
    result = lint(tmp_path, {**PROGRAM, file: line})
    broken = [title for title in result.stdout.splitlines() if title.endswith("BROKEN")]
    assert result.returncode == 1
    assert any(contract in title for title in broken), result.stdout


SURFACES = {"tui", "gateway", "api", "dashboard", "acp", "mcp_server", "ops"}
OPEN_TO_SURFACES = {"app", "core", "host"}
NO_SIDE = {"cli", "testing"}


def misnamed(packages: Collection[str], named: Collection[str]) -> list[str]:
    """Packages that a contract does not name, or names as if they did (not) exist."""
    right = {f"hermes_agent.{name}" for name in packages}
    there = {f"hermes_agent.{name}" for name in packages if (ROOT / PACKAGE / name).is_dir()}
    wanted = there | {f"{name}.**" for name in right - there}
    return sorted(wanted.symmetric_difference(named))


def test_the_one_front_door_names_each_package_as_it_is():
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    door = next(contract for contract in contracts if contract["name"].startswith("One front door"))
    layers = {name.strip(" ()") for layer in contracts[0]["layers"] for name in layer.split("|")}
    assert misnamed(SURFACES, door["source_modules"]) == []
    assert misnamed(layers - SURFACES - OPEN_TO_SURFACES - NO_SIDE, door["forbidden_modules"]) == []


def test_a_package_that_is_named_as_if_it_did_not_exist_is_found():
    assert misnamed({"core"}, ["hermes_agent.core.**"]) == ["hermes_agent.core", "hermes_agent.core.**"]
    assert misnamed({"nowhere"}, ["hermes_agent.nowhere"]) == ["hermes_agent.nowhere", "hermes_agent.nowhere.**"]
    assert misnamed({"core"}, ["hermes_agent.core"]) == []
    assert misnamed({"core"}, []) == ["hermes_agent.core"]
