"""Keys of messages and envelopes around calls, which no mask may replace."""

from typing import Final

ENVELOPES: Final = frozenset(
    "arguments args input inputs kwargs output outputs parameters params result results tool_input".split()  # noqa: SIM905 - as a list it would be a page long
)
_KEYS_OF_MESSAGES: Final = frozenset(
    """
    action actions additional_kwargs additionalProperties agent agent_call agent_handoff agent_name agent_run agents
    allOf answer answers anyOf approval_request_id approvals approve approved args arguments block block_type blocks
    body cache_read cache_write call call_id call_tool callbacks callId calls chatId choices client_tool_call code
    completion completion_tokens config const content contents conversation_id conversationId data decision defs
    description dispatch_tool_call enum error error_code error_type errorType event events exception final_result
    finish_reason finish_type finishReason format function function_args function_call function_call_output
    function_call_result function_calls function_name function_tools functionCall functionResponse functions gen_ai
    generation generations goto group_id history id ids input input_schema input_str input_text input_tokens inputs
    inputSchema inputTokens interrupt interruptResponse is_error isError items json json_schema kind kwargs
    langgraph_node lc lc_agent_name llm_request maximum maxLength mcp__ mcp_server mcp_server_name mcp_tool
    mcp_tool_call mcp_tool_name message messages meta metadata minimum minLength model model_request_parameters
    model_step name names oneOf operation options origin outcome output output_tokens output_tools output_truncated
    outputs outputTokens parameters parameters_json_schema params part part_kind parts pattern pending_span
    preToolUse prompt prompt_tokens properties provider provider_tool_call raw_output reason ref replies request
    request_data required response response_data responseParts responses result results resultType resume resumeData
    role schedule_tool_calls schema server_label server_name server_tool_call server_tool_call_response service
    session session_id sessionId signature span span_type state status stop_reason structuredContent subagent_type
    success suspended system system_instruction systemInstruction target text thread thread_id threadId tokens tool
    tool_arguments tool_call tool_call_id tool_call_response tool_call_result tool_calls tool_decision tool_deferred
    tool_failure_detected tool_id tool_input tool_kwargs tool_name tool_namespace tool_output tool_parameters
    tool_request tool_response tool_result tool_use tool_use_id toolCall toolCallId toolCalls toolInput toolName
    toolRequest toolRequests toolResponse toolResult tools toolUse toolUseId type update usage user_prompt value
    values version workflow
    """.split()  # noqa: SIM905 - as above
)
"""The keys around calls in messages of models, and of JSON Schema."""
AROUND: Final = _KEYS_OF_MESSAGES | ENVELOPES
