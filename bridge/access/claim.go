package access

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base32"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"strings"
	"time"

	"oneclaw/bridge/chats"
	"oneclaw/bridge/queue"
	"oneclaw/internal/wording"
	"oneclaw/storage"
	"oneclaw/toolgroups"
)

// ClaimAge is how long the code of a [Claim] is valid.
const ClaimAge = time.Hour

const claimKey = "claim"

// Errors of [NewClaim] and [SharedClaim].
var (
	// ErrOwned is returned if the bot has an owner.
	ErrOwned = errors.New("access: the bot has an owner")
	// ErrClaimOpen is returned for an automatic claim while a claim made by hand is open.
	ErrClaimOpen = errors.New("access: a claim is open")
)

// Claim makes the user who sends its code in a direct chat the owner of the bot.
type Claim struct {
	// Code is shown to the operator. The store has its hash, and of a [SharedClaim] the seed, but not
	// the code.
	Code string `json:"code"`
	// Until is when the claim expires.
	Until time.Time `json:"until"`
}

// NewClaim stores a new claim in place of any earlier one. If byHand is true, the operator asked for it;
// an automatic claim does not replace a claim made by hand that is still open.
func NewClaim(ctx context.Context, kv storage.KV, now time.Time, byHand bool) (Claim, error) {
	return newClaim(ctx, kv, now, byHand, nil)
}

// SharedClaim returns the claim of processes that share a store and a secret. The first process creates
// it, and the others show the same code while it is open.
func SharedClaim(ctx context.Context, kv storage.KV, now time.Time, secret []byte) (Claim, error) {
	return newClaim(ctx, kv, now, false, secret)
}

func newClaim(ctx context.Context, kv storage.KV, now time.Time, byHand bool, secret []byte) (offer Claim, err error) {
	err = storage.Retry(ctx, func() error {
		// Read the claim first: if a user redeems it after this read, the write below is a conflict.
		earlier, err := readClaim(ctx, kv)
		if err != nil {
			return err
		}
		owned, err := HasOwner(ctx, kv)
		switch {
		case err != nil:
			return err
		case owned:
			return ErrOwned
		case earlier.ByHand && !byHand && earlier.isOpen(now):
			offer = Claim{Until: earlier.Until}
			return ErrClaimOpen
		}
		if code := deriveCode(secret, earlier.Seed); secret != nil && earlier.isOpen(now) && earlier.matches(code) {
			offer = Claim{Code: code, Until: earlier.Until}
			return nil
		}
		offer = Claim{Code: rand.Text(), Until: now.Add(ClaimAge)}
		stored := storedClaim{Until: offer.Until, ByHand: byHand}
		if secret != nil {
			stored.Seed = rand.Text()
			offer.Code = deriveCode(secret, stored.Seed)
		}
		stored.Hash = hashCode(offer.Code)
		_, err = storage.Save(ctx, kv, claimKey, stored, earlier.rev)
		return err
	})
	return offer, err
}

// deriveCode derives the code of a claim from a secret and a seed.
func deriveCode(secret []byte, seed string) string {
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte("oneclaw claim v1\x00" + seed))
	return base32.StdEncoding.EncodeToString(mac.Sum(nil))[:len(rand.Text())]
}

// HasOwner reports whether the bot has an owner.
func HasOwner(ctx context.Context, kv storage.KV) (bool, error) {
	r := newRegister(kv, slog.New(slog.DiscardHandler))
	if err := r.load(ctx); err != nil {
		return false, err
	}
	_, owned := r.owner()
	return owned, nil
}

// OwnerChat returns the direct chat with the bot's owner; the zero value if there is none.
func OwnerChat(ctx context.Context, kv storage.KV) (chats.Chat, error) {
	r := newRegister(kv, slog.New(slog.DiscardHandler))
	err := r.load(ctx)
	owner, _ := r.owner()
	return owner.Chat, err
}

// storedClaim is the stored form of a [Claim].
type storedClaim struct {
	Hash  []byte    `json:"hash"`
	Until time.Time `json:"until"`
	// Compromised is set if others may know the code.
	Compromised bool `json:"void,omitempty"`
	// ByHand is set if the operator asked for the claim.
	ByHand bool `json:"by_hand,omitempty"`
	// Seed lets processes that share a secret derive the same code.
	Seed string `json:"seed,omitempty"`

	rev storage.Revision
}

func hashCode(code string) []byte {
	sum := sha256.Sum256([]byte(strings.ToUpper(strings.TrimSpace(code))))
	return sum[:]
}

func (c storedClaim) isOpen(now time.Time) bool { return !c.Compromised && now.Before(c.Until) }

func (c storedClaim) matches(code string) bool {
	return subtle.ConstantTimeCompare(c.Hash, hashCode(code)) == 1
}

// readClaim returns the newest claim. It returns an empty one if there is none or if its record is
// damaged: no code matches that, and the next claim replaces it.
func readClaim(ctx context.Context, kv storage.KV) (storedClaim, error) {
	c, rev, err := storage.Load[storedClaim](ctx, kv, claimKey)
	if c.rev = rev; rev != storage.Absent {
		err = nil
	}
	return c, err
}

// Answers to codes that do not redeem a claim.
const (
	wrongCode = "That is not the code, or not all of it. Run `oneclaw claim` on the computer where I run: it prints a new one. " +
		"I may not answer the next wrong one."
	noClaim  = "There is nothing to claim here, or the code is no longer valid. If I am yours, run `oneclaw claim` on the computer where I run: it prints a new code."
	hasOwner = "I have an owner already, so there is nothing to claim."
)

// checkCode returns the newest claim, if there is one, and why a code does not redeem it; empty if it
// does. Wrong codes are not counted: a code has 130 bits, and the guesses of strangers must not end a
// claim.
func (d *Registry) checkCode(ctx context.Context, code string) (c storedClaim, refusal string, err error) {
	c, err = readClaim(ctx, d.cfg.Store)
	switch {
	case err != nil:
		return c, "", err
	case !c.isOpen(d.cfg.Now()):
		return c, noClaim, nil
	case !c.matches(code):
		return c, wrongCode, nil
	}
	return c, "", nil
}

// ClaimPattern matches messages that claim the bot: the text of Telegram's link, the command, or the
// word alone followed by a code, because Slack does not deliver texts with a slash. The text has to be
// trimmed.
var ClaimPattern = regexp.MustCompile(`(?i)^(?:[/!]?(?:claim|start)\s+([a-z2-7]{26})|[/!]claim(?:\s+(\S+))?)$`)

const claimCommand = "claim"

// AsClaim turns a text that matches [ClaimPattern] into the claim command. It returns other messages
// unchanged.
func AsClaim(m chats.Message) chats.Message {
	if match := ClaimPattern.FindStringSubmatch(strings.TrimSpace(m.Text)); match != nil && (m.Kind == chats.KindText || m.Kind == chats.KindEdit) {
		m.Text = strings.TrimSpace("/" + claimCommand + " " + match[1] + match[2])
	}
	return m
}

// claimBot makes the sender the owner if the code is right.
func (d *Registry) claimBot(ctx context.Context, j *queue.Run, code string) (string, error) {
	m := j.Message
	d.changeMu.Lock()
	defer d.changeMu.Unlock()
	if err := d.register.refresh(ctx, m.SenderID()); err != nil {
		return "", err
	}
	if d.Role(m.SenderID()) == toolgroups.RoleOwner {
		return greeting(m), nil
	}
	c, refusal, err := d.checkCode(ctx, code)
	if err != nil {
		return "", err
	}
	if owned, err := HasOwner(ctx, d.cfg.Store); err != nil || owned {
		return hasOwner, err
	}
	if refusal != "" {
		return refusal, nil
	}
	if !m.Direct {
		c.Compromised = true
		d.cfg.Log.Warn("the claim code was shown in a shared chat and is no longer valid: oneclaw claim prints a new one", "chat", m.Chat.String(), "user", m.SenderID())
		_, err := storage.Save(ctx, d.cfg.Store, claimKey, c, c.rev)
		return "Everyone here could read that code, so it is no longer valid. Run `oneclaw claim` on the computer where I run, and send me the new code in a direct chat.", err
	}
	owner := newPerson(m, standingOwner, d.cfg.Now())
	owner.rev = d.register.find(owner.User).rev
	if err := j.Author(d.cfg.Store).Record(ctx, "claim", owner.User); err != nil {
		return "", err
	}
	data, err := json.Marshal(owner)
	if err != nil {
		return "", fmt.Errorf("encode the owner: %w", err)
	}
	// The write that makes the owner also deletes the claim. If two users send the right code at the
	// same moment, even to two processes, only one of them succeeds.
	if owner.rev, err = d.cfg.Store.Write(ctx, storage.Put(accessPrefix+owner.User, data, owner.rev), storage.Delete(claimKey, c.rev)); err != nil {
		return "", fmt.Errorf("store the owner: %w", d.register.refreshAfterConflict(ctx, owner.User, err))
	}
	d.register.set(owner.User, owner)
	if err := d.strangers.forget(ctx, ""); err != nil {
		d.cfg.Log.Warn("the records of notices to strangers cannot be deleted", "err", err)
	}
	d.cfg.Log.Info("the bot is claimed", "owner", owner.User, "name", owner.Name)
	return greeting(m), nil
}

func greeting(m chats.Message) string {
	name := ""
	if m.UserName != "" {
		name = ", " + wording.EscapeMarkdown(wording.OneLine(m.UserName, maxName))
	}
	return "Welcome" + name + "! I am yours now.\n\n" +
		"Write to me as you would to a person; /help lists the commands. " +
		"When someone else writes to me, I will ask you here whether to let them in."
}
