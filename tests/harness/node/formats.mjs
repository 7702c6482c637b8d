// Answers one JSON request a line, in order.
//
//   {op: "migrate", header, rows, to, children?}  →  {header, cut, events} | {error}
//       decode the rows strictly with the codec of header.version, run the adjacent steps, validate nothing more
//   {op: "restore", header, rows}                 →  {events} | {error}
//       decode with tail recovery as a reader does
//   {op: "header", header}                        →  {header} | {error}
//   {op: "stream", chunks}                        →  {stream} | {error}
//   {op: "expand", stream}                        →  {chunks} | {error}
import { readFileSync } from "node:fs";
import { AssistantStreamAccumulator, expandAssistantStream } from "@deepseek-ai/dsh-llm";
import { createSessionFormatCatalog } from "@deepseek-ai/dsh-session-format";
import * as v01 from "@deepseek-ai/dsh-session-format-v0-to-v1";
import * as v12 from "@deepseek-ai/dsh-session-format-v1-to-v2";
import * as v23 from "@deepseek-ai/dsh-session-format-v2-to-v3";
import * as v34 from "@deepseek-ai/dsh-session-format-v3-to-v4";

const codecs = [
  v01.releasedV0SessionFormatCodec,
  v01.releasedV1SessionFormatCodec,
  v12.releasedV2SessionFormatCodec,
  v23.releasedV3SessionFormatCodec,
  v34.releasedV4SessionFormatCodec,
];

function catalog(to, children) {
  const steps = [
    v01.sessionFormatV0ToV1,
    v12.sessionFormatV1ToV2,
    v23.sessionFormatV2ToV3,
    v34.createSessionFormatV3ToV4(children ?? []),
  ];
  const same = (value) => value;
  return createSessionFormatCatalog({
    currentVersion: to,
    codecs: codecs.slice(0, to + 1),
    migrations: steps.slice(0, to),
    currentEncoder: { encodeHeader: same, encodeEvent: same },
    restoreCurrent: same,
    restoreTransformedCurrent: same,
    restoreCurrentHeader: same,
  });
}

function collect() {
  const events = [];
  return {
    events,
    emitEvent: (event) => { events.push(event); },
    emitRun: (run) => { for (const event of run.expand()) events.push(event); },
  };
}

const operations = {
  migrate({ header, rows, to, children }) {
    const restore = catalog(to, children).createRestore(header, { recovery: "strict", validation: "transformed" });
    for (const row of rows) restore.decodeRow(row);
    const done = restore.finish();
    return { header: done.header, cut: done.inheritedEventCount, events: done.events };
  },
  restore({ header, rows }) {
    const output = collect();
    const decoder = codecs[header.version].createDecoder(header, "recoverable");
    for (const row of rows) decoder.decodeRow(row, output);
    decoder.finish(output);
    return { events: output.events };
  },
  header({ header }) {
    return { header: codecs[header.version].decodeHeader(header) };
  },
  stream({ chunks }) {
    const packer = new AssistantStreamAccumulator();
    for (const [time, chunk] of chunks) packer.push({ time, chunk });
    return { stream: packer.snapshot() };
  },
  expand({ stream }) {
    return { chunks: expandAssistantStream(stream).map(({ time, chunk }) => [time, chunk]) };
  },
};

function guard(action) {
  try {
    return action();
  } catch (error) {
    return { error: error instanceof Error ? error.message : String(error) };
  }
}

// Not readline: it also breaks lines at U+2028.
for (const line of readFileSync(0, "utf8").split("\n").slice(0, -1)) {
  const request = JSON.parse(line);
  process.stdout.write(JSON.stringify(guard(() => operations[request.op](request))) + "\n");
}
