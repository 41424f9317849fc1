from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from hermes_agent.core.errors import ToolError
from tests.app.mcp.calling import PLAIN, calling, plain

WITHOUT = """
import asyncio, sys
from pathlib import Path
sys.modules["mcp_types"] = None
from hermes_agent.core.errors import HermesError
from tests.app.mcp.calling import calling, plain

async def main():
    async with calling(Path(sys.argv[1]), {"fix": plain()}, look=False) as call:
        try:
            await call("mcp_resource", action="list", server="fix")
        except HermesError as error:
            print(error)

asyncio.run(main())
"""
HOLDS = """
import asyncio, sys
from pathlib import Path
from tests.app.mcp.calling import ODD, calling, plain

async def main():
    deaf = plain(ODD, jail=sys.argv[2] == "walled", env={"MODE": "deaf"})
    async with calling(Path(sys.argv[1]), {"fix": deaf}) as call:
        print(*call.processes("fix"), flush=True)
        await asyncio.sleep(60)

asyncio.run(main())
"""
ROOT = Path(__file__).parents[3]


def started(code: str, folder: Path, *more: str) -> subprocess.Popen[bytes]:
    path = {"PYTHONPATH": f"{ROOT / 'src'}:{ROOT}", "PATH": "/usr/bin:/bin", "HOME": str(folder)}
    return subprocess.Popen([sys.executable, "-c", code, str(folder), *more], env=path, stdout=subprocess.PIPE)


def is_there(number: int) -> bool:
    return Path(f"/proc/{number}").exists()


def test_without_the_extra_it_says_how_to_get_it(tmp_path: Path):
    with started(WITHOUT, tmp_path) as running:
        assert running.stdout is not None
        said = running.stdout.read().decode()

    assert "MCP servers need the extra `mcp`: pip install 'hermes-runtime[mcp]'" in said


@pytest.mark.parametrize("wall", ["walled", "open"])
async def test_a_killed_process_leaves_no_server_behind_that_hears_nothing(tmp_path: Path, wall: str):
    with started(HOLDS, tmp_path, wall) as running:
        assert running.stdout is not None
        numbers = await asyncio.to_thread(running.stdout.readline)
        assert numbers.split()
        running.kill()
        async with asyncio.timeout(10):
            while any(is_there(int(number)) for number in numbers.split()):
                await asyncio.sleep(0.05)


async def test_a_program_that_is_not_there_says_so(tmp_path: Path):
    async with calling(tmp_path, {"fix": plain(command="no-such-program")}) as call:
        with pytest.raises(ToolError, match=r"no-such-program: not found"):
            await call("mcp_resource", action="list", server="fix")


async def test_without_the_wall_a_server_sees_the_home(tmp_path: Path):
    async with calling(tmp_path, {"fix": plain(jail=False)}) as call:
        (tmp_path / "beside").write_text("seen")

        assert await call("mcp__fix__see", path=str(tmp_path / "beside")) == "seen"
    assert PLAIN.exists()
