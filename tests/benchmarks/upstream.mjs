// Rebuilds every request of a format-0 log with the released packages: a real Session takes the events one by one, and
// at each step that got an answer the real adapter is called through ctx.llm.stream() with what the session derives.
// Arguments: LOG HOME (where the adapter keeps its user id). Prints the SHA-256 of each body that would have been sent.
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { zstdDecompressSync } from "node:zlib";

const [log, home] = process.argv.slice(2);
process.env.DSH_HOME = home;
process.env.DEEPSEEK_API_KEY = "sk-toy";

const { Context } = await import("@deepseek-ai/cordis");
const { LlmRuntime } = await import("@deepseek-ai/dsh-llm");
const deepseek = await import("@deepseek-ai/dsh-llm-deepseek");
const { Session, decodeStorageRecord } = await import("@deepseek-ai/dsh-session");

const digests = [];
globalThis.fetch = async (_url, init) => {
  digests.push(createHash("sha256").update(init.body).digest("hex"));
  return new Response("", { status: 400 });
};

const ctx = new Context();
await ctx.plugin(LlmRuntime);
await ctx.plugin(deepseek, {});

async function send(session) {
  const { config, system, tools } = session.requestHeader();
  const request = { ...config, system, tools, messages: session.deriveMessages(), sessionId: session.id };
  try {
    for await (const _ of ctx.llm.stream(request));
  } catch (error) {
    if (error.failure?.status !== 400) throw error;
  }
}

const [header, ...rows] = zstdDecompressSync(readFileSync(log)).toString().split("\n").slice(0, -1).map(JSON.parse);
const session = Session.create(header.id, undefined, header);
let waiting = false;
for (const row of rows) {
  for (const { type, data, surfaceOp, sourceEventSeqs } of decodeStorageRecord(row)) {
    if (type === "assistant/chunk" && waiting) await send(session);
    waiting = type === "step/start" || (waiting && type !== "assistant/chunk");
    session.append(type, data, { surfaceOp, sourceEventSeqs });
  }
}
process.stdout.write(digests.join("\n"));
