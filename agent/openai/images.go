package openai

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"strings"

	api "github.com/sashabaranov/go-openai"

	"oneclaw/agent"
)

// ImageRequest asks for a picture.
type ImageRequest struct {
	// Prompt describes the picture, or the change of Source.
	Prompt string
	// Size is the width and height, such as 1024x1024.
	Size string
	// Quality is low, medium or high; empty leaves it to the provider.
	Quality string
	// Source is a PNG, JPEG or WebP to be changed; nil asks for a new picture.
	Source []byte
}

// CreateImage makes or changes a picture, using /images/generations or /images/edits. It sends one request
// and never repeats it. It returns the bytes of the picture and, if the server reports it, the usage. An
// error is a *[OnceError], or the cause of ctx.
func (c *Client) CreateImage(ctx context.Context, r ImageRequest) (picture []byte, usage agent.Usage, err error) {
	var answer api.ImageResponse
	err = c.once(ctx, func(ctx context.Context, client *api.Client) (err error) {
		if r.Source != nil {
			answer, err = c.editImage(ctx, r)
		} else {
			answer, err = client.CreateImage(ctx, api.ImageRequest{
				Model: c.cfg.Model, Prompt: r.Prompt, N: 1, Size: r.Size, Quality: r.Quality, ResponseFormat: c.imageFormat(),
			})
		}
		if err == nil {
			picture, err = decodeImage(answer)
		}
		return err
	})
	return picture, agent.Usage{Input: max(answer.Usage.InputTokens, 0), Output: max(answer.Usage.OutputTokens, 0)}, err
}

// imageFormat returns the value of response_format. OpenAI's models refuse any and always return the
// bytes; other servers return an address by default.
func (c *Client) imageFormat() string {
	name := c.cfg.Model[strings.LastIndexByte(c.cfg.Model, '/')+1:]
	if strings.HasPrefix(name, "gpt-image-") || strings.HasPrefix(name, "chatgpt-image-") {
		return ""
	}
	return api.CreateImageResponseFormatB64JSON
}

var errNoImage = errors.New("the response has no picture: the server may have filtered it, or sends addresses instead of pictures")

// decodeImage returns the first picture of a response.
func decodeImage(answer api.ImageResponse) ([]byte, error) {
	if len(answer.Data) == 0 || answer.Data[0].B64JSON == "" {
		return nil, errNoImage
	}
	encoded := answer.Data[0].B64JSON
	if strings.HasPrefix(encoded, "data:") { // some servers send a data URL
		encoded = encoded[strings.IndexByte(encoded, ',')+1:]
	}
	picture, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return nil, fmt.Errorf("decode the picture: %w", err)
	}
	return picture, nil
}

// editImage posts a form to /images/edits. The library's own function always sends response_format,
// which OpenAI's models refuse even if it is empty.
func (c *Client) editImage(ctx context.Context, r ImageRequest) (answer api.ImageResponse, err error) {
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	for _, field := range [][2]string{
		{"model", c.cfg.Model}, {"prompt", r.Prompt}, {"n", "1"}, {"size", r.Size}, {"quality", r.Quality}, {"response_format", c.imageFormat()},
	} {
		if field[1] != "" {
			err = errors.Join(err, form.WriteField(field[0], field[1]))
		}
	}
	kind := http.DetectContentType(r.Source)
	file, failed := form.CreatePart(textproto.MIMEHeader{
		"Content-Disposition": {fmt.Sprintf(`form-data; name="image"; filename="image.%s"`, strings.TrimPrefix(kind, "image/"))},
		"Content-Type":        {kind}, // the server derives nothing from the name
	})
	if failed == nil {
		_, failed = file.Write(r.Source)
	}
	if err := errors.Join(err, failed, form.Close()); err != nil {
		return answer, fmt.Errorf("encode the picture: %w", err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.cfg.BaseURL+"/images/edits", &body)
	if err != nil {
		return answer, err
	}
	req.Header.Set("Content-Type", form.FormDataContentType())
	req.Header.Set("Accept", "application/json")
	if c.cfg.APIKey != "" {
		req.Header.Set("Authorization", "Bearer "+c.cfg.APIKey)
	}
	resp, err := (&httpDoer{client: c.cfg.HTTPClient}).Do(req)
	if err != nil {
		return answer, err
	}
	defer func() { _ = resp.Body.Close() }()
	err = json.NewDecoder(resp.Body).Decode(&answer)
	return answer, err
}
