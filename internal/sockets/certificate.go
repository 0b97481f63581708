package sockets

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"time"

	"vitrine/internal/watch"
)

// Certificate is a server's certificate, which is read again when its files change.
type Certificate struct {
	name  string
	file  *watch.Value[*tls.Certificate]
	clock func() time.Time
}

// OpenCertificate reads a certificate and its key from PEM files. If changed files are invalid later, the certificate
// remains as it was, and logger reports it.
func OpenCertificate(certificate, key string, clock func() time.Time, logger *slog.Logger) (*Certificate, error) {
	file, err := watch.Files(func() (*tls.Certificate, error) {
		c, err := tls.LoadX509KeyPair(certificate, key)
		if err != nil {
			return nil, fmt.Errorf("%s, %s: %w", certificate, key, err)
		}
		return &c, nil
	}, clock, logger, certificate, key)
	if err != nil {
		return nil, err
	}
	return &Certificate{certificate, file, clock}, nil
}

// Listener wraps a listener, so that its connections use TLS.
func (c *Certificate) Listener(l net.Listener) net.Listener {
	return tls.NewListener(l, &tls.Config{
		MinVersion:     tls.VersionTLS12,
		CipherSuites:   authenticated(),
		NextProtos:     []string{"http/1.1"},
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return c.file.Get(), nil },
	})
}

// authenticated returns the TLS 1.2 suites with forward secrecy and authenticated encryption.
func authenticated() []uint16 {
	var suites []uint16
	for _, s := range tls.CipherSuites() {
		if strings.HasPrefix(s.Name, "TLS_ECDHE_") && !strings.Contains(s.Name, "_CBC_") {
			suites = append(suites, s.ID)
		}
	}
	return suites
}

// Problem says why the changed files cannot be read, or "". It is "" for a nil certificate.
func (c *Certificate) Problem() string {
	if c == nil {
		return ""
	}
	return c.file.Problem()
}

// expiryNotice is how long before its end a certificate is a problem, or a sixth of its life if that is shorter.
const expiryNotice = 7 * 24 * time.Hour

// Expiry says that the certificate expires soon, or that it did, or is "".
func (c *Certificate) Expiry() string {
	if c == nil {
		return ""
	}
	leaf, now := c.file.Get().Leaf, c.clock()
	end := leaf.NotAfter.UTC().Format("2 January 2006 at 15:04 UTC")
	switch left := leaf.NotAfter.Sub(now); {
	case left <= 0:
		return fmt.Sprintf("The certificate %s expired on %s, and callers refuse it: replace the file.", c.name, end)
	case left < min(expiryNotice, leaf.NotAfter.Sub(leaf.NotBefore)/6):
		return fmt.Sprintf("The certificate %s expires on %s, and then callers refuse it: replace the file.", c.name, end)
	}
	return ""
}
