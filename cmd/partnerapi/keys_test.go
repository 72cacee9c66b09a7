package main

import (
	"context"
	"regexp"
	"strings"
	"testing"
	"time"

	"partnerapi/cmd/internal/database"
	"partnerapi/db"
	"partnerapi/domain"
	"partnerapi/platform/seal"
)

var wholeKey = regexp.MustCompile(`^papi_[A-Za-z0-9]{40}\n$`)

// newKey creates a key by the command, and wants it to print that only.
func newKey(t *testing.T, args ...string) string {
	t.Helper()
	r := command(t, append([]string{"keys", "create"}, args...)...)
	if r.code != 0 || r.err != "" || !wholeKey.MatchString(r.out) {
		t.Fatalf("keys create %v: exit %d, printed %q and %q", args, r.code, r.out, r.err)
	}
	return strings.TrimSpace(r.out)
}

// prefix is what a key is listed by.
func prefix(key string) string { return key[:13] }

// insertClients adds a partner with clients.
func insertClients(t *testing.T, d *db.DB, partner string, names ...string) (ids []domain.ClientID) {
	t.Helper()
	id, err := d.InsertPartner(t.Context(), partner)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		client := domain.Client{ID: db.NewID[domain.ClientKind](), Partner: id, Name: name, CreatedAt: time.Now(), UpdatedAt: time.Now()}
		client.Summary.At = client.CreatedAt
		err := d.Change(t.Context(), func(ctx context.Context, c *db.Change) error { return c.InsertClient(ctx, client) })
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, client.ID)
	}
	return ids
}

func freshKey(t *testing.T) string { return strings.TrimSpace(must(t, "encryption-key")) }

// connected stores credentials of a client, sealed with the first of the keys of a list.
func connected(t *testing.T, d *db.DB, list, client string) {
	t.Helper()
	id, err := domain.ParseID[domain.ClientKind](client)
	if err != nil {
		t.Fatal(err)
	}
	keys := parsed(t, list)
	sealed, err := keys.Seal([]byte("credentials of "+id.UUID()), seal.Context("directory", id.UUID()))
	if err == nil {
		err = database.CheckKeys(t.Context(), d, keys, false)
	}
	if err == nil {
		_, err = d.SQL().ExecContext(t.Context(), `
			INSERT INTO directory_connections (client_id, provider, settings, credentials, next_run_at, created_at, updated_at)
			VALUES ($1, 'google', '{}', $2, 'infinity', now(), now())`, id, sealed)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// parsed are the keys of a list.
func parsed(t *testing.T, list string) *seal.Keys {
	t.Helper()
	keys, err := seal.ParseKeys(list)
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

// TestEncryptionKeyIsChecked: nothing starts with another key than that of the secrets, and
// serve does without one.
func TestEncryptionKeyIsChecked(t *testing.T) {
	t.Parallel()
	flag, key := databaseFlag(t), freshKey(t)
	d := opened(t, flag)
	connected(t, d, key, insertClients(t, d, "Acme", "Hill")[0].String())
	for _, command := range [][]string{{"serve", "--listen=127.0.0.1:0"}, {"work"}} {
		refused(t, 1, append(command, flag, "--data-dir="+t.TempDir(), "--encryption-key="+freshKey(t)), "another encryption key", "--encryption-key")
	}
	r := serving(t, flag)
	if r.finish(); !strings.Contains(r.logs.String(), "set --encryption-key") {
		t.Errorf("a service without a key logs %s", r.logs)
	}
}
