// Package privacy gives people what the bot keeps of them: /export.
package privacy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"oneclaw/bridge"
	"oneclaw/bridge/chats"
	"oneclaw/internal/workspace"
	"oneclaw/storage"
)

// name is the file that people get.
const name = "export.zip"

// Config is what [New] takes.
type Config struct {
	Store storage.Store
	// Connected says which accounts somebody has connected.
	Connected func(ctx context.Context, call bridge.CommandCall) (string, error)
	// Redact masks the bot's own secrets.
	Redact func(string) string
	Now    func() time.Time
}

// Desk answers the commands.
type Desk struct{ cfg Config }

// New returns a desk.
func New(cfg Config) *Desk { return &Desk{cfg} }

// Commands is /export.
func (d *Desk) Commands() []bridge.Command {
	return []bridge.Command{{
		CommandInfo: chats.CommandInfo{Name: "export", Description: "Get everything I keep of you as a file (in a direct chat)"},
		Run:         d.export,
	}}
}

func (d *Desk) export(ctx context.Context, call bridge.CommandCall) (string, error) {
	if !call.Direct {
		return "What I keep of you I send in a direct chat only: write /export to me there.", nil
	}
	var out sum
	err := call.Attach(ctx, name, func(w io.Writer) (err error) {
		out, err = d.write(ctx, call, w)
		return err
	})
	if errors.Is(err, bridge.ErrNoFiles) {
		return "I cannot send files here. My operator can export what I keep of you.", nil
	}
	if workspace.NoRoom(err) {
		return fmt.Sprintf("There is no room for the file: %v.", workspace.Cause(err)), nil
	}
	if err != nil {
		return "", err
	}
	if err := call.Deed.Did(ctx, "export", ""); err != nil {
		return "", err
	}
	text := fmt.Sprintf("Everything I keep of you: %d conversations, %d files, and memory, schedules, settings, usage and receipts. README.txt in it says what is where.", out.conversations, out.files)
	if out.left > 0 {
		text += fmt.Sprintf(" %d files did not fit in; README.txt lists them, and I send each when you ask for it.", out.left)
	}
	return text + " A copy is in your workspace until you delete it or export again.", nil
}
