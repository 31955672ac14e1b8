// Asks webmcp-tools for its verdicts: node webmcp.mjs FOLDER [SEED], where FOLDER/node_modules/webmcp-evals is what its
// compiler makes of webmcp-evals/src, and the package.json beside that: no registry has the package.
//
// A row is {family, expectation: {expectedCall}, run: {calls}, verdict}. The verdict is that no step of the run failed.

import { Draw, TOOLS, fromFolder, seed, version, write } from './seeded.mjs';

const { evaluateExecutionTrajectory } = await fromFolder('webmcp-evals/dist/utils.js');

const draw = new Draw(seed(3));
const rows = [];

function add(family, expectedCall, calls, kind) {
  const executions = calls.map(({ name, arguments: args, ...rest }) => ({ functionName: name, args, ...rest }));
  const verdict = evaluateExecutionTrajectory(expectedCall, executions).every(({ outcome }) => outcome === 'pass');
  const row = { family, expectation: { expectedCall }, run: { calls }, verdict };
  rows.push(kind ? { ...row, kind } : row);
}

const call = (name, args = {}, result) => ({ name, arguments: args, ...(result === undefined ? {} : { result }) });
const step = (functionName, rest = {}) => ({ functionName, ...rest });
const named = (names) => names.map((name) => call(name));

/** The calls that a tree of steps asks for, in an order that it allows. */
function walk(node) {
  if (node.unordered) return draw.sample(node.unordered, node.unordered.length).flatMap(walk);
  if (node.ordered) return node.ordered.flatMap(walk);
  return node.optional && draw.chance(0.5) ? [] : [node.functionName];
}

// Plain lists.
for (let count = 0; count < 50; count++) {
  const names = draw.names(0, 6);
  add('list', draw.near(names).map((name) => step(name)), named(names));
}
for (const [expected, made] of [[null, []], [null, ['send_mail']], [[], []], [[], ['send_mail']], [[step('send_mail')], []]]) add('list', expected, named(made));
add('list', [step('search_web', { arguments: null })], [call('search_web', { a: 1 })]);
add('list', [step('search_web')], [call('Search_Web')]);
add('list', [step('search_*')], [call('search_*')]);

// Groups; a group in another one is made without calls of others in between.
function tree(depth, names) {
  const leaf = () => step(draw.one(names));
  if (depth === 0) return leaf();
  const kind = draw.one(['leaf', 'unordered', 'ordered', 'unordered']);
  return kind === 'leaf' ? leaf() : { [kind]: draw.many(1, depth === 2 ? 3 : 2, () => tree(depth - 1, names)) };
}
for (let count = 0; count < 140; count++) {
  const expected = draw.many(1, 3, () => tree(2, draw.sample(TOOLS, 4)));
  const names = expected.flatMap(walk);
  add('groups', expected, named(draw.chance(0.65) ? names : draw.near(names)));
}
const ordered = (...nodes) => ({ ordered: nodes });
const unordered = (...nodes) => ({ unordered: nodes });
const [a, b, c, d] = TOOLS.map((name) => step(name));
const runs = [TOOLS.slice(0, 4), [0, 2, 1, 3].map((place) => TOOLS[place]), [2, 3, 0, 1].map((place) => TOOLS[place]), [1, 0, 2, 3].map((place) => TOOLS[place])];
for (const run of runs) {
  add('groups', [unordered(ordered(a, b), ordered(c, d))], named(run));
  add('groups', [unordered(ordered(a, b), c, d)], named(run));
  add('groups', [unordered(unordered(a, b), unordered(c, d))], named(run));
  add('groups', [ordered(unordered(a, b), unordered(c, d))], named(run));
}
for (const group of [unordered(), ordered(), unordered(ordered()), ordered(unordered())]) {
  add('groups', [group], []);
  add('groups', [group, a], named(TOOLS.slice(0, 1)));
  add('groups', [group], named(TOOLS.slice(0, 1)));
}
add('groups', [unordered(a, a)], named([TOOLS[0], TOOLS[0]]));
add('groups', [unordered(a, a)], named([TOOLS[0]]));

// Optional calls.
for (let count = 0; count < 70; count++) {
  const names = draw.sample(TOOLS, 5);
  const expected = names.map((name) => step(name, draw.chance(0.4) ? { optional: true } : {}));
  const made = expected.flatMap(walk);
  add('optional', expected, named(draw.chance(0.7) ? made : draw.near(made)));
}
for (let count = 0; count < 40; count++) {
  const names = draw.sample(TOOLS, 3);
  const expected = [unordered(...names.map((name) => step(name, draw.chance(0.5) ? { optional: true } : {})))];
  const made = walk(expected[0]);
  add('optional', expected, named(draw.chance(0.7) ? made : draw.near(made)));
}

for (let count = 0; count < 70; count++) {
  const names = draw.sample(TOOLS, 3);
  const leaf = () => step(draw.one(names), draw.chance(0.4) ? { optional: true } : {});
  const expected = draw.many(1, 4, () => (draw.chance(0.6) ? leaf() : { [draw.one(['unordered', 'ordered'])]: draw.many(1, 3, leaf) }));
  const made = expected.flatMap(walk);
  add('optional again', expected, named(draw.chance(0.6) ? made : draw.near(made)));
}

// Arguments and results.
const CONSTRAINTS = [
  () => ({ $pattern: draw.one(['^R-\\d+$', 'shoe', '(?i)PARIS', '^$', 'o', '\\d', '^(Paris|Rome)$', 'R.17', 'e\\b', '(?<city>Par)is', '(?i)^r', '[^a-z]$', '(?s)d.s']) }),
  () => ({ $contains: draw.one(['shoe', 'P', '', 'red']) }),
  () => ({ [draw.one(['$gt', '$gte', '$lt', '$lte'])]: draw.one([0, 1, 2, 2.5, 40, -1]) }),
  () => ({ $gte: draw.one([0, 1, 2]), $lt: draw.one([2, 2.5, 40]) }),
  () => ({ $gt: draw.one([0, 1, 2]), $lte: draw.one([2, 2.5, 40]), $type: 'number' }),
  () => ({ $type: draw.one(['string', 'number', 'boolean', 'array', 'object', 'null']) }),
  () => ({ $any: draw.one([true, true, 1]) }),
];
const VALUES = ['Paris', 'paris', 'red shoe', '', 'R-17', 'd\ns', 0, 1, 2, 2.5, 40, -3, true, false, null, [], ['red'], [1, 2], {}, { city: 'Rome' }];
for (let count = 0; count < 210; count++) {
  const constraint = draw.one(CONSTRAINTS)();
  const kind = /pattern|contains/.test(Object.keys(constraint)[0]) ? 'string' : 'number';
  const value = draw.one(draw.chance(0.6) ? VALUES.filter((each) => typeof each === kind) : VALUES);
  const [expected, made] = draw.one([[constraint, value], [{ in: constraint }, { in: value, more: 1 }], [[constraint], [value]]]);
  if (draw.chance(0.8)) add('constraints', [step('search_web', { arguments: { value: expected } })], [call('search_web', draw.chance(0.95) ? { value: made, other: 1 } : {})]);
  else add('constraints', [step('search_web', { result: expected })], [call('search_web', {}, made)]);
}
for (let count = 0; count < 110; count++) {
  const args = draw.args(2);
  const nodes = [];
  const made = [];
  for (const name of draw.names(1, 3)) {
    const near = draw.nearValue(args);
    nodes.push(step(name, draw.chance(0.8) ? { arguments: args } : { result: args }));
    made.push(call(name, near && typeof near === 'object' && !Array.isArray(near) ? near : { ...args, page: 9 }, draw.chance(0.8) ? draw.nearValue(args) : undefined));
  }
  add('arguments', draw.chance(0.3) ? [unordered(...nodes)] : nodes, made);
}
const once = (expected, made) => add('arguments', [step('search_web', { arguments: expected })], [call('search_web', made)]);
for (const [expected, made] of [
  [{}, {}], [{}, { a: 1 }], [{}, []], [{ a: {} }, { a: {} }], [{ a: {} }, { a: { b: 1 } }], [{ a: {} }, { a: [] }], [{ a: {} }, { a: 'x' }], [{ a: {} }, { a: null }], [{ a: [] }, { a: {} }],
  [{ a: null }, {}], [{ a: null }, { a: null }], [{ a: 1 }, { a: 1.0 }], [{ a: 1 }, { a: '1' }], [{ a: 0 }, { a: false }], [{ a: [1] }, { a: [1, 2] }], [{ a: [{ b: 1 }] }, { a: [{ b: 1, c: 2 }] }],
  [{ a: [[{ b: { $gt: 0 } }]] }, { a: [[{ b: 1, c: 2 }]] }], [{ a: { $gt: 1, unit: 'm' } }, { a: { $gt: 1, unit: 'm' } }], [{ a: { $gt: 1, unit: 'm' } }, { a: { $gt: 2, unit: 'm' } }],
  [{ a: { $gt: 1, b: { $gt: 1 } } }, { a: { $gt: 1, b: 2, c: 3 } }], [{ a: { $gt: 1, b: { $gt: 1 } } }, { a: { $gt: 1, b: 1 } }], [{ a: { $gt: 1, b: { $gt: 1 } } }, { a: { b: 2 } }],
  [{ $any: true }, {}], [{ $any: true }, { a: 1 }], [{ $type: 'object' }, { a: 1 }], [{ $type: 'string' }, { a: 1 }], [{ a: { $any: true } }, {}], [{ a: { $any: true } }, { a: null }],
  [{ a: { $contains: 'x' } }, { a: ['x'] }], [{ a: { $pattern: 'a.c' } }, { a: 'a\nc' }], [{ a: { $pattern: '^b' } }, { a: 'a\nb' }], [{ a: { $pattern: '(?m)^b$' } }, { a: 'a\nb\nc' }],
  [{ a: { $pattern: 'caf\\u00e9' } }, { a: 'un café' }], [{ a: { $pattern: '/x\\/y/' } }, { a: '/x/y/' }], [{ a: { $pattern: 'a$' } }, { a: 'a\n' }], [{ a: { $gt: 1 } }, { a: '2' }], [{ a: { $gt: 1 } }, { a: true }],
]) once(expected, made);
add('arguments', [step('search_web', { result: null })], [call('search_web')]);
add('arguments', [step('search_web', { result: null })], [call('search_web', {}, null)]);
add('arguments', [step('search_web', { result: { $any: true } })], [call('search_web', {}, 0)]);
add('arguments', [step('search_web', { result: { $contains: 'ok' } })], [call('search_web', {}, 'it is ok')]);
const page = (number) => step('search_web', { arguments: { page: number } });
add('arguments', [unordered(page({ $any: true }), page(1))], [call('search_web', { page: 1 }), call('search_web', { page: 2 })]);
add('arguments', [unordered(page({ $gt: 0 }), page({ $gt: 1 }), page({ $gt: 2 }))], [3, 1, 2].map((number) => call('search_web', { page: number })));

// Where spanscore differs on purpose.
const optional = (node) => ({ ...node, optional: true });
const differs = (kind, expected, calls) => add('differs', expected, calls, kind);
differs('greedy', [optional(a), a], named([TOOLS[0]]));

differs('greedy', [optional(a), optional(b), a, b], named([TOOLS[0], TOOLS[1]]));
differs('optional in a group', [unordered(a, optional(b)), c], named([TOOLS[0], TOOLS[2]]));
differs('optional in a group', [unordered(optional(a), optional(b)), c, d], named([TOOLS[2], TOOLS[3]]));
differs('names as patterns', [step('search_*')], [call('search_web')]);
differs('names as patterns', [step('!search_web')], [call('lookup_order')]);
const pairs = TOOLS.slice(0, 5).map((name) => ordered(step(name), step('send_mail')));
const inPairs = TOOLS.slice(0, 5).flatMap((name) => [name, 'send_mail']);
add('groups', [unordered(...pairs)], named(inPairs));
add('groups', [unordered(...pairs)], named([...inPairs.slice(8), ...inPairs.slice(0, 8)]));
add('groups', [unordered(...pairs)], named(inPairs.slice(1)));
differs('mixed groups', [unordered(...pairs)], named([inPairs[0], inPairs[2], 'send_mail', 'send_mail', ...inPairs.slice(4)]));
differs('unknown constraint', [step('search_web', { arguments: { a: { $matches: 'x' } } })], [call('search_web', { a: 'y' })]);
differs('unknown constraint', [step('search_web', { arguments: { a: { $oneOf: [1, 2] } } })], [call('search_web', { a: 3 })]);
differs('unknown constraint', [step('search_web', { arguments: { a: { $type: 'integer' } } })], [call('search_web', { a: 3 })]);
differs('beyond RE2', [step('search_web', { arguments: { a: { $pattern: '^(?!x)' } } })], [call('search_web', { a: 'y' })]);
differs('beyond RE2', [step('search_web', { arguments: { a: { $pattern: '(a)\\1' } } })], [call('search_web', { a: 'aa' })]);

write('webmcp-tools', version('webmcp-evals'), rows);
