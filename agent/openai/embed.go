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

// maxEmbeddingBytes bounds a response of the Embeddings API. The embeddings of 256 texts by OpenAI's
// largest model, 3,072 numbers each, take less than 16 MiB as JSON.
const maxEmbeddingBytes = 64 << 20

// Embed returns an embedding for each text, in order, using the Embeddings API. It sends one request and
// does not retry, because callers can do without embeddings. An error is a *[agent.ModelError], or the
// cause of ctx; its text contains no secret.
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
		err = json.NewDecoder(io.LimitReader(resp.Body, maxEmbeddingBytes)).Decode(&answer)
		_ = resp.Body.Close()
	}
	if ctx.Err() != nil {
		return nil, fmt.Errorf("openai: embed: %w", context.Cause(ctx))
	}
	if err != nil {
		return nil, c.newFault(ctx, err).Failure
	}
	out := make([][]float32, len(texts))
	for _, v := range answer.Data {
		if v.Index < 0 || v.Index >= len(out) || len(v.Embedding) == 0 || len(v.Embedding) != len(answer.Data[0].Embedding) {
			return nil, &agent.ModelError{Kind: agent.KindUnavailable, Err: errors.New("the response has embeddings of unequal length or with a wrong index")}
		}
		out[v.Index] = v.Embedding
	}
	for _, v := range out {
		if v == nil {
			return nil, &agent.ModelError{Kind: agent.KindUnavailable, Err: errors.New("the response lacks an embedding")}
		}
	}
	return out, nil
}
