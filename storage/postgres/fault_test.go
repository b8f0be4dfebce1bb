package postgres_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"oneclaw/storage"
	"oneclaw/storage/postgres"
	"oneclaw/storage/postgres/pgtest"
)

// ownServer returns a server that a test may do harm to.
func ownServer(t *testing.T) *pgtest.Server {
	t.Helper()
	own := &pgtest.Server{}
	t.Cleanup(func() {
		if err := own.Stop(); err != nil {
			t.Error(err)
		}
	})
	return own
}

// soon repeats a read until it succeeds: connections that are lost are found one by one.
func soon(t *testing.T, s storage.Store, key string) storage.Entry {
	t.Helper()
	var err error
	for range 100 {
		var e storage.Entry
		if e, err = s.Get(t.Context(), key); err == nil {
			return e
		}
	}
	t.Fatalf("Get: %v", err)
	return storage.Entry{}
}

func isKnown(err error) bool {
	return errors.Is(err, storage.ErrConflict) || errors.Is(err, storage.ErrNotFound) || errors.Is(err, storage.ErrInvalid)
}

// counting is four logs with a counter each, written in turns until a write is not
// confirmed.
type counting [4]struct {
	log       string
	confirmed storage.Position
}

func (c *counting) write(t *testing.T, s storage.Store, then int32, f func() error) {
	var count atomic.Int32
	var g sync.WaitGroup
	for w := range c {
		l := &c[w]
		l.log = fmt.Sprintf("%s %d", l.log, w)
		g.Go(func() {
			for pos := storage.Position(0); ; pos++ {
				n := []byte(fmt.Sprint(pos + 1))
				_, err := s.Write(t.Context(), storage.Append(l.log, pos, storage.Record{Label: "l", Data: n}), storage.Put(l.log, n, storage.Any))
				if err != nil {
					if isKnown(err) {
						t.Errorf("a write that was cut off: %v", err)
					}
					return
				}
				// It is time when each writer has had its share: a slow one might not have begun else.
				if l.confirmed = pos + 1; l.confirmed == storage.Position(then)/storage.Position(len(c)) && int(count.Add(1)) == len(c) {
					if err := f(); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	g.Wait()
}

// check wants all that was confirmed, no gap behind it, and the right count.
func (c *counting) check(t *testing.T, s storage.Store) {
	t.Helper()
	for _, l := range c {
		count := soon(t, s, l.log)
		n := storage.Position(0)
		for r, err := range s.Records(t.Context(), l.log, storage.Query{Label: "l"}) {
			if err != nil {
				t.Fatal(err)
			}
			if n++; r.Pos != n || string(r.Data) != fmt.Sprint(n) {
				t.Fatalf("%s: record %d is %d %q", l.log, n, r.Pos, r.Data)
			}
		}
		if n < l.confirmed || l.confirmed == 0 || string(count.Value) != fmt.Sprint(n) {
			t.Errorf("%s: %d records and a count of %s, but %d were confirmed", l.log, n, count.Value, l.confirmed)
		}
	}
}

// TestKilledServerLosesNothingConfirmed kills all processes of the server in the middle of
// writes, twice.
func TestKilledServerLosesNothingConfirmed(t *testing.T) {
	t.Parallel()
	own := ownServer(t)
	s := open(t, postgres.Config{URL: own.Database(t)})
	for round := range 2 {
		var c counting
		for w := range c {
			c[w].log = fmt.Sprint("round ", round)
		}
		c.write(t, s, 300, own.Kill)
		if err := own.Restart(); err != nil {
			t.Fatal(err)
		}
		c.check(t, s)
	}
}

// TestFailover kills the primary in the middle of writes and goes on with its standby.
func TestFailover(t *testing.T) {
	t.Parallel()
	own := ownServer(t)
	at := own.Database(t)
	standby := own.Standby(t)
	s := open(t, postgres.Config{URL: own.BothURL(at, standby)})
	changes := s.Watch(t.Context(), "")
	var c counting
	c.write(t, s, 300, own.Kill)
	if err := standby.Promote(); err != nil {
		t.Fatal(err)
	}
	c.check(t, s)
	highest := soon(t, s, c[0].log).Revision
	for _, l := range c {
		highest = max(highest, soon(t, s, l.log).Revision)
	}
	if rev := put(t, s, "behind", ""); rev <= highest {
		t.Errorf("revision %d follows %d", rev, highest)
	}
	var last error
	for _, last = range changes {
	}
	if !errors.Is(last, storage.ErrLagged) {
		t.Errorf("watch over a failover: %v, want ErrLagged", last)
	}
}

// TestAConflictIsAsSafeAsAWrite takes the standby away. A write then has no answer, although its server
// shows it after a while: until the standby has it, no conflict may say that it is stored.
func TestAConflictIsAsSafeAsAWrite(t *testing.T) {
	t.Parallel()
	own := ownServer(t)
	at := own.Database(t)
	s, patient := open(t, postgres.Config{URL: at, Timeout: time.Second}), open(t, postgres.Config{URL: at})
	put(t, patient, "before", "")
	standby := own.Standby(t)
	put(t, patient, "replicated", "")
	if err := standby.Kill(); err != nil {
		t.Fatal(err)
	}
	add := func(key string) error {
		_, err := s.Write(t.Context(), storage.Put(key, nil, storage.Absent), storage.Append(key, 0, storage.Record{}))
		return err
	}
	key, unknown := "", error(nil)
	for n := 0; unknown == nil; n++ { // until the server has read that writes wait for the standby
		key = fmt.Sprint("k", n)
		unknown = add(key)
	}
	if isKnown(unknown) {
		t.Fatalf("a write that the standby has not got: %v", unknown)
	}
	for err := storage.ErrNotFound; err != nil; {
		if _, err = patient.Get(t.Context(), key); err != nil && !errors.Is(err, storage.ErrNotFound) {
			t.Fatal(err)
		}
	}
	if err := add(key); err == nil || isKnown(err) {
		t.Errorf("a conflict with it: %v", err)
	}
	if err := standby.Restart(); err != nil {
		t.Fatal(err)
	}
	err := add(key)
	for range 100 {
		if isKnown(err) {
			break
		}
		err = add(key)
	}
	if !errors.Is(err, storage.ErrConflict) {
		t.Errorf("a conflict with what the standby has: %v", err)
	}
}

// marked is the value of the write that a proxy does something to.
const marked = "the marked value"

// proxy stands between a store and a server. What it does to a request with the marked
// value is one of the constants below.
type proxy struct {
	net.Listener
	to   string
	does atomic.Int32
	held chan struct{} // gets a token when the request is there
	// release lets a request go that is held: it is lost then.
	release chan struct{}

	mu    sync.Mutex // guards conns
	conns []net.Conn
}

const (
	cutRequest = iota // loses it with its connection
	cutAnswer         // lets it through, and loses the answer with the connection
	hold              // keeps it until release
)

func newProxy(t *testing.T, to string) *proxy {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{Listener: l, to: to, held: make(chan struct{}, 1), release: make(chan struct{})}
	var g sync.WaitGroup
	g.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			g.Go(func() { p.serve(client) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		p.mu.Lock()
		for _, c := range p.conns {
			_ = c.Close()
		}
		p.mu.Unlock()
		g.Wait()
	})
	return p
}

// behindProxy opens a store whose connections go through a proxy, and one without.
func behindProxy(t *testing.T) (p *proxy, s, direct *postgres.Store) {
	t.Helper()
	at := (&schemas{base: server.Database(t)}).next(t)
	u, err := url.Parse(at)
	if err != nil {
		t.Fatal(err)
	}
	p = newProxy(t, u.Host)
	u.Host = p.Addr().String()
	return p, open(t, postgres.Config{URL: u.String()}), open(t, postgres.Config{URL: at})
}

func (p *proxy) serve(client net.Conn) {
	upstream, err := new(net.Dialer).DialContext(context.Background(), "tcp", p.to)
	if err != nil {
		_ = client.Close()
		return
	}
	p.mu.Lock()
	p.conns = append(p.conns, client, upstream)
	p.mu.Unlock()
	var answered atomic.Bool // with nothing
	var g sync.WaitGroup
	g.Go(func() {
		carry(upstream, client, func(b []byte) bool {
			if !bytes.Contains(b, []byte(marked)) {
				return true
			}
			answered.Store(true)
			p.held <- struct{}{}
			if p.does.Load() == hold {
				<-p.release
			}
			return p.does.Load() == cutAnswer
		})
	})
	g.Go(func() { carry(client, upstream, func([]byte) bool { return !answered.Load() }) })
	g.Wait()
}

// carry carries over what may pass. What may not is lost, and both connections with it.
func carry(to, from net.Conn, pass func([]byte) bool) {
	defer func() { _, _ = to.Close(), from.Close() }()
	b := make([]byte, 1<<16)
	for {
		n, err := from.Read(b)
		if err != nil || !pass(b[:n]) {
			return
		}
		if _, err := to.Write(b[:n]); err != nil {
			return
		}
	}
}

// TestConnectionCut cuts connections before a request reaches the server and before its
// answer comes back: the error is none that says what happened, and the other handle sees
// what did.
func TestConnectionCut(t *testing.T) {
	p, s, direct := behindProxy(t)
	for name, c := range map[string]struct {
		does    int32
		written bool
	}{"request": {cutRequest, false}, "answer": {cutAnswer, true}} {
		t.Run(name, func(t *testing.T) {
			if _, err := s.Put(t.Context(), "other", nil, storage.Any); err != nil {
				t.Fatal(err)
			}
			p.does.Store(c.does)
			_, err := s.Put(t.Context(), name, []byte(marked), storage.Absent)
			if err == nil || isKnown(err) || !strings.Contains(err.Error(), "connection to the server was lost") {
				t.Errorf("Put over a connection that is cut: %v", err)
			}
			<-p.held
			_, err = direct.Get(t.Context(), name)
			if c.written && err != nil || !c.written && !errors.Is(err, storage.ErrNotFound) {
				t.Errorf("what was written: %v", err)
			}
			soon(t, s, "other")
		})
	}
}

// TestUnansweredWrite ends the context of a write that has no answer yet. Its memory is the
// caller's again at once.
func TestUnansweredWrite(t *testing.T) {
	t.Parallel()
	p, s, direct := behindProxy(t)
	p.does.Store(hold)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	value, ended := []byte(marked), make(chan error)
	go func() {
		_, err := s.Put(ctx, "k", value, storage.Absent)
		clear(value)
		ended <- err
	}()
	<-p.held
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("Put: %v, want %v", err, context.Canceled)
	}
	close(p.release)
	if _, err := direct.Put(t.Context(), "k", nil, storage.Absent); err != nil {
		t.Error(err)
	}
}

// TestFullDisk has the server refuse a write as it does when its disk is full. Others that
// are written at the same time are none of its business.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	at := (&schemas{base: server.Database(t)}).next(t)
	s := open(t, postgres.Config{URL: at})
	exec(t, at, `CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
		IF length(NEW.value) > 100 THEN RAISE 'could not extend file: No space left on device' USING ERRCODE = 'disk_full'; END IF;
		RETURN NEW; END $$`)
	exec(t, at, "CREATE TRIGGER refuse BEFORE INSERT OR UPDATE ON oneclaw_kv FOR EACH ROW EXECUTE FUNCTION refuse()")
	var g sync.WaitGroup
	for i := range 20 {
		g.Go(func() {
			_, err := s.Put(t.Context(), fmt.Sprint(i), make([]byte, 100+i%2), storage.Absent)
			if i%2 == 0 && err != nil || i%2 == 1 && (err == nil || isKnown(err) || !strings.Contains(err.Error(), "the disk of the server is full")) {
				t.Errorf("Put of %d bytes: %v", 100+i%2, err)
			}
		})
	}
	g.Wait()
	exec(t, at, "DROP TRIGGER refuse ON oneclaw_kv")
	if _, err := s.Put(t.Context(), "1", make([]byte, 200), storage.Absent); err != nil {
		t.Errorf("Put when there is space again: %v", err)
	}
}

// TestStandby has the server become a standby, and the primary again.
func TestStandby(t *testing.T) {
	t.Parallel()
	own := ownServer(t)
	at := own.Database(t)
	s := open(t, postgres.Config{URL: at})
	rev, err := s.Put(t.Context(), "k", []byte("1"), storage.Absent)
	if err != nil {
		t.Fatal(err)
	}
	changes := s.Watch(t.Context(), "")
	if err := own.Demote(); err != nil {
		t.Fatal(err)
	}
	soon(t, s, "k")
	if _, err = s.Put(t.Context(), "k", []byte("2"), rev); err == nil || isKnown(err) || !strings.Contains(err.Error(), "read-only standby") {
		t.Errorf("Put on a standby: %v", err)
	}
	wantOpenError(t, postgres.Config{URL: at}, "the server is a read-only standby")
	if err := own.Promote(); err != nil {
		t.Fatal(err)
	}
	for range 100 {
		if _, err = s.Put(t.Context(), "k", []byte("3"), rev); err == nil {
			break
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	// What the watch saw of the server before says nothing about this one.
	for _, err := range changes {
		if !errors.Is(err, storage.ErrLagged) {
			t.Errorf("watch over a failover: %v, want ErrLagged", err)
		}
		break
	}
}
