"""DeepSeek's API. Its models think unless told not to, and want their reasoning back while they call tools."""

from __future__ import annotations

from hermes_agent.providers.vendor import Quirks, Vendor

VENDOR = Vendor(
    name="deepseek",
    title="DeepSeek",
    dialect="openai_chat",
    base_url="https://api.deepseek.com",
    key_names=("DEEPSEEK_API_KEY",),
    keys_at="https://platform.deepseek.com/api_keys",
    base_url_env="DEEPSEEK_BASE_URL",
    default_model="deepseek-v4-pro",
    quirks=Quirks(
        reasoning_field="reasoning_content",
        effort_field="reasoning_effort",
        thinking_on={"thinking": {"type": "enabled"}},
        thinking_off={"thinking": {"type": "disabled"}},
    ),
)
