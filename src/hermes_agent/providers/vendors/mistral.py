"""Mistral's API: chat completions, stricter than most (docs.mistral.ai/api)."""

from __future__ import annotations

from hermes_agent.providers.vendor import Quirks, Vendor

VENDOR = Vendor(
    name="mistral",
    title="Mistral",
    dialect="openai_chat",
    base_url="https://api.mistral.ai/v1",
    key_names=("MISTRAL_API_KEY",),
    keys_at="https://console.mistral.ai/api-keys",
    base_url_env="MISTRAL_BASE_URL",
    default_model="mistral-medium-3.5",
    quirks=Quirks(
        reasoning_field="thinking_parts",
        effort_field="reasoning_effort",
        stream_usage=False,
        call_ids="nine",
        prefill="prefix",
        reply_after_results=True,
    ),
)
