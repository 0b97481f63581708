package api

// Preview describes the effects of a change of a placement.
type Preview struct {
	Change     string    `json:"change" enum:"none,create,keep,restart,end,adopt" doc:"none: the placement has this configuration; create: there is no such placement; keep: the learner continues; restart: another learner begins, with reset=true or relearn=log if something is lost; end: an experiment ends, with reset=true, and what the learners of its variants have learned is lost; adopt: an experiment ends, and the learner of one of its variants decides"`
	Placement  Placement `json:"placement" doc:"the configuration with its defaults, notes and warnings"`
	Fields     []string  `json:"fields,omitempty" doc:"of restart: what changes that the learner depends on"`
	Lost       *Loss     `json:"lost,omitempty" doc:"of restart: what the learner has learned, which is kept as a version; left out if it has learned nothing. Of end: what is lost"`
	CanRelearn bool      `json:"can_relearn" doc:"whether relearn=log can learn it again from the log"`
	MaxSize    int       `json:"max_size,omitzero" doc:"relearn=log would leave out decisions that showed more items"`
}

// Values of [Preview.Change].
const (
	PreviewNone    = "none"    // this is the placement's configuration
	PreviewCreate  = "create"  // there is no such placement
	PreviewKeep    = "keep"    // the learner goes on
	PreviewRestart = "restart" // another learner begins
	PreviewEnd     = "end"     // an experiment ends, and its learners' knowledge is lost
	PreviewAdopt   = "adopt"   // an experiment ends, and the learner of one of its variants decides
)
