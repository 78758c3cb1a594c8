// What XState itself does: reads cases as JSON lines (`{config, names, notes, events}`, where the config is text) and answers each
// line with the active states, the logs, the status, the output and the pending invocations after the start and after every event.
// XSTATE_DIR is a folder in which `npm install xstate@5` was run.
const { createRequire } = require('module');
const path = require('path');
const readline = require('readline');
const from = createRequire(path.join(process.env.XSTATE_DIR || __dirname, 'package.json'));
const { setup, assign, raise, cancel, enqueueActions, fromPromise, createActor, SimulatedClock, and, or, not, stateIn } = from('xstate');

const leaves = (value, prefix) =>
  typeof value === 'string'
    ? [prefix + value]
    : Object.entries(value).flatMap(([key, inner]) => {
        const own = prefix + key;
        const below = typeof inner === 'string' || Object.keys(inner).length ? leaves(inner, own + '.') : [];
        return below.length ? below : [own];
      });

// Now and then XState is left with half a configuration (a state without its parent, say): nothing to compare with.
const whole = (nodes) => {
  const active = new Set(nodes);
  const children = (node) => Object.values(node.states).filter((child) => child.type !== 'history');
  return nodes.every((node) => {
    if (node.type === 'history') return false;
    if (node.parent && !active.has(node.parent)) return false;
    const inside = children(node).filter((child) => active.has(child)).length;
    return node.type === 'compound' ? inside === 1 : node.type !== 'parallel' || inside === children(node).length;
  });
};

// What the host answers comes when the case says so.
const settled = () => new Promise((resolve) => setImmediate(resolve));

// A config has combinations of guards as data, XState as functions.
const guard = (value) => {
  if (!value || typeof value !== 'object') return value;
  if (value.type === 'and') return and(value.guards.map(guard));
  if (value.type === 'or') return or(value.guards.map(guard));
  if (value.type === 'not') return not(guard(value.guard));
  if (value.type === 'stateIn') return stateIn(value.stateValue);
  return value;
};
const revive = (text) => JSON.parse(text, (key, value) => (key === 'guard' ? guard(value) : value));

const run = async ({ config, names, notes, events }) => {
  const pending = new Map();
  const work = fromPromise(({ self }) => new Promise((resolve, reject) => pending.set(self.id, { self, resolve, reject })));
  const later = enqueueActions(({ enqueue }) => {
    enqueue.cancel('later');
    enqueue.raise({ type: 'H' }, { delay: 5, id: 'later' });
  });
  const log = (text) => assign({ log: (args, params) => args.context.log + text(args, params) + ' ' });
  let noted = '';
  const actions = {
    tell: raise({ type: 'H' }),
    later,
    never: cancel('later'),
    given: log(({ event }) => event.output ?? '-'),
    say: log((_, params) => params.text),
  };
  for (const name of names) actions[name] = log(() => name);
  for (const name of notes) actions[name] = () => void (noted += name + ' ');
  const guards = { yes: () => true, no: () => false, is: (_, params) => params.value };
  const machine = setup({ actions, guards, actors: { work }, delays: { soon: 5 } }).createMachine({
    ...revive(config),
    options: { maxIterations: 300 },
  });
  const clock = new SimulatedClock();
  const actor = createActor(machine, { clock, logger: () => {} });
  let error;
  actor.subscribe({ error: (e) => (error = String(e && e.message)) });
  const seen = [];
  const look = () => {
    const s = actor.getSnapshot();
    if (s.status === 'error' || error !== undefined) return seen.push({ status: 'error', error: error ?? '' });
    const status = whole(s._nodes) ? s.status : 'broken';
    const waits = Object.keys(s.children).filter((id) => s.children[id].getSnapshot().status === 'active');
    seen.push({
      states: leaves(s.value, '').sort(),
      log: s.context.log,
      noted,
      status,
      output: s.output ?? null,
      waits: s.status === 'active' ? waits.sort() : [],
    });
  };
  actor.start();
  look();
  for (const event of events) {
    if (error !== undefined) break;
    if (event.wait) clock.increment(event.wait);
    else if (event.done !== undefined || event.failed !== undefined) {
      const waits = seen[seen.length - 1].waits;
      const id = waits.length ? waits[(event.done ?? event.failed) % waits.length] : undefined;
      if (id === undefined) {
        look();
        continue;
      }
      const { resolve, reject } = pending.get(id);
      if (event.done !== undefined) resolve('done' + event.done);
      else reject('no');
      await settled();
    } else actor.send(event);
    look();
  }
  return seen;
};

(async () => {
  for await (const line of readline.createInterface({ input: process.stdin })) {
    if (!line) continue;
    try {
      console.log(JSON.stringify(await run(JSON.parse(line))));
    } catch (error) {
      console.log(JSON.stringify({ error: String(error && error.message) }));
    }
  }
})();
