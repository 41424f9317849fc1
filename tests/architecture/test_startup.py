"""A start loads only what it uses."""

import subprocess
import sys
from pathlib import Path

import pytest

from hermes_agent.providers.demo.script import Say
from hermes_agent.providers.dialects import DIALECTS
from hermes_agent.testing.model_servers import ModelServer, openai_model, serving_in_thread
from tests.architecture.source import ROOT
from tests.doubles.model_servers import anthropic_model, responses_model

HEAVY = {"click", "httpx2", "prompt_toolkit", "rich", "httptools", "asyncpg", "yaml", "ruamel"}
HEAVY |= {"acp", "pydantic"}
HEAVY |= {"pypdf", "docx", "openpyxl", "lxml", "trafilatura", "selectolax"}


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


# What single vendors need and the others do not.
FOREIGN = {"botocore", "boto3", "google", "openai", "anthropic", "mistralai", "prompt_toolkit"}
OF_VENDORS = tuple(f"hermes_agent.providers.{folder}." for folder in ("vendors", "dialects", "signin"))
ASK = """
import sys
from hermes_agent.cli.main import main
sys.argv[1:] = ["-z", "Hi"]
code = main()
print(*sorted(sys.modules), file=sys.stderr)
sys.exit(code)
"""


def vendor_files(modules: set[str]) -> set[str]:
    return {module for module in modules if module.startswith(OF_VENDORS)}


def test_showing_the_version_loads_no_vendor():
    start = "import sys; sys.argv[1:] = ['--version']; from hermes_agent.cli.main import main; main()"
    start += "; print(*sorted(sys.modules), file=sys.stderr)"
    done = subprocess.run(
        [sys.executable, "-c", start], env={"PYTHONPATH": str(ROOT / "src")}, capture_output=True, text=True, check=True
    )
    assert vendor_files(set(done.stderr.split())) == set()


@pytest.mark.parametrize(
    ("vendor", "server", "reader"),
    [
        ("deepseek", openai_model([Say("Hi.")], keys=()), "openai_chat"),
        ("minimax", anthropic_model([Say("Hi.")], keys=()), "anthropic"),
        ("openai/gpt-6-sol", responses_model([Say("Hi.")], keys=()), "openai_responses"),
    ],
    ids=["deepseek", "minimax", "openai"],
)
def test_the_first_request_of_a_vendor_loads_no_other_dialect(
    tmp_path: Path, vendor: str, server: ModelServer, reader: str
):
    name = vendor.partition("/")[0]
    with serving_in_thread(server) as served:
        done = subprocess.run(
            [sys.executable, "-c", ASK],
            env={
                "PYTHONPATH": str(ROOT / "src"),
                "HERMES_HOME": str(tmp_path),
                "HERMES_MODEL": vendor,
                f"{name.upper()}_API_KEY": "k",
                f"{name.upper()}_BASE_URL": served.url,
            },
            cwd=tmp_path,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=25,
            check=False,
        )
    loaded = set(done.stderr.split())
    others = {line.partition(":")[0] for line in DIALECTS.values() if line != DIALECTS[reader]}
    assert (done.stdout, done.returncode) == ("Hi.\n", 0)
    assert loaded & others == set()
    assert {module.split(".")[0] for module in loaded} & FOREIGN == set()
    assert not any(module.startswith("hermes_agent.providers.signin") for module in loaded)


def test_a_heavy_import_is_found():
    assert imports_of("-c", "import click.core") & HEAVY == {"click"}
