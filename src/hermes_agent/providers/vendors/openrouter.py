"""OpenRouter: many makers' models behind one key; model names read `maker/model`."""

from __future__ import annotations

from hermes_agent.providers.vendor import Quirks, Vendor

VENDOR = Vendor(
    name="openrouter",
    title="OpenRouter",
    dialect="openai_chat",
    base_url="https://openrouter.ai/api/v1",
    key_names=("OPENROUTER_API_KEY",),
    keys_at="https://openrouter.ai/settings/keys",
    base_url_env="OPENROUTER_BASE_URL",
    default_model="anthropic/claude-sonnet-5.5",
    headers=(("X-Title", "Hermes"),),
    quirks=Quirks(
        reasoning_field="reasoning_details",
        effort_field="reasoning",
        reports_cost=True,
        prefill="last",
        cache_marks=("anthropic/",),
    ),
)
