package agent

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"

	"oneclaw/internal/wording"
	"oneclaw/toolgroups"
)

// NoteMasked is appended to a result in which secrets were masked. A model that writes such a text back
// to its source would destroy the secrets.
const NoteMasked = "\n[Secrets in this result are hidden from you and shown as " + wording.Mask + ". Do not write this text back over its source, and do not try to find them out.]"

// withMasking returns the tool with secrets masked in its results. They are masked before long results
// are cut, because half a secret cannot be recognized. A tool that cuts a text itself masks it so before.
func (r *run) withMasking(tool toolgroups.Tool) toolgroups.Tool {
	mask := r.turn.Redact
	if mask == nil {
		return tool
	}
	inner, lines := tool.Run, r.turn.RedactLines
	if lines == nil {
		lines = mask
	}
	tool.Run = func(ctx context.Context, call toolgroups.Call) (toolgroups.Result, error) {
		var masked atomic.Bool
		call.RedactLines = lines
		call.Redact = func(text string) string {
			out := mask(text)
			if out != text {
				masked.Store(true)
			}
			return out
		}
		res, err := inner(ctx, call)
		if err != nil {
			return toolgroups.Result{}, maskError(err, mask)
		}
		if text := mask(res.Text); text != res.Text || masked.Load() && strings.Contains(text, wording.Mask) {
			res.Text = text + NoteMasked
		}
		for i := range res.Files {
			res.Files[i].Caption = mask(res.Files[i].Caption)
		}
		for i, s := range res.Sources {
			res.Sources[i] = toolgroups.Source{Title: mask(s.Title), URL: mask(s.URL)}
		}
		for i := range res.Announced {
			res.Announced[i].Text = lines(res.Announced[i].Text)
		}
		return res, nil
	}
	return tool
}

func maskError(err error, mask func(string) string) error {
	if fault, ok := errors.AsType[*toolgroups.Error](err); ok {
		return &toolgroups.Error{Code: fault.Code, Message: mask(fault.Message), Own: fault.Own}
	}
	if text := mask(err.Error()); text != err.Error() {
		return errors.New(text)
	}
	return err
}

// redactReply returns the visible text of a reply with secrets masked. Calls are not masked, because
// they have to do what the user asked for.
func (r *run) redactReply(text string) string {
	text = VisibleText(text)
	if r.turn.Redact == nil {
		return text
	}
	return r.turn.Redact(text)
}

// thoughtPrefix begins the reasoning of a reply whose thought stood in its text. It is on record, and is not sent
// to a model again.
const thoughtPrefix = "thought/1 "

// maxThought bounds such a thought, in bytes.
const maxThought = 32 << 10

// packThought returns a thought in the form in which a conversation stores it, with secrets masked.
func (r *run) packThought(thought string) string {
	if r.turn.Redact != nil {
		thought = r.turn.Redact(thought)
	}
	return thoughtPrefix + clip(thought, maxThought)
}
