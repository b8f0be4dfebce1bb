package bridge_test

import (
	"context"
	"fmt"
	"iter"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"oneclaw/agent"
	"oneclaw/bridge"
	"oneclaw/bridge/chats"
	"oneclaw/bridge/conversation"
	"oneclaw/internal/workspace"
)

// renamed is a fake platform under another name.
type renamed struct {
	*platform
	name string
}

func (r renamed) Name() string { return r.name }

// place is where somebody writes.
type place struct {
	chat   chats.Chat
	direct bool
}

// places are direct chats, groups, topics and threads of two platforms, with ids that
// begin with each other.
func places() []place {
	var all []place
	for _, name := range []string{"fake", "other"} {
		for _, id := range []string{"1", "11"} {
			all = append(all, place{chats.Chat{Platform: name, ID: id}, true})
		}
		for _, id := range []string{"-1", "-11", "C1"} {
			for _, thread := range []string{"", "1", "11", "1.1"} {
				all = append(all, place{chats.Chat{Platform: name, ID: id, Thread: thread}, false})
			}
		}
	}
	return all
}

// watcher answers, and notes each turn in which something of another place turns up.
type watcher struct {
	mu       sync.Mutex
	problems []string
	owners   map[string]string // workspace -> owner
}

func (w *watcher) answer(_ context.Context, turn agent.Turn) iter.Seq2[agent.Message, error] {
	return func(yield func(agent.Message, error) bool) {
		last := turn.History[len(turn.History)-1].Text
		where, _, _ := strings.Cut(last, " ")
		w.look(turn, where)
		yield(agent.Message{Role: agent.RoleAssistant, Text: "answer to " + last, Final: true}, nil)
	}
}

func (w *watcher) look(turn agent.Turn, where string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	note := func(format string, args ...any) { w.problems = append(w.problems, fmt.Sprintf(format, args...)) }
	for _, m := range turn.History {
		if from, _, _ := strings.Cut(strings.TrimPrefix(m.Text, "answer to "), " "); from != where {
			note("a turn of %s is shown %q", where, m.Text)
		}
	}
	s := turn.Scope
	chat, _, _ := strings.Cut(where, "#")
	owner := s.User
	if !s.Direct {
		parts := strings.SplitN(chat, ":", 3)
		owner = parts[0] + ":" + parts[1]
	}
	if s.Chat != chat || s.Owner != owner || !strings.HasPrefix(s.Session, chat+"/") || turn.CacheKey != s.Session {
		note("a turn of %s has the scope %+v", where, s)
	}
	if known, ok := w.owners[s.Workspace]; ok && known != owner || filepath.Base(filepath.Dir(s.Workspace)) != "workspaces" {
		note("%s shares the workspace %s with %s", owner, s.Workspace, known)
	}
	w.owners[s.Workspace] = owner
}

// However people write and clear in direct chats, groups, topics and threads of several
// platforms, at once: a turn is shown what was said in its own conversation alone, works
// for its own owner, and is answered where it was asked.
func TestNothingCrossesConversations(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		w := &watcher{owners: map[string]string{}}
		second := renamed{newPlatform(), "other"}
		r := newHarness(t, w.answer, func(c *bridge.Config) {
			c.Platforms = append(c.Platforms, second)
			c.Access.Admins = []string{"*"}
			c.Logger = nil
		})
		defer r.stop()
		clears := map[chats.Chat]int{}
		steps := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) step {
			return step{
				rapid.SampledFrom(places()).Draw(t, "place"), rapid.SampledFrom([]string{"1", "11", "2"}).Draw(t, "user"),
				rapid.IntRange(0, 5).Draw(t, "clears") == 0,
			}
		}), 1, 25).Draw(rt, "steps")
		for n, s := range steps {
			m := chats.Message{Chat: s.chat, Direct: s.direct, ID: fmt.Sprint("m", n), Kind: chats.KindText, User: s.user}
			if s.direct {
				m.User = s.chat.ID
			}
			m.Text = fmt.Sprintf("%s#%d said by %s, %d", s.chat, clears[s.chat], m.User, n)
			if s.clears {
				clears[s.chat]++
				m.Text = "/clear"
			}
			r.accept(m)
		}
		r.receipts(len(steps))
		w.mu.Lock()
		defer w.mu.Unlock()
		for _, p := range w.problems {
			rt.Error(p)
		}
		for _, p := range []struct {
			name string
			*platform
		}{{"fake", r.platform}, {"other", second.platform}} {
			for _, s := range p.sent {
				if where, ok := strings.CutPrefix(s.text, "answer to "); ok && (!strings.HasPrefix(where, s.to.Chat.String()+"#") || s.to.Chat.Platform != p.name) {
					rt.Errorf("%s on %s was told %q", s.to.Chat, p.name, s.text)
				}
			}
		}
	})
}

type step struct {
	place
	user   string
	clears bool
}

// Keys of conversations, owners and files are different for different places.
//
// One user sees another's context.
func TestKeysAreDifferent(t *testing.T) {
	logs, workspaces := map[string]place{}, map[string]string{}
	for _, p := range places() {
		session := conversation.Session{Chat: p.chat, Generation: 1}.Log()
		if other, twice := logs[session]; twice {
			t.Errorf("%v and %v share %s", p, other, session)
		}
		logs[session] = p
		owner := chats.Message{Chat: p.chat, Direct: p.direct, User: p.chat.ID}.Owner()
		dir := workspace.OwnerDir("data", owner)
		if other, twice := workspaces[dir]; twice && other != owner {
			t.Errorf("%s and %s share %s", owner, other, dir)
		}
		workspaces[dir] = owner
	}
	if odd := workspace.OwnerDir("data", "slack:../../etc"); filepath.Dir(odd) != filepath.Join("data", "workspaces") {
		t.Errorf("an odd id leads to %s", odd)
	}
}
