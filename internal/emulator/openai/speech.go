package openai

import (
	"bytes"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"
)

// SpeechModel is a model that speaks. Every server has it and the other speechModels.
const SpeechModel = "gpt-4o-mini-tts"

// The models, voices and formats (developers.openai.com/api/reference/resources/audio/subresources/speech/methods/create).
var (
	speechModels  = []string{SpeechModel, "gpt-4o-mini-tts-2025-12-15", "tts-1", "tts-1-hd"}
	voices        = []string{"alloy", "ash", "ballad", "coral", "echo", "fable", "onyx", "nova", "sage", "shimmer", "verse", "marin", "cedar"}
	speechFormats = []string{"mp3", "opus", "aac", "flac", "wav", "pcm"}
)

// maxSpeech bounds a text that is spoken, in characters (the same page).
const maxSpeech = 4096

// SpeechRequest is an accepted request for speech.
type SpeechRequest struct {
	Model  string  `json:"model"`
	Input  string  `json:"input"`
	Voice  string  `json:"voice"`
	Format string  `json:"response_format"`
	Speed  float64 `json:"speed"`
	// Instructions describe how to speak.
	Instructions string `json:"instructions"`
}

// Spoken returns the accepted requests for speech, in order.
func (s *Server) Spoken() []SpeechRequest {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.spoken)
}

// OnSpeech sets a function that is called for each accepted request for speech, before it is answered. If
// it returns an error, that is the answer.
func (s *Server) OnSpeech(f func(SpeechRequest) *Error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.onSpeech = f
}

// handleSpeech answers POST /v1/audio/speech. The recording is silence. As opus it is that of [Speech],
// which contains the words.
func (s *Server) handleSpeech(w http.ResponseWriter, r *http.Request) {
	body, ok := s.readBody(w, r)
	if !ok {
		return
	}
	speech, refused := s.checkSpeech(body)
	if refused != nil {
		s.fail(w, refused)
		return
	}
	s.check("speech", body)
	s.mu.Lock()
	s.spoken = append(s.spoken, speech)
	decide := s.onSpeech
	s.mu.Unlock()
	if decide != nil {
		refused = decide(speech)
	}
	if wait := s.cfg.Latency; wait > 0 && !s.life.Sleep(r.Context(), wait) {
		return
	}
	if refused != nil {
		s.fail(w, refused)
		return
	}
	if speech.Format == "opus" {
		w.Header().Set("Content-Type", "audio/opus")
		_, _ = w.Write(Speech(speech.Input))
		return
	}
	// Frames of silence: MPEG 1, layer III, 128 kbit/s, 44.1 kHz, 417 bytes each.
	w.Header().Set("Content-Type", "audio/mpeg")
	_, _ = w.Write(bytes.Repeat(append([]byte{0xff, 0xfb, 0x90, 0}, make([]byte, 413)...), 40))
}

func (s *Server) checkSpeech(body []byte) (speech SpeechRequest, refused *Error) {
	var fields map[string]any
	if json.Unmarshal(body, &fields) != nil || json.Unmarshal(body, &speech) != nil {
		return speech, invalid("", "", "We could not parse the JSON body of your request.")
	}
	for name := range fields {
		if contract().Fields("speech")[name] == nil {
			return speech, invalid(name, "unknown_parameter", "Unknown parameter: '%s'.", name)
		}
	}
	format := speech.Format
	if format == "" {
		format = "mp3"
	}
	switch n := utf8.RuneCountInString(speech.Input); {
	case speech.Model == "":
		return speech, invalid("model", "missing_required_parameter", "you must provide a model parameter")
	case !slices.Contains(speechModels, speech.Model) && !slices.Contains(s.cfg.Models, speech.Model):
		return speech, &Error{Status: 404, Message: "The model `" + speech.Model + "` does not exist or you do not have access to it.", Code: "model_not_found"}
	case n == 0:
		return speech, invalid("input", "string_too_short", "[{'type': 'string_too_short', 'loc': ('body', 'input'), 'msg': 'String should have at least 1 character'}]")
	case n > maxSpeech:
		return speech, invalid("input", "string_too_long", "[{'type': 'string_too_long', 'loc': ('body', 'input'), 'msg': 'String should have at most %d characters'}]", maxSpeech)
	case !slices.Contains(voices, speech.Voice):
		return speech, invalid("voice", "invalid_value", "Input should be '%s'", strings.Join(voices, "', '"))
	case !slices.Contains(speechFormats, format):
		return speech, invalid("response_format", "invalid_value", "Input should be '%s'", strings.Join(speechFormats, "', '"))
	case fields["speed"] != nil && (speech.Speed < 0.25 || speech.Speed > 4):
		return speech, invalid("speed", "invalid_value", "Input should be between 0.25 and 4")
	case format != "mp3" && format != "opus", fields["stream_format"] != nil:
		return speech, invalid("response_format", "", "This emulator speaks as mp3 or opus, in one piece.")
	}
	return speech, nil
}
