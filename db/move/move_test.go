package move

import (
	"slices"
	"strings"
	"testing"

	"partnerapi/db/pg"
)

// staying are the tables without rows of partners, which no move touches.
var staying = []string{
	"breaches", "cell", "clock_hold", "courses", "daily_refreshes", "default_program", "deleted_webhooks", "event_head", "framework_courses",
	"import_lines", "monthly_mailings", "moved_keys", "moves", "periodic_jobs", "phishing_templates", "recounts", "resting_clients",
	"schema_migrations", "secrets", "signals",
	// Version 1's own.
	"idmap_import", "idmap_migrations", "v1_brownouts", "v1_postponements", "v1_refusals", "v1_state", "v1_usage_flushes",
}

// TestTables: every table of the database is moved, or is known to stay.
func TestTables(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	names, err := pg.All[string](t.Context(), w.From, "list tables", pg.SQL("SELECT tablename::text FROM pg_tables WHERE schemaname = 'public'"))
	w.must(err)
	for _, name := range names {
		moved := slices.ContainsFunc(tables, func(t table) bool { return t.name == name })
		if moved == slices.Contains(staying, name) {
			t.Errorf("%s: is it moved (%v), or does it stay?", name, moved)
		}
	}
}

// TestCheck: what keeps a partner from being moved is said before anything is copied.
func TestCheck(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.exec(w.To, "INSERT INTO partners (id, name, name_key, created_at) SELECT uuid_v7(now()), $1, $2, now()",
		value[string](w, w.From, "SELECT name FROM partners WHERE id = $1", w.Partner.UUID()),
		value[string](w, w.From, "SELECT name_key FROM partners WHERE id = $1", w.Partner.UUID()))
	w.exec(w.To, "DELETE FROM breaches")
	err := w.Run(t.Context())
	for _, part := range []string{"another partner with this name", "of the kind breach"} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%v does not say %q", err, part)
		}
	}
	w.exec(w.To, "DELETE FROM partners")
	same := *w.Move
	same.To = same.From
	if err := same.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "both databases belong to cell 00") {
		t.Errorf("to itself: %v", err)
	}
	if err := w.Cancel(t.Context()); err == nil || !strings.Contains(err.Error(), "not being moved") {
		t.Errorf("cancel without a move: %v", err)
	}
	w.unmoved()
}
