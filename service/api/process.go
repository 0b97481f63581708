package api

// Process is the answer of /readyz: a process's part in the log that it shares with others.
type Process struct {
	Role       string  `json:"role,omitzero"`        // "leader" or "follower"; "" without a log
	Leader     string  `json:"leader,omitzero"`      // a follower's: the process that writes the log, or "" if unknown
	LagSeconds float64 `json:"lag_seconds,omitzero"` // a follower's: time since its state included all log entries
	Entry      uint64  `json:"entry"`                // the last one that is part of the state
	Epoch      uint64  `json:"epoch,omitzero"`       // of the last entry's writer, which grows with every new one
}
