package google

import (
	"crypto"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"
)

// delegatedGrant checks the assertion of a service account (RFC 7523) and returns the grant of the
// impersonated account.
func (a *signIn) delegatedGrant(assertion string) (grant, bool) {
	signed, signature, ok := cutLast(assertion, ".")
	_, payload, ok2 := strings.Cut(signed, ".")
	if !ok || !ok2 {
		return grant{}, false
	}
	var claims struct {
		Issuer  string `json:"iss"`
		Subject string `json:"sub"`
		Scope   string `json:"scope"`
		Expires int64  `json:"exp"`
	}
	data, err := base64.RawURLEncoding.DecodeString(payload)
	if err != nil || json.Unmarshal(data, &claims) != nil {
		return grant{}, false
	}
	sig, err := base64.RawURLEncoding.DecodeString(signature)
	key := a.serviceKeys[claims.Issuer]
	if err != nil || key == nil || !slices.Contains(a.cfg.Accounts, claims.Subject) || claims.Expires < a.cfg.Now().Unix() {
		return grant{}, false
	}
	sum := sha256.Sum256([]byte(signed))
	if rsa.VerifyPKCS1v15(key, crypto.SHA256, sum[:], sig) != nil {
		return grant{}, false
	}
	return grant{account: claims.Subject, scopes: strings.Fields(claims.Scope)}, true
}

func cutLast(s, sep string) (before, after string, ok bool) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+len(sep):], true
}
