"""What `hermes demo` stands on."""

from __future__ import annotations

from pathlib import Path

import httpx2

from hermes_agent.app.demo import demo_stage, log_of
from hermes_agent.app.settings import Settings
from hermes_agent.host.config import load


async def test_a_stage_is_a_home_that_leads_to_the_scripted_model(tmp_path: Path):
    async with demo_stage(tmp_path) as stage, httpx2.AsyncClient() as client:
        settings = load(stage.home, Settings, {})
        models = (await client.get(f"{settings.value.model.base_url}/models")).json()

    assert settings.problems == ()
    assert settings.value.model.default == "demo/scripted"
    assert [model["id"] for model in models["data"]] == ["scripted"]
    assert (stage.project / "inventory/pricing.py").is_file()


async def test_the_log_of_a_session_that_never_was_is_empty(tmp_path: Path):
    async with demo_stage(tmp_path) as stage:
        assert await log_of(stage, "20260101_000000_abcdef") == ()
