"""LM Studio on this machine."""

from __future__ import annotations

from hermes_agent.providers.vendor import Quirks, Vendor

VENDOR = Vendor(
    name="lmstudio",
    title="LM Studio",
    dialect="openai_chat",
    base_url="http://127.0.0.1:1234/v1",
    key_names=("LM_API_KEY",),
    base_url_env="LM_BASE_URL",
    needs_key=False,
    quirks=Quirks(reasoning_field="reasoning_content"),
    window_probe="hermes_agent.providers.windows:lmstudio_window",
    free=True,
)
