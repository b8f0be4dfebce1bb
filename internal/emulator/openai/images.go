package openai

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// ImageModel is a model that makes pictures. Every server has it and the other imageModels.
const ImageModel = "gpt-image-2.5-flare"

// imageModels are OpenAI's models
// (developers.openai.com/api/reference/resources/images/methods/generate). The models of [Config] make
// pictures as other servers do: requests must set response_format to b64_json.
var imageModels = []string{ImageModel, "gpt-image-2.5-sunburst", "gpt-image-2", "gpt-image-1.5", "gpt-image-1-mini", "chatgpt-image-latest"}

// Bounds of a request (the same page and .../methods/edit).
const (
	maxImagePrompt = 32_000 // characters
	maxImageFile   = 50 << 20
	maxImages      = 10
)

// Bounds of a free size: of an edge and an area in pixels, and of the ratio of the edges.
const (
	imageStep      = 16
	maxImageEdge   = 3840
	minImagePixels = 655_360
	maxImagePixels = 8_294_400
	maxImageRatio  = 3
)

// PictureRequest is an accepted request for a picture.
type PictureRequest struct {
	Model, Prompt, Size, Quality string
	// Source is the picture to be changed; nil for a new one.
	Source []byte
}

// Pictures returns the accepted requests for pictures, in order.
func (s *Server) Pictures() []PictureRequest {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.pictures)
}

// OnPicture sets a function that is called for each accepted request for a picture, before it is answered.
// If it returns an error, that is the answer.
func (s *Server) OnPicture(f func(PictureRequest) *Error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.onPicture = f
}

// handleGenerations answers POST /v1/images/generations.
func (s *Server) handleGenerations(w http.ResponseWriter, r *http.Request) {
	body, ok := s.readBody(w, r)
	if !ok {
		return
	}
	var fields map[string]any
	if json.Unmarshal(body, &fields) != nil {
		s.fail(w, invalid("", "", "We could not parse the JSON body of your request. (HINT: This likely means you aren't using your HTTP library correctly. The OpenAI API expects a JSON payload, but what was sent was not valid JSON.)"))
		return
	}
	p, refused := s.checkPicture("image", fields)
	if refused == nil {
		s.check("image", body)
	}
	s.answerPicture(w, r, p, refused)
}

// handleEdits answers POST /v1/images/edits.
func (s *Server) handleEdits(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, maxImageFile+1<<20)
	if err := r.ParseMultipartForm(maxImageFile); err != nil {
		refused := invalid("", "", "Could not parse multipart form")
		if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
			refused = &Error{Status: 413, Message: "Request body is too large."}
		}
		s.fail(w, refused)
		return
	}
	defer func() { _ = r.MultipartForm.RemoveAll() }()
	fields := map[string]any{}
	for name, values := range r.MultipartForm.Value {
		fields[name] = values[0]
	}
	p, refused := s.checkPicture("edit", fields)
	if refused == nil {
		p.Source, refused = readSource(r.MultipartForm.File)
	}
	if refused == nil {
		s.check("edit", fields)
	}
	s.answerPicture(w, r, p, refused)
}

// checkPicture checks the fields of a request other than the picture to be changed.
func (s *Server) checkPicture(kind string, fields map[string]any) (PictureRequest, *Error) {
	text := func(name string) string { v, _ := fields[name].(string); return v }
	p := PictureRequest{Model: text("model"), Prompt: text("prompt"), Size: cmp.Or(text("size"), "auto"), Quality: cmp.Or(text("quality"), "auto")}
	own := slices.Contains(imageModels, p.Model)
	known := contract().Fields(kind)
	for name := range fields {
		if known[name] == nil || name == "response_format" && own {
			return p, invalid(name, "unknown_parameter", "Unknown parameter: '%s'.", name)
		}
	}
	n, err := 1, error(nil)
	if fields["n"] != nil {
		n, err = strconv.Atoi(fmt.Sprint(fields["n"]))
	}
	switch {
	case p.Model == "":
		return p, invalid("model", "missing_required_parameter", "you must provide a model parameter") // today's page: "Specify a model explicitly"
	case !own && !slices.Contains(s.cfg.Models, p.Model):
		return p, invalid("model", "invalid_value", "The model '%s' does not exist.", p.Model)
	case p.Prompt == "":
		return p, invalid("prompt", "missing_required_parameter", "Missing required parameter: 'prompt'.")
	case utf8.RuneCountInString(p.Prompt) > maxImagePrompt:
		return p, invalid("prompt", "string_above_max_length", "Invalid 'prompt': string too long. Expected a string with maximum length %d, but got a string with length %d instead.", maxImagePrompt, utf8.RuneCountInString(p.Prompt))
	case err != nil || n < 1 || n > maxImages:
		return p, invalid("n", "integer_above_max_value", "Invalid 'n': expected a value between 1 and %d, but got %v instead.", maxImages, fields["n"])
	case n > 1, fields["stream"] == true, fields["background"] == "transparent", fields["output_format"] != nil, fields["mask"] != nil:
		return p, invalid("", "", "This emulator makes one PNG in one piece.")
	case !slices.Contains(imageQualities(p.Model), p.Quality):
		return p, invalid("quality", "invalid_value", "Invalid value: '%s'. Supported values are: '%s'.", p.Quality, strings.Join(imageQualities(p.Model), "', '"))
	case !own && fields["response_format"] != "b64_json":
		return p, invalid("response_format", "", "This emulator returns pictures as b64_json.")
	}
	return p, checkSize(p.Model, p.Size)
}

func imageQualities(model string) []string {
	if strings.HasPrefix(model, "gpt-image-2.5") {
		return []string{"low", "medium", "high", "xhigh", "max", "auto"}
	}
	return []string{"low", "medium", "high", "auto"}
}

var freeSize = regexp.MustCompile(`^(\d{1,4})x(\d{1,4})$`)

// checkSize checks a size. Since gpt-image-2 sizes are free within bounds.
func checkSize(model, size string) *Error {
	standard := []string{"1024x1024", "1024x1536", "1536x1024", "auto"}
	if slices.Contains(standard, size) {
		return nil
	}
	m := freeSize.FindStringSubmatch(size)
	if m == nil || !strings.HasPrefix(model, "gpt-image-2") {
		return invalid("size", "invalid_value", "Invalid value: '%s'. Supported values are: '%s'.", size, strings.Join(standard, "', '"))
	}
	width, height := parseSize(size)
	if width%imageStep+height%imageStep > 0 || max(width, height) > maxImageEdge || max(width, height) > maxImageRatio*min(width, height) ||
		width*height < minImagePixels || width*height > maxImagePixels {
		return invalid("size", "invalid_value", "Invalid size '%s'. Width and height must be divisible by 16, with a ratio from 1:3 to 3:1 and at most 3840 pixels an edge.", size)
	}
	return nil
}

// parseSize returns the width and height of a checked size. The model chooses a square for auto.
func parseSize(size string) (width, height int) {
	m := freeSize.FindStringSubmatch(size)
	if m == nil {
		return 1024, 1024
	}
	width, _ = strconv.Atoi(m[1])
	height, _ = strconv.Atoi(m[2])
	return width, height
}

// readSource reads and checks the picture to be changed. The service looks at the declared type first.
func readSource(uploads map[string][]*multipart.FileHeader) ([]byte, *Error) {
	list := slices.Concat(uploads["image"], uploads["image[]"])
	if len(list) == 0 {
		return nil, invalid("image", "missing_required_parameter", "Missing required parameter: 'image'.")
	}
	if len(list) > 1 {
		return nil, invalid("image", "", "This emulator changes one picture.")
	}
	kinds := []string{"image/jpeg", "image/png", "image/webp"}
	kind := cmp.Or(list[0].Header.Get("Content-Type"), "application/octet-stream")
	if !slices.Contains(kinds, kind) {
		return nil, invalid("image", "unsupported_file_mimetype", "Invalid file 'image': unsupported mimetype ('%s'). Supported file formats are 'image/jpeg', 'image/png', and 'image/webp'.", kind)
	}
	if list[0].Size > maxImageFile {
		return nil, invalid("image", "image_above_max_size", "Invalid file 'image': the file is larger than 50 MB.")
	}
	file, err := list[0].Open()
	if err != nil {
		return nil, &Error{Status: 500, Type: "server_error", Message: err.Error()}
	}
	defer func() { _ = file.Close() }()
	data, err := io.ReadAll(file)
	if err != nil || http.DetectContentType(data) != kind || kind != "image/webp" && !isWholePicture(data) {
		return nil, &Error{Status: 400, Type: "image_generation_user_error", Param: "image", Code: "invalid_image_file", Message: "Invalid image file or mode for image 1, please check your image file."}
	}
	return data, nil
}

// answerPicture answers a request for a picture.
func (s *Server) answerPicture(w http.ResponseWriter, r *http.Request, p PictureRequest, refused *Error) {
	if refused == nil {
		refused = moderate(p.Prompt)
	}
	if refused != nil {
		s.fail(w, refused)
		return
	}
	s.mu.Lock()
	s.pictures = append(s.pictures, p)
	decide := s.onPicture
	s.mu.Unlock()
	if decide != nil {
		refused = decide(p)
	}
	if wait := s.cfg.Latency; wait > 0 && !s.life.Sleep(r.Context(), wait) {
		return
	}
	if refused != nil {
		s.fail(w, refused)
		return
	}
	width, height := parseSize(p.Size)
	picture, err := paint(p.Prompt, width, height, p.Source)
	if err != nil {
		s.fail(w, &Error{Status: 500, Type: "server_error", Message: err.Error()})
		return
	}
	answer := map[string]any{"created": s.cfg.now().Unix(), "data": []any{map[string]any{"b64_json": base64.StdEncoding.EncodeToString(picture)}}}
	if slices.Contains(imageModels, p.Model) {
		text, source, made := pictureTokens(p)
		answer["usage"] = map[string]any{
			"input_tokens": text + source, "output_tokens": made, "total_tokens": text + source + made,
			"input_tokens_details": map[string]any{"text_tokens": text, "image_tokens": source},
		}
		answer["background"], answer["output_format"] = "opaque", "png"
	}
	s.check("images", answer)
	writeJSON(w, http.StatusOK, answer)
}

// pictureTokens returns the tokens of a prompt, of the picture to be changed, and of the picture that is
// made: those of gpt-image-2.5 for a square one, half as much again for others.
func pictureTokens(p PictureRequest) (text, source, made int) {
	made = map[string]int{"low": 196, "medium": 439}[p.Quality]
	if made == 0 {
		made = 1756
	}
	if width, height := parseSize(p.Size); width != height {
		made += made / 2
	}
	if p.Source != nil {
		source = 1024
	}
	return len(p.Prompt)/bytesPerToken + 1, source, made
}

var violent = regexp.MustCompile(`(?i)\b(gore|bloodbath)\b`)

// moderate refuses prompts as the service's filter does. The form is that of
// github.com/jeffstric/ZJT/issues/480.
func moderate(prompt string) *Error {
	if !violent.MatchString(prompt) {
		return nil
	}
	return &Error{
		Status: 400, Type: "image_generation_user_error", Code: "moderation_blocked",
		Message: "Your request was rejected by the safety system. If you believe this is an error, contact us at help.openai.com and include the request ID req_emulator. safety_violations=[violence].",
	}
}

// isWholePicture reports whether a PNG or JPEG can be decoded.
func isWholePicture(data []byte) bool {
	_, err := decodePicture(bytes.NewReader(data))
	return err == nil
}
