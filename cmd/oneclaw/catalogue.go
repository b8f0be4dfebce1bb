package main

import (
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync/atomic"

	"oneclaw/storage"
	"oneclaw/toolgroups"
	"oneclaw/toolgroups/core"
	"oneclaw/toolgroups/pdf"
)

// catalogue owns the tools of the program: it builds the families and the registry,
// and is the only one that swaps the registry for a new one.
type catalogue struct {
	registry atomic.Pointer[toolgroups.Registry]
	pdf      *pdf.PDF
}

// newCatalogue builds every tool. Nothing heavy starts here: PDFium begins with the
// first call.
//
// The store may be nil where tools are only described.
func newCatalogue(cfg Config, store storage.Store, log *slog.Logger) (*catalogue, error) {
	location, err := cfg.location()
	if err != nil {
		return nil, fmt.Errorf("time zone: %w", err)
	}
	private, err := cfg.allowPrivate()
	if err != nil {
		return nil, err
	}
	coreTools, err := core.New(core.Config{
		Location: location, AllowPrivate: private, History: historySearch{store}, Logger: log,
	})
	if err != nil {
		return nil, fmt.Errorf("core tools: %w", err)
	}
	c := &catalogue{}
	if c.pdf, err = pdf.New(pdf.Config{CacheDir: filepath.Join(cfg.DataDir, "cache"), Logger: log}); err != nil {
		return nil, fmt.Errorf("pdf tools: %w", err)
	}
	groups, err := toolgroups.BuiltinGroups(c.pdf.Group())
	if err != nil {
		return nil, err
	}
	registry, err := toolgroups.NewRegistry(toolgroups.RegistryConfig{Core: coreTools, Groups: groups})
	if err != nil {
		return nil, err
	}
	c.registry.Store(registry)
	return c, nil
}

// Registry returns the present one.
func (c *catalogue) Registry() *toolgroups.Registry { return c.registry.Load() }

// Close ends what tools have started.
func (c *catalogue) Close() error { return errors.Join(c.pdf.Close()) }

// describeTools builds the registry without a store, to be looked at and not used.
func describeTools(cfg Config) (*toolgroups.Registry, error) {
	tools, err := newCatalogue(cfg, nil, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, err
	}
	return tools.Registry(), tools.Close()
}
