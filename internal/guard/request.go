package guard

import "net/textproto"

// Limits of the requests that the model or its scripts make, in bytes.
const (
	// MaxReply is how much of a reply's body is shown to them.
	MaxReply = 100 << 10
	// MaxSent bounds the body of a request.
	MaxSent = 1 << 20
	// MaxSentHeaders bounds all headers of a request.
	MaxSentHeaders = 16 << 10
)

// UserAgent is how the bot names itself in such a request, unless it is told to use
// another name.
const UserAgent = "OneClaw/1.0"

// ReservedHeader reports whether a header is the connection's own, or a proxy's, and
// may therefore not be set. The name may be written in any case.
func ReservedHeader(name string) bool {
	switch textproto.CanonicalMIMEHeaderKey(name) {
	case "Host", "Connection", "Content-Length", "Transfer-Encoding", "Upgrade", "Te", "Trailer",
		"Keep-Alive", "Accept-Encoding", "Proxy-Authorization", "Proxy-Connection":
		return true
	}
	return false
}
