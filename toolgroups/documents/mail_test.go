package documents_test

import (
	"encoding/base64"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"oneclaw/toolgroups"
)

// mail is a mail as programs send it: encoded words, alternatives, attachments and a mail in the mail.
func mail() []byte {
	b64 := base64.StdEncoding.EncodeToString
	text := strings.Join([]string{
		"Return-Path: <ada@example.com>", "From: =?UTF-8?Q?J=C3=B6rg_M=C3=BCller?= <j@example.com>", "To: ann@example.com",
		"Subject: =?windows-1251?B?0fft?=", " =?UTF-8?Q?_f=C3=BCr_M=C3=A4rz?=", "Date: Mon, 2 Mar 2026 09:30:00 +0100", "MIME-Version: 1.0",
		`Content-Type: multipart/mixed; boundary="outer"`, "", "preamble",
		"--outer", `Content-Type: multipart/alternative; boundary="inner"`, "",
		"--inner", "Content-Type: text/plain; charset=iso-8859-1", "Content-Transfer-Encoding: quoted-printable", "", "Sch=F6ne Gr=FC=DFe,", "the invoice is attached.", "",
		"--inner", "Content-Type: text/html; charset=utf-8", "", "<p>the invoice is <b>attached</b></p>", "--inner--", "",
		"--outer", "Content-Type: text/csv; charset=utf-8", `Content-Disposition: attachment; filename*=UTF-8''Betr%C3%A4ge.csv`, "Content-Transfer-Encoding: base64", "",
		b64([]byte("item,price\nwidget,1200\n")), "",
		"--outer", `Content-Type: application/pdf; name="=?UTF-8?Q?Rechnung_M=C3=A4rz.pdf?="`, "Content-Disposition: attachment", "Content-Transfer-Encoding: base64", "",
		b64([]byte("%PDF-1.4 a file")), "",
		"--outer", "Content-Type: message/rfc822", "", "From: Cy <cy@example.com>", "Subject: forwarded", "Date: Sun, 1 Mar 2026 08:00:00 +0000", "", "The older words.", "",
		"--outer--", "",
	}, "\r\n")
	return []byte(text)
}

func TestAMailIsReadWithItsAttachments(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.put(t, "offer.eml", mail())
	res := h.must(t, "read_document", `{"path":"offer.eml"}`)
	for _, want := range []string{
		"Format: mail, 4 parts", "From: Jörg Müller <j@example.com>", "Subject: Счн für März", "Date: Mon, 2 Mar 2026 09:30:00 +0100", "Schöne Grüße,\nthe invoice is attached.",
		"- part 2: Beträge.csv (text/csv, ", "- part 3: Rechnung März.pdf (application/pdf, ", "- part 4: mail.eml (message/rfc822, ",
		"| widget | 1200 |", "is not read here: it is a PDF. Load the group pdf.]", "From: Cy <cy@example.com>", "The older words.",
	} {
		if !strings.Contains(res.Text, want) {
			t.Errorf("%q is not in\n%s", want, res.Text)
		}
	}
	if strings.Contains(res.Text, "**attached**") || strings.Contains(res.Text, "Saved") || res.Origin != toolgroups.OriginMail {
		t.Errorf("origin %q, text\n%s", res.Origin, res.Text)
	}
	if found := h.must(t, "search_document", `{"path":"offer.eml","query":"widget"}`); !strings.Contains(found.Text, "1200") || found.Origin != toolgroups.OriginMail {
		t.Errorf("found %q: %s", found.Origin, found.Text)
	}
}

func TestAnAttachmentThatIsNamedIsSaved(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.put(t, "offer.eml", mail())
	for range 2 {
		got := h.must(t, "read_document", `{"path":"offer.eml","part":"3"}`).Text
		name := "mail-attachments/offer/Rechnung März.pdf"
		if !strings.HasSuffix(got, "\n[Saved: "+name+"]") {
			t.Fatalf("got\n%s", got)
		}
		if data, err := os.ReadFile(filepath.Join(h.dir, name)); err != nil || string(data) != "%PDF-1.4 a file" {
			t.Errorf("saved %q, %v", data, err)
		}
	}
	if got := h.must(t, "read_document", `{"path":"offer.eml","part":"2"}`).Text; !strings.Contains(got, "| widget | 1200 |") || !strings.Contains(got, "Beträge.csv]") {
		t.Errorf("got\n%s", got)
	}
	if got := h.must(t, "read_document", `{"path":"offer.eml","part":"1"}`).Text; strings.Contains(got, "Saved") {
		t.Errorf("got\n%s", got)
	}
}

func TestDamagedMailsAreReadAsFarAsTheyGo(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	whole := string(mail())
	for name, tc := range map[string]struct{ data, want string }{
		"cut in the text":        {whole[:strings.Index(whole, "the invoice")+20], "Schöne Grüße"},
		"cut in an attachment":   {whole[:strings.Index(whole, "JVBER")+8], "part 3: Rechnung März.pdf"},
		"no last boundary":       {strings.Replace(whole, "--outer--", "", 1), "The older words."},
		"one part of HTML":       {"From: a@b.c\nSubject: x\nDate: now\nContent-Type: text/html\n\n<p>hello <b>there</b></p>", "hello **there**"},
		"nothing but a header":   {"From: a@b.c\nSubject: x\nDate: now\n\n", "no text that can be read"},
		"an unknown encoding":    {"From: a@b.c\nSubject: x\nDate: now\nContent-Type: text/plain; charset=x-none\nContent-Transfer-Encoding: x-none\n\nhello there", "hello there"},
		"a text of no encoding":  {"From: a@b.c\nSubject: \xcf\xf0\xe8\xe2\xe5\xf2\nDate: now\n\n\xcf\xf0\xe8\xe2\xe5\xf2, \xec\xe8\xf0", "Привет, мир"},
		"a line of a mailbox":    {"From ada@example.com Mon Mar  2 09:30:00 2026\nFrom: a@b.c\nSubject: x\nDate: now\n\nhello there", "hello there"},
		"a text that is no mail": {"Name: Ann\nCity: Rome\nAge: 3\n\nhello there", "Format: text"},
	} {
		h.put(t, "x", []byte(tc.data))
		if got := h.must(t, "read_document", `{"path":"x"}`).Text; !strings.Contains(got, tc.want) {
			t.Errorf("%s: %q is not in\n%s", name, tc.want, got)
		}
	}
}

func TestMailsInMailsEnd(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	data := "innermost"
	for range 40 {
		data = "From: a@b.c\nSubject: x\nDate: now\nContent-Type: message/rfc822\n\n" + data
	}
	h.put(t, "x.eml", []byte(data))
	if got := h.must(t, "read_document", `{"path":"x.eml"}`).Text; !strings.Contains(got, "which is not read") {
		t.Errorf("got\n%s", got)
	}
	var parts strings.Builder
	parts.WriteString("From: a@b.c\nSubject: x\nDate: now\nContent-Type: multipart/mixed; boundary=b\n\n")
	for range 2000 {
		parts.WriteString("--b\n\nword\n")
	}
	h.put(t, "many.eml", []byte(parts.String()))
	if got := h.must(t, "read_document", `{"path":"many.eml"}`).Text; !strings.Contains(got, "more than the limit of 500 parts") {
		t.Errorf("ends %q", got[max(len(got)-300, 0):])
	}
}
