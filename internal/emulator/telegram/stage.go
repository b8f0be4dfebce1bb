package telegram

import "fmt"

// ChatSpec describes a new chat.
type ChatSpec struct {
	// ID is the id of the chat. 0 means the next free one; a private chat has the id of its user.
	ID int64 `json:"id"`
	// Kind is Private, Group or Supergroup.
	Kind string `json:"kind"`
	// Title is the name of a group.
	Title string `json:"title"`
	// User is the user of a private chat, and the creator of a group.
	User int64 `json:"user"`
	// Forum enables topics, in a supergroup or in a private chat whose owner enabled them.
	Forum bool `json:"forum"`
	// DirectMessages makes a supergroup the direct messages of a channel: each member writes in their own topic,
	// whose id is that of the member, and administrators in the name of the channel.
	DirectMessages bool `json:"direct_messages"`
	// Members and Admins are users of a group besides its creator.
	Members []int64 `json:"members"`
	Admins  []int64 `json:"admins"`
	// BotAdmin makes the bot an administrator.
	BotAdmin bool `json:"bot_admin"`
}

// setup prepares tests: users, chats and their topics, the messages of an earlier server, a
// recording. Only a recording sends updates to the bot.
type setup struct {
	world   *world
	updates *queue
}

// AddUser adds a user. An ID of 0 gets the next free one.
func (st *setup) AddUser(u User) User {
	st.world.mu.Lock()
	defer st.world.mu.Unlock()
	return st.world.addUser(u)
}

// AddChat adds a chat and returns its id. The bot is a member, without an update.
func (st *setup) AddChat(spec ChatSpec) (int64, error) {
	st.world.mu.Lock()
	defer st.world.mu.Unlock()
	return st.world.addChat(spec)
}

// AddTopic opens a topic in a forum and returns its id.
func (st *setup) AddTopic(chatID int64, name string) (int64, error) {
	st.world.mu.Lock()
	defer st.world.mu.Unlock()
	c := st.world.chats[chatID]
	if c == nil || !c.forum {
		return 0, fmt.Errorf("telegram emulator: chat %d has no topics", chatID)
	}
	id := max(st.world.newMessageID(c), generalTopic+1)
	c.lastID = max(c.lastID, id)
	c.topics[id] = name
	return id, nil
}

// DeleteTopic deletes a topic. Messages to it are refused from then on.
func (st *setup) DeleteTopic(chatID, topic int64) error {
	return st.changeTopic(chatID, topic, func(c *chat) { delete(c.topics, topic) })
}

// CloseTopic closes a topic, as an administrator. Only administrators can write to it.
func (st *setup) CloseTopic(chatID, topic int64) error {
	return st.changeTopic(chatID, topic, func(c *chat) { c.closed[topic] = true })
}

func (st *setup) changeTopic(chatID, topic int64, change func(*chat)) error {
	st.world.mu.Lock()
	defer st.world.mu.Unlock()
	c := st.world.chats[chatID]
	if c == nil || c.topics[topic] == "" {
		return fmt.Errorf("telegram emulator: no topic %d in chat %d", topic, chatID)
	}
	change(c)
	return nil
}
