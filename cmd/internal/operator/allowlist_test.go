package operator

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"partnerapi/db"
	"partnerapi/platform/phishing"
)

// TestAllowlist verifies that the command prints the values of a client, in the text and as JSON, and lines of at most 80
// columns.
func TestAllowlist(t *testing.T) {
	t.Parallel()
	c := newConsole(t)
	w := c.World
	client := c.AddClient()
	w.Must(c.DB.EnsureSecrets(t.Context()))
	w.Must(c.DB.LoadTemplates(t.Context()))
	w.Must(c.DB.RecordPublicURL(t.Context(), "https://train.example.com:8443/api"))
	secret, err := c.DB.TrackingSecret(t.Context())
	w.Must(err)
	value := phishing.NewTokens(secret).Header(client)

	args := []string{"mail", "allowlist", client.String()}
	own, err := db.OwnTemplates()
	w.Must(err)
	c.says(append(args, "--mail-source-ips=198.51.100.25,203.0.113.0/28"), "\n  198.51.100.25\n", "\n  203.0.113.0/28\n", "\n  train.example.com\n",
		"\n  "+phishing.HeaderName+": "+value+"\n", "\n  "+own[0].FromEmail()+"\n", "Microsoft 365", "Google Workspace", "Other gateways")
	text := c.must(args...)
	if !strings.Contains(text, "(unknown: add --mail-source-ips") {
		t.Errorf("without addresses it prints\n%s", text)
	}
	for line := range strings.Lines(text) {
		if len(line) > 81 {
			t.Errorf("got a line of %d columns: %s", len(line)-1, line)
		}
	}

	var list allowlist
	w.Must(json.Unmarshal([]byte(c.must(append(args, "--json")...)), &list))
	if list.ClientID != client || list.HeaderValue != value || list.LinkDomain != "train.example.com" || list.SourceIPs == nil ||
		!slices.IsSorted(list.SenderDomains) || !slices.Contains(list.SenderAddresses, own[0].FromEmail()) {
		t.Errorf("the JSON is %+v", list)
	}
	c.refused(true, append(args, "--mail-source-ips=mail.example.com"), "--mail-source-ips", "mail.example.com")
}
