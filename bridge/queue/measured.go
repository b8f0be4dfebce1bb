package queue

// Metric is an event that a bridge counts. The values are a closed set.
type Metric string

// Values of [Metric].
const (
	// MeasuredAccepted: a message, a command or a press is on disk. Duplicates are not
	// counted.
	MeasuredAccepted Metric = "accepted"
	// MeasuredDelivered: an answer was delivered. MeasuredFailed: a part of it was given up.
	MeasuredDelivered Metric = "delivered"
	MeasuredFailed    Metric = "failed"
	// MeasuredRepeat: a part that may have arrived before was sent again, marked as a repeat.
	MeasuredRepeat Metric = "repeat"
	// MeasuredRefused, MeasuredDelayed and MeasuredPutOff: the platform rejected a send permanently, for
	// a time that it specified, or for now. MeasuredUnknown: the outcome of a send is unknown.
	MeasuredRefused Metric = "send_refused"
	MeasuredDelayed Metric = "send_delayed"
	MeasuredPutOff  Metric = "send_put_off"
	MeasuredUnknown Metric = "send_unknown"
	// MeasuredAsked: an approval was requested. MeasuredAllowed, MeasuredDenied and MeasuredExpired: the
	// decision that the waiting turn got.
	MeasuredAsked   Metric = "approval_asked"
	MeasuredAllowed Metric = "approval_allowed"
	MeasuredDenied  Metric = "approval_denied"
	MeasuredExpired Metric = "approval_expired"
	// MeasuredGood and MeasuredBad: a user rated an answer. MeasuredWithdrawn: a user withdrew a
	// rating.
	MeasuredGood      Metric = "feedback_good"
	MeasuredBad       Metric = "feedback_bad"
	MeasuredWithdrawn Metric = "feedback_withdrawn"
)

// Counter counts an event of a platform. It is called from several goroutines and must not block.
type Counter func(platform string, what Metric)
