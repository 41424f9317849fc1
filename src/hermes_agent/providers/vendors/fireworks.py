"""Fireworks: open models; a name without a slash is one of its own."""

from __future__ import annotations

from hermes_agent.providers.vendor import Quirks, Vendor

VENDOR = Vendor(
    name="fireworks",
    title="Fireworks",
    dialect="openai_chat",
    base_url="https://api.fireworks.ai/inference/v1",
    key_names=("FIREWORKS_API_KEY",),
    keys_at="https://app.fireworks.ai/settings/users/api-keys",
    base_url_env="FIREWORKS_BASE_URL",
    default_model="glm-5p3",
    model_prefix="accounts/fireworks/models/",
    quirks=Quirks(reasoning_field="reasoning_content", effort_field="reasoning_effort"),
)
