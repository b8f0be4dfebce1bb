package access_test

import (
	"testing"

	"oneclaw/bridge/access"
	"oneclaw/toolgroups"
)

func TestOutsidersAreLetInByNameAlone(t *testing.T) {
	for _, tt := range []struct {
		allow, user string
		want        toolgroups.Role
	}{
		{"slack:*", "U1", toolgroups.RoleUser},
		{"slack:*", "U1@T0OTHER", toolgroups.RoleStranger},
		{"*", "U1@T0OTHER", toolgroups.RoleStranger},
		{"slack:U1", "U1@T0OTHER", toolgroups.RoleStranger},
		{"slack:U1@T0OTHER", "U1@T0OTHER", toolgroups.RoleUser},
		{"slack:U1@T0OTHER", "U1", toolgroups.RoleStranger},
		{"slack:U1@T0OTHER", "U1@T0THIRD", toolgroups.RoleStranger},
	} {
		access := access.Access{Allow: []string{tt.allow}}
		if err := access.Validate(); err != nil {
			t.Error(err)
		}
		if got := access.Role("slack:" + tt.user); got != tt.want {
			t.Errorf("%q is %v where %q is allowed, want %v", tt.user, got, tt.allow, tt.want)
		}
	}
}
