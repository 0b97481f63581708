package host

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/service/engine"
	"vitrine/service/eventlog/memlog"
	"vitrine/service/keys"
	"vitrine/service/server"
	"vitrine/service/setup"
)

func TestRunChecksTheConfiguration(t *testing.T) {
	none := Default()
	none.Data = ""
	expect.Message(Run(t.Context(), none, Options{}))(t, "data is empty: name a directory")
	expect.Part(Run(t.Context(), &Config{Listen: "127.0.0.1:0", Data: t.TempDir()}, Options{}))(t, "must be positive")
	expect.Part(Run(t.Context(), nil, Options{}))(t, "begin with host.Default()")
	drain := Default()
	drain.Data, drain.Listen, drain.Timeouts.Drain.Duration = t.TempDir(), "127.0.0.1:0", -1
	expect.Message(Run(t.Context(), drain, Options{}))(t, "timeouts.drain = -1ns: must not be negative")
}

func TestServiceFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "service.toml")
	write := func(text string) {
		t.Helper()
		fatal.If(t, os.WriteFile(path, []byte(text), 0o600))
	}
	write(`listen = ":8443"
data = "d"
log = {url = "nats://host:4222"}
keys = "k.toml"
log_level = "debug"
personalizer = true
trusted_proxies = ["127.0.0.1", "10.1.2.3/8"]
client_address_header = "x-real-ip"
cors = {origins = ["https://shop.example"]}
tls = {certificate = "/c.pem", key = "p.pem"}
limits = {body = 1, concurrent = 2, rate = 3, burst = 4, subscribers = 5, answer = "6s", connections = 7, memory = "64MiB"}
timeouts = {header = "1s", read = "2s", write = "3s", idle = "4s", drain = "5s"}
snapshots = {every = "1m", keep_every = "2m"}
`)
	s := fatal.Or(ReadConfig(path))(t)
	if s.Log.URL != "nats://host:4222" || s.Data != filepath.Join(dir, "d") || s.Keys != filepath.Join(dir, "k.toml") ||
		s.TLS.Certificate != "/c.pem" || s.TLS.Key != filepath.Join(dir, "p.pem") || s.LogLevel != slog.LevelDebug {
		t.Errorf("%+v", s)
	}
	if got, want := s.limits(), (server.Limits{Body: 1, Concurrent: 2, Rate: 3, Burst: 4, Subscribers: 5, Answer: 6e9,
		Connections: 7}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if p, err := s.proxies(); err != nil || p.Header != "X-Real-Ip" ||
		fmt.Sprint(p.Trusted) != "[127.0.0.1/32 10.0.0.0/8]" {
		t.Errorf("proxies: %+v, %v", p, err)
	}
	if !s.Personalizer || Default().Personalizer {
		t.Errorf("personalizer is %v, and %v without a configuration", s.Personalizer, Default().Personalizer)
	}
	if len(s.CORS.Origins) != 1 || Default().CORS.Origins != nil {
		t.Errorf("origins: %q, and %q without a configuration", s.CORS.Origins, Default().CORS.Origins)
	}
	if u := s.budget().Usage(); u.Size != 64<<20 {
		t.Errorf("memory is %+v", u)
	}
	if u := Default().budget().Usage(); u.Size != defaultMemory() {
		t.Errorf("without a configuration memory is %+v", u)
	}
	if l := s.listen(); l.Address != ":8443" || l.Header != 1e9 || l.Read != 2e9 || l.Write != 3e9 || l.Idle != 4e9 ||
		l.Drain != 5e9 {
		t.Errorf("%+v", l)
	}
}

// The configuration in deploy/defaults.toml is the one without a file, and lists every key.
func TestDefaultsFile(t *testing.T) {
	text := fatal.Or(os.ReadFile("../../deploy/defaults.toml"))(t)
	got := new(Config)
	fatal.If(t, got.parse(text))
	want := Default()
	if got.Listen != want.Listen || got.Data != want.Data || got.Snapshots != want.Snapshots ||
		got.LogLevel != want.LogLevel || got.Personalizer != want.Personalizer || len(got.CORS.Origins) != 0 {
		t.Errorf("%+v, want %+v", got, want)
	}
	var keysOf func(of reflect.Type)
	keysOf = func(of reflect.Type) {
		for f := range of.Fields() {
			key := f.Tag.Get("toml")
			if key != "-" && !regexp.MustCompile(`(?m)^(# )?\[?`+key+`\b`).Match(text) {
				t.Errorf("deploy/defaults.toml lacks %s", key)
			}
			if f.Type.Kind() == reflect.Struct && f.Type != reflect.TypeFor[Span]() {
				keysOf(f.Type)
			}
		}
	}
	keysOf(reflect.TypeFor[Config]())
}

// The proxies in deploy/ let the service's largest body through. nginx's m are MiB, Caddy's MB are 10⁶ bytes.
func TestProxiesTakeABody(t *testing.T) {
	c := fatal.Or(ReadConfig("../../deploy/defaults.toml"))(t)
	for file, bound := range map[string]string{"nginx.conf": "client_max_body_size %dm;",
		"Caddyfile": "max_size %dMiB\n"} {
		text := string(fatal.Or(os.ReadFile("../../deploy/proxies/" + file))(t))
		if want := fmt.Sprintf(bound, c.Limits.Body>>20); !strings.Contains(text, want) {
			t.Errorf("deploy/proxies/%s lacks %q", file, want)
		}
	}
}

// The keys in docs/operations.md are keys, and its configurations are configurations.
func TestServiceFilesOfTheDocs(t *testing.T) {
	page := string(fatal.Or(os.ReadFile("../../docs/operations.md"))(t))
	for _, block := range regexp.MustCompile(
		`(?m)(?:^    (?:listen =|\[retention\]).*\n)(?:    .*\n|\n    .*\n)*`).FindAllString(page, -1) {
		fatal.If(t, Default().parse([]byte(block)))
	}
	_, text, _ := strings.Cut(page, "    [[key]]")
	text, _, _ = strings.Cut("[[key]]"+text, "\n\n")
	path := filepath.Join(t.TempDir(), "keys.toml")
	fatal.If(t, os.WriteFile(path, []byte(text), 0o600))
	if _, err := keys.Open(path, time.Now, slog.New(slog.DiscardHandler)); err != nil {
		t.Error(err)
	}
}

// The image and the packages have configurations that the service reads.
func TestInstalledServiceFiles(t *testing.T) {
	if c, err := ReadConfig("../../deploy/service.toml"); err != nil || c.Listen != Default().Listen ||
		c.Data != "/var/lib/vitrine" || c.Keys != "" {
		t.Errorf("%+v, %v", c, err)
	}
	// With keys, these are in a directory that the packages make: a restore moves the data directory aside.
	text := fatal.Or(os.ReadFile("../../deploy/service.toml"))(t)
	keyed := Default()
	fatal.If(t, keyed.parse(regexp.MustCompile(`(?m)^# (\w+ = )`).ReplaceAll(text, []byte("$1"))))
	expect.Equal(t, keyed.Keys, "keys/keys.toml")
	expect.Contains(t, string(text), "sudo -u vitrine vitrine keys add /etc/vitrine/keys/keys.toml ")
	script := fatal.Or(os.ReadFile("../../.ci/package/files/postinstall.sh"))(t)
	expect.Contains(t, string(fatal.Or(os.ReadFile("../../.ci/package/install.go"))(t)),
		`{"`+regexp.MustCompile(`/\S+/defaults\.toml`).FindString(string(text))+`", `, "the list of keys is installed")
	expect.Contains(t, string(script), "install -d -m 0700 -o vitrine -g vitrine /etc/vitrine/keys\n")
	c, err := ReadConfig("../../deploy/container.toml")
	if err != nil || c.Listen != ":8080" || c.Data != "/data" || filepath.Base(c.Keys) != "keys.toml" {
		t.Errorf("%+v, %v", c, err)
	}
}

func TestBadServiceFile(t *testing.T) {
	for text, want := range map[string]string{
		"listen = 3":                 "1: ",
		"cors = {origins = [\"*\"]}": "cors.origins: origin \"*\": must be of the form",
		"[limits]\nrates = 1":        "2: unknown key \"limits.rates\"",
		"alerts = {url = 'http://a', secret = 's', level = 'dire'}": `alerts.level = "dire": must be`,
		"limits = {burst = 4}":                             "limits.burst = 4: bounds nothing without limits.rate",
		"limits = {rate = nan}":                            "limits.rate = NaN: must be from 0",
		"limits = {rate = inf}":                            "limits.rate = +Inf: must be from 0",
		"limits = {rate = -1.5}":                           "limits.rate = -1.5: must be from 0",
		"limits = {concurrent = -1}":                       "limits.concurrent = -1: must be from 0",
		"limits = {concurrent = 1e3}":                      "1: ",
		"limits = {body = 9999999999999}":                  "limits.body = 9.999999999999e+12: must be from 0",
		"limits = {answer = \"0s\"}":                       "1: ",
		"limits = {memory = \"half\"}":                     "1: ",
		"limits = {memory = \"0MB\"}":                      "1: ",
		"limits = {memory = \"2MB\"}":                      "limits.memory is 2000000 bytes: must be at least 33554432, 32MiB",
		"[timeouts]\n\nwrite = 60":                         "3: timeouts.write: 60: must be a positive duration such as \"30s\"",
		"limits = {body = 10, answer = 10}":                "1: limits.answer: 10: must be a positive duration",
		"limits.memory = 5":                                "1: limits.memory: 5: must be a positive size such as \"500MB\"",
		"[retention]\nsize = 100":                          "2: retention.size: 100: must be a positive size",
		"health = \"9999\"":                                "health = \"9999\": must be \"HOST:PORT\"",
		"listen = \"127.0.0.1:99999\"":                     "listen = \"127.0.0.1:99999\": must be \"HOST:PORT\" with a port from 0 to 65535",
		"tls = {key = \"k.pem\"}":                          "[tls] needs both certificate and key",
		"log = {url = \"nats://u:p@:x%\"}":                 "log.url: ",
		"[log]\nurls = \"nats://h\"":                       "2: unknown key \"log.urls\"",
		"log = {stream = \"s\"}":                           "[log] has no url",
		"log = {url = \"h\", replicas = 6}":                "log.replicas = 6: must be from 1 to 5",
		"log = {url = \"h\", stream = \"a.b\"}":            "log.stream = \"a.b\": must not contain",
		"log = {url = \"h\", nkey = \"n\", token = \"t\"}": "[log] has more than one of credentials, nkey and token",
		"log = {url = \"h\", certificate = \"c\"}":         "[log] needs both certificate and key",
	} {
		s := Default()
		expect.Prefix(s.parse([]byte(text)))(t, want, text)
	}
}

// A server can be made from any configuration that is accepted.
func FuzzServiceFile(f *testing.F) {
	f.Add("listen = \":8443\"\ntls = {certificate = \"c\", key = \"k\"}\nlimits = {rate = 3, burst = 4, answer = \"6s\"}")
	f.Add("limits = {rate = nan}")
	f.Add("limits = {rate = 1e-300}\ncors = {origins = [\"http://localhost:3000\"]}")
	e := fatal.Or(engine.Open(f.Context(), engine.Options{Store: new(memlog.Store), Build: setup.NewLearner}))(f)
	f.Cleanup(e.Close)
	f.Fuzz(func(t *testing.T, text string) {
		s := new(Config)
		if s.parse([]byte(text)) != nil || s.Limits.Concurrent > 1000 {
			return
		}
		w := httptest.NewRecorder()
		server.New(server.Options{Engine: e, Limits: s.limits(), Origins: s.CORS.Origins}).ServeHTTP(w,
			httptest.NewRequest("GET", "http://localhost/v1/placements", nil))
		if w.Code != http.StatusOK {
			t.Errorf("the first request: %d %s", w.Code, w.Body)
		}
	})
}

func TestRetentionLimits(t *testing.T) {
	for text, want := range map[string]uint64{"1B": 1, "30kB": 30_000, "30KB": 30_000, "10GB": 1e10, "2TB": 2e12,
		"1KiB": 1024, "3MiB": 3 << 20, "1GiB": 1 << 30} {
		var have ByteCount
		if err := have.UnmarshalText([]byte(text)); err != nil || have.Bytes != want {
			t.Errorf("%q is %d, %v, want %d", text, have, err, want)
		}
	}
	for _, key := range []string{"[retention]\nsize", "[limits]\nmemory"} {
		expect.Refused(new(Config).parse([]byte(key+" = 10\n")))(t, key, "10, which may be GB, is 10 bytes")
	}
	for _, text := range []string{"", "10", "GB", "0GB", "-1GB", "1.5GB", "1G", "1 GB", "9999999999GB",
		"18446744073709551616B", "1BB"} {
		if have := new(ByteCount); have.UnmarshalText([]byte(text)) == nil {
			t.Errorf("%q is %d bytes", text, *have)
		}
	}
	for text, want := range map[string]time.Duration{"90d": 90 * 24 * time.Hour, "2160h": 90 * 24 * time.Hour,
		"1h30m": 90 * time.Minute} {
		var have Span
		if err := have.UnmarshalText([]byte(text)); err != nil || have.Duration != want {
			t.Errorf("%q is %v, %v, want %v", text, have, err, want)
		}
	}
	for _, text := range []string{"", "d", "0d", "-1d", "1.5d", "1d12h", "99999999999d", "90"} {
		if have := new(Span); have.UnmarshalText([]byte(text)) == nil {
			t.Errorf("%q is %v", text, have.Duration)
		}
	}
}
