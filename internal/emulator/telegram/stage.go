package telegram

import "fmt"

// ChatSpec describes a chat to make.
type ChatSpec struct {
	// ID is the chat's id. 0 means the next free one; a private chat has its user's.
	ID int64 `json:"id"`
	// Kind is Private, Group or Supergroup.
	Kind string `json:"kind"`
	// Title is the name of a group.
	Title string `json:"title"`
	// User is the user of a private chat, and the creator of a group.
	User int64 `json:"user"`
	// Forum turns topics on: in a supergroup, or in a private chat whose owner
	// enabled them.
	Forum bool `json:"forum"`
	// Members and Admins are users of a group besides its creator.
	Members []int64 `json:"members"`
	Admins  []int64 `json:"admins"`
	// BotAdmin makes the bot an administrator.
	BotAdmin bool `json:"bot_admin"`
}

// stage is what a test has set up, rather than what somebody in a chat does: people, chats
// and their topics, an earlier server, a recording. The bot hears of the last alone.
type stage struct {
	world   *world
	updates *queue
}

// AddUser makes a person known. An ID of 0 gets the next free one.
func (st *stage) AddUser(u User) User {
	st.world.mu.Lock()
	defer st.world.mu.Unlock()
	return st.world.addUser(u)
}

// AddChat makes a chat and returns its id. The bot is in it, without an update.
func (st *stage) AddChat(spec ChatSpec) (int64, error) {
	st.world.mu.Lock()
	defer st.world.mu.Unlock()
	return st.world.addChat(spec)
}

// AddTopic opens a topic in a forum and returns its id.
func (st *stage) AddTopic(chatID int64, name string) (int64, error) {
	st.world.mu.Lock()
	defer st.world.mu.Unlock()
	c := st.world.chats[chatID]
	if c == nil || !c.forum {
		return 0, fmt.Errorf("telegram emulator: chat %d has no topics", chatID)
	}
	id := max(st.world.newID(c), generalTopic+1)
	c.next = max(c.next, id)
	c.topics[id] = name
	return id, nil
}

// DeleteTopic removes a topic: what is sent to it from now on is refused.
func (st *stage) DeleteTopic(chatID, topic int64) error {
	return st.topic(chatID, topic, func(c *chat) { delete(c.topics, topic) })
}

// CloseTopic has an administrator close a topic: only administrators write there.
func (st *stage) CloseTopic(chatID, topic int64) error {
	return st.topic(chatID, topic, func(c *chat) { c.closed[topic] = true })
}

func (st *stage) topic(chatID, topic int64, change func(*chat)) error {
	st.world.mu.Lock()
	defer st.world.mu.Unlock()
	c := st.world.chats[chatID]
	if c == nil || c.topics[topic] == "" {
		return fmt.Errorf("telegram emulator: no topic %d in chat %d", topic, chatID)
	}
	change(c)
	return nil
}

// SetMember changes the status of a person in a group, without an update.
func (st *stage) SetMember(chatID, userID int64, status string) error {
	st.world.mu.Lock()
	defer st.world.mu.Unlock()
	c, _, err := st.world.person(chatID, userID)
	if err != nil {
		return err
	}
	c.members[userID] = status
	return nil
}
