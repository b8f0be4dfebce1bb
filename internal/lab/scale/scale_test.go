package scale

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jackc/pgx/v5"

	"oneclaw/bridge/platformtest"
	"oneclaw/internal/database"
	"oneclaw/storage"
	"oneclaw/storage/postgres"
	"oneclaw/storage/postgres/pgtest"
	"oneclaw/storage/replicas"
)

// A hundred replicas with a million chats ask a database for what one server can do. The figures of the
// documents are those of this test.
func TestScale(t *testing.T) {
	platformtest.OnlyNightly(t)
	s := Simulation{Replicas: 100, Chats: 1_000_000, Messages: 4000, Rate: 1000, Lose: 10}
	synctest.Test(t, func(t *testing.T) {
		found, err := s.simulate(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := s.print(t.Output(), found); err != nil {
			t.Fatal(err)
		}
		for what, got := range map[string]struct{ is, most float64 }{
			"statements a message":                    {found.message.statements(), 20},
			"reads a message":                         {found.message.reads, 10},
			"rows read a message":                     {found.message.rowsRead, 10},
			"rows written a message":                  {found.message.rowsWritten, 18},
			"KB of log a message":                     {found.message.walBytes / 1000, 10},
			"watched rows a message":                  {found.message.watched, 3},
			"replicas notified of a message":          {found.message.delivered, 2},
			"statements a second of a replica":        {found.idle.statements(), 50},
			"watched rows a second of a replica":      {found.idle.watched, 50},
			"shares of one replica more than another": {float64(found.shares[1] - found.shares[0]), 2},
			"seconds of the takeover":                 {found.takenOver.Seconds(), (replicas.DefaultTTL + time.Second).Seconds()},
		} {
			if got.is > got.most || got.is <= 0 && what != "shares of one replica more than another" {
				t.Errorf("%s: %.1f, want at most %.1f", what, got.is, got.most)
			}
		}
	})
}

func TestWhatCannotBeSimulatedIsRefused(t *testing.T) {
	for _, s := range []Simulation{
		{Replicas: 5, Chats: 9, Messages: 1, Rate: 9, Lose: 10}, {Replicas: 5, Chats: 9, Messages: 1, Rate: 9, Lose: 5}, {Replicas: 5, Chats: 9, Messages: 1}, {},
	} {
		if err := s.Run(t.Context(), io.Discard); err == nil {
			t.Errorf("%+v is simulated", s)
		}
	}
}

// What the simulation counts is what a server does: three replicas on a real one.
func TestTheCountsAreThoseOfAServer(t *testing.T) {
	server := pgtest.Server{Settings: []string{"full_page_writes=off", "autovacuum=off"}}
	url := server.Database(t)
	t.Cleanup(func() {
		if err := server.Stop(); err != nil {
			t.Error(err)
		}
	})
	open := func() (storage.Store, error) {
		s, err := postgres.Open(t.Context(), postgres.Config{URL: url, Channel: database.ChannelOf})
		if err == nil {
			t.Cleanup(func() { _ = s.Close() })
		}
		return s, err
	}
	if _, err := open(); err != nil { // the tables are there
		t.Fatal(err)
	}
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	read := func() (got [3]float64) {
		t.Helper()
		_, err := conn.Exec(t.Context(), "SELECT pg_stat_clear_snapshot()")
		if err == nil {
			err = conn.QueryRow(t.Context(), `SELECT xact_commit::float8, (tup_inserted + tup_updated + tup_deleted)::float8, pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::float8
				FROM pg_stat_database WHERE datname = current_database()`).Scan(&got[0], &got[1], &got[2])
		}
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	before, used := read(), serverTime(t, conn)
	found, err := Simulation{Replicas: 3, Chats: 50, Messages: 100, Rate: 50, open: open}.simulate(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	after := read() // the replicas have left, so their sessions have reported
	t.Logf("%.2f ms of the server's processor time for a statement", (serverTime(t, conn)-used)/(after[0]-before[0]))
	counted := [3]float64{found.all.statements(), found.all.rowsWritten, found.all.walBytes}
	for i, what := range []string{"statements", "rows written", "bytes of log"} {
		is := after[i] - before[i]
		t.Logf("%s: %.0f counted, %.0f of the server", what, counted[i], is)
		if ratio := counted[i] / is; ratio < 0.5 || ratio > 2 {
			t.Errorf("%s: %.0f counted, %.0f of the server", what, counted[i], is)
		}
	}
}

// serverTime returns the processor time of a server so far, in milliseconds; 0 where it is not known.
func serverTime(t *testing.T, conn *pgx.Conn) (ms float64) {
	t.Helper()
	fields := func(pid string) []string { // those after the name
		stat, _ := os.ReadFile("/proc/" + pid + "/stat")
		return strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	}
	own := fields(strconv.FormatUint(uint64(conn.PgConn().PID()), 10))
	if len(own) == 0 {
		return 0
	}
	parent := own[1]
	all, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		t.Fatal(err)
	}
	add := func(ticks ...string) {
		for _, text := range ticks {
			n, _ := strconv.ParseFloat(text, 64)
			ms += n * 10 // 100 ticks a second on Linux
		}
	}
	for _, dir := range all {
		if f := fields(filepath.Base(dir)); len(f) > 14 && f[1] == parent {
			add(f[11:13]...)
		}
	}
	if f := fields(parent); len(f) > 14 { // with those of its children that have ended
		add(f[11:15]...)
	}
	return ms
}
