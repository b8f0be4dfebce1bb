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

// Model is the service name of a language model. Platforms use their own names.
const Model = "model"

// Directions of a line.
const (
	// Call is a request of the bot and its response.
	Call = "call"
	// In is a message received over a socket, Out one that was sent.
	In  = "in"
	Out = "out"
	// End says, in Error, why the recording ends.
	End = "end"
)

// Line is one exchange. JSON is embedded, other content is a string.
type Line struct {
	// Time is when it was sent or received, Ended when the response was complete.
	Time      time.Time `json:"time"`
	Ended     time.Time `json:"ended,omitzero"`
	Direction string    `json:"direction"`
	Service   string    `json:"service,omitempty"`
	Method    string    `json:"method,omitempty"`
	URL       string    `json:"url,omitempty"`
	Status    int       `json:"status,omitempty"`
	// Type is the media type of the response, Scopes are Slack's OAuth scopes in the answer to
	// auth.test.
	Type     string          `json:"type,omitempty"`
	Scopes   string          `json:"scopes,omitempty"`
	Request  json.RawMessage `json:"request,omitempty"`
	Response json.RawMessage `json:"response,omitempty"`
	// Error says why there is no response, or only a part of it.
	Error string `json:"error,omitempty"`
}

// Name returns the name of the called method: the end of its address.
func (l Line) Name() string {
	address, _, _ := strings.Cut(l.URL, "?")
	return path.Base(address)
}

// Recorder records traffic. It may be used concurrently.
type Recorder struct {
	// Keep is called with each line when its exchange has ended, one at a time.
	Keep func(Line)
	// Redact masks secrets.
	Redact func(string) string
	// Now is the clock.
	Now func() time.Time

	mu sync.Mutex
}

// Tap returns the tap for a service.
func (r *Recorder) Tap(service string) retry.Tap { return tap{r, service} }

func (r *Recorder) keep(l Line) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.Keep(l)
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
		l.Direction, l.Request = Out, t.Body("", data)
	} else {
		l.Response = t.Body("", data)
	}
	t.keep(l)
}

// Lines stores lines in memory. It may be used concurrently.
type Lines struct {
	mu  sync.Mutex
	all []Line
}

// Keep adds a line.
func (k *Lines) Keep(l Line) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.all = append(k.all, l)
}

// Take returns the lines and removes them.
func (k *Lines) Take() []Line {
	k.mu.Lock()
	defer k.mu.Unlock()
	all := k.all
	k.all = nil
	return all
}

// MaxFile is the default limit of a recording's file, in bytes.
const MaxFile = 64 << 20

// File is a recording on disk.
type File struct {
	file *os.File
	left int64
	log  *slog.Logger
	err  error
}

// Create creates the file, which must not exist, of at most limit bytes. Only this user can read
// it.
func Create(path string, limit int64, log *slog.Logger) (*File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if errors.Is(err, os.ErrExist) {
		return nil, fmt.Errorf("record to %s: it is there already; name a new file", path)
	}
	if err != nil {
		return nil, fmt.Errorf("record: %w", err)
	}
	return &File{file: f, left: limit - endSize, log: log}, nil
}

// endSize is reserved for the last line.
const endSize = 300

// Keep writes a line. If the file is full or cannot be written, that is logged and written as
// the last line, and nothing more is recorded; the bot keeps running.
func (f *File) Keep(l Line) {
	if f.err != nil {
		return
	}
	data, err := json.Marshal(l)
	if err == nil && int64(len(data)) >= f.left {
		err = errors.New("the recording is full, nothing more is kept")
		end, _ := json.Marshal(Line{Time: l.Time, Direction: End, Error: err.Error()}) // it always can
		_, _ = f.file.Write(append(end, '\n'))                                         // the log says the same
	} else if err == nil {
		f.left -= int64(len(data)) + 1
		_, err = f.file.Write(append(data, '\n'))
	}
	if f.err = err; err != nil {
		f.log.Warn("recording ends", "file", f.file.Name(), "err", err)
	}
}

// Close ends the recording.
func (f *File) Close() error { return f.file.Close() }

// Read returns the lines of a recording, without a last line that a crash has cut off.
func Read(r io.Reader) (all []Line, _ error) {
	for lines := json.NewDecoder(io.LimitReader(r, 4*MaxFile)); ; {
		var l Line
		err := lines.Decode(&l)
		switch {
		case err == nil:
			all = append(all, l)
		case len(all) == 0:
			return nil, errors.New("the file holds no recording")
		case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
			return all, nil
		default:
			return nil, fmt.Errorf("line %d is none of a recording: %w", len(all)+1, err)
		}
	}
}
