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

// Picture is one that came with a message.
type Picture struct {
	// MIME and Data are those of a picture that the request holds.
	MIME string
	Data []byte
	// URL is the address of one that it does not hold.
	URL string
}

// part is one of the parts of a content, of either API.
type part struct {
	Type     string          `json:"type"`
	Text     string          `json:"text"`
	ImageURL json.RawMessage `json:"image_url"`
	Detail   string          `json:"detail"`
}

// picture reads a part with a picture: Chat Completions has an object around the
// address, the Responses API has it alone.
func (p part) picture() (Picture, error) {
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
			return Picture{}, errors.New("image_url: no address of a picture")
		}
		return Picture{URL: address}, nil
	}
	kind, encoded, ok := strings.Cut(rest, ";base64,")
	data, err := base64.StdEncoding.DecodeString(encoded)
	if !ok || err != nil {
		return Picture{}, errors.New("image_url: no base64")
	}
	kinds := []string{"image/png", "image/jpeg", "image/gif", "image/webp"}
	if !slices.Contains(kinds, kind) || http.DetectContentType(data) != kind {
		return Picture{}, errors.New("image_url: want a png, jpeg, gif or webp, as it says")
	}
	return Picture{MIME: kind, Data: data}, nil
}

// pictureBytes is how much of the messages the pictures take, which do not count as
// text.
func (r Request) pictureBytes() int {
	n := 0
	for _, m := range r.Messages {
		for _, p := range m.Pictures {
			n += base64.StdEncoding.EncodedLen(len(p.Data))
		}
	}
	return n
}
