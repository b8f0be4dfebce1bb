// Package record records the traffic with platforms and models, as lines of JSON with secrets
// masked, and reads such recordings.
package record

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path"
	"strings"
	"sync"
	"time"

	"oneclaw/internal/retry"
)

// ModelService is the service name of language models. Platforms use their own names.
const ModelService = "model"

// Directions of a line.
const (
	// Call is a request from the bot and the response to it.
	Call = "call"
	// In is a message received over a WebSocket, Out a message sent.
	In  = "in"
	Out = "out"
	// End is the last line of a recording that ended early. Error has the reason.
	End = "end"
)

// Line is one exchange. JSON bodies are embedded, other bodies are strings.
type Line struct {
	// Time is the time of sending or receiving, EndedAt the time at which the response was complete.
	Time      time.Time `json:"time"`
	EndedAt   time.Time `json:"ended,omitzero"`
	Direction string    `json:"direction"`
	Service   string    `json:"service,omitempty"`
	Method    string    `json:"method,omitempty"`
	URL       string    `json:"url,omitempty"`
	Status    int       `json:"status,omitempty"`
	// MediaType is the media type of the response. Scopes are the OAuth scopes in Slack's response to
	// auth.test.
	MediaType   string          `json:"type,omitempty"`
	OAuthScopes string          `json:"scopes,omitempty"`
	Request     json.RawMessage `json:"request,omitempty"`
	Response    json.RawMessage `json:"response,omitempty"`
	// Error is the error because of which the response is missing or incomplete.
	Error string `json:"error,omitempty"`
}

// Name returns the name of the called method: the last element of the URL's path.
func (l Line) Name() string {
	address, _, _ := strings.Cut(l.URL, "?")
	return path.Base(address)
}

// Recorder records traffic. It may be used concurrently.
type Recorder struct {
	// OnLine is called with each line when the exchange has ended, one call at a time.
	OnLine func(Line)
	// Redact masks secrets.
	Redact func(string) string
	// Now returns the current time.
	Now func() time.Time

	mu sync.Mutex
}

// Tap returns the tap for a service.
func (r *Recorder) Tap(service string) retry.Tap { return tap{r, service} }

func (r *Recorder) record(l Line) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.OnLine(l)
}

type tap struct {
	*Recorder
	service string
}

// Transport implements [retry.Tap].
func (t tap) Transport(next http.RoundTripper) http.RoundTripper { return transport{t, next} }

// Frame implements [retry.Tap].
func (t tap) Frame(sent bool, data []byte) {
	l := Line{Time: t.Now(), Direction: In, Service: t.service}
	if sent {
		l.Direction, l.Request = Out, t.EncodeBody("", data)
	} else {
		l.Response = t.EncodeBody("", data)
	}
	t.record(l)
}

// LineBuffer stores lines in memory. It may be used concurrently.
type LineBuffer struct {
	mu    sync.Mutex
	lines []Line
}

// Add adds a line.
func (k *LineBuffer) Add(l Line) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.lines = append(k.lines, l)
}

// Take returns the lines and removes them.
func (k *LineBuffer) Take() []Line {
	k.mu.Lock()
	defer k.mu.Unlock()
	all := k.lines
	k.lines = nil
	return all
}

// MaxFile is the default limit of a recording file, in bytes.
const MaxFile = 64 << 20

// File is a recording on disk.
type File struct {
	file      *os.File
	bytesLeft int64
	log       *slog.Logger
	err       error
}

// Create creates a file for a recording of at most limit bytes. The file must not exist. Only the
// current user can read it.
func Create(path string, limit int64, log *slog.Logger) (*File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if errors.Is(err, os.ErrExist) {
		return nil, fmt.Errorf("record to %s: the file already exists; name a new file", path)
	}
	if err != nil {
		return nil, fmt.Errorf("record: %w", err)
	}
	return &File{file: f, bytesLeft: limit - endLineSize, log: log}, nil
}

// endLineSize is the number of bytes reserved for the last line.
const endLineSize = 300

// Append writes a line. If the file is full or cannot be written, Append logs that and records
// nothing more; the bot keeps running. In a full file the last line gives the reason.
func (f *File) Append(l Line) {
	if f.err != nil {
		return
	}
	data, err := json.Marshal(l)
	if err == nil && int64(len(data)) >= f.bytesLeft {
		err = errors.New("the recording is full")
		end, _ := json.Marshal(Line{Time: l.Time, Direction: End, Error: err.Error()}) // it always can
		_, _ = f.file.Write(append(end, '\n'))                                         // the log says the same
	} else if err == nil {
		f.bytesLeft -= int64(len(data)) + 1
		_, err = f.file.Write(append(data, '\n'))
	}
	if f.err = err; err != nil {
		f.log.Warn("recording stopped", "file", f.file.Name(), "err", err)
	}
}

// Close closes the file.
func (f *File) Close() error { return f.file.Close() }

// Read returns the lines of a recording. It ignores an incomplete last line, which a crash may leave.
func Read(r io.Reader) (all []Line, _ error) {
	for lines := json.NewDecoder(io.LimitReader(r, 4*MaxFile)); ; {
		var l Line
		err := lines.Decode(&l)
		switch {
		case err == nil:
			all = append(all, l)
		case len(all) == 0:
			return nil, errors.New("the file is not a recording")
		case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
			return all, nil
		default:
			return nil, fmt.Errorf("line %d of the recording is invalid: %w", len(all)+1, err)
		}
	}
}
