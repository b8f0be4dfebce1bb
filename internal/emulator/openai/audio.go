package openai

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path"
	"slices"
	"strings"
)

// maxAudio bounds a file, in bytes: the service limits the whole request
// (developers.openai.com/api/docs/guides/speech-to-text, "File uploads are currently limited to
// 25 MB").
const maxAudio = 25 << 20

// audioEndings are the extensions that the service accepts, as its error lists them.
var audioEndings = []string{"flac", "m4a", "mp3", "mp4", "mpeg", "mpga", "oga", "ogg", "wav", "webm"}

// heardMark precedes the words of [Speech].
const heardMark = "ONECLAW-SPEAKS="

// Speech returns a voice note that the emulator transcribes to these words: an Ogg file with the
// headers of an Opus stream, and the words among its comments.
func Speech(words string) []byte {
	comment := heardMark + words
	tags := append([]byte("OpusTags"), 0, 0, 0, 0, 1, 0, 0, 0)
	tags = binary.LittleEndian.AppendUint32(tags, uint32(len(comment))) //nolint:gosec // nobody says that much
	return append(oggPage("OpusHead\x01\x01\x00\x00\x80\xbb\x00\x00\x00\x00\x00"), oggPage(string(tags)+comment)...)
}

// oggPage returns a page of an Ogg file.
func oggPage(packet string) []byte {
	head := append([]byte("OggS\x00\x00"), make([]byte, 20)...)
	segments := slices.Repeat([]byte{255}, len(packet)/255)
	segments = append(segments, byte(len(packet)%255))
	return append(append(append(head, byte(len(segments))), segments...), packet...)
}

// transcriptions answers POST /v1/audio/transcriptions.
func (s *Server) transcriptions(w http.ResponseWriter, r *http.Request) {
	text, refused := s.listen(w, r)
	if refused != nil {
		s.fail(w, refused)
		return
	}
	s.mu.Lock()
	s.heard++
	hold := s.hold
	s.mu.Unlock()
	if hold != nil {
		hold()
	}
	body := map[string]any{"text": text, "usage": map[string]any{"type": "duration", "seconds": 1}}
	s.checkValue("transcription", body)
	writeJSON(w, http.StatusOK, body)
}

// Heard returns how many recordings were transcribed.
func (s *Server) Heard() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.heard
}

// OnHeard makes f be called before the response to each transcription.
func (s *Server) OnHeard(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hold = f
}

// listen checks a request and returns its words.
func (s *Server) listen(w http.ResponseWriter, r *http.Request) (string, *Error) {
	if r.ContentLength < 0 {
		return "", &Error{Status: http.StatusLengthRequired, Message: "Length Required"} // assumed
	}
	// The limit applies to the whole request
	// (community.openai.com/t/whisper-api-increase-file-limit-25-mb).
	r.Body = http.MaxBytesReader(w, r.Body, maxAudio+64<<10)
	if err := r.ParseMultipartForm(maxAudio); err != nil {
		if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
			return "", &Error{Status: http.StatusRequestEntityTooLarge, Message: fmt.Sprintf("Maximum content size limit (%d) exceeded (%d bytes read)", maxAudio, maxAudio)}
		}
		return "", invalid("", "", "Could not parse multipart form")
	}
	defer func() { _ = r.MultipartForm.RemoveAll() }()
	if refused := s.readHearing(r); refused != nil {
		return "", refused
	}
	file, header, err := r.FormFile("file")
	if err != nil {
		return "", invalid("file", "missing_required_parameter", "[{'type': 'missing', 'loc': ('body', 'file'), 'msg': 'Field required'}]")
	}
	defer func() { _ = file.Close() }()
	sound, err := io.ReadAll(file)
	switch ending := strings.ToLower(strings.TrimPrefix(path.Ext(header.Filename), ".")); {
	case err != nil:
		return "", &Error{Status: http.StatusInternalServerError, Type: "server_error", Message: err.Error()}
	case len(sound) > maxAudio:
		return "", &Error{Status: http.StatusRequestEntityTooLarge, Message: fmt.Sprintf("Maximum content size limit (%d) exceeded (%d bytes read)", maxAudio, len(sound))}
	case !slices.Contains(audioEndings, ending):
		return "", invalid("", "", "Unrecognized file format. Supported formats: ['%s']", strings.Join(audioEndings, "', '"))
	case !soundsLike(sound, ending):
		return "", invalid("file", "unsupported_value", "Audio file might be corrupted or unsupported")
	}
	if _, words, said := bytes.Cut(sound, []byte(heardMark)); said {
		return string(words), nil
	}
	return s.cfg.Heard, nil
}

// readHearing checks the other fields.
func (s *Server) readHearing(r *http.Request) *Error {
	model, format := r.FormValue("model"), r.FormValue("response_format")
	switch {
	case model == "":
		return invalid("model", "missing_required_parameter", "you must provide a model parameter")
	case !slices.Contains(s.cfg.Models, model):
		return &Error{Status: 404, Message: fmt.Sprintf("The model `%s` does not exist or you do not have access to it.", model), Code: "model_not_found"}
	case format != "" && format != "json":
		// gpt-4o-transcribe and gpt-4o-mini-transcribe support no other (the same guide).
		return invalid("response_format", "unsupported_value", "response_format '%s' is not compatible with model '%s'. Use 'json' or 'text' instead.", format, model)
	}
	fields := map[string]string{}
	for name, values := range r.MultipartForm.Value {
		fields[name] = values[0]
	}
	s.checkValue("transcribe", fields)
	return nil
}

// soundsLike reports whether a file begins as its extension says.
func soundsLike(sound []byte, ending string) bool {
	at := func(i int, magic string) bool {
		return len(sound) >= i+len(magic) && string(sound[i:i+len(magic)]) == magic
	}
	switch ending {
	case "ogg", "oga":
		return at(0, "OggS")
	case "flac":
		return at(0, "fLaC")
	case "wav":
		return at(0, "RIFF") && at(8, "WAVE")
	case "webm":
		return at(0, "\x1a\x45\xdf\xa3")
	case "m4a", "mp4":
		return at(4, "ftyp")
	}
	return at(0, "ID3") || at(0, "\xff")
}
