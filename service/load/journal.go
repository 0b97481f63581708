package load

import (
	"encoding/json"
	"io"
	"sync"
)

// journal writes a line of JSON for each acknowledged decision and outcome, each in one write.
type journal struct {
	mu sync.Mutex
	to io.Writer // or nil
}

type decided struct {
	Decision string   `json:"decision_id"`
	Shown    []string `json:"shown"`
}

type reported struct {
	Decision string  `json:"decision_id"`
	Choice   *string `json:"choice"`
}

func (j *journal) write(line any) error {
	if j.to == nil {
		return nil
	}
	text, err := json.Marshal(line)
	if err != nil {
		return err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	_, err = j.to.Write(append(text, '\n'))
	return err
}
