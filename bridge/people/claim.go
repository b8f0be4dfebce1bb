package people

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
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

const claimKey = "claim"

// Errors of [NewClaim].
var (
	// ErrOwned says that the bot has an owner.
	ErrOwned = errors.New("people: the bot has an owner")
	// ErrOffered says that the operator has made a claim that is still open.
	ErrOffered = errors.New("people: a claim is open")
)

// Claim offers the bot to whoever sends it the code in a direct chat.
type Claim struct {
	// Code is shown to the operator, once. Only its hash is stored.
	Code string `json:"code"`
	// Until is when it ends.
	Until time.Time `json:"until"`
}

// NewClaim stores a new claim in place of any earlier one. ByHand says that the operator
// asked for it: a claim that the program makes by itself does not replace it.
func NewClaim(ctx context.Context, kv storage.KV, now time.Time, byHand bool) (Claim, error) {
	owned, err := Owned(ctx, kv)
	if err != nil {
		return Claim{}, err
	}
	if owned {
		return Claim{}, ErrOwned
	}
	earlier, err := readClaim(ctx, kv)
	if err != nil {
		return Claim{}, err
	}
	if earlier.ByHand && !byHand && earlier.open(now) {
		return Claim{Until: earlier.Until}, ErrOffered
	}
	offer := Claim{Code: rand.Text(), Until: now.Add(ClaimAge)}
	stored := claim{Hash: hashCode(offer.Code), Until: offer.Until, ByHand: byHand}
	_, err = jobs.Write(ctx, kv, claimKey, stored, storage.Any)
	return offer, err
}

// Owned reports whether somebody owns the bot.
func Owned(ctx context.Context, kv storage.KV) (bool, error) {
	r := register{kv: kv}
	if err := r.load(ctx, slog.New(slog.DiscardHandler)); err != nil {
		return false, err
	}
	_, owned := r.owner()
	return owned, nil
}

// claim is what is stored of a [Claim].
type claim struct {
	Hash  []byte    `json:"hash"`
	Until time.Time `json:"until"`
	// Void says that others may know the code.
	Void bool `json:"void,omitempty"`
	// ByHand says that the operator asked for it.
	ByHand bool `json:"by_hand,omitempty"`
	// By sent the right code.
	By string `json:"by,omitempty"`

	rev storage.Revision
}

func hashCode(code string) []byte {
	sum := sha256.Sum256([]byte(strings.ToUpper(strings.TrimSpace(code))))
	return sum[:]
}

func (c claim) open(now time.Time) bool { return !c.Void && now.Before(c.Until) }

func (c claim) is(code string) bool { return subtle.ConstantTimeCompare(c.Hash, hashCode(code)) == 1 }

// readClaim returns the last claim. The zero value stands for none and for a damaged one: no
// code takes either, and the next claim replaces both.
func readClaim(ctx context.Context, kv storage.KV) (claim, error) {
	var c claim
	entry, err := kv.Get(ctx, claimKey)
	if errors.Is(err, storage.ErrNotFound) {
		return c, nil
	}
	if err != nil {
		return c, fmt.Errorf("read claim: %w", err)
	}
	if json.Unmarshal(entry.Value, &c) != nil {
		return claim{}, nil
	}
	c.rev = entry.Revision
	return c, nil
}

// Answers to codes that take no claim.
const (
	wrongCode = "That is not the code, or not all of it. My log shows it; each start makes a new one. " +
		"I may not answer the next wrong one."
	noClaim = "There is nothing to claim here, or the code does not count any more. " +
		"If I am yours, start me again: my log then shows a new one."
)

// tryCode returns the last claim, if there is one, and why a user's code does not take it.
// It does not count wrong codes: a code has 130 bits, and the operator alone decides when it
// ends.
func (d *Desk) tryCode(ctx context.Context, user, code string) (c claim, refusal string, err error) {
	c, err = readClaim(ctx, d.cfg.Store)
	switch {
	case err != nil:
		return c, "", err
	case !c.open(d.cfg.Now()) || c.By != "" && c.By != user:
		return c, noClaim, nil
	case !c.is(code):
		return c, wrongCode, nil
	}
	return c, "", nil
}

// ClaimPattern matches what claims the bot: what Telegram's link sends, the command, or a code
// behind the mere word, because Slack keeps texts with a slash for itself. No space stands
// around it.
var ClaimPattern = regexp.MustCompile(`(?i)^(?:[/!]?(?:claim|start)\s+([a-z2-7]{26})|[/!]claim(?:\s+(\S+))?)$`)

const claimName = "claim"

// AsClaim turns a message that matches [ClaimPattern] into the command that claims the bot.
func AsClaim(m chats.Message) chats.Message {
	if match := ClaimPattern.FindStringSubmatch(strings.TrimSpace(m.Text)); match != nil && m.Kind == chats.KindText {
		m.Text = strings.TrimSpace("/" + claimName + " " + match[1] + match[2])
	}
	return m
}

// claimBot makes the sender the owner, if the code is right.
func (d *Desk) claimBot(ctx context.Context, j *jobs.Job, code string) (string, error) {
	m := j.Message
	if d.Role(m.By()) == toolgroups.RoleOwner {
		return greeting(m), nil
	}
	d.changing.Lock()
	defer d.changing.Unlock()
	if _, owned := d.register.owner(); owned {
		return noClaim, nil
	}
	c, refusal, err := d.tryCode(ctx, m.By(), code)
	if err != nil || refusal != "" {
		return refusal, err
	}
	if !m.Direct {
		c.Void = true
		d.cfg.Log.Warn("the code was shown in a shared chat and is void: start again for a new one", "chat", m.Chat.String(), "user", m.By())
		_, err := jobs.Write(ctx, d.cfg.Store, claimKey, c, c.rev)
		return "Everybody here could read that code, so it does not count any more. " +
			"Start me again and send me the new one in a direct chat.", err
	}
	// The winner is on record before they own anything: of two with the right code at the
	// same moment, even in two processes, one fails here and finds the claim taken.
	c.By = m.By()
	if _, err := jobs.Write(ctx, d.cfg.Store, claimKey, c, c.rev); err != nil {
		return "", err
	}
	owner := writer(m, isOwner, d.cfg.Now())
	if err := d.register.put(ctx, owner); err != nil {
		return "", err
	}
	d.strangers.forget()
	d.cfg.Log.Info("the bot is claimed", "owner", owner.User, "name", owner.Name)
	if err := d.cfg.Store.Delete(ctx, claimKey, storage.Any); err != nil {
		d.cfg.Log.Warn("a used claim could not be removed", "err", err) // it is taken all the same
	}
	return greeting(m), nil
}

func greeting(m chats.Message) string {
	name := ""
	if m.UserName != "" {
		name = ", " + wording.Escape(wording.OneLine(m.UserName, maxName))
	}
	return "Welcome" + name + "! I am yours now.\n\n" +
		"Write to me as you would to a person; /help lists the commands. " +
		"When somebody else writes to me, I ask you here whether to let them in."
}
