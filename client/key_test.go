package client_test

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"partnerapi/client"
)

// TestKeyStays: the key is sent to the address that was given alone.
func TestKeyStays(t *testing.T) {
	t.Parallel()
	c := answering(t, client.Config{}, func(_ http.ResponseWriter, r *http.Request) error {
		if r.URL.Host != "api.example.com" || r.Header.Get("X-API-Key") != "key" || r.Header.Get("User-Agent") == "" {
			t.Errorf("%s: %v", r.URL, r.Header)
		}
		return nil
	})
	for address, ok := range map[string]bool{
		"https://api.example.com/mcp": true, "https://elsewhere.example/mcp": false, "http://api.example.com/mcp": false,
	} {
		response, err := c.HTTP().Get(address)
		if err == nil {
			_ = response.Body.Close()
		}
		if (err == nil) != ok {
			t.Errorf("%s: %v", address, err)
		}
	}
	if _, err := c.Send(t.Context(), client.Request{Method: "GET", Path: ".elsewhere.example/v2"}); err == nil {
		t.Error("a path without a slash is taken")
	}
	body := new(closed)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://elsewhere.example/mcp", body)
	if err != nil {
		t.Fatal(err)
	}
	if response, err := c.HTTP().Transport.RoundTrip(request); err == nil || !bool(*body) {
		t.Errorf("%v; its body is closed: %t: %v", response, *body, err)
	}
}

// closed is an empty body that notes that it was closed.
type closed bool

func (c *closed) Read([]byte) (int, error) { return 0, io.EOF }

func (c *closed) Close() error { *c = true; return nil }

// TestAddresses: what is no address of a service is refused, and no password is printed.
func TestAddresses(t *testing.T) {
	t.Parallel()
	for _, address := range []string{
		"", "example.com", "ftp://example.com", "https://example.com/?a=b", "https://example.com/#a", "http://",
		"https://example.com/v1", "https://example.com/v2", "https://example.com/v2/", "https://example.com/api/v2",
		"https://u:secret@example.com", "https://secret@example.com", "https://@example.com", "https://u:secret@ex ample.com", "u:secret@example.com",
		"https://u:secret@example.com/v2", "https://u:p@secret@example.com",
	} {
		if _, err := client.New(client.Config{URL: address}); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: %v", address, err)
		}
	}
	for _, address := range []string{"https://example.com", "https://example.com/", "http://127.0.0.1:8080", "https://example.com/v2x", "https://example.com/v2/proxy"} {
		if _, err := client.New(client.Config{URL: address}); err != nil {
			t.Error(err)
		}
	}
}

// TestKeyIsNotPrinted: neither a configuration nor a client is printed or logged with its key.
func TestKeyIsNotPrinted(t *testing.T) {
	t.Parallel()
	config := client.Config{URL: "https://u:secret@api.example.com", Key: "secret"}
	valid := config
	valid.URL = "https://api.example.com"
	made, err := client.New(valid)
	if err != nil {
		t.Fatal(err)
	}
	for _, value := range []any{config, &config, made, *made, struct{ Config client.Config }{config}, struct{ made client.Client }{*made}, made.HTTP(), *made.HTTP()} {
		var logged bytes.Buffer
		slog.New(slog.NewTextHandler(&logged, nil)).Info("text", "value", value)
		slog.New(slog.NewJSONHandler(&logged, nil)).Info("json", "value", value)
		if text := fmt.Sprintf("%v %+v %#v %s %x %d", value, value, value, value, value, value) + logged.String(); strings.Contains(text, "secret") {
			t.Errorf("%T: %s", value, text)
		}
	}
	if text := config.String(); text != "a client of …@api.example.com with a key" {
		t.Error(text)
	}
}
