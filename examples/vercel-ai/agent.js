// A refund agent of the Vercel AI SDK: a person approves each refund. Its model is a script: put your own in its place.

import { OpenTelemetry } from '@ai-sdk/otel';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-proto';
import { detectResources, envDetector } from '@opentelemetry/resources';
import { BatchSpanProcessor, NodeTracerProvider } from '@opentelemetry/sdk-trace-node';
import { ToolLoopAgent, registerTelemetry, tool } from 'ai';
import { MockLanguageModelV4 } from 'ai/test';
import { z } from 'zod';

const provider = new NodeTracerProvider({
  resource: detectResources({ detectors: [envDetector] }), // OTEL_SERVICE_NAME, OTEL_RESOURCE_ATTRIBUTES
  spanProcessors: [new BatchSpanProcessor(new OTLPTraceExporter())],
});
provider.register();
registerTelemetry(new OpenTelemetry());

const lookUp = ['lookup_order', { order_id: 'A-1042' }];
const check = ['check_policy', { order_id: 'A-1042' }];
const good = [lookUp, check, ['issue_refund', { order_id: 'A-1042', amount: 40 }]];
const bad = [lookUp, ['issue_refund', { order_id: 'A-1042', amount: 400 }]];

// A model that asks for these calls, one after the other.
function scripted(calls) {
  const answers = calls.map(([toolName, input], number) => ({
    content: [{ type: 'tool-call', toolCallId: `call_${number}`, toolName, input: JSON.stringify(input) }],
    finishReason: { unified: 'tool-calls' },
  }));
  answers.push({ content: [{ type: 'text', text: 'Refunded.' }], finishReason: { unified: 'stop' } });
  const usage = { inputTokens: { total: 1 }, outputTokens: { total: 1 } };
  return new MockLanguageModelV4({ doGenerate: answers.map(answer => ({ ...answer, usage, warnings: [] })) });
}

const order = z.object({ order_id: z.string() });
const refund = order.extend({ amount: z.number() });
const tools = {
  lookup_order: tool({ inputSchema: order, execute: ({ order_id }) => ({ order_id, amount: 40 }) }),
  check_policy: tool({ inputSchema: order, execute: ({ order_id }) => ({ order_id, refundable: true }) }),
  issue_refund: tool({ inputSchema: refund, execute: ({ amount }) => `refunded ${amount}` }),
};

for (const calls of [good, bad]) {
  const agent = new ToolLoopAgent({
    model: scripted(calls),
    tools,
    toolApproval: { issue_refund: 'user-approval' },
    telemetry: { functionId: 'refund_agent' },
  });
  const messages = [{ role: 'user', content: 'My lamp, order A-1042, arrived broken.' }];
  let run = await agent.generate({ messages });
  let asked;
  while ((asked = run.content.filter(part => part.type === 'tool-approval-request')).length) {
    // The run pauses, and ends its trace.
    const approvals = asked.map(({ approvalId }) => ({ type: 'tool-approval-response', approvalId, approved: true }));
    messages.push(...run.responseMessages, { role: 'tool', content: approvals });
    run = await agent.generate({ messages });
  }
  console.log(run.text);
}
await provider.shutdown();
