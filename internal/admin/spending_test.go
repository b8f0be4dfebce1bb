package admin_test

import (
	"strings"
	"testing"
	"time"

	"oneclaw/bridge/access"
	"oneclaw/bridge/receipts"
	"oneclaw/internal/admin/frame"
	"oneclaw/storage"
)

// Spending names people as the register or their last message does, says where a price is missing,
// and has a plot of the days.
func TestSpendingNamesPeople(t *testing.T) {
	r := newRig(t)
	r.now = time.Now()
	r.cfg.People = func() []access.Person { return []access.Person{{User: "telegram:1", Name: "Ann"}} }
	r.finish(said{chat: "telegram:7", id: "1", user: "7", name: "Bo", text: "hello", at: r.now.Add(-time.Minute), took: time.Second, state: receipts.Done})
	day := "account/" + r.now.UTC().Format(time.DateOnly)
	for key, value := range map[string]string{
		"/user/telegram:1": `{"calls":1,"input":5,"money":5000000}`, "/user/telegram:7": `{"calls":1,"input":5,"unpriced":1}`,
		"/user/telegram:8": `{"calls":1,"input":5}`, "/chat/telegram:7": `{"calls":1,"input":5}`, "/total/": `{"calls":3,"input":15,"unpriced":1}`,
	} {
		if _, err := r.store.Put(t.Context(), day+key, []byte(value), storage.Absent); err != nil {
			t.Fatal(err)
		}
	}
	body := r.get(frame.Root + "spending")
	for _, want := range []string{"Ann (telegram:1)", "Bo (telegram:7)", ">telegram:8<", "without a known price: add prices to the settings", ">unknown<", `class="plot bars"`} {
		if !strings.Contains(body, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if n := strings.Count(body, "Bo (telegram:7)"); n != 2 {
		t.Errorf("Bo is named %d times, want as a person and as a chat", n)
	}
	if t.Failed() {
		t.Log(body)
	}
}
