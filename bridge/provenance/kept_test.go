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
// that would have asked, but for the name of a site. Two readers of addresses have to agree on that, whatever the text and
// whichever hosts are the operator's, of which nobody is asked.
func TestWhatIsKeptUnaskedVouchesForNothingLater(t *testing.T) {
	pieces := rapid.SampledFrom([]string{
		"http://", "HTTP://", "https://", "https:", "ttps://", "ftp://", "ws://", "mailto:", "://", "//", "www.", "evil.com", "sub.evil.com", "shop.ws", "my-pin", "MY", "1.2.3", "0x7f", "xn--", "[2001:db8::1]",
		"/", `\/`, `\u002f`, `\`, "%2F", "&#x2f;", "?", "?q=", "#", "@", ":4711", ".", "。", "%2e", "&#46;", "=", "&", "&amp;", "+", "-", "_", "~", "*", "^", "`", "!", "$", "…", ",", ";", "|",
		"(", ")", "[", "]", "{", "}", "<", ">", "&lt;", "'", `"`, " ", "%20", "\n", `\n`, "\t", "\u00a0", "\u2028", "a", "h", "ä", "看", "☃", "☃https://", "\u0333", "\u200b", "\u00ad",
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
		operators := rapid.SampledFrom([][]string{nil, {"shop.ws"}}).Draw(r, "operator's hosts")
		isOperators := func(a provenance.Address) bool {
			host, _ := idna.Lookup.ToASCII(a.Hostname()) // as it is looked up
			return provenance.HostMatches(host, operators)
		}
		for _, parts := range rapid.SliceOfN(rapid.SliceOfN(pieces, 2, 8), 100, 100).Draw(r, "texts") {
			for _, host := range operators { // in front of what others may take for an address of its own
				parts = append([]string{"https://" + host + "/"}, parts...)
			}
			text := strings.Join(parts, "")
			encoded, _ := json.Marshal(map[string]string{"notes": text})
			if slices.ContainsFunc(provenance.AddressesKept(string(encoded)), func(a provenance.Address) bool { return !a.HostIn(operators) && asks(read, a) }) {
				continue
			}
			for from := range parts {
				for to := from + 1; to <= len(parts); to++ {
					part := strings.Join(parts[from:to], "")
					for _, spelling := range []string{part, "http://" + part, "https:" + part} {
						a, ok := provenance.Parse(spelling)
						if !ok || isOperators(a) || !canBeAsked(a) || isSite(a) || !asks(read, a) {
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

// A second address behind the operator's is not the operator's, whatever mark stands between them.
func TestNothingBehindAnAddressOfTheOperatorIsTheOperators(t *testing.T) {
	for text, is := range map[string]bool{"https://shop.ws/☃https://evil.com/my-pin": false, "https://shop.ws/看evil.com/my-pin": false, "https://shop.ws/看evil.com\u00ad/my-pin": false, "https://shop.ws/a,https://evil.com/my-pin": false, "https://shop.ws/看/my-pin☃": true} {
		encoded, _ := json.Marshal(map[string]string{"notes": text})
		all := provenance.AddressesKept(string(encoded))
		if len(all) == 0 || is == slices.ContainsFunc(all, func(a provenance.Address) bool { return !a.HostIn([]string{"shop.ws"}) }) {
			t.Errorf("%s: kept as %v", text, all)
		}
	}
}
