// Answers calls of upstream's projection functions: one JSON object {call, args} a line in, {result} or {error} out.
import { createInterface } from "node:readline";
import * as session from "@deepseek-ai/dsh-session";

const calls = {
  ...session,
  isSurfaceEvents: (events) => events.map((event) => session.isSurfaceEvent(event)),
  deriveMessages: (events) =>
    session
      .foldSurface(events)
      .nodes.map((seq) => [seq, session.deriveEventMessage(events[seq])])
      .filter(([, message]) => message !== null),
};

for await (const line of createInterface({ input: process.stdin, crlfDelay: Infinity })) {
  const { call, args } = JSON.parse(line);
  let answer;
  try {
    answer = { result: calls[call](...args) ?? null };
  } catch (error) {
    answer = { error: error.message };
  }
  process.stdout.write(`${JSON.stringify(answer)}\n`);
}
