// Package remote has the commands that call a running service, and how they do.
package remote

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// KeyFlag is the key of a command that calls a service.
type KeyFlag struct {
	Key string `env:"PARTNERAPI_KEY" name:"key" placeholder:"KEY" help:"The API key. Better in the variable: others can see a command line."`
}

// ValidateKey refuses an absent key.
func (f KeyFlag) ValidateKey() error {
	if f.Key == "" {
		return errors.New("no API key: set PARTNERAPI_KEY")
	}
	return nil
}

// newHTTPClient returns the client of commands that call a service, through transport;
// within bounds a call, 0 does not. A redirect is an error: the key, or the signature,
// is for the address that was given alone.
func newHTTPClient(transport http.RoundTripper, within time.Duration) *http.Client {
	return &http.Client{
		Transport: transport, Timeout: within,
		CheckRedirect: func(r *http.Request, via []*http.Request) error {
			return &redirected{from: via[0].URL.Host, to: r.URL.String()}
		},
	}
}

// redirected is that a service answered with a redirect.
type redirected struct{ from, to string }

// Error says where it leads.
func (e *redirected) Error() string {
	return fmt.Sprintf("%s redirects to %s, which is not followed: give the address of the service itself", e.from, e.to)
}

// readWithKey is what a service answers with to GET address, of which most bytes are
// read. An answer that is not 200 is a refusedRead.
func readWithKey(ctx context.Context, client *http.Client, key, address string, most int64) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("X-API-Key", key)
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, most))
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		return nil, refusal(response, text)
	}
	return text, nil
}

// refusedRead is that a service did not show what was asked for.
type refusedRead struct {
	status  int
	message string
	after   time.Duration // when to try again; 0 where it does not say
}

// Error is what the service says.
func (e *refusedRead) Error() string {
	return strings.TrimSpace(fmt.Sprintf("the service answered %d %s", e.status, e.message))
}

// passes reports whether trying again may help.
func (e *refusedRead) passes() bool {
	return e.status >= 500 || e.status == http.StatusTooManyRequests || e.status == http.StatusRequestTimeout
}

// refusal reads an answer that is not what was asked for.
func refusal(response *http.Response, text []byte) error {
	e := &refusedRead{status: response.StatusCode, message: http.StatusText(response.StatusCode)}
	var body struct{ Error struct{ Message string } }
	if json.Unmarshal(text, &body) == nil && body.Error.Message != "" {
		e.message = body.Error.Message
	}
	if seconds, err := strconv.Atoi(response.Header.Get("Retry-After")); err == nil && seconds > 0 {
		e.after = time.Duration(min(seconds, 3600)) * time.Second
	}
	return e
}
