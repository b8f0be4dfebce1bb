package toolgroups

import (
	"context"
	"sync"
	"time"
)

// Question is what a tool asks, during a call, of the person on whose behalf it runs. Its texts
// are not trusted.
type Question struct {
	// From is the asker's name for people.
	From string `json:"from"`
	// Text is the question, plain.
	Text string `json:"text"`
	// Fields are the form. Without fields the person only agrees.
	Fields []Field `json:"fields,omitempty"`
	// URL, if not empty, is an https address that the person is asked to open. Then there are no
	// fields.
	URL string `json:"url,omitempty"`
	// Done, if not nil, is closed once the person has completed what URL is for.
	Done <-chan struct{} `json:"-"`
}

// Field is a part of a form.
type Field struct {
	Name  string    `json:"name"`
	Title string    `json:"title,omitempty"`
	About string    `json:"about,omitempty"`
	Type  FieldType `json:"type"`
	// Required fields cannot be left out.
	Required bool `json:"required,omitempty"`
	// Default, if not nil, is the suggested value, of the type of [Answer.Values].
	Default any `json:"default,omitempty"`
	// Choices are the options of a FieldChoose or FieldPick.
	Choices []FieldChoice `json:"choices,omitempty"`
	// Least and Most bound a number, the characters of a text, or how many options are chosen.
	Least *float64 `json:"least,omitempty"`
	Most  *float64 `json:"most,omitempty"`
	// Format of a text is email, uri, date or date-time; empty for any. Pattern is a regular
	// expression that it must match.
	Format  string `json:"format,omitempty"`
	Pattern string `json:"pattern,omitempty"`
}

// FieldChoice is an option.
type FieldChoice struct {
	Value string `json:"value"`
	Title string `json:"title,omitempty"`
}

// FieldType is the type of a [Field].
type FieldType string

// The types of fields, each with the Go type of its value.
const (
	FieldText       FieldType = "text"    // a string
	FieldNumber     FieldType = "number"  // a float64
	FieldInteger    FieldType = "integer" // a float64 without a fraction
	FieldBoolean    FieldType = "boolean" // a bool
	FieldChooseOne  FieldType = "choose"  // a string, one of the choices
	FieldChooseMany FieldType = "pick"    // a []any of strings, any of the choices
)

// Answer is the answer to a [Question].
type Answer struct {
	Action AnswerAction `json:"action"`
	// Values are the filled-in values by field name.
	Values map[string]any `json:"values,omitempty"`
}

// AnswerAction says how a question ended.
type AnswerAction string

// The ways a question ends.
const (
	AnswerAccept AnswerAction = "accept"
	// AnswerDecline: the user refused, or cannot be asked.
	AnswerDecline AnswerAction = "decline"
	// AnswerCancel: the person dismissed it, or did not answer in time.
	AnswerCancel AnswerAction = "cancel"
)

// askerKey is the context key of the function that asks people.
type askerKey struct{}

// WithAsker returns a context in which tools can ask the person on whose behalf they run.
func WithAsker(ctx context.Context, ask func(ctx context.Context, q Question) (Answer, error)) context.Context {
	return context.WithValue(ctx, askerKey{}, ask)
}

// CanAsk reports whether a tool can ask a person in this context.
func CanAsk(ctx context.Context) bool {
	_, asks := ctx.Value(askerKey{}).(func(context.Context, Question) (Answer, error))
	return asks
}

// Ask asks the person on whose behalf a tool runs, and waits for the answer. If no person can be
// asked, that is [AnswerDecline]. Meanwhile the timeouts of [WithPausableTimeout] are paused. An error means
// that the call is over.
func Ask(ctx context.Context, q Question) (Answer, error) {
	ask, asks := ctx.Value(askerKey{}).(func(context.Context, Question) (Answer, error))
	if !asks {
		return Answer{Action: AnswerDecline}, nil
	}
	limits, _ := ctx.Value(limitKey{}).(*pausableTimeout)
	for l := limits; l != nil; l = l.outer {
		l.pause()
		defer l.resume()
	}
	return ask(ctx, q)
}

// limitKey is the context key of the innermost limit.
type limitKey struct{}

// pausableTimeout is a pausable timeout.
type pausableTimeout struct {
	outer *pausableTimeout
	time  time.Duration

	mu    sync.Mutex
	timer *time.Timer
	held  int
	over  bool
}

// WithPausableTimeout is [context.WithTimeout] for calls that may ask people: while [Ask] waits the timeout is
// paused, and afterwards it starts anew. The cause of its end is [context.DeadlineExceeded]; the
// context reports no deadline.
func WithPausableTimeout(ctx context.Context, within time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	l := &pausableTimeout{time: within, timer: time.AfterFunc(within, func() { cancel(context.DeadlineExceeded) })}
	l.outer, _ = ctx.Value(limitKey{}).(*pausableTimeout)
	return context.WithValue(ctx, limitKey{}, l), func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.over = true
		l.timer.Stop()
		cancel(nil)
	}
}

func (l *pausableTimeout) pause() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held++
	l.timer.Stop()
}

func (l *pausableTimeout) resume() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.held--; l.held == 0 && !l.over {
		l.timer.Reset(l.time)
	}
}
