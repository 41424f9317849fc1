"""The built-in scripted model, served on the loopback interface by this process or at `model.base_url`."""

from __future__ import annotations

from hermes_agent.providers.vendor import Quirks, Vendor

VENDOR = Vendor(
    name="demo",
    title="Demo (scripted)",
    dialect="openai_chat",
    server="hermes_agent.providers.demo.server:demo_server",
    needs_key=False,
    default_model="scripted",
    quirks=Quirks(reasoning_field="reasoning_content"),
    free=True,
)
