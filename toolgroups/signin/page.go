package signin

import (
	"crypto/sha256"
	"encoding/base64"
	"html/template"
	"net/http"
	"strings"
	"unicode"

	"oneclaw/internal/wording"
)

// pageTemplate is the template of the page that a sign-in shows in the browser.
var pageTemplate = template.Must(template.New("sign-in").Parse(`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>{{.Service}} account</title></head>
<body style="font-family:system-ui,sans-serif;max-width:32em;margin:15vh auto;padding:0 1em;line-height:1.5">
<h1>{{.Title}}</h1>{{with .Text}}<p>{{.}}</p>{{end}}
{{with .User}}<p>The bot will use the account for <b><bdi>{{$.Name}}</bdi></b> (<bdi>{{.}}</bdi>), in the {{$.Where}} <bdi>{{$.Chat}}</bdi>.</p>{{end}}
{{with .Next}}<p>Is that you, and have you asked for this link yourself? Then go on. If somebody sent you this link, close the page:
they would {{$.Harm}}.</p>
<p><a href="{{.}}" rel="noreferrer" style="display:inline-block;padding:.6em 1.2em;border-radius:.4em;background:#0b57d0;color:#fff;text-decoration:none">Go on to {{$.NextName}}</a></p>{{end}}
{{with .Proof}}<p>Is that you? Then send this code to the bot, in the chat that the link came from:</p>
<p style="font-size:2em;letter-spacing:.1em"><code>{{.}}</code> <button hidden style="font:inherit;font-size:.5em;padding:.3em 1em">Copy</button></p>
<p>Give the code and the address of this page to nobody. If somebody sent you the link, close the page: nothing is connected without the code.</p>
<script>` + copyScript + `</script>{{end}}
</body></html>
`))

// copyScript makes the button copy the code. Where the browser does not let it, the code is selected.
const copyScript = `const copy = document.querySelector("button"), code = document.querySelector("code");
copy.hidden = false;
copy.onclick = async () => {
  try {
    await navigator.clipboard.writeText(code.textContent);
    copy.textContent = "Copied";
  } catch {
    getSelection().selectAllChildren(code);
  }
};`

// View is the data of the page.
type View struct {
	// Service is the name of the account's service.
	Service     string
	Title, Text string
	// User, Name and Chat identify the user who asked for the link. Where is "direct chat" or "chat".
	User, Name, Chat, Where string
	// Next is the address of the consent page, NextName the text of its button, and Harm what
	// another person could do with the account.
	Next, NextName, Harm string
	// Proof is the code that the user has to send.
	Proof string
}

// WithUser returns a copy of v with the user of a sign-in.
func (v View) WithUser(user string, p Pending) View {
	v.User, v.Name, v.Chat = user, cleanName(p.Name), p.Chat
	if v.Name == "" {
		v.Name = user
	}
	return v
}

// cleanName returns at most 64 characters of a name, without invisible and bidirectional control
// characters.
func cleanName(name string) string {
	shown, _ := wording.SplitAt(strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, name), 64)
	return strings.TrimSpace(shown)
}

// WritePage writes the page with an HTTP status.
func WritePage(w http.ResponseWriter, status int, v View) error {
	script := sha256.Sum256([]byte(copyScript)) // the page runs this one and no other
	header := w.Header()
	header.Set("Content-Type", "text/html; charset=utf-8")
	header.Set("Cache-Control", "no-store")
	header.Set("Referrer-Policy", "no-referrer")
	header.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-"+base64.StdEncoding.EncodeToString(script[:])+"'; frame-ancestors 'none'")
	w.WriteHeader(status)
	return pageTemplate.Execute(w, v)
}
