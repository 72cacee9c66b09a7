package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"partnerapi/cmd/internal/gc"
	"partnerapi/db"
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
func directoryOf(open func(*directorytest.Directory) (shown, func())) func(context.Context, params, say) error {
	return func(ctx context.Context, p params, say say) error {
		says, end := open(directorytest.New(accounts(p.Accounts)...))
		defer end()
		if err := say(says); err != nil {
			return err
		}
		<-ctx.Done()
		return nil
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
func syncClient(ctx context.Context, d *db.DB, p params) (run domain.SyncRun, err error) {
	gc.Relax()
	runner := directory.NewRunner(d, unsealed{}, directory.NewConnect(p.Directory.Endpoints, nil), warnings())
	if run, err = runner.Start(ctx, p.Client, false, nil); err == nil && run.Error != nil {
		err = errors.New(*run.Error)
	}
	return run, err
}

// syncing are the syncs of a client with a directory, whose server runs from the first
// to the last.
type syncing struct {
	*bench
	of     domain.Directory
	server *child
	params params
}

// first measures the first sync of a new client.
func (s *syncing) first(ctx context.Context) (f figure, err error) {
	if s.server, err = s.start("directory-"+string(s.of), params{Accounts: s.data.users}); err != nil {
		return f, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.server.stop())
		}
	}()
	if err := json.Unmarshal(s.server.said, &s.params.Directory); err != nil {
		return f, err
	}
	if s.params.Client, err = s.emptyClient(ctx); err != nil {
		return f, err
	}
	at := s.params.Directory
	if err := s.data.db.ConnectDirectory(ctx, s.params.Client, s.of, at.Settings, at.Credentials); err != nil {
		return f, err
	}
	got, peak, err := inChild[domain.SyncRun](s.bench, "sync", s.params)
	if n := got.Result.Created; err == nil && n != s.data.users {
		err = fmt.Errorf("the first sync made %d users and not %d", n, s.data.users)
	}
	return took(got.Took).in(peak), err
}

// unchanged measures a sync in which nothing has changed.
func (s *syncing) unchanged(context.Context) (figure, error) {
	got, peak, err := inChild[domain.SyncRun](s.bench, "sync", s.params)
	if n := got.Result.Created + got.Result.Updated + got.Result.Deactivated; err == nil && n != 0 {
		err = fmt.Errorf("the sync of what has not changed changed %d users", n)
	}
	return took(got.Took).in(peak), errors.Join(err, s.server.stop())
}

// emptyClient makes a client of a partner of its own: the seed's has those of the
// seed.
func (b *bench) emptyClient(ctx context.Context) (id domain.ClientID, err error) {
	name := "Bench " + db.NewID[domain.PartnerKind]().String()
	partner, err := b.data.db.InsertPartner(ctx, name)
	if err != nil {
		return id, err
	}
	key, err := b.data.db.CreateKey(ctx, db.NewKey{Partner: partner, Name: name, Scopes: []domain.Scope{domain.Write}})
	if err != nil {
		return id, err
	}
	var made struct{ ID domain.ClientID }
	err = ask(b.service.address, request("POST", "/v2/clients", key, object{"name": "Synced client"}), &made)
	return made.ID, err
}
