package slack

import (
	"cmp"
	"context"
	"errors"
	"net/url"
	"strings"
	"time"

	"oneclaw/bridge/chats"
)

// usersInfo is the method that looks up a user.
const usersInfo = "users.info"

const (
	// nameTimeout is how long the acceptance of a message may wait for names.
	nameTimeout = time.Second
	// personAge is how long a name is cached, adminAge how long a role is.
	personAge = time.Hour
	adminAge  = time.Minute
	// unknownNameAge is how long an unknown name is not looked up again.
	unknownNameAge = time.Minute
)

// person has the properties of a user that the bot needs.
type person struct {
	name      string
	admin     bool
	team      string // the workspace
	zone      string // the IANA name of the time zone
	fetchedAt time.Time
}

func (p *platform) fetchPerson(ctx context.Context, id string) (person, error) {
	var answer struct {
		User struct {
			ID             string `json:"id"`
			TeamID         string `json:"team_id"`
			Name           string `json:"name"`
			RealName       string `json:"real_name"`
			Deleted        bool   `json:"deleted"`
			IsAdmin        bool   `json:"is_admin"`
			IsOwner        bool   `json:"is_owner"`
			IsPrimaryOwner bool   `json:"is_primary_owner"`
			IsBot          bool   `json:"is_bot"`
			IsRestricted   bool   `json:"is_restricted"`
			IsStranger     bool   `json:"is_stranger"`
			TZ             string `json:"tz"`
			Profile        struct {
				RealName    string `json:"real_name"`
				DisplayName string `json:"display_name"`
			} `json:"profile"`
		} `json:"user"`
	}
	_, err := p.api.query(ctx, usersInfo, url.Values{"user": {id}}, &answer)
	u := &answer.User
	if err == nil && u.ID != id {
		err = errors.New("slack: users.info: the response is about another user")
	}
	if err != nil {
		return person{}, err
	}
	found := person{
		name:      strings.Join(strings.Fields(cmp.Or(u.Profile.DisplayName, u.Profile.RealName, u.RealName, u.Name)), " "),
		admin:     (u.IsAdmin || u.IsOwner || u.IsPrimaryOwner) && !u.Deleted && !u.IsBot && !u.IsRestricted && !u.IsStranger,
		team:      u.TeamID,
		zone:      u.TZ,
		fetchedAt: time.Now(),
	}
	p.people.Put(id, found, personAge)
	return found, nil
}

// nameLookup returns the name of a user, a channel or a user group, or the id if the name is not available
// soon.
type nameLookup func(id string) string

// nameLookup returns a function that waits for at most nameTimeout in all its calls.
func (p *platform) nameLookup(ctx context.Context) nameLookup {
	left := nameTimeout
	return func(id string) string {
		begin := time.Now()
		defer func() { left -= time.Since(begin) }()
		return p.lookUpName(ctx, id, left)
	}
}

// knownName returns the cached name of a user, a channel or a user group.
func (p *platform) knownName(id string) string {
	if isUserID(id) {
		known, _ := p.people.Get(id)
		return cmp.Or(known.name, id)
	}
	known, _ := p.places.Get(id)
	return cmp.Or(known.name, id)
}

func (p *platform) lookUpName(ctx context.Context, id string, within time.Duration) string {
	method, known := usersInfo, false
	switch {
	case isUserID(id):
		_, known = p.people.Get(id)
	case strings.HasPrefix(id, groupPrefix):
		method = listGroups
		_, known = p.places.Get(id)
	default:
		method = channelsInfo
		_, known = p.places.Get(id)
	}
	if known || within <= 0 || p.api.pacer.Busy(apiCall{method: method}.key()) {
		return p.knownName(id)
	}
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	var err error
	switch method {
	case usersInfo:
		if _, err = p.fetchPerson(ctx, id); err != nil {
			p.people.Put(id, person{}, unknownNameAge)
		}
	case listGroups:
		err = p.fetchGroups(ctx, id)
	default:
		err = p.fetchChannel(ctx, id)
	}
	if err != nil {
		p.log.Debug("name not known", "id", id, "err", err)
	}
	return p.knownName(id)
}

// lookUpTeam returns the workspace of a user for an event that does not name it, or "" if it cannot be
// found soon. In a channel that is not shared it is the bot's, which "" stands for as well.
func (p *platform) lookUpTeam(ctx context.Context, id string, shared bool) string {
	if !shared || id == "" {
		return ""
	}
	p.lookUpName(ctx, id, nameTimeout)
	known, _ := p.people.Get(id)
	return known.team
}

// IsAdmin reports whether the user is an administrator or owner of the workspace. Users from another
// workspace are not, whatever their role there.
func (p *platform) IsAdmin(ctx context.Context, _ chats.Chat, user string) (bool, error) {
	if _, outsider := slackID(user); outsider {
		return false, nil
	}
	if known, ok := p.people.Get(user); ok && time.Since(known.fetchedAt) < adminAge {
		return known.admin, nil
	}
	found, err := p.fetchPerson(ctx, user)
	return found.admin, err
}
