package queue

import (
	"context"
	"time"
)

// AuditEntry is something that a person does and that is kept for those who may have to know later:
// who, when and where, before it is known what. A zero one is not kept.
type AuditEntry struct {
	// Event is what it belongs to: what is done again because of that is kept once.
	Event string
	At    time.Time
	// By is who does it, as platform:id, Name what the platform calls them, Chat where.
	By, Name, Chat string
	// Action is what is done, and About to what.
	Action, About string
	// Keep writes it.
	Keep Audit
}

// Audit writes what people do.
type Audit func(ctx context.Context, d AuditEntry) error

// Record keeps that something is done. It comes before the deed itself: what is tried again after
// a crash may find nothing left to do.
func (d AuditEntry) Record(ctx context.Context, action, about string) error {
	if d.Keep == nil {
		return nil
	}
	d.Action, d.About = action, about
	d.Event = Hash(d.Event + "\x00" + action + "\x00" + about)
	return d.Keep(ctx, d)
}

// Entry is what the message of a job does.
func (a Audit) Entry(j *Run) AuditEntry {
	m := j.Message
	return AuditEntry{Event: j.Key(), At: j.Accepted, By: m.By(), Name: m.UserName, Chat: m.Chat.String(), Keep: a}
}
