package learning

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	"oneclaw/bridge/audit"
	"oneclaw/bridge/chats"
	"oneclaw/bridge/queue"
	"oneclaw/bridge/receipts"
	"oneclaw/internal/budget"
	"oneclaw/storage"
)

// maxPeople bounds the names of users in memory.
const maxPeople = 200_000

// Exporter exports conversations with feedback. With the zero value, ServeHTTP refuses all requests.
type Exporter struct {
	Store storage.Store
	// Redact masks secrets.
	Redact func(text string) string
	// Price returns the prices of a model, if known.
	Price func(model string) (budget.Price, bool)
	// WindowTokens is the context window of turns.
	WindowTokens int
	Log          *slog.Logger
	Now          func() time.Time
}

// Write writes the cases of all chats, after an audit entry.
// It holds the names of users and one case in memory.
func (e Exporter) Write(ctx context.Context, w io.Writer) (counts Counts, err error) {
	now := e.Now()
	if err := audit.Append(ctx, e.Store, rand.Text(), audit.Entry{At: now, Action: "export", By: "operator", Chat: audit.TerminalChat, About: "judged conversations (eval)"}); err != nil {
		return counts, err
	}
	x := &export{Exporter: e, consent: Consent{e.Store, e.Now}, counts: &counts}
	if x.pseudonyms.key, err = pseudonymKey(ctx, e.Store); err != nil {
		return counts, err
	}
	if x.out, err = NewWriter(w, now); err != nil {
		return counts, err
	}
	x.allNames = newNameIndex(nil)
	everybody := newGroup()
	if err := x.eachReceipt(ctx, func(_ string, who person, _ storage.Entry) error { return everybody.addAuthor(who) }); err != nil {
		return counts, err
	}
	everybody.addNames(x.allNames, x.pseudonyms, false)
	here, place := newGroup(), ""
	err = x.eachReceipt(ctx, func(chat string, who person, entry storage.Entry) error {
		if chat != place {
			if err := x.exportChat(ctx, here); err != nil {
				return err
			}
			here, place = newGroup(), chat
		}
		if bytes.Contains(entry.Value, []byte(`"feedback"`)) {
			here.ratedKeys = append(here.ratedKeys, entry.Key)
		}
		return here.addAuthor(who)
	})
	if err == nil {
		err = x.exportChat(ctx, here)
	}
	if err != nil {
		return counts, err
	}
	return counts, x.out.Close(counts, e.Now())
}

// ErrOff is returned if the settings do not permit exports.
var ErrOff = errors.New("conversations are not exported: export_judged (ONECLAW_EXPORT_JUDGED) allows it; from then on chats are notified, and conversations rated in notified chats can be exported")

// ServeHTTP writes the cases for a command that asks the running bot. On an error it aborts the
// connection.
func (e Exporter) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if e.Store == nil {
		http.Error(w, ErrOff.Error(), http.StatusForbidden)
		return
	}
	if _, err := e.Write(r.Context(), w); err != nil {
		e.Log.Error("the export of conversations broke off", "err", err)
		panic(http.ErrAbortHandler)
	}
}

// pseudonymKey returns the key of the pseudonyms, which is created on first use.
func pseudonymKey(ctx context.Context, kv storage.KV) ([]byte, error) {
	_, err := kv.Put(ctx, saltKey, []byte(rand.Text()), storage.Absent)
	if err != nil && !errors.Is(err, storage.ErrConflict) {
		return nil, fmt.Errorf("make the key of the pseudonyms: %w", err)
	}
	entry, err := kv.Get(ctx, saltKey)
	if err != nil {
		return nil, fmt.Errorf("read the key of the pseudonyms: %w", err)
	}
	return entry.Value, nil
}

// export is a run of an [Exporter].
type export struct {
	Exporter

	consent    Consent
	pseudonyms pseudonyms
	out        *Writer
	counts     *Counts
	allNames   *nameIndex
}

// person is the sender of a message, as far as known.
type person struct {
	Message struct {
		Chat chats.Chat `json:"chat"`
		User string     `json:"user"`
		Name string     `json:"user_name"`
	} `json:"message"`
}

// eachReceipt reads all receipts, grouped by chat.
func (x *export) eachReceipt(ctx context.Context, each func(chat string, who person, entry storage.Entry) error) error {
	for entry, err := range x.Store.List(ctx, storage.Range{Prefix: receipts.Prefix}) {
		if err != nil {
			return fmt.Errorf("read the receipts: %w", err)
		}
		var who person
		if json.Unmarshal(entry.Value, &who) != nil {
			continue // damaged receipts become dead letters elsewhere
		}
		chat, _, _ := strings.Cut(strings.TrimPrefix(entry.Key, receipts.Prefix), "/")
		if err := each(chat, who, entry); err != nil {
			return err
		}
	}
	return nil
}

// group collects the authors in some chats, and the answers with feedback there.
type group struct {
	// people has the names of each user.
	people    map[string]map[string]bool
	size      int
	chats     map[string]bool
	ratedKeys []string
}

func newGroup() *group {
	return &group{people: map[string]map[string]bool{}, chats: map[string]bool{}}
}

func (g *group) addAuthor(who person) error {
	m := who.Message
	g.chats[m.Chat.Platform+":"+m.Chat.ID] = true
	id := m.Chat.Platform + ":" + m.User
	if g.people[id] == nil {
		g.people[id] = map[string]bool{}
	}
	if !g.people[id][m.Name] {
		if g.size++; g.size > maxPeople {
			return fmt.Errorf("more than %d names of people are known: too many to replace them", maxPeople)
		}
		g.people[id][m.Name] = true
	}
	return nil
}

// minID is the length in bytes from which ids are searched in texts.
const minID = 4

// addNames adds users and chats to an index and, with parts, also the parts of their names.
func (g *group) addNames(n *nameIndex, stands pseudonyms, parts bool) {
	id := func(whole, stand string) {
		if _, text, _ := strings.Cut(whole, ":"); len(text) >= minID {
			n.add(text, stand, false)
		}
	}
	for user, all := range g.people {
		for text := range all {
			n.add(text, stands.person(user), parts)
		}
		id(user, stands.person(user))
	}
	for chat := range g.chats {
		id(chat, stands.chat(chat))
	}
}

// exportChat writes the cases of a chat.
func (x *export) exportChat(ctx context.Context, g *group) error {
	if len(g.ratedKeys) == 0 {
		return nil
	}
	here := newNameIndex(x.allNames)
	g.addNames(here, x.pseudonyms, true)
	for _, key := range g.ratedKeys {
		entry, err := x.Store.Get(ctx, key)
		if errors.Is(err, storage.ErrNotFound) {
			continue // it was pruned meanwhile
		}
		if err != nil {
			return fmt.Errorf("read a receipt: %w", err)
		}
		j := new(receipts.Receipt)
		if queue.Decode(entry, j) != nil {
			x.counts.Unusable++
			continue
		}
		if err := x.exportReceipt(ctx, j, here); err != nil {
			return err
		}
	}
	return nil
}

// exportReceipt writes the case of a receipt, or counts why there is none.
func (x *export) exportReceipt(ctx context.Context, j *receipts.Receipt, here *nameIndex) error {
	if good, bad := receipts.CountFeedback(j.Turn.Feedback); good+bad == 0 || j.State != receipts.Done {
		return nil
	}
	since, told, err := x.consent.notifiedSince(ctx, j.Message.Chat)
	if err != nil {
		return err
	}
	j.Turn.Feedback = slices.DeleteFunc(j.Turn.Feedback, func(o receipts.Feedback) bool { return !told || o.At.Before(since) })
	if good, bad := receipts.CountFeedback(j.Turn.Feedback); good+bad == 0 {
		x.counts.NotNotified++
		return nil
	}
	c := caseBuilder{export: x, job: j, names: here}
	made, err := c.build(ctx)
	if err == nil {
		written := false
		if written, err = x.out.WriteCase(made); err == nil && !written {
			err = errNotExportable
		}
	}
	switch {
	case errors.Is(err, errOptedOut):
		x.counts.OptedOut++
	case errors.Is(err, errNotExportable):
		x.counts.Unusable++
	case err != nil:
		return err
	default:
		x.counts.Cases++
	}
	return nil
}
