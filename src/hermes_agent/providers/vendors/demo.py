"""The built-in scripted model, served on the loopback interface; the address of the running server is
`model.base_url`."""

from __future__ import annotations

from hermes_agent.providers.vendor import Quirks, Vendor

VENDOR = Vendor(
    name="demo",
    title="Demo (scripted)",
    dialect="openai_chat",
    needs_key=False,
    default_model="scripted",
    quirks=Quirks(reasoning_field="reasoning_content"),
    free=True,
)
