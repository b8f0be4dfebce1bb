// Package provenance says whose words a model has read, and where an address comes from that it wants to
// open. Text that a model reads can make it act, and an address can carry away what it knows: so a turn
// opens by itself what somebody else wrote down, and asks for what the model put together after it had
// read words of others.
package provenance

import (
	"bytes"
	"encoding/json"
	"fmt"
	"iter"
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"golang.org/x/net/idna"
	"golang.org/x/net/publicsuffix"

	"oneclaw/agent"
	"oneclaw/internal/wording"
	"oneclaw/toolgroups"
)

// Input is what a model was shown when it made its calls.
type Input struct {
	agent.Input
	// User is the person on whose behalf the calls run, as platform:id.
	User string
	// Tool returns the tool with a name.
	Tool func(name string) (toolgroups.Tool, bool)
	// HeldBefore says that the model was shown words of others in this turn before, which may be gone.
	HeldBefore bool
	// ScriptRead says that the script whose addresses are judged has read what others may have written.
	ScriptRead bool
}

// words are texts of one message that the model has read and did not write.
type words struct {
	texts  []string
	quoted string // the messages that a message quotes
	others bool   // not only the person's, or the program's
	mail   bool
	// computed texts may repeat what the model wrote, so that they vouch for no address.
	computed bool
	message  *agent.Message
	at       int
}

// holds reports whether an address stands in the words. What the bot itself said elsewhere proves nothing, and a program
// may have written what is quoted.
func (w words) holds(a Address) bool {
	return w.says(a) || a.standsIn(w.quoted) && !a.occursIn(w.message.QuotedOwn)
}

// says reports whether an address stands in the words themselves, and not in what they quote.
func (w words) says(a Address) bool {
	stands := a.standsIn
	switch {
	case w.message.Role == agent.RoleUser && w.others:
		stands = a.standsInPeoples
	case w.message.Role == agent.RoleUser:
		stands = a.standsInOwn
	}
	return slices.ContainsFunc(w.texts, stands)
}

// finds reports whether an address is of a search, whose sources repeat nothing.
func (w words) finds(a Address) bool {
	return slices.ContainsFunc(w.message.Sources, func(s toolgroups.Source) bool { return a.standsIn(s.URL) })
}

// words returns the texts of a message; false if the model or the program wrote it.
func (in *Input) words(at int) (w words, ok bool) {
	m := &in.Messages[at]
	w = words{message: m, at: at}
	switch m.Role {
	case agent.RoleUser:
		foreign := m.AuthorKey != "" && m.AuthorKey != in.User
		quoted := m.Origin == agent.OriginQuoted || m.Origin == toolgroups.OriginComputed || m.Origin == "" && m.QuotedText() != "" || m.Overheard != ""
		w.texts, w.others, w.computed = []string{m.Text}, foreign || quoted, m.Origin == toolgroups.OriginComputed
		if m.Origin != toolgroups.OriginOwn {
			w.quoted = m.QuotedText()
		}
	case agent.RoleTool:
		if m.Origin == toolgroups.OriginOwn {
			return w, false
		}
		w.texts, w.others = []string{m.Text}, true
		w.mail = m.Origin == toolgroups.OriginMail || in.isReceived(m, func(f toolgroups.File) bool { return strings.EqualFold(path.Ext(f.Path), ".eml") })
		w.computed = m.Status != agent.StatusOK || in.isComputed(at)
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

// isComputed reports whether a result may hold what the model wrote: unless it read a file just as somebody
// sent it to this conversation, if its tool reads files or runs code. The file has its own name still, which stands in
// the result: that of a copy is the model's.
func (in *Input) isComputed(at int) bool {
	m := &in.Messages[at]
	tool, _ := in.Tool(m.Tool)
	if m.Origin != toolgroups.OriginComputed && tool.Origin != toolgroups.OriginComputed {
		return false
	}
	call, _ := in.callOf(at)
	return !in.isReceived(m, func(f toolgroups.File) (named bool) {
		arguments := toolgroups.GivenTo(tool, json.RawMessage(call.EffectiveArguments()))
		eachString(string(arguments), func(text string) { named = named || path.Clean(text) == f.Path })
		return named
	})
}

// isReceived reports whether a result is of a file just as somebody sent it to this conversation, and such a one.
func (in *Input) isReceived(m *agent.Message, such func(toolgroups.File) bool) bool {
	if m.Read == "" {
		return false // most results, for which the conversation is not walked
	}
	for f := range in.received() {
		if f.Sum == m.Read && such(f) {
			return true
		}
	}
	return false
}

// Received returns the SHA-256 in hex of the files that people have sent to this conversation.
func (in *Input) Received() (sums []string) {
	for f := range in.received() {
		sums = append(sums, f.Sum)
	}
	return sums
}

// received yields the files that people have sent to this conversation, and of which it is known what they hold.
func (in *Input) received() iter.Seq[toolgroups.File] {
	return func(yield func(toolgroups.File) bool) {
		for i := range in.Messages {
			m := &in.Messages[i]
			for _, f := range m.Files {
				if m.Role == agent.RoleUser && f.Sum != "" && !yield(f) {
					return
				}
			}
		}
	}
}

// HoldsOthers reports whether anything in the input holds words of others, or was said after such words, and
// names the newest of it in Markdown.
func (in *Input) HoldsOthers() (what string, ok bool) {
	what, ok = in.newest(0)
	switch {
	case ok:
	case in.ScriptRead:
		return "what the script reads", true
	case in.PromptOthers, slices.ContainsFunc(in.Messages, recallsOthers):
		return "what I remember", true
	case in.ToolsOfOthers:
		return "what servers say of their tools", true
	case in.Incomplete:
		return "what was said long ago in this conversation", true
	case in.HeldBefore, slices.ContainsFunc(in.Messages, func(m agent.Message) bool { return m.Role == agent.RoleAssistant && m.Origin != "" }):
		// What was forgotten since lives on in what the model said.
		return "words of others that are no longer here", true
	}
	return what, ok
}

func recallsOthers(m agent.Message) bool { return m.Recalled != "" && !m.RecalledOwn }

// ReadOthers reports whether the turn has read words of others, or one that it goes on with: one without an answer in
// front of it. The caller knows what one had read that it tries again. Of a long turn that
// waited only the question and the end may be left. What is remembered of others counts, too, unless the person was shown
// it when it was saved.
func (in *Input) ReadOthers() bool {
	start := in.turnStart()
	for start > 0 && !in.Messages[start-1].IsAnswer() {
		start--
	}
	if first := slices.IndexFunc(in.Messages, func(m agent.Message) bool { return m.Role != agent.RoleSummary }); in.Incomplete && start <= first {
		return true
	}
	_, ok := in.newest(start)
	return ok || in.ToolsOfOthers || in.PromptOthers && !in.PromptShown ||
		slices.ContainsFunc(in.Messages[start:], func(m agent.Message) bool { return m.ReadOthers || recallsOthers(m) && !m.RecalledShown })
}

func (in *Input) newest(from int) (string, bool) {
	for at := len(in.Messages) - 1; at >= from; at-- {
		if w, ok := in.words(at); ok && w.others {
			return in.describe(w), true
		}
	}
	return "", false
}

// ReadAccount reports whether a tool of a group has read its person's account in this turn.
func (in *Input) ReadAccount(group string) bool {
	return slices.ContainsFunc(in.Messages[in.turnStart():], func(m agent.Message) bool {
		tool, _ := in.Tool(m.Tool)
		return m.Role == agent.RoleTool && m.Status == agent.StatusOK && tool.Personal && tool.Group == group && tool.Effect == toolgroups.ReadOnly
	})
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

// replyBefore returns the index of the newest reply in front of a message, -1 if there is none.
func (in *Input) replyBefore(at int) int {
	for at--; at >= 0 && in.Messages[at].Role != agent.RoleAssistant; at-- {
	}
	return at
}

// Reply returns the calls of the newest reply.
func (in *Input) Reply() []agent.Call {
	if at := in.replyBefore(len(in.Messages)); at >= 0 {
		return in.Messages[at].Calls
	}
	return nil
}

// describe names the source of words in Markdown.
func (in *Input) describe(w words) string {
	switch m := w.message; {
	case m.Role == agent.RoleSummary:
		return "what was said before in this conversation"
	case m.Role == agent.RoleUser && m.AuthorKey != "" && m.AuthorKey != in.User:
		return "a message of somebody else"
	case m.Role == agent.RoleUser && m.Origin == toolgroups.OriginComputed:
		return "what I told a task, or what it answered"
	case m.Role == agent.RoleUser && len(m.Files) > 0 && m.QuotedText() == "":
		return "an attached file"
	case m.Role == agent.RoleUser:
		return "what others wrote in the message"
	case w.mail:
		return "mails"
	}
	for _, address := range in.fetched(w) { // its author chose the rest of it
		return "a page of " + wording.InlineCode(address.scheme+"://"+wording.Clip(address.site(), maxSite))
	}
	return "a result of " + wording.InlineCode(w.message.Tool)
}

// maxSite bounds the site of a page in a sentence, in characters.
const maxSite = 80

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

// addressesOf returns the address that a call would fetch. Whose page a result is cannot be told if the call has
// several, or if its tool is external.
func (in *Input) addressesOf(call agent.Call) []Address {
	tool, ok := in.Tool(call.EffectiveTool())
	if !ok || !tool.Fetches || tool.External {
		return nil
	}
	all := AddressesOf(tool, call.EffectiveArguments())
	if len(all) > 1 {
		return nil
	}
	return all
}

// Verdict says whether an address may be opened without asking.
type Verdict struct {
	// Asks says that a person has to be asked. Why says why, in Markdown, as the end of a sentence.
	Asks bool
	Why  string
	// Mail says that the address is a link of a mail, and stands nowhere else.
	Mail bool
	// Cost is what opening the address tells its author, if nobody is asked.
	Cost agent.Spent
}

// MaxComposed bounds the addresses of a turn that the model may compose for sites whose pages it has fetched, together
// with those that a lasting approval lets it open, and maxSameSiteLetters the letters that it may choose in the former.
const (
	MaxComposed        = 10
	maxSameSiteLetters = 64
)

// maxOpened bounds the addresses that a turn opens by itself: the choice and the order of links that an author
// prepared spell out as much as there are of them, and so do the ways in which one is opened.
const maxOpened = 30

// Judge judges an address that a call wants to fetch, in a turn that has spent something already.
func (in *Input) Judge(a Address, spent agent.Spent) Verdict {
	what, holds := in.HoldsOthers()
	if !holds {
		return Verdict{}
	}
	if at := in.gatedAt(a.isAlike); at >= 0 && !in.wroteSince(a, at) {
		return Verdict{Asks: true, Why: "a call with this address was not allowed before"}
	}
	cost := agent.Spent{Opened: 1}
	switch stands, mail := in.stands(a); {
	case mail:
		return Verdict{Asks: true, Mail: true, Why: "links of mails can sign in, confirm or unsubscribe by being opened"}
	case !stands:
		letters, ok := in.newLetters(a)
		gated := in.gatedAt(func(o Address) bool { return o.site() == a.site() }) >= 0
		if !ok || gated || spent.Composed >= MaxComposed || spent.Letters+letters > maxSameSiteLetters {
			return Verdict{Asks: true, Why: "I put this together myself after I had read " + what + ", which can make me send something away with it"}
		}
		cost.Composed, cost.Letters = 1, letters
	}
	if spent.Opened >= maxOpened {
		return Verdict{Asks: true, Why: fmt.Sprintf("I have opened %d addresses for this message, and which of their links I choose can tell others something", maxOpened)}
	}
	return Verdict{Cost: cost}
}

// stands reports whether an address stands in a text that the model has read before it wrote the address
// itself. mail is set if only mails have it.
func (in *Input) stands(a Address) (stands, mail bool) {
	if a.standsInPeoples(in.Prompt) && !slices.ContainsFunc(in.PromptOutside, a.occursIn) {
		return true, false
	}
	var stored []storing
	if in.Incomplete {
		stored = append(stored, storing{})
	}
	for at := range in.Messages {
		m := &in.Messages[at]
		if m.Role == agent.RoleAssistant && (a.isSaidIn(m.Text) || slices.ContainsFunc(m.Calls, func(c agent.Call) bool { return in.wrote(a, c) })) {
			// What a tool says after the model has told it the address proves nothing: it may repeat it, or read it in
			// the chat where the model has said it.
			people, found := in.standsLater(a, at)
			return mail || people || found, mail && !people
		}
		stored = in.appendStored(stored, at)
		w, ok := in.words(at)
		if !ok || w.computed || !w.holds(a) || in.mayRepeat(w, a, stored) || in.mayEcho(w, a) {
			continue
		}
		if !w.mail {
			return true, false
		}
		mail = true
	}
	return mail, mail
}

// mayStore reports whether a tool may put its arguments where a tool reads them: at its service, or in the workspace. A
// server that lies about that repeats only what it was told itself.
func mayStore(tool toolgroups.Tool) bool {
	return (tool.Group != "" || mayWriteFiles(tool)) && tool.Effect != toolgroups.ReadOnly && !tool.SaysItReads && (!tool.Outlives || tool.Personal)
}

// mayWriteFiles reports whether a tool that stores something may do so in the workspace, as those for documents and a
// person's own do.
func mayWriteFiles(tool toolgroups.Tool) bool {
	return !tool.External && !tool.Personal && (!tool.Fetches || tool.Origin == toolgroups.OriginComputed)
}

// gatedAt returns the place of the newest earlier call that would have fetched such an address and was not allowed;
// negative for none.
func (in *Input) gatedAt(such func(Address) bool) int {
	for at := in.replyBefore(len(in.Messages)) - 1; at >= 0; at-- {
		calls := in.Messages[at].Gated // of what a summary stands for
		if call, ok := in.callOf(at); ok && in.Messages[at].Code == agent.CodeGated {
			calls = []agent.Call{call}
		}
		if slices.ContainsFunc(calls, func(call agent.Call) bool {
			tool, _ := in.Tool(call.EffectiveTool())
			return tool.Fetches && (!tool.External || tool.Effect == toolgroups.ReadOnly) && slices.ContainsFunc(AddressesOf(tool, call.EffectiveArguments()), such)
		}) {
			return at
		}
	}
	return -1
}

// wroteSince reports whether the person wrote an address in a message from an index on.
func (in *Input) wroteSince(a Address, from int) bool {
	for at := from; at < len(in.Messages); at++ {
		if w, ok := in.words(at); ok && w.message.Role == agent.RoleUser && !w.others && w.holds(a) {
			return true
		}
	}
	return false
}

// storing is a call by which the model may have put texts of its own where a tool reads them. Its tool has no name
// if it is unknown, as are the calls that a summary stands for.
type storing struct {
	at   int
	id   string
	tool toolgroups.Tool
}

// appendStored appends the calls of a message by which the model may have stored something.
func (in *Input) appendStored(stored []storing, at int) []storing {
	m := &in.Messages[at]
	for _, call := range m.Calls {
		if tool, known := in.Tool(call.EffectiveTool()); !known || mayStore(tool) {
			stored = append(stored, storing{at, call.ID, tool})
		}
	}
	if m.Role == agent.RoleSummary {
		stored = append(stored, storing{})
	}
	return stored
}

// wrote reports whether a call spells an address in its arguments, other than as the host of one that it
// fetches.
func (in *Input) wrote(a Address, call agent.Call) (wrote bool) {
	tool, _ := in.Tool(call.EffectiveTool())
	eachString(call.EffectiveArguments(), func(text string) {
		fetched, ok := complete(text)
		switch {
		case !ok || !tool.Fetches || strings.ContainsFunc(strings.TrimSpace(text), unicode.IsSpace): // with more behind it
			wrote = wrote || a.occursIn(text)
		default:
			wrote = wrote || fetched == a || a.occursIn(fetched.path+fetched.query+fetched.fragment+fetched.unreadable)
		}
	})
	return wrote
}

// mayRepeat reports whether the result of a tool may hold what calls have stored at its service, its own too unless the
// tool is external, whose calls that store something ask, or that of a server what they have stored in the workspace: in
// pieces, an address stands in no call. The program's own tools say that what they read there is computed.
func (in *Input) mayRepeat(w words, a Address, stored []storing) bool {
	tool, known := in.Tool(w.message.Tool)
	if w.message.Role != agent.RoleTool || known && (tool.Group == "" || tool.Origin == toolgroups.OriginComputed) || w.finds(a) {
		return false
	}
	reply := in.replyBefore(w.at)
	return slices.ContainsFunc(stored, func(s storing) bool {
		own := s.at == reply && s.id == w.message.CallID && s.tool.External
		return !own && (!known || s.tool.Name == "" || s.tool.Group == tool.Group || tool.External && mayWriteFiles(s.tool) || s.tool.Personal && tool.Personal)
	})
}

// mayEcho reports whether the result of a tool may have put an address together of what its own call told it. Addresses
// that the program's own tools fetch are left out: the links of a page go on from its own.
func (in *Input) mayEcho(w words, a Address) bool {
	if w.message.Role != agent.RoleTool || w.finds(a) {
		return false
	}
	call, _ := in.callOf(w.at)
	tool, _ := in.Tool(call.EffectiveTool())
	var told, asWritten []string
	collect := func(text string) {
		if _, ok := complete(text); (!ok || !tool.Fetches || tool.External) && !slices.Contains(asWritten, text) {
			told = append(told, text)
		}
	}
	arguments := call.EffectiveArguments()
	eachString(arguments, collect)
	asWritten = told
	eachString(string(toolgroups.GivenTo(tool, json.RawMessage(arguments))), collect)
	values := slices.Clone(told)
	for _, word := range serversWords(tool, arguments) {
		if at := slices.Index(values, word); at >= 0 {
			values = slices.Delete(values, at, at+1)
		}
	}
	return a.isAtNamed(values) || a.isMadeOf(told)
}

// serversWords returns the words among the arguments of a call that are the server's own: the names of its parameters, and
// what the schema of each says that it may be. Within a list or an object, even such words are a message of any length.
func serversWords(tool toolgroups.Tool, arguments string) (words []string) {
	var schema struct {
		Properties map[string]json.RawMessage
	}
	_ = json.Unmarshal(tool.Parameters, &schema)
	value, _ := decodeArguments(arguments)
	given, _ := value.(map[string]any)
	for name, v := range given {
		property, isKnown := schema.Properties[name]
		if !isKnown {
			continue
		}
		words = append(words, name)
		if text, isText := leaf(v); isText && (v != text || bytes.Contains(property, []byte(strconv.Quote(text)))) {
			words = append(words, text)
		}
	}
	return words
}

// standsLater reports whether a person wrote an address in a message from an index on, and whether a search found it. What a
// person quotes may repeat the model.
func (in *Input) standsLater(a Address, from int) (people, found bool) {
	for at := from; at < len(in.Messages); at++ {
		w, ok := in.words(at)
		if !ok || w.computed {
			continue
		}
		people = people || w.message.Role == agent.RoleUser && w.says(a)
		found = found || w.finds(a)
	}
	return people, found
}

// newLetters returns how many letters the model has chosen in an address: a word that stands on a page of
// its site counts as four at most, because the page offers a choice of words, and so does each mark that need
// not be there. ok is false if no page of the
// site was fetched, or if the address has more than plain words beside what stands there, or words that the
// conversation has from elsewhere.
func (in *Input) newLetters(a Address) (letters int, ok bool) {
	if a.user != "" || a.spelled != "" || a.rewritten || a.unreadable != "" {
		return 0, false
	}
	site := a.site()
	var pages []Address
	var there, elsewhere, question []string
	for at := range max(in.replyBefore(len(in.Messages)), 0) { // other calls of the reply may have run since
		w, read := in.words(at)
		if !read {
			continue
		}
		to := &elsewhere
		for _, page := range in.fetched(w) {
			if page.site() == site {
				pages, to = append(pages, page), &there
				there = append(there, page.String())
			}
		}
		if at >= in.turnStart() && w.message.Role == agent.RoleUser && !w.others {
			to = &question
		}
		*to = append(append(*to, w.texts...), w.quoted)
		elsewhere = append(elsewhere, w.message.Recalled)
	}
	if len(pages) == 0 {
		return 0, false
	}
	elsewhere = append(elsewhere, in.Prompt)
	tokens, letters := a.choices(pages)
	if len(tokens) > maxSameSiteLetters {
		return 0, false
	}
	for _, token := range tokens {
		switch low := strings.ToLower(token); {
		case hasToken(there, token, token == low):
			letters += min(len(token), 4)
		case !isPlainWord(token), len(token) > 3 && hasToken(elsewhere, low, true) && !hasToken(question, low, true):
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
	host = asciiHost(host)
	suffix, icann := publicsuffix.PublicSuffix(host)
	if icann {
		return suffix != host
	}
	return strings.Contains(suffix, ".") // those that the list does not have are one label
}

// asciiHost returns a host as it is looked up: in lower case, with its name in other scripts spelled in ASCII.
func asciiHost(host string) string {
	host, _ = idna.Lookup.ToASCII(host) // which also returns what it finds fault with
	return strings.TrimSuffix(host, ".")
}

// Hosts returns the hosts of the addresses in a text, also of those that are written for others to complete, such as
// https://example.com/%s. Those without a scheme have a slash: names of files can look like hosts. None has a star, which
// would stand for more hosts than a person has named.
func Hosts(text string) []string {
	var hosts []string
	for _, field := range strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(" \t\r\n<>()[]{}\"'`|", r) }) {
		address, ok := Parse(strings.TrimRight(field, ".,;:!?"))
		if !ok && strings.Contains(field, "/") && strings.Contains(field, ".") && !strings.Contains(field, "@") {
			address, ok = Parse("https://" + strings.TrimRight(field, ".,;:!?"))
			ok = ok && isPublicName(address.Hostname())
		}
		if ok && address.unreadable != "" {
			scheme := specialScheme.FindString(address.unreadable)
			address, ok = Parse(scheme + hostWithin(strings.TrimPrefix(address.unreadable, scheme)))
		}
		host := address.Hostname()
		if ok && host != "" && !strings.Contains(host, "*") && !slices.Contains(hosts, host) {
			hosts = append(hosts, host)
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
