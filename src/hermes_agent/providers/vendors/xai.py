"""xAI's Grok models."""

from __future__ import annotations

from hermes_agent.providers.vendor import Quirks, Vendor

VENDOR = Vendor(
    name="xai",
    title="xAI",
    dialect="openai_chat",
    base_url="https://api.x.ai/v1",
    key_names=("XAI_API_KEY",),
    keys_at="https://console.x.ai",
    base_url_env="XAI_BASE_URL",
    default_model="grok-4.5",
    quirks=Quirks(
        reasoning_field="reasoning_content",
        effort_field="reasoning_effort",
        max_tokens_field="max_completion_tokens",
    ),
)
