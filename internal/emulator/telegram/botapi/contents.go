package botapi

// Contents are what a message has instead of words or a file: one of them (core.telegram.org/bots/api#message).
type Contents struct {
	Location *Location `json:"location,omitempty"`
	Venue    *Venue    `json:"venue,omitempty"`
	Contact  *Contact  `json:"contact,omitempty"`
	Poll     *Poll     `json:"poll,omitempty"`
	Sticker  *Sticker  `json:"sticker,omitempty"`
}

// Location is a point on the map (core.telegram.org/bots/api#location).
type Location struct {
	Latitude  float64 `json:"latitude"`
	Longitude float64 `json:"longitude"`
}

// Venue is a place (core.telegram.org/bots/api#venue). Its message has the location as well.
type Venue struct {
	Location Location `json:"location"`
	Title    string   `json:"title"`
	Address  string   `json:"address"`
}

// Contact is a person in the address book of the sender (core.telegram.org/bots/api#contact).
type Contact struct {
	PhoneNumber string `json:"phone_number"`
	FirstName   string `json:"first_name"`
	LastName    string `json:"last_name,omitempty"`
}

// Poll is a poll (core.telegram.org/bots/api#poll).
type Poll struct {
	ID                    string       `json:"id"`
	Question              string       `json:"question"`
	Options               []PollOption `json:"options"`
	TotalVoterCount       int          `json:"total_voter_count"`
	IsClosed              bool         `json:"is_closed"`
	IsAnonymous           bool         `json:"is_anonymous"`
	Type                  string       `json:"type"`
	AllowsMultipleAnswers bool         `json:"allows_multiple_answers"`
	AllowsRevoting        bool         `json:"allows_revoting"`
	MembersOnly           bool         `json:"members_only"`
}

// PollOption is an answer of a poll (core.telegram.org/bots/api#polloption).
type PollOption struct {
	PersistentID string `json:"persistent_id"`
	Text         string `json:"text"`
	VoterCount   int    `json:"voter_count"`
}

// Sticker is a sticker (core.telegram.org/bots/api#sticker).
type Sticker struct {
	FileID       string `json:"file_id"`
	FileUniqueID string `json:"file_unique_id"`
	Type         string `json:"type"`
	Width        int    `json:"width"`
	Height       int    `json:"height"`
	IsAnimated   bool   `json:"is_animated"`
	IsVideo      bool   `json:"is_video"`
	Emoji        string `json:"emoji,omitempty"`
}
