"""Vendors that make their own models, and clouds that serve models of many makers."""

from __future__ import annotations

from hermes_agent.providers.vendor import Quirks, Vendor

# https://cloud.google.com/vertex-ai/generative-ai/docs/learn/locations
LOCATIONS = (
    "us-central1",
    "us-east1",
    "us-east4",
    "us-east5",
    "us-south1",
    "us-west1",
    "us-west4",
    "northamerica-northeast1",
    "southamerica-east1",
    "europe-west1",
    "europe-west2",
    "europe-west3",
    "europe-west4",
    "europe-west6",
    "europe-west8",
    "europe-west9",
    "europe-central2",
    "europe-north1",
    "europe-southwest1",
    "asia-east1",
    "asia-east2",
    "asia-northeast1",
    "asia-northeast3",
    "asia-south1",
    "asia-southeast1",
    "australia-southeast1",
    "me-central1",
    "me-central2",
    "me-west1",
)
PATH = "/v1/projects/{GOOGLE_CLOUD_PROJECT}/locations"
GLOBAL = f"https://aiplatform.googleapis.com{PATH}/global/publishers/google"

# https://docs.aws.amazon.com/general/latest/gr/bedrock.html
REGIONS = (
    "us-east-1",
    "us-east-2",
    "us-west-1",
    "us-west-2",
    "us-gov-east-1",
    "us-gov-west-1",
    "af-south-1",
    "ap-northeast-1",
    "ap-northeast-2",
    "ap-northeast-3",
    "ap-south-1",
    "ap-south-2",
    "ap-southeast-1",
    "ap-southeast-2",
    "ap-southeast-3",
    "ap-southeast-4",
    "ca-central-1",
    "eu-central-1",
    "eu-central-2",
    "eu-north-1",
    "eu-south-1",
    "eu-south-2",
    "eu-west-1",
    "eu-west-2",
    "eu-west-3",
    "il-central-1",
    "me-central-1",
    "sa-east-1",
)

VENDORS = (
    # Anthropic's API.
    Vendor(
        name="anthropic",
        title="Anthropic",
        dialect="anthropic",
        base_url="https://api.anthropic.com",
        key_names=("ANTHROPIC_API_KEY",),
        keys_at="https://platform.claude.com/settings/keys",
        base_url_env="ANTHROPIC_BASE_URL",
        default_model="claude-opus-5-5",
    ),
    # OpenAI's API, spoken to as chat completions.  From GPT-5.4 on, chat completions takes tools only with the
    # reasoning level `none`: the catalogue has those models asked as responses.
    Vendor(
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
    ),
    # OpenAI's models for those who sign in with ChatGPT, as Codex asks them; a subscription pays.
    Vendor(
        name="openai-codex",
        title="OpenAI Codex (ChatGPT)",
        dialect="openai_responses",
        base_url="https://chatgpt.com/backend-api/codex",
        base_url_env="OPENAI_CODEX_BASE_URL",
        sign_in="hermes_agent.providers.signin.ways:CHATGPT",
        default_model="gpt-6-sol",
        headers=(("OpenAI-Beta", "responses=experimental"),),
        quirks=Quirks(cache_key=True, output_limit=False, instructions="You are a helpful agent."),
        free=True,
    ),
    # OpenRouter: many makers' models behind one key; model names read `maker/model`.
    Vendor(
        name="openrouter",
        title="OpenRouter",
        dialect="openai_chat",
        base_url="https://openrouter.ai/api/v1",
        key_names=("OPENROUTER_API_KEY",),
        keys_at="https://openrouter.ai/settings/keys",
        base_url_env="OPENROUTER_BASE_URL",
        default_model="anthropic/claude-sonnet-5.5",
        headers=(("X-Title", "Hermes"),),
        quirks=Quirks(
            reasoning_field="reasoning_details",
            effort_field="reasoning",
            reports_cost=True,
            prefill="last",
            cache_marks=("anthropic/",),
        ),
    ),
    # Google's Gemini API.
    Vendor(
        name="gemini",
        title="Google Gemini",
        dialect="gemini",
        base_url="https://generativelanguage.googleapis.com/v1beta",
        key_names=("GEMINI_API_KEY", "GOOGLE_API_KEY"),
        keys_at="https://aistudio.google.com/apikey",
        base_url_env="GEMINI_BASE_URL",
        default_model="gemini-3.8-flash",
    ),
    # Google's Vertex AI: Gemini in a project of Google Cloud, with Google's own credentials instead of a key.
    Vendor(
        name="vertex",
        title="Google Vertex AI",
        dialect="gemini",
        base_url=GLOBAL,
        regions={
            "global": GLOBAL,
            **{
                place: f"https://{place}-aiplatform.googleapis.com{PATH}/{place}/publishers/google"
                for place in LOCATIONS
            },
        },
        region_names=("GOOGLE_CLOUD_LOCATION",),
        region="global",
        base_url_env="VERTEX_BASE_URL",
        sign="hermes_agent.providers.signing.google:sign",
        sign_traces=("GOOGLE_APPLICATION_CREDENTIALS", "~/.config/gcloud/application_default_credentials.json"),
        needs_key=False,
        default_model="gemini-3.8-flash",
        catalogue="gemini",
    ),
    # Amazon Bedrock: many makers' models in an account of AWS, with AWS credentials or a Bedrock key.
    Vendor(
        name="bedrock",
        title="Amazon Bedrock",
        dialect="bedrock",
        base_url="https://bedrock-runtime.us-east-1.amazonaws.com",
        regions={region: f"https://bedrock-runtime.{region}.amazonaws.com" for region in REGIONS},
        region_names=("AWS_REGION", "AWS_DEFAULT_REGION"),
        region="us-east-1",
        key_names=("AWS_BEARER_TOKEN_BEDROCK",),
        keys_at="https://console.aws.amazon.com/bedrock/home#/api-keys",
        base_url_env="BEDROCK_BASE_URL",
        sign="hermes_agent.providers.signing.aws:sign",
        sign_traces=(
            "AWS_ACCESS_KEY_ID",
            "AWS_PROFILE",
            "AWS_WEB_IDENTITY_TOKEN_FILE",
            "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
            "AWS_CONTAINER_CREDENTIALS_FULL_URI",
            "~/.aws/credentials",
            "~/.aws/config",
        ),
        needs_key=False,
        default_model="global.anthropic.claude-opus-4-6-v1",
    ),
    # Mistral's API: chat completions, stricter than most (docs.mistral.ai/api).
    Vendor(
        name="mistral",
        title="Mistral",
        dialect="openai_chat",
        base_url="https://api.mistral.ai/v1",
        key_names=("MISTRAL_API_KEY",),
        keys_at="https://console.mistral.ai/api-keys",
        base_url_env="MISTRAL_BASE_URL",
        default_model="mistral-medium-3.5",
        quirks=Quirks(
            reasoning_field="thinking_parts",
            effort_field="reasoning_effort",
            stream_usage=False,
            call_ids="nine",
            prefill="prefix",
            reply_after_results=True,
        ),
    ),
    # Azure's OpenAI service: an address of one's own, and the name of a deployment as the model.  The address is that
    # of the v1 API (`https://NAME.openai.azure.com/openai/v1`), or of one deployment with its version
    # (`https://NAME.openai.azure.com/openai/deployments/DEPLOYMENT?api-version=2024-10-21`).
    Vendor(
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
    ),
    # xAI's Grok models.
    Vendor(
        name="xai",
        title="xAI",
        dialect="openai_chat",
        base_url="https://api.x.ai/v1",
        key_names=("XAI_API_KEY",),
        keys_at="https://console.x.ai",
        base_url_env="XAI_BASE_URL",
        default_model="grok-4.5",
        quirks=Quirks(
            reasoning_field="reasoning_content",
            effort_field="reasoning_effort",
            max_tokens_field="max_completion_tokens",
        ),
    ),
    # DeepSeek's API. Its models think unless told not to, and want their reasoning back while they call tools.
    Vendor(
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
    ),
)
