"""Together: open models; model names read `maker/model`."""

from __future__ import annotations

from hermes_agent.providers.vendor import Quirks, Vendor

VENDOR = Vendor(
    name="together",
    title="Together",
    dialect="openai_chat",
    base_url="https://api.together.xyz/v1",
    key_names=("TOGETHER_API_KEY",),
    keys_at="https://api.together.ai/settings/api-keys",
    base_url_env="TOGETHER_BASE_URL",
    default_model="zai-org/GLM-5.3",
    quirks=Quirks(
        reasoning_field="reasoning_content",
        effort_field="reasoning_effort",
        thinking_off={"reasoning": {"enabled": False}},
    ),
)
