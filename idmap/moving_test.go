package idmap

import (
	"bytes"
	"database/sql"
	"errors"
	"strings"
	"testing"

	"partnerapi/domain"
)

// exportedFor returns what Export writes for partners.
func exportedFor(t *testing.T, r *Registry, partners ...domain.PartnerID) string {
	t.Helper()
	var file bytes.Buffer
	if _, err := Export(t.Context(), r.db, partners, &file, nil); err != nil {
		t.Fatal(err)
	}
	return file.String()
}

// addPolicy inserts a policy of client 1 for a collection.
func addPolicy(t *testing.T, on execer, n, collection int) {
	t.Helper()
	exec(t, on, `INSERT INTO policies (id, created_at, scope_type, scope_id, client_id)
		VALUES ($1::text::uuid, now(), 'collection', $2::text::uuid, $3::text::uuid)`,
		anyID(object(n)).UUID(), anyID(object(collection)).UUID(), anyID(object(1)).UUID())
}

// checkState verifies the state of collections.
func checkState(t *testing.T, db *sql.DB, want string) {
	t.Helper()
	if got := state(t, db, Collection); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestDeletedScopeMoves verifies that the number of a deleted collection that a policy names is exported and imported:
// in another installation the collection has another number, which the file may give to another object.
func TestDeletedScopeMoves(t *testing.T) {
	t.Parallel()
	from, fromRegistry := registry(t)
	to, toRegistry := registry(t)
	for _, db := range []*sql.DB{from, to} {
		create(t, db, Client, 1)
	}
	create(t, from, Collection, 1, 2, 3, 4) // 4 is deleted, and no policy names it
	addPolicy(t, from, 1, 1)
	remove(t, from, Collection, 1)
	remove(t, from, Collection, 4)
	create(t, to, Collection, 3, 2)
	addPolicy(t, to, 1, 1)
	checkState(t, to, "1=c 2=b 3=a✝")

	file := exportedFor(t, fromRegistry)
	if n := strings.Count(file, "\ncollection,"); n != 3 || !strings.Contains(file, "\ncollection,1,"+col(1)+"\n") {
		t.Errorf("got %d collections:\n%s", n, file)
	}
	for again := range 2 {
		report, err := Import(t.Context(), toRegistry.db, strings.NewReader(file), false)
		if err != nil || again == 1 && report.Moved != 0 {
			t.Fatalf("import %d: %+v, %v", again, report, err)
		}
		checkState(t, to, "1=a✝ 2=b 3=c")
	}
	if got := number(t, toRegistry, Collection, 1); got != 1 {
		t.Errorf("the deleted collection is %d", got)
	}
	if got := exportedFor(t, toRegistry); got != file {
		t.Errorf("got\n%swant\n%s", got, file)
	}
}

// TestDeletedScopeStays verifies that a file that does not move a deleted collection cannot give its number to another
// object, and that a deleted collection that no policy names is an orphan.
func TestDeletedScopeStays(t *testing.T) {
	t.Parallel()
	db, r := registry(t)
	create(t, db, Client, 1)
	create(t, db, Collection, 1, 2, 3)
	addPolicy(t, db, 1, 1)
	remove(t, db, Collection, 1)
	remove(t, db, Collection, 3)
	for file, want := range map[string]Reason{
		"collection,1," + col(2):                              Duplicate,
		"collection,3," + col(2) + "\ncollection,9," + col(1): Duplicate, // 3 was another object's
		"collection,9," + col(3):                              Orphan,
	} {
		report, err := Import(t.Context(), r.db, strings.NewReader(file), false)
		if !errors.Is(err, ErrRefused) || len(report.Refused) != 1 || report.Refused[0].Reason != want {
			t.Errorf("%s: got %+v, %v, want %s", file, report, err, want)
		}
	}
	checkState(t, db, "1=a✝ 2=b 3=c✝")
	// A number that the deleted collection had before its last one is not moved away.
	if _, err := Import(t.Context(), r.db, strings.NewReader("collection,9,"+col(1)), false); err != nil {
		t.Fatal(err)
	}
	checkState(t, db, "1=a✝ 2=b 3=c✝ 9=a✝")
	report, err := Import(t.Context(), r.db, strings.NewReader("collection,1,"+col(2)+"\ncollection,10,"+col(1)), false)
	if !errors.Is(err, ErrRefused) || len(report.Refused) != 1 || report.Refused[0].Reason != Duplicate {
		t.Errorf("got %+v, %v", report, err)
	}
}

// TestExportOfPartners verifies that a file for another installation has the objects of the partners, without reports,
// and imported templates by their names.
func TestExportOfPartners(t *testing.T) {
	t.Parallel()
	db, r := registry(t)
	partners := []domain.PartnerID{{1}, {2}}
	for n, partner := range partners {
		client := anyID(object(n + 1)).UUID()
		exec(t, db, `INSERT INTO clients VALUES ($1::text::uuid, now(), $2::text::uuid)`, client, partner.UUID())
		for _, table := range []string{"collections", "groups", "reports"} {
			exec(t, db, `INSERT INTO `+table+` (id, created_at, client_id) VALUES ($1::text::uuid, now(), $1::text::uuid)`, client)
		}
	}
	create(t, db, Template, 1, 2)
	exec(t, db, `UPDATE phishing_templates SET own = false, name = 'Parcel: late, "again"', language = 'fr-ca' WHERE id = $1::text::uuid`,
		anyID(object(2)).UUID())
	addPolicy(t, db, 1, 5)
	show := func(kind Kind, n int) string { return kindInfos[kind].show(object(n)) }
	want := "kind,number,id\nclient,1," + show(Client, 1) + "\ncollection,1," + show(Collection, 1) +
		"\ncollection,3," + show(Collection, 5) + "\ngroup,1," + show(Group, 1) + "\npolicy,1," + show(Policy, 1) +
		"\ntemplate,1," + show(Template, 1) + "\ntemplate,2,\"fr-ca:Parcel: late, \"\"again\"\"\"\n"
	file := exportedFor(t, r, partners[0])
	if file != want {
		t.Errorf("got\n%swant\n%s", file, want)
	}
	if n := strings.Count(exportedFor(t, r, partners...), "\n"); n != 11 {
		t.Errorf("got %d lines for both partners", n)
	}

	file = strings.Replace(file, "template,2,", "template,70,", 1) + "template,71,fr-ca:Nothing\n"
	report, err := Import(t.Context(), r.db, strings.NewReader(file), false)
	if !errors.Is(err, ErrRefused) || len(report.Refused) != 1 || report.Refused[0].Reason != Orphan {
		t.Errorf("got %+v, %v", report, err)
	}
	file, _, _ = strings.Cut(file, "template,71,")
	if _, err := Import(t.Context(), r.db, strings.NewReader(file), false); err != nil {
		t.Fatal(err)
	}
	if got := number(t, r, Template, 2); got != 70 {
		t.Errorf("the imported template is %d", got)
	}
}
