package receipts_test

import (
	"testing"
	"time"

	"oneclaw/bridge/receipts"
)

// The median response time is that of answers of a model: notices take no time, and approvals wait
// for people.
func TestTheMedianIsThatOfAnswers(t *testing.T) {
	var tally receipts.Tally
	for range 9 {
		tally.Add(receipts.Entry{State: receipts.Done, TookMillis: 2, IsNotice: true})
		tally.Add(receipts.Entry{State: receipts.Done, TookMillis: 3_600_000, AskedUser: true})
	}
	tally.Add(receipts.Entry{State: receipts.Done, TookMillis: 2500})
	if got := tally.Percentile(0.5); got < 2*time.Second || got > 3*time.Second || tally.Answered != 19 {
		t.Errorf("the median is %v, %d answered", got, tally.Answered)
	}
}
