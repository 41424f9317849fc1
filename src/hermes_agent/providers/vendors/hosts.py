"""Vendors that host open models, self-hosted servers, mixtures, and the demo."""

from __future__ import annotations

from hermes_agent.providers.vendor import Quirks, Vendor

VENDORS = (
    # Groq: open models, served fast; model names read `maker/model`.
    Vendor(
        name="groq",
        title="Groq",
        dialect="openai_chat",
        base_url="https://api.groq.com/openai/v1",
        key_names=("GROQ_API_KEY",),
        keys_at="https://console.groq.com/keys",
        base_url_env="GROQ_BASE_URL",
        default_model="openai/gpt-oss-120b",
        quirks=Quirks(
            reasoning_field="reasoning",
            effort_field="reasoning_effort",
            max_tokens_field="max_completion_tokens",
        ),
    ),
    # Together: open models; model names read `maker/model`.
    Vendor(
        name="together",
        title="Together",
        dialect="openai_chat",
        base_url="https://api.together.xyz/v1",
        key_names=("TOGETHER_API_KEY",),
        keys_at="https://api.together.ai/settings/api-keys",
        base_url_env="TOGETHER_BASE_URL",
        default_model="zai-org/GLM-5.3",
        quirks=Quirks(
            reasoning_field="reasoning_content",
            effort_field="reasoning_effort",
            thinking_off={"reasoning": {"enabled": False}},
        ),
    ),
    # Fireworks: open models; a name without a slash is one of its own.
    Vendor(
        name="fireworks",
        title="Fireworks",
        dialect="openai_chat",
        base_url="https://api.fireworks.ai/inference/v1",
        key_names=("FIREWORKS_API_KEY",),
        keys_at="https://app.fireworks.ai/settings/users/api-keys",
        base_url_env="FIREWORKS_BASE_URL",
        default_model="glm-5p3",
        model_prefix="accounts/fireworks/models/",
        quirks=Quirks(reasoning_field="reasoning_content", effort_field="reasoning_effort"),
    ),
    # Nous Portal: Hermes models and many others behind one key; model names read `maker/model`.
    Vendor(
        name="nous",
        title="Nous Portal",
        dialect="openai_chat",
        base_url="https://inference-api.nousresearch.com/v1",
        key_names=("NOUS_API_KEY", "NOUSRESEARCH_API_KEY"),
        keys_at="https://portal.nousresearch.com/api-keys",
        base_url_env="NOUS_BASE_URL",
        default_model="nousresearch/hermes-4-405b",
        quirks=Quirks(reasoning_field="reasoning_content"),
    ),
    # Kimi, by Moonshot. Its models want their reasoning back; the older ones can be told not to think.
    Vendor(
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
    ),
    # MiniMax, over its Anthropic-like address: the one that keeps reasoning apart from words.
    Vendor(
        name="minimax",
        title="MiniMax",
        dialect="anthropic",
        base_url="https://api.minimax.io/anthropic",
        regions={"global": "https://api.minimax.io/anthropic", "cn": "https://api.minimaxi.com/anthropic"},
        key_names=("MINIMAX_API_KEY",),
        keys_at="https://platform.minimax.io/user-center/basic-information/interface-key",
        base_url_env="MINIMAX_BASE_URL",
        default_model="MiniMax-M3",
    ),
    # Z.AI's GLM models. Reasoning of earlier turns is kept (`clear_thinking`), and arguments stream (`tool_stream`).
    Vendor(
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
    ),
    # Qwen, by Alibaba's Model Studio (DashScope); a key belongs to one region.
    Vendor(
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
    ),
    # Hugging Face's router to many hosts; model names read `maker/model`, with `:host` where one is wanted.
    Vendor(
        name="huggingface",
        title="Hugging Face",
        dialect="openai_chat",
        base_url="https://router.huggingface.co/v1",
        key_names=("HF_TOKEN",),
        keys_at="https://huggingface.co/settings/tokens",
        base_url_env="HF_BASE_URL",
        default_model="openai/gpt-oss-120b",
        quirks=Quirks(effort_field="reasoning_effort"),
    ),
    # NVIDIA's API catalogue; model names read `maker/model`.
    Vendor(
        name="nvidia",
        title="NVIDIA",
        dialect="openai_chat",
        base_url="https://integrate.api.nvidia.com/v1",
        key_names=("NVIDIA_API_KEY",),
        keys_at="https://build.nvidia.com/settings/api-keys",
        base_url_env="NVIDIA_BASE_URL",
        default_model="openai/gpt-oss-120b",
        quirks=Quirks(effort_field="reasoning_effort"),
    ),
    # Ollama on this machine, through its OpenAI-like address.
    Vendor(
        name="ollama",
        title="Ollama",
        dialect="openai_chat",
        base_url="http://127.0.0.1:11434/v1",
        key_names=("OLLAMA_API_KEY",),
        base_url_env="OLLAMA_BASE_URL",
        needs_key=False,
        quirks=Quirks(reasoning_field="reasoning", prefill="last"),
        window_probe="hermes_agent.providers.local:ollama_window",
        free=True,
    ),
    # LM Studio on this machine.
    Vendor(
        name="lmstudio",
        title="LM Studio",
        dialect="openai_chat",
        base_url="http://127.0.0.1:1234/v1",
        key_names=("LM_API_KEY",),
        base_url_env="LM_BASE_URL",
        needs_key=False,
        quirks=Quirks(reasoning_field="reasoning_content"),
        window_probe="hermes_agent.providers.local:lmstudio_window",
        free=True,
    ),
    # A vLLM server, on this machine unless said otherwise.
    Vendor(
        name="vllm",
        title="vLLM",
        dialect="openai_chat",
        base_url="http://127.0.0.1:8000/v1",
        key_names=("VLLM_API_KEY",),
        base_url_env="VLLM_BASE_URL",
        needs_key=False,
        quirks=Quirks(reasoning_field="reasoning_content", prefill="continue"),
        window_probe="hermes_agent.providers.local:vllm_window",
        free=True,
    ),
    # llama.cpp's `llama-server`, on this machine unless said otherwise.
    Vendor(
        name="llamacpp",
        title="llama.cpp",
        dialect="openai_chat",
        base_url="http://127.0.0.1:8080/v1",
        key_names=("LLAMA_API_KEY",),
        base_url_env="LLAMACPP_BASE_URL",
        needs_key=False,
        quirks=Quirks(reasoning_field="reasoning_content", prefill="last"),
        window_probe="hermes_agent.providers.local:llamacpp_window",
        free=True,
    ),
    # Any other server that speaks chat completions: `model.base_url` says where.
    Vendor(
        name="custom",
        title="A server of your own",
        dialect="openai_chat",
        key_names=("CUSTOM_API_KEY",),
        base_url_env="CUSTOM_BASE_URL",
        needs_key=False,
        quirks=Quirks(reasoning_field="reasoning_content"),
    ),
    # Mixtures: several models of other vendors are asked, and one answers out of what they say (section `moa`).
    Vendor(name="moa", title="Mixture of models", dialect="openai_chat", needs_key=False, mixes=True),
    # The built-in scripted model, served on the loopback interface by this process or at `model.base_url`.
    Vendor(
        name="demo",
        title="Demo (scripted)",
        dialect="openai_chat",
        server="hermes_agent.providers.demo.server:demo_server",
        needs_key=False,
        default_model="scripted",
        quirks=Quirks(reasoning_field="reasoning_content"),
        free=True,
    ),
)
