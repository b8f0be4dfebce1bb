package bridge_test

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"oneclaw/agent"
	"oneclaw/bridge"
	"oneclaw/bridge/access"
	"oneclaw/bridge/chats"
	"oneclaw/bridge/queue"
)

// An administrator removes people on one replica: their turns end, whichever replica runs
// them, and neither begins another.
func TestWhoIsRemovedOnOneReplicaIsAnsweredOnNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const users = 10
		var mu sync.Mutex
		running := map[*harness]int{}
		thinking := func(of *harness) thinker {
			return func(ctx context.Context, _ agent.Turn) iter.Seq2[agent.Message, error] {
				return func(yield func(agent.Message, error) bool) {
					count := func(n int) {
						mu.Lock()
						defer mu.Unlock()
						running[of] += n
					}
					count(1)
					<-ctx.Done()
					count(-1)
					yield(agent.Message{}, context.Cause(ctx))
				}
			}
		}
		all := make([]*harness, 2)
		for i := range all {
			self := new(harness)
			r := newHarness(t, thinking(self), func(cfg *bridge.Config) {
				cfg.Sharing, cfg.Access = queue.Sharing{Enabled: true}, access.Access{Admins: []string{"fake:1"}}
				if i > 0 {
					cfg.Store = all[0].cfg.Store
				}
			})
			all[i], running[r] = r, 0
			running[self] = 0
		}
		pass(t, 60) // they have shared the chats out
		user := func(n int) chats.Message {
			m := direct("1", "hello")
			m.Chat.ID, m.User = fmt.Sprint(100+n), fmt.Sprint(100+n)
			return m
		}
		for n := range users {
			all[0].accept(direct(fmt.Sprint("add", n), fmt.Sprint("/people add fake:", 100+n)))
		}
		pass(t, 10)
		for n := range users {
			all[n%2].accept(user(n))
		}
		pass(t, 10)
		mu.Lock()
		busy, sum := 0, 0
		for _, n := range running {
			if n > 0 {
				busy++
			}
			sum += n
		}
		mu.Unlock()
		if busy != 2 || sum != users {
			t.Fatalf("%d turns run on %d replicas: %v %v", sum, busy, all[0].platform.texts(), all[1].platform.texts())
		}
		for n := range users {
			all[n%2].accept(direct(fmt.Sprint("remove", n), fmt.Sprint("/people remove fake:", 100+n)))
		}
		pass(t, 10)
		mu.Lock()
		for _, n := range running {
			if n != 0 {
				t.Errorf("%d turns still run", n)
			}
		}
		mu.Unlock()
		for n := range users {
			m := user(n)
			m.ID = "2"
			all[n%2].accept(m)
		}
		pass(t, 10)
		mu.Lock()
		for _, n := range running {
			if n != 0 {
				t.Errorf("%d turns began", n)
			}
		}
		mu.Unlock()
		texts := strings.Join(append(all[0].platform.texts(), all[1].platform.texts()...), "\n")
		if n := strings.Count(texts, "may no longer talk to me"); n != users {
			t.Errorf("%d removals of %d in:\n%s", n, users, texts)
		}
		for _, r := range all {
			r.stop()
		}
	})
}
