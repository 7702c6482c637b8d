// The toy plugin: tools, a system-prompt section, request settings and commands, all told by the test driver over
// loopback HTTP. Each command answers when its effect is done, so that a case never sleeps and hopes.
//
// TOY_STATE  JSON: {tools, toolOrder, system, config}; {now} and {count} in the system text are filled in per request
// TOY_PORT   file that gets the port of the command server
// TOY_RESUME comma-separated session ids: creating one of these resumes it instead (releases without a resume call)
import { createServer } from 'node:http';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createRequire, syncBuiltinESMExports } from 'node:module';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const name = 'toy';
export const inject = ['tools', 'agents', 'sessions', 'systemPrompt'];

const text = (value) => [{ type: 'text', text: value }];
const wait = (milliseconds) => new Promise((done) => setTimeout(done, milliseconds));

// A worker whose file lies inside the wheel's executable does not load there; a copy outside does. Only the check of a
// migrated log runs in such a worker: one file that also reads the package.json above it.
const workers = createRequire(import.meta.url)('node:worker_threads');
const { Worker } = workers;
workers.Worker = class extends Worker {
  constructor(entry, options) {
    const inside = entry instanceof URL && entry.protocol === 'file:' && entry.pathname.startsWith('/snapshot/');
    super(inside ? copyOut(fileURLToPath(entry)) : entry, options);
  }
};
syncBuiltinESMExports();

function copyOut(file) {
  const target = join(dirname(process.env.TOY_STATE), 'workers', basename(dirname(dirname(file))), 'lib');
  mkdirSync(target, { recursive: true });
  writeFileSync(join(target, '..', 'package.json'), readFileSync(join(dirname(file), '..', 'package.json')));
  writeFileSync(join(target, basename(file)), readFileSync(file));
  return join(target, basename(file));
}

export function apply(ctx) {
  let state = JSON.parse(readFileSync(process.env.TOY_STATE, 'utf8'));
  let requests = 0;
  const live = new Map();

  const DOES = {
    echo: (spec, args) => `${spec.name}:${JSON.stringify(args)}`,
    fixed: (spec) => spec.result,
    long: (spec) => Array.from({ length: spec.lines }, (_, i) => `line ${i} of a long result`).join('\n'),
    fail: (spec) => { throw new Error(spec.message); },
    state: (spec) => { change(spec.state); return 'changed'; },
    search: async (spec, args, exec) => JSON.stringify(await ctx.get('web').search(args, exec.signal)),
    async delegate(spec, args, exec) {
      const run = await ctx.get('subagents').start(spec.provider, {
        parent: exec.agent, prompt: text(args.prompt), signal: exec.signal,
      });
      const result = await run.result;
      await run.dispose();
      return JSON.stringify(result.stopReason);
    },
    async child(spec, args, exec) {
      const meta = { origin: 'subagent', delegationDepth: 1 };
      const handle = await fork({ ...spec.child, meta }, exec.agent);
      handle.agent.followup(userMessage(args.prompt, `message-${spec.child.id}`));
      await handle.agent.whenIdle();
      await handle.dispose();
      return `child ${spec.child.id} came back`;
    },
  };

  const userMessage = (content, id) => ({ id, role: 'user', content: text(content), source: { kind: 'user' } });

  const tool = (spec) => ({
    name: spec.name,
    description: spec.description ?? `Toy tool ${spec.name}.`,
    parameters: spec.parameters_json ? JSON.parse(spec.parameters_json)
      : spec.parameters ?? { type: 'object', properties: {}, additionalProperties: true },
    output: { schema: { type: 'string' }, render: (_args, value) => text(value) },
    ...(spec.deferLoading ? { deferLoading: true } : {}),
    isConcurrencySafe: () => true,
    async execute(args, exec) {
      if (spec.delay_ms) await wait(spec.delay_ms);
      return DOES[spec.does ?? 'echo'](spec, args, exec);
    },
  });

  // A tool whose spec is unchanged stays registered.
  const register = () => {
    const wanted = new Map((state.tools ?? []).map((spec) => [spec.name, { spec, json: JSON.stringify(spec) }]));
    for (const [key, entry] of [...live]) {
      if (wanted.get(key)?.json !== entry.json) { entry.off(); live.delete(key); }
    }
    for (const [key, { spec, json }] of wanted) {
      if (live.has(key)) continue;
      const off = ctx.tools.register(tool(spec));
      live.set(key, { json, off: typeof off === 'function' ? off : () => off.dispose() });
    }
    if (state.toolOrder) ctx.systemPrompt.toolOrder = state.toolOrder;
  };

  const change = (part) => { state = { ...state, ...part }; register(); };

  // A child session with the parent's events up to `through` (none: a fresh child), as the release seeds one.
  const fork = ({ id, through, meta = {}, options }, parent) => {
    const all = parent.session.snapshotEvents?.() ?? parent.session.events;
    const end = all.findLast((event) => event.type === 'turn/end');
    const seed = through === undefined ? [] : all.slice(0, (through === 'turn-end' ? end.seq : through) + 1);
    const counted = typeof parent.session.snapshotEvents === 'function';
    const { cwd } = parent.session.header;
    return ctx.agents.create({
      sessionId: id,
      ...(counted ? { parentAgent: parent } : {}),
      meta: {
        ...(cwd === undefined ? {} : { cwd }), parentSession: parent.session.header.id, ...meta,
        ...(counted ? { isSeeded: seed.length > 0 } : seed.length > 0 ? { seedLength: seed.length } : {}),
      },
      ...(seed.length > 0 ? { seed } : {}),
      ...(counted && seed.length > 0 ? { inheritedEventCount: seed.length } : {}),
      agentOptions: options ?? { ...parent.options },
    });
  };

  const title = async (inner, { automatic, system, maxTokens }, { session, messages, route, signal }) => {
    const picked = automatic === 'first-prompt' ? messages.slice(0, 1) : messages;
    const asked = picked.map((message) => ({ seq: message.seq, text: message.text }));
    const source = session.toolHistory ? { kind: 'plugin:toy' } : { kind: 'plugin', plugin: 'toy' };
    const prompt = { id: `title-${session.seq ?? asked[0].seq}`, role: 'user', content: text(JSON.stringify(asked)), source };
    const messageSeqs = asked.map(({ seq }) => seq);
    const request = { titleProvider: 'toy-title', messageSeqs, route, system, messages: [prompt], maxTokens };
    session.append('session/title-llm-request', request);
    const options = { ...route, messages: [prompt], system, maxTokens, sessionId: session.id, signal };
    let said = '';
    for await (const chunk of inner.llm.stream({ ...options, purpose: 'session-title' })) {
      if (chunk.type === 'text-delta') said += chunk.text;
      if (chunk.type === 'finish' && chunk.reason.kind !== 'stop') throw new Error(`title ended: ${chunk.reason.kind}`);
    }
    return { title: said, messageSeqs, model: route };
  };

  const COMMANDS = {
    state(command) { change(command.state); },
    cancel(command) { ctx.agents.get(command.session).cancel({ kind: 'user' }); },
    async compact(command) {
      const agent = ctx.agents.get(command.session);
      const signal = new AbortController().signal;
      try {
        return (await ctx.get('compaction').compactNow(agent, signal)) ?? 'nothing';
      } catch (error) {
        return `failed: ${error.message}`;
      }
    },
    append(command) { ctx.agents.get(command.session).session.append(command.type, command.data, command.intent); },
    async title(command) {
      const session = ctx.sessions.get(command.session);
      return ctx.get('sessionTitle').refresh(session).then((snapshot) => snapshot.title, (error) => `failed: ${error.message}`);
    },
    async fork(command) { await fork(command.child, ctx.agents.get(command.session)); },
    prompt(command) { ctx.agents.get(command.session).followup(userMessage(command.text, command.id)); },
  };

  register();
  ctx.systemPrompt.section({
    name: 'toy:section',
    order: 5000,
    text: () => (state.system ?? '')
      .replaceAll('{now}', () => new Date().toISOString())
      .replaceAll('{count}', () => String(requests)),
  });
  const resumed = new Set((process.env.TOY_RESUME ?? '').split(',').filter(Boolean));
  if (resumed.size > 0) {
    const agents = ctx.agents;
    const create = agents.create.bind(agents);
    agents.create = (options) => (resumed.has(String(options.sessionId))
      ? ctx.agents.resume({ resumeSessionId: options.sessionId, agentOptions: options.agentOptions })
      : create(options));
  }
  // Titles, asked for as the bundled plugin does, in our own words.
  if (state.title) {
    ctx.inject(['sessionTitle', 'llm'], (inner) => {
      inner.sessionTitle.register({
        id: 'toy-title',
        automatic: state.title.automatic,
        generate: (request) => title(inner, state.title, request),
      });
    });
  }
  ctx.on('agent/request', async (_payload, next) => {
    requests += 1;
    const config = { ...(await next()), ...(state.config ?? {}) };
    for (const key of Object.keys(config)) if (config[key] === null) delete config[key];
    return config;
  });

  const server = createServer((request, response) => {
    let body = '';
    request.setEncoding('utf8');
    request.on('data', (part) => { body += part; });
    request.on('end', async () => {
      let answer;
      try {
        const command = JSON.parse(body);
        answer = { said: (await COMMANDS[command.do](command)) ?? '' };
      } catch (error) {
        answer = { error: String(error?.stack ?? error) };
      }
      response.end(JSON.stringify(answer));
    });
  });
  server.listen(0, '127.0.0.1', () => writeFileSync(process.env.TOY_PORT, String(server.address().port)));
  ctx.effect(() => () => { server.closeAllConnections(); server.close(); });
}
