package openai

import (
	"fmt"
	"regexp"
)

// profiles are the emulated services. Each names the sources of its rules: a page of the service's
// documentation, a source file of the server, or a thread in an issue tracker. "assumed" means that
// no source was found; internal/emulator/SERVICES.md lists those rules.
var profiles = []Profile{
	{
		Name: "openai", URL: "https://api.openai.com/v1", Model: "gpt-4.1",
		// assumed: unknown fields are refused in messages as they are in requests.
		unknownField: Error{Status: 400, Code: "unknown_parameter", Message: "Unknown parameter: 'messages[{i}].{field}'."},
		// openclaw PR 875: at most 40 characters.
		CallIDPattern: regexp.MustCompile(`^.{1,40}$`),
		badCallID:     Error{Status: 400, Code: "string_above_max_length", Message: "Invalid 'messages[{i}].tool_calls[{j}].id': string too long. Expected a string with maximum length 40, but got a string with length {length} instead."},
		// platform.openai.com/docs/guides/error-codes; the text is as quoted in many issues.
		overflow: Error{Status: 400, Code: "context_length_exceeded", Message: "This model's maximum context length is {max} tokens. However, your messages resulted in {n} tokens. Please reduce the length of the messages."},
	},
	{
		// litellm PR 34569, livekit PR 7169: Chat Completions refuses tools, whatever the effort.
		Name: "openai-responses", URL: "https://api.openai.com/v1", Model: "gpt-5.6-sol", ResponsesOnly: true,
		efforts: []string{"low", "medium", "high"}, // codex #6647, of gpt-5.1-codex
	},
	{
		Name: "groq", URL: "https://api.groq.com/openai/v1", Model: "openai/gpt-oss-120b",
		// console.groq.com/docs/reasoning: parsed reasoning is in "reasoning"; jan #8136 and
		// hermes #11089: reasoning_content is refused.
		Reasoning: reasoningText, extraFields: []string{"reasoning"},
		unknownField: Error{Status: 400, Message: "'messages.{i}' : for 'role:assistant' the following must be satisfied[('messages.{i}' : property '{field}' is unsupported)]"},
		// opencode #1018
		encodeStreamError: groqStreamError,
		overflow:          Error{Status: 400, Code: "context_length_exceeded", Message: "Please reduce the length of the messages or completion."}, // OpenHands #1902
		// OpenHands #4643, gptme PR 896: content of text models is a string.
		NoPictures: Error{Status: 400, Message: "'messages.{i}' : for 'role:user' the following must be satisfied[('messages.{i}.content' : value must be a string)]"},
		ModelEntry: `"context_window":{context},"max_completion_tokens":65536,"active":true`, // console.groq.com/docs/api-reference#models-list
	},
	{
		Name: "mistral", URL: "https://api.mistral.ai/v1", Model: "magistral-medium-2509",
		// litellm #16272: content as parts; crush #1590, litellm #30835: 422 for unknown fields.
		Reasoning: reasoningParts, encodeError: flatError,
		unknownField: Error{Status: 422, Message: `{"detail":[{"type":"extra_forbidden","loc":["body","messages",{i},"assistant","{field}"],"msg":"Extra inputs are not permitted","input":""}]}`},
		// opencode #1680
		CallIDPattern: regexp.MustCompile(`^[a-zA-Z0-9]{9}$`),
		badCallID:     Error{Status: 400, Type: "invalid_function_call", Code: "3280", Message: "Tool call id was {id} but must be a-z, A-Z, 0-9, with a length of 9."},
		makeCallID:    func(seq, n int, _ string) string { return fmt.Sprintf("m%04d%04d", seq%10000, n) },
		// litellm #17761, avante PR 2695
		userAfterTool: Error{Status: 400, Type: "invalid_request_message_order", Code: "3230", Message: "Unexpected role 'user' after role 'tool'"},
		overflow:      Error{Status: 400, Code: "3051", Message: "Prompt contains {n} tokens and 0 draft tokens, too large for model with {max} maximum context length"}, // assumed: the wording
		// docs.mistral.ai/api: the list says what a model can do.
		ModelEntry: `"max_context_length":{context},"capabilities":{"completion_chat":true,"function_calling":true,"vision":true,"reasoning":true}`,
	},
	{
		Name: "deepseek", URL: "https://api.deepseek.com/v1", Model: "deepseek-v4-pro",
		// api-docs.deepseek.com/guides/thinking_mode; the wording is as in hermes PR 15228.
		Reasoning: reasoningContent, extraFields: []string{"reasoning_content"}, RequiredReasoning: ScopeAll,
		missingReasoning: Error{Status: 400, Code: "invalid_request_error", Message: "The `reasoning_content` in the thinking mode must be passed back to the API."},
		// LobsterAI #60, jcode #310
		overflow:   Error{Status: 400, Code: "invalid_request_error", Message: "This model's maximum context length is {max} tokens. However, you requested {n} tokens ({n} in the messages, 0 in the completion). Please reduce the length of the messages or completion."},
		NoPictures: Error{Status: 400, Code: "invalid_request_error", Message: "Failed to deserialize the JSON body into the target type: messages[{i}]: unknown variant `image_url`, expected `text`"},
	},
	{
		Name: "kimi", URL: "https://api.moonshot.ai/v1", Model: "kimi-k2.6",
		// mastra #12592, opencode #10996
		Reasoning: reasoningContent, extraFields: []string{"reasoning_content"}, RequiredReasoning: ScopeAll,
		missingReasoning: Error{Status: 400, Message: "thinking is enabled but reasoning_content is missing in assistant tool call message at index {i}"},
		fixedTemperature: 1, // hermes #12404
		// These are the ids of Kimi K2's own tool calls (tool_call_guidance in its model card).
		makeCallID: func(seq, n int, name string) string { return fmt.Sprintf("functions.%s:%d", name, seq*10+n) },
		// kimi-cli PR 2030, kimi-code #2661
		schemaError: kimiSchemaError,
		badSchema:   Error{Status: 400, Message: "Invalid request: tools.function.parameters is not a valid moonshot flavored json schema, details: <{problem}>"},
		overflow:    Error{Status: 400, Message: "Invalid request: Your request exceeded model token limit: {max}"}, // assumed: the wording
		ModelEntry:  `"context_length":{context},"supports_image_in":true,"supports_reasoning":true`,                // assumed: the names
	},
	{
		Name: "openrouter-gemini", URL: "https://openrouter.ai/api/v1", Model: "google/gemini-3-pro-preview",
		// MassGen #624, agent-framework #2947: the provider's text is part of the message. Errors of
		// OpenRouter itself, such as that for a long prompt: openrouter.ai/docs/api-reference/errors.
		Reasoning: reasoningDetails, extraFields: []string{"reasoning", "reasoning_details"}, RequiredReasoning: scopeTurn, encodeError: openRouterError,
		missingReasoning: Error{Status: 400, Message: "Gemini models require OpenRouter reasoning details to be preserved in each request. Upstream error: Function call is missing a thought_signature in functionCall parts. Function call `default_api:{name}`, position {i}."},
		// openrouter.ai/docs/api-reference/streaming: comments, and errors in a chunk.
		streamComments: true, encodeStreamError: openRouterStreamError,
		overflow:   Error{Status: 400, Type: "openrouter", Message: "This endpoint's maximum context length is {max} tokens. However, you requested about {n} tokens. Please reduce the length of either one."},
		makeCallID: func(seq, n int, name string) string { return fmt.Sprintf("tool_%d_%s_%d", n, name, seq) }, // assumed
		// openrouter.ai/docs/api-reference/list-available-models
		ModelEntry: `"context_length":{context},"architecture":{"input_modalities":["text","image","file","audio"],"output_modalities":["text"]},` +
			`"top_provider":{"context_length":{context},"max_completion_tokens":65536},"pricing":{"prompt":"0.000002","input_cache_read":"0.0000002"},` +
			`"supported_parameters":["include_reasoning","reasoning","tools"]`,
	},
	{
		Name: "gemini", URL: "https://generativelanguage.googleapis.com/v1beta/openai", Model: "gemini-3-pro-preview",
		// ai.google.dev/gemini-api/docs/thought-signatures
		Reasoning: ReasoningSigned, extraFields: []string{"extra_content"}, RequiredReasoning: scopeTurn, encodeError: errorList,
		reasoningInTotal: true,                                                                           // Clarifai PR 978
		badKey:           Error{Status: 400, Message: "API key not valid. Please pass a valid API key."}, // continue #10290
		missingReasoning: Error{Status: 400, Message: "Function call is missing a thought_signature in functionCall parts. This is required for tools to work correctly. Additional data, function call `default_api:{name}`, position {i}."},
		// free-claude-code #542: the array, and the wording for fields of the request; assumed:
		// the same wording for fields of messages.
		unknownField: Error{Status: 400, Message: `Invalid JSON payload received. Unknown name "{field}" at 'messages[{i}]': Cannot find field.`},
		// Kilocode PR 11955
		undefinedRequired: Error{Status: 400, Message: "* GenerateContentRequest.tools[0].function_declarations[{i}].{path}: property is not defined"},
		// gemini-cli #13326, voocel/litellm #9
		schemaError: geminiSchemaError,
		badSchema:   Error{Status: 400, Message: "* GenerateContentRequest.tools[0].function_declarations[{i}].{problem}"},
		// assumed: the wording of the native API.
		overflow: Error{Status: 400, Message: "The input token count ({n}) exceeds the maximum number of tokens allowed ({max})."},
		// open-webui/computer #224: calls have no index, and their finish reason is that of a text.
		makeCallID: func(seq, n int, _ string) string { return fmt.Sprintf("function-call-%d", seq*100+n) }, noCallIndex: true,
		// ai.google.dev/api/models, ai.google.dev/gemini-api/docs/api-key
		pageKey: "X-Goog-Api-Key",
		Pages:   map[string]string{"/v1beta/models/{model}": `{"name":"models/{model}","displayName":"Gemini","inputTokenLimit":{context},"outputTokenLimit":65536,"thinking":true,"supportedGenerationMethods":["generateContent","createCachedContent"]}`},
	},
	{
		Name: "anthropic", URL: "https://api.anthropic.com/v1", Model: "claude-sonnet-4-5",
		// platform.claude.com/docs/en/api/openai-sdk: unknown fields are ignored.
		// opencode #1279: the permitted characters of ids, which must be unique.
		CallIDPattern:   regexp.MustCompile(`^[a-zA-Z0-9_-]+$`),
		badCallID:       Error{Status: 400, Code: "invalid_request_error", Message: "messages.{i}.content.{j}.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'"},
		DuplicateCallID: Error{Status: 400, Code: "invalid_request_error", Message: "messages.{i}.content.{j}: `tool_use` ids must be unique"},
		// twilio-labs/mcp #56, kintone/mcp-server #547
		schemaError: ClaudeSchemaError,
		badSchema:   Error{Status: 400, Code: "invalid_request_error", Message: "tools.{i}.custom.{problem}"},
		makeCallID:  func(seq, n int, _ string) string { return fmt.Sprintf("toolu_%02d%022d", seq, n) },
		// platform.claude.com/docs/en/api/errors: errors in streams, and for a long prompt.
		encodeStreamError: anthropicStreamError,
		overflow:          Error{Status: 400, Code: "invalid_request_error", Message: "prompt is too long: {n} tokens > {max} maximum"},
	},
	{
		Name: "ollama", URL: "http://localhost:11434/v1", Model: "qwen3:8b",
		// ollama/openai/openai.go: it sends reasoning, and ignores unknown fields;
		// docs.ollama.com/context-length: a long prompt is truncated.
		Reasoning: reasoningText, Truncates: true, encodeStreamError: plainStreamError,
		makeCallID: func(seq, n int, _ string) string { return fmt.Sprintf("call_%04x%04x", seq, n) },
		NoPictures: Error{Status: 400, Message: "this model does not support image input"}, // ollama #17301
		// docs.ollama.com/api: show and ps.
		Pages: map[string]string{
			"/api/show": `{"capabilities":["completion","tools","thinking"],"model_info":{"general.architecture":"qwen3","qwen3.context_length":40960}}`,
			"/api/ps":   `{"models":[{"name":"{model}","model":"{model}","context_length":{context}}]}`,
		},
	},
	{
		Name: "lmstudio", URL: "http://localhost:1234/v1", Model: "qwen/qwen3-vl-8b",
		// lmstudio-bug-tracker #2322: errors are sent in a stream with the status 200; #237 and
		// #546: the wording for a long prompt.
		Reasoning: reasoningContent, encodeError: textError, encodeStreamError: lmStudioStreamError, overflowInStream: true,
		makeCallID: func(seq, n int, _ string) string { return fmt.Sprintf("%09d", seq*100+n) },
		overflow:   Error{Status: 400, Message: "Trying to keep the first {n} tokens when context the overflows. However, the model is loaded with context length of only {max} tokens, which is not enough. Try to load the model with a larger context length, or provide a shorter input"},
		// lmstudio.ai/docs/developer/rest/endpoints
		Pages: map[string]string{"/api/v0/models": `{"object":"list","data":[{"id":"{model}","object":"model","type":"vlm","state":"loaded","max_context_length":262144,"loaded_context_length":{context},"capabilities":["tool_use"]}]}`},
	},
	{
		Name: "vllm", URL: "http://localhost:8000/v1", Model: "Qwen/Qwen3-32B",
		// vllm/entrypoints/openai/protocol.py
		Reasoning: reasoningContent, encodeError: flatError,
		makeCallID: func(seq, n int, _ string) string { return fmt.Sprintf("chatcmpl-tool-%032x", seq*100+n) },
		// harbor PR 996
		overflow:   Error{Status: 400, Type: "BadRequestError", Code: "400", Message: "You passed {n} input tokens and requested 0 output tokens. However, the model's context length is only {max} tokens. Please reduce the length of the input prompt."},
		NoPictures: Error{Status: 400, Type: "BadRequestError", Code: "400", Message: "{model} is not a multimodal model"}, // vllm/entrypoints/chat_utils.py
		ModelEntry: `"max_model_len":{context}`,
	},
	{
		Name: "llama.cpp", URL: "http://localhost:8080/v1", Model: "gpt-oss-20b",
		// llama.cpp/tools/server: server.cpp, README.md
		Reasoning: reasoningContent, encodeError: numericCodeError,
		makeCallID: func(seq, n int, _ string) string { return fmt.Sprintf("%032d", seq*100+n) },
		overflow:   Error{Status: 500, Type: "server_error", Message: "Context size has been exceeded."},
		NoPictures: Error{Status: 500, Type: "server_error", Message: "image input is not supported - hint: if this is unexpected, you may need to provide the mmproj"},
		Pages:      map[string]string{"/props": `{"default_generation_settings":{"n_ctx":{context}},"modalities":{"vision":false,"audio":false},"model_path":"{model}"}`},
	},
}
