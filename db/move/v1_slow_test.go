//go:build slow

package move

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"partnerapi/db/pg"
	"partnerapi/domain"
	"partnerapi/idmap"
)

// TestNumbersAreNotImportedWithinAFreeze: numbers that are brought while a partner is handed
// over would stay behind, so they are refused.
func TestNumbersAreNotImportedWithinAFreeze(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	client, err := pg.One[string](t.Context(), w.From, "find a client", pg.SQL("SELECT id::text FROM clients WHERE partner_id = ? LIMIT 1", w.Partner))
	w.must(err)
	bring := func(number string) error {
		_, err := idmap.Import(t.Context(), w.From.DB, strings.NewReader("client,"+number+","+client), false,
			func(ctx context.Context) error {
				return w.From.AuditOfAny(ctx, domain.AuditEntry{Operation: "idmap import", Prefix: domain.CommandActor})
			})
		return err
	}
	w.must(bring("1001"))
	w.before = w.contents(w.From, w.Partner)
	w.points["frozen"] = func() {
		if err := bring("1002"); !domain.IsCode(err, domain.Unavailable) {
			t.Errorf("within a freeze: %v", err)
		}
	}
	w.must(w.Run(t.Context()))
	w.moved()
}

// TestNumbersOfDeletedObjectsMove: they come along as tombstones, also those that an object
// had before its last one.
func TestNumbersOfDeletedObjectsMove(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	client, other := w.clientOf(2), value[string](w, w.From, "SELECT id::text FROM clients WHERE partner_id = $1 LIMIT 1", w.other.UUID())
	for n, of := range []string{client, other} {
		w.exec(w.From, "INSERT INTO collections (client_id, id, name, name_key, description, created_by, created_at, updated_at) "+
			"SELECT $1, uuid_v7(now()), $2, $2, '', created_by, now(), now() FROM collections LIMIT 1", of, fmt.Sprintf("gone %d", n))
	}
	id := value[string](w, w.From, "SELECT id::text FROM collections WHERE name = 'gone 0'")
	_, err := idmap.Import(t.Context(), w.From.DB, strings.NewReader("collection,5001,"+id), false,
		func(context.Context) error { return nil })
	w.must(err)
	w.exec(w.From, "DELETE FROM collections WHERE name IN ('gone 0', 'gone 1')")
	w.before, w.kept = w.contents(w.From, w.Partner), w.contents(w.From, w.other)

	w.must(w.Run(t.Context()))
	w.moved()
	const tombstones = "SELECT string_agg(number::text, ' ' ORDER BY number) FROM id_registry WHERE retired_at IS NOT NULL AND kind = 'collection' AND id = $1"
	if a, b := value[string](w, w.From, tombstones, id), value[string](w, w.To, tombstones, id); a != b || !strings.Contains(a, "5001") || !strings.Contains(a, " ") {
		t.Errorf("the tombstones are %s, and in the new cell %s", a, b)
	}
}

// TestImportedNumberOfADeletedGroupStays: once an import has given the number of a deleted group to a group of another
// partner, the number does not move with the partner of the deleted one. The tombstone does.
func TestImportedNumberOfADeletedGroupStays(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.exec(w.From, `INSERT INTO groups (client_id, id, name, manual, created_at)
		VALUES ($1, uuid_v7(now()), 'gone', false, now())`, w.clientOf(2))
	gone := value[string](w, w.From, "SELECT id::text FROM groups WHERE name = 'gone'")
	number := value[int](w, w.From, "SELECT number FROM id_registry WHERE id = $1", gone)
	w.exec(w.From, "DELETE FROM groups WHERE id = $1", gone)
	stays := value[string](w, w.From, `SELECT g.id::text FROM groups AS g JOIN clients AS c ON c.id = g.client_id
		WHERE c.partner_id = $1 ORDER BY g.id LIMIT 1`, w.other.UUID())
	_, err := idmap.Import(t.Context(), w.From.DB, strings.NewReader(fmt.Sprintf("group,%d,%s", number, stays)), false)
	w.must(err)
	w.before, w.kept = w.contents(w.From, w.Partner), w.contents(w.From, w.other)

	w.must(w.Run(t.Context()))
	w.moved()
	const numbers = "SELECT count(*) FROM id_registry WHERE id = $1"
	if n := value[int](w, w.To, numbers, stays); n != 0 {
		t.Errorf("%d numbers of the other partner's group moved", n)
	}
	if n := value[int](w, w.To, numbers, gone); n != 1 {
		t.Errorf("%d tombstones of the deleted group moved", n)
	}
}

// TestPhasesMove: the settings of a key keep their order, in which the last one counts, and its
// rehearsal comes along; a key that came is no new one, and has no v1 only where it had none
// before.
func TestPhasesMove(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.exec(w.To, "UPDATE v1_state SET new_keys_off = true")
	const add = "INSERT INTO v1_phases (id, key_id, phase, until, set_at) OVERRIDING SYSTEM VALUE SELECT $1, id, $2, $3, now() FROM api_keys WHERE prefix = 'pk_demo_all'"
	w.exec(w.From, add, 200, "read_only", "2099-01-01")
	w.exec(w.From, add, 100, "off", nil)
	w.exec(w.From, "INSERT INTO v1_rehearsals (key_id, started_at, ended_at) SELECT id, now(), now() + interval '1 hour' FROM api_keys WHERE prefix = 'pk_demo_all'")
	w.before = w.contents(w.From, w.Partner)
	w.must(w.Run(t.Context()))
	w.moved()
	const phases = "SELECT string_agg(k.prefix || ' ' || p.phase, ', ' ORDER BY p.id) FROM v1_phases AS p JOIN api_keys AS k ON k.id = p.key_id"
	if got := value[string](w, w.To, phases); got != "pk_demo_all off, pk_demo_all read_only" {
		t.Errorf("the phases in the new cell are %s", got)
	}
	if n := value[int](w, w.To, "SELECT count(*) FROM v1_rehearsals"); n != 1 {
		t.Errorf("%d rehearsals came", n)
	}
}

// TestAnnouncementMoves: what is announced of version 1's end is told in the new cell too,
// and another announcement there is a reason not to move.
func TestAnnouncementMoves(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const announce = "UPDATE v1_state SET announced_at = $1::timestamptz, sunset_at = $1::timestamptz + interval '2 years'"
	const announced = "SELECT coalesce(announced_at::text, '') || ' ' || coalesce(sunset_at::text, '') FROM v1_state"
	refused := func(words string) {
		t.Helper()
		if err := w.Run(t.Context()); err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("the move does not say %q: %v", words, err)
		}
	}
	w.exec(w.To, announce, "2026-01-01")
	refused("but not in this cell")
	w.exec(w.From, announce, "2026-02-01")
	refused("differs from this cell's")
	w.exec(w.To, "UPDATE v1_state SET announced_at = NULL, sunset_at = NULL, ended_at = now()")
	refused("has ended in the new cell")
	w.exec(w.To, "UPDATE v1_state SET ended_at = NULL")
	w.unmoved()

	notes, err := w.DryRun(t.Context())
	if w.must(err); len(notes) != 1 || !strings.Contains(notes[0], "adopts this cell's") {
		t.Errorf("the notes are %q", notes)
	}
	w.must(w.Run(t.Context()))
	w.moved()
	if a, b := value[string](w, w.From, announced), value[string](w, w.To, announced); a != b || a == " " {
		t.Errorf("announced is %q, and in the new cell %q", a, b)
	}
}
