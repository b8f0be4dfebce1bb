// Package personal gives people a copy of what the bot keeps of them (/export), and takes away
// what the rest of the program keeps when they want to be forgotten; what the bridge keeps it
// takes away itself (bridge/privacy). What there is stands in one list of parts.
package personal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path"
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

// folder is where copies lie in a workspace. They are in no copy themselves.
const folder = "export"

// MaxFiles bounds the files in a copy, in bytes: Telegram takes no more than 50 MB from bots
// (https://core.telegram.org/bots/api#senddocument), and what else is in it needs room, too.
const MaxFiles = 40 << 20

// Person is the user whose data it is.
type Person struct {
	// User is platform:id, and the owner of what was said and made in direct chats.
	User string
	// Direct is their direct chat.
	Direct chats.Chat
}

// Part is one kind of what is kept of people.
type Part struct {
	// Name is that of its file in a copy, without .json; About says in a line what it has.
	Name, About string
	// Of returns what is kept, as JSON has it; nil for nothing. It is nil for what is copied
	// otherwise.
	Of func(ctx context.Context, p Person) (any, error)
	// Forget takes it away. It is nil where the bridge does that, or where it stays. It bears
	// repeating.
	Forget func(ctx context.Context, p Person) error
}

// Config is what a [Desk] is made of. All of it is needed.
type Config struct {
	Store storage.Store
	// Parts are what is kept besides conversations, receipts and files.
	Parts []Part
	Now   func() time.Time
	// Log, if not nil, is for the operator.
	Log *slog.Logger
}

// Exporter has /export. It may be used concurrently.
type Exporter struct{ cfg Config }

// New returns a desk that is ready.
func New(cfg Config) *Exporter { return &Exporter{cfg} }

// Commands is /export.
func (d *Exporter) Commands() []bridge.Command {
	return []bridge.Command{{
		CommandInfo: chats.CommandInfo{Name: "export", Description: "Get a copy of your data"}, Alone: true, Files: true, Run: d.export,
	}}
}

// Forget takes away what the parts keep of a person.
func (d *Exporter) Forget(ctx context.Context, user string, direct chats.Chat) error {
	for _, part := range d.cfg.Parts {
		if part.Forget == nil {
			continue
		}
		if err := part.Forget(ctx, Person{user, direct}); err != nil {
			return fmt.Errorf("forget the %s of %s: %w", part.Name, user, err)
		}
	}
	return nil
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
	name := path.Join(folder, "oneclaw-"+d.cfg.Now().UTC().Format(time.DateOnly)+".zip")
	c := &exported{store: d.cfg.Store, root: root, person: Person{call.User, chat.WithoutThread()}, now: d.cfg.Now().UTC(), log: cmp.Or(d.cfg.Log, slog.New(slog.DiscardHandler))}
	if err := c.writeTo(ctx, d.cfg.Parts, name); workspace.NoRoom(err) {
		return "I could not write the copy: " + workspace.Cause(err).Error() + ".", nil
	} else if err != nil {
		return "", fmt.Errorf("export what is kept of %s: %w", call.User, err)
	}
	call.Attach(toolgroups.File{Path: name})
	text := fmt.Sprintf("This is your data: %s and %s, what I remember, and more. `README.txt` in it explains the files.",
		wording.Count(c.conversations, "conversation", "conversations"), wording.Count(c.files, "file", "files"))
	if len(c.left) > 0 {
		text += fmt.Sprintf(" %s did not fit; ask me for them one by one.", wording.Count(len(c.left), "file", "files"))
	}
	if len(c.unread) > 0 {
		c.log.Error("an export lacks what cannot be read: the log says more at the level debug", "of", call.User, "pieces", len(c.unread))
		text += fmt.Sprintf(" I could not read %s of it; `README.txt` says which.", wording.Count(len(c.unread), "piece", "pieces"))
	}
	return text + " It is in my workspace as " + wording.Code(name) + ".", nil
}

// writeTo writes a copy to a file of the workspace.
func (c *exported) writeTo(ctx context.Context, parts []Part, name string) error {
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
