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

// maxAudio bounds an audio file, in bytes. The service limits the whole request
// (developers.openai.com/api/docs/guides/speech-to-text, "File uploads are currently limited to
// 25 MB").
const maxAudio = 25 << 20

// audioExtensions are the file extensions that the service accepts, as listed in its error.
var audioExtensions = []string{"flac", "m4a", "mp3", "mp4", "mpeg", "mpga", "oga", "ogg", "wav", "webm"}

// speechMark precedes the words of [Speech] in the file.
const speechMark = "ONECLAW-SPEAKS="

// Speech returns a voice note that the emulator transcribes to the given words: two seconds of silence as
// Opus in Ogg, whose comments contain the words.
func Speech(words string) []byte { return opusFile(speechMark+words, 100) }

// opusFile returns an Ogg file (RFC 3533, RFC 7845) with a comment and the given number of silent frames
// of 20 ms.
func opusFile(comment string, frames int) []byte {
	tags := append([]byte("OpusTags"), 0, 0, 0, 0, 1, 0, 0, 0)
	tags = binary.LittleEndian.AppendUint32(tags, uint32(len(comment))) //nolint:gosec // far shorter than 4 GiB
	file := oggPage(nil, 2, 0, 0, "OpusHead\x01\x01\x00\x00\x80\xbb\x00\x00\x00\x00\x00")
	file = oggPage(file, 0, 0, 1, string(tags)+comment)
	return oggPage(file, 4, uint64(frames)*960, 2, slices.Repeat([]string{"\xf8\xff\xfe"}, frames)...) //nolint:gosec // not negative
}

// oggPage appends an Ogg page with packets, of at most 64 KB, to a file.
func oggPage(file []byte, flags byte, granule uint64, number uint32, packets ...string) []byte {
	var segments, body []byte
	for _, p := range packets {
		segments = append(segments, bytes.Repeat([]byte{255}, len(p)/255)...)
		segments = append(segments, byte(len(p)%255))
		body = append(body, p...)
	}
	page := append([]byte("OggS\x00"), flags)
	page = binary.LittleEndian.AppendUint64(page, granule)
	page = binary.LittleEndian.AppendUint32(page, 1) // the stream
	page = binary.LittleEndian.AppendUint32(page, number)
	page = append(page, 0, 0, 0, 0, byte(len(segments)))
	page = append(append(page, segments...), body...)
	binary.LittleEndian.PutUint32(page[22:], oggSum(page))
	return append(file, page...)
}

// oggSum returns the checksum of a page: a CRC-32 with the polynomial 0x04c11db7, not reflected.
func oggSum(page []byte) (sum uint32) {
	for _, b := range page {
		sum ^= uint32(b) << 24
		for range 8 {
			if carry := sum>>31 == 1; carry {
				sum = sum<<1 ^ 0x04c11db7
			} else {
				sum <<= 1
			}
		}
	}
	return sum
}

// handleTranscriptions answers POST /v1/audio/transcriptions.
func (s *Server) handleTranscriptions(w http.ResponseWriter, r *http.Request) {
	text, refused := s.transcribe(w, r)
	if refused != nil {
		s.fail(w, refused)
		return
	}
	s.mu.Lock()
	s.transcriptionCount++
	s.mu.Unlock()
	body := map[string]any{"text": text, "usage": map[string]any{"type": "duration", "seconds": 1}}
	s.check("transcription", body)
	writeJSON(w, http.StatusOK, body)
}

// TranscriptionCount returns how many recordings were transcribed.
func (s *Server) TranscriptionCount() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.transcriptionCount
}

// transcribe checks a request and returns the words of its recording.
func (s *Server) transcribe(w http.ResponseWriter, r *http.Request) (string, *Error) {
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
	if refused := s.checkTranscriptionFields(r); refused != nil {
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
	case !slices.Contains(audioExtensions, ending):
		return "", invalid("", "", "Unrecognized file format. Supported formats: ['%s']", strings.Join(audioExtensions, "', '"))
	case !matchesExtension(sound, ending):
		return "", invalid("file", "unsupported_value", "Audio file might be corrupted or unsupported")
	}
	if at := bytes.Index(sound, []byte(speechMark)); at >= 4 {
		length := int(binary.LittleEndian.Uint32(sound[at-4:]))
		return string(sound[at+len(speechMark) : min(at+length, len(sound))]), nil
	}
	return s.cfg.Transcript, nil
}

// checkTranscriptionFields checks the fields other than the file.
func (s *Server) checkTranscriptionFields(r *http.Request) *Error {
	model, format := r.FormValue("model"), r.FormValue("response_format")
	switch {
	case model == "":
		return invalid("model", "missing_required_parameter", "you must provide a model parameter")
	case !slices.Contains(s.cfg.Models, model):
		return &Error{Status: 404, Message: fmt.Sprintf("The model `%s` does not exist or you do not have access to it.", model), Code: "model_not_found"}
	case format != "" && format != "json":
		// gpt-4o-transcribe and gpt-4o-mini-transcribe support no other format (same guide).
		return invalid("response_format", "unsupported_value", "response_format '%s' is not compatible with model '%s'. Use 'json' or 'text' instead.", format, model)
	}
	fields := map[string]string{}
	for name, values := range r.MultipartForm.Value {
		fields[name] = values[0]
	}
	s.check("transcribe", fields)
	return nil
}

// matchesExtension reports whether a file begins with the magic bytes of its extension.
func matchesExtension(sound []byte, ending string) bool {
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
