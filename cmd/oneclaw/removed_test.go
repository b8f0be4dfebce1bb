package main

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"oneclaw/internal/database"
	"oneclaw/internal/emulator/openai"
	"oneclaw/storage/bolt"
	"oneclaw/toolgroups"
	"oneclaw/toolgroups/schedule"
)

// TestATaskOfARemovedPlatformIsGivenUpAtOnce: it was made when there was Slack.
//
// Small faults: a field, a default, a task of a removed platform.
func TestATaskOfARemovedPlatformIsGivenUpAtOnce(t *testing.T) {
	t.Parallel()
	w := newHarness(t, openai.Offline{})
	store, err := bolt.Open(bolt.Config{Path: filepath.Join(w.env["ONECLAW_DATA_DIR"], databaseName)})
	if err != nil {
		t.Fatal(err)
	}
	put(t, store, "format", map[string]int{"version": database.LowestFormat})
	due := time.Now().UTC().Add(-time.Hour)
	s, err := schedule.New(schedule.Config{
		Store: store, Submit: func(context.Context, schedule.Run) error { return nil },
		Location: func() *time.Location { return time.UTC }, Now: func() time.Time { return due.Add(-time.Hour) },
	})
	if err != nil {
		t.Fatal(err)
	}
	tools := s.Group().Tools
	tool := tools[slices.IndexFunc(tools, func(tool toolgroups.Tool) bool { return tool.Name == "schedule_task" })]
	_, fault := toolgroups.Run(t.Context(), nil, tool, toolgroups.Call{
		Name: tool.Name, Scope: toolgroups.Scope{User: "slack:U1", Role: toolgroups.RoleUser, Chat: "slack:D1", Direct: true, Owner: "slack:U1"},
		Arguments: fmt.Appendf(nil, `{"name":"n","prompt":"p","schedule_type":"one_time","date":"%s","hour":%d,"minute":0}`, due.Format("2006-01-02"), due.Hour()),
	})
	if fault != nil {
		t.Fatal(fault)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	w.run().out.await(t, "giving up on a run that cannot be submitted")
}
