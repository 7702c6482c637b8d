// Answers one JSON line per request with the body that the real pi-ai would have sent.
//
// In: {mode: "adapter", route, profile, options, key, env}: profile as configured, options as the harness calls the
//     adapter with, or {mode: "direct", model, context, options, env}: pi-ai alone.
// Out: {body, url, headers, error, model}: body null when nothing was sent.
import { createInterface } from "node:readline";
import { createModels, createProvider } from "@earendil-works/pi-ai";
import { anthropicMessagesApi } from "@earendil-works/pi-ai/api/anthropic-messages.lazy";
import { azureOpenAIResponsesApi } from "@earendil-works/pi-ai/api/azure-openai-responses.lazy";
import { openAICompletionsApi } from "@earendil-works/pi-ai/api/openai-completions.lazy";
import { openAIResponsesApi } from "@earendil-works/pi-ai/api/openai-responses.lazy";

const APIS = {
  "anthropic-messages": anthropicMessagesApi,
  "azure-openai-responses": azureOpenAIResponsesApi,
  "openai-completions": openAICompletionsApi,
  "openai-responses": openAIResponsesApi,
};
const IMAGE = Uint8Array.of(1, 2, 3, 255);

let sent = null;
globalThis.fetch = async (url, init) => {
  const request = new Request(url, init);
  sent = { body: init.body, url: request.url, headers: [...request.headers] };
  return new Response('{"error":{"message":"recorded"}}', { status: 400 });
};

const attachments = { readImage: async (ref) => ({ ref, data: IMAGE, bytes: IMAGE }) };

async function adapterOf(route, profile, key) {
  const { apply } = await import("@deepseek-ai/dsh-llm-pi-ai");
  let adapter;
  const services = { attachments, credentials: { resolve: async () => ({ value: key }) } };
  const ctx = {
    get: (name) => services[name],
    inject: () => {},
    logger: { warn: () => {}, error: () => {} },
    llm: {
      registerAdapter: (_routes, made) => { adapter = made; return { replace: () => {} }; },
      registerConfigurableProviders: () => ({ replace: () => {} }),
      registerModelDiscovery: () => {},
    },
  };
  apply(ctx, { providers: { [route]: { apiKeyEnv: "PI_TEST_KEY", ...profile } } });
  return adapter;
}

async function runAdapter({ route, profile, options, key }) {
  const adapter = await adapterOf(route, profile, key);
  const model = adapter.modelOf(adapter.current(), options.provider, options.model);
  let error = null;
  try {
    for await (const chunk of adapter.stream(options)) error = chunk.reason?.failure?.message ?? error;
  } catch (refusal) {
    error = refusal.message;
  }
  return { model, error };
}

async function runDirect({ model, context, options }) {
  const models = createModels();
  models.setProvider(createProvider({
    id: model.provider,
    name: model.provider,
    auth: { apiKey: { name: "test", resolve: async () => ({ auth: {}, source: "test" }) } },
    models: [model],
    api: APIS[model.api](),
  }));
  const target = models.getModel(model.provider, model.id);
  const result = await models.streamSimple(target, context, { maxRetries: 0, ...options }).result();
  return { error: result.errorMessage ?? null };
}

async function answer(request) {
  sent = null;
  Object.assign(process.env, request.env ?? {});
  let result;
  try {
    result = await (request.mode === "adapter" ? runAdapter(request) : runDirect(request));
  } catch (error) {
    result = { error: String(error?.message ?? error) };
  } finally {
    for (const name of Object.keys(request.env ?? {})) delete process.env[name];
  }
  return { body: null, url: null, headers: null, model: null, ...result, ...sent };
}

for await (const line of createInterface({ input: process.stdin, crlfDelay: Infinity })) {
  process.stdout.write(`${JSON.stringify(await answer(JSON.parse(line)))}\n`);
}
