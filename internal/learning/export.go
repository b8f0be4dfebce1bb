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
	"strings"
	"time"

	"oneclaw/bridge/audit"
	"oneclaw/bridge/chats"
	"oneclaw/bridge/queue"
	"oneclaw/bridge/receipts"
	"oneclaw/internal/budget"
	"oneclaw/storage"
)

// maxPeople bounds the users whose names are in memory.
const maxPeople = 200_000

// Exporter exports conversations with feedback.
type Exporter struct {
	Store storage.Store
	// Redact masks secrets.
	Redact func(text string) string
	// Money returns the prices of a model, if known.
	Money func(model string) (budget.Price, bool)
	// WindowTokens is the context window of turns.
	WindowTokens int
	Log          *slog.Logger
	Now          func() time.Time
}

// Write writes the cases of all chats, after an audit entry. It keeps the names of users in
// memory, and one case.
func (e Exporter) Write(ctx context.Context, w io.Writer) (counts Counts, err error) {
	now := e.Now()
	if err := audit.Append(ctx, e.Store, rand.Text(), audit.Entry{At: now, Action: "export", By: "operator", Chat: audit.Terminal, About: "judged conversations (eval)"}); err != nil {
		return counts, err
	}
	x := &export{Exporter: e, consent: Consent{e.Store, e.Now}, counts: &counts}
	if x.stands.key, err = salt(ctx, e.Store); err != nil {
		return counts, err
	}
	if x.out, err = NewWriter(w, now); err != nil {
		return counts, err
	}
	x.everybody = newNames(nil)
	everybody := newGroup()
	if err := x.receipts(ctx, func(_ string, who person, _ storage.Entry) error { return everybody.add(who) }); err != nil {
		return counts, err
	}
	everybody.name(x.everybody, x.stands, false)
	here, place := newGroup(), ""
	err = x.receipts(ctx, func(chat string, who person, entry storage.Entry) error {
		if chat != place {
			if err := x.chat(ctx, here); err != nil {
				return err
			}
			here, place = newGroup(), chat
		}
		if bytes.Contains(entry.Value, []byte(`"feedback"`)) {
			here.judged = append(here.judged, entry.Key)
		}
		return here.add(who)
	})
	if err == nil {
		err = x.chat(ctx, here)
	}
	if err != nil {
		return counts, err
	}
	return counts, x.out.Close(counts, e.Now())
}

// ErrOff is returned if the settings do not permit exports.
var ErrOff = errors.New("conversations are not exported: export_judged (ONECLAW_EXPORT_JUDGED) allows it; from then on people are told, and what is judged where they know can be exported")

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

// salt returns the key of the pseudonyms, which is created on first use.
func salt(ctx context.Context, kv storage.KV) ([]byte, error) {
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

	consent   Consent
	stands    pseudonyms
	out       *Writer
	counts    *Counts
	everybody *names
}

// person is the sender of a message, as far as known.
type person struct {
	Message struct {
		Chat chats.Chat `json:"chat"`
		User string     `json:"user"`
		Name string     `json:"user_name"`
	} `json:"message"`
}

// receipts reads all receipts, grouped by chat.
func (x *export) receipts(ctx context.Context, each func(chat string, who person, entry storage.Entry) error) error {
	for entry, err := range x.Store.List(ctx, storage.Range{Prefix: receipts.Prefix}) {
		if err != nil {
			return fmt.Errorf("read the receipts: %w", err)
		}
		var who person
		if json.Unmarshal(entry.Value, &who) != nil {
			continue // a damaged one is moved aside elsewhere
		}
		chat, _, _ := strings.Cut(strings.TrimPrefix(entry.Key, receipts.Prefix), "/")
		if err := each(chat, who, entry); err != nil {
			return err
		}
	}
	return nil
}

// group is the authors in some chats, and the answers with feedback there.
type group struct {
	// people are names, in their first spelling, by user.
	people map[string]map[string]bool
	size   int
	chats  map[string]bool
	judged []string
}

func newGroup() *group {
	return &group{people: map[string]map[string]bool{}, chats: map[string]bool{}}
}

func (g *group) add(who person) error {
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

// minID is the length from which ids are searched in texts.
const minID = 4

// name adds users and chats to names, with parts also the parts of their names.
func (g *group) name(n *names, stands pseudonyms, parts bool) {
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

// chat writes the cases of a chat.
func (x *export) chat(ctx context.Context, g *group) error {
	if len(g.judged) == 0 {
		return nil
	}
	here := newNames(x.everybody)
	g.name(here, x.stands, true)
	for _, key := range g.judged {
		entry, err := x.Store.Get(ctx, key)
		if errors.Is(err, storage.ErrNotFound) {
			continue // it was too old meanwhile
		}
		if err != nil {
			return fmt.Errorf("read a receipt: %w", err)
		}
		j := new(receipts.Receipt)
		if queue.Decode(entry, j) != nil {
			x.counts.Unfit++
			continue
		}
		if err := x.job(ctx, j, here); err != nil {
			return err
		}
	}
	return nil
}

// job writes the case of a receipt, or counts why there is none.
func (x *export) job(ctx context.Context, j *receipts.Receipt, here *names) error {
	if good, bad := receipts.FeedbackCounts(j.Turn.Feedback); good+bad == 0 || j.State != receipts.Done {
		return nil
	}
	told, err := x.consent.has(ctx, toldPrefix+j.Message.Chat.WithoutThread().String())
	if err != nil {
		return err
	}
	if !told {
		x.counts.Untold++
		return nil
	}
	c := maker{export: x, job: j, names: here}
	made, err := c.make(ctx)
	if err == nil {
		written := false
		if written, err = x.out.Case(made); err == nil && !written {
			err = errUnfit
		}
	}
	switch {
	case errors.Is(err, errRefused):
		x.counts.Refused++
	case errors.Is(err, errUnfit):
		x.counts.Unfit++
	case err != nil:
		return err
	default:
		x.counts.Cases++
	}
	return nil
}
