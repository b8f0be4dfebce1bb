package memory_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/tiktoken-go/tokenizer"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"oneclaw/storage"
	"oneclaw/storage/bolt"
	"oneclaw/toolgroups"
	"oneclaw/toolgroups/memory"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// ada is an owner.
const ada = "telegram:1"

// bench is a memory on a store, with a clock that moves a minute at each look.
type bench struct {
	*memory.Memory
	tool  toolgroups.Tool
	store storage.Store
	mu    sync.Mutex
	clock time.Time
}

// scopeOf is that of a direct chat.
func scopeOf(owner string) toolgroups.Scope {
	return toolgroups.Scope{Owner: owner, User: owner, Role: toolgroups.RoleUser, Direct: true}
}

func (b *bench) now() time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.clock = b.clock.Add(time.Minute)
	return b.clock
}

func openStore(t testing.TB) storage.Store {
	t.Helper()
	store, err := bolt.Open(bolt.Config{Path: filepath.Join(t.TempDir(), "db"), NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	return store
}

func newBench(t testing.TB, store storage.Store) *bench {
	t.Helper()
	b := &bench{store: store, clock: time.Date(2026, 5, 1, 8, 0, 0, 0, time.UTC)}
	var err error
	if b.Memory, err = memory.New(memory.Config{Store: store, Now: b.now}); err != nil {
		t.Fatal(err)
	}
	if b.tool, err = b.Tool(); err != nil {
		t.Fatal(err)
	}
	return b
}

func (b *bench) call(t testing.TB, owner string, args any) (string, *toolgroups.Error) {
	t.Helper()
	raw, err := json.Marshal(args)
	if err != nil {
		t.Fatal(err)
	}
	res, fault := toolgroups.Run(t.Context(), nil, b.tool, toolgroups.Call{
		Name: b.tool.Name, Arguments: raw, Scope: scopeOf(owner),
	})
	return res.Text, fault
}

func (b *bench) save(t testing.TB, owner, category, content string) string {
	t.Helper()
	text, fault := b.call(t, owner, map[string]string{"content": content, "category": category})
	if fault != nil {
		t.Fatalf("%q: %s: %s", content, fault.Code, fault.Message)
	}
	return text
}

func (b *bench) markdown(t testing.TB, owner string) string {
	t.Helper()
	_, notes, _ := strings.Cut(b.snapshot(t, owner, b.now().AddDate(1, 0, 0)), "not instructions.\n\n")
	return notes
}

func TestNotesStandInTheirSections(t *testing.T) {
	b := newBench(t, openStore(t))
	if got := b.save(t, ada, "projects", "Builds a boat"); got != "Saved in Projects." {
		t.Errorf("answer is %q", got)
	}
	b.save(t, ada, "profile", "Name is Ada")
	b.save(t, ada, "workflow", "Runs at six")
	b.save(t, ada, "Routines", "Tea at four")
	b.save(t, ada, "", "Owns a cat")
	if got := b.save(t, ada, "horoscope", "Two\nlines\n\n## Fake heading"); !strings.HasPrefix(got, "Saved in Notes.") {
		t.Errorf("answer is %q", got)
	}
	want := "## User Profile\n\n- Name is Ada\n\n## Habits/Routines\n\n- Runs at six\n- Tea at four\n\n" +
		"## Projects\n\n- Builds a boat\n\n## Notes\n\n- Owns a cat\n- Two\n  lines\n  ## Fake heading"
	if diff := cmp.Diff(want, b.markdown(t, ada)); diff != "" {
		t.Error(diff)
	}
}

// A fact is kept once.
func TestRepeatedFactsAreRefused(t *testing.T) {
	b := newBench(t, openStore(t))
	b.save(t, ada, "preferences", "Prefers short answers in French, with sources")
	b.save(t, ada, "notes", "tea")
	before := b.markdown(t, ada)
	for _, text := range []string{
		"Prefers short answers in French, with sources",
		"prefers SHORT answers in french",
		"  short answers\n in French, with  sources ",
		"Tea",
	} {
		for _, category := range []string{"preferences", "notes"} {
			_, fault := b.call(t, ada, map[string]string{"content": text, "category": category})
			if fault == nil || fault.Code != memory.CodeDuplicate {
				t.Errorf("%q: %+v", text, fault)
			}
		}
	}
	if after := b.markdown(t, ada); after != before {
		t.Errorf("memory changed to\n%s", after)
	}
	b.save(t, ada, "notes", "short answers")            // short enough to be about something else
	b.save(t, "telegram:2", "notes", "Likes teas, all") // and another's memory is another's
	b.save(t, "telegram:2", "preferences", "Prefers short answers in French, with sources")
}

func TestFactsThatOnlyBeginAlikeOrSayTheOppositeAreKept(t *testing.T) {
	b := newBench(t, openStore(t))
	for _, text := range []string{
		"No longer works at Siemens in Munich", "Works at Siemens in Munich",
		"The user's dog is called Maximilian", "The user's dog is called Max",
		"The meeting on Monday begins at 10:30", "The meeting on Monday begins at 10",
		"The code of the cellar door is 12345", "The code of the cellar door is 123",
	} {
		b.save(t, ada, "notes", text)
	}
}

func TestNotesKeepTheirIndentation(t *testing.T) {
	b := newBench(t, openStore(t))
	b.save(t, ada, "notes", "  Backup:\n  - disks \n\n    - the large one\n")
	if got, want := b.markdown(t, ada), "## Notes\n\n- Backup:\n    - disks\n      - the large one"; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestSaveMemoryErrors(t *testing.T) {
	b := newBench(t, openStore(t))
	for name, c := range map[string]struct {
		owner string
		args  any
		code  string
	}{
		"absent":   {ada, map[string]any{}, toolgroups.CodeInvalid},
		"empty":    {ada, map[string]any{"content": ""}, toolgroups.CodeInvalid},
		"blank":    {ada, map[string]any{"content": " \n\t"}, toolgroups.CodeInvalid},
		"number":   {ada, map[string]any{"content": []int{1}}, toolgroups.CodeInvalid},
		"too long": {ada, map[string]any{"content": strings.Repeat("ж", 5_001)}, toolgroups.CodeInvalid},
		"no owner": {"", map[string]any{"content": "a fact"}, memory.CodeSave},
	} {
		if _, fault := b.call(t, c.owner, c.args); fault == nil || fault.Code != c.code {
			t.Errorf("%s: %+v, want %s", name, fault, c.code)
		}
	}
	if got := b.markdown(t, ada); got != "" {
		t.Errorf("memory is %q", got)
	}
}

// brokenKV fails or conflicts on each write.
type brokenKV struct {
	storage.KV
	err error
}

func (b brokenKV) Put(context.Context, string, []byte, storage.Revision) (storage.Revision, error) {
	return 0, b.err
}

func TestWriteErrorsAreTold(t *testing.T) {
	for _, cause := range []error{errors.New("disk is on fire at /srv"), storage.ErrConflict} {
		m, err := memory.New(memory.Config{Now: time.Now, Store: brokenKV{openStore(t), cause}})
		if err != nil {
			t.Fatal(err)
		}
		tool, err := m.Tool()
		if err != nil {
			t.Fatal(err)
		}
		b := &bench{Memory: m, tool: tool}
		_, fault := b.call(t, ada, map[string]string{"content": "a fact"})
		if fault == nil || fault.Code != toolgroups.CodeExecution || strings.Contains(fault.Message, "/srv") {
			t.Errorf("%v: %+v", cause, fault)
		}
	}
}

func TestFullMemoryRefuses(t *testing.T) {
	b := newBench(t, openStore(t))
	for i := range memory.MaxText / memory.MaxNoteLength {
		b.save(t, ada, "notes", fmt.Sprintf("%04d", i)+strings.Repeat("x", memory.MaxNoteLength-4))
	}
	_, fault := b.call(t, ada, map[string]string{"content": "one more"})
	if fault == nil || fault.Code != memory.CodeSave || !strings.Contains(fault.Message, "full") {
		t.Errorf("%+v", fault)
	}
}

func TestConcurrentSavesAllCount(t *testing.T) {
	store := openStore(t)
	one, two := newBench(t, store), newBench(t, store)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			m := one
			if i%2 == 1 {
				m = two
			}
			if _, _, err := m.Save(t.Context(), scopeOf(ada), "notes", fmt.Sprintf("fact %d", i), ""); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if notes, err := one.Notes(t.Context(), ada); err != nil || len(notes) != 8 {
		t.Errorf("%d notes, %v", len(notes), err)
	}
}

func TestNotesComeNewestFirst(t *testing.T) {
	b := newBench(t, openStore(t))
	b.save(t, ada, "profile", "first")
	b.save(t, ada, "notes", "second")
	notes, err := b.Notes(t.Context(), ada)
	if err != nil {
		t.Fatal(err)
	}
	start := time.Date(2026, 5, 1, 8, 0, 0, 0, time.UTC)
	want := []memory.Note{
		{Section: memory.SectionNotes, Text: "second", SavedAt: start.Add(2 * time.Minute), Author: ada},
		{Section: memory.SectionProfile, Text: "first", SavedAt: start.Add(time.Minute), Author: ada},
	}
	if diff := cmp.Diff(want, notes); diff != "" {
		t.Error(diff)
	}
}

// No sequence of calls for one owner shows in what another sees.
func TestNothingCrossesOwners(t *testing.T) {
	store := openStore(t)
	rapid.Check(t, func(r *rapid.T) {
		owners := []string{"telegram:1", "telegram:12", "telegram:1/2", "slack:1", "telegram:-1:5", "telegram:"}
		b := newBench(t, store)
		want := map[string]string{}
		for _, o := range owners {
			if err := store.Delete(t.Context(), "memory/"+o, storage.Any); err != nil {
				r.Fatal(err)
			}
		}
		for range rapid.IntRange(1, 8).Draw(r, "steps") {
			o := rapid.SampledFrom(owners).Draw(r, "owner")
			text := rapid.StringMatching(`[a-z]{1,30}`).Draw(r, "text")
			if _, _, err := b.Save(t.Context(), scopeOf(o), "notes", text, ""); err != nil && !errors.Is(err, memory.ErrDuplicate) {
				r.Fatal(err)
			}
			want[o] = b.markdown(t, o)
			for _, other := range owners {
				if got := b.markdown(t, other); got != want[other] {
					r.Fatalf("after a change of %s, %s has %q, want %q", o, other, got, want[other])
				}
			}
		}
	})
}

func TestMoveKeepsBothMemories(t *testing.T) {
	b := newBench(t, openStore(t))
	b.save(t, "telegram:-5", "notes", "from the old group")
	b.save(t, "telegram:-100", "notes", "from the new one")
	for range 2 {
		if err := b.Move(t.Context(), "telegram:-5", "telegram:-100"); err != nil {
			t.Fatal(err)
		}
	}
	if got := b.markdown(t, "telegram:-100"); got != "## Notes\n\n- from the old group\n- from the new one" {
		t.Errorf("memory is\n%s", got)
	}
	if got := b.markdown(t, "telegram:-5"); got != "" {
		t.Errorf("the old one is\n%s", got)
	}
}

// Each request carries the schema.
func TestSchemaIsTerse(t *testing.T) {
	codec, err := tokenizer.Get(tokenizer.O200kBase)
	if err != nil {
		t.Fatal(err)
	}
	n, err := codec.Count(string(toolgroups.EncodeTools([]toolgroups.Tool{newBench(t, openStore(t)).tool})))
	t.Logf("%d tokens", n)
	if err != nil || n > 120 {
		t.Errorf("the schema costs %d tokens (%v)", n, err)
	}
}

// racing is a store in which another process acts before this one writes.
type racing struct {
	storage.Store
	before func()
}

func (r *racing) Put(ctx context.Context, key string, value []byte, rev storage.Revision) (storage.Revision, error) {
	if act := r.before; act != nil {
		r.before = nil
		act()
	}
	return r.Store.Put(ctx, key, value, rev)
}

// What another process saves while a chat moves goes along.
func TestMoveTakesAlongWhatIsSavedMeanwhile(t *testing.T) {
	store := openStore(t)
	other := newBench(t, store)
	other.save(t, "telegram:-5", "notes", "the first note of the old group")
	kv := &racing{Store: store}
	b := newBench(t, kv)
	kv.before = func() {
		other.save(t, "telegram:-5", "notes", "a second one of the old group")
		kv.before = func() { other.save(t, "telegram:-5", "notes", "and a third, which is late") }
	}
	if err := b.Move(t.Context(), "telegram:-5", "telegram:-100"); err != nil {
		t.Fatal(err)
	}
	if got := b.markdown(t, "telegram:-100"); strings.Count(got, "\n- ") != 3 {
		t.Errorf("memory is\n%s", got)
	}
}

func TestForgetTakesAllNotesOfOneOwner(t *testing.T) {
	b := newBench(t, openStore(t))
	b.save(t, "telegram:5", "notes", "to be forgotten")
	b.save(t, "telegram:55", "notes", "to be kept")
	for range 2 {
		if err := b.Forget(t.Context(), "telegram:5"); err != nil {
			t.Fatal(err)
		}
	}
	if gone, kept := b.markdown(t, "telegram:5"), b.markdown(t, "telegram:55"); gone != "" || !strings.Contains(kept, "to be kept") {
		t.Errorf("memory is\n%s\nand\n%s", gone, kept)
	}
}

// A damaged memory is set damaged once and begins anew, for whoever reads or writes it next.
func TestADamagedMemoryBeginsAnew(t *testing.T) {
	for name, use := range map[string]func(*memory.Memory) error{
		"read": func(m *memory.Memory) error { _, err := m.Notes(t.Context(), "x:1"); return err },
		"write": func(m *memory.Memory) error {
			_, _, err := m.Save(t.Context(), scopeOf("x:1"), "", "likes tea", "")
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			store := openStore(t)
			if _, err := store.Put(t.Context(), "memory/x:1", []byte("{"), storage.Absent); err != nil {
				t.Fatal(err)
			}
			var damaged []string
			m, err := memory.New(memory.Config{Now: time.Now, Store: store, HandleDamaged: func(_ context.Context, e storage.Entry) error {
				damaged = append(damaged, e.Key+" "+string(e.Value))
				return nil
			}})
			if err != nil {
				t.Fatal(err)
			}
			for range 2 {
				if err := use(m); err != nil && !errors.Is(err, memory.ErrDuplicate) {
					t.Fatal(err)
				}
			}
			if !slices.Equal(damaged, []string{"memory/x:1 {"}) {
				t.Errorf("set damaged: %q", damaged)
			}
		})
	}
}
