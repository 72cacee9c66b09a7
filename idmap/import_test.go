package idmap

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
)

// cli and col are ids in v2's form.
func cli(n int) string { return kindInfos[Client].show(object(n)) }
func col(n int) string { return kindInfos[Collection].show(object(n)) }

// importCases start from clients a to e (objects 1 to 5) that hold 1 to 5, of
// which e was deleted, and the collection f (6), which holds 1.
var importCases = []struct {
	name    string
	file    string
	refused []string // as "line reason"
	moved   int
	want    string // the clients after it
}{
	{"nothing", "", nil, 0, "1=a 2=b 3=c 4=d 5=e✝"},
	{"header alone", "kind,number,id\n", nil, 0, "1=a 2=b 3=c 4=d 5=e✝"},
	{"moves", "kind,number,id\nclient,70," + cli(1) + "\n\nclient,60," + anyID(object(2)).UUID() + "\n",
		nil, 2, "1=a✝ 2=b✝ 3=c 4=d 5=e✝ 60=b 70=a"},
	{"as a spreadsheet writes it",
		"\ufeffKind,Number,ID\r\n\"client\", 70 ,\"" + strings.ToUpper(anyID(object(1)).UUID()) + "\"\r\n",
		nil, 1, "1=a✝ 2=b 3=c 4=d 5=e✝ 70=a"},
	{"its own number", "client,1," + cli(1), nil, 0, "1=a 2=b 3=c 4=d 5=e✝"},
	{"swap", "client,2," + cli(1) + "\nclient,1," + cli(2), nil, 2, "1=b 2=a 3=c 4=d 5=e✝"},
	{"chain",
		"client,2," + cli(1) + "\nclient,3," + cli(2) + "\nclient,9," + cli(3), nil, 3, "1=a✝ 2=a 3=b 4=d 5=e✝ 9=c"},
	{"the highest", "client,1073741824," + cli(1), nil, 1, "1=a✝ 2=b 3=c 4=d 5=e✝ 1073741824=a"},
	{"another kind's number",
		"client,9," + cli(1) + "\ncollection,9," + col(6), nil, 2, "1=a✝ 2=b 3=c 4=d 5=e✝ 9=a"},
	{"held by one that stays", "client,2," + cli(1), []string{"1 duplicate"}, 0, ""},
	{"held by one whose row keeps it",
		"client,2," + cli(1) + "\nclient,2," + cli(2), []string{"1 duplicate", "2 duplicate"}, 0, ""},
	{"a tombstone of another", "client,5," + cli(1), []string{"1 duplicate"}, 0, ""},
	{"number twice", "client,9," + cli(1) + "\nclient,9," + cli(2), []string{"2 duplicate"}, 0, ""},
	{"object twice", "client,8," + cli(1) + "\nclient,9," + cli(1), []string{"2 duplicate"}, 0, ""},
	{"row twice", "client,8," + cli(1) + "\nclient,8," + cli(1), []string{"2 duplicate"}, 0, ""},
	{"no such object", "client,9," + cli(90), []string{"1 orphan"}, 0, ""},
	{"a deleted object", "client,5," + cli(5), []string{"1 orphan"}, 0, ""},
	{"ranges",
		"client,0," + cli(1) + "\nclient,-1," + cli(2) + "\nclient,1073741825," + cli(3) +
			"\nclient,99999999999999999999," + cli(4),
		[]string{"1 out of range", "2 out of range", "3 out of range", "4 out of range"}, 0, ""},
	{"kinds",
		"user,9," + cli(1) + "\nClient,9," + cli(1) + "\nclient,9," + col(6) + "\nclient,10," + anyID(object(6)).UUID(),
		[]string{"1 wrong kind", "2 wrong kind", "3 wrong kind", "4 wrong kind"}, 0, ""},
	{"lines",
		"client,9\nclient,9," + cli(1) + ",\nclient,nine," + cli(1) + "\nclient,007," + cli(1) + "\nclient,9.0," + cli(1) +
			"\nclient,9,cli_9\nclient,9,\nclient,\"9\"x," + cli(1) + "\nclient,+9," + cli(1),
		[]string{"1 malformed line", "2 malformed line", "3 malformed line", "4 malformed line", "5 malformed line",
			"6 malformed line", "7 malformed line", "8 malformed line", "9 malformed line"}, 0, ""},
	{"good rows among bad",
		"client,60," + cli(1) + "\nclient,2," + cli(3) + "\nclient,61," + cli(91) + "\nbad\nclient,62," + cli(2),
		[]string{"3 orphan", "4 malformed line"}, 0, ""},
}

func TestImportCases(t *testing.T) {
	t.Parallel()
	const before = "1=a 2=b 3=c 4=d 5=e✝"
	address := databaseURL(t, true)
	for _, c := range importCases {
		t.Run(c.name, func(t *testing.T) {
			d := openURL(t, address)
			db := d.SQL()
			exec(t, db, `DELETE FROM clients; DELETE FROM collections; TRUNCATE id_registry;
				ALTER SEQUENCE id_registry_client RESTART; ALTER SEQUENCE id_registry_collection RESTART`)
			create(t, db, Client, 1, 2, 3, 4, 5)
			create(t, db, Collection, 6)
			remove(t, db, Client, 5)
			want, wantError := c.want, error(nil)
			if c.refused != nil {
				want, wantError = before, ErrRefused
			}
			check := func(what string, dryRun bool, moved int, want string) {
				report, err := Import(t.Context(), d, strings.NewReader(c.file), dryRun)
				var refused []string
				for _, r := range report.Refused {
					refused = append(refused, fmt.Sprintf("%d %s", r.Line, r.Reason))
				}
				if !errors.Is(err, wantError) || report.Moved != moved || !slices.Equal(refused, c.refused) {
					t.Errorf("%s: %+v, %v; want %d moved, refused %q", what, report, err, moved, c.refused)
				}
				if got := state(t, db, Client); got != want {
					t.Errorf("%s: registry is %s, want %s", what, got, want)
				}
			}
			next := list(t, db, `SELECT last_value::text FROM id_registry_client`)
			check("dry run", true, c.moved, before)
			if got := list(t, db, `SELECT last_value::text FROM id_registry_client`); !slices.Equal(got, next) {
				t.Errorf("a dry run moves the sequence from %s to %s", next, got)
			}
			check("import", false, c.moved, want)
			check("again", false, 0, want)
		})
	}
}

func TestImportTakesBackAnOwnTombstone(t *testing.T) {
	t.Parallel()
	db, r := registry(t)
	create(t, db, Client, 1)
	for _, c := range []struct{ number, want string }{
		{"50", "1=a✝ 50=a"}, {"1", "1=a 50=a✝"}, {"50", "1=a✝ 50=a"},
	} {
		if _, err := Import(t.Context(), r.db, strings.NewReader("client,"+c.number+","+cli(1)), false); err != nil {
			t.Fatal(err)
		}
		if got := state(t, db, Client); got != c.want {
			t.Errorf("registry is %s, want %s", got, c.want)
		}
	}
	create(t, db, Client, 2)
	if got, want := state(t, db, Client), "1=a✝ 50=a 51=b"; got != want {
		t.Errorf("registry is %s, want %s: allocation goes on above what was imported", got, want)
	}
}

func TestImportWaitsForCreatorsUnderWay(t *testing.T) {
	t.Parallel()
	db, r := registry(t)
	create(t, db, Client, 1)
	creator, err := db.Begin()
	if err != nil {
		t.Fatal(err)
	}
	defer creator.Rollback()
	create(t, creator, Client, 2)
	short, cancel := context.WithCancel(t.Context())
	imported := make(chan error)
	go func() {
		_, err := Import(short, r.db, strings.NewReader("client,2,"+cli(1)), false)
		imported <- err
	}()
	waiting(t, db)
	create(t, creator, Client, 3) // it has its lock: the import does not hold it up
	create(t, db, Client, 4)      // nor does it hold up another for as long as the first takes
	if err := creator.Commit(); err != nil {
		t.Fatal(err)
	}
	if err := <-imported; !errors.Is(err, ErrRefused) {
		t.Errorf("the import to a number that was drawn before: %v", err)
	}
	cancel()
	if _, err := Import(short, r.db, strings.NewReader(""), false); !errors.Is(err, context.Canceled) {
		t.Errorf("an import that was given up: %v", err)
	}
	if got, want := state(t, db, Client), "1=a 2=b 3=c 4=d"; got != want {
		t.Errorf("registry is %s, want %s", got, want)
	}
}

// waiting returns once a connection waits for a lock on the registry.
func waiting(t *testing.T, db *sql.DB) {
	t.Helper()
	for {
		var waits bool
		err := db.QueryRowContext(t.Context(), `SELECT EXISTS (SELECT FROM pg_locks
			WHERE relation = 'id_registry'::regclass AND NOT granted)`).Scan(&waits)
		if err != nil {
			t.Fatal(err)
		}
		if waits {
			return
		}
	}
}

func TestImportWhileCreatorsRun(t *testing.T) {
	t.Parallel()
	db, r := registry(t)
	db.SetMaxOpenConns(20)
	const old = 500
	exec(t, db, `INSERT INTO clients SELECT ('01000000-0000-0000-0000-' || lpad(to_hex(n), 12, '0'))::uuid, now()
		FROM generate_series(1, $1::int) n`, old)
	var work sync.WaitGroup
	for creator := range 10 {
		work.Go(func() { churn(t, db, 10_000+creator*1000, 40) })
	}
	// Each import turns the numbers of the old ones round and moves them up,
	// over those that are being allocated.
	for round := range 5 {
		var file strings.Builder
		for n := range old {
			fmt.Fprintf(&file, "client,%d,%s\n", 1_000_000*(round+1)+(n+round)%old, cli(n+1))
		}
		report, err := Import(t.Context(), r.db, strings.NewReader(file.String()), false)
		if err != nil || report.Moved != old {
			t.Errorf("round %d: %+v, %v", round, report, err)
		}
	}
	work.Wait()
	lives(t, db)
	if got := number(t, r, Client, 1); got != 5_000_004 {
		t.Errorf("the first client has number %d", got)
	}
	create(t, db, Client, 9_000)
	if got := number(t, r, Client, 9_000); got < 5_000_000+old {
		t.Errorf("the next client has number %d, not above the imported ones", got)
	}
}

// Whatever a file holds, each of its rows is taken or refused, once, and what
// is taken could be the registry's.
func FuzzImportFile(f *testing.F) {
	for _, c := range importCases {
		f.Add(c.file)
	}
	f.Add("client,\"9,x\nclient,9," + cli(1))
	f.Fuzz(func(t *testing.T, file string) {
		s, err := readSheet(strings.NewReader(file))
		if err != nil {
			t.Fatal(err)
		}
		if len(s.rows)+len(s.refused) != s.total {
			t.Errorf("%d rows: %d are taken, %d refused", s.total, len(s.rows), len(s.refused))
		}
		numbers, objects := make(map[NumberKey]bool), make(map[IDKey]bool)
		for _, r := range s.rows {
			numbers[NumberKey{r.kind, r.number}], objects[IDKey{r.kind, r.id}] = true, true
			if r.number < 1 || r.number > MaxNumber || r.line < 1 {
				t.Errorf("line %d is taken: %s %d", r.line, r.kind, r.number)
			}
		}
		if len(numbers) != len(s.rows) || len(objects) != len(s.rows) {
			t.Errorf("of %d rows %d numbers and %d objects differ", len(s.rows), len(numbers), len(objects))
		}
	})
}

// TestImportOverUnseenTombstones: what an import of objects made and deleted again
// is in no number's way. It keeps a tombstone, with another number.
func TestImportOverUnseenTombstones(t *testing.T) {
	t.Parallel()
	db, r := registry(t)
	create(t, db, Client, 1)
	tx, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	create(t, tx, Client, 5)
	remove(t, tx, Client, 5)
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	if got := state(t, db, Client); got != "1=a 2=e✝" {
		t.Fatal(got)
	}
	for range 2 {
		if report, err := Import(t.Context(), r.db, strings.NewReader("client,2,"+cli(1)), false); err != nil {
			t.Fatal(report, err)
		}
		if got := state(t, db, Client); got != "1=a✝ 2=a 3=e✝" {
			t.Error(got)
		}
	}
}

// TestImportOverGroups: the number of a group that is gone is free where no policy
// was for it, which is the only place where v1 shows a group.
func TestImportOverGroups(t *testing.T) {
	t.Parallel()
	db, r := registry(t)
	create(t, db, Group, 1, 2, 3)
	exec(t, db, `INSERT INTO policies VALUES (gen_random_uuid(), now(), 'user_container', $1::text::uuid)`,
		anyID(object(2)).UUID())
	remove(t, db, Group, 1)
	remove(t, db, Group, 2)
	of3 := anyID(object(3)).UUID()
	if _, err := Import(t.Context(), r.db, strings.NewReader("group,2,"+of3), false); !errors.Is(err, ErrRefused) {
		t.Errorf("the number of a group that a policy was for: %v", err)
	}
	if report, err := Import(t.Context(), r.db, strings.NewReader("group,1,"+of3), false); err != nil {
		t.Error(report, err)
	}
	if got := state(t, db, Group); got != "1=c 2=b✝ 3=c✝ 4=a✝" {
		t.Error(got)
	}
}

// TestImportOverTombstonesOfPartners: an imported number loses the partner of the deleted object that had it. The
// object's tombstone, which moves with the partner, keeps it.
func TestImportOverTombstonesOfPartners(t *testing.T) {
	t.Parallel()
	db, r := registry(t)
	create(t, db, Client, 1, 2)
	exec(t, db, `UPDATE clients SET partner_id = id`)
	create(t, db, Group, 1, 2)
	exec(t, db, `UPDATE groups SET client_id = id`)
	remove(t, db, Group, 1)

	owners := func() string {
		return strings.Join(list(t, db, `
			SELECT number || '=' || coalesce(chr(96 + get_byte(uuid_send(partner_id), 15)), '')
			FROM id_registry WHERE kind = 'group' ORDER BY number`), " ")
	}
	if got := owners(); got != "1=a 2=" {
		t.Fatal(got)
	}
	file := strings.NewReader("group,1," + anyID(object(2)).UUID())
	if report, err := Import(t.Context(), r.db, file, false); err != nil {
		t.Fatal(report, err)
	}
	if got := state(t, db, Group); got != "1=b 2=b✝ 3=a✝" {
		t.Error(got)
	}
	if got := owners(); got != "1= 2= 3=a" {
		t.Errorf("the partners are %s", got)
	}
	remove(t, db, Group, 2)
	if got := owners(); got != "1=b 2=b 3=a" {
		t.Errorf("after the deletion the partners are %s", got)
	}
}
