package bridge_test

import (
	"context"
	"strings"
	"sync"
	"testing"

	"oneclaw/bridge"
	"oneclaw/storage"
)

// edit is a new text for a message.
func edit(m bridge.Message, text string) bridge.Message {
	m.Kind, m.Text = bridge.KindEdit, text
	return m
}

// gatedStore has writes and reads wait where a test says so.
type gatedStore struct {
	storage.Store
	put func(key string, value []byte)
	get func(key string)
}

func (s gatedStore) Put(ctx context.Context, key string, value []byte, rev storage.Revision) (storage.Revision, error) {
	if s.put != nil {
		s.put(key, value)
	}
	return s.Store.Put(ctx, key, value, rev)
}

func (s gatedStore) Get(ctx context.Context, key string) (storage.Entry, error) {
	if s.get != nil {
		s.get(key)
	}
	return s.Store.Get(ctx, key)
}

// TestAttack20AnEditRacesWithNobody edits a message all the time while the turn before it
// begins to wait for an approval, which looks at the message. It proves something under
// the race detector alone: the look waits for the next edit without telling it.
func TestAttack20AnEditRacesWithNobody(t *testing.T) {
	w := &workshop{}
	edits, ended := make(chan struct{}), make(chan struct{})
	r := w.guarded(t, func(c *bridge.Config) {
		c.Store = gatedStore{
			Store: c.Store,
			put: func(_ string, value []byte) {
				if strings.Contains(string(value), `"text":"edited"`) {
					select {
					case edits <- struct{}{}:
					default:
					}
				}
			},
			get: func(key string) {
				if strings.HasPrefix(key, "job/open/fake:1/") && strings.HasSuffix(key, "/card") {
					select {
					case <-edits:
					case <-ended:
					}
				}
			},
		}
	})
	stop := make(chan struct{})
	r.accept(direct("1", "run a"), direct("2", "wait"))
	go func() {
		defer close(ended)
		for {
			select {
			case <-stop:
				return
			default:
				r.accept(edit(direct("2", ""), "edited"))
			}
		}
	}()
	all := r.platform.wait(t, 2)
	close(stop)
	<-ended
	if !strings.Contains(all[1].text, "Your message is next") {
		t.Fatalf("told %q", texts(all))
	}
	r.accept(pressOn(all[0], "p", "1", all[0].button(t, "Allow once")))
	if all = r.platform.wait(t, 4); all[3].text != "re: edited" {
		t.Errorf("answers: %q", texts(all))
	}
}

// TestAttack20AnEditHoldsNothingUp has the disk wait in the middle of an edit.
func TestAttack20AnEditHoldsNothingUp(t *testing.T) {
	s := newSlow()
	writing, written := make(chan struct{}), make(chan struct{})
	r := newRig(t, s.think, func(c *bridge.Config) {
		c.Store = gatedStore{Store: c.Store, put: func(_ string, value []byte) {
			if strings.Contains(string(value), `"text":"right"`) && strings.Contains(string(value), `"state":"open"`) {
				select {
				case writing <- struct{}{}:
					<-written
				default:
				}
			}
		}}
	})
	release := sync.OnceFunc(func() { close(written) })
	t.Cleanup(release)
	r.accept(direct("1", "slow one"), direct("2", "two"), direct("3", "slow three"), direct("4", "wrong"))
	<-s.asked
	accepted := make(chan struct{})
	go func() {
		defer close(accepted)
		r.accept(edit(direct("4", ""), "right"))
	}()
	<-writing
	s.free <- struct{}{}
	if got := texts(r.platform.wait(t, 2)); got[1] != "re: two" {
		t.Errorf("answers: %q", got)
	}
	<-s.asked
	release()
	<-accepted
	close(s.free)
	if got := texts(r.platform.wait(t, 4)); got[3] != "re: right" {
		t.Errorf("answers: %q", got)
	}
}
