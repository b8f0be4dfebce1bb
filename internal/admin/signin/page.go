package signin

import (
	_ "embed" // the style sheet
	"html/template"
	"net/http"
)

//go:embed enter.css
var style []byte

// page is the page for visitors who are not signed in. It needs neither scripts nor inline
// styles.
var page = template.Must(template.New("door").Parse(`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex"><title>{{.Title}} – OneClaw</title><link rel="stylesheet" href="` + stylePath + `"></head>
<body><main><h1>{{.Title}}</h1>{{with .Text}}<p>{{.}}</p>{{end}}
{{with .Token}}<p>This signs the browser in as <b><bdi>{{$.Name}}</bdi></b> (<bdi>{{$.User}}</bdi>), to the admin pages. Go on only if you have asked the bot for this link yourself.</p>
<form method="post" action="` + enterPath + `"><input type="hidden" name="token" value="{{.}}"><button>Sign in</button></form>{{end}}
</main></body></html>
`))

// pageData is the data of the page.
type pageData struct {
	Title, Text, Token, User, Name string
}

func (svc *Service) writePage(w http.ResponseWriter, status int, v pageData) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	if err := page.Execute(w, v); err != nil {
		svc.cfg.Logger.Debug("the sign-in page was not sent", "err", err)
	}
}

func showStyle(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/css; charset=utf-8")
	_, _ = w.Write(style)
}
