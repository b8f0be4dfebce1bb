package memory

import (
	"cmp"
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"oneclaw/internal/wording"
	"oneclaw/toolgroups"
)

// Error codes of the tools.
const (
	CodeDuplicate = "duplicate_detected"
	CodeSave      = "save_failed"
	CodeNotFound  = "memory_not_found"
)

const (
	// maxQuoted bounds a note in a result or an error, and a replaced one in a line, in characters.
	maxQuoted = 200
	// maxAnnounced bounds a new note in a line, in characters.
	maxAnnounced = 600
)

//go:embed save_memory.json memory.json
var manifests embed.FS

// Tool returns the core tool save_memory.
func (m *Memory) Tool() (toolgroups.Tool, error) {
	tool, err := toolgroups.ReadTool(manifests, "save_memory", toolgroups.TypedHandler(m.handleSave))
	tool.Undo, tool.NeedsApproval = m.undo, exceedsLine
	return tool, err
}

// exceedsLine reports whether a line would not show all of a note, which stays beyond /clear.
func exceedsLine(call toolgroups.Call) bool {
	type args struct {
		Content string `json:"content"`
	}
	return toolgroups.ExceedsLine(call, func(in args) bool { return wording.QuotesWhole(in.Content, maxAnnounced) })
}

// Group returns the group of the tools that change and remove notes.
func (m *Memory) Group() (toolgroups.Group, error) {
	group, err := toolgroups.ReadGroup(manifests, "memory", map[string]toolgroups.Handler{
		"update_memory": toolgroups.TypedHandler(m.handleUpdate),
		"forget_memory": toolgroups.TypedHandler(m.handleForget),
	})
	for i := range group.Tools {
		group.Tools[i].Undo, group.Tools[i].NeedsApproval, group.Tools[i].Describe = m.undo, exceedsLine, m.describe
	}
	return group, err
}

// describe shows the note of a call, whose arguments may have its id alone.
func (m *Memory) describe(ctx context.Context, call toolgroups.Call) (string, error) {
	var in struct {
		Memory string `json:"memory"`
	}
	if json.Unmarshal(call.Arguments, &in) != nil || call.Owner == "" {
		return "", nil // the call fails
	}
	notes, err := m.Notes(ctx, call.Owner)
	if err != nil {
		return "", err
	}
	doc := document{Notes: notes}
	i, err := doc.find(call.Scope, in.Memory)
	if err != nil {
		return "", nil // as the call says, too
	}
	return "The fact: " + wording.Quote(notes[i].Text, maxAnnounced), nil
}

// undoData is the data by which an announcement is undone: the ID of the note that was saved, replaced or
// forgotten.
type undoData struct {
	Saved     string `json:"saved,omitempty"`
	Replaced  string `json:"replaced,omitempty"`
	Forgotten string `json:"forgotten,omitempty"`
}

// announceChange announces that a note was replaced or removed. The undo restores it.
func announceChange(old Note, text string, undo undoData) toolgroups.Announcement {
	a := toolgroups.Announcement{Text: text, Undo: toolgroups.UndoData(undo), For: UndoTime}
	if old.Author != "" {
		a.Quotes = []string{old.Author}
	}
	return a
}

// announceSaved announces a new note. The undo forgets it.
func announceSaved(call toolgroups.Call, n Note) toolgroups.Announcement {
	return toolgroups.Announcement{
		Text: fmt.Sprintf("I remember from now on: %s%s.", wording.Quote(call.MaskedLine(n.Text), maxAnnounced), describeZone(n.Zone, "")), Undo: toolgroups.UndoData(undoData{Saved: n.ID()}), For: UndoTime,
	}
}

// undo restores the note that an announcement says was removed, or forgets the one that it says was saved.
func (m *Memory) undo(ctx context.Context, scope toolgroups.Scope, data json.RawMessage) (err error) {
	var u undoData
	if json.Unmarshal(data, &u.Replaced) != nil { // earlier versions announced every removal with just the ID
		if err := json.Unmarshal(data, &u); err != nil {
			return fmt.Errorf("undo a change of the memory: %w", err)
		}
	}
	if u.Saved != "" {
		if _, err = m.remove(ctx, scope, u.Saved, u.Saved); errors.Is(err, ErrNotFound) {
			return nil // it is forgotten already
		}
	} else {
		_, err = m.restore(ctx, scope, cmp.Or(u.Forgotten, u.Replaced), u.Forgotten != "")
	}
	switch {
	case errors.Is(err, ErrDenied):
		return toolgroups.Errorf(toolgroups.CodeDenied, "Only the person who had this saved, or an administrator, can do that.")
	case errors.Is(err, ErrFull):
		return toolgroups.Errorf(CodeSave, "There is no room for it any more. Forget something else first.")
	case errors.Is(err, ErrTooManyRemoved):
		return toolgroups.Errorf(CodeSave, "Too much was forgotten today. Please try again tomorrow.")
	case errors.Is(err, ErrNotFound):
		return toolgroups.Errorf(CodeNotFound, "It can no longer be brought back.")
	default:
		return err
	}
}

type saveArgs struct {
	Content  string `json:"content"`
	Category string `json:"category"`
	Zone     string `json:"time_zone"`
}

// checkZone returns the time zone that a call names.
func checkZone(said string) (string, error) {
	if strings.TrimSpace(said) == "" {
		return "", nil
	}
	zone := wording.FindZone(said)
	if zone == "" {
		return "", toolgroups.OwnErrorf(toolgroups.CodeInvalid, "'time_zone' is '%s', want an IANA name such as Europe/Berlin.", wording.OneLine(said, maxQuoted))
	}
	return zone, nil
}

// describeZone returns what follows a fact in a line if its zone was another one before.
func describeZone(zone, before string) string {
	if zone == before {
		return ""
	}
	return " (time zone " + zone + ")"
}

// effectOfZone returns a sentence for the model about the zone of a note that a call has saved.
func effectOfZone(n Note, named string, scope toolgroups.Scope) string {
	switch {
	case n.Zone == "":
		return ""
	case named == "":
		return " Its time zone is still " + n.Zone + ": call again with another if that is wrong."
	case !n.isAbout(scope):
		return " The times of the person who had it saved are those of " + n.Zone + " from now on, not the user's."
	}
	return " The user's times are those of " + n.Zone + " from now on. Schedules that exist keep their times: if there are any, ask whether to change them."
}

func (m *Memory) handleSave(ctx context.Context, call toolgroups.Call, in saveArgs) (toolgroups.Result, error) {
	zone, err := checkZone(in.Zone)
	if err != nil {
		return toolgroups.Result{}, err
	}
	note, others, err := m.Save(ctx, call.Scope, in.Category, in.Content, zone)
	if errors.Is(err, ErrDuplicate) && zone != "" && note.Zone != zone {
		return toolgroups.Result{}, toolgroups.Errorf(CodeDuplicate, "Memory already holds this, without this time zone. update_memory (group memory) with the same 'content' adds it.")
	}
	if err != nil {
		return toolgroups.Result{}, m.fault(ctx, call, err)
	}
	res := toolgroups.Result{Text: fmt.Sprintf("Saved in %s.%s", note.Section, effectOfZone(note, zone, call.Scope))}
	if near, ofOthers := m.offer(others, note.Text, call.Scope); near != "" {
		res.Text += " If one of these is no longer true, forget it with forget_memory (group memory):" + near
		if ofOthers {
			res.Origin = toolgroups.OriginComputed
		}
	}
	if call.HoldsOthers {
		// What was read may have asked for it, and it stays beyond /clear.
		res.Announced = append(res.Announced, announceSaved(call, note))
	}
	return res, nil
}

// offer lists the notes that match a text, with their IDs. ofOthers says that others than the user of the scope may
// have worded one of them: maybe while the turn ran, whose prompt then does not have it.
func (m *Memory) offer(notes []Note, text string, scope toolgroups.Scope) (list string, ofOthers bool) {
	var lines strings.Builder
	for _, n := range m.match(notes, m.dictionary().translate(text), minPersonal) {
		fmt.Fprintf(&lines, "\n%s: %s", n.ID(), wording.OneLine(n.Text, maxQuoted))
		ofOthers = ofOthers || n.IsOthers(scope.User, scope.Direct)
	}
	return lines.String(), ofOthers
}

// originOf returns the origin of a result that quotes a note.
func originOf(n Note, scope toolgroups.Scope) toolgroups.Origin {
	if n.IsOthers(scope.User, scope.Direct) {
		return toolgroups.OriginComputed
	}
	return toolgroups.OriginOwn
}

func quote(n Note) string { return "'" + wording.OneLine(n.Text, maxQuoted) + "'" }

type updateArgs struct {
	Memory   string `json:"memory"`
	Content  string `json:"content"`
	Category string `json:"category"`
	Zone     string `json:"time_zone"`
}

func (m *Memory) handleUpdate(ctx context.Context, call toolgroups.Call, in updateArgs) (toolgroups.Result, error) {
	zone, err := checkZone(in.Zone)
	if err != nil {
		return toolgroups.Result{}, err
	}
	old, note, err := m.Update(ctx, call.Scope, in.Memory, in.Category, in.Content, zone)
	if errors.Is(err, ErrNotFound) {
		return toolgroups.Result{}, m.notFound(ctx, call, in.Memory)
	}
	if err != nil {
		return toolgroups.Result{}, m.fault(ctx, call, err)
	}
	replaced := fmt.Sprintf("I remember %s%s instead of %s.", wording.Quote(call.MaskedLine(note.Text), maxAnnounced), describeZone(note.Zone, old.Zone), wording.Quote(call.MaskedLine(old.Text), maxQuoted))
	return toolgroups.Result{
		Text: fmt.Sprintf("Updated. It took the place of %s.%s", quote(old), effectOfZone(note, zone, call.Scope)), Origin: originOf(old, call.Scope), Announced: []toolgroups.Announcement{announceChange(old, replaced, undoData{Replaced: old.ID()})},
	}, nil
}

type forgetArgs struct {
	Memory string `json:"memory"`
}

func (m *Memory) handleForget(ctx context.Context, call toolgroups.Call, in forgetArgs) (toolgroups.Result, error) {
	note, err := m.Remove(ctx, call.Scope, in.Memory)
	if errors.Is(err, ErrNotFound) {
		return toolgroups.Result{}, m.notFound(ctx, call, in.Memory)
	}
	if err != nil {
		return toolgroups.Result{}, m.fault(ctx, call, err)
	}
	return toolgroups.Result{
		Text:      fmt.Sprintf("Forgotten: %s. The user can undo this for a day. It still stands in the conversation where it was said.", quote(note)),
		Origin:    originOf(note, call.Scope),
		Announced: []toolgroups.Announcement{announceChange(note, "I forgot "+wording.Quote(call.MaskedLine(note.Text), maxQuoted)+".", undoData{Forgotten: note.ID()})},
	}, nil
}

// notFound returns the error for a note that is not there, with the notes that may be meant.
func (m *Memory) notFound(ctx context.Context, call toolgroups.Call, name string) error {
	notes, err := m.Notes(ctx, call.Owner)
	if err != nil {
		return m.fault(ctx, call, err)
	}
	if len(notes) == 0 {
		return toolgroups.Errorf(CodeNotFound, "Nothing is remembered here.")
	}
	offered, ofOthers := m.offer(notes, name, call.Scope)
	if offered == "" {
		return toolgroups.Errorf(CodeNotFound, "There is no such memory here. search_history with scope memory finds what is remembered.")
	}
	fault := toolgroups.Errorf(CodeNotFound, "There is no such memory here. If one of these is meant, call again with its id:%s", offered)
	fault.Own = !ofOthers
	return fault
}

// fault returns the error of a tool for an error of the memory.
func (m *Memory) fault(ctx context.Context, call toolgroups.Call, err error) error {
	switch {
	case call.Owner == "":
		return toolgroups.Errorf(CodeSave, "There is no memory here.")
	case errors.Is(err, ErrInvalid):
		return toolgroups.Errorf(toolgroups.CodeInvalid, "'content' must have 1 to %d characters. Save a short note.", MaxNoteLength)
	case errors.Is(err, ErrDuplicate):
		return toolgroups.Errorf(CodeDuplicate, "Memory already holds this. Nothing has to be saved.")
	case errors.Is(err, ErrDenied):
		return toolgroups.Errorf(toolgroups.CodeDenied, "Nothing was changed: in a shared chat only the person who had it saved, or an administrator, can change this.")
	case errors.Is(err, ErrTooManyRemoved):
		return toolgroups.Errorf(CodeSave, "Nothing was changed: more than %d facts were replaced or forgotten within a day, and each can be brought back for a day. Tell the user; tomorrow there is room again.", maxRemoved)
	case errors.Is(err, ErrFull):
		return toolgroups.Errorf(CodeSave,
			"Nothing was saved: memory is full (%d notes, %d characters). Ask the user what may be forgotten.", MaxNotes, MaxText)
	case ctx.Err() != nil:
		return ctx.Err()
	}
	m.cfg.Logger.Error("memory was not saved", "owner", call.Owner, "err", err)
	// This code says that it may have been saved, as a store can fail behind a write.
	return toolgroups.Errorf(toolgroups.CodeExecution, "It is not known whether the note was saved. Look before you save it again.")
}
