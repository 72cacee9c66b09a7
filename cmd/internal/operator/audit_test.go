package operator

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"partnerapi/db/dbtest/fixture"
	"partnerapi/db/dbtest/worldtest"
	"partnerapi/domain"
)

func TestAuditCommand(t *testing.T) {
	t.Parallel()
	c := newConsole(t)
	client := domain.ClientID{15: 7}
	for _, e := range []domain.AuditEntry{
		{Prefix: "pk_aaaaaaaa", Operation: "clients.create", Method: "POST", Path: "/v2/clients", RequestID: "req_1"},
		{Prefix: "pk_bbbbbbbb", Address: netip.MustParseAddr("192.0.2.7"), Operation: "clients.update", Method: "PATCH", Path: "/v2/clients/x", Client: client},
	} {
		e.At = time.Now().UTC()
		if e.Operation == "clients.create" {
			e.At = e.At.Add(-48 * time.Hour)
		}
		c.Must(c.World.Audit(t.Context(), e))
	}
	for filter, want := range map[string][]string{
		"":                            {"clients.create", "clients.update"},
		"--client=" + client.String(): {"clients.update"},
		"--key=pk_aaaaaaaa":           {"clients.create"},
		"--since=36h":                 {"clients.update"},
		"--since=" + time.Now().AddDate(0, 0, -3).Format(time.DateOnly): {"clients.create", "clients.update"},
		"--since=2199-01-01T00:00:00Z":                                  {},
	} {
		lines := strings.Split(strings.TrimSpace(c.must(append([]string{"audit"}, strings.Fields(filter)...)...)), "\n")[1:]
		if len(lines) != len(want) {
			t.Fatalf("%s: %q, want %q", filter, lines, want)
		}
		for i := range want {
			if !strings.Contains(lines[i], want[i]) {
				t.Errorf("%s: %q, want %q", filter, lines[i], want[i])
			}
		}
	}
	c.says([]string{"audit"}, "192.0.2.7", client.String())
	c.refused(true, []string{"audit", "--since=yesterday"}, "--since", "36h")
	c.refused(false, []string{"audit", "--client=7"}, `no client "7"`)
}

// TestMailRetry lists a mail that was given up, and has it sent after all.
func TestMailRetry(t *testing.T) {
	t.Parallel()
	c := newConsole(t)
	client := c.AddClient()
	user := c.AddUser(client, domain.RoleStandard, 500)
	const id = "0197cafe-0000-7000-8000-000000000001"
	c.Add("mail_requests", fixture.Row{
		"client_id": client, "id": id, "user_id": user, "type": "welcome", "created_at": worldtest.Noon,
		"failed_at": time.Now(), "failure": "mailbox full",
	})
	c.says([]string{"mail", "failed"}, "mailbox full", " welcome ", client.String(), user.String()+"@example.com", id)
	if got := c.must("mail", "retry", id); got != "1 email will be sent again\n" {
		t.Errorf("%s", got)
	}
	c.refused(false, []string{"mail", "retry", id}, "mail failed")
	var jobs int
	if c.Scan("SELECT count(*) FROM outbox WHERE kind = 'mail' AND urgency = 1", nil, &jobs); jobs != 1 {
		t.Errorf("%d jobs", jobs)
	}

	c.refused(true, []string{"mail", "retry"}, "--all")
	c.refused(true, []string{"mail", "retry", "--all", id}, "--all")
	c.refused(true, []string{"mail", "retry", "--since=1h", id}, "--since")
	c.refused(true, []string{"mail", "retry", "late@example.com"}, "mail failed")
	c.refused(true, []string{"mail", "failed", "--limit=0"}, "--limit")
}
