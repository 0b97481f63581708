package host_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	nats "github.com/nats-io/nats-server/v2/server"

	"vitrine/internal/fatal"
	"vitrine/service/host"
)

// The configurations in deploy/cluster are read by their programs, and name the same three servers as the manifests.
func TestDeployedCluster(t *testing.T) {
	const dir = "../../deploy/cluster"
	c := fatal.Or(host.ReadConfig(filepath.Join(dir, "service.toml")))(t)
	t.Setenv("NATS_NAME", "nats-0")
	t.Setenv("NATS_TOKEN", "t12e5")
	o := fatal.Or(nats.ProcessConfigFile(filepath.Join(dir, "nats.conf")))(t)
	if o.ServerName != "nats-0" || o.Authorization != "t12e5" || !o.SyncAlways || o.StoreDir != "/data" {
		t.Errorf("the server's options are %+v", o)
	}
	servers := strings.Split(c.Log.URL, ",")
	if len(servers) != 3 || len(o.Routes) != 3 || c.Log.Replicas != 3 {
		t.Fatalf("%d servers, %d routes, %d replicas", len(servers), len(o.Routes), c.Log.Replicas)
	}
	for i, server := range servers {
		if want := strings.Replace(o.Routes[i].String(), ":6222", ":4222", 1); server != want {
			t.Errorf("the log is at %s, the route leads to %s", server, want)
		}
		text := fatal.Or(os.ReadFile(filepath.Join(dir, "compose.yaml")))(t)
		if name := strings.TrimSuffix(strings.TrimPrefix(server, "nats://"), ":4222"); !strings.Contains(string(text),
			"aliases: ["+name+"]") {
			t.Errorf("compose.yaml has no %s", name)
		}
	}
}
