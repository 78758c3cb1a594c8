// What XState itself does: reads cases as JSON lines (`{config, names, events}`) and answers each with the active states and the log
// after the start and after every event. XSTATE_DIR is a folder in which `npm install xstate@5` was run.
const { createRequire } = require('module');
const path = require('path');
const from = createRequire(path.join(process.env.XSTATE_DIR || __dirname, 'package.json'));
const { setup, assign, raise, cancel, enqueueActions, fromPromise, createActor, SimulatedClock } = from('xstate');

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
    if (node.parent && !active.has(node.parent)) return false;
    const inside = children(node).filter((child) => active.has(child)).length;
    return node.type === 'compound' ? inside === 1 : node.type !== 'parallel' || inside === children(node).length;
  });
};

const lines = require('fs').readFileSync(0, 'utf8').split('\n').filter(Boolean);
// What the host answers comes when the case says so.
const settled = () => new Promise((resolve) => setImmediate(resolve));

const run = async ({ config, names, events }) => {
  const pending = new Map();
  const work = fromPromise(({ self }) => new Promise((resolve, reject) => pending.set(self.id, { self, resolve, reject })));
  const later = enqueueActions(({ enqueue }) => {
    enqueue.cancel('later');
    enqueue.raise({ type: 'H' }, { delay: 5, id: 'later' });
  });
  const actions = {
    tell: raise({ type: 'H' }),
    later,
    never: cancel('later'),
    given: assign({ log: ({ context, event }) => context.log + (event.output ?? '-') + ' ' }),
  };
  for (const name of names) actions[name] = assign({ log: ({ context }) => context.log + name + ' ' });
  const guards = { yes: () => true, no: () => false };
  const machine = setup({ actions, guards, actors: { work } }).createMachine({ ...config, options: { maxIterations: 300 } });
  const clock = new SimulatedClock();
  const actor = createActor(machine, { clock, logger: () => {} });
  actor.subscribe({ error: () => {} });
  const seen = [];
  const look = () => {
    const s = actor.getSnapshot();
    const status = s.status !== 'error' && !whole(s._nodes) ? 'broken' : s.status;
    const waits = Object.keys(s.children).filter((id) => s.children[id].getSnapshot().status === 'active');
    seen.push({ states: leaves(s.value, '').sort(), log: s.context.log, status, waits: s.status === 'active' ? waits.sort() : [] });
  };
  actor.start();
  look();
  for (const event of events) {
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
  for (const line of lines) {
    try {
      console.log(JSON.stringify(await run(JSON.parse(line))));
    } catch (error) {
      console.log(JSON.stringify({ error: String(error && error.message) }));
    }
  }
})();
