"""Azure's OpenAI service: an address of one's own, and the name of a deployment as the model.

The address is that of the v1 API (`https://NAME.openai.azure.com/openai/v1`), or of one deployment with its version
(`https://NAME.openai.azure.com/openai/deployments/DEPLOYMENT?api-version=2024-10-21`).
"""

from __future__ import annotations

from hermes_agent.providers.vendor import Quirks, Vendor

VENDOR = Vendor(
    name="azure",
    title="Azure OpenAI",
    dialect="openai_chat",
    address="https://NAME.openai.azure.com/openai/v1",
    key_names=("AZURE_OPENAI_API_KEY", "AZURE_FOUNDRY_API_KEY"),
    keys_at="https://portal.azure.com",
    key_header="api-key",
    base_url_env="AZURE_OPENAI_BASE_URL",
    catalogue="openai",
    quirks=Quirks(
        effort_field="reasoning_effort",
        max_tokens_field="max_completion_tokens",
        system_role="developer",
        cache_key=True,
    ),
)
