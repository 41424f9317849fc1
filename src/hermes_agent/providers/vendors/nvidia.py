"""NVIDIA's API catalogue; model names read `maker/model`."""

from __future__ import annotations

from hermes_agent.providers.vendor import Quirks, Vendor

VENDOR = Vendor(
    name="nvidia",
    title="NVIDIA",
    dialect="openai_chat",
    base_url="https://integrate.api.nvidia.com/v1",
    key_names=("NVIDIA_API_KEY",),
    keys_at="https://build.nvidia.com/settings/api-keys",
    base_url_env="NVIDIA_BASE_URL",
    default_model="openai/gpt-oss-120b",
    quirks=Quirks(effort_field="reasoning_effort"),
)
