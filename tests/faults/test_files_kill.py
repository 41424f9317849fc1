"""A gateway is killed while a file comes whose message is durable: neither is lost, nothing is done twice."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes_agent.providers.demo.script import Say
from hermes_agent.testing.model_servers import openai_model, serving
from tests.doubles.telegram import telegram
from tests.faults.storm import Crew
from tests.gateway.harness import eventually

CONFIG = """\
model:
  default: custom/m
  base_url: {model}
gateway:
  channels:
    telegram:
      enabled: true
      owners: ['7']
      options:
        api_url: '{telegram}'
"""
PATIENCE = 60.0


@pytest.mark.slow
@pytest.mark.timeout(180)
async def test_a_file_that_was_coming_when_the_gateway_died_is_fetched_again(tmp_path: Path):
    home = tmp_path / "home"
    home.mkdir()
    async with serving(openai_model(lambda _: Say("Yes."), keys=())) as model, telegram() as double:
        (home / "config.yaml").write_text(CONFIG.format(model=model.url, telegram=double.url))
        double.files["f"], double.slow = b"x" * 100_000, 600.0
        file = {"file_id": "f", "file_name": "a.bin", "file_size": 100_000}
        with Crew(home, {"gateway": ("gateway", "run")}) as crew:
            await double.say("", chat="1", caption="Look", document=file)
            await double.say("And now?", chat="1")
            await double.say("Hi", chat="2")
            await eventually(lambda: double.received() == 3, PATIENCE)
            await eventually(lambda: len(double.chats.of("2")) == 1, PATIENCE)
            asked = len(model.asked)
            double.slow = 0.0
            crew.kill("gateway")
            await eventually(lambda: "And now?" in str([each.messages for each in model.asked[asked:]]), PATIENCE)
            await eventually(lambda: bool(double.chats.of("1")), PATIENCE)
            assert await crew.end() == [0]

    told = str(model.asked[-1].messages)
    assert [told.count(words) for words in ("Look", "And now?", "A file came with this message")] == [1, 1, 1]
    assert told.index("Look") < told.index("And now?")
    (kept,) = (home / "workspace" / "received").iterdir()
    assert kept.read_bytes() == b"x" * 100_000
    assert {shown.text for shown in double.chats.of("1")} == {"Yes."}
