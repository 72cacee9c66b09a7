package idmap

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
)

// exported is what Export writes.
func exported(t testing.TB, r *Registry) string {
	t.Helper()
	var file bytes.Buffer
	lines, err := Export(t.Context(), r.db, nil, &file, nil)
	if err != nil || lines != strings.Count(file.String(), "\n")-1 {
		t.Fatalf("%d lines and %v of\n%s", lines, err, &file)
	}
	return file.String()
}

// TestExport: by kind and number, in the form that Import reads, without
// tombstones.
func TestExport(t *testing.T) {
	t.Parallel()
	db, r := registry(t)
	if got := exported(t, r); got != "kind,number,id\n" {
		t.Errorf("an empty registry is %q", got)
	}
	create(t, db, Report, 1)
	create(t, db, Client, 1, 2, 3)
	create(t, db, Template, 1)
	remove(t, db, Client, 2)
	show := func(kind Kind, n int) string { return kindInfos[kind].show(object(n)) }
	file := "client,10," + show(Client, 1) + "\n"
	if _, err := Import(t.Context(), r.db, strings.NewReader(file), false); err != nil {
		t.Fatal(err)
	}
	want := "kind,number,id\nclient,3," + show(Client, 3) + "\n" + file +
		"report,1," + show(Report, 1) + "\ntemplate,1," + show(Template, 1) + "\n"
	if got := exported(t, r); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

// TestExportIsImportedUnchanged: an import of an export moves nothing, also where
// numbers are above those that an import gives; and into a registry that numbered
// the same objects otherwise, it brings the old numbers back.
func TestExportIsImportedUnchanged(t *testing.T) {
	t.Parallel()
	db, r := registry(t)
	exec(t, db, `INSERT INTO clients SELECT gen_random_uuid(), now() FROM generate_series(1, 5000)`)
	exec(t, db, `INSERT INTO reports SELECT gen_random_uuid(), now() FROM generate_series(1, 500)`)
	exec(t, db, `DELETE FROM clients WHERE id IN (SELECT id FROM id_registry WHERE number % 7 = 0)`)
	exec(t, db, fmt.Sprintf(`SELECT setval('id_registry_group', %d)`, maxImported))
	create(t, db, Group, 1)
	before := exported(t, r)
	report, err := Import(t.Context(), r.db, strings.NewReader(before), false)
	if err != nil || report.Moved != 0 || report.Unchanged != strings.Count(before, "\n")-1 {
		t.Fatalf("%+v, %v", report, err)
	}
	if after := exported(t, r); after != before {
		t.Error("an import of the export changed the export")
	}

	// An object that lost such a number cannot be given it again.
	over := fmt.Sprintf("group,%d,%s\n", maxImported+1, kindInfos[Group].show(object(2)))
	create(t, db, Group, 2)
	report, err = Import(t.Context(), r.db, strings.NewReader(over), false)
	if !errors.Is(err, ErrRefused) || len(report.Refused) != 1 || report.Refused[0].Reason != OutOfRange {
		t.Errorf("%+v, %v", report, err)
	}

	// The same objects, made anew in another order.
	other, renumbered := registry(t)
	for _, table := range []string{"clients", "reports"} {
		ids := list(t, db, "SELECT id::text FROM "+table+" ORDER BY md5(id::text)")
		exec(t, other, "INSERT INTO "+table+" SELECT id::uuid, now() FROM unnest($1::text[]) AS id", ids)
	}
	old, _, _ := strings.Cut(before, "group,")
	_, reports, _ := strings.Cut(before, "\nreport,")
	old += "report," + reports
	if _, err := Import(t.Context(), renumbered.db, strings.NewReader(old), false); err != nil {
		t.Fatal(err)
	}
	if got := exported(t, renumbered); got != old {
		t.Error("the import into another registry is not what was exported")
	}
}

// TestExportIsOneSnapshot: what changes while an export runs is in it whole or not
// at all, and progress ends at the total.
func TestExportIsOneSnapshot(t *testing.T) {
	t.Parallel()
	db, r := registry(t)
	exec(t, db, `INSERT INTO clients SELECT gen_random_uuid(), now() FROM generate_series(1, 30000)`)
	before := exported(t, r)
	var file bytes.Buffer
	var last [2]int
	lines, err := Export(t.Context(), r.db, nil, &file, func(done, total int) {
		if done == progressEvery {
			exec(t, db, `DELETE FROM clients`)
			create(t, db, Report, 1)
		}
		last = [2]int{done, total}
	})
	if err != nil || file.String() != before || last != [2]int{lines, lines} {
		t.Errorf("%d lines, progress %v, %v", lines, last, err)
	}
	if got := exported(t, r); !strings.HasPrefix(got, "kind,number,id\nreport,1,") || strings.Count(got, "\n") != 2 {
		t.Errorf("afterwards it is %.200s", got)
	}
}

// TestExportFails: a writer that fails and a context that ends are its errors.
func TestExportFails(t *testing.T) {
	t.Parallel()
	db, r := registry(t)
	create(t, db, Client, 1)
	read, write := io.Pipe()
	read.Close()
	if _, err := Export(t.Context(), r.db, nil, write, nil); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("a closed pipe is %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Export(ctx, r.db, nil, io.Discard, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("a canceled context is %v", err)
	}
}
