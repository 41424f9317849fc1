"""Whatever a request holds: no answer is a failure of ours. Requests are made up out of the API's own description."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.commands.test_api import KEY, running, settle

EXAMPLES = "15"


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_no_request_makes_the_server_fail(home: Path):
    settle(home)
    with running(home, "api", "run") as (process, line):
        url = line.split()[-1].removesuffix("/v1")
        done = subprocess.run(
            [
                *(sys.executable, "-m", "schemathesis.cli", "run", f"{url}/openapi.json"),
                *("-H", f"Authorization: Bearer {KEY}", "--checks", "not_a_server_error", "--no-color"),
                *("--phases", "coverage,fuzzing", "--max-examples", EXAMPLES, "--seed", "7"),
            ],
            env={"PATH": "/usr/bin:/bin"},
            cwd=home,
            capture_output=True,
            text=True,
            timeout=280,
            check=False,
        )
        assert done.returncode == 0, done.stdout[-4000:]
        assert process.poll() is None
    assert " passed" in done.stdout
