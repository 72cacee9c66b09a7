package main

import (
	"context"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"partnerapi/db"
	"partnerapi/domain"
	"partnerapi/platform/directory/directorytest"
)

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

// TestDirectoryCommands connects clients to a Google Workspace and syncs them.
func TestDirectoryCommands(t *testing.T) {
	t.Parallel()
	flag := databaseFlag(t)
	accounts := directorytest.New()
	google := directorytest.NewGoogle(accounts)
	t.Cleanup(google.Close)
	address := "--google-url=" + google.Endpoints().Google
	encrypted := "--encryption-key=" + base64.StdEncoding.EncodeToString(make([]byte, 32))
	d := opened(t, flag)
	acme := insertClients(t, d, "One", "Acme", "Twin")[0]
	insertClients(t, d, "Two", "Twin")
	key, broken, empty := filepath.Join(t.TempDir(), "key.json"), filepath.Join(t.TempDir(), "broken"), filepath.Join(t.TempDir(), "empty")
	for name, text := range map[string]string{key: string(google.Credentials()), broken: "sesame", empty: "\n"} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	connect := func(client, file string) []string {
		return []string{"directory", "connect", client, "google", "--credentials-file=" + file, "--admin=admin@example.com", flag, address, encrypted}
	}
	unkeyed := connect("Acme", key)
	refused(t, 1, unkeyed[:len(unkeyed)-1], "partnerapi encryption-key")
	refused(t, 1, connect("Acme", broken), broken, "not JSON")
	refused(t, 1, connect("Acme", empty), "is empty")
	refused(t, 1, connect("Acme", filepath.Join(empty, "x")), empty)
	refused(t, 1, connect("Nobody", key), `no client "Nobody"`)
	refused(t, 1, connect("twin", key), "2 clients are called", "of One", "of Two")
	refused(t, 1, []string{"directory", "run", "acme", flag, encrypted}, "not configured")
	refused(t, 1, []string{"directory", "disconnect", "acme", flag}, "has no directory")

	if got := must(t, connect("acme", key)...); !strings.Contains(got, acme.String()) {
		t.Errorf("connecting prints %s", got)
	}
	must(t, connect(acme.UUID(), key)...)
	refused(t, 1, []string{"directory", "connect", acme.String(), "microsoft", "--tenant=t", "--app-id=a", "--secret-file=" + key, flag, encrypted}, "disconnect that first")
	if got := must(t, "directory", "list", flag); !strings.Contains(got, "Acme") || !strings.Contains(got, "never") || strings.Contains(got, "service_account") {
		t.Errorf("lists %s", got)
	}

	for i := range 30 {
		accounts.Put(directorytest.Account{ID: fmt.Sprint(i), Email: fmt.Sprintf("u%d@example.com", i)})
	}
	accounts.Put(directorytest.Account{ID: "bad", Email: "nobody"})
	r := command(t, "directory", "run", acme.String(), flag, address, encrypted)
	if r.out != "30 created, 0 updated, 0 deactivated, 0 merged, 0 unchanged\n" || !strings.Contains(r.err, "skipped nobody: not a valid email address") {
		t.Errorf("exit %d: %s%s", r.code, r.out, r.err)
	}
	for i := range 10 {
		accounts.Remove(fmt.Sprint(i))
	}
	refused(t, 1, []string{"directory", "run", "Acme", flag, address, encrypted}, "deactivate 10 of the directory's 30", "--force")
	if got := must(t, "directory", "run", "Acme", "--force", flag, address, encrypted); got != "0 created, 0 updated, 10 deactivated, 0 merged, 20 unchanged\n" {
		t.Errorf("a forced run prints %s", got)
	}
	if got := must(t, "directory", "list", flag); !strings.Contains(got, "completed") {
		t.Errorf("lists %s", got)
	}
	must(t, "directory", "disconnect", "Acme", flag)
	if got := must(t, "directory", "list", flag); strings.Count(got, "\n") != 1 {
		t.Errorf("lists %s", got)
	}
}
