"""MiniMax, over its Anthropic-like address: the one that keeps reasoning apart from words."""

from __future__ import annotations

from hermes_agent.providers.vendor import Vendor

VENDOR = Vendor(
    name="minimax",
    title="MiniMax",
    dialect="anthropic",
    base_url="https://api.minimax.io/anthropic",
    regions={"global": "https://api.minimax.io/anthropic", "cn": "https://api.minimaxi.com/anthropic"},
    key_names=("MINIMAX_API_KEY",),
    keys_at="https://platform.minimax.io/user-center/basic-information/interface-key",
    base_url_env="MINIMAX_BASE_URL",
    default_model="MiniMax-M3",
)
