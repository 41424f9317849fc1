"""Groq: open models, served fast; model names read `maker/model`."""

from __future__ import annotations

from hermes_agent.providers.vendor import Quirks, Vendor

VENDOR = Vendor(
    name="groq",
    title="Groq",
    dialect="openai_chat",
    base_url="https://api.groq.com/openai/v1",
    key_names=("GROQ_API_KEY",),
    keys_at="https://console.groq.com/keys",
    base_url_env="GROQ_BASE_URL",
    default_model="openai/gpt-oss-120b",
    quirks=Quirks(
        reasoning_field="reasoning",
        effort_field="reasoning_effort",
        max_tokens_field="max_completion_tokens",
    ),
)
