// Asks promptfoo for its verdicts: node promptfoo.mjs FOLDER [SEED], where FOLDER/node_modules has it.
//
// A row is {family, expectation: the assertion, run: {calls}, verdict}. Each run becomes the spans of a trace as the GenAI
// semantic conventions have them.

import { Draw, TOOLS, fromFolder, seed, version, write } from './seeded.mjs';

const { assertions } = (await fromFolder('promptfoo/dist/src/index.js')).default;

const draw = new Draw(seed(20261123));
const rows = [];

function spans(run) {
  const told = [{ spanId: 'root', name: 'invoke_agent shop', startTime: 0, endTime: 9e6, attributes: {} }];
  for (let index = 0; index < (run.model_calls ?? 0); index++) {
    told.push({ spanId: `m${index}`, name: 'chat', startTime: index + 0.5, endTime: index + 0.6, attributes: {} });
  }
  run.calls.forEach((call, index) => {
    const attributes = { 'gen_ai.operation.name': 'execute_tool', 'gen_ai.tool.name': call.name };
    // As it was recorded, where JavaScript would write it in another way.
    if ('arguments_text' in call) attributes['gen_ai.tool.call.arguments'] = call.arguments_text;
    if ('arguments' in call) attributes['gen_ai.tool.call.arguments'] = JSON.stringify(call.arguments);
    told.push({ spanId: `c${index}`, name: `execute_tool ${call.name}`, startTime: 10 + index, endTime: 11 + index, attributes, statusCode: call.error ? 2 : 0 });
  });
  return told;
}

async function add(family, type, value, run, kind) {
  const expectation = { type, value };
  const { pass } = await assertions.runAssertion({
    assertion: expectation,
    test: { vars: {} },
    providerResponse: { output: '' },
    traceId: 't',
    traceData: { traceId: 't', spans: spans(run) },
  });
  rows.push(kind ? { family, expectation, run, verdict: pass, kind } : { family, expectation, run, verdict: pass });
}

/** The same, and its negation. */
async function both(family, type, value, run, kind) {
  await add(family, `trajectory:${type}`, value, run, kind);
  await add(family, `not-trajectory:${type}`, value, run, kind);
}

const named = (names) => ({ calls: names.map((name) => ({ name, arguments: {} })) });

/** The same run, of which some calls failed: promptfoo counts them all the same. */
const failing = ({ calls }) => ({ calls: calls.map((call) => (draw.chance(0.15) ? { ...call, error: 'failed' } : call)) });

/** The name of a tool, or a pattern that has it and perhaps others. */
function pattern(name) {
  const part = name.split('_');
  return draw.chance(0.6) ? name : draw.one([`${part[0]}_*`, `*_${part[1]}`, `?${name.slice(1)}`, '*', 'none_*', 'a?sent']);
}

function step(name) {
  const chosen = pattern(name);
  return draw.one([chosen, { name: chosen }, { pattern: chosen }, { pattern: chosen, name: 'not_looked_at' }]);
}

// One or more tools, used or not, and how often.
for (let count = 0; count < 45; count++) {
  const run = failing(named(draw.names(0, 6)));
  await both('tool-used', 'tool-used', draw.chance(0.4) ? pattern(draw.one(TOOLS)) : draw.many(1, 3, () => pattern(draw.one(TOOLS))), run);
}
for (let count = 0; count < 45; count++) {
  const limits = {};
  if (draw.chance(0.7)) limits.min = draw.whole(0, 3);
  if (draw.chance(0.6)) limits.max = draw.whole(0, 4);
  const by = draw.one(['name', 'pattern']);
  await both('tool-used count', 'tool-used', { [by]: pattern(draw.one(TOOLS)), ...limits }, failing(named(draw.names(0, 7))));
}
await both('tool-used count', 'tool-used', { name: 'search_web' }, named([]));
await both('tool-used count', 'tool-used', { name: 'search_web', min: 0 }, named([]));
await both('tool-used count', 'tool-used', { name: 'search_web', min: 2, max: 1 }, named(['search_web']));
await both('tool-used', 'tool-used', ['search_web', 'search_web'], named(['search_web']));

// Sequences.
for (let count = 0; count < 105; count++) {
  const names = draw.names(1, 6);
  const steps = draw.near(names).map(step);
  if (steps.length === 0) steps.push(step(names[0]));
  const value = draw.one([steps, { steps }, { mode: 'in_order', steps }, { mode: 'exact', steps }, { mode: 'exact', steps }]);
  await both('tool-sequence', 'tool-sequence', value, failing(named(names)));
}
for (const run of [[], ['search_web'], ['search_web', 'search_web'], ['search_web', 'lookup_order', 'search_web']]) {
  await both('tool-sequence', 'tool-sequence', ['search_web', 'search_web'], named(run));
  await both('tool-sequence', 'tool-sequence', { mode: 'exact', steps: ['*', 'search_web'] }, named(run));
  await both('tool-sequence', 'tool-sequence', ['*', '*', '*'], named(run));
}

// Arguments: partial and exact, with defaults and with keys that do not count.
function argumentsMatch() {
  const name = draw.one(TOOLS);
  const args = draw.args(2);
  const calls = draw.many(0, 4, () => {
    const made = draw.nearValue(args);
    const isObject = made && typeof made === 'object' && !Array.isArray(made);
    const noise = draw.chance(0.3) ? { trace_id: draw.whole(0, 9) } : draw.chance(0.2) ? { limit: 10 } : {};
    return { name: draw.chance(0.8) ? name : draw.one(TOOLS), arguments: isObject ? { ...made, ...noise } : args };
  });
  const value = { [draw.one(['name', 'pattern'])]: pattern(name), [draw.one(['args', 'arguments'])]: args };
  if (draw.chance(0.8)) value.mode = draw.one(['partial', 'exact', 'exact']);
  if (draw.chance(0.5)) value.defaults = draw.one([{ limit: 10 }, { limit: 10, page: null }, { page: 1, tags: [] }, {}]);
  if (draw.chance(0.5)) value.ignore = draw.one(['trace_id', ['trace_*'], ['page', 'limit'], ['*i*'], ['?age'], '*']);
  return [value, { calls }];
}
for (let count = 0; count < 170; count++) await both('tool-args-match', 'tool-args-match', ...argumentsMatch());
const once = (args) => ({ calls: [{ name: 'search_web', arguments: args }] });
const edges = [
  [{ args: {} }, {}], [{ args: {} }, { a: 1 }], [{ args: {}, mode: 'exact' }, {}], [{ args: {}, mode: 'exact' }, { a: 1 }],
  [{ args: { a: 1 } }, { a: 1.0 }], [{ args: { a: 1 } }, { a: '1' }], [{ args: { a: 1 } }, { a: true }], [{ args: { a: 0 } }, { a: false }],
  [{ args: { a: null } }, { a: null }], [{ args: { a: null } }, {}], [{ args: { a: null } }, { a: 0 }], [{ args: { a: '' } }, { a: '' }],
  [{ args: { a: [] } }, { a: [] }], [{ args: { a: [] } }, { a: {} }], [{ args: { a: {} } }, { a: [] }], [{ args: { a: {} } }, { a: { b: 1 } }],
  [{ args: { a: {} } }, { a: 'text' }], [{ args: { a: {} } }, { a: null }],
  [{ args: { a: {} }, mode: 'exact' }, { a: { b: 1 } }], [{ args: { a: [{ b: 1 }] } }, { a: [{ b: 1, c: 2 }] }],
  [{ args: { a: [{ b: 1 }] }, mode: 'exact' }, { a: [{ b: 1, c: 2 }] }], [{ args: { a: [1, 2] } }, { a: [2, 1] }],
  [{ args: { a: [1] } }, { a: [1, 2] }], [{ args: { a: { b: { c: 1 } } } }, { a: { b: { c: 1, d: 2 }, e: 3 } }],
  [{ args: { limit: 10 }, defaults: { limit: 10 } }, { limit: 10 }], [{ args: { limit: 10 }, defaults: { limit: 10 }, mode: 'exact' }, { limit: 10 }],
  [{ args: { limit: 5 }, defaults: { limit: 10 }, mode: 'exact' }, { limit: 5 }], [{ args: {}, defaults: { limit: 10 }, mode: 'exact' }, { limit: 10 }],
  [{ args: {}, defaults: { limit: 10 }, mode: 'exact' }, { limit: 11 }], [{ args: {}, defaults: { o: { a: 1 } }, mode: 'exact' }, { o: { a: 1, b: 2 } }],
  [{ args: { q: 'x' }, ignore: 'q', mode: 'exact' }, {}], [{ args: { q: 'x' }, ignore: ['q'] }, { q: 'y' }],
  [{ args: { q: 'x' }, ignore: ['q*'], mode: 'exact' }, { q: 1, q2: 2 }], [{ args: { q: 'x' }, ignore: ['[q]'], mode: 'exact' }, { q: 'x' }],
  [{ args: { q: 'x' }, ignore: ['id'], mode: 'exact' }, { q: 'x', id: 1 }], [{ args: { q: { id: 1 } }, ignore: ['id'], mode: 'exact' }, { q: { id: 2 } }],
  [{ args: { q: 'x' }, ignore: ['a.b'], mode: 'exact' }, { q: 'x', 'a.b': 1 }], [{ args: { q: 'x' }, ignore: ['a.*'], mode: 'exact' }, { q: 'x', axb: 1 }],
  [{ args: { $type: 'string' } }, { $type: 'string' }], [{ args: { $where: { $gt: 1 } }, mode: 'exact' }, { $where: { $gt: 1 } }],
  [{ args: { $where: 1, q: { b: 1 } } }, { $where: 1, q: { b: 1, c: 2 } }], [{ args: { $where: 1, q: { b: 1 } } }, { $where: 2, q: { b: 1 } }],
  [{ args: { $any: true } }, { q: 1 }], [{ args: { q: { $any: true } } }, { q: 1 }],
  [{ args: ['x'] }, ['x']], [{ args: ['x'] }, ['x', 'y']], [{ args: ['x'], mode: 'exact' }, { 0: 'x' }], [{ args: [{ a: 1 }] }, [{ a: 1, b: 2 }]],
  [{ args: 'plain words' }, 'plain words'], [{ args: 'plain words' }, 'other words'], [{ args: 5 }, 5], [{ args: 5, mode: 'exact' }, 6],
  [{ args: { a: 'é' } }, { a: 'e\u0301' }], [{ args: { '': 1 } }, { '': 1 }], [{ args: { __proto__x: 1 } }, { __proto__x: 1 }],
];
for (const [value, args] of edges) await both('tool-args-match edges', 'tool-args-match', { name: 'search_web', ...value }, once(args));
await both('tool-args-match edges', 'tool-args-match', { name: 'search_web', args: {} }, named([]));
await both('tool-args-match edges', 'tool-args-match', { name: 'search_web', args: { a: 1 } }, named(['lookup_order']));

const recorded = (text) => ({ calls: [{ name: 'search_web', arguments_text: text }] });
for (const [a, text] of [[1, '{"a": 1.0}'], [100, '{"a": 1e2}'], [0.1, '{"a": 0.10}'], [0, '{"a": 0.0}'], ['é', '{"a": "\\u00e9"}'], [1, '{"a": 1.5}'], [2, ' {"a":\n2} ']]) {
  await both('tool-args-match edges', 'tool-args-match', { name: 'search_web', args: { a } }, recorded(text));
}

// How many steps.
for (let count = 0; count < 40; count++) {
  const limits = draw.one([{ min: draw.whole(0, 4) }, { max: draw.whole(0, 6) }, { min: draw.whole(0, 2), max: draw.whole(2, 5) }]);
  const type = draw.one(['tool', ['tool'], ['tool', 'command']]);
  const by = draw.one([{}, { pattern: pattern(draw.one(TOOLS)) }, { name: pattern(draw.one(TOOLS)) }]);
  await both('step-count', 'step-count', { type, ...by, ...limits }, failing(named(draw.names(0, 7))));
}
for (let count = 0; count < 20; count++) {
  const run = { ...named(draw.names(0, 5)), model_calls: draw.whole(1, 4) };
  await add('step-count of all', 'trajectory:step-count', { max: draw.whole(2, 10) }, run);
}
const COMMANDS = ['git status', 'git push origin', 'ls', 'ls -la', 'rm -rf build', 'pytest -q'];
for (let count = 0; count < 25; count++) {
  const calls = draw.many(0, 6, () => {
    if (draw.chance(0.3)) return { name: draw.one(TOOLS), arguments: {} };
    return { name: draw.one(['shell', 'exec_command', 'local_shell']), arguments: { [draw.one(['cmd', 'command'])]: draw.one(COMMANDS) } };
  });
  const limits = draw.one([{ min: draw.whole(0, 3) }, { max: draw.whole(0, 3) }, { min: 1, max: draw.whole(1, 3) }]);
  await both('step-count of commands', 'step-count', { type: 'command', pattern: draw.one(['git *', 'git', 'ls', '*', 'shell', 'rm *', 'Git']), ...limits }, { calls });
}

// Where spanscore differs on purpose.
const differs = (kind, type, value, run) => both('differs', type, value, run, kind);
await differs('case of names', 'tool-used', 'Search_Web', named(['search_web']));
await differs('case of names', 'tool-used', 'search_web', named(['SEARCH_WEB']));
await differs('case of names', 'tool-used', { name: 'Search_*', min: 2 }, named(['search_web', 'SEARCH_DOCS']));
await differs('case of names', 'tool-sequence', ['SEARCH_*', 'lookup_order'], named(['search_web', 'lookup_order']));
await differs('case of names', 'tool-sequence', { mode: 'exact', steps: ['search_web', 'Lookup_Order'] }, named(['search_web', 'lookup_order']));
await differs('case of names', 'tool-args-match', { name: 'Search_Web', args: { a: 1 } }, once({ a: 1 }));
await differs('case of names', 'step-count', { type: 'tool', name: 'Search_Web', min: 1 }, named(['search_web']));
await differs('names of spans', 'tool-used', 'execute_tool*', named(['search_web']));
await differs('names of spans', 'tool-sequence', { mode: 'exact', steps: ['execute*'] }, named(['search_web']));
await differs('no arguments', 'tool-args-match', { name: 'search_web', args: {} }, { calls: [{ name: 'search_web' }] });
for (const value of [{ min: 2 }, { type: 'span', max: 3 }, { type: ['tool', 'span'], min: 2 }, { type: 'reasoning', min: 1 }, { pattern: 'chat', max: 5 }]) {
  await differs('other steps', 'step-count', value, { ...named(['search_web']), model_calls: 2 });
}
await differs('negative zero', 'tool-args-match', { name: 'search_web', args: { a: 0 } }, recorded('{"a": -0.0}'));
await differs('large integers', 'tool-args-match', { name: 'search_web', args: { a: 9007199254740992 } }, recorded('{"a": 9007199254740993}'));
const shell = { name: 'shell', arguments: { cmd: 'ls' } };
await differs('commands are calls', 'tool-used', 'shell', { calls: [shell] });
await differs('commands are calls', 'step-count', { type: 'tool', max: 1 }, { calls: [shell, shell] });

write('promptfoo', version('promptfoo'), rows);
