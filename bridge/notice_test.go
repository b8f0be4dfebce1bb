package bridge_test

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"oneclaw/bridge"
	"oneclaw/bridge/chats"
	"oneclaw/bridge/queue"
	"oneclaw/bridge/receipts"
	"oneclaw/storage"
)

// watched counts the changes that replicas are sent, except signs of life.
type watched struct {
	storage.Store

	rows *atomic.Int64
}

func (w *watched) Watch(ctx context.Context, prefixes ...string) iter.Seq2[storage.Event, error] {
	changes := w.Store.Watch(ctx, prefixes...)
	return func(yield func(storage.Event, error) bool) {
		for e, err := range changes {
			if !strings.HasPrefix(e.Key, "replicas/") {
				w.rows.Add(1)
			}
			if !yield(e, err) {
				return
			}
		}
	}
}

// A replica is sent the changes that concern its own shares: of a message that came to its owner none, of
// another one its notice, and that the notice was deleted.
func TestAReplicaIsSentWhatConcernsItsShares(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var rows atomic.Int64
		all := newSeveral(t, 3, echo, func(cfg *bridge.Config) {
			if _, is := cfg.Store.(*watched); !is { // the replicas share it
				cfg.Store = &watched{cfg.Store, &rows}
			}
		})
		pass(t, 10)
		rows.Store(0)
		const messages = 300
		var want []string
		for n := range messages {
			text := fmt.Sprint("message ", n)
			all[n%3].accept(in(fmt.Sprint(100+n/3), fmt.Sprint(n), text))
			want = append(want, "re: "+text)
		}
		pass(t, 10)
		all.once(t, want...)
		each := float64(rows.Load()) / messages
		if t.Logf("%.2f watched rows a message with three replicas", each); each > 3 {
			t.Errorf("%.2f watched rows a message, want at most 3", each)
		}
		for e, err := range all[0].cfg.Store.List(t.Context(), storage.Range{Prefix: queue.NoticePrefix}) {
			t.Errorf("the notice %s is left, %v", e.Key, err)
		}
		all.stop(t)
	})
}

// A message for the former id of a chat is answered by the owner of the new one, long after the move, and
// even if the replica that accepted it did not know of the move.
func TestAMessageForAFormerIDFindsItsOwner(t *testing.T) {
	for _, to := range []string{"101", "102", "104"} {
		synctest.Test(t, func(t *testing.T) {
			all := newSeveral(t, 2, echo)
			from, there := in("99", "1", "one").Chat, in(to, "1", "two").Chat
			if err := all[0].bridge.Moved(t.Context(), from, there); err != nil {
				t.Fatal(err)
			}
			pass(t, 2*3600)
			unaware := queue.Store{Store: all[0].cfg.Store, LeaseToken: func(chats.Chat) string { return "" }, Base: new(atomic.Int64)}
			j := &queue.Run{Job: queue.Job{Message: in("99", "late", "late"), State: receipts.Open, Unclaimed: true, Unstarted: true}}
			if added, err := unaware.Add(t.Context(), j); !added || err != nil {
				t.Fatal(added, err)
			}
			pass(t, 10)
			all.once(t, "re: late")
			all.stop(t)
		})
	}
}

// The first owner of a share reads a notice and dies; the next one answers, and deletes what is left.
func TestANoticeOutlivesTheOwnerThatReadIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := newSeveral(t, 2, echo)
		owner, other := all.sides(t, "7")
		key := queue.NoticePrefix + "000/fake:7/gone/text"
		for i := range 256 { // its share is one of them
			if _, err := other.cfg.Store.Put(t.Context(), strings.Replace(key, "000", fmt.Sprintf("%03d", i), 1), nil, storage.Any); err != nil {
				t.Fatal(err)
			}
		}
		owner.stop()
		other.accept(in("7", "1", "one"))
		pass(t, 30)
		all.once(t, "re: one")
		left := 0
		for _, err := range other.cfg.Store.List(t.Context(), storage.Range{Prefix: queue.NoticePrefix}) {
			if err != nil {
				t.Fatal(err)
			}
			left++
		}
		if left > 0 {
			t.Errorf("%d notices are left", left)
		}
		other.stop()
	})
}

// interrupted is a store that calls a function before the first deletion of a key with an end.
type interrupted struct {
	storage.Store

	end string
	do  func()
}

func (b *interrupted) Delete(ctx context.Context, key string, rev storage.Revision) error {
	if do := b.do; do != nil && strings.HasSuffix(key, b.end) {
		b.do = nil
		do()
	}
	return b.Store.Delete(ctx, key, rev)
}

// A message is edited at another replica, and once more right before its owner has done the first edit.
func TestAnEditWhileTheOwnerHandlesTheFormerOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, meddled := newSlow(), &interrupted{end: "/2/" + string(chats.KindEdit)}
		all := newSeveral(t, 2, s.think, func(cfg *bridge.Config) {
			if cfg.Store != storage.Store(meddled) { // the replicas share it
				meddled.Store, cfg.Store = cfg.Store, meddled
			}
		})
		owner, other := all.sides(t, "7")
		edit := func(text string) {
			m := in("7", "2", text)
			m.Kind = chats.KindEdit
			other.accept(m)
		}
		owner.accept(in("7", "1", "slow one"))
		<-s.asked
		owner.accept(in("7", "2", "two"))
		meddled.do = func() { edit("two, changed again") }
		edit("two, changed")
		pass(t, 10)
		close(s.free)
		pass(t, 10)
		all.once(t, "re: slow one", "re: two, changed again")
		if meddled.do != nil {
			t.Error("no edit was discarded")
		}
		all.stop(t)
	})
}
