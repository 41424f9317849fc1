"""The walk of one message: the files of the source that a Telegram "Hi" runs through until "Hello." stands in the chat,
and how often the package changes on the way.

The second message of a warm gateway is counted, in the thread of its event loop; the platform and the model are in
threads of their own. `WALK=1` prints the way, file by file.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

from bench.figures import Figure
from bench.shape import SOURCE
from hermes_agent.gateway.opening import open_gateway
from hermes_agent.host.inbound.listener import serve_in_thread
from hermes_agent.host.paths import Home
from hermes_agent.providers.demo.script import Say
from hermes_agent.testing.model_servers import openai_model, serving_in_thread
from tests.doubles.telegram import TOKEN, TelegramDouble

BEFORE_FILES, BEFORE_CHANGES = 124, 393
"""Before there was one ingress."""
CONFIG = """model:
  default: custom/m
  base_url: {model}
gateway:
  channels:
    telegram:
      enabled: true
      owners: ['7']
      options:
        api_url: {platform}
"""


@dataclass(slots=True)
class Walk:
    """What the calls of the event loop's thread ran through: files and functions in the order of their first entry, how
    often it went from one package to another, and what the person read in the end."""

    files: Counter[str] = field(default_factory=Counter)
    calls: Counter[tuple[str, str]] = field(default_factory=Counter)
    arrows: Counter[tuple[str, str]] = field(default_factory=Counter)
    here: str = ""
    reply: str = ""

    def step(self, frame: FrameType, event: str, _: object) -> None:
        """One call, as `sys.setprofile` tells it."""
        name = frame.f_code.co_filename
        if event != "call" or not name.startswith(ROOT):
            return
        file = name.removeprefix(ROOT)
        package = file.partition("/")[0]
        self.files[file] += 1
        self.calls[file, frame.f_code.co_qualname] += 1
        if package != self.here:
            self.arrows[self.here, package] += 1
            self.here = package


ROOT = f"{SOURCE}/"


def measure() -> list[Figure]:
    """The figures of this module."""
    with tempfile.TemporaryDirectory() as folder:
        walk = asyncio.run(walked(Path(folder)))
    if os.environ.get("WALK"):
        print("\n".join(walk.files), *walk.arrows.most_common(25), sep="\n", file=sys.stderr)
    return [
        Figure(name='files that "Hi" -> "Hello." runs through', value=len(walk.files), unit="", floor=BEFORE_FILES),
        Figure(name="changes of package on the way", value=walk.arrows.total(), unit="", floor=BEFORE_CHANGES),
    ]


async def walked(folder: Path) -> Walk:
    """The walk of a message in a new home."""
    walk, double = Walk(), TelegramDouble()
    model = openai_model(lambda _: Say("Hello."), keys=())
    with serve_in_thread(double.handle) as double.server, serving_in_thread(model):
        home = Home(root=folder, base=folder)
        home.config_file.write_text(CONFIG.format(model=model.url, platform=double.url))
        home.env_file.write_text(f"TELEGRAM_BOT_TOKEN={TOKEN}\n")
        home.env_file.chmod(0o600)
        async with open_gateway(home) as gateway:
            await _answered(double, 1)
            await gateway.delivery.idle()
            sys.setprofile(walk.step)
            try:
                await _answered(double, 2)
                await gateway.delivery.idle()
            finally:
                sys.setprofile(None)
    walk.reply = double.chats.of("1")[-1].text
    return walk


async def _answered(double: TelegramDouble, count: int) -> None:
    await double.say("Hi")
    while len(double.chats.of("1")) < count:  # noqa: ASYNC110  the double is in another thread
        await asyncio.sleep(0.01)
    assert double.chats.of("1")[-1].text == "Hello.", "what was walked is another way: an answer that failed"
