package toolgroups

import (
	"context"
	"sync"
	"time"
)

// Question is what a tool wants to know, in the middle of a call, from the person on whose
// behalf it runs. Its texts are not trusted.
type Question struct {
	// From is who asks, as people know it.
	From string `json:"from"`
	// Text is what is asked, plain.
	Text string `json:"text"`
	// Fields are what is to be filled in. Without one the person only agrees.
	Fields []Field `json:"fields,omitempty"`
	// URL, unless empty, is an https address that the person is asked to open. Then there are
	// no fields.
	URL string `json:"url,omitempty"`
	// Done, if not nil, is closed once it is known that the person has done what URL is for.
	Done <-chan struct{} `json:"-"`
}

// Field is a part of a form.
type Field struct {
	Name  string    `json:"name"`
	Title string    `json:"title,omitempty"`
	About string    `json:"about,omitempty"`
	Type  FieldType `json:"type"`
	// Required says that it cannot be left out.
	Required bool `json:"required,omitempty"`
	// Default, unless nil, is a value that is offered: of the type of [Answer.Values].
	Default any `json:"default,omitempty"`
	// Choices are what can be chosen, where Type says so.
	Choices []FieldChoice `json:"choices,omitempty"`
	// Least and Most bound a number, the characters of a text, or how many are chosen.
	Least *float64 `json:"least,omitempty"`
	Most  *float64 `json:"most,omitempty"`
	// Format is that of a text: email, uri, date, date-time; empty for any. Pattern is a
	// regular expression that it has to match.
	Format  string `json:"format,omitempty"`
	Pattern string `json:"pattern,omitempty"`
}

// FieldChoice is a value that can be chosen.
type FieldChoice struct {
	Value string `json:"value"`
	Title string `json:"title,omitempty"`
}

// FieldType is what a [Field] takes.
type FieldType string

// The types of fields, with those of their values.
const (
	FieldText    FieldType = "text"    // a string
	FieldNumber  FieldType = "number"  // a float64
	FieldInteger FieldType = "integer" // a float64 without a fraction
	FieldBoolean FieldType = "boolean" // a bool
	FieldChoose  FieldType = "choose"  // a string, one of the choices
	FieldPick    FieldType = "pick"    // a []any of strings, any of the choices
)

// Answer is what came of a [Question].
type Answer struct {
	Action AnswerAction `json:"action"`
	// Values are what was filled in, by the names of the fields.
	Values map[string]any `json:"values,omitempty"`
}

// AnswerAction says how a question ended.
type AnswerAction string

// The ends of questions.
const (
	AnswerAccept AnswerAction = "accept"
	// AnswerDecline: the person said no, or there is no person to ask.
	AnswerDecline AnswerAction = "decline"
	// AnswerCancel: the person put it away, or did not answer in time.
	AnswerCancel AnswerAction = "cancel"
)

// asker is the key of who asks people in a context.
type asker struct{}

// Asking returns a context in which a tool can ask the person on whose behalf it runs.
func Asking(ctx context.Context, ask func(ctx context.Context, q Question) (Answer, error)) context.Context {
	return context.WithValue(ctx, asker{}, ask)
}

// Asks reports whether there is a person to ask in a context.
func Asks(ctx context.Context) bool {
	_, asks := ctx.Value(asker{}).(func(context.Context, Question) (Answer, error))
	return asks
}

// Ask asks the person on whose behalf a tool runs, and waits for the answer. Where no
// person is there, that is [AnswerDecline]. The times of [Timed] stand still meanwhile. An error means
// that the call is over.
func Ask(ctx context.Context, q Question) (Answer, error) {
	ask, asks := ctx.Value(asker{}).(func(context.Context, Question) (Answer, error))
	if !asks {
		return Answer{Action: AnswerDecline}, nil
	}
	limits, _ := ctx.Value(limits{}).(*limit)
	for l := limits; l != nil; l = l.outer {
		l.hold()
		defer l.resume()
	}
	return ask(ctx, q)
}

// limits is the key of the innermost limit in a context.
type limits struct{}

// limit is a time that ends a context.
type limit struct {
	outer *limit
	time  time.Duration

	mu    sync.Mutex
	timer *time.Timer
	held  int
	over  bool
}

// Timed is [context.WithTimeout] for what may ask people: while [Ask] waits the time stands
// still, and after that the whole of it is there again. The cause of its end is
// [context.DeadlineExceeded]; it has no deadline that could be asked for.
func Timed(ctx context.Context, within time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	l := &limit{time: within, timer: time.AfterFunc(within, func() { cancel(context.DeadlineExceeded) })}
	l.outer, _ = ctx.Value(limits{}).(*limit)
	return context.WithValue(ctx, limits{}, l), func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.over = true
		l.timer.Stop()
		cancel(nil)
	}
}

func (l *limit) hold() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held++
	l.timer.Stop()
}

func (l *limit) resume() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.held--; l.held == 0 && !l.over {
		l.timer.Reset(l.time)
	}
}
