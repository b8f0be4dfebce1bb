package openai

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"io"
	"math"
	"net/http"
	"slices"
	"strings"
)

// maxEmbeddedTexts is the number of texts that OpenAI accepts in one request; embeddingSize is the
// length of a vector.
const (
	maxEmbeddedTexts = 2048
	embeddingSize    = 64
)

// handleEmbeddings answers POST /v1/embeddings. The vectors show which texts share words and prefixes,
// not what the texts mean.
func (s *Server) handleEmbeddings(w http.ResponseWriter, r *http.Request) {
	body, ok := s.readBody(w, r)
	if !ok {
		return
	}
	texts, model, encoded, refused := readEmbeddings(body)
	if refused == nil && !slices.Contains(s.cfg.Models, model) {
		refused = &Error{Status: 404, Message: fmt.Sprintf("The model `%s` does not exist or you do not have access to it.", model), Code: "model_not_found"}
	}
	if refused != nil {
		s.fail(w, refused)
		return
	}
	type vector struct {
		Object    string `json:"object"`
		Index     int    `json:"index"`
		Embedding any    `json:"embedding"`
	}
	data := make([]vector, len(texts))
	tokens := 0
	for i, text := range texts {
		data[i] = vector{"embedding", i, embedText(text)}
		tokens += len(text)/4 + 1
	}
	s.mu.Lock()
	s.embeddedCount += len(texts)
	s.mu.Unlock()
	answer := map[string]any{
		"object": "list", "model": model, "data": data, "usage": map[string]int{"prompt_tokens": tokens, "total_tokens": tokens},
	}
	s.check("vectors", answer)
	if encoded {
		for i := range data {
			raw, err := binary.Append(nil, binary.LittleEndian, data[i].Embedding)
			if err != nil {
				panic(err) // only our own numbers
			}
			data[i].Embedding = raw // which JSON has as base64
		}
	}
	writeJSON(w, http.StatusOK, answer)
}

// EmbeddedCount returns how many texts were embedded.
func (s *Server) EmbeddedCount() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.embeddedCount
}

// readEmbeddings parses and checks an embeddings request. It returns the texts and the model. encoded asks for
// base64, as OpenAI's library does unless told otherwise.
func readEmbeddings(body []byte) (texts []string, model string, encoded bool, refused *Error) {
	var req struct {
		Input          json.RawMessage `json:"input"`
		Model          string          `json:"model"`
		EncodingFormat string          `json:"encoding_format"`
	}
	if json.Unmarshal(body, &req) != nil {
		return nil, "", false, invalid("", "", "We could not parse the JSON body of your request.")
	}
	var one string
	switch {
	case req.Model == "":
		return nil, "", false, invalid("model", "missing_required_parameter", "you must provide a model parameter")
	case !slices.Contains([]string{"", "float", "base64"}, req.EncodingFormat):
		return nil, "", false, invalid("encoding_format", "invalid_value", "Invalid value: '%s'. Supported values are: 'float' and 'base64'.", req.EncodingFormat) // assumed
	case json.Unmarshal(req.Input, &one) == nil:
		texts = []string{one}
	case json.Unmarshal(req.Input, &texts) != nil || len(texts) == 0 || len(texts) > maxEmbeddedTexts:
		return nil, "", false, invalid("input", "invalid_type", "'$.input' is invalid: expected a string or an array of 1 to %d strings.", maxEmbeddedTexts)
	}
	if slices.Contains(texts, "") {
		return nil, "", false, invalid("input", "invalid_value", "'$.input' is invalid: input cannot be an empty string.")
	}
	return texts, req.Model, req.EncodingFormat == "base64", nil
}

// embedText hashes the prefixes of a text's words into a unit vector.
func embedText(text string) []float32 {
	sums := make([]float64, embeddingSize)
	for word := range strings.FieldsSeq(strings.NewReplacer("_", " ", ".", " ", "-", " ").Replace(strings.ToLower(text))) {
		h := fnv.New32a()
		_, _ = io.WriteString(h, word[:min(len(word), 5)]) // a hash never fails
		sums[h.Sum32()%embeddingSize]++
	}
	length := 0.0
	for _, n := range sums {
		length += n * n
	}
	out := make([]float32, embeddingSize)
	for i, n := range sums {
		out[i] = float32(n / math.Sqrt(max(length, 1)))
	}
	return out
}
