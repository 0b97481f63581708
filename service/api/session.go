package api

import "time"

// Session says who is signed in on a page of the desk.
type Session struct {
	Required   bool       `json:"required" doc:"whether the service asks for keys"`
	Key        string     `json:"key,omitzero" doc:"the name of the key; left out while nobody is signed in"`
	Scopes     []string   `json:"scopes" doc:"what the page may do"`
	Placements []string   `json:"placements,omitempty" doc:"the placements that the key is limited to; left out for all"`
	Expires    *time.Time `json:"expires,omitempty" doc:"when the session ends"`
}

// SignIn asks for a session.
type SignIn struct {
	Key string `json:"key" doc:"an API key"`
}

// KeyList lists the service's keys, without tokens: the service stores only their hashes.
type KeyList struct {
	Required bool       `json:"required" doc:"whether the service asks for keys"`
	Keys     []KeyEntry `json:"keys"`
}

// KeyEntry is a key of a [KeyList].
type KeyEntry struct {
	Name       string   `json:"name"`
	Scopes     []string `json:"scopes"`
	Placements []string `json:"placements,omitempty" doc:"that it is limited to; left out for all"`
	Sessions   int      `json:"sessions" doc:"pages of the desk that are signed in with it"`
}
