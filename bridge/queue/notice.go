package queue

import (
	"hash/fnv"
	"strings"

	"oneclaw/bridge/chats"
	"oneclaw/storage"
)

// A process that accepts a job for a chat of another process writes a notice in the same write, under
// the share of the chat. So the owner watches only the notices of its shares, not all changes of jobs. A
// notice has no other meaning: the owner reads the jobs of the chat, and deletes the notice.

// NoticePrefix begins the keys of notices; share and key of the job follow. With the share, it is not
// longer than [OpenPrefix], so that each job can have a notice.
const NoticePrefix = "new/"

// NewNotice returns the operation that writes the notice of a job with a key, whose message was sent in
// the chat origin. The share is that of origin, even if that chat has moved, because the writer may not
// know.
func NewNotice(origin chats.Chat, key string) storage.Op {
	return storage.Put(noticePrefixOf(shareOf(origin))+key, []byte(origin.Thread), storage.Any)
}

// PassOn returns the operation that passes a notice on if the chat has moved, to the share of the chat's
// new id. It returns false if that is the same share, or if the notice was passed on before.
func (o *LeaseHolder) PassOn(notice storage.Entry, key string, origin chats.Chat) (op storage.Op, ok bool) {
	from, to := shareOf(origin), o.leaseOf(origin)
	return storage.Put(noticePrefixOf(to)+key, notice.Value, storage.Any), to != from && notice.Key == noticePrefixOf(from)+key
}

// NoticePrefixes returns the prefixes of the notices for the shares that this process holds.
func (o *LeaseHolder) NoticePrefixes() (all []string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for lease := range o.tokens {
		if strings.HasPrefix(lease, sharePrefix) {
			all = append(all, noticePrefixOf(lease))
		}
	}
	return all
}

// ParseNotice returns the key of the job that a notice is about, and the chat in which its message was
// sent.
func ParseNotice(notice storage.Entry) (key string, origin chats.Chat, ok bool) {
	rest, ok := strings.CutPrefix(notice.Key, NoticePrefix)
	_, key, _ = strings.Cut(rest, "/")
	m, valid := MessageOf(OpenPrefix+key, OpenPrefix)
	m.Chat.Thread = string(notice.Value)
	return key, m.Chat, ok && valid
}

func noticePrefixOf(share string) string {
	return NoticePrefix + strings.TrimPrefix(share, sharePrefix) + "/"
}

// shareOf returns the share of the chats with an id.
func shareOf(chat chats.Chat) string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(chat.WithoutThread().String())) // never fails
	return shareLease(h.Sum32())
}
