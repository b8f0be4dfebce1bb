package google

import "golang.org/x/oauth2"

// Addresses of Google's sign-in (developers.google.com/identity/protocols/oauth2).
const (
	authURL     = "https://accounts.google.com/o/oauth2/v2/auth"
	tokenURL    = "https://oauth2.googleapis.com/token"
	revokeURL   = "https://oauth2.googleapis.com/revoke"
	userinfoURL = "https://www.googleapis.com/oauth2/v2/userinfo"
)

// oauthConfig returns the configuration of the operator's client. A browser opens the consent page,
// so its address has to be replaced here; the transport replaces the other addresses.
func (g *Google) oauthConfig(redirect string, scopes ...string) *oauth2.Config {
	page := authURL
	if g.apiURL != nil {
		page = g.apiURL.JoinPath("/o/oauth2/v2/auth").String()
	}
	return &oauth2.Config{
		ClientID:     g.cfg.ClientID,
		ClientSecret: g.cfg.ClientSecret,
		Endpoint:     oauth2.Endpoint{AuthURL: page, TokenURL: tokenURL, AuthStyle: oauth2.AuthStyleInParams},
		RedirectURL:  redirect,
		Scopes:       scopes,
	}
}
