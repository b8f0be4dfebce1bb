package memory

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"unicode/utf8"

	"oneclaw/internal/wording"
	"oneclaw/toolgroups"
)

// Error codes of save_memory.
const (
	CodeDuplicate = "duplicate_detected"
	CodeSave      = "save_failed"
)

// maxPreview bounds the old memory in the result of a save, in characters.
const maxPreview = 500

//go:embed save_memory.json
var manifests embed.FS

// Tool returns the core tool save_memory.
func (m *Memory) Tool() (toolgroups.Tool, error) {
	return toolgroups.ReadTool(manifests, "save_memory", toolgroups.TypedHandler(m.handleSave))
}

type saveArgs struct {
	Content  string `json:"content"`
	Category string `json:"category"`
}

func (m *Memory) handleSave(ctx context.Context, call toolgroups.Call, in saveArgs) (toolgroups.Result, error) {
	before, section, err := m.Save(ctx, call.Owner, in.Category, in.Content)
	switch {
	case err == nil:
		return toolgroups.TextResult("Saved in %s. Memory before this:\n%s", section, previewOf(before))
	case call.Owner == "":
		return toolgroups.Result{}, toolgroups.Errorf(CodeSave, "There is no memory here.")
	case errors.Is(err, ErrInvalid):
		return toolgroups.Result{}, toolgroups.Errorf(toolgroups.CodeInvalid,
			"'content' must have 1 to %d characters. Save a short note.", MaxNoteLength)
	case errors.Is(err, ErrDuplicate):
		return toolgroups.Result{}, toolgroups.Errorf(CodeDuplicate, "Memory already holds this. Nothing has to be saved.")
	case errors.Is(err, ErrFull):
		return toolgroups.Result{}, toolgroups.Errorf(CodeSave,
			"Nothing was saved: memory is full (%d notes, %d characters). Ask the user what may be forgotten.", MaxNotes, MaxText)
	case ctx.Err() != nil:
		return toolgroups.Result{}, ctx.Err()
	}
	m.cfg.Logger.Error("memory was not saved", "owner", call.Owner, "err", err)
	return toolgroups.Result{}, toolgroups.Errorf(CodeSave, "The note could not be saved. Try again later.")
}

// previewOf returns a memory, shortened to maxPreview.
func previewOf(memory string) string {
	if memory == "" {
		return "(empty)"
	}
	head, rest := wording.SplitAt(memory, maxPreview)
	if rest == "" {
		return memory
	}
	return fmt.Sprintf("%s…\n[%d characters in all]", head, utf8.RuneCountInString(memory))
}
