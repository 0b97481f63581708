package natslog_test

import (
	"testing"

	"vitrine/internal/expect"
	"vitrine/service/eventlog/natslog"
)

// A decision service's address is not valid for its log's server.
func TestSplitURLRefuses(t *testing.T) {
	for _, urls := range []string{"http://localhost:8080", "nats://a:4222,https://b", "nats://"} {
		expect.Part(natslog.SplitURL(urls))(t, "is not a URL such as nats://host:4222", urls)
	}
	if hosts, user, err := natslog.SplitURL("a:4222,tls://u:p@b"); err != nil || hosts != "nats://a:4222,tls://b" ||
		user.String() != "u:p" {
		t.Errorf("%s, %s, %v", hosts, user, err)
	}
}
