"""Delegation where several processes share a PostgreSQL server: a worker runs the agents of a gateway's session."""

import asyncio

import pytest

from hermes_agent.app.opening import Options
from hermes_agent.app.settings import SERVED
from hermes_agent.core.messages import ToolResult
from hermes_agent.providers.demo.script import Answer, Call, Heard, Pace, Piece, Say
from hermes_agent.testing.model_servers import openai_model, serving
from tests.app.place import another, settle_home, spoken
from tests.databases import cluster

__all__ = ["cluster"]
SERVES = Options(queue=SERVED, own_only=False)


def script(heard: Heard) -> Piece | Answer:
    if "You work for another agent" in heard.system:
        return Answer(pieces=(Say("Dug."),), pace=Pace(first=0.05))
    tasks = [{"goal": str(number)} for number in range(8)]
    return Say("Done.") if spoken(heard) else Call("delegate_task", {"tasks": tasks})


@pytest.mark.slow
@pytest.mark.timeout(60)
async def test_the_agents_of_a_session_run_in_every_process_that_serves(tmp_path, cluster):
    url = cluster.fresh_url()
    async with serving(openai_model(script, keys=())) as server:
        home = settle_home(tmp_path / "home", server.url, f"store: {{url: '{url}'}}\n")
        async with another(home, server, SERVES) as here, another(home, server, SERVES) as there:
            after = await here.tell("Go")
            async with asyncio.timeout(40):
                ended = await here.ended(after)
            view = await there.runtime.hermes.view(here.record.id)

    told = [part.text for message in view.messages for part in message.parts if isinstance(part, ToolResult)]
    assert ended.text == "Done."
    assert told[0].count("Dug.") == 8
