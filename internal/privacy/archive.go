package privacy

import (
	"archive/zip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	"oneclaw/bridge"
	"oneclaw/bridge/jobs"
	"oneclaw/bridge/sessions"
	"oneclaw/storage"
)

// maxFiles bounds the files of a workspace in an export, in bytes: Telegram takes 50 MB from bots.
const maxFiles = 40 << 20

// sum says what is in an export.
type sum struct{ conversations, files, left int }

const readme = `This is what the bot keeps of %s, as of %s.

conversations/  what was said, with the calls of tools: one file each, one record a line
kept/           what else is stored under your name or your chats, one record a line:
                access (that you may talk to it), account (what models used), audit (what you
                did about the bot), conversation (the list of them), hook (webhooks, without
                their secrets), job (receipts of messages), memory, schedule, session, settings
files/          your files

%s
Not in it: the tokens of connected accounts, which nobody is shown; what others said in groups
and the bot knows of those; the operator's log and backups.
`

// write writes the archive.
func (d *Desk) write(ctx context.Context, call bridge.CommandCall, w io.Writer) (out sum, err error) {
	archive := zip.NewWriter(w)
	conversations, err := sessions.Conversations(ctx, d.cfg.Store, call.Owner)
	if err != nil {
		return out, err
	}
	slices.SortFunc(conversations, func(a, b sessions.Conversation) int { return a.Begun.Compare(b.Begun) })
	ids := map[string]bool{call.Owner: true, call.Chat: true, place(call.Chat): true}
	for _, c := range conversations {
		ids[c.Chat.String()], ids[place(c.Chat.String())] = true, true
		out.conversations++
		if err := d.conversation(ctx, archive, out.conversations, c); err != nil {
			return out, err
		}
	}
	if err := d.kept(ctx, archive, call.Owner, ids); err != nil {
		return out, err
	}
	left, err := files(archive, call.Workspace, &out)
	if err != nil {
		return out, err
	}
	connected, err := d.cfg.Connected(ctx, call)
	if err != nil {
		return out, err
	}
	if len(left) > 0 {
		connected += "\n\nFiles that did not fit in; the bot sends each when you ask for it:\n" + strings.Join(left, "\n") + "\n"
	}
	text, err := archive.Create("README.txt")
	if err == nil {
		_, err = fmt.Fprintf(text, readme, call.Owner, d.cfg.Now().UTC().Format("2006-01-02 15:04 MST"), connected)
	}
	return out, errors.Join(err, archive.Close())
}

// place is a chat without its thread, under which its messages are kept.
func place(chat string) string {
	parts := strings.Split(chat, ":")
	return strings.Join(parts[:min(2, len(parts))], ":")
}

func (d *Desk) conversation(ctx context.Context, archive *zip.Writer, n int, c sessions.Conversation) error {
	file, err := archive.Create(fmt.Sprintf("conversations/%04d-%s.jsonl", n, c.Begun.UTC().Format("2006-01-02")))
	if err != nil {
		return err
	}
	for record, err := range d.cfg.Store.Records(ctx, c.Log(), storage.Query{}) {
		if err != nil {
			return fmt.Errorf("read conversation %s: %w", c.Log(), err)
		}
		if _, err := io.WriteString(file, d.cfg.Redact(string(record.Data))+"\n"); err != nil {
			return err
		}
	}
	return nil
}

// kept writes the records under the keys of an owner and their chats.
func (d *Desk) kept(ctx context.Context, archive *zip.Writer, owner string, ids map[string]bool) error {
	for _, kind := range []string{"access", "account", "audit", "conversation", "hook", "memory", "schedule/task", "session", "settings"} {
		if err := d.records(ctx, archive, strings.Split(kind, "/")[0], []string{kind + "/"}, owner, ids); err != nil {
			return err
		}
	}
	var receipts []string
	for id := range ids {
		receipts = append(receipts, jobs.OpenPrefix+id+"/", jobs.ReceiptPrefix+id+"/")
	}
	slices.Sort(receipts)
	return d.records(ctx, archive, "job", receipts, owner, ids)
}

// records writes those records below some prefixes that are about the owner.
func (d *Desk) records(ctx context.Context, archive *zip.Writer, kind string, prefixes []string, owner string, ids map[string]bool) error {
	file, err := archive.Create("kept/" + kind + ".jsonl")
	if err != nil {
		return err
	}
	lines := json.NewEncoder(file)
	for _, prefix := range prefixes {
		for entry, err := range d.cfg.Store.List(ctx, storage.Range{Prefix: prefix}) {
			if err != nil {
				return fmt.Errorf("list %s: %w", prefix, err)
			}
			var fields map[string]any
			value := any(d.cfg.Redact(string(entry.Value)))
			if json.Unmarshal(entry.Value, &fields) == nil {
				if kind == "hook" {
					delete(fields, "secret")
					delete(fields, "page")
				}
				value = masked(fields, d.cfg.Redact)
			}
			if !about(entry.Key, fields, owner, ids) {
				continue
			}
			if err := lines.Encode(map[string]any{"key": entry.Key, "value": value}); err != nil {
				return err
			}
		}
	}
	return nil
}

// about reports whether a record is of the owner: by a part of its key, or by whom it names. What
// somebody else did to the owner is of both.
func about(key string, fields map[string]any, owner string, ids map[string]bool) bool {
	for name := range ids {
		if strings.Contains("/"+key+"/", "/"+name+"/") {
			return true
		}
	}
	return fields["owner"] == owner || fields["by"] == owner
}

// masked is a value whose texts are.
func masked(value any, redact func(string) string) any {
	switch v := value.(type) {
	case string:
		return redact(v)
	case []any:
		for i := range v {
			v[i] = masked(v[i], redact)
		}
	case map[string]any:
		for key := range v {
			v[key] = masked(v[key], redact)
		}
	}
	return value
}

// files writes the files of a workspace as far as they fit, and returns the names of the others.
func files(archive *zip.Writer, dir string, out *sum) (left []string, err error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	room := int64(maxFiles)
	err = fs.WalkDir(root.FS(), ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || path == bridge.AttachFolder {
			if err == nil {
				err = fs.SkipDir
			}
			return err
		}
		if !entry.Type().IsRegular() {
			return nil
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		if info.Size() > room {
			out.left++
			left = append(left, fmt.Sprintf("%s (%d bytes)", path, info.Size()))
			return nil
		}
		room -= info.Size()
		out.files++
		return add(archive, root, path, info.Size())
	})
	return left, err
}

func add(archive *zip.Writer, root *os.Root, path string, size int64) error {
	f, err := root.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	w, err := archive.Create("files/" + path)
	if err != nil {
		return err
	}
	_, err = io.Copy(w, io.LimitReader(f, size)) // it may grow meanwhile
	return err
}
