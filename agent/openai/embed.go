package openai

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	api "github.com/sashabaranov/go-openai"

	"oneclaw/agent"
)

// maxVectors bounds the response of the Embeddings API, in bytes: 256 texts with the 3,072 numbers of
// OpenAI's largest model take less than 16 MiB as JSON.
const maxVectors = 64 << 20

// Embed returns a vector for each text, in their order, over the Embeddings API. It sends one request
// and does not retry: a caller can do without vectors. An error is a *[agent.ModelError], or the cause
// for which ctx ended; its text holds no secret.
func (c *Client) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	if len(texts) == 0 {
		return nil, nil
	}
	body, err := json.Marshal(api.EmbeddingRequest{
		Input: texts, Model: api.EmbeddingModel(c.cfg.Model), EncodingFormat: api.EmbeddingEncodingFormatFloat,
	})
	if err != nil {
		return nil, fmt.Errorf("openai: embed: %w", err)
	}
	var answer api.EmbeddingResponse
	resp, err := c.send(ctx, c.cfg.BaseURL+"/embeddings", body)
	if err == nil {
		err = json.NewDecoder(io.LimitReader(resp.Body, maxVectors)).Decode(&answer)
		_ = resp.Body.Close()
	}
	if ctx.Err() != nil {
		return nil, fmt.Errorf("openai: embed: %w", context.Cause(ctx))
	}
	if err != nil {
		return nil, c.judge(ctx, err).Failure
	}
	out := make([][]float32, len(texts))
	for _, v := range answer.Data {
		if v.Index < 0 || v.Index >= len(out) || len(v.Embedding) == 0 || len(v.Embedding) != len(answer.Data[0].Embedding) {
			return nil, &agent.ModelError{Kind: agent.KindUnavailable, Err: errors.New("the vectors of the answer do not fit")}
		}
		out[v.Index] = v.Embedding
	}
	for _, v := range out {
		if v == nil {
			return nil, &agent.ModelError{Kind: agent.KindUnavailable, Err: errors.New("the answer lacks a vector")}
		}
	}
	return out, nil
}
