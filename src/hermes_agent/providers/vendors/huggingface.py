"""Hugging Face's router to many hosts; model names read `maker/model`, with `:host` where one is wanted."""

from __future__ import annotations

from hermes_agent.providers.vendor import Quirks, Vendor

VENDOR = Vendor(
    name="huggingface",
    title="Hugging Face",
    dialect="openai_chat",
    base_url="https://router.huggingface.co/v1",
    key_names=("HF_TOKEN",),
    keys_at="https://huggingface.co/settings/tokens",
    base_url_env="HF_BASE_URL",
    default_model="openai/gpt-oss-120b",
    quirks=Quirks(effort_field="reasoning_effort"),
)
