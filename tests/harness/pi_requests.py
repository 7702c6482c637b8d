"""Random requests of the llm-pi-ai adapter: routes, profiles and histories, all from a seed.

The texts are ours; they aim at the places where rules meet: blank and empty texts, surrogates alone and in
pairs, ids with bars, signatures that parse and that do not, numbers that JSON.stringify rewrites.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Any

from dsh_audit.wire.pi.profile import Catalogue, resolve_model
from dsh_audit.wire.pi.settings import supported_levels

Json = Any

APIS = ("openai-completions", "openai-responses", "anthropic-messages")
AZURE = "azure-openai-responses"
LEVELS = ("minimal", "low", "medium", "high", "xhigh", "max")
HAND_ROUTES = ("acme", "toy", "opencode-go", "cloudflare-ai-gateway-x")
PROBED_ROUTES = (
    *("openai", "anthropic", "openrouter", "deepseek", "zai", "xai", "together", "moonshotai", "opencode"),
    *("opencode-go", "github-copilot", "kimi-coding", "nvidia", "cerebras", "fireworks", "groq", "ant-ling"),
    *("minimax", "zai-coding-cn", "moonshotai-cn", "huggingface", "vercel-ai-gateway", "mistral", "baseten"),
    *(
        "cloudflare-workers-ai",
        "cloudflare-ai-gateway",
        "azure-openai-responses",
        "qwen-token-plan",
        "xiaomi",
    ),
)
HOSTS = (
    *("http://127.0.0.1:1/v1", "http://127.0.0.1:1/api.z.ai/v1", "http://127.0.0.1:1/open.bigmodel.cn"),
    *(
        "http://127.0.0.1:1/api.together.xyz",
        "http://127.0.0.1:1/api.moonshot.cn",
        "http://127.0.0.1:1/openrouter.ai",
    ),
    *("http://127.0.0.1:1/api.cloudflare.com", "http://127.0.0.1:1/gateway.ai.cloudflare.com"),
    *("http://127.0.0.1:1/integrate.api.nvidia.com", "http://127.0.0.1:1/api.ant-ling.com"),
    *("http://127.0.0.1:1/api.x.ai", "http://127.0.0.1:1/deepseek.com", "http://127.0.0.1:1/cerebras.ai"),
    *(
        "http://127.0.0.1:1/opencode.ai",
        "http://127.0.0.1:1/chutes.ai",
        "http://127.0.0.1:1/api.openai.com/v1",
    ),
)
MODEL_IDS = ("toy-1", "anthropic/toy", "openai/toy", "claude-toy-4-5", "gpt-toy")
PIECES = (
    *(
        "",
        " ",
        "\n\t",
        "\u00a0\ufeff",
        "\u0085",
        "\u001c",
        "a",
        "Hello",
        "é<a>&",
        "中文",
        "\u2028",
        "\U0001f600",
    ),
    *("\ud83d", "\ude00", "\udfff\ud800", '"q"\\', "\u0000\u001f\b", "z" * 30, "(no output)", "/"),
)
CALL_IDS = (
    *(
        "call_1",
        "call_2",
        "call_a|fc_b",
        "call_a|fc_b|rest",
        "call/odd id",
        "x|",
        "|",
        "|y",
        "a|ctc_1",
        "q__",
    ),
    *("x" * 39, "x" * 41, "x" * 70, "y" * 30 + "|fc_" + "z" * 80, "é\U0001f600|\ud83d", "toolu_01", ""),
)
TOOL_NAMES = ("bash", "read", "Read", "WEBSEARCH", "grep", "echo", "a b", "", "\ud83d", "\u212aillshell")
ARGUMENTS = (
    *("{}", '{"b":1.0,"a":1e21}', '{"10":"t","2":[1,{"1":0,"0":1}],"01":-0}', "[1]", "null", '"s"', "7", ""),
    *(
        "not json",
        '{"a":01}',
        '{"k":"\\ud83d\\u2028\\/","k":2}',
        ' { "x" : 1e400 , "__proto__":{"y":1e-7} } ',
    ),
    *('{"big":9007199254740993,"s":0.000001,"n":null}', "\ufeff{}", '{"a":1}x', '{"constructor":[]}'),
)
TEXT_SIGNATURES = (
    *("", "msg_1", '{"v":1,"id":"msg_2","phase":"final_answer"}', '{"v":1,"id":""}', "{bad", "m" * 70, "{}"),
    *(
        '{"v":1,"id":"","phase":"commentary"}',
        '{"v":true,"id":"x"}',
        '{"v":1.0,"id":"msg_3","phase":"other"}',
    ),
    *('{"v":2,"id":"x"}', '{"v":1,"id":5}', '{"v":1,"id":"' + "i" * 66 + '"}', "\ud83d"),
)
THINKING_SIGNATURES = (
    *(
        '[{"type":"reasoning.text","text":"t","signature":null}]',
        '[{"type":"reasoning.summary","summary":"s","2":1.0}]',
        '[{"type":"reasoning.text"}]',
        '[{"type":"reasoning.encrypted","data":"","format":1}]',
        "[]",
        "",
        " ",
        "reasoning_content",
        "reasoning",
        "reasoning_text",
        "opaque==",
        "\ud83d",
        "content",
        "role",
        "7",
    ),
    *('{"type":"reasoning","id":"rs_1","summary":[],"9":1.0}', "[1.0]", "null", "true", '"s"', "1e400", "12"),
    *("__proto__", "tool_calls", "reasoning_details", "constructor", "\u00a0"),
)
JSON_SIGNATURES = (
    '{"type":"reasoning","id":"rs_1","summary":[],"9":1.0}',
    "[1.0]",
    "null",
    "true",
    '"s"',
    "",
)
THOUGHT_SIGNATURES = (
    *(
        "",
        "nope",
        "0",
        "-0",
        "null",
        "false",
        '""',
        "[]",
        "{}",
        "1.0",
        '{"2":1.0,"id":"x"}',
        "[null]",
        "true",
        '{"type":"reasoning.encrypted","id":"c","data":"d"}',
        '{"type":"reasoning.encrypted","id":"","data":"d"}',
        '{"type":"reasoning.encrypted","id":"c","data":"d","index":null}',
        '{"data":"","type":"reasoning.encrypted"}',
    ),
)
SCHEMAS: tuple[Json, ...] = (
    {"type": "object"},
    {
        "type": "object",
        "properties": {"p": {"type": "string"}},
        "required": ["p"],
        "additionalProperties": False,
    },
    {"$schema": "x", "type": "object", "properties": {"2": {"minimum": 1e21}, "10": {}}, "$defs": {"a": {}}},
    {"properties": None, "required": None},
    {"properties": {}, "required": [], "description": "é\ud83d"},
    {},
)


@dataclass(frozen=True, slots=True)
class Release:
    """What a release adds to the requests.

    Args:
        format: ``v0``: prompt as option, results inside user messages; ``v3``: prompt as first message;
            ``v4``: results as messages of role tool, developer messages, several leading system messages.
        has_budgets: thinking budgets, the baseten format and its template arguments.
        has_output_flags: vLLM priority and supportsMaxOutputTokens.
    """

    format: str = "v0"
    has_budgets: bool = False
    has_output_flags: bool = False


def random_request(rng: Random, catalogues: dict[str, dict[str, dict[str, Json]]], release: Release) -> Json:
    """A request for the oracle.

    Args:
        catalogues: provider key → model id → catalogue entry.
    """
    route = rng.choice(HAND_ROUTES) if rng.random() < 0.45 else rng.choice(PROBED_ROUTES)
    known = {name: entry for name, entry in catalogues.get(route, {}).items() if entry["api"] in (*APIS, AZURE)}
    if not known and catalogues.get(route):
        route = "acme"
    profile, model_id, api = _profile(rng, route, known, release)
    reasoning = None
    if rng.random() < 0.5:
        # Mostly a level that the model takes, else nothing would be sent.
        model = resolve_model(route, model_id, profile, Catalogue(catalogues.get(route, {}), ""))
        reasoning = rng.choice(supported_levels(model) if rng.random() < 0.95 else LEVELS)
    options: dict[str, Json] = {
        "provider": route,
        "model": model_id,
        "messages": random_history(rng, route, model_id, api, _takes_images(profile, model_id, known)),
    }
    if rng.random() < 0.7:
        options["tools"] = [_tool(rng) for _ in range(rng.randrange(4))]
    _place_prompt(rng, options, release)
    if release.format == "v4":
        options["messages"] = _as_v4(rng, options["messages"], options.get("tools", []))
    _add_settings(rng, options, reasoning)
    request: dict[str, Json] = {"route": route, "profile": profile, "options": options}
    request["key"] = rng.choice(("sk-toy", "sk-ant-oat01-toy", "sk-toy", "chat-sign-in"))
    request["env"] = _environment(rng, route, model_id)
    return request


def _environment(rng: Random, route: str, model_id: str) -> dict[str, str]:
    env = {"PI_CACHE_RETENTION": rng.choice(("long", "short", "LONG"))} if rng.random() < 0.2 else {}
    if route.startswith("cloudflare"):
        env |= {"CLOUDFLARE_ACCOUNT_ID": "account", "CLOUDFLARE_GATEWAY_ID": "gateway"}
    if route == AZURE and rng.random() < 0.5:
        env["AZURE_OPENAI_DEPLOYMENT_NAME_MAP"] = f" other=x, {model_id} = deployed ,{model_id}=,bad"
    return env


def _place_prompt(rng: Random, options: dict[str, Json], release: Release) -> None:
    if release.format == "v0" or rng.random() < 0.15:
        if rng.random() < 0.8:
            options["system"] = _text(rng)
        return
    count = 1 if release.format == "v3" else rng.randrange(3)
    source = {"kind": "plugin", "plugin": "p"}
    heads = [{"id": "m", "role": "system", "content": _texts(rng), "source": source} for _ in range(count)]
    options["messages"][:0] = heads


def _texts(rng: Random) -> list[Json]:
    return [_text_block(rng) for _ in range(rng.randrange(1, 3))]


def _as_v4(rng: Random, messages: list[Json], tools: list[Json]) -> list[Json]:
    """Results as messages of their own; now and then a developer message."""
    history: list[Json] = []
    for message in messages:
        blocks = message["content"]
        results = [block for block in blocks if block["type"] == "tool-result"]
        if message["role"] == "assistant" and message["source"]["kind"] != "model":
            message = {**message, "source": {"kind": "model", "provider": "elsewhere", "model": "other"}}
        if message["role"] != "user" or not results or len(results) < len(blocks):
            rest = [block for block in blocks if block["type"] != "tool-result"]
            history.append({**message, "content": rest})
        for result in results:
            content = [block for block in result["content"] if block["type"] != "tool-result"]
            history.append({**message, **result, "type": None, "role": "tool", "content": content})
        if rng.random() < 0.12:
            history.append(_developer(rng, tools))
    return history


def _developer(rng: Random, tools: list[Json]) -> Json:
    blocks = [_text_block(rng) for _ in range(rng.randrange(3))]
    for tool in tools:
        if rng.random() < 0.4:
            blocks.append({"type": rng.choice(("tool-addition", "tool-removal")), "toolName": tool["name"]})
    return {"id": "m", "role": "developer", "content": blocks, "source": {"kind": "plugin", "plugin": "p"}}


def _add_settings(rng: Random, options: dict[str, Json], reasoning: str | None) -> None:
    if reasoning is not None:
        options["reasoningEffort"] = reasoning
    if rng.random() < 0.35:
        options["maxTokens"] = rng.choice((1, 10, 16, 500, 1024, 4096, 20000, 100000))
    if rng.random() < 0.35:
        options["temperature"] = rng.choice((0, 1, 0.5, 1e-7))
    if rng.random() < 0.8:
        ids = ("", "ses_1", "s" * 70, "s" * 63 + "éé", "\u00ff", "\U0001f600" * 3, "ses\u0100")
        options["sessionId"] = rng.choice(ids[:5] if rng.random() < 0.9 else ids)


def _takes_images(profile: dict[str, Json], model_id: str, known: dict[str, Json]) -> bool:
    for entry in profile.get("models", ()):
        if entry["id"] == model_id and entry.get("input"):
            return "image" in entry["input"]
    override = profile.get("modelOverrides", {}).get(model_id, {})
    default = profile.get("defaultInput", ["text"])
    return "image" in (override.get("input") or known.get(model_id, {}).get("input") or default)


def _profile(
    rng: Random, route: str, known: dict[str, dict[str, Json]], release: Release
) -> tuple[dict[str, Json], str, str]:
    """(profile, model id, api)."""
    profile: dict[str, Json] = {}
    if not known or rng.random() < 0.3:
        profile["api"] = rng.choice(APIS)
    if "api" in profile or route == AZURE or rng.random() < 0.2:
        profile["baseURL"] = rng.choice(HOSTS)
    if not known or rng.random() < 0.3:
        listed = list(known) if known else list(MODEL_IDS)
        model_id = rng.choice(listed)
        shared = {entry["api"] for entry in known.values()}
        if known and (len(shared) == 1 or "api" in profile) and rng.random() < 0.3:
            model_id = "toy-unlisted"
            profile.setdefault("baseURL", HOSTS[0])
        api = profile.get("api") or known.get(model_id, {}).get("api") or next(iter(shared), "")
        profile["models"] = [{"id": model_id, **_entry(rng, api, release)}]
    else:
        model_id = rng.choice(list(known))
        api = profile.get("api") or known[model_id]["api"]
        if rng.random() < 0.4:
            profile["modelOverrides"] = {model_id: _entry(rng, api, release)}
    if rng.random() < 0.3 and all(entry["api"] == api for entry in known.values()):
        profile["compat"] = _compat(rng, api, release)
    if rng.random() < 0.4:
        profile["cacheRetention"] = rng.choice(("none", "short", "long"))
    if rng.random() < 0.2:
        profile["thinkingBudgets"] = {rng.choice(LEVELS[:4]): rng.choice((0, 100, 1024, 30000))}
    if rng.random() < 0.08:
        profile["reasoning"] = rng.choice(("off", "off", *LEVELS))
    if rng.random() < 0.2:
        profile["defaultInput"] = ["text", "image"]
    if rng.random() < 0.1:
        profile |= {"defaultContextWindow": 5000, "defaultMaxTokens": 900}
    return profile, model_id, api


def _entry(rng: Random, api: str, release: Release) -> dict[str, Json]:
    entry: dict[str, Json] = {}
    if rng.random() < 0.4:
        entry["contextWindow"] = rng.choice((1, 4200, 5000, 8192, 65536, 200000))
    if rng.random() < 0.4:
        entry["maxTokens"] = rng.choice((1, 16, 1025, 2048, 20000, 64000))
    if rng.random() < 0.4:
        entry["input"] = rng.choice((["text"], ["text", "image"], []))
    if rng.random() < 0.6:
        levels: dict[str, Json] = {level: rng.choice((level, "wire", "none")) for level in LEVELS if rng.random() < 0.6}
        if rng.random() < 0.5:
            levels["off"] = rng.choice((None, "none", "off"))
        entry["reasoningEfforts"] = levels if set(levels) - {"off"} else False
    if rng.random() < 0.4:
        entry["compat"] = _compat(rng, api, release)
    return entry


_FLAGS = {
    "openai-completions": (
        *("supportsStore", "supportsDeveloperRole", "supportsReasoningEffort", "supportsUsageInStreaming"),
        *("requiresToolResultName", "requiresAssistantAfterToolResult", "requiresThinkingAsText"),
        *("requiresReasoningContentOnAssistantMessages", "supportsStrictMode", "supportsLongCacheRetention"),
    ),
    "openai-responses": ("supportsDeveloperRole", "supportsStrictMode", "supportsLongCacheRetention"),
    "anthropic-messages": (
        *("supportsEagerToolInputStreaming", "supportsLongCacheRetention", "supportsCacheControlOnTools"),
        *("supportsTemperature", "forceAdaptiveThinking", "allowEmptySignature", "supportsStrictTools"),
    ),
}
THINKING_FORMATS = (
    *("openai", "deepseek", "openrouter", "together", "zai", "qwen", "chat-template", "qwen-chat-template"),
    *("string-thinking", "ant-ling"),
)
KWARGS: dict[str, Json] = {
    "enabled": {"$var": "thinking.enabled"},
    "effort": {"$var": "thinking.effort"},
    "on_only": {"$var": "thinking.enabled", "omitWhenOff": True},
    "effort_on": {"$var": "thinking.effort", "omitWhenOff": True},
    "plain": 1.5,
    "none": None,
    "7": "first",
}


def _compat(rng: Random, api: str, release: Release) -> dict[str, Json]:
    flags = _FLAGS["openai-responses" if api == AZURE else api]
    compat: dict[str, Json] = {rng.choice(flags): rng.random() < 0.5 for _ in range(rng.randrange(1, 4))}
    if api == "openai-completions":
        if rng.random() < 0.5:
            compat["thinkingFormat"] = rng.choice(THINKING_FORMATS)
        if rng.random() < 0.3:
            compat["maxTokensField"] = rng.choice(("max_tokens", "max_completion_tokens"))
        if rng.random() < 0.3:
            compat["cacheControlFormat"] = "anthropic"
        if rng.random() < 0.3:
            compat["chatTemplateKwargs"] = _template(rng, release)
        if release.has_budgets:
            _add_budget_compat(rng, compat, release)
    if api == "openai-responses" and release.has_output_flags and rng.random() < 0.3:
        compat["supportsMaxOutputTokens"] = rng.random() < 0.5
    return compat


def _template(rng: Random, release: Release) -> dict[str, Json]:
    values: dict[str, Json] = {key: value for key, value in KWARGS.items() if rng.random() < 0.5}
    if release.has_output_flags and rng.random() < 0.4:
        values["budget"] = {"$var": "thinking.budget"}
    return values


def _add_budget_compat(rng: Random, compat: dict[str, Json], release: Release) -> None:
    if rng.random() < 0.2:
        compat |= {"thinkingFormat": "baseten", "chatTemplateArgs": _template(rng, release)}
    if rng.random() < 0.2:
        compat["supportsThinkingTokenBudget"] = rng.random() < 0.7
    if release.has_output_flags and rng.random() < 0.2:
        compat["vllmPriority"] = rng.choice((-1, 0, 5))
    if release.has_output_flags and rng.random() < 0.2:
        compat["thinkingTokenBudgetField"] = rng.choice(("thinking_token_budget", "thinking_budget"))


def _text(rng: Random) -> str:
    text = "".join(rng.choice(PIECES) for _ in range(rng.randrange(4)))
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


def _tool(rng: Random) -> dict[str, Json]:
    return {"name": rng.choice(TOOL_NAMES), "description": _text(rng), "parameters": rng.choice(SCHEMAS)}


def random_history(rng: Random, route: str, model_id: str, api: str, images: bool) -> list[Json]:
    """A history with calls, results, foreign and errored turns."""
    history: list[Json] = []
    for _ in range(rng.randrange(9)):
        roll = rng.random()
        if roll < 0.3:
            history.append(_user(rng, images))
        elif roll < 0.36:
            message = {
                "role": "system",
                "content": [_text_block(rng)],
                "source": {"kind": "plugin", "plugin": "p"},
            }
            history.append(message)
        else:
            assistant = _assistant(rng, route, model_id, api)
            history.append(assistant)
            history += _results(rng, assistant, images)
    return [{"id": "m", **message} for message in history]


def _text_block(rng: Random) -> dict[str, Json]:
    return {"type": "text", "text": _text(rng)}


def _image(rng: Random) -> dict[str, Json]:
    pairs = (("ab", "image/png"), ("cd", "image/jpeg"))
    byte, media_type = rng.choice(pairs)
    attachment = {"attachmentId": f"sha256:{byte * 32}", "mediaType": media_type}
    return {"type": "image", "attachment": {**attachment, "bytes": 4, "width": 2, "height": 3}}


def _parts(rng: Random, images: bool) -> list[Json]:
    share = 0.3 if images and rng.random() < 0.5 else 0.0
    return [_image(rng) if rng.random() < share else _text_block(rng) for _ in range(rng.randrange(4))]


def _user(rng: Random, images: bool) -> Json:
    return {"role": "user", "content": _parts(rng, images), "source": {"kind": "user"}}


def _results(rng: Random, assistant: Json, images: bool) -> list[Json]:
    calls = [block for block in assistant["content"] if block["type"] == "tool-call"]
    kept = [call["id"] for call in calls if rng.random() < 0.8]
    if rng.random() < 0.1:
        kept.append(rng.choice(CALL_IDS))
    if rng.random() < 0.1:
        rng.shuffle(kept)
    results = [_result(rng, call_id, images) for call_id in kept]
    if rng.random() < 0.15:
        mixed = [*(_parts(rng, images)), *(block for result in results for block in result["content"])]
        return [{"role": "user", "content": mixed, "source": {"kind": "user"}}]
    return results


def _result(rng: Random, call_id: str, images: bool) -> Json:
    content = _parts(rng, images)
    if rng.random() < 0.15:
        content.insert(0, {"type": "tool-result", "toolCallId": "n", "content": _parts(rng, images)})
    block: dict[str, Json] = {"type": "tool-result", "toolCallId": call_id, "content": content}
    if rng.random() < 0.8:
        block["isError"] = rng.random() < 0.3
    return {"role": "user", "content": [block], "source": {"kind": "tool", "callId": call_id}}


def _assistant(rng: Random, route: str, model_id: str, api: str) -> Json:
    blocks = [_block(rng) for _ in range(rng.randrange(5))]
    provider = route if rng.random() < 0.75 else rng.choice(("elsewhere", "openai", "deepseek-official"))
    model = model_id if rng.random() < 0.7 else "older"
    if rng.random() < 0.06:
        return {"role": "assistant", "content": blocks, "source": {"kind": "plugin", "plugin": "p"}}
    source: dict[str, Json] = {"kind": "model", "provider": provider, "model": model}
    if rng.random() < 0.8:
        source["replayState"] = _replay(rng, blocks, provider, model, api)
    return {"role": "assistant", "content": blocks, "source": source}


def _block(rng: Random) -> dict[str, Json]:
    roll = rng.random()
    if roll < 0.35:
        return _text_block(rng)
    if roll < 0.6:
        return {"type": "reasoning", "text": _text(rng)}
    call = {"id": rng.choice(CALL_IDS), "name": rng.choice(TOOL_NAMES), "arguments": rng.choice(ARGUMENTS)}
    return {"type": "tool-call", **call}


def _replay(rng: Random, blocks: list[Json], provider: str, model: str, api: str) -> Json:
    native_api = api if rng.random() < 0.8 else rng.choice(APIS)
    stop = rng.choices(("stop", "toolUse", "length", "error", "aborted"), (5, 5, 2, 1, 1))[0]
    response: dict[str, Json] = {"kind": "pi-ai", "version": 2, "api": native_api}
    response |= {"provider": provider, "model": model, "stopReason": stop}
    if rng.random() < 0.2:
        response["providerThinkingLevel"] = rng.choice(("low", "high", "max", "odd", ""))
    if rng.random() < 0.1:
        response["responseModel"] = rng.choice((model, "answered", ""))
    state: dict[str, Json] = {
        "response": response,
        "blocks": [_replay_block(rng, b, native_api) for b in blocks],
    }
    if rng.random() < 0.12:
        _spoil(rng, state)
    return state


def _replay_block(rng: Random, block: Json, api: str) -> dict[str, Json]:
    replay: dict[str, Json] = {"type": block["type"]}
    if block["type"] == "tool-call" and rng.random() < 0.15:
        replay["namespace"] = rng.choice(("functions", ""))
    if rng.random() < 0.3:
        return replay
    if block["type"] == "text":
        replay["textSignature"] = rng.choice(TEXT_SIGNATURES)
    elif block["type"] == "tool-call":
        replay["thoughtSignature"] = rng.choice(THOUGHT_SIGNATURES)
    else:
        # A Responses call fails when a signature is not JSON, so that stays rare.
        sound = JSON_SIGNATURES if api == "openai-responses" and rng.random() < 0.97 else THINKING_SIGNATURES
        replay["thinkingSignature"] = rng.choice(sound)
        if rng.random() < 0.25:
            replay["redacted"] = rng.random() < 0.6
            if rng.random() < 0.2:
                del replay["thinkingSignature"]
    return replay


def _spoil(rng: Random, state: dict[str, Json]) -> None:
    """Make a replay state unusable, or nearly so."""
    response, blocks = state["response"], state["blocks"]
    match rng.randrange(11):
        case 0:
            response["version"] = rng.choice((1, True, "2", 2.0))
        case 1:
            response["stopReason"] = "other"
        case 2:
            response["responseId"] = rng.choice((5, None, "resp_1"))
        case 3:
            blocks.append({"type": "text"})
        case 4 if blocks:
            blocks[0]["redacted"] = rng.choice(("yes", 1, None))
        case 5 if blocks:
            blocks[0]["textSignature"] = rng.choice((5, None))
        case 6:
            response["model"] = ""
        case 7:
            response["provider"] = "other"
        case 8:
            response["providerThinkingLevel"] = rng.choice((5, None))
        case 9 if blocks:
            blocks[0]["namespace"] = rng.choice((5, None, "n"))
        case _:
            state["blocks"] = {}
