package settings_test

import (
	"context"
	"fmt"
	"iter"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"

	"oneclaw/internal/settings"
	"oneclaw/storage"
)

// tap is a store whose changes are told, and whose reads end, when a test says so.
type tap struct {
	storage.KV
	// told gives the watch a change; one without a key is a lag.
	told chan string
	// gate, if there is one, is where a read waits that has its answer already.
	gate  atomic.Pointer[gate]
	reads atomic.Int64
}

type gate struct{ reached, open chan struct{} }

func (k *tap) Get(ctx context.Context, key string) (storage.Entry, error) {
	k.reads.Add(1)
	entry, err := k.KV.Get(ctx, key)
	if g := k.gate.Swap(nil); g != nil {
		close(g.reached)
		<-g.open
	}
	return entry, err
}

func (k *tap) Watch(ctx context.Context, _ ...string) iter.Seq2[storage.Event, error] {
	return func(yield func(storage.Event, error) bool) {
		for {
			select {
			case key := <-k.told:
				if key == "" {
					yield(storage.Event{}, storage.ErrLagged)
					return
				}
				if !yield(storage.Event{Entry: storage.Entry{Key: key}}, nil) {
					return
				}
			case <-ctx.Done():
				return
			}
		}
	}
}

// followed is a program that follows the changes of a store, of which the test tells it.
type followed struct {
	*tap
	*settings.Settings
	noticed chan settings.Area
	stop    func()
}

func follow(t testing.TB, kv storage.KV) *followed {
	t.Helper()
	f := &followed{tap: &tap{KV: kv, told: make(chan string)}, noticed: make(chan settings.Area)}
	f.Settings, _ = open(t, f.tap)
	f.start(t)
	return f
}

// start begins to follow; stop ends it and waits for the end.
func (f *followed) start(t testing.TB) {
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		done <- f.Follow(ctx, func(_ context.Context, c settings.Area) error {
			f.noticed <- c
			return nil
		})
	}()
	<-f.noticed
	f.stop = func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		f.stop = func() {}
	}
}

// tell has the watch yield a change, or a lag, and returns when it has been noticed.
func (f *followed) tell(key string) {
	f.told <- key
	<-f.noticed
}

const (
	budgetSetting = settings.SettingUserBudget
	budgetKey     = "settings/value/" + budgetSetting
)

type failer interface {
	Helper()
	Fatal(args ...any)
}

func write(t failer, s *settings.Settings, n int) {
	t.Helper()
	if err := s.Values.Set(context.Background(), budgetSetting, strconv.Itoa(n)); err != nil {
		t.Fatal(err)
	}
}

func budget(t failer, s *settings.Settings) int {
	t.Helper()
	value, err := s.Values.Get(context.Background(), budgetSetting)
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.Atoi(value)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// Whatever another process writes, whenever the watch tells of it, and however long a
// read takes: no read gives less than a write that had returned before it began, and once
// the watch has told everything, or has ended, the newest value is read.
func TestReadsAreNeverOlderThanOwnWrites(t *testing.T) {
	kv := openKV(t)
	rapid.Check(t, func(rt *rapid.T) {
		f := follow(t, kv)
		defer func() { f.stop() }()
		another, _ := open(t, kv)
		newest := 0
		write(rt, another, newest)
		f.tell("") // what was there before is another example's
		untold, own, following := 0, 0, true
		set := func(s *settings.Settings) {
			newest++
			write(rt, s, newest)
		}
		var release func()
		rt.Repeat(map[string]func(*rapid.T){
			"own write":       func(*rapid.T) { set(f.Settings); own = newest },
			"another's write": func(*rapid.T) { set(another); untold = newest },
			"watch tells": func(rt *rapid.T) {
				if following {
					f.tell(rapid.SampledFrom([]string{budgetKey, ""}).Draw(rt, "what"))
					untold = 0
				}
			},
			"watch ends": func(rt *rapid.T) {
				if following {
					f.stop()
				} else {
					f.start(t)
				}
				following, untold = !following, 0
			},
			"a long read begins": func(rt *rapid.T) {
				if release != nil {
					rt.Skip("one is under way")
				}
				atLeast, got := own, make(chan int, 1)
				g := &gate{make(chan struct{}), make(chan struct{})}
				f.gate.Store(g)
				go func() { got <- budget(rt, f.Settings) }()
				release = func() {
					close(g.open)
					if n := <-got; n < atLeast {
						rt.Errorf("a long read gave %d after %d was written", n, atLeast)
					}
				}
				select {
				case <-g.reached:
				case n := <-got:
					f.gate.Store(nil)
					got <- n
				}
			},
			"a long read ends": func(*rapid.T) {
				if release != nil {
					release()
					release = nil
				}
			},
			"a short read": func(rt *rapid.T) {
				n := budget(rt, f.Settings)
				if n < own || (untold == 0 || !following) && n != newest {
					rt.Errorf("read %d: own writes went to %d, all to %d, untold %d", n, own, newest, untold)
				}
			},
		})
		if release != nil {
			release()
		}
	})
}

func TestWhatAMessageNeedsIsReadOnce(t *testing.T) {
	ctx := t.Context()
	f := follow(t, openKV(t))
	resolve := func(chat string) int64 {
		t.Helper()
		before := f.reads.Load()
		if _, err := f.Chats.Resolve(ctx, chat, chat); err != nil {
			t.Fatal(err)
		}
		for _, name := range f.Values.Names() {
			if _, err := f.Values.Get(ctx, name); err != nil {
				t.Fatal(err)
			}
		}
		return f.reads.Load() - before
	}
	if first, second := resolve("slack:C1"), resolve("slack:C1"); first == 0 || second != 0 {
		t.Errorf("%d reads, then %d", first, second)
	}
	if n := resolve("slack:C2"); n != 1 {
		t.Errorf("%d reads for the choice of another chat", n)
	}
	for n := range 5000 {
		resolve(fmt.Sprint("slack:D", n))
	}
	if resolve("slack:C1") == 0 {
		t.Error("thousands of chats are kept")
	}
	f.stop()
	if first, second := resolve("slack:C1"), resolve("slack:C1"); first == 0 || second != first {
		t.Errorf("when nobody follows: %d reads, then %d", first, second)
	}
}

// A model that is asked for by name must not change the list that others were given.
func TestCachedModelsAreNotShared(t *testing.T) {
	ctx := t.Context()
	f := follow(t, openKV(t))
	defer f.stop()
	for _, id := range []string{"b", "a"} {
		if _, err := f.Models.Add(ctx, settings.Ref{Provider: settings.PresetID, Model: id}, ""); err != nil {
			t.Fatal(err)
		}
	}
	models, err := f.Models.List(ctx, settings.PresetID)
	must(t, err)
	for i := range models {
		models[i].ID = "changed"
	}
	if m, err := f.Models.Get(ctx, settings.Ref{Provider: settings.PresetID, Model: "a"}); err != nil || m.ID != "a" {
		t.Errorf("%+v, %v", m, err)
	}
}

// Secrets are read from the store each time, so that one that another process has taken
// back is not used any more.
func TestSecretsAreNotCached(t *testing.T) {
	ctx := t.Context()
	kv := openKV(t)
	f := follow(t, kv)
	defer f.stop()
	another, vault := open(t, kv)
	_, own := open(t, f.tap)
	p, err := another.Providers.Add(ctx, "P", settings.TypeOpenAI, "https://p.test/v1")
	must(t, err)
	must(t, vault.SetKey(ctx, p.ID, "sk-1"))
	if p, err := f.Providers.Get(ctx, p.ID); err != nil || !p.HasKey {
		t.Errorf("%+v, %v", p, err)
	}
	must(t, vault.SetKey(ctx, p.ID, "sk-2"))
	if key, err := own.Key(ctx, p); err != nil || key != "sk-2" {
		t.Errorf("key %q, %v", key, err)
	}
	if _, err := another.Providers.Delete(ctx, p.ID); err != nil {
		t.Fatal(err)
	}
	if p, err := f.Providers.Get(ctx, p.ID); err != nil || p.HasKey {
		t.Errorf("%+v, %v", p, err)
	}
}

// Two processes that change different things of one provider at the same time both do.
func TestChangesOfThePresetInTwoProcessesBothCount(t *testing.T) {
	kv := openKV(t)
	here, vault := open(t, kv)
	other, _ := open(t, kv)
	addUsable(t, here, vault)
	for range 20 {
		on, off, name := true, false, "Ours"
		for _, s := range []*settings.Settings{here, other} {
			if _, _, err := s.Providers.Change(t.Context(), settings.PresetID, settings.ProviderChange{Active: &on, Name: new("Before")}); err != nil {
				t.Fatal(err)
			}
		}
		var wait sync.WaitGroup
		for s, c := range map[*settings.Settings]settings.ProviderChange{here: {Active: &off}, other: {Name: &name}} {
			wait.Go(func() {
				if _, _, err := s.Providers.Change(t.Context(), settings.PresetID, c); err != nil {
					t.Error(err)
				}
			})
		}
		wait.Wait()
		if p, err := here.Providers.Get(t.Context(), settings.PresetID); err != nil || p.Active || p.Name != name {
			t.Fatalf("%+v, %v", p, err)
		}
	}
}
