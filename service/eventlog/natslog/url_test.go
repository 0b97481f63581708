package natslog_test

import (
	"strings"
	"testing"

	"vitrine/service/eventlog/natslog"
)

// A decision service's address is not valid for its log's server.
func TestSplitURLRefuses(t *testing.T) {
	for _, urls := range []string{"http://localhost:8080", "nats://a:4222,https://b", "nats://"} {
		if _, _, err := natslog.SplitURL(urls); err == nil ||
			!strings.Contains(err.Error(), "is not a URL such as nats://host:4222") {
			t.Errorf("%s: error %v", urls, err)
		}
	}
	if hosts, user, err := natslog.SplitURL("a:4222,tls://u:p@b"); err != nil || hosts != "nats://a:4222,tls://b" ||
		user.String() != "u:p" {
		t.Errorf("%s, %s, %v", hosts, user, err)
	}
}
