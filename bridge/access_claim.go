package bridge

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"oneclaw/bridge/chats"
	"oneclaw/bridge/jobs"
	"oneclaw/bridge/wording"
	"oneclaw/storage"
	"oneclaw/toolgroups"
)

// ClaimAge is how long the code of a [Claim] is good for.
const ClaimAge = time.Hour

// A claim takes so many wrong codes of one user, and counts so many users; of others it
// then takes the right code alone. However many are wrong, it is not void by that: the
// code has 130 bits, and nobody but the owner is to decide when it ends.
const (
	maxWrongOfUser = 5
	maxGuessers    = 200
)

const claimKey = "claim"

// Errors of [NewClaim].
var (
	// ErrOwned is returned where the bot has an owner.
	ErrOwned = errors.New("bridge: the bot has an owner")
	// ErrOffered is returned where the operator has made a claim that is still open.
	ErrOffered = errors.New("bridge: a claim is open")
)

// Claim is the offer of the bot to whoever sends it the code in a direct chat.
type Claim struct {
	// Code is shown to the operator, once. Only its hash is stored.
	Code string `json:"code"`
	// Until is when it ends.
	Until time.Time `json:"until"`
}

// NewClaim stores a new claim in place of any earlier one. By hand is one that the
// operator has asked for: it is not replaced by one that was made by the program.
func NewClaim(ctx context.Context, kv storage.KV, now time.Time, byHand bool) (Claim, error) {
	owned, err := Owned(ctx, kv)
	if err != nil {
		return Claim{}, err
	}
	if owned {
		return Claim{}, ErrOwned
	}
	earlier, err := readClaim(ctx, kv)
	if err != nil && !errors.Is(err, errDamagedClaim) {
		return Claim{}, err
	}
	if earlier.ByHand && !byHand && earlier.open(now) {
		return Claim{Until: earlier.Until}, ErrOffered
	}
	offer := Claim{Code: rand.Text(), Until: now.Add(ClaimAge)}
	stored := claim{Hash: hashCode(offer.Code), Until: offer.Until, ByHand: byHand}
	return offer, stored.put(ctx, kv, storage.Any)
}

// Owned reports whether somebody owns the bot.
func Owned(ctx context.Context, kv storage.KV) (bool, error) {
	for entry, err := range kv.List(ctx, storage.Range{Prefix: accessPrefix}) {
		if err != nil {
			return false, fmt.Errorf("look for the owner: %w", err)
		}
		if one, err := decodePerson(entry); err == nil && one.Standing == isOwner {
			return true, nil
		}
	}
	return false, nil
}

// claim is what is stored of a [Claim].
type claim struct {
	Hash  []byte    `json:"hash"`
	Until time.Time `json:"until"`
	// Wrong counts wrong codes by user.
	Wrong map[string]int `json:"wrong,omitempty"`
	// Void is set where the code may be known to somebody else.
	Void bool `json:"void,omitempty"`
	// ByHand is set where the operator has asked for it.
	ByHand bool `json:"by_hand,omitempty"`
	// By is who has sent the right code.
	By string `json:"by,omitempty"`

	rev storage.Revision
}

func hashCode(code string) []byte {
	sum := sha256.Sum256([]byte(strings.ToUpper(strings.TrimSpace(code))))
	return sum[:]
}

func (c claim) put(ctx context.Context, kv storage.KV, rev storage.Revision) error {
	data, err := json.Marshal(c)
	if err != nil {
		return fmt.Errorf("encode claim: %w", err)
	}
	if _, err := kv.Put(ctx, claimKey, data, rev); err != nil {
		return fmt.Errorf("store claim: %w", err)
	}
	return nil
}

func (c claim) open(now time.Time) bool { return !c.Void && now.Before(c.Until) }

func (c claim) is(code string) bool { return subtle.ConstantTimeCompare(c.Hash, hashCode(code)) == 1 }

// hears reports whether a user's code is looked at.
func (c claim) hears(user, code string) bool {
	wrong, counted := c.Wrong[user]
	return wrong < maxWrongOfUser && (counted || len(c.Wrong) < maxGuessers || c.is(code))
}

var errDamagedClaim = errors.New("bridge: the claim can not be read")

// readClaim returns the claim that was made last, or the zero value.
func readClaim(ctx context.Context, kv storage.KV) (claim, error) {
	var c claim
	entry, err := kv.Get(ctx, claimKey)
	if errors.Is(err, storage.ErrNotFound) {
		return c, nil
	}
	if err != nil {
		return c, fmt.Errorf("read claim: %w", err)
	}
	if err := json.Unmarshal(entry.Value, &c); err != nil {
		return claim{}, fmt.Errorf("%w: %w", errDamagedClaim, err)
	}
	c.rev = entry.Revision
	return c, nil
}

// openClaim returns the claim that was made last, if there is one, and whether this user
// can still make it with a code.
func (b *Bridge) openClaim(ctx context.Context, user, code string) (claim, bool, error) {
	c, err := readClaim(ctx, b.store)
	if errors.Is(err, errDamagedClaim) {
		b.log.Error("nobody can claim the bot: start it again for a new code", "err", err)
		return c, false, nil
	}
	open := err == nil && c.open(b.cfg.Now()) && c.hears(user, code) && (c.By == "" || c.By == user)
	return c, open, err
}

// codePattern is what a claim looks like: what the link of Telegram sends, the command,
// or a code behind the mere word, because Slack keeps texts with a slash for itself.
var codePattern = regexp.MustCompile(`(?i)^(?:[/!]?(?:claim|start)\s+([a-z2-7]{26})|[/!]claim(?:\s+(\S+))?)$`)

// claimOf returns the message as the command that claims the bot, if it is meant as one.
func claimOf(m chats.Message) (chats.Message, bool) {
	match := codePattern.FindStringSubmatch(strings.TrimSpace(m.Text))
	if match == nil || m.Kind != chats.KindText {
		return m, false
	}
	m.Text = strings.TrimSpace("/" + claimName + " " + match[1] + match[2])
	return m, true
}

const claimName = "claim"

// claimBot makes the sender the owner, if the code is right.
func claimBot(ctx context.Context, b *Bridge, j *jobs.Job, code string) (string, error) {
	m := j.Message
	if b.role(m) == toolgroups.RoleOwner {
		return greeting(m), nil
	}
	b.people.changing.Lock()
	defer b.people.changing.Unlock()
	user := m.Chat.Platform + ":" + m.User
	c, open, err := b.openClaim(ctx, user, code)
	_, owned := b.people.owner()
	switch {
	case err != nil:
		return "", err
	case owned || !open:
		return "There is nothing to claim here, or the code does not count any more. " +
			"If I am yours, start me again: my log then shows a new code.", nil
	case !c.is(code):
		return b.wrongCode(ctx, c, user)
	case !m.Direct:
		c.Void = true
		b.log.Warn("the code was shown in a shared chat and is void: start again for a new one", "chat", m.Chat.String(), "user", user)
		return "Everybody here could read that code, so it does not count any more. " +
			"Start me again and send me the new one in a direct chat.", c.put(ctx, b.store, c.rev)
	}
	// Who has won is on record before they own anything: of two who are right at the
	// same moment, also in two processes, one fails here and finds the claim taken.
	c.By = user
	if err := c.put(ctx, b.store, c.rev); err != nil {
		return "", err
	}
	owner := person{
		User: user, Name: wording.OneLine(m.UserName, maxCalled), Standing: isOwner, Since: b.cfg.Now(),
		Chat: chats.Chat{Platform: m.Chat.Platform, ID: m.Chat.ID},
	}
	if err := b.people.put(ctx, owner); err != nil {
		return "", err
	}
	b.strangers.clear()
	b.log.Info("the bot is claimed", "owner", user, "name", owner.Name)
	if err := b.store.Delete(ctx, claimKey, storage.Any); err != nil {
		b.log.Warn("a used claim could not be removed", "err", err) // it is taken all the same
	}
	return greeting(m), nil
}

func (b *Bridge) wrongCode(ctx context.Context, c claim, user string) (string, error) {
	if c.Wrong == nil {
		c.Wrong = make(map[string]int)
	}
	c.Wrong[user]++
	return "That is not the code, or not all of it. My log shows it; each start makes a new one.", c.put(ctx, b.store, c.rev)
}

func greeting(m chats.Message) string {
	name := ""
	if m.UserName != "" {
		name = ", " + wording.Escape(wording.OneLine(m.UserName, maxCalled))
	}
	return "Welcome" + name + "! I am yours now.\n\n" +
		"Write to me as you would to a person; /help lists the commands. " +
		"When somebody else writes to me, I ask you here whether to let them in."
}
