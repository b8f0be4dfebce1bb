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

// exportCopy is an export in progress.
type exportCopy struct {
	store  storage.Store
	root   *workspace.Root
	person Person
	log    *slog.Logger
	now    time.Time

	zip               *zip.Writer
	conversationCount int
	fileCount         int
	omitted           []string // files that did not fit
	unreadable        []string // pieces that could not be read
	writeErr          error    // error of writing the copy
	readmeLines       []string // lines of README.txt
}

// errorRecorder is the output of a copy. It records write errors, after which the copy is given up.
type errorRecorder struct {
	io.Writer
	c *exportCopy
}

// Write implements io.Writer.
func (s errorRecorder) Write(data []byte) (int, error) {
	n, err := s.Writer.Write(data)
	s.c.writeErr = errors.Join(s.c.writeErr, err)
	return n, err
}

// write writes the whole copy. It leaves out pieces that cannot be read.
func (c *exportCopy) write(ctx context.Context, w io.Writer, parts []Part) error {
	c.zip = zip.NewWriter(errorRecorder{w, c})
	for _, step := range []struct {
		name string
		do   func(context.Context) error
	}{{"conversations", c.copyConversations}, {"what you have asked in groups", c.copyAskedTurns}, {"receipts", c.copyReceipts}} {
		if err := c.skipUnreadable(ctx, step.name, func() error { return step.do(ctx) }); err != nil {
			return err
		}
	}
	for _, part := range parts {
		if err := c.skipUnreadable(ctx, part.Name, func() error { return c.copyPart(ctx, part) }); err != nil {
			return fmt.Errorf("copy %s: %w", part.Name, err)
		}
	}
	if err := c.skipUnreadable(ctx, "files", func() error { return c.copyWorkspace(ctx) }); err != nil {
		return err
	}
	if err := c.writeReadme(); err != nil {
		return err
	}
	return c.zip.Close()
}

// skipUnreadable copies a piece, and records its name if it could not be read. It returns an error if
// the store does not answer or the copy cannot be written, because these may be temporary.
func (c *exportCopy) skipUnreadable(ctx context.Context, name string, copyPiece func() error) error {
	err := rescue.Do(copyPiece)
	if err == nil || c.writeErr != nil || ctx.Err() != nil {
		return err
	}
	if _, store := c.store.Get(ctx, "export"); store != nil && !errors.Is(store, storage.ErrNotFound) {
		return err
	}
	c.log.Debug("unreadable piece left out of an export", "what", name, "of", c.person.User, "err", err)
	c.unreadable = append(c.unreadable, strings.ToValidUTF8(name, "?"))
	return nil
}

func (c *exportCopy) createEntry(name string) (io.Writer, error) {
	return c.zip.CreateHeader(&zip.FileHeader{Name: name, Method: zip.Deflate, Modified: c.now})
}

// writeEntry adds a file with this content to the archive.
func (c *exportCopy) writeEntry(name string, data []byte) error {
	w, err := c.createEntry(name)
	if err == nil {
		_, err = w.Write(data)
	}
	return err
}

func (c *exportCopy) addReadmeLine(name, about string) {
	c.readmeLines = append(c.readmeLines, name+"\n    "+about)
}

// copyConversations copies the conversations in direct chats, including those of tasks.
func (c *exportCopy) copyConversations(ctx context.Context) error {
	all, err := conversation.Conversations(ctx, c.store, c.person.User)
	if err != nil {
		return err
	}
	for _, one := range all {
		if err := c.skipUnreadable(ctx, "conversation "+one.Title, func() error { return c.copyConversation(one, conversation.Messages(ctx, c.store, one.Log())) }); err != nil {
			return err
		}
	}
	return nil
}

// copyAskedTurns copies the user's questions in shared chats, with the answers.
func (c *exportCopy) copyAskedTurns(ctx context.Context) error {
	for a, err := range conversation.AskedBy(ctx, c.store, c.person.User) {
		if err != nil {
			return err
		}
		one := conversation.Conversation{Chat: a.Chat, Title: "What you asked in " + a.Chat.String()}
		if err := c.skipUnreadable(ctx, one.Title, func() error { return c.copyConversation(one, conversation.TurnsBy(ctx, c.store, a.Log, c.person.User)) }); err != nil {
			return err
		}
	}
	if c.conversationCount > 0 {
		c.addReadmeLine("conversations/", "Our conversations: the .md files for reading, the .jsonl files with everything that is stored. From groups they have your questions and my answers.")
	}
	return nil
}

// copyReceipts copies the receipts of messages, which are kept for a week.
func (c *exportCopy) copyReceipts(ctx context.Context) error {
	var w io.Writer
	for j, err := range receipts.ByUser(ctx, c.store, c.person.User) {
		if err == nil && w == nil {
			c.addReadmeLine("receipts.jsonl", "The outcome of each of your messages of the last week.")
			w, err = c.createEntry("receipts.jsonl")
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

func (c *exportCopy) copyPart(ctx context.Context, p Part) error {
	if p.Data == nil {
		return nil
	}
	value, err := p.Data(ctx, c.person)
	if err != nil || value == nil {
		return err
	}
	data, err := json.MarshalIndent(value, "", "  ")
	if err != nil || string(data) == "null" || string(data) == "{}" || string(data) == "[]" {
		return err
	}
	c.addReadmeLine(p.Name+".json", p.About)
	return c.writeEntry(p.Name+".json", append(data, '\n'))
}

// copyWorkspace copies the files that fit into MaxFileBytes.
func (c *exportCopy) copyWorkspace(ctx context.Context) error {
	dir, err := os.OpenRoot(c.root.Dir())
	if err != nil {
		return err
	}
	defer func() { _ = dir.Close() }()
	room := int64(MaxFileBytes)
	err = fs.WalkDir(dir.FS(), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil && name == "." {
			return err
		} else if err != nil {
			return c.skipUnreadable(ctx, name, func() error { return err }) // continue with the next file
		}
		if !entry.Type().IsRegular() || isCopy(name) {
			return nil
		}
		info, err := entry.Info()
		if err != nil {
			return c.skipUnreadable(ctx, name, func() error { return err })
		}
		if room -= info.Size(); room < 0 {
			room += info.Size()
			c.omitted = append(c.omitted, name)
			return nil
		}
		return c.skipUnreadable(ctx, name, func() error { return c.copyFile(dir, name, info.Size()) })
	})
	if c.fileCount > 0 {
		c.addReadmeLine("files/", "The files that you sent me, and that I made for you.")
	}
	return err
}

// isCopy reports whether a file is an earlier copy, or the one in progress.
func isCopy(name string) bool {
	folder, file := path.Split(name)
	return folder == exportFolder+"/" && (copyName.MatchString(file) || strings.HasPrefix(file, ".part-"))
}

func (c *exportCopy) copyFile(dir *os.Root, name string, size int64) error {
	f, err := dir.Open(name)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	w, err := c.createEntry(path.Join("files", name))
	if err != nil {
		return err
	}
	c.fileCount++
	_, err = io.Copy(w, io.LimitReader(f, size)) // the file may grow meanwhile
	return err
}

func (c *exportCopy) writeReadme() error {
	text := fmt.Sprintf("The data that OneClaw stores about %s, as of %s.\n\n%s\n\n"+
		"Not included: the tokens of connected accounts, which are never shown; messages of others, unless yours pointed at them; older group messages, which have no recorded author; "+
		"your sign-ins to the administrators' pages; errors in the log; what could not be delivered or processed; cards with buttons; messages of an album that waits for its rest; what you did to messages of others; your request to be let in.\n",
		c.person.User, c.now.Format(time.RFC1123), strings.Join(c.readmeLines, "\n\n"))
	if len(c.omitted) > 0 {
		text += "\nFiles that did not fit:\n  " + strings.Join(c.omitted, "\n  ") + "\n"
	}
	if len(c.unreadable) > 0 {
		text += "\nCould not be read:\n  " + strings.Join(c.unreadable, "\n  ") + "\n"
	}
	return c.writeEntry("README.txt", []byte(text))
}
