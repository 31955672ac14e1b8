// Asks Mastra's code scorers for their scores: node mastra.mjs FOLDER [SEED], where FOLDER/node_modules has @mastra/evals.
//
// A row is {family, expectation: {scorer, options, at_least, from}, run: {steps, totalDurationMs}, verdict, value}. The
// verdict is that the score is at least `at_least`; null where the scorer refuses to judge. Runs `from: messages` go
// through Mastra's own reading of an agent's messages, those `from: trace` are trajectories as its traces become.

import { Draw, TOOLS, fromFolder, seed, version, write } from './seeded.mjs';

const scorers = await fromFolder('@mastra/evals/dist/scorers/prebuilt/index.js');
const { extractTrajectory } = await fromFolder('@mastra/core/dist/evals/index.js');

const draw = new Draw(seed(1102));
const rows = [];
const INPUT = { inputMessages: [{ id: 'u', role: 'user', createdAt: new Date(0), content: { format: 2, parts: [] } }] };

function messages(run) {
  const parts = run.steps.map((step, index) => {
    const told = { toolCallId: `c${index}`, toolName: step.name, args: step.toolArgs };
    const end = step.success ? { state: 'result', result: step.toolResult } : { state: 'output-error', errorText: 'failed' };
    return { type: 'tool-invocation', toolInvocation: { ...told, ...end } };
  });
  return [{ id: 'a', role: 'assistant', createdAt: new Date(0), content: { format: 2, parts } }];
}

const SCORERS = {
  trajectory: ({ expectation, weights }) => scorers.createTrajectoryScorerCode({ defaults: expectation, weights }),
  accuracy: ({ steps, ...comparisonOptions }) =>
    scorers.createTrajectoryAccuracyScorerCode({ expectedTrajectory: steps, comparisonOptions }),
  'tool-call-accuracy': (options) => scorers.createToolCallAccuracyScorerCode(options),
  check: ({ check, args }) => scorers.checks[check](...args),
};

async function add(family, scorer, options, run, { at_least = 1, from = 'messages', kind } = {}) {
  const isOfTrajectory = scorer === 'trajectory' || scorer === 'accuracy';
  const told = from === 'messages' ? messages(run) : null;
  const output = !isOfTrajectory ? told : told ? extractTrajectory(told) : run;
  let value = null;
  try {
    value = (await SCORERS[scorer](options).run({ input: INPUT, output, expectedTrajectory: options.item })).score;
  } catch (error) {
    if (!/budget/.test(String(error?.message) + String(error?.cause?.message))) throw error;
  }
  const row = { family, expectation: { scorer, options, at_least, from }, run, verdict: value === null ? null : value >= at_least, value };
  rows.push(kind ? { ...row, kind } : row);
}

const call = (name, toolArgs = {}, success = true, toolResult = { ok: 1 }) => ({
  stepType: 'tool_call', name, toolArgs, ...(success ? { toolResult } : {}), success,
});
const calls = (names) => ({ steps: names.map((name) => call(name)) });
const steps = (names) => names.map((name) => ({ name }));
const trajectory = (family, expectation, run, how) => add(family, 'trajectory', { expectation }, run, how);
const ORDERINGS = ['strict', 'relaxed', 'unordered'];

// Names in an order, and by which share they were matched.
for (let count = 0; count < 150; count++) {
  const names = draw.names(0, 7);
  const expected = draw.near(names);
  const ordering = draw.one(ORDERINGS);
  const at_least = ordering === 'strict' ? 1 : draw.one([1, 1, 0.5, 0.75]);
  const options = { steps: steps(expected), ordering };
  if (draw.chance(0.25)) options.allowRepeatedSteps = draw.chance(0.3);
  if (options.allowRepeatedSteps === false) await add('accuracy', 'accuracy', options, calls(names));
  else await add('accuracy', 'accuracy', options, calls(names), { at_least });
}
for (const ordering of [...ORDERINGS, undefined]) {
  for (const [expected, made] of [[[], []], [[], ['search_web']], [['search_web'], []], [['search_web'], ['search_web', 'search_web']],
    [['search_web', 'search_web'], ['search_web']], [['search_web', 'lookup_order'], ['lookup_order', 'search_web']]]) {
    await add('accuracy', 'accuracy', { steps: steps(expected), ordering }, calls(made));
    await trajectory('trajectory', { steps: steps(expected), ordering }, calls(made));
  }
}

// Arguments, results and failures of steps.
function expectedStep(step) {
  const expected = { name: step.name };
  if (draw.chance(0.85)) expected.stepType = 'tool_call';
  if (draw.chance(0.6)) expected.toolArgs = draw.chance(0.75) ? step.toolArgs : draw.args(2);
  if (draw.chance(0.2)) expected.toolResult = draw.chance(0.75) ? (step.toolResult ?? { ok: 1 }) : { ok: 2 };
  if (draw.chance(0.3)) expected.success = draw.chance(0.75) ? step.success : !step.success;
  return expected;
}
const drawn = (low, high) => draw.names(low, high).map((name) => call(name, draw.args(2), draw.chance(0.85), draw.one([{ ok: 1 }, { id: 'R-17', items: [1, { a: null }] }])));
for (let count = 0; count < 150; count++) {
  const made = drawn(1, 5);
  const expected = draw.sample(made.map(expectedStep), made.length);
  const inOrder = draw.chance(0.7) ? made.map(expectedStep) : expected;
  await add('steps', 'accuracy', { steps: inOrder, ordering: draw.one(ORDERINGS) }, { steps: made });
}
const edges = [
  [{}, {}], [{}, { a: 1 }], [{ a: 1 }, {}], [{ a: 1 }, { a: 1.0 }], [{ a: 1 }, { a: '1' }], [{ a: null }, {}], [{ a: null }, { a: null }], [{ a: true }, { a: 1 }],
  [{ a: [1, 2] }, { a: [2, 1] }], [{ a: { b: [] } }, { a: { b: [] } }], [{ a: { b: 1 } }, { a: { b: 1, c: 2 } }], [{ a: '' }, { a: null }],
  [{ $any: true }, { $any: true }], [{ $any: true }, { a: 1 }], [{ a: { $gt: 1 } }, { a: { $gt: 1 } }], [{ a: { $gt: 1 } }, { a: 2 }],
];
for (const [wanted, made] of edges) {
  await add('steps', 'accuracy', { steps: [{ name: 'search_web', stepType: 'tool_call', toolArgs: wanted }] }, { steps: [call('search_web', made)] });
  await add('steps', 'accuracy', { steps: [{ name: 'search_web', stepType: 'tool_call', toolResult: wanted }] }, { steps: [call('search_web', {}, true, made)] });
  await add('steps', 'accuracy', { steps: [{ name: 'search_web', toolArgs: wanted }] }, { steps: [call('search_web', made)] });
}

// What must not be called, alone or one after the other.
for (let count = 0; count < 60; count++) {
  const names = draw.names(0, 7);
  const expectation = {};
  if (draw.chance(0.6)) expectation.blacklistedTools = draw.sample(TOOLS, draw.whole(0, 3));
  if (draw.chance(0.7)) expectation.blacklistedSequences = draw.many(1, 3, () => draw.many(0, 3, () => draw.one(TOOLS)));
  if (draw.chance(0.3)) expectation.steps = steps(draw.near(names));
  await trajectory('blacklist', expectation, calls(names));
}
const tools = ['search_web', 'lookup_order'];
await trajectory('blacklist', { blacklistedSequences: [['search_web', 'search_web']] }, calls(['search_web', 'lookup_order', 'search_web']));
await trajectory('blacklist', { blacklistedSequences: [['search_web', 'search_web']] }, calls(['search_web', 'search_web']));
await trajectory('blacklist', { blacklistedSequences: [tools, ['search_web']] }, calls(['search_web']));
await trajectory('blacklist', { blacklistedTools: [], blacklistedSequences: [[]] }, calls(tools));

// Retries: one right after another, as that is all that Mastra takes for a retry.
for (let count = 0; count < 60; count++) {
  const groups = draw.many(1, 3, (index) => Array.from({ length: draw.whole(1, 5) }, () => call(TOOLS[index], { page: draw.whole(0, 99) }, draw.chance(0.35))));
  const expectation = draw.chance(0.8) ? { maxRetriesPerTool: draw.whole(0, 4) } : {};
  await trajectory('retries', expectation, { steps: groups.flat() });
}

// Redundant calls and budgets.
for (let count = 0; count < 60; count++) {
  const names = draw.names(0, 6);
  const made = names.map((name) => call(name, draw.one([{}, { page: 1 }, { page: 2 }, { page: 1, tags: ['a'] }])));
  const expectation = draw.one([{ noRedundantCalls: true }, { noRedundantCalls: false }, { maxSteps: draw.whole(0, 7) }, { maxSteps: draw.whole(1, 7), noRedundantCalls: false }]);
  await trajectory('efficiency', expectation, { steps: made });
}
const model = (promptTokens, completionTokens) => ({ stepType: 'model_generation', name: 'gpt-4o', promptTokens, completionTokens, durationMs: 100 });
for (let count = 0; count < 60; count++) {
  const made = draw.names(0, 5).flatMap((name) => [model(draw.whole(10, 90), draw.whole(1, 20)), { ...call(name, { page: draw.whole(0, 999) }), durationMs: draw.whole(5, 300) }]);
  made.push(model(draw.whole(10, 90), draw.whole(1, 20)));
  const expectation = { noRedundantCalls: false };
  if (draw.chance(0.5)) expectation.maxTotalTokens = draw.whole(0, 500);
  if (draw.chance(0.5)) expectation.maxTotalDurationMs = draw.whole(0, 2000);
  if (draw.chance(0.5)) expectation.maxSteps = draw.whole(1, 10);
  const names = draw.near(made.filter((step) => step.stepType === 'tool_call').map((step) => step.name));
  if (names.length && draw.chance(0.4)) expectation.steps = steps(names);
  await trajectory('budgets', expectation, { steps: made, totalDurationMs: draw.whole(0, 2000) }, { from: 'trace' });
}
const timed = (...durations) => ({ steps: durations.map((durationMs, index) => ({ ...call(TOOLS[index]), durationMs })) });
await trajectory('budgets', { maxTotalDurationMs: 300, noRedundantCalls: false }, { ...timed(100, 200), totalDurationMs: 300 }, { from: 'trace' });
await trajectory('budgets', { maxTotalDurationMs: 250, noRedundantCalls: false }, { ...timed(100, 200), totalDurationMs: 300 }, { from: 'trace' });
await trajectory('budgets', { maxTotalDurationMs: 300 }, { steps: [call('search_web')] }, { from: 'trace' });
await trajectory('budgets', { maxTotalTokens: 300 }, calls(tools));
await trajectory('budgets', { maxTotalTokens: 300 }, { steps: [{ stepType: 'model_generation', name: 'gpt-4o', promptTokens: 5 }, call('search_web')] }, { from: 'trace' });

// All of it at once, with weights: what weighs nothing does not count, but for what is blacklisted.
for (let count = 0; count < 90; count++) {
  const made = draw.names(1, 6).map((name) => call(name, draw.one([{}, { page: 1 }]), draw.chance(0.9)));
  const expectation = { steps: steps(draw.chance(0.6) ? made.map((step) => step.name) : draw.near(made.map((step) => step.name))), ordering: draw.one(ORDERINGS) };
  if (draw.chance(0.5)) expectation.maxSteps = draw.whole(1, 7);
  if (draw.chance(0.4)) expectation.noRedundantCalls = draw.chance(0.6);
  if (draw.chance(0.4)) expectation.blacklistedTools = draw.sample(TOOLS, 1);
  if (draw.chance(0.3)) expectation.blacklistedSequences = [draw.sample(TOOLS, 2)];
  if (draw.chance(0.3)) expectation.allowRepeatedSteps = false;
  const weights = draw.chance(0.4) ? { accuracy: draw.one([0, 1]), efficiency: draw.one([0, 0.5]) } : undefined;
  await add('everything', 'trajectory', { expectation, weights }, { steps: made });
}

// What the item of a data set says goes before what the scorer was made with.
for (let count = 0; count < 30; count++) {
  const names = draw.names(1, 5);
  const expectation = { steps: steps(names), ordering: draw.one(ORDERINGS), maxSteps: draw.whole(1, 6), noRedundantCalls: draw.chance(0.5) };
  const item = draw.one([{ steps: steps(draw.near(names)) }, { ordering: 'strict' }, { maxSteps: 6 }, { noRedundantCalls: false }, { blacklistedTools: draw.sample(TOOLS, 2) }, {}]);
  await add('items', 'trajectory', { expectation, item }, calls(draw.chance(0.5) ? names : draw.near(names)));
}

// Tools of MCP servers.
const mcp = (name, toolArgs, mcpServer = 'shop') => ({ ...call(name, toolArgs), stepType: 'mcp_tool_call', mcpServer });
for (let count = 0; count < 20; count++) {
  const made = draw.names(1, 3).map((name) => mcp(name, draw.args(1)));
  const expected = made.map(({ name, toolArgs }) => ({ name, stepType: 'mcp_tool_call', mcpServer: 'shop', toolArgs: draw.chance(0.7) ? toolArgs : draw.args(1) }));
  await add('steps', 'accuracy', { steps: expected, ordering: draw.one(ORDERINGS) }, { steps: made }, { from: 'trace' });
}

// Agents inside a run.
const agent = (name, children) => ({ stepType: 'agent_run', name, children });
for (let count = 0; count < 100; count++) {
  const within = draw.names(1, 4).map((name) => call(name, { page: draw.whole(0, 99) }));
  const deeper = draw.chance(0.25) ? [agent('reader', draw.names(1, 2).map((name) => call(name)))] : [];
  const outer = draw.names(0, 2).map((name) => call(name));
  const made = [...outer, agent('research', [...within, ...deeper]), ...(draw.chance(0.5) ? [call('send_mail')] : [])];
  const children = { steps: steps(draw.chance(0.6) ? within.map((step) => step.name) : draw.near(within.map((step) => step.name))), ordering: draw.one([...ORDERINGS, undefined]) };
  if (deeper.length) {
    children.steps.push({ name: 'reader', stepType: 'agent_run', children: { steps: steps(draw.near(deeper[0].children.map((step) => step.name))) } });
  }
  if (draw.chance(0.3)) children.blacklistedTools = draw.sample(TOOLS, 1);
  if (draw.chance(0.3) && !deeper.length) children.maxSteps = draw.whole(1, 4);
  if (draw.chance(0.2) && !deeper.length) children.blacklistedSequences = [draw.sample(TOOLS, 2)];
  const expected = made.map((step) => step.stepType === 'agent_run' ? { name: step.name, stepType: 'agent_run', children } : { name: step.name });
  const changed = draw.chance(0.75) ? expected : draw.sample(expected, expected.length);
  await trajectory('nested', { steps: changed, ordering: draw.one(ORDERINGS) }, { steps: made }, { from: 'trace' });
}
await trajectory('nested', { steps: [{ name: 'research', stepType: 'agent_run' }] }, { steps: [agent('research', [call('search_web')])] }, { from: 'trace' });
await trajectory('nested', { steps: [{ name: 'research', stepType: 'agent_run' }] }, { steps: [agent('writer', [call('search_web')])] }, { from: 'trace' });
await trajectory('nested', { steps: [{ name: 'research', stepType: 'agent_run', children: { steps: [] } }] }, { steps: [agent('research', [call('search_web')])] }, { from: 'trace' });

// One tool, or an order of tools.
for (let count = 0; count < 60; count++) {
  const names = draw.names(0, 6);
  const options = draw.chance(0.5) ? { expectedTool: draw.one([...names, draw.one(TOOLS)]) } : { expectedToolOrder: draw.near(draw.chance(0.7) ? [...new Set(names)] : names.slice(0, 3)) };
  if (draw.chance(0.4)) options.strictMode = true;
  await add('tool-call-accuracy', 'tool-call-accuracy', options, calls(names));
}

// The quick checks.
const check = (family, name, args, run) => add(family, 'check', { check: name, args }, run);
for (let count = 0; count < 70; count++) {
  const names = draw.names(0, 6);
  const run = { steps: names.map((name) => call(name, {}, draw.chance(0.9))) };
  const [name, args] = draw.one([
    ['calledTool', [draw.one(TOOLS)]], ['calledTool', [draw.one(TOOLS), { times: draw.whole(0, 3) }]], ['didNotCall', [draw.one(TOOLS)]],
    ['toolOrder', [draw.near(names).slice(0, 4)]], ['maxToolCalls', [draw.whole(0, 6)]], ['usedNoTools', []], ['noToolErrors', []],
  ]);
  await check('checks', name, args, run);
}
for (const result of [{ error: 'declined' }, { error: null }, { error: '' }, { error: false }, { error: { code: 4 } }, { ok: 1 }, 'error', ['error'], { nested: { error: 'x' } }]) {
  await check('checks', 'noToolErrors', [], { steps: [call('search_web', {}, true, result)] });
}
await check('checks', 'noToolErrors', [], calls([]));

// Where spanscore differs on purpose.
const differs = (kind, expectation, run, how) => trajectory('differs', expectation, run, { ...how, kind });
const specific = [{ name: 'search_web' }, { name: 'search_web', stepType: 'tool_call', toolArgs: { page: 1 } }];
await differs('greedy', { steps: specific, ordering: 'unordered' }, { steps: [call('search_web', { page: 1 }), call('search_web', { page: 2 })] });
await add('differs', 'accuracy', { steps: steps(['send_mail', 'search_web', 'lookup_order']) }, calls(['search_web', 'lookup_order', 'send_mail']), { at_least: 0.5, kind: 'greedy' });
const expectedArgs = { steps: [{ name: 'search_web', stepType: 'tool_call', toolArgs: { a: 1, b: 2 } }] };
await differs('order of keys', expectedArgs, { steps: [call('search_web', { b: 2, a: 1 })] });
await differs('order of keys', { noRedundantCalls: true }, { steps: [call('search_web', { b: 2, a: 1 }), call('search_web', { a: 1, b: 2 })] });
await differs('retries elsewhere', { maxRetriesPerTool: 1 }, { steps: [1, 2, 3].flatMap((page) => [call('search_web', { page }, false), call('lookup_order', { page })]) });
await differs('retries elsewhere', { maxRetriesPerTool: 1 }, { steps: ['search_web', 'search_web', 'lookup_order', 'search_web', 'search_web'].map((name, page) => call(name, { page }, name !== 'search_web')) });
await differs('model calls between', { noRedundantCalls: true }, { steps: [call('search_web'), model(1, 1), call('search_web')] }, { from: 'trace' });
await differs('model calls between', { blacklistedSequences: [tools] }, { steps: [call('search_web'), model(1, 1), call('lookup_order')] }, { from: 'trace' });
await differs('model calls between', { steps: steps(tools), ordering: 'strict' }, { steps: [call('search_web'), model(1, 1), call('lookup_order')] }, { from: 'trace' });
await differs('model calls between', { blacklistedTools: ['gpt-4o'] }, { steps: [model(1, 1), call('lookup_order')] }, { from: 'trace' });
await differs('model calls between', { steps: [] }, { steps: [model(1, 1)] }, { from: 'trace' });
await differs('kinds of tools', { steps: [{ name: 'search_web', stepType: 'mcp_tool_call' }] }, calls(['search_web']));
await differs('other steps', { steps: [{ name: 'gpt-4o', stepType: 'model_generation', modelId: 'gpt-4o' }] }, { steps: [{ ...model(1, 1), modelId: 'gpt-4o' }] }, { from: 'trace' });
await differs('other steps', { steps: [{ name: 'gpt-4o' }, { name: 'search_web' }] }, { steps: [model(1, 1), call('search_web')] }, { from: 'trace' });
await differs('other steps', { steps: [{ name: 'charge', stepType: 'workflow_step', status: 'success' }] }, { steps: [{ stepType: 'workflow_step', name: 'charge', stepId: 'charge', status: 'success' }] }, { from: 'trace' });
await differs('other steps', { steps: [{ name: 'charge' }] }, { steps: [{ stepType: 'workflow_step', name: 'charge', stepId: 'charge', status: 'success' }] }, { from: 'trace' });
await add('differs', 'accuracy', { steps: [{ name: 'search_web', stepType: 'mcp_tool_call', mcpServer: 'shop' }] }, { steps: [mcp('search_web', {}, 'other')] }, { from: 'trace', kind: 'kinds of tools' });
await differs('no arguments', { steps: [{ name: 'search_web', stepType: 'tool_call', toolArgs: {} }] }, { steps: [{ stepType: 'tool_call', name: 'search_web', toolResult: {}, success: true }] });
await differs('averages', { steps: steps(tools), maxSteps: 1 }, calls(tools), { at_least: 0.5 });
await differs('averages', { steps: steps(tools), noRedundantCalls: true }, calls(['search_web', 'search_web', 'lookup_order']), { at_least: 0.9 });
await differs('rounding', { steps: steps([...Array(300).keys()].map((number) => `tool_${number}`)) }, calls([...Array(299).keys()].map((number) => `tool_${number}`)));
await differs('rounding', { maxTotalDurationMs: 299.5, noRedundantCalls: false }, { ...timed(100, 200), totalDurationMs: 300 }, { from: 'trace' });
await differs('agents without calls', { steps: [{ name: 'research', stepType: 'agent_run' }] }, { steps: [agent('research', [])] }, { from: 'trace' });
await differs('limits below an agent', { blacklistedTools: ['send_mail'] }, { steps: [agent('research', [call('send_mail')])] }, { from: 'trace' });
await differs('limits below an agent', { maxRetriesPerTool: 0 }, { steps: [agent('research', [call('send_mail', { a: 1 }, false), call('send_mail')])] }, { from: 'trace' });

write('@mastra/evals', version('@mastra/evals'), rows);
