// What XState itself does: reads cases as JSON lines (`{config, names, events}`) and answers each with the active states and the log
// after the start and after every event. XSTATE_DIR is a folder in which `npm install xstate@5` was run.
const { createRequire } = require('module');
const path = require('path');
const from = createRequire(path.join(process.env.XSTATE_DIR || __dirname, 'package.json'));
const { setup, assign, createActor, SimulatedClock } = from('xstate');

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
for (const line of lines) {
  const { config, names, events } = JSON.parse(line);
  try {
    const actions = {};
    for (const name of names) actions[name] = assign({ log: ({ context }) => context.log + name + ' ' });
    const machine = setup({ actions, guards: { yes: () => true, no: () => false } }).createMachine({ ...config, options: { maxIterations: 300 } });
    const clock = new SimulatedClock();
    const actor = createActor(machine, { clock, logger: () => {} });
    actor.subscribe({ error: () => {} });
    const seen = [];
    const look = () => {
      const s = actor.getSnapshot();
      seen.push({ states: leaves(s.value, '').sort(), log: s.context.log, status: s.status !== 'error' && !whole(s._nodes) ? 'broken' : s.status });
    };
    actor.start();
    look();
    for (const event of events) {
      if (event.wait) clock.increment(event.wait);
      else actor.send(event);
      look();
    }
    console.log(JSON.stringify(seen));
  } catch (error) {
    console.log(JSON.stringify({ error: String(error && error.message) }));
  }
}
