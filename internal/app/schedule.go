package app

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"oneclaw/bridge"
	"oneclaw/bridge/chats"
	"oneclaw/bridge/queue"
	"oneclaw/bridge/receipts"
	"oneclaw/internal/hooks"
	"oneclaw/internal/settings"
	"oneclaw/toolgroups/schedule"
)

// submit submits a scheduled run to the bridge, which answers it in the task's chat.
func (b *Bot) submit(ctx context.Context, run schedule.Run) error {
	chat, err := chats.ParseChat(run.Chat)
	if err != nil {
		return fmt.Errorf("%w: %w", schedule.ErrRefused, err)
	}
	err = b.bridge.Submit(ctx, bridge.Submission{
		Key: run.Key, Chat: chat, User: strings.TrimPrefix(run.User, chat.Platform+":"),
		Direct: run.Direct, Title: run.Title, Text: run.Prompt, Trigger: receipts.Trigger{Note: run.Plan, Quiet: run.Quiet, Uses: run.Uses, Outside: run.Outside, Hosts: run.Hosts, Version: run.Version, StopTool: schedule.StopTool, StopData: run.StopData()},
	})
	if errors.Is(err, bridge.ErrPaused) {
		return fmt.Errorf("%w: %w", schedule.ErrPaused, err)
	}
	if errors.Is(err, queue.ErrInvalid) {
		return fmt.Errorf("%w: %w", schedule.ErrRefused, err)
	}
	return err
}

// taskStands returns a function that reports whether a submission may still begin.
func taskStands(s *schedule.Schedule, h *hooks.Hooks) func(context.Context, string, string, receipts.Trigger) (bool, error) {
	return func(ctx context.Context, owner, key string, from receipts.Trigger) (bool, error) {
		if from.StopTool != schedule.StopTool {
			return h.Stands(ctx, key)
		}
		return s.Stands(ctx, owner, key, from.Version)
	}
}

// taskReporter returns a function that reports the result of a run to the schedule.
func taskReporter(s *schedule.Schedule) func(context.Context, bridge.TaskResult) error {
	return func(ctx context.Context, r bridge.TaskResult) error {
		outcome := schedule.Outcome{Owner: r.Owner, Key: r.Key, Session: r.Session, MessageID: r.MessageID, Silent: r.Silent}
		switch {
		case r.State == receipts.Stopped:
			outcome.Fault = "stopped, or the schedule was changed before it began"
		case r.State == receipts.Revoked:
			outcome.Fault = "its author may not talk to the bot any more"
		case r.Paused:
			outcome.Fault = "did not run: the bot is blocked in the chat, or was removed from it"
		case r.Refused:
			outcome.Fault = "no budget was left"
		case r.Incident != "":
			outcome.Fault = "no answer, incident " + r.Incident
		case r.MessageID == "" && !r.Silent:
			outcome.Fault = fmt.Sprintf("not delivered (%s)", r.State)
		}
		return s.RecordOutcome(ctx, outcome)
	}
}

// HostZone returns the name of the host's time zone. It is empty if the zone has no name that can be looked
// up, for example because /etc/localtime is a copy; the host's zone then counts all the same.
func HostZone() string {
	name := time.Local.String()
	if name == "Local" {
		name, _ = os.Readlink("/etc/localtime") // not a link: no name
	}
	if _, below, ok := strings.Cut(name, "zoneinfo/"); ok {
		name = below
	}
	if zone, err := time.LoadLocation(name); err != nil || zone == time.Local {
		return ""
	}
	return name
}

// zoneOf returns a function that returns the time zone in the settings, or otherwise if there is none or
// it cannot be read.
func zoneOf(s *settings.Settings, otherwise *time.Location) func() *time.Location {
	return func() *time.Location {
		name, err := s.Values.Get(context.Background(), settings.SettingTimeZone)
		if err != nil || name == "" {
			return otherwise
		}
		zone, err := time.LoadLocation(name)
		if err != nil {
			return otherwise
		}
		return zone
	}
}
