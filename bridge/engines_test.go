package bridge_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"oneclaw/agent"
	"oneclaw/bridge"
	"oneclaw/bridge/chats"
	"oneclaw/bridge/queue"
	"oneclaw/storage"
	"oneclaw/storage/postgres/pgtest"
)

// asksNothingInVain has questions asked of bridges whose store then takes no writes for some time, and
// takes them again: each question is paid for once and answered once, and what comes meanwhile is
// refused, so that its platform gives it again.
func asksNothingInVain(t *testing.T, all several, m billed, takeWrites func(bool), lasts time.Duration) {
	t.Helper()
	const questions = 4
	chat, shown := func(n int) string { return fmt.Sprint(100 + n) }, all[0].platform
	answered := func(text string, times int) {
		shown.until(t, text, func(all []sent) bool {
			return len(slices.DeleteFunc(all, func(one sent) bool { return one.text != text })) == times
		})
	}
	// A replica that joins takes chats over: what is refused meanwhile, a platform gives again.
	accept := func(m chats.Message) {
		again, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		for err := all[0].bridge.Accept(again, m); err != nil; err = all[0].bridge.Accept(again, m) {
			if again.Err() != nil {
				t.Fatal(err)
			}
		}
	}
	for n := range questions {
		accept(in(chat(n), "0", "hello"))
	}
	answered("re: hello", questions)
	for n := range questions {
		accept(in(chat(n), "1", "work"))
	}
	for range questions {
		<-m.reached
	}
	takeWrites(false)
	close(m.free)
	meanwhile, cancel := context.WithTimeout(t.Context(), lasts)
	defer cancel()
	if err := all[0].bridge.Accept(meanwhile, in(chat(0), "2", "meanwhile")); err == nil {
		t.Error("a message was accepted that could not be stored")
	}
	<-meanwhile.Done()
	if n := m.calls.Load(); n != questions {
		t.Errorf("the model was asked %d times for %d questions that could not be stored", n, questions)
	}
	if got := shown.texts(); len(got) != questions {
		t.Errorf("while nothing could be stored there stood %q", got)
	}
	takeWrites(true)
	answered("re: work", questions)
	accept(in(chat(0), "2", "meanwhile"))
	answered("re: meanwhile", 1)
	for _, r := range all {
		r.stop()
	}
	// A replica that takes a chat over has not what the other one keeps in memory.
	if n, got := int(m.calls.Load()), shown.texts(); n < questions || n > questions*len(all) || len(got) != 2*questions+1 {
		t.Errorf("for %d questions the model was asked %d times, and there stands %q", questions, n, got)
	}
}

func newBilled(t *testing.T) (billed, []func(*bridge.Config)) {
	t.Helper()
	m := billed{diligent{}, new(atomic.Int32), make(chan struct{}, 1000), make(chan struct{})}
	return m, []func(*bridge.Config){busy(t, nothing), func(cfg *bridge.Config) {
		cfg.Turns.Agent = agent.New(agent.Config{Model: m})
		// No job is given up for what is the store's fault, however short its patience.
		cfg.Limits.RetryFor = 100 * time.Millisecond
	}}
}

// A PostgreSQL server becomes read-only, for longer than the leases of the replicas last.
func TestNoModelIsAskedWhilePostgreSQLIsReadOnly(t *testing.T) {
	t.Parallel()
	server := &pgtest.Server{}
	t.Cleanup(func() {
		if err := server.Stop(); err != nil {
			t.Error(err)
		}
	})
	for _, replicas := range []int{1, 2} {
		t.Run(fmt.Sprint(replicas), func(t *testing.T) {
			m, change := newBilled(t)
			store := openPostgres(t, server)
			var all several
			for range replicas {
				all = append(all, newHarness(t, nil, append(change, func(cfg *bridge.Config) {
					cfg.Store, cfg.Sharing = store, queue.Sharing{Enabled: true, TTL: 4 * time.Second}
					if len(all) > 0 {
						cfg.Platforms = all[0].cfg.Platforms
					}
				})...))
			}
			asksNothingInVain(t, all, m, func(on bool) {
				if err := server.SetWritable(on); err != nil {
					t.Fatal(err)
				}
				for err := error(nil); !on && err == nil; { // connections that are there learn of it in a moment
					_, err = store.Put(t.Context(), "probe", nil, storage.Any)
				}
			}, 6*time.Second)
		})
	}
}

// fullDisk names the role of a process of its own, whose files cannot grow for a while.
const fullDisk = "TEST_BRIDGE_FULL_DISK"

// The disk of a database in a file is full. The limit is one of a process that the test starts.
func TestNoModelIsAskedWhileTheDiskIsFull(t *testing.T) {
	t.Parallel()
	if os.Getenv(fullDisk) == "" {
		child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
		child.Env = append(os.Environ(), fullDisk+"=1")
		out, err := child.CombinedOutput()
		if err != nil || !bytes.Contains(out, []byte("file too large")) {
			t.Fatalf("%v, or nothing was refused:\n%s", err, out)
		}
		return
	}
	signal.Ignore(syscall.SIGXFSZ)
	var old syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &old); err != nil {
		t.Fatal(err)
	}
	m, change := newBilled(t)
	asksNothingInVain(t, several{newHarness(t, nil, change...)}, m, func(on bool) {
		limit := old
		if !on {
			limit.Cur = 1
		}
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
			t.Fatal(err)
		}
	}, 4*time.Second)
}
