package api

// LearnerState is the saved knowledge of a placement's learner.
type LearnerState struct {
	Placement   string    `json:"placement"`
	PolicyEntry uint64    `json:"policy_entry" doc:"the last entry of the log that it has learned from"`
	Learned     uint64    `json:"learned" doc:"rounds that it has learned"`
	Config      Placement `json:"config" doc:"the configuration of a learner that reads the state"`
	State       string    `json:"state" doc:"what the learner's MarshalBinary returns, in Base 64 (RFC 4648)"`
}
