package hooks

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// secretPrefix begins a secret, as in Standard Webhooks.
const secretPrefix = "whsec_"

// tolerance bounds the clock difference of a signed delivery, as Standard Webhooks requires.
const tolerance = 5 * time.Minute

func newSecret() string {
	key := make([]byte, 32)
	_, _ = rand.Read(key) // never fails
	return secretPrefix + base64.StdEncoding.EncodeToString(key)
}

// Errors for refused senders.
var (
	errUnsigned = errors.New("this webhook wants to know who posts: sign the body (Standard Webhooks, or X-Hub-Signature-256 as GitHub does), " +
		"or send its secret as \"Authorization: Bearer …\" or X-Gitlab-Token")
	errSignature = errors.New("the signature does not fit the body and the secret of this webhook")
	errToken     = errors.New("this is not the secret of this webhook")
	errFormat    = errors.New("a delivery that is signed as Standard Webhooks has Webhook-Id and Webhook-Timestamp, in seconds since 1970")
)

// verify returns the sender's name for a delivery, if any, and the id by which a repeated delivery
// is recognised. It returns an error if the delivery is refused. If only the body is signed, the id
// is derived from it, because the name in the header could differ each time. If there are several
// proofs, only the first one counts: a valid one does not make up for an invalid one.
func verify(secret string, header http.Header, body []byte, now time.Time) (name, known string, err error) {
	for _, kind := range []string{"Webhook-", "Svix-"} { // standardwebhooks.com, and its model
		if signatures := header.Get(kind + "Signature"); signatures != "" {
			name, err := verifyStandard(secret, header.Get(kind+"Id"), header.Get(kind+"Timestamp"), signatures, body, now)
			return name, name, err
		}
	}
	bearer, isBearer := bearerToken(header.Get("Authorization"))
	switch signature, gitlab := header.Get("X-Hub-Signature-256"), header.Get("X-Gitlab-Token"); {
	case signature != "": // docs.github.com/webhooks, "Validating webhook deliveries"
		if err = verifyGitHub(secret, signature, body); err == nil {
			sum := sha256.Sum256(body)
			return deliveryName(header), "body " + hex.EncodeToString(sum[:]), nil
		}
	case isBearer: // RFC 6750
		err = verifyToken(secret, bearer)
	case gitlab != "": // docs.gitlab.com/user/project/integrations/webhooks
		err = verifyToken(secret, gitlab)
	default:
		err = errUnsigned
	}
	if err != nil {
		return "", "", err
	}
	return deliveryName(header), deliveryName(header), nil
}

// verifyStandard checks a signature of Standard Webhooks, which covers name, time and body.
func verifyStandard(secret, name, at, signatures string, body []byte, now time.Time) (string, error) {
	seconds, err := strconv.ParseInt(at, 10, 64)
	if err != nil || name == "" || len(name) > maxName {
		return "", errFormat
	}
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, secretPrefix))
	if err != nil {
		return "", fmt.Errorf("decode the secret: %w", err)
	}
	mac := hmac.New(sha256.New, key)
	_, _ = fmt.Fprintf(mac, "%s.%s.", name, at) // never fails
	_, _ = mac.Write(body)                      // never fails
	want := "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
	for one := range strings.FieldsSeq(signatures) {
		if hmac.Equal([]byte(one), []byte(want)) {
			if off := now.Sub(time.Unix(seconds, 0)).Abs(); off > tolerance {
				return "", fmt.Errorf("the delivery was signed at a time that is %s away from mine, at most %s are accepted", off.Round(time.Second), tolerance)
			}
			return name, nil
		}
	}
	return "", errSignature
}

// verifyGitHub checks the signature of a body.
func verifyGitHub(secret, signature string, body []byte) error {
	sum, err := hex.DecodeString(strings.TrimPrefix(signature, "sha256="))
	mac := hmac.New(sha256.New, []byte(secret))
	_, _ = mac.Write(body) // never fails
	if err != nil || !hmac.Equal(sum, mac.Sum(nil)) {
		return errSignature
	}
	return nil
}

func bearerToken(authorization string) (string, bool) {
	kind, token, ok := strings.Cut(authorization, " ")
	return strings.TrimSpace(token), ok && strings.EqualFold(kind, "Bearer")
}

func verifyToken(secret, got string) error {
	if subtle.ConstantTimeCompare([]byte(secret), []byte(got)) != 1 {
		return errToken
	}
	return nil
}

// maxName bounds the name of a delivery, in bytes.
const maxName = 200

// deliveryHeaders are the headers with a sender's name for a delivery. X-Gitlab-Event-Uuid is not
// one of them: events that the same request caused share it.
var deliveryHeaders = []string{"X-Github-Delivery", "X-Gitea-Delivery", "Idempotency-Key", "Webhook-Id"}

// deliveryName returns the sender's name for a delivery, which is the same when it is repeated. It is
// empty if the sender has none.
func deliveryName(header http.Header) string {
	for _, name := range deliveryHeaders {
		if value := strings.TrimSpace(header.Get(name)); value != "" && len(value) <= maxName {
			return value
		}
	}
	return ""
}
