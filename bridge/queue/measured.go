package queue

// Metric is something that a bridge counts. The values are a closed set.
type Metric string

// What is counted.
const (
	// MeasuredAccepted: a message, a command or a press is on disk. Duplicates are not
	// counted.
	MeasuredAccepted Metric = "accepted"
	// MeasuredDelivered and MeasuredFailed: an answer has arrived, or a part of it was
	// given up.
	MeasuredDelivered Metric = "delivered"
	MeasuredFailed    Metric = "failed"
	// MeasuredRepeat: a part was sent that may have arrived before, and says so.
	MeasuredRepeat Metric = "repeat"
	// MeasuredRefused, MeasuredDelayed, MeasuredPutOff and MeasuredUnknown: a try to send
	// was refused for good, for as long as the platform said, for now, or it is unknown.
	MeasuredRefused Metric = "send_refused"
	MeasuredDelayed Metric = "send_delayed"
	MeasuredPutOff  Metric = "send_put_off"
	MeasuredUnknown Metric = "send_unknown"
	// MeasuredAsked and those after it: an approval was asked for, and what the turn that
	// waited for it found.
	MeasuredAsked   Metric = "approval_asked"
	MeasuredAllowed Metric = "approval_allowed"
	MeasuredDenied  Metric = "approval_denied"
	MeasuredExpired Metric = "approval_expired"
	// MeasuredGood and MeasuredBad: a user says so of an answer. MeasuredWithdrawn:
	// a user says it no more.
	MeasuredGood      Metric = "feedback_good"
	MeasuredBad       Metric = "feedback_bad"
	MeasuredWithdrawn Metric = "feedback_withdrawn"
)

// Counter is told what is to be counted, by the name of the platform. It is
// called from several goroutines and must not wait.
type Counter func(platform string, what Metric)
