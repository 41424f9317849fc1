"""Any other server that speaks chat completions: `model.base_url` says where."""

from __future__ import annotations

from hermes_agent.providers.vendor import Quirks, Vendor

VENDOR = Vendor(
    name="custom",
    title="A server of your own",
    dialect="openai_chat",
    key_names=("CUSTOM_API_KEY",),
    base_url_env="CUSTOM_BASE_URL",
    needs_key=False,
    quirks=Quirks(reasoning_field="reasoning_content"),
)
