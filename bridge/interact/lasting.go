package interact

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"oneclaw/agent"
	"oneclaw/bridge/audit"
	"oneclaw/bridge/chats"
	"oneclaw/bridge/conversation"
	"oneclaw/bridge/queue"
	"oneclaw/bridge/turn"
	"oneclaw/internal/wording"
	"oneclaw/storage"
	"oneclaw/toolgroups"
)

const (
	// lastingPrefix begins the keys of lasting approvals: lastingPrefix, the log of the conversation, the
	// user, and the hash of what is allowed.
	lastingPrefix = "allowed/"
	// lastingAge is how long a lasting approval holds if no /clear ends it.
	lastingAge = 90 * 24 * time.Hour
	// maxLasting bounds the lasting approvals of a user in a conversation.
	maxLasting = 20
	// maxLastingArguments bounds the arguments of a call that can be allowed for longer, in bytes.
	maxLastingArguments = 1000
	// maxLastingShown bounds the arguments of a call in the list, in characters.
	maxLastingShown = 100
)

// LastingApproval lets calls run without a card: those of one user in one conversation, until that is
// cleared.
type LastingApproval struct {
	Tool string `json:"tool"`
	// Arguments are the arguments of the calls as the tool gets them. For tools that only read, Alike may
	// describe the calls instead, in Markdown.
	Arguments string `json:"arguments,omitempty"`
	Alike     string `json:"alike,omitempty"`
	// User made the first of the calls, allowed it, and may make the others, as platform:id.
	User string     `json:"user"`
	Chat chats.Chat `json:"chat"`
	// Seq is the Seq of the message to which that call belonged. A /clear after it ends the approval, also
	// if that is undone.
	Seq int64     `json:"seq"`
	At  time.Time `json:"at,omitzero"`

	key string
}

func lastingUserPrefix(log, user string) string { return lastingPrefix + log + "/" + user + "/" }

// lastingApproval returns the lasting approval that would cover a call; nil if the bot asks about each
// such call. It does so if the policy, the tool, the arguments or the user's own rights do not permit a
// lasting approval, and in turns that no message of a user has begun. That a person's account may be read
// where others read along is decided for the chat, so it holds in such turns too.
func (g *Gate) lastingApproval(ctx context.Context, j *queue.Run, call toolgroups.Call, tool toolgroups.Tool, policy Policy) (*LastingApproval, error) {
	harmless := tool.Effect == toolgroups.ReadOnly || tool.LastingApproval
	own := request{Requester: call.User, Direct: call.Direct, Approvers: policy.Approvers}
	if !policy.MayLast || !harmless || !own.mayAllow(call.User, g.cfg.Roles.Role(call.User)) {
		return nil, nil
	}
	log := call.Session
	if !isAttended(j, call) {
		if !readsAccountAmongOthers(tool, call) {
			return nil, nil
		}
		session, err := conversation.Current(ctx, g.cfg.Store, j.Message.Chat)
		if err != nil {
			return nil, err
		}
		log = session.Log()
	}
	alike, common := describeAlike(tool, call)
	return g.newLasting(log, j, call, tool, alike, common), nil
}

// isAttended reports whether a message of a user has begun the turn of a call.
func isAttended(j *queue.Run, call toolgroups.Call) bool {
	return j.Message.Kind == chats.KindText && turn.TaskOf(j) == nil && !call.Scheduled
}

func readsAccountAmongOthers(tool toolgroups.Tool, call toolgroups.Call) bool {
	return tool.Personal && !call.Direct && tool.Effect == toolgroups.ReadOnly
}

// newLasting returns the lasting approval, in the conversation with a log, of a call and of those that share common
// with it, which alike describes; of this call alone if both are empty. It is nil for tools of administrators, and for
// arguments that are too long.
func (g *Gate) newLasting(log string, j *queue.Run, call toolgroups.Call, tool toolgroups.Tool, alike, common string) *LastingApproval {
	if tool.Role >= toolgroups.RoleAdmin || !g.cfg.Roles.IsPerson(call.User) || len(call.Arguments) > maxLastingArguments || !json.Valid(call.Arguments) {
		return nil
	}
	l := &LastingApproval{Tool: tool.Name, Alike: alike, User: call.User, Chat: j.Message.Chat, Seq: j.Seq}
	if alike == "" {
		l.Arguments = string(call.Arguments)
	}
	parts := []string{tool.Name, tool.Group, tool.Description, string(tool.Parameters), fmt.Sprint(tool.Effect), tool.Version, l.Alike, common}
	l.key = lastingUserPrefix(log, call.User) + agent.Hash(strings.Join(parts, "\x00"), l.Arguments)
	return l
}

// describeAlike returns what the calls that are like a call share, and describes it in Markdown. Both are
// empty if the call is like no other.
func describeAlike(tool toolgroups.Tool, call toolgroups.Call) (text, common string) {
	switch {
	case readsAccountAmongOthers(tool, call): // what is decided is that others read along
		return "your account (also in your tasks here)", tool.Name
	case tool.Effect != toolgroups.ReadOnly, tool.Like == nil:
		return "", ""
	}
	common, ok := tool.Like.Common(call.Arguments)
	switch {
	case !ok:
		return "", ""
	case tool.Like.SameFolder:
		return "pages directly in " + wording.InlineCode(common) + " (they may redirect elsewhere)", common
	}
	return wording.InlineCode(tool.Like.Argument) + " " + wording.InlineCode(common), common
}

// offer adds the button of a lasting approval to a card, and says on the card what the approval allows.
// requester is the person whom it serves, empty in a direct chat. format rewrites commands for the platform.
func (l *LastingApproval) offer(card *Card, label, requester string, format func(string) string) {
	scope := ""
	if requester != "" {
		scope = ", while I answer " + requester
	}
	what := "make exactly this call again without asking, even if the data that it uses has changed"
	switch {
	case l.Alike != "":
		what = "make calls of " + wording.InlineCode(l.Tool) + " for " + l.Alike + " without asking, whatever their other arguments"
	case l.Tool == commandTool:
		what = "run exactly this command again without asking, even if its files have changed"
	}
	card.Choices = append(card.Choices, []Choice{{Label: format(label), Value: choiceAllowLasting}})
	card.Footer += "\n\n" + format("“"+label+"” also lets me ") + what + scope + "." + format(" /approvals ends that.")
}

// isAllowed reports whether the lasting approval that a call needs, want, is stored and still holds.
func (g *Gate) isAllowed(ctx context.Context, j *queue.Run, want *LastingApproval) (bool, error) {
	entry, err := storage.Find(ctx, g.cfg.Store, want.key)
	if err != nil || entry.Revision == storage.Absent {
		return false, err
	}
	session, err := conversation.Current(ctx, g.cfg.Store, j.Message.Chat)
	if err != nil {
		return false, err
	}
	l := decodeLasting(entry)
	same := l.Tool == want.Tool && l.Arguments == want.Arguments && l.Alike == want.Alike && l.User == want.User
	return same && l.holdsIn(session), nil
}

// holdsIn reports whether the approval was given in a conversation since that was last cleared.
func (l *LastingApproval) holdsIn(s conversation.Session) bool {
	return strings.HasPrefix(l.key, lastingPrefix+s.Log()+"/") && l.Seq > s.ClearedAt
}

// keepOps returns the operations that store the lasting approval that a request offers, with an entry in
// the audit. If the user has too many, it returns a refusal instead.
func (g *Gate) keepOps(ctx context.Context, press Press, r request) (ops []storage.Op, refusal string, err error) {
	known, err := listLasting(ctx, g.cfg.Store, r.LastingKey[:strings.LastIndex(r.LastingKey, "/")+1])
	if err != nil {
		return nil, "", err
	}
	if len(known) >= maxLasting {
		text := fmt.Sprintf("You have allowed %d calls here for longer. /approvals ends some of them.", len(known))
		return nil, g.cfg.Cards.formatCommands(press.Place.Platform, text), nil
	}
	l := *r.Lasting
	l.At = g.cfg.Now()
	data, err := json.Marshal(l)
	if err != nil {
		return nil, "", fmt.Errorf("encode a lasting approval: %w", err)
	}
	entry, err := audit.AppendOp(queue.Hash(press.Token, choiceAllowLasting), audit.Entry{
		At: l.At, Action: "allow calls until clear", By: press.User, Name: press.UserName, Chat: press.Author.Chat, About: l.Tool,
	})
	return []storage.Op{storage.Put(r.LastingKey, data, storage.Any), entry}, "", err
}

// DropLasting deletes the lasting approvals of a conversation, given by its log.
func DropLasting(ctx context.Context, kv storage.KV, log string) error {
	return deleteLasting(ctx, kv, lastingPrefix+log+"/", func(*LastingApproval) (bool, error) { return true, nil })
}

// ForgetLasting deletes the lasting approvals of a user, platform:id.
func ForgetLasting(ctx context.Context, kv storage.KV, user string) error {
	return deleteLasting(ctx, kv, lastingPrefix, func(l *LastingApproval) (bool, error) { return l.User == user, nil })
}

// LastingApprovalsOf returns the lasting approvals of a user, platform:id.
func LastingApprovalsOf(ctx context.Context, kv storage.KV, user string) ([]*LastingApproval, error) {
	all, err := listLasting(ctx, kv, lastingPrefix)
	return slices.DeleteFunc(all, func(l *LastingApproval) bool { return l.User != user }), err
}

// deleteLasting deletes the lasting approvals whose keys have a prefix and for which pass returns true.
func deleteLasting(ctx context.Context, kv storage.KV, prefix string, pass func(*LastingApproval) (bool, error)) error {
	all, err := listLasting(ctx, kv, prefix)
	if err != nil {
		return err
	}
	for _, l := range all {
		gone, err := pass(l)
		if err == nil && gone {
			err = kv.Delete(ctx, l.key, storage.Any)
		}
		if err != nil {
			return fmt.Errorf("delete a lasting approval: %w", err)
		}
	}
	return nil
}

// listLasting returns the lasting approvals whose keys have a prefix, the oldest first.
func listLasting(ctx context.Context, kv storage.KV, prefix string) (all []*LastingApproval, err error) {
	for entry, err := range kv.List(ctx, storage.Range{Prefix: prefix}) {
		if err != nil {
			return nil, fmt.Errorf("list lasting approvals: %w", err)
		}
		all = append(all, decodeLasting(entry))
	}
	slices.SortFunc(all, func(a, b *LastingApproval) int { return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.key, b.key)) })
	return all, nil
}

// decodeLasting decodes a lasting approval. A damaged one allows nothing, and belongs to the user in its
// key.
func decodeLasting(entry storage.Entry) *LastingApproval {
	l := &LastingApproval{key: entry.Key}
	if json.Unmarshal(entry.Value, l) != nil {
		parts := strings.Split(entry.Key, "/")
		l = &LastingApproval{key: entry.Key, User: parts[max(len(parts)-2, 0)]}
	}
	return l
}

// LastingKind is the kind of the card of /approvals.
const LastingKind = "approvals"

// lastingListAge is how long the buttons of /approvals can be pressed.
const lastingListAge = time.Hour

// LastingList shows users their lasting approvals, with buttons to end them.
type LastingList struct {
	Store storage.KV
	Cards *Cards
	Roles Roles
	Now   func() time.Time
}

// lastingData is the data of the card of /approvals.
type lastingData struct {
	User string     `json:"user"`
	Chat chats.Chat `json:"chat"`
	// Keys are the keys of the listed approvals. They keep their numbers when some have ended.
	Keys []string `json:"keys"`
}

// HandleCommand answers /approvals.
func (s LastingList) HandleCommand(ctx context.Context, j *queue.Run, _ string) (string, error) {
	of := lastingData{User: j.Message.SenderID(), Chat: j.Message.Chat}
	all, err := s.current(ctx, of.Chat, of.User)
	if err != nil {
		return "", err
	}
	for _, l := range all[:min(len(all), maxLasting)] {
		of.Keys = append(of.Keys, l.key)
	}
	text, choices := of.render(all, s.Cards.cfg.RedactCards)
	if choices == nil {
		return "I ask each time here. Where the button “Allow here until /clear” is below a question, it makes an exception for you.", nil
	}
	data, err := json.Marshal(of)
	if err != nil {
		return "", fmt.Errorf("encode the list of lasting approvals: %w", err)
	}
	return s.Cards.Answer(ctx, j, Card{
		Kind: LastingKind, KeepCommands: true, QuotedUser: of.User, Text: text, Choices: choices, Data: data, Expires: s.Now().Add(lastingListAge),
	})
}

// current returns the lasting approvals of a user that hold in a chat.
func (s LastingList) current(ctx context.Context, chat chats.Chat, user string) ([]*LastingApproval, error) {
	session, err := conversation.Current(ctx, s.Store, chat)
	if err != nil {
		return nil, err
	}
	all, err := listLasting(ctx, s.Store, lastingUserPrefix(session.Log(), user))
	return slices.DeleteFunc(all, func(l *LastingApproval) bool { return l.Tool == "" || !l.holdsIn(session) }), err
}

// lastingRow is the number of buttons in a row.
const lastingRow = 5

// render returns the list as text, and the buttons of the approvals that hold.
func (of lastingData) render(all []*LastingApproval, mask func(string) string) (string, [][]Choice) {
	var text strings.Builder
	text.WriteString("**You have allowed this here, until the conversation is cleared:**\n")
	var choices []Choice
	for n, key := range of.Keys {
		i := slices.IndexFunc(all, func(l *LastingApproval) bool { return l.key == key })
		if i < 0 {
			fmt.Fprintf(&text, "\n%d. _ended_", n+1)
			continue
		}
		fmt.Fprintf(&text, "\n%d. %s", n+1, all[i].describe(mask))
		choices = append(choices, Choice{Label: fmt.Sprintf("✕ %d", n+1), Value: key})
	}
	return text.String(), slices.Collect(slices.Chunk(choices, lastingRow))
}

// describe describes the approval on one line, in Markdown. The arguments are masked before they are cut.
func (l *LastingApproval) describe(mask func(string) string) string {
	if l.Alike != "" {
		return wording.InlineCode(l.Tool) + " for " + l.Alike
	}
	shown := l.Arguments
	if fields, ok := argumentFields(json.RawMessage(l.Arguments)); ok {
		var parts []string
		for _, f := range fields {
			parts = append(parts, f.name+": "+f.value)
		}
		shown = strings.Join(parts, ", ")
	}
	if shown == "" {
		return wording.InlineCode(l.Tool)
	}
	return wording.InlineCode(l.Tool) + " with " + wording.InlineCode(wording.Clip(mask(shown), maxLastingShown))
}

// HandlePress ends the lasting approval whose button was pressed.
func (s LastingList) HandlePress(ctx context.Context, press Press) (Result, error) {
	var of lastingData
	if err := json.Unmarshal(press.Card.Data, &of); err != nil {
		return Result{}, fmt.Errorf("decode the list of lasting approvals: %w", err)
	}
	format := func(text string) string { return s.Cards.formatCommands(press.Place.Platform, text) }
	switch {
	case press.Expired:
		return Result{Text: format("_This list is closed. /approvals shows you a new one._")}, nil
	case press.User != of.User && !press.ForChat:
		return Result{Toast: format("These belong to someone else. /approvals shows you yours.")}, nil
	}
	all, err := s.current(ctx, of.Chat, of.User)
	if err != nil {
		return Result{}, err
	}
	if i := slices.IndexFunc(all, func(l *LastingApproval) bool { return l.key == press.Choice }); i >= 0 {
		if err := press.Author.Record(ctx, "ask again for calls", all[i].Tool); err != nil {
			return Result{}, err
		}
		all = slices.Delete(all, i, i+1)
	}
	// Delete it even if the conversation was cleared: that may be undone.
	if err := s.Store.Delete(ctx, press.Choice, storage.Any); err != nil {
		return Result{}, fmt.Errorf("delete a lasting approval: %w", err)
	}
	result := Result{Toast: "I will ask again."}
	if result.Text, result.Choices = of.render(all, s.Cards.cfg.RedactCards); len(result.Choices) == 0 {
		result.Text, result.Close = "I ask each time here again.", true
	}
	return result, nil
}

// Prune deletes the lasting approvals that ended: those from before a time or older than lastingAge,
// those of cleared conversations, those of users who may no longer talk to the bot, and damaged ones.
func (s LastingList) Prune(ctx context.Context, before time.Time) error {
	if oldest := s.Now().Add(-lastingAge); oldest.After(before) {
		before = oldest
	}
	return deleteLasting(ctx, s.Store, lastingPrefix, func(l *LastingApproval) (bool, error) {
		if l.Tool == "" || l.At.Before(before) || s.Roles.Role(l.User) == toolgroups.RoleStranger {
			return true, nil
		}
		session, err := conversation.Current(ctx, s.Store, l.Chat)
		if queue.IsDamaged(err) {
			return false, nil
		}
		return err == nil && !l.holdsIn(session), err
	})
}
