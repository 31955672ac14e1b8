"""Scores the tool calls of LLM agents from their OpenTelemetry spans."""
