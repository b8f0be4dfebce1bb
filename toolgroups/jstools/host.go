package jstools

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"

	"oneclaw/internal/sandbox"
	"oneclaw/internal/workspace"
	"oneclaw/toolgroups"
	"oneclaw/toolgroups/files"
)

const (
	// maxFileSize bounds a file that a script reads or writes at once, in bytes.
	maxFileSize = 1 << 20
	// maxWritten bounds the bytes that one run writes to files, downloads included.
	maxWritten = 64 << 20
)

// access is what a script may do outside: by default it reads the web.
type access struct {
	sends  bool // send requests that change something
	google bool // use the Google account of the user
	// hosts are those that the script names, and may reach without asking.
	hosts []string
	// named are those that the script and its parameters name: what the script reads does not choose them.
	named []string
}

// host provides the host functions for one run of a script.
type host struct {
	tools  *Tools
	root   *workspace.Root
	scope  toolgroups.Scope
	access access
	// bytesWritten also says whether the script may have put words of the model where tools read them.
	bytesWritten atomic.Int64
	requests     atomic.Int64
	// readOthers is set once the script has read anything that others may have written.
	readOthers atomic.Bool
}

func (h *host) functions() map[string]sandbox.Function {
	functions := map[string]sandbox.Function{
		"fetch":           decodeArgument(h.fetch),
		"downloadToFile":  decodeArgument(h.download),
		"uploadMultipart": decodeArgument(h.upload),
		"readFile":        decodeArgument(h.readFile),
		"writeFile":       decodeArgument(h.writeFile),
		"exists":          decodeArgument(h.exists),
		"time":            decodeArgument(h.currentTime),
	}
	if account := h.tools.cfg.Google; h.access.google && account != nil {
		functions["googleToken"] = func(ctx context.Context, _ json.RawMessage) (any, error) {
			return account.AccessToken(ctx, h.scope)
		}
		functions["googleEmail"] = func(ctx context.Context, _ json.RawMessage) (any, error) {
			return account.Email(ctx, h.scope)
		}
	}
	return functions
}

// decodeArgument makes a host function from one that takes its argument as a struct.
func decodeArgument[In any](f func(context.Context, In) (any, error)) sandbox.Function {
	return func(ctx context.Context, argument json.RawMessage) (any, error) {
		var in In
		if err := json.Unmarshal(argument, &in); err != nil {
			return nil, errors.New("the arguments are of the wrong type")
		}
		return f(ctx, in)
	}
}

type fileArgs struct {
	Path    string `json:"path"`
	Content string `json:"content"`
	Append  bool   `json:"append"`
}

func (h *host) readFile(_ context.Context, in fileArgs) (any, error) {
	h.readOthers.Store(true)
	data, err := h.root.ReadFile(in.Path, maxFileSize)
	if err != nil {
		return nil, fileError(in.Path, err)
	}
	return string(data), nil
}

func (h *host) writeFile(_ context.Context, in fileArgs) (any, error) {
	if len(in.Content) > maxFileSize {
		return nil, fmt.Errorf("the content for %.200q is larger than the limit of %d bytes", in.Path, maxFileSize)
	}
	if err := h.countWritten(int64(len(in.Content))); err != nil {
		return nil, err
	}
	if err := h.root.WriteFile(in.Path, []byte(in.Content), in.Append); err != nil {
		return nil, fileError(in.Path, err)
	}
	return nil, nil
}

func (h *host) exists(_ context.Context, in fileArgs) (any, error) {
	_, err := h.root.Stat(in.Path)
	return err == nil, nil
}

// countWritten adds n to the bytes written by the run. It returns an error above the limit.
func (h *host) countWritten(n int64) error {
	if h.bytesWritten.Add(n) > maxWritten {
		return fmt.Errorf("this run has written more than the limit of %d MiB", maxWritten>>20)
	}
	return nil
}

func fileError(path string, err error) error {
	text, _ := files.Explain(path, err, maxFileSize)
	return errors.New(text)
}

type timeArgs struct {
	Timezone string `json:"timezone"`
	Format   string `json:"format"`
}

func (h *host) currentTime(_ context.Context, in timeArgs) (any, error) {
	text, ok := toolgroups.FormatTime(h.tools.cfg.Now().In(h.tools.cfg.Location()), in.Timezone, in.Format)
	if !ok {
		return nil, fmt.Errorf("unknown time zone %.64q: use an IANA name such as Europe/Berlin", in.Timezone)
	}
	return text, nil
}
