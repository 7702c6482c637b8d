// Answers one JSON line per request with the body that the real adapter over the real pi-ai would have sent.
//
// In: {route, profile, options, key, env, modelPatch}: the profile as configured, options as the harness calls the
//     adapter with, messages of any format; modelPatch sets members of the resolved model that no profile can set.
// Out: {body, url, headers, error, model, handle}: body null when nothing was sent, model the resolved one, handle the
//     text before an image of 2 x 3 pixels.
import { createInterface } from "node:readline";
import * as llm from "@deepseek-ai/dsh-llm";
import { apply, Config } from "@deepseek-ai/dsh-llm-pi-ai";

const IMAGE = Uint8Array.of(1, 2, 3, 255);

let sent = null;
globalThis.fetch = async (url, init) => {
  const request = new Request(url, init);
  sent = { body: init.body, url: request.url, headers: [...request.headers] };
  return new Response('{"error":{"message":"recorded"}}', { status: 400 });
};

const versionOf = (ref) => ({
  ref, data: IMAGE, bytes: IMAGE.length, mediaType: ref.mediaType, width: ref.width, height: ref.height,
});
const attachments = {
  readImage: async (ref) => ({ ...versionOf(ref), bytes: IMAGE }),
  readImageRequest: async (ref) => versionOf(ref),
  imageHostPath: () => undefined,
};

function contextOf(key) {
  let adapter;
  const services = { attachments, credentials: { resolve: async () => ({ value: key }) } };
  const registered = { replace: () => {} };
  const ctx = {
    adapter: () => adapter,
    get: (name) => services[name],
    inject: () => {},
    on: () => {},
    effect: () => {},
    fiber: {},
    logger: { warn: () => {}, error: () => {} },
    llm: {
      registerAdapter: (_routes, made) => { adapter = made; return registered; },
      registerConfigurableProviders: () => registered,
      registerModelDiscovery: () => {},
    },
  };
  return ctx;
}

// Newer releases hand volatile settings over as a box with get(); the older ones as plain values.
function configOf(providers) {
  const parsed = Config({ providers });
  return typeof parsed.providers?.get === "function" ? parsed : { providers };
}

function patch(target, source) {
  for (const [name, value] of Object.entries(source ?? {})) {
    if (name === "compat") target.compat = { ...target.compat, ...value };
    else target[name] = value;
  }
}

async function run({ route, profile, options, key, modelPatch }) {
  const ctx = contextOf(key);
  apply(ctx, configOf({ [route]: { apiKeyEnv: "PI_TEST_KEY", ...profile } }));
  const adapter = ctx.adapter();
  const model = adapter.modelOf(adapter.current(), options.provider, options.model);
  patch(model, modelPatch);
  let error = null;
  try {
    for await (const chunk of adapter.stream(options)) error = chunk.reason?.failure?.message ?? error;
  } catch (refusal) {
    error = refusal.message;
  }
  return { model, error };
}

function handle() {
  const ref = { attachmentId: `sha256:${"ab".repeat(32)}`, mediaType: "image/png", bytes: 4, width: 2, height: 3 };
  return llm.requestImageHandleText?.(ref, versionOf(ref), undefined) ?? null;
}

async function answer(request) {
  sent = null;
  Object.assign(process.env, request.env ?? {});
  let result;
  try {
    result = await run(request);
  } catch (error) {
    result = { error: String(error?.stack ?? error) };
  } finally {
    for (const name of Object.keys(request.env ?? {})) delete process.env[name];
  }
  return { body: null, url: null, headers: null, model: null, handle: handle(), ...result, ...sent };
}

for await (const line of createInterface({ input: process.stdin, crlfDelay: Infinity })) {
  process.stdout.write(`${JSON.stringify(await answer(JSON.parse(line)))}\n`);
}
