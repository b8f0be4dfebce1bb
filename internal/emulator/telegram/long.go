package telegram

import "strings"

// SayLong has a person send a text of any length: the client cuts it into messages of at most
// 4,096 characters, each at the last space that fits, as the one for Android does
// (ChatActivityEnterView.processSendingText).
func (s *Server) SayLong(chatID, userID int64, text string, opts *SayOptions) ([]Sent, error) {
	const most = 4096
	var all []Sent
	for rest := []rune(text); len(rest) > 0; {
		n := min(most, len(rest))
		for k := n; n < len(rest) && k > n-300; k-- {
			if rest[k-1] == ' ' {
				n = k
				break
			}
		}
		sent, err := s.Say(chatID, userID, strings.TrimSpace(string(rest[:n])), opts)
		if err != nil {
			return all, err
		}
		all, rest = append(all, sent), rest[n:]
	}
	return all, nil
}
