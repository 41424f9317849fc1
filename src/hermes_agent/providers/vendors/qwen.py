"""Qwen, by Alibaba's Model Studio (DashScope); a key belongs to one region."""

from __future__ import annotations

from hermes_agent.providers.vendor import Quirks, Vendor

VENDOR = Vendor(
    name="qwen",
    title="Qwen (Alibaba)",
    dialect="openai_chat",
    base_url="https://dashscope-intl.aliyuncs.com/compatible-mode/v1",
    regions={
        "singapore": "https://dashscope-intl.aliyuncs.com/compatible-mode/v1",
        "us": "https://dashscope-us.aliyuncs.com/compatible-mode/v1",
        "cn": "https://dashscope.aliyuncs.com/compatible-mode/v1",
    },
    key_names=("DASHSCOPE_API_KEY", "QWEN_API_KEY"),
    keys_at="https://modelstudio.console.alibabacloud.com/?tab=globalset#/efm/api_key",
    base_url_env="DASHSCOPE_BASE_URL",
    default_model="qwen3.7-plus",
    quirks=Quirks(
        reasoning_field="reasoning_content",
        thinking_on={"enable_thinking": True},
        thinking_off={"enable_thinking": False},
    ),
)
