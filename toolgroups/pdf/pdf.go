// Package pdf is the group of tools that read PDF files in the workspace: their properties,
// their text, and pictures of their pages.
//
// Files are read by PDFium, compiled to WebAssembly and run by wazero, in a child process
// for each call: the program starts itself with [ChildArgument], and the child runs
// [Serve]. A damaged or malicious file can at worst crash the child that reads it. The child
// has no access to the network or to other files, has bounded memory, and is killed when the
// call times out.
package pdf

import (
	"cmp"
	"embed"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"time"

	"oneclaw/internal/sandbox"
	"oneclaw/toolgroups"
)

// DefaultMaxMemory is the default of [Config].MaxMemory.
const DefaultMaxMemory = 256 << 20

//go:embed pdf.json
var manifests embed.FS

// Config configures a [PDF].
type Config struct {
	// CacheDir keeps the compiled code of PDFium (about 14 MB), so that a call
	// takes milliseconds instead of seconds. Empty means no cache.
	CacheDir string
	// MaxFile bounds a file that is read, in bytes. 0 means 50 MiB.
	MaxFile int64
	// MaxPixels bounds a picture; a larger page is rendered at a lower resolution. 0 means 18
	// million, A3 at 300 dpi.
	MaxPixels int
	// MaxMemory bounds PDFium's memory for one document, in bytes. Its process takes at most 192
	// MiB more. 0 means [DefaultMaxMemory].
	MaxMemory int64
	// Workers bounds the documents open in parallel; other calls wait. 0 means 2.
	Workers int
	// Now is the clock; nil means time.Now.
	Now func() time.Time
	// Logger receives errors that are not shown to the model. nil discards them.
	Logger *slog.Logger
}

// PDF holds the tools. It must be closed.
type PDF struct {
	cfg    Config
	engine *engine
	group  toolgroups.Group
}

// New makes the tools and starts nothing.
func New(cfg Config) (*PDF, error) {
	if cfg.MaxFile < 0 || cfg.MaxPixels < 0 || cfg.MaxMemory < 0 || cfg.Workers < 0 {
		return nil, errors.New("pdf: a limit is negative")
	}
	cfg.MaxMemory = cmp.Or(cfg.MaxMemory, DefaultMaxMemory)
	cfg.MaxFile = cmp.Or(cfg.MaxFile, 50<<20)
	cfg.MaxPixels = cmp.Or(cfg.MaxPixels, 18_000_000)
	cfg.Logger = cmp.Or(cfg.Logger, slog.New(slog.DiscardHandler))
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.MaxMemory > 4<<30 {
		return nil, errors.New("pdf: a document cannot take more than 4 GiB")
	}
	command, err := sandbox.Command(ChildArgument)
	if err != nil {
		return nil, fmt.Errorf("pdf: %w", err)
	}
	if cfg.CacheDir != "" {
		// The child has another working directory.
		if cfg.CacheDir, err = filepath.Abs(cfg.CacheDir); err != nil {
			return nil, fmt.Errorf("pdf: cache: %w", err)
		}
	}
	p := &PDF{cfg: cfg, engine: &engine{
		command: command,
		setup:   setup{CacheDir: cfg.CacheDir, MaxMemory: cfg.MaxMemory, MaxFile: cfg.MaxFile},
		slots:   make(chan struct{}, cmp.Or(cfg.Workers, 2)),
	}}
	p.group, err = toolgroups.ReadGroup(manifests, "pdf", map[string]toolgroups.Handler{
		"pdf_info":         toolgroups.TypedHandler(p.readInfo),
		"pdf_extract_text": toolgroups.TypedHandler(p.extractText),
		"pdf_render_page":  toolgroups.TypedHandler(p.renderPage),
	})
	return p, err
}

// Group returns the three tools.
func (p *PDF) Group() toolgroups.Group { return p.group }

// Close waits for running calls, whose time is bounded. Later calls fail.
func (p *PDF) Close() error {
	p.engine.close()
	return nil
}
