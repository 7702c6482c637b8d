// The toy plugin: tools, a system-prompt section, request settings and commands, all told by the test driver over
// loopback HTTP. Each command answers when its effect is done, so that a case never sleeps and hopes.
//
// TOY_STATE  JSON: {tools, system, config}
// TOY_PORT   file that gets the port of the command server
// TOY_RESUME comma-separated session ids: creating one of these resumes it instead (releases without a resume call)
import { createServer } from 'node:http';
import { readFileSync, writeFileSync } from 'node:fs';

export const name = 'toy';
export const inject = ['tools', 'agents', 'sessions', 'systemPrompt'];

const text = (value) => [{ type: 'text', text: value }];

const BODIES = {
  echo: (spec, args) => `${spec.name}:${JSON.stringify(args)}`,
  fixed: (spec) => spec.result,
  long: (spec) => Array.from({ length: spec.lines }, (_, i) => `line ${i} of a long result`).join('\n'),
  fail: (spec) => { throw new Error(spec.message); },
};

export function apply(ctx) {
  let state = JSON.parse(readFileSync(process.env.TOY_STATE, 'utf8'));
  let requests = 0;
  const live = new Map();

  const tool = (spec) => ({
    name: spec.name,
    description: spec.description ?? `Toy tool ${spec.name}.`,
    parameters: spec.parameters ?? { type: 'object', properties: {}, additionalProperties: true },
    output: { schema: { type: 'string' }, render: (_args, value) => text(value) },
    ...(spec.deferLoading ? { deferLoading: true } : {}),
    isConcurrencySafe: () => true,
    async execute(args, exec) {
      if (spec.delay_ms) await new Promise((done) => setTimeout(done, spec.delay_ms));
      if (spec.does === 'delegate') return delegate(spec, args, exec);
      return BODIES[spec.does ?? 'echo'](spec, args);
    },
  });

  // A registration whose spec is unchanged stays where it is; a reordered list therefore registers everything anew.
  const register = () => {
    const wanted = (state.tools ?? []).map((spec) => [spec.name, JSON.stringify(spec), spec]);
    const same = [...live.keys()].filter((key) => wanted.some(([n, json]) => n === key && json === live.get(key).json));
    const kept = wanted.map(([n]) => n).filter((n) => same.includes(n));
    const reordered = kept.join() !== same.join();
    for (const [n, entry] of [...live]) {
      if (reordered || !same.includes(n)) { entry.off(); live.delete(n); }
    }
    for (const [n, json, spec] of wanted) {
      if (live.has(n)) continue;
      const off = ctx.tools.register(tool(spec));
      live.set(n, { json, off: typeof off === 'function' ? off : () => off.dispose() });
    }
  };

  async function delegate(spec, args, exec) {
    const parent = exec.agent ?? ctx.agents.get(state.session ?? 'sess-1');
    const run = await ctx.get('subagents').start({
      provider: spec.provider, parent, prompt: args.prompt, ...(spec.request ?? {}),
    });
    const result = await run.result;
    await run.dispose?.();
    return JSON.stringify(result.stopReason ?? result);
  }

  const COMMANDS = {
    async state(command) { state = { ...state, ...command.state }; register(); return {}; },
    async cancel(command) { ctx.agents.get(command.session).cancel({ kind: 'user' }); return {}; },
    async compact(command) {
      const agent = ctx.agents.get(command.session);
      return { result: (await ctx.get('compaction').compactNow(agent, new AbortController().signal)) ?? null };
    },
    async append(command) {
      ctx.agents.get(command.session).session.append(command.type, command.data, command.intent);
      return {};
    },
    async fork(command) {
      const parent = ctx.sessions.get(command.session);
      const seed = parent.events.slice(0, command.through + 1);
      await ctx.agents.create({
        sessionId: command.child, seed, agentOptions: command.options ?? {},
        meta: { ...(parent.header.cwd ? { cwd: parent.header.cwd } : {}), parentSession: parent.id, ...command.meta,
          ...(command.seedLength ? { seedLength: seed.length } : {}) },
      });
      return {};
    },
    async prompt(command) {
      const agent = ctx.agents.get(command.session);
      const message = { id: command.id, role: 'user', content: text(command.text), source: { kind: 'user' } };
      agent.followup(message);
      await new Promise((done) => setTimeout(done, 50));
      await agent.whenIdle?.();
      return {};
    },
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
        answer = await COMMANDS[command.do](command);
      } catch (error) {
        answer = { error: String(error?.stack ?? error) };
      }
      response.end(JSON.stringify(answer));
    });
  });
  server.listen(0, '127.0.0.1', () => writeFileSync(process.env.TOY_PORT, String(server.address().port)));
  ctx.effect(() => () => { server.closeAllConnections(); server.close(); });
}
