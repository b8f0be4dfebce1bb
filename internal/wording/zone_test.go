package wording_test

import (
	"testing"

	"oneclaw/internal/wording"
)

func TestFindZone(t *testing.T) {
	t.Parallel()
	for said, want := range map[string]string{
		"Lisbon": "Europe/Lisbon", "lisbon, Portugal": "Europe/Lisbon", "NEW  YORK": "America/New_York", "america/new_york": "America/New_York",
		"buenos aires": "America/Buenos_Aires", "dar es salaam": "Africa/Dar_es_Salaam", "port-au-prince": "America/Port-au-Prince",
		"port of spain": "America/Port_of_Spain", "utc": "UTC", "UTC": "UTC", "Asia/Kolkata": "Asia/Kolkata", "Antarctica/McMurdo": "Antarctica/McMurdo",
		"": "", "Local": "", "Springfield": "", "../Lisbon": "", "Europe": "", "Europe/": "", "London is nice": "", ", Lisbon": "",
	} {
		if got := wording.FindZone(said); got != want {
			t.Errorf("%q is %q, want %q", said, got, want)
		}
	}
}
