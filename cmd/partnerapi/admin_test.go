package main

import (
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"partnerapi/db"
	"partnerapi/domain"
)

func TestAuditCommand(t *testing.T) {
	t.Parallel()
	flag := databaseFlag(t)
	d := opened(t, flag)
	client := db.NewID[domain.ClientKind]()
	long := time.Now().UTC().Add(-48 * time.Hour)
	for _, e := range []domain.AuditEntry{
		{At: long, Prefix: "pk_aaaaaaaa", Operation: "clients.create", Method: "POST", Path: "/v2/clients", RequestID: "req_1"},
		{Prefix: "pk_bbbbbbbb", Address: netip.MustParseAddr("192.0.2.7"), Operation: "clients.update", Method: "PATCH", Path: "/v2/clients/x", Client: client},
	} {
		if err := d.Audit(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
	for filter, want := range map[string][]string{
		"":                                     {"clients.create", "clients.update"},
		"--client=" + client.String():          {"clients.update"},
		"--key=pk_aaaaaaaa":                    {"clients.create"},
		"--since=36h":                          {"clients.update"},
		"--since=" + long.Format("2006-01-02"): {"clients.create", "clients.update"},
		"--since=2199-01-01T00:00:00Z":         {},
	} {
		args := []string{"audit", flag}
		if filter != "" {
			args = append(args, filter)
		}
		lines := strings.Split(strings.TrimSpace(must(t, args...)), "\n")[1:]
		if len(lines) != len(want) {
			t.Fatalf("%s: %q, want %q", filter, lines, want)
		}
		for i := range want {
			if !strings.Contains(lines[i], want[i]) {
				t.Errorf("%s: %q, want %q", filter, lines[i], want[i])
			}
		}
	}
	if got := must(t, "audit", flag); !strings.Contains(got, "192.0.2.7") || !strings.Contains(got, client.String()) {
		t.Errorf("%s", got)
	}
	refused(t, 2, []string{"audit", "--since=yesterday"}, "--since", "36h")
	refused(t, 1, []string{"audit", flag, "--client=7"}, `no client "7"`)
}

// TestMailRetry gives a welcome mail up, lists it, and has it sent after all.
func TestMailRetry(t *testing.T) {
	t.Parallel()
	flag := demonstration(t)
	r := serving(t, flag, "--demo", "--release=latest", "--no-work")
	client := oldestClient(r)
	r.do("POST", "/v2/clients/"+client+"/users", "pk_demo_all", fields{"email": "late@example.com", "send_welcome_email": true}).want(http.StatusCreated)
	r.finish()
	d := opened(t, flag).SQL()
	if _, err := d.ExecContext(t.Context(), "UPDATE mail_requests SET failed_at = now(), failure = 'mailbox full' WHERE sent_at IS NULL AND failed_at IS NULL"); err != nil {
		t.Fatal(err)
	}
	if _, err := d.ExecContext(t.Context(), "DELETE FROM outbox"); err != nil {
		t.Fatal(err)
	}

	var id string
	for line := range strings.Lines(must(t, "mail", "failed", flag)) {
		if strings.Contains(line, "late@example.com") {
			id = strings.Fields(line)[4]
			if !strings.Contains(line, "mailbox full") || !strings.Contains(line, " welcome ") || !strings.Contains(line, client) {
				t.Errorf("%s", line)
			}
		}
	}
	if got := must(t, "mail", "retry", flag, id); got != "1 mail is sent again\n" {
		t.Errorf("%s", got)
	}
	refused(t, 1, []string{"mail", "retry", flag, id}, "mail failed")
	var jobs int
	query := "SELECT count(*) FROM outbox WHERE kind = 'mail' AND urgency = 1"
	if err := d.QueryRowContext(t.Context(), query).Scan(&jobs); err != nil || jobs != 1 {
		t.Errorf("%d jobs: %v", jobs, err)
	}

	refused(t, 2, []string{"mail", "retry", flag}, "--all")
	refused(t, 2, []string{"mail", "retry", flag, "--all", id}, "--all")
	refused(t, 2, []string{"mail", "retry", flag, "--since=1h", id}, "--since")
	refused(t, 2, []string{"mail", "retry", flag, "late@example.com"}, "mail failed")
	refused(t, 2, []string{"mail", "failed", flag, "--limit=0"}, "--limit")
}
