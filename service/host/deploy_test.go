package host_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	nats "github.com/nats-io/nats-server/v2/server"

	"vitrine/internal/expect"
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

// Each container sees the directory of its key file. If only the file were mounted, the container would keep the one that
// vitrine keys has replaced.
func TestDeployedKeys(t *testing.T) {
	for config, want := range map[string]struct {
		compose  string
		services int
	}{"container.toml": {"compose.yaml", 1}, "cluster/service.toml": {"cluster/compose.yaml", 3}} {
		const dir = "../../deploy"
		c := fatal.Or(host.ReadConfig(filepath.Join(dir, config)))(t)
		expect.Equal(t, c.Keys, filepath.Join(dir, filepath.Dir(config), "keys/keys.toml"), config)
		text := string(fatal.Or(os.ReadFile(filepath.Join(dir, want.compose)))(t))
		expect.Equal(t, strings.Count(text, "./keys:/etc/vitrine/keys:ro"), want.services, want.compose)
	}
}
