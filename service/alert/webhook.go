package alert

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
)

// secretPrefix begins a secret of Standard Webhooks; base64 of 24 to 64 bytes follows.
const secretPrefix = "whsec_"

// readSecrets reads the secrets of a file. It is read for each message, so a secret can be exchanged without a restart:
// while the file holds two, the receiver may know either.
func readSecrets(path string) ([][]byte, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var secrets [][]byte
	for i, line := range strings.Fields(string(text)) {
		encoded, ok := strings.CutPrefix(line, secretPrefix)
		secret, err := base64.StdEncoding.DecodeString(encoded)
		if !ok || err != nil || len(secret) < 24 || len(secret) > 64 {
			return nil, fmt.Errorf("%s: secret %d: must be whsec_ and base64 of 24 to 64 bytes: make one with "+
				"echo whsec_$(openssl rand -base64 32)", path, i+1)
		}
		secrets = append(secrets, secret)
	}
	if secrets == nil {
		return nil, fmt.Errorf("%s: there is no secret: make one with echo whsec_$(openssl rand -base64 32)", path)
	}
	return secrets, nil
}

// deliver makes one attempt. Its errors do not name the URL, which may hold a secret.
func (s *Sender) deliver(ctx context.Context, m *Message) error {
	secrets, err := readSecrets(s.options.Secret)
	if err != nil {
		return err
	}
	body, err := json.Marshal(m)
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.options.URL, bytes.NewReader(body))
	if err != nil {
		return errors.New("alerts.url is not a valid address")
	}
	timestamp := strconv.FormatInt(s.options.Now().Unix(), 10)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("User-Agent", "vitrine")
	r.Header.Set("Webhook-Id", m.ID)
	r.Header.Set("Webhook-Timestamp", timestamp)
	r.Header.Set("Webhook-Signature", sign(secrets, m.ID, timestamp, body))
	answer, err := s.client.Do(r)
	if err != nil {
		if at, ok := errors.AsType[*url.Error](err); ok {
			err = at.Err
		}
		return fmt.Errorf("the receiver %s: %w", r.URL.Host, err)
	}
	answer.Body.Close() // its contents do not matter
	switch {
	case answer.StatusCode/100 == 2:
		return nil
	case answer.StatusCode/100 == 3:
		return fmt.Errorf("the receiver %s answered %d, and redirects are not followed: set alerts.url to where it leads", r.URL.Host, answer.StatusCode)
	}
	return fmt.Errorf("the receiver %s answered %d", r.URL.Host, answer.StatusCode)
}

// sign returns the header webhook-signature.
func sign(secrets [][]byte, id, timestamp string, body []byte) string {
	var list []string
	for _, secret := range secrets {
		h := hmac.New(sha256.New, secret)
		fmt.Fprintf(h, "%s.%s.%s", id, timestamp, body)
		list = append(list, "v1,"+base64.StdEncoding.EncodeToString(h.Sum(nil)))
	}
	return strings.Join(list, " ")
}
