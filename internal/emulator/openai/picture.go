package openai

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// Picture is a picture in a message.
type Picture struct {
	// MIME and Data are set for an embedded picture.
	MIME string
	Data []byte
	// URL is the address of a picture that is not embedded.
	URL string
}

// part is a part of a message's content, in either API.
type part struct {
	Type     string          `json:"type"`
	Text     string          `json:"text"`
	ImageURL json.RawMessage `json:"image_url"`
	Detail   string          `json:"detail"`
}

// parsePicture parses a picture part. Chat Completions wraps the address in an object, the Responses
// API does not.
func (p part) parsePicture() (Picture, error) {
	var address string
	if p.Type == "image_url" {
		var object struct {
			URL string `json:"url"`
		}
		if err := json.Unmarshal(p.ImageURL, &object); err != nil {
			return Picture{}, fmt.Errorf("image_url: %w", err)
		}
		address = object.URL
	} else if err := json.Unmarshal(p.ImageURL, &address); err != nil {
		return Picture{}, fmt.Errorf("image_url: %w", err)
	} else if !slices.Contains([]string{"low", "high", "auto", "original"}, p.Detail) {
		return Picture{}, errors.New("detail: required, one of low, high, auto and original") // openai's types; vLLM refuses its absence
	}
	rest, held := strings.CutPrefix(address, "data:")
	if !held {
		if !strings.HasPrefix(address, "https://") && !strings.HasPrefix(address, "http://") {
			return Picture{}, errors.New("image_url: not the address of a picture")
		}
		return Picture{URL: address}, nil
	}
	kind, encoded, ok := strings.Cut(rest, ";base64,")
	data, err := base64.StdEncoding.DecodeString(encoded)
	if !ok || err != nil {
		return Picture{}, errors.New("image_url: not base64")
	}
	kinds := []string{"image/png", "image/jpeg", "image/gif", "image/webp"}
	if !slices.Contains(kinds, kind) || http.DetectContentType(data) != kind {
		return Picture{}, errors.New("image_url: want a png, jpeg, gif or webp that matches its type")
	}
	return Picture{MIME: kind, Data: data}, nil
}

// pictureBytes returns the encoded size of the pictures in the messages, which do not count as text.
func (r Request) pictureBytes() int {
	n := 0
	for _, m := range r.Messages {
		for _, p := range m.Pictures {
			n += base64.StdEncoding.EncodedLen(len(p.Data))
		}
	}
	return n
}
