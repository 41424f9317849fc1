"""Z.AI's GLM models. Reasoning of earlier turns is kept (`clear_thinking`), and arguments stream (`tool_stream`)."""

from __future__ import annotations

from hermes_agent.providers.vendor import Quirks, Vendor

VENDOR = Vendor(
    name="zai",
    title="Z.AI (GLM)",
    dialect="openai_chat",
    base_url="https://api.z.ai/api/paas/v4",
    regions={
        "global": "https://api.z.ai/api/paas/v4",
        "cn": "https://open.bigmodel.cn/api/paas/v4",
        "coding": "https://api.z.ai/api/coding/paas/v4",
    },
    key_names=("ZAI_API_KEY", "GLM_API_KEY", "Z_AI_API_KEY"),
    keys_at="https://z.ai/manage-apikey/apikey-list",
    base_url_env="ZAI_BASE_URL",
    default_model="glm-5.3",
    quirks=Quirks(
        reasoning_field="reasoning_content",
        effort_field="reasoning_effort",
        thinking_on={"thinking": {"type": "enabled", "clear_thinking": False}},
        thinking_off={"thinking": {"type": "disabled"}},
        tool_choice=False,
        also={"tool_stream": True},
    ),
)
