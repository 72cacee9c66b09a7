package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"partnerapi/cmd/internal/gc"
	"partnerapi/db"
	"partnerapi/domain"
	"partnerapi/platform/directory"
	"partnerapi/platform/directory/directorytest"
)

// This file measures how quickly a client is synced with a directory of as many
// accounts as the largest client has users.

const (
	envAccounts  = "BENCH_ACCOUNTS"
	envDirectory = "BENCH_DIRECTORY"
)

// shown is what a child that is a directory says: how to connect to it.
type shown struct {
	Endpoints   directory.Endpoints
	Settings    json.RawMessage
	Credentials []byte
}

// directoryChild serves a directory of made-up accounts on this machine.
func directoryChild(open func(*directorytest.Directory) (shown, io.Closer)) func(context.Context, io.Reader,
	io.Writer) error {
	return func(ctx context.Context, parent io.Reader, out io.Writer) error {
		ctx, cancel := whileParent(ctx, parent)
		defer cancel()
		var n int
		if _, err := fmt.Sscan(os.Getenv(envAccounts), &n); err != nil {
			return err
		}
		says, server := open(directorytest.New(accounts(n)...))
		defer server.Close()
		if err := json.NewEncoder(out).Encode(says); err != nil {
			return err
		}
		<-ctx.Done()
		return nil
	}
}

// closer closes what has a Close without an error.
type closer func()

func (c closer) Close() error {
	c()
	return nil
}

func openMicrosoft(d *directorytest.Directory) (shown, io.Closer) {
	m := directorytest.NewMicrosoft(d)
	return shown{m.Endpoints(), m.Settings(""), m.Credentials()}, closer(m.Close)
}

func openGoogle(d *directorytest.Directory) (shown, io.Closer) {
	g := directorytest.NewGoogle(d)
	return shown{g.Endpoints(), g.Settings(""), g.Credentials()}, closer(g.Close)
}

// accounts are so many accounts. Each but the first ones has a manager.
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

// unsealed keeps the credentials of a directory of this machine as they are.
type unsealed struct{}

func (unsealed) Seal(text, _ []byte) ([]byte, error)   { return text, nil }
func (unsealed) Open(sealed, _ []byte) ([]byte, error) { return sealed, nil }

// synced is what a child that syncs says.
type synced struct {
	Took time.Duration
	Run  domain.SyncRun
}

// syncChild syncs a client once, as the background work does, says how that went,
// and waits to be stopped.
func syncChild(ctx context.Context, parent io.Reader, out io.Writer) error {
	ctx, cancel := whileParent(ctx, parent)
	defer cancel()
	gc.Relax()
	var at shown
	if err := json.Unmarshal([]byte(os.Getenv(envDirectory)), &at); err != nil {
		return err
	}
	client, err := domain.ParseUUID[domain.ClientKind](os.Getenv(envClient))
	if err != nil {
		return err
	}
	d, err := db.Open(os.Getenv(envURL))
	if err != nil {
		return err
	}
	defer d.Close()

	runner := directory.NewRunner(d, unsealed{}, directory.NewConnect(at.Endpoints, nil),
		slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})))
	begin := time.Now()
	run, err := runner.Start(ctx, client, false, nil)
	if err != nil {
		return err
	}
	if run.Error != nil {
		return errors.New(*run.Error)
	}
	if err := json.NewEncoder(out).Encode(synced{time.Since(begin), run}); err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}

// syncs are the measures of syncs.
func (b *bench) syncs() []measure {
	return []measure{
		{"sync with microsoft", nil, func(ctx context.Context) ([]result, error) { return b.sync(ctx, domain.Microsoft) }},
		{"sync with google", nil, func(ctx context.Context) ([]result, error) { return b.sync(ctx, domain.Google) }},
	}
}

// sync measures a client's first sync and one in which nothing has changed, for
// which Google's directory is compared as a whole and Microsoft's tells changes.
func (b *bench) sync(ctx context.Context, of domain.Directory) (results []result, err error) {
	served, err := start("directory-"+string(of), b.progress, fmt.Sprintf("%s=%d", envAccounts, b.data.users))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, served.stop()) }()
	var at shown
	if err := json.Unmarshal([]byte(served.said), &at); err != nil {
		return nil, err
	}
	client, err := b.emptyClient(ctx)
	if err != nil {
		return nil, err
	}
	if err := b.data.db.ConnectDirectory(ctx, client, of, at.Settings, at.Credentials); err != nil {
		return nil, err
	}
	for _, turn := range []struct {
		name string
		bar  float64 // in seconds
	}{{"first", 60}, {"unchanged", 10}} {
		got, peak, err := b.syncOnce(ctx, client, served.said)
		if err != nil {
			return nil, err
		}
		if n := got.Run.Created; turn.name == "first" && n != b.data.users {
			return nil, fmt.Errorf("the first sync made %d users and not %d", n, b.data.users)
		}
		if n := got.Run.Created + got.Run.Updated + got.Run.Deactivated; turn.name == "unchanged" && n != 0 {
			return nil, fmt.Errorf("the sync of what has not changed changed %d users", n)
		}
		results = append(results,
			seconds(fmt.Sprintf("%s sync of %d users with %s, s", turn.name, b.data.users, of), got.Took, turn.bar),
			memory("  peak resident memory of its process, MB", peak))
	}
	return results, nil
}

// syncOnce lets a child sync a client.
func (b *bench) syncOnce(ctx context.Context, client domain.ClientID, directory string) (got synced, peak float64,
	err error) {
	before := childProcessors(b.data.server)
	worker, err := start("sync", b.progress, envURL+"="+b.data.url, envClient+"="+client.UUID(),
		envDirectory+"="+directory)
	if err != nil {
		return got, 0, err
	}
	b.spent("account synced", worker, before, b.data.users)
	peak, failed := worker.peakMB()
	err = json.Unmarshal([]byte(worker.said), &got)
	return got, peak, errors.Join(err, failed, worker.stop(), ctx.Err())
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
	c, err := dial(b.service.said)
	if err != nil {
		return id, err
	}
	defer c.Close()
	var body bytes.Buffer
	if err := c.send(post("/v2/clients", key, []byte(`{"name":"Synced client"}`)), &body); err != nil {
		return id, err
	}
	var made struct{ ID domain.ClientID }
	err = json.Unmarshal(body.Bytes(), &made)
	return made.ID, err
}
