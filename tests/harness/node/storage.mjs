// Answers one JSON request a line with the row functions of dsh-session 0.1.1-rc.2.
//   {op: "decode", row}   →  {events} | {error}
//   {op: "pack", events}  →  {rows}
import { readFileSync } from "node:fs";
import { decodeStorageRecord, packChunkRuns } from "@deepseek-ai/dsh-session";

const operations = {
  decode: ({ row }) => ({ events: decodeStorageRecord(row) }),
  pack: ({ events }) => ({ rows: packChunkRuns(events) }),
};

// Not readline: it also breaks lines at U+2028.
for (const line of readFileSync(0, "utf8").split("\n").slice(0, -1)) {
  const request = JSON.parse(line);
  let answer;
  try {
    answer = operations[request.op](request);
  } catch (error) {
    answer = { error: error.message };
  }
  process.stdout.write(JSON.stringify(answer) + "\n");
}
