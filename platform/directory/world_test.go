package directory_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"partnerapi/db/dbtest"
	"partnerapi/db/dirsync"
	"partnerapi/domain"
	"partnerapi/platform/directory"
	"partnerapi/v2/v2test"
)

// plain is a sealer that shows what it seals.
type plain struct{}

func (plain) Seal(text, context []byte) ([]byte, error) { return append(context, text...), nil }

func (plain) Open(sealed, context []byte) ([]byte, error) {
	if text, ok := bytes.CutPrefix(sealed, context); ok {
		return text, nil
	}
	return nil, errors.New("sealed for another row")
}

// world is a service with a client whose directory is scripted.
type world struct {
	*v2test.Harness
	t      testing.TB
	tenant v2test.Tenant
	client domain.ClientID
	runner *directory.Runner
	// sources are the directories by their settings' domain.
	sources map[string]directory.Source
}

func newWorld(t testing.TB) *world {
	w := &world{Harness: v2test.New(t, v2test.Options{Limits: v2test.Unlimited}), t: t, sources: map[string]directory.Source{}}
	w.tenant = w.Tenant("Partner")
	w.client = w.Client(w.tenant, "Client").ID
	w.runner = w.newRunner(directory.Observer{})
	return w
}

func (w *world) newRunner(observer directory.Observer) *directory.Runner {
	return directory.NewRunner(w.DB, plain{}, func(
		_ context.Context, _ string, settings json.RawMessage, credentials []byte,
	) (directory.Source, error) {
		var s directory.GoogleSettings
		if err := json.Unmarshal(settings, &s); err != nil {
			return nil, err
		}
		if string(credentials) != "secret" {
			return nil, fmt.Errorf("the credentials are %q", credentials)
		}
		return w.sources[s.Domain], nil
	}, slog.New(slog.DiscardHandler), observer)
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// connect gives a client a directory.
func (w *world) connect(client domain.ClientID, s directory.Source) {
	w.t.Helper()
	w.sources[client.String()] = s
	sealed, err := plain{}.Seal([]byte("secret"), directory.SealContext(client))
	w.must(err)
	settings, err := json.Marshal(directory.GoogleSettings{Domain: client.String()})
	w.must(err)
	w.must(dirsync.Connect(context.Background(), w.DB, client, domain.Microsoft, settings, sealed))
}

// sync runs a sync of the client by command, and wants it to complete.
func (w *world) sync() domain.SyncRun {
	w.t.Helper()
	run := w.try(false)
	if run.Status != domain.SyncCompleted {
		w.t.Fatalf("the run is %s: %s", run.Status, *run.Error)
	}
	return run
}

// try is sync for a run that may fail.
func (w *world) try(force bool) domain.SyncRun {
	w.t.Helper()
	run, err := w.runner.Start(context.Background(), w.client, force, nil)
	w.must(err)
	return run
}

// users lists the client's users, a line each in the order of their addresses.
func (w *world) users() []string {
	w.t.Helper()
	var lines string
	w.must(w.DB.SQL().QueryRowContext(context.Background(), `
		SELECT coalesce(string_agg(concat_ws('|', u.email, u.first_name, u.last_name, coalesce(u.department, '-'),
			coalesce(u.job_title, '-'), coalesce(u.manager_email, '-'), u.status, u.role, u.preferred_language, u.source, g.name),
			E'\n' ORDER BY u.email), '')
		FROM users AS u LEFT JOIN groups AS g ON g.client_id = u.client_id AND g.id = u.group_id
		WHERE u.client_id = $1`, w.client).Scan(&lines))
	return strings.FieldsFunc(lines, func(r rune) bool { return r == '\n' })
}

// active leaves the lines of active users.
func active(lines []string) []string {
	return slices.DeleteFunc(lines, func(line string) bool { return !strings.Contains(line, "|active|") })
}

func (w *world) wantUsers(want ...string) {
	w.t.Helper()
	if got := w.users(); !slices.Equal(got, want) {
		w.t.Fatalf("the users are\n%s\nnot\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func wantCounts(t testing.TB, run domain.SyncRun, want domain.SyncCounts) {
	t.Helper()
	if run.SyncCounts != want {
		t.Fatalf("the run counts %+v, not %+v", run.SyncCounts, want)
	}
}

// check holds what is kept of users against a recount.
func (w *world) check() {
	w.t.Helper()
	for what, query := range map[string]string{
		"counters of users": `SELECT count(*) FROM clients AS c WHERE (users_active, users_inactive) <> (
			SELECT count(*) FILTER (WHERE status = 'active'), count(*) FILTER (WHERE status = 'inactive') FROM users WHERE client_id = c.id)`,
		"users without a score": "SELECT count(*) FROM users AS u WHERE NOT EXISTS (SELECT 1 FROM user_risks AS r WHERE r.user_id = u.id)",
		"users without the program": `SELECT count(*) FROM users AS u WHERE (SELECT count(*) FROM assignments AS a WHERE a.user_id = u.id)
			<> (SELECT count(*) FROM program_courses AS p WHERE p.client_id = u.client_id)`,
		"users whose next course is wrong": `SELECT count(*) FROM users AS u WHERE next_due_on IS DISTINCT FROM
			(SELECT min(due_on) FROM assignments AS a WHERE a.user_id = u.id AND completed_at IS NULL)`,
		"staged accounts left": "SELECT count(*) FROM sync_accounts AS s WHERE NOT EXISTS (SELECT 1 FROM sync_runs AS r WHERE r.client_id = s.client_id AND r.status = 'running')",
		"events of creation":   "SELECT abs((SELECT count(*) FROM users) - (SELECT count(*) FROM events WHERE type = 'user.created'))",
	} {
		if n := w.Number(query); n != 0 {
			w.t.Errorf("%s: %d", what, n)
		}
	}
}

// everyLeaseEnds moves the clock past all leases: a process that died held them.
func (w *world) everyLeaseEnds() { w.Clock.Advance(2 * time.Minute) }

// claim takes the run that waits.
func (w *world) claim() *dirsync.Lease {
	w.t.Helper()
	lease, err := dirsync.Claim(context.Background(), w.DB, time.Minute)
	w.must(err)
	if lease == nil {
		w.t.Fatal("no run waits")
	}
	return lease
}

func TestMain(m *testing.M) { dbtest.Main(m) }

// account is an account of a scripted directory.
type account struct {
	email, first, last, department, title, manager, group string
	language                                              domain.Language
	disabled, guest                                       bool
}

// state is what a directory holds, by object id.
type state map[string]account

// scripted is a directory in memory. It returns deltas from a position on, or, where
// it is whole, everything each time.
type scripted struct {
	whole  bool
	page   int     // accounts on a page
	states []state // the history, the last being the current one
	// before, if not nil, is called before each page; an error is the source's.
	before func(position string) error
	reads  []string // the positions that pages were read from
	// told is what is returned between two states.
	told map[[2]int][]domain.DirectoryAccount
}

func newScripted(whole bool, first state) *scripted {
	return &scripted{whole: whole, page: 2, states: []state{first}, told: map[[2]int][]domain.DirectoryAccount{}}
}

// now makes the directory hold something else.
func (s *scripted) now(next state) { s.states = append(s.states, maps.Clone(next)) }

// change makes the directory hold what it does with some accounts changed; nil
// removes one.
func (s *scripted) change(changes map[string]*account) {
	next := maps.Clone(s.states[len(s.states)-1])
	for id, a := range changes {
		if a == nil {
			delete(next, id)
		} else {
			next[id] = *a
		}
	}
	s.now(next)
}

// Read reads from positions of the form from:to:offset; from is -1 for everything.
func (s *scripted) Read(_ context.Context, position string) iter.Seq2[directory.Page, error] {
	return func(yield func(directory.Page, error) bool) {
		for {
			if s.before != nil {
				if err := s.before(position); err != nil {
					yield(directory.Page{}, err)
					return
				}
			}
			s.reads = append(s.reads, position)
			page := s.at(position)
			if !yield(page, nil) || page.Last {
				return
			}
			position = page.Next
		}
	}
}

func (s *scripted) at(position string) directory.Page {
	from, to, offset := -1, len(s.states)-1, 0
	if position != "" {
		parts := strings.Split(position, ":")
		from, _ = strconv.Atoi(parts[0])
		offset, _ = strconv.Atoi(parts[2])
		if parts[1] != "" {
			to, _ = strconv.Atoi(parts[1])
		}
	}
	all, known := s.told[[2]int{from, to}]
	if !known {
		all = s.between(from, to)
		s.told[[2]int{from, to}] = all
	}
	end := min(offset+s.page, len(all))
	p := directory.Page{Accounts: all[offset:end], Last: end == len(all), Whole: from < 0}
	switch {
	case !p.Last:
		p.Next = fmt.Sprintf("%d:%d:%d", from, to, end)
	case !s.whole:
		p.Next = fmt.Sprintf("%d::0", to)
	}
	return p
}

// between lists what changed between two states.
func (s *scripted) between(from, to int) (list []domain.DirectoryAccount) {
	now, before := s.states[to], state{}
	if from >= 0 {
		before = s.states[from]
	}
	ids := slices.Collect(maps.Keys(now))
	for id := range before {
		if _, stays := now[id]; !stays {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	for _, id := range ids {
		a, here := now[id]
		old, known := before[id]
		switch {
		case !here:
			list = append(list, domain.DirectoryAccount{ObjectID: id, Removed: true})
		case !known:
			list = append(list, a.told(id, nil))
		case a != old:
			list = append(list, a.told(id, &old))
		}
	}
	return list
}

// told is the account as the directory returns it: with all of its properties, or
// with those that are not as before.
func (a account) told(id string, before *account) domain.DirectoryAccount {
	out := domain.DirectoryAccount{ObjectID: id}
	tell := func(now string, old func(*account) string) domain.Optional[string] {
		return domain.Optional[string]{Given: before == nil || old(before) != now, Value: now}
	}
	out.Email = tell(a.email, func(o *account) string { return o.email })
	out.First = tell(a.first, func(o *account) string { return o.first })
	out.Last = tell(a.last, func(o *account) string { return o.last })
	out.Department = tell(a.department, func(o *account) string { return o.department })
	out.JobTitle = tell(a.title, func(o *account) string { return o.title })
	out.ManagerEmail = tell(a.manager, func(o *account) string { return o.manager })
	out.Group = tell(a.group, func(o *account) string { return o.group })
	if before == nil || before.guest != a.guest {
		out.Guest = domain.Give(a.guest)
	}
	if before == nil || before.disabled != a.disabled {
		out.Enabled = domain.Give(!a.disabled)
	}
	if before == nil || before.language != a.language {
		out.Language = domain.Give(a.language)
	}
	return out
}
