"""The `llm` command as the client: a question, a conversation that goes on, a wrong key."""

from __future__ import annotations

import asyncio
import json
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.api.served import OWNER_KEY, Server, served
from tests.app.place import counting

pytestmark = pytest.mark.skipif(find_spec("llm") is None, reason="the package llm is not installed")


def settle(folder: Path, server: Server, key: str) -> None:
    """Have `llm` know the agent as a model."""
    folder.mkdir(exist_ok=True)
    (folder / "keys.json").write_text(json.dumps({"agent": key}))
    (folder / "extra-openai-models.yaml").write_text(
        f"- model_id: agent\n  model_name: hermes\n  api_base: {server.url}/v1\n  api_key_name: agent\n"
    )


async def asked(folder: Path, server: Server, *words: str, key: str = OWNER_KEY) -> tuple[int, str, str]:
    """Run `llm` with the agent as its model: its exit code, and what it wrote."""
    settle(folder, server, key)
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "llm", *words),
        env={"LLM_USER_PATH": str(folder), "PATH": "/usr/bin:/bin"},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await process.communicate()
    return process.returncode or 0, out.decode().strip(), err.decode()


@pytest.mark.parametrize("how", [(), ("--no-stream",)])
async def test_a_conversation_goes_on_in_one_session(tmp_path: Path, how: tuple[str, ...]):
    async with served(tmp_path, counting) as server:
        first = await asked(tmp_path / "llm", server, "-m", "agent", *how, "Hi")
        second = await asked(tmp_path / "llm", server, "-c", *how, "More")
        sessions = (await server.ask("GET", "/v1/sessions")).json()["data"]

    assert (first, second) == ((0, "Reply 1.", ""), (0, "Reply 2.", ""))
    assert len(sessions) == 1


async def test_a_wrong_key_is_told(tmp_path: Path):
    async with served(tmp_path, counting) as server:
        code, out, err = await asked(tmp_path / "llm", server, "-m", "agent", "Hi", key="not-a-key-0123456789")

    assert (code, out) == (1, "")
    assert "401" in err
