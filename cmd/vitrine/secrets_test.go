package main

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/big"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	natsserver "github.com/nats-io/nats-server/v2/server"

	"vitrine/internal/fatal"
	"vitrine/internal/long"
	"vitrine/service/eventlog/natslog/natstest"
)

// secrets are the values that a run must neither print nor write, by their descriptions.
type secrets struct {
	*testing.T
	of    map[string]string
	said  map[string]string // printed texts, by printer
	bytes int

	root, mine              string // the directory of everything, and below it the directory of the files with secrets
	byPassword              *natsserver.Server
	passwordHost, tokenHost string // addresses of servers
	keys, token, tokenFile  string
	password, tokens, local string // configurations
}

// forms are the possible encodings of a secret: unchanged, quoted in a URL, and encoded.
func forms(secret string) map[string][]byte {
	all := map[string][]byte{
		"as it is": []byte(secret), "in a query": []byte(url.QueryEscape(secret)),
		"in a path": []byte(url.PathEscape(secret)), "in a URL": []byte(url.User(secret).String()),
		"in hexadecimal": []byte(hex.EncodeToString([]byte(secret))),
	}
	for i := range 3 { // preceding text moves the groups of three bytes; the ends depend on the neighbours
		text := base64.RawStdEncoding.EncodeToString(append(make([]byte, i), secret...))
		all[fmt.Sprint("in base64 after ", i)] = []byte(text[4 : len(text)-4])
	}
	return all
}

// look searches a text for all secrets.
func (s *secrets) look(where string, text []byte) {
	s.Helper()
	s.bytes += len(text)
	for name, secret := range s.of {
		for form, b := range forms(secret) {
			if bytes.Contains(text, b) {
				s.Errorf("%s has %s %s:\n%.2000s", where, name, form, text)
			}
		}
	}
}

// command gives vitrine arguments, and notes what it prints.
func (s *secrets) command(want int, args ...string) string {
	s.Helper()
	said, code := command(s.T, args...)
	if code != want {
		s.Errorf("%v: exit status %d, want %d:\n%s", args, code, want, said)
	}
	s.said[fmt.Sprintf("%v", args[:1])] += said
	return said
}

// end stops a service, and notes what it printed.
func (s *secrets) end(p *process) {
	s.Helper()
	fatal.If(s, p.Process.Signal(os.Interrupt))
	p.Wait()
	s.said["serve"] += p.Said()
}

// request asks a service, and notes what it answers.
func (s *secrets) request(want int, method, url, body string, header ...string) {
	s.Helper()
	r := fatal.Or(http.NewRequestWithContext(s.Context(), method, url, strings.NewReader(body)))(s)
	for i := 0; i < len(header); i += 2 {
		r.Header.Add(header[i], header[i+1])
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true,
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	a := fatal.Or(client.Do(r))(s)
	defer a.Body.Close()
	var text bytes.Buffer
	fmt.Fprintf(&text, "%v\n", a.Header)
	if _, err := text.ReadFrom(a.Body); err != nil || a.StatusCode != want {
		s.Errorf("%s %s %v: %d %s, %v; want %d", method, url, header, a.StatusCode, &text, err, want)
	}
	s.said["answers"] += text.String()
}

// certify writes a certificate and its key, and returns the key's secret lines.
func certify(t *testing.T, dir string) (secret string) {
	t.Helper()
	key := fatal.Or(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	certificate := fatal.Or(x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key))(t)
	private := fatal.Or(x509.MarshalPKCS8PrivateKey(key))(t)
	text := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})
	fatal.If(t, errors.Join(
		os.WriteFile(filepath.Join(dir, "cert.pem"),
			pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate}), 0o600),
		os.WriteFile(filepath.Join(dir, "key.pem"), text, 0o600),
	))
	return strings.Split(string(text), "\n")[1]
}

// newSecrets starts servers of logs and writes configurations.
func newSecrets(t *testing.T) *secrets {
	s := &secrets{T: t, said: map[string]string{}, of: map[string]string{
		"the password": "pa$$w/rd of the log 1", "the token": "s3cr3t-t0k3n-of-the-log",
		"a wrong password": "wr0ng&password?of=mine",
		"a wrong API key":  "vitrine_bm90LWEta2V5LW9mLXRoaXMtc2VydmljZQ",
		"a seed":           "SUACSSL3UAHUDXKFSNVUZRF5UHPMWZ6BFDTJ7M6USDXIEDNPPQYYYCU3VY",
		// of the documentation of NATS
		"a JWT": "eyJ0eXAiOiJKV1QiLCJhbGciOiJlZDI1NTE5LW5rZXkifQ.eyJuYW1lIjoic2hvcCJ9.c2lnbmF0dXJl",
	}}
	s.byPassword = natstest.Serve(t, natsserver.Options{Username: "shop", Password: s.of["the password"]})
	byToken := natstest.Serve(t, natsserver.Options{Authorization: s.of["the token"]})
	s.passwordHost, s.tokenHost = s.byPassword.Addr().String(), byToken.Addr().String()
	s.root = t.TempDir()
	s.mine = filepath.Join(s.root, "mine")
	s.file("token", s.of["the token"]+"\n")
	s.file("seed", s.of["a seed"]+"\n")
	s.file("shop.creds", "-----BEGIN NATS USER JWT-----\n"+s.of["a JWT"]+"\n------END NATS USER "+
		"JWT------\n\n-----BEGIN USER NKEY SEED-----\n"+s.of["a seed"]+"\n------END USER NKEY SEED------\n")
	s.of["the private key"] = certify(t, s.mine)
	s.keys = filepath.Join(s.mine, "keys.toml")
	s.token = newKey(t, s.keys, "shop") // the one time that it is printed
	s.of["the API key"] = s.token
	s.tokenFile = s.file("shop.token", s.token+"\n")
	s.password = s.configuration("password", fmt.Sprintf("[log]\nurl = %q\n",
		withPassword(s.passwordHost, s.of["the password"])))
	s.tokens = s.configuration("tokens", fmt.Sprintf("[log]\nurl = %q\nstream = \"shop\"\ntoken = \"token\"\n",
		"nats://"+s.tokenHost))
	s.local = s.configuration("local", "[tls]\ncertificate = \"cert.pem\"\nkey = \"key.pem\"\n")
	return s
}

// withPassword is the URL of a server with a password.
func withPassword(host, password string) string {
	return (&url.URL{Scheme: "nats", User: url.UserPassword("shop", password), Host: host}).String()
}

// file writes a file that may hold secrets.
func (s *secrets) file(name, text string) string {
	s.Helper()
	path := filepath.Join(s.mine, name)
	fatal.If(s, errors.Join(os.MkdirAll(s.mine, 0o700), os.WriteFile(path, []byte(text), 0o600)))
	return path
}

func (s *secrets) configuration(name, log string) string {
	return s.file(name+".toml", fmt.Sprintf("listen = \"127.0.0.1:0\"\ndata = %q\nkeys = \"keys.toml\"\nlog_level "+
		"= \"debug\"\npersonalizer = true\n[snapshots]\nevery = \"100ms\"\n%s", filepath.Join(s.root, name), log))
}

const secretPlacement = `{"max_size":1,"features":[{"name":"x","kind":"number"}],"policy":{"name":"onl-mnl"}}`

// trade asks a service with the right key and wrong ones.
func (s *secrets) trade(at string) {
	bearer := []string{"Authorization", "Bearer " + s.token}
	s.request(201, "PUT", at+"/v1/placements/home", secretPlacement, bearer...)
	for i := range 3 {
		s.request(201, "POST", at+"/v1/placements/home/decisions",
			fmt.Sprintf(`{"decision_id":"d%d","items":[{"id":"a","features":{"x":1}}]}`, i), bearer...)
		s.request(204, "POST", fmt.Sprintf("%s/v1/placements/home/decisions/d%d/outcome", at, i), `{"choice":null}`, bearer...)
	}
	s.request(200, "GET", at+"/metrics", "", bearer...)
	s.request(201, "POST", at+"/personalizer/v1.0/rank", `{"actions":[{"id":"a"}]}`, "Ocp-Apim-Subscription-Key",
		s.token)
	s.request(401, "GET", at+"/v1/placements", "", "Authorization", "Bearer "+s.of["a wrong API key"])
	s.request(401, "GET", at+"/v1/placements?key="+s.token+"&password="+url.QueryEscape(s.of["the password"]), "")
	s.request(401, "GET", at+"/v1/placements", "", "Authorization",
		"Basic "+base64.StdEncoding.EncodeToString([]byte("shop:"+s.of["the password"])))
	s.request(401, "GET", at+"/v1/placements", "", "Authorization", s.token)
	s.request(400, "POST", at+"/v1/placements/home/decisions", `{"items":`, bearer...)
}

// serves runs services with logs on servers and in a directory, including servers that go away.
func (s *secrets) serves() {
	for _, file := range []string{s.password, s.tokens, s.local} {
		p := program.Serve(s.T, file)
		at := p.Listening()
		if file == s.local {
			at = strings.Replace(at, "http://", "https://", 1)
		}
		s.trade(at)
		if file != s.local {
			s.command(0, "load", at, "--key-file", s.tokenFile, "--decisions", "50", "--items", "5")
			own := strings.Replace(string(fatal.Or(os.ReadFile(file))(s)), "\"\nkeys", "-2\"\nkeys", 1) // another data directory
			follower := program.Serve(s.T, s.file("follower-"+filepath.Base(file), own))
			second := follower.Listening()
			s.request(200, "GET", second+"/v1/placements", "", "Authorization", "Bearer "+s.token)
			s.request(201, "PUT", second+"/v1/placements/cart", secretPlacement, "Authorization",
				"Bearer "+s.token) // the leader's
			s.end(follower)
			s.command(0, "export", file)
		}
		if file == s.password { // its server comes back, and then once more with another password
			_, text, _ := net.SplitHostPort(s.passwordHost)
			port := fatal.Or(strconv.Atoi(text))(s)
			back := s.byPassword
			for _, password := range []string{s.of["the password"], s.of["a wrong password"]} {
				back.Shutdown()
				back.WaitForShutdown()
				back = natstest.Serve(s.T, natsserver.Options{Port: port, Username: "shop", Password: password})
				for deadline := time.Now().Add(patience); password == s.of["the password"] &&
					!strings.Contains(p.Said(), "connected to the log's server again"); time.Sleep(10 *
					time.Millisecond) {
					if time.Now().After(deadline) {
						s.Fatalf("the service does not connect again:\n%s", p.Said())
					}
				}
			}
			s.request(503, "POST", at+"/v1/placements/home/decisions", `{"items":[{"id":"a","features":{"x":1}}]}`,
				"Authorization", "Bearer "+s.token)
		}
		s.end(p)
	}
}

// reads runs the commands that read logs and keys.
func (s *secrets) reads() {
	dir := filepath.Join(s.root, "local")
	s.command(0, "check", dir)
	s.command(0, "replay", dir)
	s.command(0, "export", dir)
	s.command(0, "backup", dir, filepath.Join(s.root, "backup"))
	s.command(0, "check", s.tokens)
	s.command(0, "replay", s.tokens, "--data", filepath.Join(s.root, "tokens"))
	s.command(0, "keys", "list", s.keys)
	s.command(1, "keys", "remove", s.keys, "nobody")
}

// errs provokes errors, which must not contain the value that caused them.
func (s *secrets) errs() {
	wrong := "[log]\nurl = %q\n%s\n"
	for i, c := range []string{
		fmt.Sprintf(wrong, withPassword(s.tokenHost, s.of["the password"]), ""),
		fmt.Sprintf(wrong, withPassword("127.0.0.1:1", s.of["the password"]), ""),
		fmt.Sprintf(wrong, "nats://"+s.of["the token"]+"%@"+s.tokenHost, ""),
		fmt.Sprintf(wrong, "nats://"+s.tokenHost, "nkey = \"seed\""),
		fmt.Sprintf(wrong, "nats://"+s.tokenHost, "credentials = \"shop.creds\""),
		fmt.Sprintf(wrong, "nats://"+s.tokenHost, "nkey = \"token\""),
		fmt.Sprintf(wrong, "nats://"+s.tokenHost, "token = \"seed\""),
		"[tls]\ncertificate = \"key.pem\"\nkey = \"cert.pem\"\n",
		"[tls]\ncertificate = \"cert.pem\"\nkey = \"token\"\n",
	} {
		path := s.configuration(fmt.Sprint("wrong", i), c)
		s.command(1, "check", path)
		if strings.Contains(c, "[tls]") {
			s.command(1, "serve", "--config", path)
		}
	}
	for _, name := range []string{"token", "seed", "key.pem"} { // a file in the place of another one
		s.command(1, "serve", "--config", filepath.Join(s.mine, name))
		s.command(1, "keys", "list", filepath.Join(s.mine, name))
		s.command(1, "load", "https://127.0.0.1:1", "--key-file", filepath.Join(s.mine, name), "--decisions", "1")
	}
	for _, host := range []string{s.tokenHost, "127.0.0.1:1"} {
		s.command(1, "check", withPassword(host, s.of["a wrong password"]))
		s.command(1, "export", "nats://"+s.of["the token"]+"x@"+host)
	}
}

// search looks for the secrets in all that was printed, answered and written, and returns the number of files.
func (s *secrets) search() (files int) {
	for _, who := range slices.Sorted(maps.Keys(s.said)) {
		s.look("what "+who+" printed", []byte(s.said[who]))
	}
	err := filepath.WalkDir(s.root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case path == s.mine:
			return fs.SkipDir
		case !d.Type().IsRegular():
			return nil
		}
		text, err := os.ReadFile(path)
		files++
		s.look(path, text)
		return err
	})
	if err != nil || files < 10 {
		s.Errorf("%d files, %v", files, err)
	}
	kept, err := os.ReadFile(s.keys) // holds only the hash
	if err != nil {
		s.Error(err)
	}
	s.look(s.keys, kept)
	return files
}

// A run of everything, with passwords in URLs, tokens and seeds in files, API keys and private keys, right and wrong,
// neither prints any of them nor writes any into another file.
func TestSecrets(t *testing.T) {
	long.Test(t)
	t.Parallel()
	s := newSecrets(t)
	s.serves()
	s.reads()
	s.errs()
	files := s.search()
	held(t, fmt.Sprintf("%d secrets, each in %d forms, in none of %d bytes that serve, check, replay, export, "+
		"backup, keys and load printed, answered or wrote in %d files", len(s.of), len(forms("0123456789")), s.bytes,
		files))
}
