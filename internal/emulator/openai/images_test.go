package openai_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"image"
	"image/png"
	"io"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"strings"
	"testing"

	api "github.com/sashabaranov/go-openai"

	"oneclaw/internal/emulator/openai"
)

func startServer(t *testing.T) (*openai.Server, string) {
	t.Helper()
	server, err := openai.New(openai.Config{Key: "k"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	})
	base, err := server.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return server, base
}

func newClient(base string) *api.Client {
	cfg := api.DefaultConfig("k")
	cfg.BaseURL = base
	return api.NewClientWithConfig(cfg)
}

// TestGenerationsAreStrict has the library send what the service takes, and what it refuses.
func TestGenerationsAreStrict(t *testing.T) {
	t.Parallel()
	server, base := startServer(t)
	client := newClient(base)
	good := api.ImageRequest{Model: openai.ImageModel, Prompt: "a cat", N: 1, Size: "1536x1024", Quality: "medium"}
	answer, err := client.CreateImage(context.WithoutCancel(t.Context()), good)
	if err != nil || len(answer.Data) != 1 {
		t.Fatalf("%+v, %v", answer, err)
	}
	data, err := base64.StdEncoding.DecodeString(answer.Data[0].B64JSON)
	if err != nil {
		t.Fatal(err)
	}
	if picture, err := png.Decode(bytes.NewReader(data)); err != nil || picture.Bounds() != image.Rect(0, 0, 1536, 1024) || len(data) > 100<<10 {
		t.Errorf("%v, %d bytes, %v", picture.Bounds(), len(data), err)
	}
	if u := answer.Usage; u.OutputTokens != 658 || u.InputTokens != 2 || u.TotalTokens != 660 {
		t.Errorf("usage %+v", u)
	}
	for name, c := range map[string]struct {
		change func(*api.ImageRequest)
		want   string
	}{
		"no model":        {func(r *api.ImageRequest) { r.Model = "" }, "provide a model"},
		"unknown model":   {func(r *api.ImageRequest) { r.Model = "dall-e-3" }, "'dall-e-3' does not exist"},
		"no prompt":       {func(r *api.ImageRequest) { r.Prompt = "" }, "Missing required parameter: 'prompt'"},
		"long prompt":     {func(r *api.ImageRequest) { r.Prompt = strings.Repeat("é", 32_001) }, "maximum length 32000"},
		"many":            {func(r *api.ImageRequest) { r.N = 11 }, "between 1 and 10"},
		"size":            {func(r *api.ImageRequest) { r.Size = "256x256" }, "Invalid size"},
		"size of another": {func(r *api.ImageRequest) { r.Model, r.Size = "gpt-image-1.5", "1280x720" }, "Supported values are: '1024x1024'"},
		"quality":         {func(r *api.ImageRequest) { r.Quality = "hd" }, "Invalid value: 'hd'"},
		"format":          {func(r *api.ImageRequest) { r.ResponseFormat = "b64_json" }, "Unknown parameter: 'response_format'"},
		"blocked":         {func(r *api.ImageRequest) { r.Prompt = "gore" }, "rejected by the safety system"},
		"addresses":       {func(r *api.ImageRequest) { r.Model = openai.DefaultModel }, "as b64_json"},
	} {
		r := good
		c.change(&r)
		if _, err := client.CreateImage(context.WithoutCancel(t.Context()), r); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	if got := server.Pictures(); len(got) != 1 || got[0].Prompt != "a cat" || got[0].Source != nil {
		t.Errorf("made %+v", got)
	}
}

// edit posts a form, with a picture of the declared type.
func edit(t *testing.T, base, kind string, picture []byte, fields ...string) (int, string) {
	t.Helper()
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	for i := 0; i < len(fields); i += 2 {
		if err := form.WriteField(fields[i], fields[i+1]); err != nil {
			t.Fatal(err)
		}
	}
	if picture != nil {
		head := textproto.MIMEHeader{"Content-Disposition": {`form-data; name="image"; filename="a.png"`}}
		if kind != "" {
			head.Set("Content-Type", kind)
		}
		part, err := form.CreatePart(head)
		if err == nil {
			_, err = part.Write(picture)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := form.Close(); err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, base+"/images/edits", &body)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", form.FormDataContentType())
	req.Header.Set("Authorization", "Bearer k")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

func TestEditsAreStrict(t *testing.T) {
	t.Parallel()
	server, base := startServer(t)
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, 30, 20))); err != nil {
		t.Fatal(err)
	}
	picture := b.Bytes()
	plain := []string{"model", openai.ImageModel, "prompt", "blue", "n", "1", "size", "1024x1024"}
	if status, text := edit(t, base, "image/png", picture, plain...); status != 200 || !strings.Contains(text, `"b64_json":"iVBOR`) || !strings.Contains(text, `"image_tokens":1024`) {
		t.Errorf("%d %.300s", status, text)
	}
	for name, c := range map[string]struct {
		kind    string
		picture []byte
		fields  []string
		want    string
	}{
		"no picture":    {"", nil, plain, "Missing required parameter: 'image'"},
		"no type":       {"", picture, plain, "unsupported mimetype ('application/octet-stream')"},
		"wrong type":    {"image/jpeg", picture, plain, "Invalid image file"},
		"another type":  {"image/gif", []byte("GIF89a"), plain, "unsupported mimetype ('image/gif')"},
		"damaged":       {"image/png", picture[:40], plain, "Invalid image file"},
		"no prompt":     {"image/png", picture, plain[:2], "Missing required parameter: 'prompt'"},
		"number":        {"image/png", picture, append(plain[:4:4], "n", "x"), "Invalid 'n'"},
		"empty format":  {"image/png", picture, append(plain[:4:4], "response_format", ""), "Unknown parameter: 'response_format'"},
		"another field": {"image/png", picture, append(plain[:4:4], "seed", "7"), "Unknown parameter: 'seed'"},
	} {
		if status, text := edit(t, base, c.kind, c.picture, c.fields...); status != 400 || !strings.Contains(text, c.want) {
			t.Errorf("%s: %d %.300s", name, status, text)
		}
	}
	if got := server.Pictures(); len(got) != 1 || !bytes.Equal(got[0].Source, picture) {
		t.Errorf("made %d", len(got))
	}
}
