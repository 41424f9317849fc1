"""Kimi, by Moonshot. Its models want their reasoning back; the older ones can be told not to think."""

from __future__ import annotations

from hermes_agent.providers.vendor import Quirks, Vendor

VENDOR = Vendor(
    name="kimi",
    title="Kimi (Moonshot)",
    dialect="openai_chat",
    base_url="https://api.moonshot.ai/v1",
    regions={"global": "https://api.moonshot.ai/v1", "cn": "https://api.moonshot.cn/v1"},
    key_names=("KIMI_API_KEY", "MOONSHOT_API_KEY"),
    keys_at="https://platform.kimi.ai/console/api-keys",
    base_url_env="KIMI_BASE_URL",
    default_model="kimi-k3",
    quirks=Quirks(
        reasoning_field="reasoning_content",
        effort_field="reasoning_effort",
        thinking_off={"thinking": {"type": "disabled"}},
        max_tokens_field="max_completion_tokens",
        cache_key=True,
        prefill="partial",
    ),
)
