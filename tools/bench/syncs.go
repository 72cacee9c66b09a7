package main

import (
	"context"
	"encoding/json"
	"fmt"

	"partnerapi/cmd/internal/cli"
	"partnerapi/db"
	"partnerapi/db/dirsync"
	"partnerapi/domain"
	"partnerapi/platform/directory"
	"partnerapi/platform/directory/directorytest"
)

// This file measures how quickly a client is synced with a directory of as many
// accounts as the largest client has users.

// shown is what a child that is a directory says: how to connect to it.
type shown struct {
	Endpoints   directory.Endpoints
	Settings    json.RawMessage
	Credentials []byte
}

// directoryOf is a child that serves a directory of made-up accounts.
func directoryOf(open func(*directorytest.Directory) (shown, func())) life {
	return func(ctx context.Context, p params, say func(any)) {
		says, end := open(directorytest.New(accounts(p.Accounts)...))
		defer end()
		say(says)
		<-ctx.Done()
	}
}

func openMicrosoft(d *directorytest.Directory) (shown, func()) {
	m := directorytest.NewMicrosoft(d)
	return shown{m.Endpoints(), m.Settings(""), m.Credentials()}, m.Close
}

func openGoogle(d *directorytest.Directory) (shown, func()) {
	g := directorytest.NewGoogle(d)
	return shown{g.Endpoints(), g.Settings(""), g.Credentials()}, g.Close
}

// accounts are n accounts. Each but the first ones has a manager.
func accounts(n int) []directorytest.Account {
	list := make([]directorytest.Account, n)
	for i := range list {
		list[i] = directorytest.Account{
			ID: fmt.Sprintf("00000000-0000-4000-8000-%012d", i), Email: fmt.Sprintf("user%06d@bench.example", i),
			First: "User", Last: fmt.Sprint(i), Title: []string{"Clerk", "Accountant", "Director"}[i%3],
			Department: fmt.Sprint("Department ", i%40), OrgUnit: fmt.Sprint("/Unit ", i%40),
		}
		if i >= 20 {
			list[i].Manager = list[i/20].ID
		}
	}
	return list
}

// unsealed leaves the credentials of a directory of this machine as they are.
type unsealed struct{}

func (unsealed) Seal(text, _ []byte) ([]byte, error)   { return text, nil }
func (unsealed) Open(sealed, _ []byte) ([]byte, error) { return sealed, nil }

// syncClient is a child that syncs a client once, as the background work does.
func syncClient(ctx context.Context, d *db.DB, p params) domain.SyncRun {
	cli.RelaxGC()
	runner := directory.NewRunner(d, unsealed{}, directory.NewConnect(p.Directory.Endpoints, nil), warnings(), directory.Observer{})
	run := must(runner.Start(ctx, p.Client, false, nil))
	if run.Error != nil {
		fail("%s", *run.Error)
	}
	return run
}

// batch are the syncs of a client with a directory, whose server runs until the end.
type syncing struct {
	*bench
	of     domain.Directory
	params params
}

// first measures the first sync of a new client.
func (s *syncing) first(ctx context.Context) figure {
	server := s.start("directory-"+string(s.of), params{Accounts: s.data.users})
	s.ends = append(s.ends, server.stop)
	check(json.Unmarshal(server.said, &s.params.Directory))
	s.params.Client = s.emptyClient(ctx)
	at := s.params.Directory
	check(dirsync.Connect(ctx, s.data.db, s.params.Client, s.of, at.Settings, at.Credentials))

	got, peak := inChild[domain.SyncRun](s.bench, "sync", s.params)
	if n := got.Result.Created; n != s.data.users {
		fail("the first sync made %d users and not %d", n, s.data.users)
	}
	return took(got.Took).in(peak)
}

// unchanged measures a sync in which nothing has changed.
func (s *syncing) unchanged(context.Context) figure {
	got, peak := inChild[domain.SyncRun](s.bench, "sync", s.params)
	if n := got.Result.Created + got.Result.Updated + got.Result.Deactivated; n != 0 {
		fail("the sync of what has not changed changed %d users", n)
	}
	return took(got.Took).in(peak)
}

// emptyClient makes a client of a partner of its own: the seed's has those of the
// seed.
func (b *bench) emptyClient(ctx context.Context) domain.ClientID {
	name := "Bench " + db.NewID[domain.PartnerKind]().String()
	partner := must(b.data.db.InsertPartner(ctx, name))
	key := must(b.data.db.CreateKey(ctx, db.NewKey{Partner: partner, Name: name, Scopes: []domain.Scope{domain.Write}}))
	return ask[struct{ ID domain.ClientID }](b.service.address,
		request("POST", "/v2/clients", key, object{"name": "Synced client"})).ID
}
