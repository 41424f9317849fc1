"""Whose sessions a process speaks to through the outbox, by how it uses the system."""

from pathlib import Path

import pytest

from hermes_agent.app.chats.people import People
from hermes_agent.app.chats.settings import ChannelSettings
from hermes_agent.app.process import Options
from hermes_agent.store.database import open_store


@pytest.mark.parametrize(
    ("options", "delivers"),
    [
        (Options(own_only=False), True),
        (Options(own_only=True), False),
        (Options(own_only=True, delivers=lambda name: name == "telegram"), True),
    ],
)
async def test_who_works_for_everybody_speaks_through_the_outbox(tmp_path: Path, options: Options, delivers: bool):
    store = await open_store(tmp_path / "hermes.db")
    service = options.service(store, People({"telegram": ChannelSettings()}), lambda *_: None, str)

    assert (service.posting is not None and service.posting.delivers("telegram")) is delivers
    assert service.posting is None or not service.posting.delivers("cli")
    await store.close()
