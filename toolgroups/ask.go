package toolgroups

import (
	"bytes"
	"context"
	"encoding/json"
	"sync"
	"time"
)

// Question is a question that a tool asks the user on whose behalf it runs, during a call. Its texts
// are not trusted.
type Question struct {
	// From is the display name of the asker.
	From string `json:"from"`
	// Text is the question in plain text.
	Text string `json:"text"`
	// Fields are the fields of the form. Without fields the user only agrees.
	Fields []Field `json:"fields,omitempty"`
	// URL, if not empty, is an https address that the user is asked to open. A question with a URL has
	// no fields.
	URL string `json:"url,omitempty"`
	// Own says that the model asks. It is told what the user says without a look at it before: nothing leaves the
	// conversation with it.
	Own bool `json:"own,omitempty"`
	// Done, if not nil, is closed once the user has completed the steps at URL.
	Done <-chan struct{} `json:"-"`
}

// Field is a field of a form.
type Field struct {
	Name        string    `json:"name"`
	Title       string    `json:"title,omitempty"`
	Description string    `json:"about,omitempty"`
	Type        FieldType `json:"type"`
	// Required fields cannot be left out.
	Required bool `json:"required,omitempty"`
	// Default, if not nil, is the suggested value, of the type of [Answer.Values].
	Default any `json:"default,omitempty"`
	// Choices are the options of a [FieldChooseOne] or [FieldChooseMany].
	Choices []FieldChoice `json:"choices,omitempty"`
	// Free says that the value of a [FieldChooseOne] may be any other text too.
	Free bool `json:"free,omitempty"`
	// Min and Max bound a number, the characters of a text, or the number of chosen options.
	Min *float64 `json:"least,omitempty"`
	Max *float64 `json:"most,omitempty"`
	// Format is the format of a text: email, uri, date, date-time, or empty for any. Pattern is a
	// regular expression that the text must match.
	Format  string `json:"format,omitempty"`
	Pattern string `json:"pattern,omitempty"`
}

// FieldChoice is an option of a [Field].
type FieldChoice struct {
	Value string `json:"value"`
	Title string `json:"title,omitempty"`
}

// FieldType is the type of a [Field].
type FieldType string

// The types of fields, each with the Go type of its value.
const (
	FieldText       FieldType = "text"    // a string
	FieldNumber     FieldType = "number"  // a json.Number
	FieldInteger    FieldType = "integer" // a json.Number that is a whole number
	FieldBoolean    FieldType = "boolean" // a bool
	FieldChooseOne  FieldType = "choose"  // a string, one of the choices
	FieldChooseMany FieldType = "pick"    // a []any of strings, any of the choices
)

// Answer is the answer to a [Question].
type Answer struct {
	Action AnswerAction `json:"action"`
	// Values are the filled-in values by field name.
	Values Values `json:"values,omitempty"`
	// Foreign says that a value holds words that the user did not write, such as those of a forwarded message.
	Foreign bool `json:"foreign,omitempty"`
	// Fault says why the program declined to ask; empty if it did ask, or if nobody is there to ask.
	Fault string `json:"-"`
}

// Values are values of fields by their names. Numbers keep their digits.
type Values map[string]any

// UnmarshalJSON decodes values.
func (v *Values) UnmarshalJSON(data []byte) error {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	return dec.Decode((*map[string]any)(v))
}

// UnmarshalJSON decodes a field, whose default keeps its digits.
func (f *Field) UnmarshalJSON(data []byte) error {
	type plain Field
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	return dec.Decode((*plain)(f))
}

// AnswerAction says how a question ended.
type AnswerAction string

// The ways a question ends.
const (
	AnswerAccept AnswerAction = "accept"
	// AnswerDecline: the user refused, or cannot be asked.
	AnswerDecline AnswerAction = "decline"
	// AnswerCancel: the user dismissed the question, or did not answer in time.
	AnswerCancel AnswerAction = "cancel"
)

// askerKey is the context key of the function that asks the user.
type askerKey struct{}

// WithAsker returns a context in which tools can ask the user on whose behalf they run.
func WithAsker(ctx context.Context, ask func(ctx context.Context, q Question) (Answer, error)) context.Context {
	return context.WithValue(ctx, askerKey{}, ask)
}

// Ask asks the user on whose behalf a tool runs, and waits for the answer. If the user cannot be
// asked, the answer is [AnswerDecline]. During the wait, the timeouts of [WithPausableTimeout] are
// paused. An error means that the call is over.
func Ask(ctx context.Context, q Question) (Answer, error) {
	ask, asks := ctx.Value(askerKey{}).(func(context.Context, Question) (Answer, error))
	if !asks {
		return Answer{Action: AnswerDecline}, nil
	}
	limits, _ := ctx.Value(pausableTimeoutKey{}).(*pausableTimeout)
	for l := limits; l != nil; l = l.outer {
		l.pause()
		defer l.resume()
	}
	return ask(ctx, q)
}

// addressKey is the context key of the function that checks addresses.
type addressKey struct{}

// WithAddressCheck returns a context in which [CheckAddress] calls check.
func WithAddressCheck(ctx context.Context, check func(address string, others bool) error) context.Context {
	return context.WithValue(ctx, addressKey{}, check)
}

// CheckAddress returns an error for the model if a script may not fetch an address: the script could have
// put words of this conversation into it, and no person is asked about what a script does. others says that the
// script itself has read what others may have written. Outside of a turn, every address may be fetched.
func CheckAddress(ctx context.Context, address string, others bool) error {
	check, checks := ctx.Value(addressKey{}).(func(string, bool) error)
	if !checks {
		return nil
	}
	return check(address, others)
}

// pausableTimeoutKey is the context key of the innermost [pausableTimeout].
type pausableTimeoutKey struct{}

// pausableTimeout is a timeout made by [WithPausableTimeout].
type pausableTimeout struct {
	outer    *pausableTimeout
	duration time.Duration

	mu      sync.Mutex
	timer   *time.Timer
	pauses  int
	stopped bool
}

// WithPausableTimeout is [context.WithTimeout] for calls that may ask users. While [Ask] waits, the
// timeout is paused; afterwards it starts from the beginning. When it expires, the context is canceled
// with the cause [context.DeadlineExceeded]. It reports no deadline of its own.
func WithPausableTimeout(ctx context.Context, within time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	l := &pausableTimeout{duration: within, timer: time.AfterFunc(within, func() { cancel(context.DeadlineExceeded) })}
	l.outer, _ = ctx.Value(pausableTimeoutKey{}).(*pausableTimeout)
	return context.WithValue(ctx, pausableTimeoutKey{}, l), func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.stopped = true
		l.timer.Stop()
		cancel(nil)
	}
}

func (l *pausableTimeout) pause() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.pauses++
	l.timer.Stop()
}

func (l *pausableTimeout) resume() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.pauses--; l.pauses == 0 && !l.stopped {
		l.timer.Reset(l.duration)
	}
}
