package oauth

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/oauthex"

	"oneclaw/storage"
	"oneclaw/toolgroups/signin"
)

// clientName is the bot's name on consent pages.
const clientName = "OneClaw"

// redirectURI returns the redirect address. Each server has its own, so that no authorization
// server can pass off another server's code as its own.
func (a *Accounts) redirectURI(s Server) string {
	return cmp.Or(a.cfg.PublicURL, a.cfg.LocalURL) + callbackPath + s.Name
}

// clientDocumentURL returns the address at which the bot describes itself as a client.
func (a *Accounts) clientDocumentURL(s Server) string { return a.cfg.PublicURL + clientPath + s.Name }

// clientFor returns the bot's client at an authorization server: the client in the settings, else
// the address of the client document, else a client registered now or earlier.
func (a *Accounts) clientFor(ctx context.Context, s Server, meta *oauthex.AuthServerMeta) (c client, err error) {
	methods := meta.TokenEndpointAuthMethodsSupported
	if s.Issuer != "" && s.ClientID == "" && !sameIssuer(s.Issuer, meta.Issuer) {
		return client{}, mistakef("%s leads to the sign-in %s, and not to %s as it should, so nothing was sent there", s.Name, quote(meta.Issuer), quote(s.Issuer))
	}
	if s.ClientID != "" {
		return client{ID: s.ClientID, Secret: s.ClientSecret, Method: authMethod(methods, s.ClientSecret != "")}, a.checkIssuer(ctx, s, meta.Issuer)
	}
	if meta.ClientIDMetadataDocumentSupported && strings.HasPrefix(a.cfg.PublicURL, "https://") {
		return client{ID: a.clientDocumentURL(s), Method: methodNone}, nil
	}
	err = storage.Retry(ctx, func() error { // a concurrent request may store one; one client is enough
		known, rev, err := signin.LoadSealed[registration](ctx, a.cfg.KV, a.sealer, clientPrefix+s.Name)
		if err == nil && a.isUsable(known, s, meta.Issuer) {
			c = known.client
			return nil
		}
		if err != nil && rev == storage.Absent && !errors.Is(err, storage.ErrNotFound) {
			return err
		}
		fresh, err := a.register(ctx, s, meta)
		if err == nil {
			c = fresh.client
			_, err = a.put(ctx, clientPrefix+s.Name, fresh, rev)
		}
		return err
	})
	return c, err
}

// isConfigured reports whether the client of an account is the one in the settings.
func (a account) isConfigured(s Server) bool {
	return s.ClientID != "" && a.Client.ID == s.ClientID && (s.Issuer == "" || sameIssuer(s.Issuer, a.Issuer))
}

// currentClient returns the client of an account. If it is the one in the settings, its secret is from
// there: the operator may have replaced it since the consent.
func (a account) currentClient(s Server) client {
	if !a.isConfigured(s) {
		return a.Client
	}
	now := client{ID: s.ClientID, Secret: s.ClientSecret, Method: a.Client.Method}
	if (now.Secret == "") != (a.Client.Secret == "") {
		now.Method = authMethod(nil, now.Secret != "")
	}
	return now
}

// checkIssuer refuses to use a client that was registered by hand at an authorization server other
// than its own, because the secret would be sent there. Its own server is the one in the settings,
// else the first one that the MCP server named.
func (a *Accounts) checkIssuer(ctx context.Context, s Server, issuer string) error {
	own := s.Issuer
	err := storage.Retry(ctx, func() error {
		if own != "" {
			return nil
		}
		known, rev, err := signin.LoadSealed[registration](ctx, a.cfg.KV, a.sealer, clientPrefix+s.Name)
		switch {
		case err == nil && known.ID == s.ClientID && known.Issuer != "":
			own = known.Issuer
			return nil
		case err != nil && rev == storage.Absent && !errors.Is(err, storage.ErrNotFound):
			return err
		}
		_, err = a.put(ctx, clientPrefix+s.Name, registration{client: client{ID: s.ClientID}, Issuer: issuer}, rev)
		return err
	})
	if err != nil || own == "" || sameIssuer(own, issuer) {
		return err
	}
	a.cfg.Logger.Warn("configured client not used at another authorization server", "server", s.Name, "want", own, "got", quote(issuer))
	return mistakef("%s leads to the sign-in %s now, but this bot was registered at %s, so nothing was sent there; "+
		"if that is right, the operator of this bot sets issuer for the server", s.Name, quote(issuer), quote(own))
}

// sameIssuer reports whether two issuers are the same but for a slash at the end.
func sameIssuer(a, b string) bool { return strings.TrimRight(a, "/") == strings.TrimRight(b, "/") }

// isUsable reports whether a registered client can be used for a new link.
func (a *Accounts) isUsable(known registration, s Server, issuer string) bool {
	return known.Issuer == issuer && known.Redirect == a.redirectURI(s) &&
		(known.Expires.IsZero() || a.cfg.Now().Add(signin.RenewBefore(0)).Before(known.Expires))
}

// authMethod chooses the client's authentication method. A server that names no methods supports the
// basic one.
func authMethod(supported []string, secret bool) string {
	if !secret {
		return methodNone
	}
	if slices.Contains(supported, methodPost) && !slices.Contains(supported, methodBasic) {
		return methodPost
	}
	return methodBasic
}

// register registers a client at the authorization server (RFC 7591).
func (a *Accounts) register(ctx context.Context, s Server, meta *oauthex.AuthServerMeta) (registration, error) {
	if meta.RegistrationEndpoint == "" {
		return registration{}, mistakef("the sign-in of %s takes no new clients by itself: the operator of this bot has to register one there, "+
			"with the address %s, and to set client_id for the server", s.Name, a.redirectURI(s))
	}
	wanted := methodNone
	if supported := meta.TokenEndpointAuthMethodsSupported; !slices.Contains(supported, methodNone) {
		wanted = authMethod(supported, true)
	}
	answer, err := oauthex.RegisterClient(ctx, meta.RegistrationEndpoint, &oauthex.ClientRegistrationMetadata{
		ClientName: clientName, ClientURI: a.cfg.PublicURL, RedirectURIs: []string{a.redirectURI(s)},
		GrantTypes: []string{"authorization_code", "refresh_token"}, ResponseTypes: []string{"code"},
		TokenEndpointAuthMethod: wanted, ApplicationType: applicationType(a.redirectURI(s)),
	}, s.lenientClient())
	if err != nil {
		a.cfg.Logger.Warn("client not registered at the sign-in of an MCP server", "server", s.Name, "err", plainError(err))
		if refused, ok := errors.AsType[*oauthex.ClientRegistrationError](err); ok {
			return registration{}, mistakef("the sign-in of %s does not take this bot as a client (%s); nothing was connected", s.Name, quote(refused.ErrorCode))
		}
		return registration{}, mistakef("the sign-in of %s does not take this bot as a client at the moment; nothing was connected", s.Name)
	}
	got := client{ID: answer.ClientID, Secret: answer.ClientSecret, Method: cmp.Or(answer.TokenEndpointAuthMethod, wanted)}
	if got.Secret == "" {
		got.Method = methodNone
	}
	return registration{client: got, Issuer: meta.Issuer, Redirect: a.redirectURI(s), Expires: answer.ClientSecretExpiresAt}, nil
}

// applicationType returns the application type for a redirect address.
func applicationType(redirect string) string {
	if u, err := url.Parse(redirect); err == nil && (u.Hostname() == "localhost" || strings.HasPrefix(u.Hostname(), "127.")) {
		return "native"
	}
	return "web"
}

// serveClientDocument serves the description of the bot as a client of a server.
func (a *Accounts) serveClientDocument(w http.ResponseWriter, r *http.Request) {
	s, ok := a.cfg.Server(r.PathValue("server"))
	if !ok || a.cfg.PublicURL == "" {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{ // after a write error the client asks again
		"client_id": a.clientDocumentURL(s), "client_name": clientName, "client_uri": a.cfg.PublicURL,
		"redirect_uris": []string{a.redirectURI(s)}, "grant_types": []string{"authorization_code", "refresh_token"},
		"response_types": []string{"code"}, "token_endpoint_auth_method": methodNone, "application_type": applicationType(a.redirectURI(s)),
	})
}

// unregister deletes a client that its authorization server no longer knows.
func (a *Accounts) unregister(ctx context.Context, s Server, id string) {
	if id == s.ClientID {
		return // registered by hand: stays bound to its authorization server
	}
	key := clientPrefix + s.Name
	known, rev, err := signin.LoadSealed[registration](ctx, a.cfg.KV, a.sealer, key)
	if err == nil && known.ID == id {
		err = a.cfg.KV.Delete(ctx, key, rev)
	}
	if err != nil && !errors.Is(err, storage.ErrNotFound) && !errors.Is(err, storage.ErrConflict) { // after a conflict there is a new one
		a.cfg.Logger.Warn("cannot delete a client that an authorization server does not know", "server", s.Name, "err", err)
	}
}
