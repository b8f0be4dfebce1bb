// Package personal gives users a copy of their data (/export), and deletes their data when they
// ask for it. The bridge deletes its own data (bridge/privacy). A list of parts names the data of
// all other packages.
package personal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path"
	"regexp"
	"time"

	"golang.org/x/sync/errgroup"

	"oneclaw/bridge"
	"oneclaw/bridge/chats"
	"oneclaw/internal/rescue"
	"oneclaw/internal/wording"
	"oneclaw/internal/workspace"
	"oneclaw/storage"
	"oneclaw/toolgroups"
)

// exportFolder is the folder of the copies in a workspace. They are not part of a copy themselves.
const exportFolder = "export"

// copyName matches the file name of a copy.
var copyName = regexp.MustCompile(`^oneclaw-[0-9]{4}-[0-9]{2}-[0-9]{2}\.zip$`)

// MaxFileBytes bounds the files in a copy: Telegram accepts at most 50 MB from bots
// (https://core.telegram.org/bots/api#senddocument), and the other data needs room, too.
const MaxFileBytes = 40 << 20

// Person is the user to whom data belongs.
type Person struct {
	// User is platform:id. It is also the owner of data from direct chats.
	User string
	// DirectChat is the user's direct chat.
	DirectChat chats.Chat
}

// Part is one kind of personal data.
type Part struct {
	// Name is the name of the data's file in a copy, without .json. About describes the data in a line.
	Name, About string
	// Data returns the data to encode as JSON, nil if there is none. Data itself may be nil.
	Data func(ctx context.Context, p Person) (any, error)
	// Forget deletes the data, and may be repeated. It is nil if the bridge deletes the data, or if
	// the data is kept.
	Forget func(ctx context.Context, p Person) error
	// Move moves the data of a chat, platform:id, to the chat that continues it, and may be repeated. It is
	// nil for data that no shared chat has, or that the bridge moves.
	Move func(ctx context.Context, from, to string) error
	// Prune deletes what is too old. It is nil if nothing is, or if the bridge deletes it.
	Prune func(ctx context.Context) error
}

// Config configures an [Exporter]. All fields but Logger are required.
type Config struct {
	Store storage.Store
	// Parts are the data besides conversations, receipts and files.
	Parts []Part
	Now   func() time.Time
	// Logger may be nil.
	Logger *slog.Logger
}

// Exporter runs /export. It may be used concurrently.
type Exporter struct{ cfg Config }

// New returns an exporter.
func New(cfg Config) *Exporter { return &Exporter{cfg} }

// Commands returns /export.
func (d *Exporter) Commands() []bridge.Command {
	return []bridge.Command{{
		CommandInfo: chats.CommandInfo{Name: "export", Description: "Get a copy of your data"}, Ephemeral: true, UsesFiles: true, Run: d.export,
	}}
}

// Forget deletes a user's data in all parts.
func (d *Exporter) Forget(ctx context.Context, user string, direct chats.Chat) error {
	return d.each(func(p Part) error {
		if p.Forget == nil {
			return nil
		}
		return p.Forget(ctx, Person{user, direct})
	})
}

// Move moves the data of a chat to the chat that continues it. Telegram gives a group another id when it
// becomes a supergroup.
func (d *Exporter) Move(ctx context.Context, from, to chats.Chat) error {
	return d.each(func(p Part) error {
		if p.Move == nil {
			return nil
		}
		return p.Move(ctx, from.String(), to.String())
	})
}

// Prune deletes what is too old.
func (d *Exporter) Prune(ctx context.Context) error {
	return d.each(func(p Part) error {
		if p.Prune == nil {
			return nil
		}
		return p.Prune(ctx)
	})
}

// each calls do with all parts, also with those behind one that fails.
func (d *Exporter) each(do func(Part) error) error {
	var failed []error
	for _, part := range d.cfg.Parts {
		if err := do(part); err != nil {
			failed = append(failed, fmt.Errorf("personal: %s: %w", part.Name, err))
		}
	}
	return errors.Join(failed...)
}

func (d *Exporter) export(ctx context.Context, call bridge.CommandCall) (string, error) {
	if !call.Direct {
		return "Please send me /export in a direct chat: your data is private.", nil
	}
	chat, err := chats.ParseChat(call.Chat)
	if err == nil {
		err = call.Author.Record(ctx, "export", "")
	}
	if err != nil {
		return "", err
	}
	root, err := workspace.OpenWithin(call.Workspace, call.Quota, call.Reserve)
	if err != nil {
		return "", err
	}
	defer func() { _ = root.Close() }()
	name := path.Join(exportFolder, "oneclaw-"+d.cfg.Now().UTC().Format(time.DateOnly)+".zip")
	c := &exportCopy{store: d.cfg.Store, root: root, person: Person{call.User, chat.WithoutThread()}, now: d.cfg.Now().UTC(), log: cmp.Or(d.cfg.Logger, slog.New(slog.DiscardHandler))}
	switch err := c.writeTo(ctx, d.cfg.Parts, name); {
	case workspace.IsFull(err):
		return "I could not write the copy: " + workspace.Cause(err).Error() + ".", nil
	case errors.Is(err, workspace.ErrNotFile):
		return "I could not write the copy: a file of yours has the name of its folder, `" + exportFolder + "`. Ask me to rename that file, then send /export again.", nil
	case err != nil:
		return "", fmt.Errorf("export the data of %s: %w", call.User, err)
	}
	call.Attach(toolgroups.File{Path: name})
	text := fmt.Sprintf("This is your data: %s and %s, what I remember, and more. `README.txt` in it explains the files.",
		wording.Plural(c.conversationCount, "conversation", "conversations"), wording.Plural(c.fileCount, "file", "files"))
	if len(c.omitted) > 0 {
		text += fmt.Sprintf(" %s did not fit; ask me for them one by one.", wording.Plural(len(c.omitted), "file", "files"))
	}
	if len(c.unreadable) > 0 {
		c.log.Error("an export is incomplete: pieces are unreadable, see the log at level debug", "of", call.User, "pieces", len(c.unreadable))
		text += fmt.Sprintf(" I could not read %s of it; `README.txt` says which.", wording.Plural(len(c.unreadable), "piece", "pieces"))
	}
	return text + " It is in my workspace as " + wording.InlineCode(name) + ".", nil
}

// writeTo writes a copy to a file in the workspace.
func (c *exportCopy) writeTo(ctx context.Context, parts []Part, name string) error {
	r, w := io.Pipe()
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		err := rescue.Do(func() error { return c.write(ctx, w, parts) })
		_ = w.CloseWithError(err) // never fails
		return err
	})
	group.Go(func() error {
		err := rescue.Do(func() error {
			_, err := c.root.WriteFrom(name, r)
			return err
		})
		_ = r.CloseWithError(errors.Join(err, io.ErrClosedPipe)) // never fails
		return err
	})
	return group.Wait()
}
