package personal

import (
	"archive/zip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path"
	"strings"
	"time"

	"oneclaw/bridge/conversation"
	"oneclaw/bridge/receipts"
	"oneclaw/internal/rescue"
	"oneclaw/internal/workspace"
	"oneclaw/storage"
)

// exportCopy is a copy in progress.
type exportCopy struct {
	store  storage.Store
	root   *workspace.Root
	person Person
	log    *slog.Logger
	now    time.Time

	zip           *zip.Writer
	conversations int
	files         int
	left          []string // files that did not fit
	unread        []string // what could not be read
	failed        error    // why the copy cannot be written
	about         []string // lines of README.txt
}

// sink is the output of a copy. It records its error, after which reading is pointless.
type sink struct {
	io.Writer
	c *exportCopy
}

// Write implements io.Writer.
func (s sink) Write(data []byte) (int, error) {
	n, err := s.Writer.Write(data)
	s.c.failed = errors.Join(s.c.failed, err)
	return n, err
}

// write writes the whole copy, without what cannot be read.
func (c *exportCopy) write(ctx context.Context, w io.Writer, parts []Part) error {
	c.zip = zip.NewWriter(sink{w, c})
	for _, step := range []struct {
		name string
		do   func(context.Context) error
	}{{"conversations", c.own}, {"what you have asked in groups", c.asked}, {"receipts", c.receipts}} {
		if err := c.skipUnreadable(ctx, step.name, func() error { return step.do(ctx) }); err != nil {
			return err
		}
	}
	for _, part := range parts {
		if err := c.skipUnreadable(ctx, part.Name, func() error { return c.part(ctx, part) }); err != nil {
			return fmt.Errorf("copy %s: %w", part.Name, err)
		}
	}
	if err := c.skipUnreadable(ctx, "files", func() error { return c.workspace(ctx) }); err != nil {
		return err
	}
	if err := c.readme(); err != nil {
		return err
	}
	return c.zip.Close()
}

// skipUnreadable copies a part, and records if it could not be read. It returns errors that may be
// temporary: the store does not answer, or the copy cannot be written.
func (c *exportCopy) skipUnreadable(ctx context.Context, name string, copyPiece func() error) error {
	err := rescue.Do(copyPiece)
	if err == nil || c.failed != nil || ctx.Err() != nil {
		return err
	}
	if _, store := c.store.Get(ctx, "export"); store != nil && !errors.Is(store, storage.ErrNotFound) {
		return err
	}
	c.log.Debug("left out of an export", "what", name, "of", c.person.User, "err", err)
	c.unread = append(c.unread, strings.ToValidUTF8(name, "?"))
	return nil
}

func (c *exportCopy) create(name string) (io.Writer, error) {
	return c.zip.CreateHeader(&zip.FileHeader{Name: name, Method: zip.Deflate, Modified: c.now})
}

// put writes a file with this content.
func (c *exportCopy) put(name string, data []byte) error {
	w, err := c.create(name)
	if err == nil {
		_, err = w.Write(data)
	}
	return err
}

func (c *exportCopy) say(name, about string) { c.about = append(c.about, name+"\n    "+about) }

// own copies the conversations of direct chats, and those of tasks there.
func (c *exportCopy) own(ctx context.Context) error {
	all, err := conversation.Conversations(ctx, c.store, c.person.User)
	if err != nil {
		return err
	}
	for _, one := range all {
		if err := c.skipUnreadable(ctx, "conversation "+one.Title, func() error { return c.conversation(one, conversation.Messages(ctx, c.store, one.Log())) }); err != nil {
			return err
		}
	}
	return nil
}

// asked copies what the user asked in shared chats.
func (c *exportCopy) asked(ctx context.Context) error {
	for a, err := range conversation.AskedBy(ctx, c.store, c.person.User) {
		if err != nil {
			return err
		}
		one := conversation.Conversation{Chat: a.Chat, Title: "What you asked in " + a.Chat.String()}
		if err := c.skipUnreadable(ctx, one.Title, func() error { return c.conversation(one, conversation.TurnsBy(ctx, c.store, a.Log, c.person.User)) }); err != nil {
			return err
		}
	}
	if c.conversations > 0 {
		c.say("conversations/", "Our conversations: the .md files for reading, the .jsonl files with everything that is stored. From groups they have your questions and my answers.")
	}
	return nil
}

// receipts copies the receipts of messages, which are kept for a week.
func (c *exportCopy) receipts(ctx context.Context) error {
	var w io.Writer
	for j, err := range receipts.By(ctx, c.store, c.person.User) {
		if err == nil && w == nil {
			c.say("receipts.jsonl", "The outcome of each of your messages of the last week.")
			w, err = c.create("receipts.jsonl")
		}
		if err == nil {
			err = json.NewEncoder(w).Encode(j)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (c *exportCopy) part(ctx context.Context, p Part) error {
	if p.Of == nil {
		return nil
	}
	value, err := p.Of(ctx, c.person)
	if err != nil || value == nil {
		return err
	}
	data, err := json.MarshalIndent(value, "", "  ")
	if err != nil || string(data) == "null" || string(data) == "{}" || string(data) == "[]" {
		return err
	}
	c.say(p.Name+".json", p.About)
	return c.put(p.Name+".json", append(data, '\n'))
}

// workspace copies files while there is room.
func (c *exportCopy) workspace(ctx context.Context) error {
	dir, err := os.OpenRoot(c.root.Dir())
	if err != nil {
		return err
	}
	defer func() { _ = dir.Close() }()
	room := int64(MaxFiles)
	err = fs.WalkDir(dir.FS(), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil && name == "." {
			return err
		} else if err != nil {
			return c.skipUnreadable(ctx, name, func() error { return err }) // the walk continues after it
		}
		if name == folder {
			return fs.SkipDir
		}
		if !entry.Type().IsRegular() {
			return nil
		}
		info, err := entry.Info()
		if err != nil {
			return c.skipUnreadable(ctx, name, func() error { return err })
		}
		if room -= info.Size(); room < 0 {
			room += info.Size()
			c.left = append(c.left, name)
			return nil
		}
		return c.skipUnreadable(ctx, name, func() error { return c.file(dir, name, info.Size()) })
	})
	if c.files > 0 {
		c.say("files/", "The files that you sent me, and that I made for you.")
	}
	return err
}

func (c *exportCopy) file(dir *os.Root, name string, size int64) error {
	f, err := dir.Open(name)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	w, err := c.create(path.Join("files", name))
	if err != nil {
		return err
	}
	c.files++
	_, err = io.Copy(w, io.LimitReader(f, size)) // it may grow meanwhile
	return err
}

func (c *exportCopy) readme() error {
	text := fmt.Sprintf("The data that OneClaw stores about %s, as of %s.\n\n%s\n\n"+
		"Not included: the tokens of connected accounts, which are never shown; messages of others, unless yours pointed at them; older group messages, which have no recorded author.\n",
		c.person.User, c.now.Format(time.RFC1123), strings.Join(c.about, "\n\n"))
	if len(c.left) > 0 {
		text += "\nFiles that did not fit:\n  " + strings.Join(c.left, "\n  ") + "\n"
	}
	if len(c.unread) > 0 {
		text += "\nCould not be read:\n  " + strings.Join(c.unread, "\n  ") + "\n"
	}
	return c.put("README.txt", []byte(text))
}
