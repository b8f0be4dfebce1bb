package hooks

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"html/template"
	"net/http"
	"time"

	"oneclaw/storage"
)

// pageAge is how long the page with a secret can be opened.
const pageAge = 15 * time.Minute

// secretPage shows the secret of a hook, once, after a button is pressed: a chat service that
// previews the link presses none.
var secretPage = template.Must(template.New("secret").Parse(`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>Webhook</title></head>
<body style="font-family:system-ui,sans-serif;max-width:36em;margin:15vh auto;padding:0 1em;line-height:1.5">
<h1>{{.Title}}</h1>{{with .Text}}<p>{{.}}</p>{{end}}
{{if .Ask}}<p>This page shows the secret of the webhook <b><bdi>{{.Name}}</bdi></b> once. Whoever has it can have the bot work in that chat: give it only to the service that posts.</p>
<form method="post"><button style="font:inherit;padding:.6em 1.2em">Show the secret</button></form>{{end}}
{{with .Secret}}<p>Address:</p><p><code style="overflow-wrap:anywhere">{{$.Address}}</code></p>
<p>Secret:</p><p><code style="overflow-wrap:anywhere">{{.}}</code></p>
<p>It signs deliveries (Standard Webhooks, or GitHub's X-Hub-Signature-256), or goes along as <code>Authorization: Bearer …</code>. It is not shown again.</p>{{end}}
</body></html>
`))

// pageData is the data of secretPage.
type pageData struct {
	Title, Text, Name, Address, Secret string
	Ask                                bool
}

// errPage is returned for an invalid link to a secret.
var errPage = errors.New("hooks: invalid link to a secret")

func hashOf(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}

// checkToken returns [errPage] unless the token opens the secret page of a hook.
func (h *Hooks) checkToken(one *hook, token string) error {
	hash := hashOf(token)
	if one.PageTokenHash == "" || subtle.ConstantTimeCompare([]byte(one.PageTokenHash), []byte(hash)) != 1 || h.cfg.Now().After(one.PageUntil) {
		return errPage
	}
	return nil
}

// serveButton serves the page with the button.
func (h *Hooks) serveButton(w http.ResponseWriter, r *http.Request) {
	one, err := h.find(r.Context(), r.PathValue("id"))
	if err == nil {
		err = h.checkToken(&one, r.PathValue("token"))
	}
	h.writePage(w, pageData{Title: "A webhook", Name: one.Name, Ask: true}, err)
}

// serveSecret serves the secret to the first request.
func (h *Hooks) serveSecret(w http.ResponseWriter, r *http.Request) {
	v := pageData{Title: "The secret of the webhook"}
	err := h.update(r.Context(), r.PathValue("id"), func(one *hook) error {
		if err := h.checkToken(one, r.PathValue("token")); err != nil {
			return err
		}
		secret, err := h.sealer.Open(keyOf(one.ID), one.Secret)
		if err != nil {
			return err
		}
		v.Name, v.Address, v.Secret = one.Name, h.address(one.ID), string(secret)
		one.PageTokenHash, one.PageUntil = "", time.Time{}
		return nil
	})
	h.writePage(w, v, err)
}

// writePage writes a page, or an error page if err is not nil.
func (h *Hooks) writePage(w http.ResponseWriter, v pageData, err error) {
	header := w.Header()
	header.Set("Content-Type", "text/html; charset=utf-8")
	header.Set("Cache-Control", "no-store")
	header.Set("Referrer-Policy", "no-referrer")
	header.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; frame-ancestors 'none'")
	switch {
	case err == nil:
	case errors.Is(err, errPage), errors.Is(err, storage.ErrNotFound):
		v = pageData{Title: "This link no longer works", Text: "This link has been used, is older than 15 minutes, or is wrong. In the chat, /hook remove removes the webhook, and /hook new makes another one."}
		w.WriteHeader(http.StatusNotFound)
	default:
		h.cfg.Logger.Error("the secret of a webhook cannot be shown", "err", err)
		v = pageData{Title: "Not now", Text: "Something went wrong here. Please try again."}
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	if err := secretPage.Execute(w, v); err != nil {
		h.cfg.Logger.Debug("page of a webhook not sent", "err", err)
	}
}
