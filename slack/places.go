package slack

import (
	"cmp"
	"context"
	"net/url"
	"strings"
)

const (
	// channelsInfo is the method that looks up a channel, listGroups the one that lists the user groups.
	channelsInfo = "conversations.info"
	listGroups   = "usergroups.list"
	// groupPrefix begins the ids of user groups.
	groupPrefix = "S"
)

// namedPlace has the properties of a channel or a user group that the bot needs.
type namedPlace struct {
	name           string
	topic, purpose string // of a channel
	// public is set for a channel that all members of the workspace may read, user for the bot's direct chat with a
	// user. answered is set if Slack has told, be it that it tells the bot nothing.
	public, answered bool
	user             string
}

func isUserID(id string) bool { return strings.HasPrefix(id, "U") || strings.HasPrefix(id, "W") }

// fetchChannel caches the properties of a channel. Slack tells them only of public channels and of those
// that the bot is in.
func (p *platform) fetchChannel(ctx context.Context, id string) error {
	type text struct {
		Value string `json:"value"`
	}
	var answer struct {
		Channel struct {
			Name    string `json:"name"`
			Topic   text   `json:"topic"`
			Purpose text   `json:"purpose"`
			Channel bool   `json:"is_channel"`
			Private *bool  `json:"is_private"`
			Direct  bool   `json:"is_im"`
			User    string `json:"user"`
		} `json:"channel"`
	}
	_, err := p.api.query(ctx, channelsInfo, url.Values{"channel": {id}}, &answer)
	if err != nil {
		p.places.Put(id, namedPlace{answered: hasErrorCode(err, "channel_not_found")}, unknownNameAge)
		return err
	}
	c := answer.Channel
	place := namedPlace{name: c.Name, topic: c.Topic.Value, purpose: c.Purpose.Value, answered: true}
	place.public = c.Channel && c.Private != nil && !*c.Private
	if c.Direct {
		place.user = c.User
	}
	p.places.Put(id, place, personAge)
	return nil
}

// isDirectWith reports whether a conversation is the bot's direct chat with a user. Its id does not tell: that of a
// direct chat between two users, where the bot is not but a command can be given, looks the same.
func (p *platform) isDirectWith(ctx context.Context, id, user string) (bool, error) {
	if !isDirectID(id) {
		return false, nil
	}
	known, _ := p.places.Get(id)
	if !known.answered {
		ctx, cancel := context.WithTimeout(ctx, nameTimeout)
		defer cancel()
		err := p.fetchChannel(ctx, id)
		if known, _ = p.places.Get(id); !known.answered {
			return false, err
		}
	}
	return known.user != "" && known.user == user, nil
}

// fetchGroups caches the names of all user groups: Slack has no call for one of them.
func (p *platform) fetchGroups(ctx context.Context, id string) error {
	var answer struct {
		Groups []struct {
			ID     string `json:"id"`
			Handle string `json:"handle"`
			Name   string `json:"name"`
		} `json:"usergroups"`
	}
	_, err := p.api.query(ctx, listGroups, url.Values{}, &answer)
	for _, g := range answer.Groups {
		p.places.Put(g.ID, namedPlace{name: cmp.Or(g.Handle, g.Name)}, personAge)
	}
	if _, known := p.places.Get(id); !known {
		p.places.Put(id, namedPlace{}, unknownNameAge)
	}
	return err
}
