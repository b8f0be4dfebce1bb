package toolgroups_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"oneclaw/toolgroups"
)

// Within the limits of a turn and of its call, a person may think as long as they like.
func TestALimitStandsStillWhileAPersonIsAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turn, end := toolgroups.WithPausableTimeout(t.Context(), time.Minute)
		defer end()
		call, done := toolgroups.WithPausableTimeout(toolgroups.WithAsker(turn, func(context.Context, toolgroups.Question) (toolgroups.Answer, error) {
			timer := time.NewTimer(time.Hour)
			<-timer.C
			return toolgroups.Answer{Action: toolgroups.AnswerAccept}, nil
		}), time.Second)
		defer done()
		if answer, err := toolgroups.Ask(call, toolgroups.Question{}); err != nil || answer.Action != toolgroups.AnswerAccept || call.Err() != nil || turn.Err() != nil {
			t.Fatalf("%v, %v, %v, %v", answer, err, call.Err(), turn.Err())
		}
		begun := time.Now()
		<-call.Done()
		if took := time.Since(begun); took != time.Second || !errors.Is(context.Cause(call), context.DeadlineExceeded) || turn.Err() != nil {
			t.Errorf("ended after %s: %v, %v", took, context.Cause(call), turn.Err())
		}
	})
}

// Questions and answers are stored while a person thinks.
func TestStoredQuestionsAndAnswersKeepTheDigitsOfNumbers(t *testing.T) {
	q := toolgroups.Question{Fields: []toolgroups.Field{{Name: "n", Default: json.Number("725653563933458433")}}}
	a := toolgroups.Answer{Values: toolgroups.Values{"n": json.Number("725653563933458433"), "many": []any{"a"}}}
	for _, v := range []any{&q, &a} {
		before, err := json.Marshal(v)
		if err == nil {
			err = json.Unmarshal(before, v)
		}
		after, failed := json.Marshal(v)
		if err != nil || failed != nil || string(after) != string(before) || !strings.Contains(string(after), ":725653563933458433") {
			t.Errorf("%s became %s, %v, %v", before, after, err, failed)
		}
	}
}

func TestWhereNobodyIsThereTheAnswerIsNo(t *testing.T) {
	if answer, err := toolgroups.Ask(t.Context(), toolgroups.Question{}); err != nil || answer.Action != toolgroups.AnswerDecline {
		t.Errorf("%v, %v", answer, err)
	}
}
