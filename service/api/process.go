package api

// Process says what a process does with the log that it shares with others. /readyz answers with it.
type Process struct {
	Role       string  `json:"role,omitzero"`        // "leader" or "follower"; "" without a log
	Leader     string  `json:"leader,omitzero"`      // of a follower: the process that writes the log, "" if none is known
	LagSeconds float64 `json:"lag_seconds,omitzero"` // of a follower: since it had all entries of the log
	Entry      uint64  `json:"entry"`                // the last one that is part of the state
	Epoch      uint64  `json:"epoch,omitzero"`       // of the last entry's writer, which grows with every new one
}
