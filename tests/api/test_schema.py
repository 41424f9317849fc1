"""Whatever a request holds: no answer is a failure of ours, and each is as the description says.

Requests are made up out of that description."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.commands.test_worker import KEY, running, settle
from tests.cli.shell import ROOT

CHECKS = (
    "not_a_server_error",
    "content_type_conformance",
    "response_schema_conformance",
    "unsupported_method",
    "allow_header_conformance",
    "negative_data_rejection",
    "refused_as_described",
)


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_no_request_makes_the_server_fail_or_answer_otherwise_than_it_says(home: Path, full: bool):
    settle(home)
    with running(home, "api", "run") as (process, line):
        url = line.split()[-1].removesuffix("/v1")
        done = subprocess.run(
            [
                *(sys.executable, "-m", "schemathesis.cli", "run", f"{url}/openapi.json"),
                *("-H", f"Authorization: Bearer {KEY}", "--checks", ",".join(CHECKS), "--no-color"),
                *("--phases", "coverage,fuzzing", "--max-examples", "40" if full else "6", "--seed", "7"),
            ],
            env={"PATH": "/usr/bin:/bin", "PYTHONPATH": str(ROOT), "SCHEMATHESIS_HOOKS": "tests.api.refusals"},
            cwd=home,
            capture_output=True,
            text=True,
            timeout=280,
            check=False,
        )
        assert done.returncode == 0, done.stdout[-4000:]
        assert process.poll() is None
    assert " passed" in done.stdout
