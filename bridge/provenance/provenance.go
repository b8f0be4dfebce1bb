// Package provenance says whose words a model has read, and where an address comes from that it wants to
// open. Text that a model reads can make it act, and an address can carry away what it knows: so a turn
// opens by itself what somebody else wrote down, and asks for what the model put together after it had
// read words of others.
package provenance

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"golang.org/x/net/publicsuffix"

	"oneclaw/agent"
	"oneclaw/toolgroups"
)

// Input is what a model was shown when it made its calls.
type Input struct {
	agent.Input
	// User is the person on whose behalf the calls run, as platform:id.
	User string
	// Tool returns the tool with a name.
	Tool func(name string) (toolgroups.Tool, bool)
}

// words are texts of one message that the model has read and did not write.
type words struct {
	texts  []string
	others bool // not only the person's, or the program's
	mail   bool
	// computed texts may repeat what the model wrote, so that they vouch for no address.
	computed bool
	message  *agent.Message
	at       int
}

// words returns the texts of a message; false if the model or the program wrote it.
func (in *Input) words(at int) (w words, ok bool) {
	m := &in.Messages[at]
	w = words{message: m, at: at}
	switch m.Role {
	case agent.RoleUser:
		foreign := m.AuthorKey != "" && m.AuthorKey != in.User
		quoted := m.Origin == agent.OriginQuoted || m.Origin == toolgroups.OriginComputed || m.Origin == "" && m.QuotedText() != "" || m.Overheard != ""
		w.texts, w.others, w.computed = []string{m.Text, m.Recalled}, foreign || quoted, m.Origin == toolgroups.OriginComputed
		if m.Origin != toolgroups.OriginOwn || m.Overheard != "" { // otherwise it quotes the bot alone
			w.texts = append(w.texts, m.QuotedText())
		}
	case agent.RoleTool:
		if m.Origin == toolgroups.OriginOwn {
			return w, false
		}
		w.texts, w.others = []string{m.Text}, true
		w.mail, w.computed = m.Origin == toolgroups.OriginMail, m.Origin == toolgroups.OriginComputed
		for _, s := range m.Sources {
			w.texts = append(w.texts, s.URL)
		}
	case agent.RoleSummary:
		w.texts, w.others, w.computed = []string{m.Text}, true, true
	default:
		return w, false
	}
	return w, true
}

// HoldsOthers reports whether anything in the input holds words of others, and names the newest of it in
// Markdown.
func (in *Input) HoldsOthers() (what string, ok bool) {
	what, ok = in.newest(0)
	switch {
	case ok:
	case in.PromptOthers:
		return "what I remember", true
	case in.Incomplete:
		return "what was said long ago in this conversation", true
	}
	return what, ok
}

// ReadOthers reports whether the turn has read words of others.
func (in *Input) ReadOthers() bool {
	_, ok := in.newest(in.turnStart())
	return ok
}

func (in *Input) newest(from int) (string, bool) {
	for at := len(in.Messages) - 1; at >= from; at-- {
		if w, ok := in.words(at); ok && w.others {
			return in.describe(w), true
		}
	}
	return "", false
}

// turnStart returns the index of the message that began the turn.
func (in *Input) turnStart() int {
	for i, m := range slices.Backward(in.Messages) {
		if m.BeginsTurn() {
			return i
		}
	}
	return 0
}

// describe names the source of words in Markdown.
func (in *Input) describe(w words) string {
	switch m := w.message; {
	case m.Role == agent.RoleSummary:
		return "what was said before in this conversation"
	case m.Role == agent.RoleUser && m.AuthorKey != "" && m.AuthorKey != in.User:
		return "a message of somebody else"
	case m.Role == agent.RoleUser && m.Origin == toolgroups.OriginComputed:
		return "the result of a background task"
	case m.Role == agent.RoleUser && len(m.Files) > 0 && m.QuotedText() == "":
		return "an attached file"
	case m.Role == agent.RoleUser:
		return "what others wrote in the message"
	case w.mail:
		return "mails"
	}
	for _, address := range in.fetched(w) {
		return "the page " + code(address.String())
	}
	return "a result of " + code(w.message.Tool)
}

// code formats text as code in Markdown.
func code(text string) string { return "`" + strings.ReplaceAll(text, "`", "'") + "`" }

// callOf returns the call whose result a message is.
func (in *Input) callOf(at int) (agent.Call, bool) {
	id := in.Messages[at].CallID
	for i := at - 1; i >= 0; i-- {
		m := &in.Messages[i]
		if m.Role != agent.RoleAssistant {
			continue
		}
		i := slices.IndexFunc(m.Calls, func(c agent.Call) bool { return c.ID == id })
		if i >= 0 {
			return m.Calls[i], true
		}
		return agent.Call{}, false
	}
	return agent.Call{}, false
}

// fetched returns the addresses that the call behind words has fetched.
func (in *Input) fetched(w words) []Address {
	if w.message.Role != agent.RoleTool || w.message.Status != agent.StatusOK {
		return nil
	}
	call, ok := in.callOf(w.at)
	if !ok {
		return nil
	}
	return in.addressesOf(call)
}

// addressesOf returns the addresses that a call would fetch.
func (in *Input) addressesOf(call agent.Call) []Address {
	tool, ok := in.Tool(call.EffectiveTool())
	if !ok || !tool.Fetches {
		return nil
	}
	return Addresses(call.EffectiveArguments())
}

// Verdict says whether an address may be opened without asking.
type Verdict struct {
	// Asks says that a person has to be asked. Why says why, in Markdown, as the end of a sentence.
	Asks bool
	Why  string
	// Mail says that the address is a link of a mail, and stands nowhere else.
	Mail bool
}

// maxSameSite bounds the addresses of a turn that the model may compose for sites whose pages it has
// fetched, and maxSameSiteLetters the letters that it may choose in them.
const (
	maxSameSite        = 10
	maxSameSiteLetters = 64
)

// maxOpened bounds the addresses of others that a turn opens by itself.
const maxOpened = 30

// Judge judges an address that a call wants to fetch.
func (in *Input) Judge(a Address) Verdict {
	what, holds := in.HoldsOthers()
	if !holds {
		return Verdict{}
	}
	stands, mail := in.stands(a)
	switch {
	case stands && !mail && in.openedOfOthers(a) <= maxOpened:
		return Verdict{}
	case stands && !mail:
		return Verdict{Asks: true, Why: fmt.Sprintf("I have opened %d addresses of others for this message, and which of their links I choose can tell them something", maxOpened)}
	case mail:
		return Verdict{Asks: true, Mail: true, Why: "links of mails can sign in, confirm or unsubscribe by being opened"}
	case in.isSameSite(a):
		return Verdict{}
	}
	return Verdict{Asks: true, Why: "I put this together myself after I had read " + what + ", which can make me send something away with it"}
}

// openedOfOthers returns how often the turn opens addresses that the person did not write, with one that it
// wants to open. Each counts as often as it is opened, and a script as one: the choice and the order of links
// that an author prepared spell out as much as there are of them. It is 0 if the person wrote the address.
func (in *Input) openedOfOthers(a Address) (n int) {
	own := func(a Address) bool {
		for at := range in.Messages {
			w, ok := in.words(at)
			if ok && w.message.Role == agent.RoleUser && !w.others && slices.ContainsFunc(w.texts, a.standsIn) {
				return true
			}
		}
		return false
	}
	if own(a) {
		return 0
	}
	for at := in.turnStart(); at < len(in.Messages); at++ {
		for _, call := range in.Messages[at].Calls {
			if tool, known := in.Tool(call.EffectiveTool()); known && !tool.Fetches && tool.Origin == toolgroups.OriginComputed && in.mayStore(at, call) {
				n++
			}
			for _, other := range in.addressesOf(call) {
				if !own(other) {
					n++
				}
			}
		}
	}
	return n
}

// stands reports whether an address stands in a text that the model has read before it wrote the address
// itself. mail is set if only mails have it.
func (in *Input) stands(a Address) (stands, mail bool) {
	if a.standsIn(in.Prompt) {
		return true, false
	}
	var stored []agent.Call // by which the model may have put texts of its own where tools read them
	for at := range in.Messages {
		m := &in.Messages[at]
		if m.Role == agent.RoleAssistant && !stands && a.standsInCalls(m.Calls) {
			// What a tool says after the model has told it the address proves nothing: it may repeat it.
			return in.standsWithPeople(a, at), false
		}
		for _, call := range m.Calls {
			if in.mayStore(at, call) {
				stored = append(stored, call)
			}
		}
		w, ok := in.words(at)
		if !ok || w.computed || !slices.ContainsFunc(w.texts, a.standsIn) || in.mayRepeat(w, a, stored) {
			continue
		}
		if !w.mail {
			return true, false
		}
		stands, mail = true, true
	}
	return stands, mail
}

// mayStore reports whether a call may have put texts of the model where another tool reads them, such as into
// a file.
func (in *Input) mayStore(at int, call agent.Call) bool {
	tool, known := in.Tool(call.EffectiveTool())
	if !known {
		return true
	}
	// The pages that the program's own tools fetch are not the model's, and what outlives the turn is not read
	// as words of others.
	if tool.Effect == toolgroups.ReadOnly || tool.Fetches && tool.Group == "" || tool.Outlives {
		return false
	}
	for i := at + 1; i < len(in.Messages) && in.Messages[i].Role != agent.RoleAssistant; i++ {
		if m := &in.Messages[i]; m.Role == agent.RoleTool && m.CallID == call.ID {
			return tool.Origin != toolgroups.OriginComputed || m.Origin == toolgroups.OriginComputed // code that touched nothing
		}
	}
	return true
}

// mayRepeat reports whether the result of a tool may hold what the model has stored itself: in pieces, an
// address stands in no call.
func (in *Input) mayRepeat(w words, a Address, stored []agent.Call) bool {
	if w.message.Role != agent.RoleTool || len(stored) == 0 {
		return false
	}
	if slices.ContainsFunc(w.message.Sources, func(s toolgroups.Source) bool { return a.standsIn(s.URL) }) {
		return false
	}
	call, ok := in.callOf(w.at)
	if !ok {
		return true
	}
	tool, known := in.Tool(call.EffectiveTool())
	if known && tool.Fetches && tool.Group == "" {
		return false
	}
	var from []string // names of what was read
	eachString(call.EffectiveArguments(), func(text string, key bool) {
		if name := path.Base(strings.TrimSpace(text)); !key && text != "" {
			from = append(from, name)
		}
	})
	return slices.ContainsFunc(stored, func(c agent.Call) bool {
		by, known := in.Tool(c.EffectiveTool())
		switch {
		case c.ID == call.ID:
			return false
		case !known, by.Group != "" && by.Group == tool.Group:
			return true
		case by.Origin == toolgroups.OriginComputed: // code, which can write any file
			return len(from) > 0
		}
		same := false
		eachString(c.EffectiveArguments(), func(text string, key bool) {
			same = same || !key && slices.ContainsFunc(from, func(name string) bool { return strings.Contains(text, name) })
		})
		return same
	})
}

// standsWithPeople reports whether a person wrote an address in a message after an index.
func (in *Input) standsWithPeople(a Address, from int) bool {
	for at := from; at < len(in.Messages); at++ {
		w, ok := in.words(at)
		if ok && w.message.Role == agent.RoleUser && !w.computed && slices.ContainsFunc(w.texts, a.standsIn) {
			return true
		}
	}
	return false
}

// isSameSite reports whether an address may be opened because it belongs to the site of a page that was
// fetched. Such an address must consist of words of that site, and of a few plain words of its own, so
// that it cannot carry what the conversation knows.
func (in *Input) isSameSite(a Address) bool {
	start := in.turnStart()
	var composed []Address // by this turn, for sites that it knows
	for at := start; at < len(in.Messages); at++ {
		m := &in.Messages[at]
		if m.Role != agent.RoleAssistant {
			continue
		}
		for _, call := range m.Calls {
			for _, other := range in.addressesOf(call) {
				known, _ := in.stands(other)
				if !known && other != a && !slices.Contains(composed, other) {
					composed = append(composed, other)
				}
			}
		}
	}
	letters, ok := in.newLetters(a)
	if !ok || len(composed) >= maxSameSite {
		return false
	}
	for _, other := range composed {
		n, _ := in.newLetters(other)
		letters += n
	}
	return letters <= maxSameSiteLetters
}

// newLetters returns how many letters the model has chosen in an address: a word that stands on a page of
// its site counts as four at most, because the page offers a choice of words, and so does each mark that need
// not be there. ok is false if no page of the
// site was fetched, or if the address has more than plain words beside what stands there, or words that the
// conversation has from elsewhere.
func (in *Input) newLetters(a Address) (letters int, ok bool) {
	site, pages := a.site(), []Address(nil)
	var there, elsewhere, question strings.Builder
	for at := range in.Messages {
		w, read := in.words(at)
		if !read {
			continue
		}
		to := &elsewhere
		for _, page := range in.fetched(w) {
			if page.site() == site {
				pages, to = append(pages, page), &there
				there.WriteString(page.String() + "\n")
			}
		}
		if at >= in.turnStart() && w.message.Role == agent.RoleUser && !w.others {
			to = &question
		}
		for _, text := range w.texts {
			to.WriteString(text + "\n")
		}
	}
	elsewhere.WriteString(in.Prompt)
	if len(pages) == 0 || a.spelled != "" || a.unreadable != "" {
		return 0, false
	}
	onSite, other, asked := tokenSet(there.String()), tokenSet(elsewhere.String()), tokenSet(question.String())
	tokens, letters := a.choices(pages)
	for _, token := range tokens {
		switch low := strings.ToLower(token); {
		case onSite[token]:
			letters += min(len(token), 4)
		case !isPlainWord(token), len(token) > 3 && other[low] && !asked[low]:
			return 0, false
		default:
			letters += len(token)
		}
	}
	return letters, true
}

// isPublicName reports whether a host ends in a domain of the internet, unlike p.m. and 3.5. That may be one of a
// service under which anybody can have a name, such as github.io.
func isPublicName(host string) bool {
	suffix, icann := publicsuffix.PublicSuffix(host)
	if icann {
		return suffix != host
	}
	return strings.Contains(suffix, ".") // those that the list does not have are one label
}

// Hosts returns the hosts of the addresses in a text.
func Hosts(text string) []string {
	var hosts []string
	for _, field := range strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(" \t\r\n<>()[]{}\"'`|", r) }) {
		address, ok := Parse(strings.TrimRight(field, ".,;:!?"))
		if !ok && strings.Contains(field, ".") && !strings.Contains(field, "@") {
			address, ok = Parse("https://" + strings.TrimRight(field, ".,;:!?"))
			ok = ok && isPublicName(address.Hostname())
		}
		if ok && !slices.Contains(hosts, address.Hostname()) {
			hosts = append(hosts, address.Hostname())
		}
	}
	return hosts
}

// HostMatches reports whether a host is one of a list. An entry that begins with *. stands for the hosts
// below it.
func HostMatches(host string, list []string) bool {
	return slices.ContainsFunc(list, func(entry string) bool {
		entry = strings.ToLower(entry)
		below, wild := strings.CutPrefix(entry, "*")
		return host == entry || wild && strings.HasPrefix(below, ".") && strings.HasSuffix(host, below)
	})
}
