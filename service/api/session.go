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
	Public     bool     `json:"public,omitzero" doc:"whether everybody may read it, for example in a web page, so that it must not send money"`
	Sessions   int      `json:"sessions" doc:"pages of the desk that are signed in with it"`
}

// Process is the answer of /readyz: a process's part in the log that it shares with others.
type Process struct {
	Role       string  `json:"role,omitzero"`        // "leader" or "follower"; "" without a log
	Leader     string  `json:"leader,omitzero"`      // a follower's: the process that writes the log, or "" if unknown
	LagSeconds float64 `json:"lag_seconds,omitzero"` // a follower's: time since its state included all log entries
	Entry      uint64  `json:"entry"`                // the last one that is part of the state
	Epoch      uint64  `json:"epoch,omitzero"`       // of the last entry's writer, which grows with every new one
}
