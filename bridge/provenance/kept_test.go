package provenance_test

import (
	"encoding/json"
	"net"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/idna"
	"golang.org/x/net/publicsuffix"
	"pgregory.net/rapid"

	"oneclaw/bridge/provenance"
)

// What a service keeps for the model unasked may be read in another conversation: then it vouches for no address there
// that would have asked, but for the name of a site. Two readers of addresses have to agree on that, whatever the text.
func TestWhatIsKeptUnaskedVouchesForNothingLater(t *testing.T) {
	pieces := rapid.SampledFrom([]string{
		"http://", "HTTP://", "https://", "https:", "ttps://", "ftp://", "ws://", "mailto:", "://", "//", "www.", "evil.com", "sub.evil.com", "shop.ws", "my-pin", "MY", "1.2.3", "0x7f", "xn--", "[2001:db8::1]",
		"/", `\/`, `\u002f`, `\`, "%2F", "&#x2f;", "?", "?q=", "#", "@", ":4711", ".", "。", "%2e", "&#46;", "=", "&", "&amp;", "+", "-", "_", "~", "*", "^", "`", "!", "$", "…", ",", ";", "|",
		"(", ")", "[", "]", "{", "}", "<", ">", "&lt;", "'", `"`, " ", "%20", "\n", `\n`, "\t", "\u00a0", "\u2028", "a", "h", "ä", "看", "☃", "\u0333", "\u200b", "\u00ad",
	})
	asks := func(c conversation, a provenance.Address) bool {
		in := c.wants(a.String()).input()
		_, spent := in.Spending.Of("")
		return in.Judge(a, spent).Asks
	}
	canBeAsked := func(a provenance.Address) bool {
		host, err := idna.Lookup.ToASCII(a.Hostname())
		suffix, isPublic := publicsuffix.PublicSuffix(host)
		return net.ParseIP(host) != nil || err == nil && isPublic && suffix != host && !strings.Contains(a.String(), host+"]")
	}
	isSite := func(a provenance.Address) bool {
		_, rest, _ := strings.Cut(a.String(), "://")
		return slices.Contains([]string{"evil.com", "shop.ws"}, strings.TrimPrefix(strings.TrimSuffix(rest, "/"), "www."))
	}
	rapid.Check(t, func(r *rapid.T) {
		named := rapid.SampledFrom([][]string{nil, {"shop.ws"}}).Draw(r, "hosts that the operator named")
		for _, parts := range rapid.SliceOfN(rapid.SliceOfN(pieces, 2, 8), 100, 100).Draw(r, "texts") {
			text := strings.Join(parts, "")
			encoded, _ := json.Marshal(map[string]string{"notes": text})
			if slices.ContainsFunc(provenance.AddressesKept(string(encoded)), func(a provenance.Address) bool { return !a.HostIn(named) && asks(read, a) }) {
				continue
			}
			for from := range parts {
				for to := from + 1; to <= len(parts); to++ {
					part := strings.Join(parts[from:to], "")
					for _, spelling := range []string{part, "http://" + part, "https:" + part} {
						a, ok := provenance.Parse(spelling)
						if !ok || !canBeAsked(a) || isSite(a) || a.HostIn(named) || !asks(read, a) {
							continue
						}
						for _, shown := range []string{string(encoded), "Title: " + text + "\nNext: x"} {
							if !asks(read.call("search", `{}`, shown), a) {
								r.Fatalf("%q is kept unasked and vouches for %s in %q", text, a, shown)
							}
						}
					}
				}
			}
		}
	})
}
