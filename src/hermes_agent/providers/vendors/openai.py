"""OpenAI's API, spoken to as chat completions.

From GPT-5.4 on, chat completions takes tools only with the reasoning level `none`: the catalogue has those models asked
as responses.
"""

from __future__ import annotations

from hermes_agent.providers.vendor import Quirks, Vendor

VENDOR = Vendor(
    name="openai",
    title="OpenAI",
    dialect="openai_chat",
    base_url="https://api.openai.com/v1",
    key_names=("OPENAI_API_KEY",),
    keys_at="https://platform.openai.com/api-keys",
    base_url_env="OPENAI_BASE_URL",
    default_model="gpt-5.2",
    quirks=Quirks(
        effort_field="reasoning_effort",
        max_tokens_field="max_completion_tokens",
        system_role="developer",
        cache_key=True,
    ),
)
