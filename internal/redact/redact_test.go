package redact_test

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"net/url"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"oneclaw/internal/redact"
)

// alnum makes n characters that look random and are the same in each run.
func alnum(n int, seed uint64) string {
	return pick("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789", n, seed)
}

func pick(from string, n int, seed uint64) string {
	r := rand.New(rand.NewPCG(seed, 7))
	out := []byte(from[:1] + "9")
	for len(out) < n {
		out = append(out, from[r.IntN(len(from))])
	}
	return string(out[:n])
}

// planted are made-up secrets of each shape, put together here so that no scanner of
// sources takes them for real ones.
func planted() map[string]string {
	upper := "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"
	key := "-----BEGIN RSA PRIVATE" + " KEY-----\n" + alnum(64, 1) + "\n" + alnum(64, 2) + "\n-----END RSA PRIVATE" + " KEY-----"
	return map[string]string{
		"telegram":      "1234567890:AA" + alnum(33, 3),
		"slack bot":     "xoxb" + "-123456789012-123456789012-" + alnum(24, 4),
		"slack user":    "xoxe.xoxp" + "-1-" + alnum(150, 5),
		"slack app":     "xapp" + "-1-A012BCDEF-1234567890123-" + alnum(64, 6),
		"openai":        "sk" + "-" + alnum(48, 7),
		"openai proj":   "sk" + "-proj-" + alnum(40, 8) + "_" + alnum(40, 9) + "-" + alnum(20, 10),
		"anthropic":     "sk" + "-ant-api03-" + alnum(80, 11) + "-" + alnum(8, 12),
		"google access": "ya29" + ".a0" + alnum(120, 13),
		"google key":    "AIza" + alnum(35, 14),
		"google renew":  "1//0" + "4" + alnum(60, 15) + "-" + alnum(20, 16),
		"google client": "GOCSPX" + "-" + alnum(28, 17),
		"github":        "ghp" + "_" + alnum(36, 18),
		"github fine":   "github" + "_pat_" + alnum(22, 19) + "_" + alnum(59, 20),
		"gitlab":        "glpat" + "-" + alnum(20, 21),
		"stripe":        "sk" + "_live_" + alnum(24, 22),
		"aws id":        "AKIA" + pick(upper, 16, 23)[2:] + "QZ",
		"our link":      "oclink" + "_dGVsZWdyYW06MQ." + pick(upper, 28, 27)[2:],
		"our session":   "ocseat" + "_dGVsZWdyYW06MQ." + pick(upper, 28, 28)[2:],
		"jwt":           "eyJ" + alnum(20, 24) + ".eyJ" + alnum(60, 25) + "." + alnum(43, 26),
		"private key":   key,
		"key as JSON":   strings.ReplaceAll(key, "\n", `\n`),
		"half a key":    key[:100],
	}
}

func TestShapesAreMasked(t *testing.T) {
	var r *redact.Redactor // knows nothing
	for name, secret := range planted() {
		for _, frame := range []string{"%s", "the key is %s.", "KEY=%s\n", `{"key":"%s"}`, "https://example.com/?a=1&k=%s", "(%s)", "`%s`", "Bearer %s", "%s %[1]s", `{"mail":"Your token:\n%s\n"}`, `{"a":"b\u003d%s\t"}`, "?q=key%%3D%s&n=1", "a%%20%s"} {
			text := fmt.Sprintf(frame, secret)
			got := r.Text(text)
			if body := secret[len(secret)/2:]; strings.Contains(got, body) || strings.Contains(got, secret[:len(secret)/2]) {
				t.Errorf("%s in %q: %q", name, frame, got)
			}
			if !strings.Contains(got, redact.Mask) || r.Text(got) != got {
				t.Errorf("%s in %q: %q has no mask, or changes again to %q", name, frame, got, r.Text(got))
			}
		}
	}
}

func TestOnlyTheSecretIsMasked(t *testing.T) {
	p := planted()
	secret := alnum(40, 30)
	for before, want := range map[string]string{
		"https://api.telegram.org/bot" + p["telegram"] + "/getMe":  "https://api.telegram.org/bot••••/getMe",
		"/file/bot" + url.QueryEscape(p["telegram"]) + "/x":        "/file/bot••••/x",
		"Authorization: Bearer " + secret:                          "Authorization: Bearer ••••",
		`Authorization:[Basic ` + secret + `==]`:                   `Authorization:[Basic ••••]`,
		"postgres://bot:" + "hunter2!@db:5432/x?y=z":               "postgres://bot:••••@db:5432/x?y=z",
		"redis://:" + "p%40ss@10.0.0.1":                            "redis://:••••@10.0.0.1",
		`{"access_token":"` + secret + `","expires_in":3599}`:      `{"access_token":"••••","expires_in":3599}`,
		"AWS_SECRET_ACCESS_KEY = " + secret:                        "AWS_SECRET_ACCESS_KEY = ••••",
		"DB_PASSWORD='cor rect1'\nNEXT=1":                          "DB_PASSWORD='cor rect1'\nNEXT=1", // ends at the space, too short
		"DB_PASSWORD=correct-1\nNEXT=1":                            "DB_PASSWORD=••••\nNEXT=1",
		"ACME_API_KEY=\"" + secret + "\"":                          "ACME_API_KEY=\"••••\"",
		"a " + p["private key"] + " b":                             "a •••• b",
		"https://hooks.slack.com/services/T01/B01/" + secret:       "https://hooks.slack.com/services/••••",
		"wrong key: " + p["github"][:14] + "… and on":              "wrong key: ••••… and on",
		"wrong key: " + p["openai proj"][:20] + "...":              "wrong key: ••••...",
		`"wrong key:\n` + p["github"][:14] + `…"`:                  `"wrong key:\n••••…"`,
		p["github"][:20] + "\n\n[cut: the limit is 9 of 99":        "••••\n\n[cut: the limit is 9 of 99",
		p["github"][:20] + "\n[cut: stdout had 99 bytes":           "••••\n[cut: stdout had 99 bytes",
		p["github"][:20] + "\n[stderr]\nwarning\n[cut: stdout had": "••••\n[stderr]\nwarning\n[cut: stdout had",
		p["github"][:20] + "\n[killed: out of memory]":             "••••\n[killed: out of memory]",
		p["github"][:20] + "\n\n[Truncated after 9 characters, at": "••••\n\n[Truncated after 9 characters, at",
		p["github"][:20] + "\n[Cut: the limit is 9 characters":     "••••\n[Cut: the limit is 9 characters",
		p["github"][:20] + "\n[another line]":                      p["github"][:20] + "\n[another line]",
		"sk-learn… ghp_… see...":                                   "sk-learn… ghp_… see...",
	} {
		if got := (*redact.Redactor)(nil).Text(before); got != want {
			t.Errorf("%q: got %q, want %q", before, got, want)
		}
	}
}

func TestOrdinaryTextsSurvive(t *testing.T) {
	var r redact.Redactor
	picture, err := os.ReadFile("../lab/demo/sample.pdf")
	if err != nil {
		t.Fatal(err)
	}
	sum := hex.EncodeToString([]byte(alnum(32, 40)))
	for _, text := range []string{
		"Ask the task-scheduler-for-everyone2 to disk-usage-report-2026-11-21-final.",
		"xoxo-and-many-more-hugs", "risk-adjusted-return-on-capital1234567890",
		"sk-learn and sk-toolbox", "The bearer of bad news came at 10:14:05, at 12:AM",
		"550e8400-e29b-41d4-a716-446655440000", "token: 550e8400-e29b-41d4-a716-446655440000",
		"commit " + sum[:40], "sha256:" + sum, "integrity sha512-" + base64.StdEncoding.EncodeToString([]byte(sum)),
		`"nextPageToken": "CAoQAAAaGhIYCgYIABAAGAESDgjm` + alnum(30, 41) + `"`, "page_token=" + alnum(40, 42), "sync_token: " + alnum(40, 43),
		"data:application/pdf;base64," + base64.StdEncoding.EncodeToString(picture),
		"AgACAgIAAxkBAAIB" + alnum(60, 44), "https://accounts.google.com/o/oauth2/v2/auth?client_id=1-x.apps.googleusercontent.com&state=" + alnum(43, 45) + "&code_challenge=" + alnum(43, 46),
		"apiKey := os.Getenv(name)", "api_key = load_the_api_key_from_vault2(name)", "password = input()", "PASSWORD=$OTHER", "PASSWORD=${X}",
		"https://example.com:8080/a@b", "git@github.com:golang/go.git", "ssh://git@github.com/golang/go", "see http://a.example/: user@b.example",
		"-----BEGIN CERTIFICATE-----\n" + alnum(64, 47) + "\n-----END CERTIFICATE-----", "-----BEGIN PUBLIC KEY-----\n" + alnum(64, 48),
		"eyJust a word. eyJ", "АКІА кирилица, שלום, 👩‍👩‍👧 ••••", "",
	} {
		if got := r.Text(text); got != text {
			t.Errorf("%.80q became %.200q", text, got)
		}
	}
}

// The sources of the program and its papers hold no secret, and enough of everything
// that could be taken for one.
func TestOrdinaryFilesSurvive(t *testing.T) {
	t.Parallel()
	var r redact.Redactor
	seen := 0
	err := fs.WalkDir(os.DirFS("../.."), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		ext := path.Ext(name)
		if !slices.Contains([]string{".go", ".md", ".json", ".sum", ".mod", ".html"}, ext) || strings.HasSuffix(name, "_test.go") || strings.Contains(name, "testdata") || strings.Contains(name, "emulator") || strings.HasPrefix(name, ".") {
			return nil
		}
		data, err := os.ReadFile(path.Join("../..", name))
		if err != nil {
			return err
		}
		seen += len(data)
		for line := range strings.Lines(string(data)) {
			if got := r.Text(line); got != line {
				t.Errorf("%s: %q became %q", name, line, got)
			}
		}
		return nil
	})
	if err != nil || seen < 1<<20 {
		t.Errorf("%d bytes looked at, err %v", seen, err)
	}
}

// What is known is masked in every form in which it turns up.
func TestKnownSecretsAreMaskedHoweverEncoded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		secret := rapid.StringOfN(rapid.RuneFrom([]rune(`abcXYZ0189 _-/+=:&?%"'<>\äß€`)), 8, 60, -1).Draw(t, "secret")
		r := redact.New("an older value", secret)
		around := rapid.StringMatching(`[a-z ]{0,5}`)
		before, after := around.Draw(t, "before"), around.Draw(t, "after")
		quoted, err := json.Marshal(before + secret + after)
		if err != nil {
			t.Fatal(err)
		}
		whole := before + secret + after
		texts := map[string]string{
			"plain": whole, "json": string(quoted), "json of PHP": strings.ReplaceAll(string(quoted), "/", `\/`), "html": html.EscapeString(whole), "query": url.QueryEscape(whole),
			"path": url.PathEscape(whole), "quote": strconv.Quote(whole), "ascii": strconv.QuoteToASCII(whole),
		}
		for form, text := range texts {
			if got := r.Text(text); !strings.Contains(got, redact.Mask) {
				t.Fatalf("%s of %q shows: %q", form, secret, got)
			}
		}
		for form, encoding := range map[string]*base64.Encoding{"std": base64.StdEncoding, "url": base64.RawURLEncoding} {
			text := encoding.EncodeToString([]byte(before + secret + after))
			if got := r.Text(text); !strings.Contains(got, redact.Mask) {
				t.Fatalf("base64 (%s) of %q shows: %q", form, secret, got)
			}
		}
	})
}

// Whoever can have a text masked and sees the outcome, as each person does with an answer and the model with a result,
// would find out a secret letter by letter if it made a difference how a part of it goes on.
func TestAPartOfAKnownSecretIsAsAnyOtherText(t *testing.T) {
	t.Parallel()
	var ignorant *redact.Redactor
	for name, secret := range map[string]string{
		"telegram":                  "1234567890:AA" + alnum(33, 3),
		"model key":                 "sk" + "-proj-" + alnum(48, 8),
		"a search key, no shape":    "tvly-prod-" + alnum(32, 9),
		"a password that has a day": "Winter2026-" + alnum(8, 10),
		"a passphrase":              "größtes Geheimnis: \"/&%2026",
	} {
		r := redact.New(secret)
		forms := []string{secret, url.QueryEscape(secret), html.EscapeString(secret), strings.Trim(strconv.QuoteToASCII(secret), `"`)}
		for lead := range 3 {
			encoded := base64.RawStdEncoding.EncodeToString([]byte("abc"[:lead] + secret))
			forms = append(forms, encoded[(lead*8+5)/6:(lead+len(secret))*8/6])
		}
		for _, form := range forms {
			for n := range len(form) {
				for _, part := range []string{form[:n], form[n+1:], form[n/2 : n]} {
					for _, end := range []string{"…", "...", "\n[cut: 1 of 2", "\n[Cut: 1", "\n[Truncated 1", "\n[stderr]\n", "\n[killed: 9]", " ", ""} {
						if text := "see " + part + end; r.Text(text) != ignorant.Text(text) {
							t.Errorf("%s: %q became %q", name, text, r.Text(text))
						}
					}
				}
			}
		}
	}
}

func TestMaskingIsDoneOnceAndLosesNothingElse(t *testing.T) {
	secrets := slices.Sorted(func(yield func(string) bool) {
		for _, s := range planted() {
			if !yield(s) {
				return
			}
		}
	})
	known := alnum(20, 50)
	r := redact.New(known)
	rapid.Check(t, func(t *rapid.T) {
		var text strings.Builder
		for _, part := range rapid.SliceOfN(rapid.OneOf(rapid.SampledFrom(append(secrets, known)), rapid.StringN(0, 30, -1), rapid.SampledFrom([]string{" ", "\n", "://a:", "@", "Bearer ", `\n`, `"`})), 0, 12).Draw(t, "parts") {
			text.WriteString(part + rapid.SampledFrom([]string{" ", "\n", "&", "|"}).Draw(t, "between"))
		}
		got := r.Text(text.String())
		if again := r.Text(got); again != got {
			t.Fatalf("%q is masked again: %q", got, again)
		}
		if strings.Contains(got, known) {
			t.Fatalf("%q shows what is known", got)
		}
		// What is left stands in the text, in its order.
		rest := text.String()
		for piece := range strings.SplitSeq(got, redact.Mask) {
			at := strings.Index(rest, piece)
			if at < 0 {
				t.Fatalf("%q is not in %q", piece, rest)
			}
			rest = rest[at+len(piece):]
		}
	})
}

// A long value is a file, and turns up whole or as a JSON string.
func TestLongValuesAreMasked(t *testing.T) {
	long := "{\n" + strings.Repeat("x y\n", 5000) + "}"
	r := redact.New(long)
	quoted, err := json.Marshal(long)
	if err != nil {
		t.Fatal(err)
	}
	if got := r.Text("a " + long + " b " + string(quoted)); got != "a •••• b \"••••\"" {
		t.Errorf("got %.200q", got)
	}
}

func TestValuesAreAddedAtRunTime(t *testing.T) {
	r := redact.New("short", "a first value")
	if got := r.Text("short: later value 1"); got != "short: later value 1" {
		t.Errorf("got %q", got)
	}
	r.Add("later value 1", "tiny", "later value 1")
	if got := r.Text("short tiny: later value 1, a first value"); got != "short tiny: ••••, ••••" {
		t.Errorf("got %q", got)
	}
	for i := range 1000 {
		r.Add(fmt.Sprintf("value number %d", i))
	}
	if got := r.Text("later value 1, value number 999, a first value"); got != "later value 1, ••••, ••••" {
		t.Errorf("the oldest is not forgotten, or more than it: %q", got)
	}
	var none *redact.Redactor
	none.Add("a value that nobody keeps")
}

// A growing text never shows a part of a secret, however it is cut.
func TestUnfinishedTextsShowNoBeginnings(t *testing.T) {
	known := "known-" + alnum(20, 51)
	r := redact.New(known)
	for name, secret := range planted() {
		text := "Here it is: " + secret + " and " + known + " done"
		for i := range len(text) {
			got := strings.ReplaceAll(r.MaskUnfinished(text[:i]), redact.Mask, "")
			if left := strings.TrimSpace(strings.NewReplacer("Here", "", "it", "", "is:", "", "and", "", "done", "").Replace(got)); left != "" {
				t.Fatalf("%s: after %d bytes: %q", name, i, got)
			}
		}
		if got := r.MaskUnfinished(text + "\n"); name != "half a key" && got != "Here it is: •••• and •••• done\n" {
			t.Errorf("%s: %q", name, got)
		}
	}
}

func TestUnfinishedPassphraseIsNotShownByItsWords(t *testing.T) {
	for _, secret := range []string{"correct horse battery staple", "größtes Geheimnis"} {
		r := redact.New(secret)
		text := "It is: " + secret + ". All " + secret[:7] + " \n" + strings.Repeat("and so on ", 5)
		for i := range len(text) {
			got := r.MaskUnfinished(text[:i])
			if strings.Contains(got, secret[8:13]) || i < len(secret)+12 && strings.Contains(got, secret[:7]) {
				t.Errorf("after %d bytes: %q", i, got)
			}
		}
		if got, want := r.MaskUnfinished(text), "It is: ••••. All "+secret[:7]+" \n"; !strings.HasPrefix(got, want) {
			t.Errorf("whole: %q", got)
		}
	}
}

// Whoever has a growing text begun with a guess sees what is shown of it, and would find out a secret letter by letter,
// or word by word.
func TestAGrowingTextTellsNotHowASecretBegins(t *testing.T) {
	t.Parallel()
	for _, secret := range []string{"Пароль-Сервера-42", "correct horse battery staple", "Bearer " + alnum(40, 60), "-----BEGIN\nnothing that ends"} {
		r := redact.New(secret)
		for n := range len(secret) {
			wrong := strings.Repeat("x", n)
			if !utf8.ValidString(secret[:n]) {
				continue
			}
			if n > 0 {
				last, size := utf8.DecodeLastRuneInString(secret[:n])
				wrong = secret[:n-size] + strings.Map(func(c rune) rune {
					if c >= utf8.RuneSelf {
						return 'Ж'
					}
					return 'q'
				}, string(last))
			}
			for _, after := range []string{"", " ", "\n", "…"} {
				right, other := r.MaskUnfinished("Word: "+secret[:n]+after), r.MaskUnfinished("Word: "+wrong+after)
				if len(right) != len(other) {
					t.Errorf("%q: a right guess shows %q, and a wrong one %q", secret[:n], right, other)
				}
			}
		}
	}
}

// A key over many lines is left out as long as it has no end, so the texts around it need not wait for its length.
func TestAKnownKeyDelaysNoGrowingText(t *testing.T) {
	t.Parallel()
	key := planted()["private key"] + "\n"
	r := redact.New(key)
	for i := range len(key) {
		if got := r.MaskUnfinished("The key: " + key[:i]); !slices.Contains([]string{"The ", "The key: ", "The key: ••••"}, got) {
			t.Errorf("after %d bytes: %q", i, got)
		}
	}
	if got := r.MaskUnfinished("The key: " + key + "is new. "); got != "The key: ••••is new. " {
		t.Errorf("whole: %q", got)
	}
}

// What is written without spaces is shown as it grows, up to what may go on as a secret.
func TestUnfinishedTextsWithoutSpacesAreShown(t *testing.T) {
	for text, want := range map[string]string{"你好，世界": "你好，世界", "你好 sk-": "你好 ", "héllo wör": "héllo wö", "\xe4\xbd": "", "": ""} {
		if got := redact.New("a-known-value").MaskUnfinished(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

type stringer struct{ secret string }

func (s stringer) String() string { return "stringer of " + s.secret }

type valuer struct{ secret string }

func (v valuer) LogValue() slog.Value { return slog.GroupValue(slog.String("inner", v.secret)) }

// Everything that a record can hold goes through the writer.
func TestLogsShowNoSecret(t *testing.T) {
	known := `kn"wn` + alnum(20, 52)
	for name, handler := range map[string]func(*bytes.Buffer) slog.Handler{
		"json": func(b *bytes.Buffer) slog.Handler { return slog.NewJSONHandler(redact.New(known).Writer(b), nil) },
		"text": func(b *bytes.Buffer) slog.Handler { return slog.NewTextHandler(redact.New(known).Writer(b), nil) },
	} {
		secrets := planted()
		secrets["known"] = known
		for kind, secret := range secrets {
			var out bytes.Buffer
			log := slog.New(handler(&out)).With("with", secret).WithGroup("group")
			log.Info("message", "sentence", "message "+secret, "string", secret, "err", fmt.Errorf("call: %w", errors.New("at https://h/bot/"+secret)),
				"stringer", stringer{secret}, "valuer", valuer{secret}, "any", map[string][]string{"list": {secret}}, "struct", struct{ Field string }{secret},
				slog.Group("deep", slog.Group("er", "x", secret)), "key "+secret, 1, "address", &url.URL{Scheme: "https", Host: "h", RawQuery: "t=" + url.QueryEscape(secret)})
			body := secret[len(secret)/2:]
			if got := out.String(); strings.Contains(got, body) || strings.Contains(got, url.QueryEscape(body)) || strings.Count(got, "\n") != 1 {
				t.Errorf("%s log shows the %s: %s", name, kind, got)
			}
			if name == "json" && !json.Valid(out.Bytes()) {
				t.Errorf("%s: no JSON any more: %s", kind, out.Bytes())
			}
		}
	}
}

func TestTheWriterReportsFailures(t *testing.T) {
	w := redact.New("a known value").Writer(broken{})
	if _, err := w.Write([]byte("a known value\n")); err == nil {
		t.Error("no error")
	}
	var out bytes.Buffer
	if n, err := redact.New("a known value").Writer(&out).Write([]byte("a known value\n")); n != 14 || err != nil || out.String() != "••••\n" {
		t.Errorf("%d, %v, %q", n, err, &out)
	}
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errors.New("broken") }

func FuzzText(f *testing.F) {
	for _, s := range planted() {
		f.Add("x " + s + " y")
	}
	r := redact.New("a known value")
	f.Fuzz(func(t *testing.T, text string) {
		once := r.Text(text)
		if strings.Contains(once, "a known value") {
			t.Errorf("%q: %q", text, once)
		}
		_ = r.MaskUnfinished(text)
	})
}

// Hostile texts are no slower than others by more than a little: see ns per byte.
func BenchmarkText(b *testing.B) {
	prose := strings.Repeat("The quick brown fox jumps over https://example.com/path?x=1 at 10:14, task-9.\n", 400)
	texts := map[string]string{
		"prose": prose, "secrets": strings.Repeat(strings.Join(slices.Sorted(func(y func(string) bool) {
			for _, s := range planted() {
				if !y(s) {
					return
				}
			}
		}), " "), 15),
		"hostile": strings.Repeat("-----BEGIN PRIVATE"+" KEY-----", 1000),
	}
	r := redact.New(alnum(46, 1), alnum(50, 2), alnum(60, 3), alnum(50, 4), alnum(32, 5))
	for name, text := range texts {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				_ = r.Text(text)
			}
		})
	}
}

// FuzzKnownMasksValuesAlone: whatever a text looks like, nothing in it is hidden
// but the value that is known.
//
// An approval card hides nothing but known secrets.
func FuzzKnownMasksValuesAlone(f *testing.F) {
	const secret = "t0p-secret-of-the-bot"
	for _, text := range planted() {
		f.Add(text)
		f.Add("PASSWORD=" + text + "; x://u:" + text + "@h " + text[:len(text)/2] + "… " + secret)
	}
	r := redact.New(secret)
	f.Fuzz(func(t *testing.T, text string) {
		for lead := range 3 {
			encoded := base64.StdEncoding.EncodeToString([]byte("..."[:lead] + secret))
			if strings.Contains(text, encoded[4:24]) {
				t.Skip("the value stands there in base64")
			}
		}
		if got, want := r.MaskKnown(text), strings.ReplaceAll(text, secret, redact.Mask); got != want {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
		if got := (*redact.Redactor)(nil).MaskKnown(text); got != text {
			t.Errorf("without values %q became %q", text, got)
		}
	})
}
