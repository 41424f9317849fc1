"""Nous Portal: Hermes models and many others behind one key; model names read `maker/model`."""

from __future__ import annotations

from hermes_agent.providers.vendor import Quirks, Vendor

VENDOR = Vendor(
    name="nous",
    title="Nous Portal",
    dialect="openai_chat",
    base_url="https://inference-api.nousresearch.com/v1",
    key_names=("NOUS_API_KEY", "NOUSRESEARCH_API_KEY"),
    keys_at="https://portal.nousresearch.com/api-keys",
    base_url_env="NOUS_BASE_URL",
    default_model="nousresearch/hermes-4-405b",
    quirks=Quirks(reasoning_field="reasoning_content"),
)
