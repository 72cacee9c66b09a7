package v1cmd

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"partnerapi/cmd/internal/cli"
	"partnerapi/db"
	"partnerapi/db/dbtest/fixture"
	"partnerapi/domain"
	"partnerapi/v1compat/retire"
)

// admin adds an admin of a partner.
func (w *world) admin(partner, email, role string) {
	w.t.Helper()
	w.Exec(`INSERT INTO admins (id, partner_id, email, name, role, created_at)
		SELECT gen_random_uuid(), id, $2, $2, $3, $4 FROM partners WHERE name = $1`, partner, email, role, noon)
}

// tell mails about the announcement as a command does, and returns what it printed.
func (w *world) tell(f mailFlags, kind domain.MessageType, work func(context.Context) error) string {
	w.t.Helper()
	out, err := w.tryTell(f, kind, work)
	w.Must(err)
	return out
}

func (w *world) tryTell(f mailFlags, kind domain.MessageType, work func(context.Context) error) (string, error) {
	w.t.Helper()
	var out strings.Builder
	d, err := db.Open(w.url, db.WithClock(w.Clock), db.WithStrictLocks())
	w.Must(err)
	defer d.Close()
	r := retirement{Env: cli.Env{Out: &out}, Store: retire.NewStore(d.DB, w.Clock), db: d}
	r.state, err = r.Load(w.t.Context())
	w.Must(err)
	a := *r.state.Announcement
	err = f.mailChange(w.t.Context(), r, false, kind, a, &domain.AuditEntry{Operation: "v1 remind"}, func(ctx context.Context) (string, error) {
		return "", errors.Join(r.LockAnnouncement(ctx, a), work(ctx))
	})
	return out.String(), err
}

func (w *world) number(query string, args ...any) (n int) {
	w.t.Helper()
	w.Scan(query, args, &n)
	return n
}

// TestMails: each owner and admin of a partner gets one mail of a kind about an announcement,
// with the partner's own keys alone; who moved gets the date alone.
func TestMails(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.scene()
	w.admin("Northlight", "owner@northlight.example", "owner")
	w.admin("Northlight", "admin@northlight.example", "admin")
	w.admin("Northlight", "viewer@northlight.example", "viewer")
	w.admin("Tidewater", "owner@tidewater.example", "owner") // its key stopped
	for _, name := range []string{"Without", "Archived", "Archived by command", "Moved away"} {
		id := db.NewID[domain.PartnerKind]()
		w.Add("partners", fixture.Row{"id": id, "name": name, "name_key": name})
		switch name {
		case "Archived":
			w.Add("clients", fixture.Row{
				"id": db.NewID[domain.ClientKind](), "partner_id": id, "name": name, "name_key": name, "archived_at": noon})
		case "Archived by command":
			w.Exec("UPDATE partners SET archived_at = $1 WHERE id = $2", noon, id)
		case "Moved away":
			w.Exec("INSERT INTO moves (partner_id, step, cell) VALUES ($1, 'gone', '01')", id)
		}
	}
	w.admin("Archived", "owner@archived.example", "owner")
	w.admin("Archived by command", "owner@archived-by-command.example", "owner")
	w.admin("Moved away", "owner@moved.example", "owner")
	nothing := func(context.Context) error { return nil }
	stored := func(want int) {
		t.Helper()
		if n := w.number("SELECT count(*) FROM partner_mails"); n != want || w.number("SELECT count(*) FROM outbox WHERE kind = 'partner'") != n {
			t.Errorf("%d mails, want %d", n, want)
		}
		if n := w.number("SELECT count(*) FROM audit_entries WHERE object_kind = 'admin' AND fields = '{mail}'"); n != want {
			t.Errorf("%d entries of the audit trail, want %d", n, want)
		}
	}

	printed := w.tell(mailFlags{DryRun: true, PublicURL: "https://api.example.com"}, retire.RemindMail, nothing)
	stored(0)
	north, tide, _ := strings.Cut(printed, "To: owner@tidewater.example\n")
	for _, text := range []string{
		"To: admin@northlight.example, owner@northlight.example\n", "Version 1 ends on: 24 June 2027 (UTC)\nDays left: ", "ends on 24 June 2027",
		"pk_all (pk_all): GET /v1/clients, 36,000 calls by acme-sync/2.4, curl/8.5.0; call GET /v2/clients instead: https://api.example.com/docs/migrating/clients#",
		"pk_readonly", `<script>alert("1")</script>`, "https://api.example.com/docs/guide/moving-from-v1",
	} {
		if !strings.Contains(north, text) {
			t.Errorf("no %q in\n%s", text, north)
		}
	}
	if strings.Contains(printed, "pk_other") || strings.Contains(tide, "/v1/") || !strings.Contains(tide, "ends on 24 June 2027") {
		t.Errorf("who stopped is told\n%s", tide)
	}
	if !strings.HasSuffix(printed, "3 emails to owners and admins of 2 partners would be sent.\nThese partners have no owner or admin and receive no email: Without.\n") {
		t.Errorf("the dry run ends\n%s", printed)
	}

	// A command that is killed before its commit has asked for nothing.
	if _, err := w.tryTell(mailFlags{}, retire.RemindMail, func(context.Context) error { return errors.New("killed") }); err == nil {
		t.Error("it was not killed")
	}
	stored(0)
	w.tell(mailFlags{}, retire.RemindMail, nothing)
	stored(3)
	if out := w.tell(mailFlags{}, retire.RemindMail, nothing); !strings.Contains(out, "0 emails") || !strings.Contains(out, "3 addresses already received this email") {
		t.Errorf("the second time: %s", out)
	}
	stored(3)
	w.tell(mailFlags{}, retire.PostponeMail, nothing)
	stored(6)
	w.tell(mailFlags{Again: true}, retire.RemindMail, nothing)
	stored(9)
	if n := w.number(`SELECT count(*) FROM partner_mails AS m JOIN partners AS p ON p.id = m.partner_id
		WHERE (p.name = 'Tidewater') = (m.recipient LIKE '%tidewater%') AND (p.name = 'Tidewater' OR notice::text LIKE '%pk_all%') AND notice::text NOT LIKE '%pk_other%'`); n != 9 {
		t.Errorf("%d mails are as they should be", n)
	}

	w.Exec("UPDATE partner_mails SET sent_at = $1 WHERE recipient = 'owner@tidewater.example'", noon)
	st := w.read(StatusCmd{})
	var text strings.Builder
	if err := st.WriteTable(&text, true); err != nil || len(st.Mails) != 9 || !strings.Contains(text.String(), "owner@tidewater.example") || !strings.Contains(text.String(), "waiting") {
		t.Errorf("%v: %s", err, &text)
	}
	if st := w.read(StatusCmd{Key: "pk_other"}); len(st.Mails) != 3 || slices.ContainsFunc(st.Mails, func(m mailStatus) bool { return m.SentAt == nil }) {
		t.Errorf("of one partner: %+v", st.Mails)
	}
}

// TestMailsAreBounded: a mail names so many keys and operations, and counts the rest.
func TestMailsAreBounded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.admin("Northlight", "owner@northlight.example", "owner")
	w.Exec(`INSERT INTO api_keys (id, partner_id, name, prefix, digest, all_clients, scopes, networks, demo, created_at)
		SELECT gen_random_uuid(), p.id, E'key\n' || n, 'many' || n, n::text::bytea, true, '{read}', '{}', false, $1 FROM partners AS p, generate_series(1, 25) AS n
		WHERE p.name = 'Northlight'`, noon)
	w.Exec(`INSERT INTO v1_usage (key_id, day, surface, operation, calls, failures, first_at, last_at, user_agents)
		SELECT id, $1::date, 'v1', 'GET /v1/operation' || n, n, 0, $1::timestamptz, $1::timestamptz, '{}' FROM api_keys, generate_series(1, 20) AS n WHERE prefix LIKE 'many%'`, noon)
	w.announce()
	printed := w.tell(mailFlags{DryRun: true}, retire.AnnounceMail, func(context.Context) error { return nil })
	if n := strings.Count(printed, "other operations called: 5"); n != 20 || !strings.Contains(printed, "\nOther API keys that have called version 1: 5.\n") || strings.Contains(printed, "key\n") {
		t.Errorf("%d keys are cut:\n%s", n, printed)
	}
}
