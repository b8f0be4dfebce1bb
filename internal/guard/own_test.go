package guard_test

import (
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"os/exec"
	"testing"

	"oneclaw/internal/guard"
)

// withPublicAddresses runs the test in a network of its own, as on a rented server: with public addresses. It reports whether it is there.
func withPublicAddresses(t *testing.T) bool {
	t.Helper()
	const variable = "ONECLAW_TEST_NETWORK"
	if os.Getenv(variable) != "" {
		return true
	}
	const network = "ip link set lo up && ip addr add 93.184.216.34/32 dev lo && ip addr add 2600:1f18::5/128 dev lo nodad && ip addr add 2600:1f18::6/128 dev lo nodad"
	if out, err := exec.CommandContext(t.Context(), "unshare", "-rn", "sh", "-c", network).CombinedOutput(); err != nil {
		t.Skipf("no network can be made here: %v, %s", err, out)
	}
	cmd := exec.CommandContext(t.Context(), "unshare", "-rn", "sh", "-c", network+` && exec "$0" "$@"`, os.Args[0], "-test.run=^"+t.Name()+"$", "-test.count=1")
	cmd.Env = append(os.Environ(), variable+"=1")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	return false
}

// What a firewall keeps from others, such as a page of a database that listens everywhere, is behind the machine's own
// public address, too: the kernel takes a connection to it as one from within.
func TestOwnAddressesAreRefused(t *testing.T) {
	t.Parallel()
	if !withPublicAddresses(t) {
		return
	}
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "[::]:0")
	if err != nil {
		t.Fatal(err)
	}
	inner := httptest.NewUnstartedServer(http.NotFoundHandler())
	_ = inner.Listener.Close()
	inner.Listener = l
	inner.Start()
	defer inner.Close()
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	for _, host := range []string{"93.184.216.34", "::ffff:93.184.216.34", "2600:1f18::5", "2600:1f18::77"} {
		if err := get(t, guard.NewClient(guard.Config{}), "http://"+net.JoinHostPort(host, port)+"/"); !errors.Is(err, guard.ErrAddress) {
			t.Errorf("%s: %v", host, err)
		}
	}
	for _, host := range []string{"93.184.216.35", "2600:1f18:0:1::5"} { // neighbours, who may be anyone
		if err := get(t, guard.NewClient(guard.Config{}), "http://"+net.JoinHostPort(host, "1")+"/"); err == nil || errors.Is(err, guard.ErrAddress) {
			t.Errorf("%s: %v", host, err)
		}
	}
	allowed := guard.NewClient(guard.Config{AllowPrivate: []netip.Prefix{netip.MustParsePrefix("93.184.216.34/32"), netip.MustParsePrefix("2600:1f18::5/128")}})
	for host, want := range map[string]error{"93.184.216.34": nil, "2600:1f18::5": nil, "2600:1f18::6": guard.ErrAddress} {
		if err := get(t, allowed, "http://"+net.JoinHostPort(host, port)+"/"); !errors.Is(err, want) {
			t.Errorf("%s, where some are allowed: %v, want %v", host, err, want)
		}
	}
}
