"""A report to a gateway: what its agent says appears in the chat that the route names."""

import httpx2

from hermes_agent.api.metrics import Metrics
from hermes_agent.api.serve import webhook_server
from hermes_agent.api.webhooks.signatures import signed
from hermes_agent.providers.demo.script import Say
from tests.gateway.harness import OWNER, harness

SECRET = "a-secret-of-the-hooks"
SETTINGS = """webhooks:
  port: 0
  routes:
    push: {secret: HOOK_SECRET, deliver: "fake:1"}
    note: {secret: HOOK_SECRET, deliver: fake, deliver_only: true, prompt: "Build {status}"}
"""


async def test_a_report_is_answered_in_the_chat_that_its_route_names(tmp_path):
    async with harness(tmp_path, [Say("It is green.")], f"{OWNER}home: '1'\n", more=SETTINGS) as here:
        runtime = here.gateway.runtime
        runtime.secrets.set("HOOK_SECRET", SECRET)
        async with (
            webhook_server(runtime, Metrics()) as at,
            httpx2.AsyncClient(base_url=at.url, trust_env=False, timeout=15) as client,
        ):
            body = b'{"status": "green"}'
            headers = {"content-type": "application/json", **signed("generic", SECRET, body, runtime.clock.now(), "")}
            for route in ("push", "push", "note"):
                assert (await client.post(f"/webhooks/{route}", content=body, headers=headers)).status_code < 300
                await here.shown(1 if route == "push" else 2)

        assert sorted(each.text for each in here.platform.chats.of("1")) == ["Build green", "It is green."]
