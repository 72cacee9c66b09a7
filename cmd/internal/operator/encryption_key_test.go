package operator

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"partnerapi/cmd/internal/cli"
	"partnerapi/cmd/internal/database"
	"partnerapi/domain"
	"partnerapi/platform/seal"
)

// vault is a console whose database has sealed credentials.
type vault struct {
	*console
	clients []domain.ClientID
}

// newVault seals credentials of n clients with the first of the keys, once those are the
// database's.
func newVault(t *testing.T, list string, n int) *vault {
	t.Helper()
	v := &vault{console: newConsole(t)}
	keys, err := seal.ParseKeys(list)
	v.Must(err)
	v.Must(database.CheckKeys(t.Context(), v.DB, keys, false))
	for range n {
		client := v.AddClient()
		sealed, err := keys.Seal([]byte("credentials of "+client.UUID()), seal.Context("directory", client.UUID()))
		v.Must(err)
		v.Exec(`INSERT INTO directory_connections (client_id, provider, settings, credentials, next_run_at, created_at, updated_at)
			VALUES ($1, 'google', '{}', $2, 'infinity', now(), now())`, client, sealed)
		v.clients = append(v.clients, client)
	}
	return v
}

// assertSealed fails unless the credentials of clients are as they were stored, and sealed
// with the first of the keys.
func (v *vault) assertSealed(list string, clients ...domain.ClientID) {
	v.t.Helper()
	keys, err := seal.ParseKeys(list)
	v.Must(err)
	for _, client := range clients {
		var sealed []byte
		v.Scan("SELECT credentials FROM directory_connections WHERE client_id = $1", []any{client}, &sealed)
		plain, err := keys.Open(sealed, seal.Context("directory", client.UUID()))
		if err != nil || string(plain) != "credentials of "+client.UUID() {
			v.t.Errorf("%s: %q: %v", client, plain, err)
		}
		if is, err := database.IsCurrent(keys, sealed); err != nil || !is {
			v.t.Errorf("%s is not encrypted with the current key: %v", client, err)
		}
	}
}

// open opens the keys as serve does.
func (v *vault) open(list string) error {
	keys, err := database.KeyFlags{EncryptionKey: list}.OpenKeys(v.t.Context(), v.DB, database.Flags{DatabaseURL: "given"},
		slog.New(slog.DiscardHandler))
	if err == nil && (keys == nil) != (list == "") {
		v.t.Errorf("%q are the keys %v", list, keys)
	}
	return err
}

// TestRotate: a rotation seals all secrets with the new key, and one that cannot be opened
// keeps it from being finished. Other keys than those of the secrets are refused.
func TestRotate(t *testing.T) {
	t.Parallel()
	older, newer, newest := seal.NewKey(), seal.NewKey(), seal.NewKey()
	v := newVault(t, older, 3)
	rotate := func(keys string, more ...string) []string {
		return append([]string{"encryption-key", "rotate", "--encryption-key=" + keys}, more...)
	}
	v.refused(false, rotate(newer), "another encryption key", "--encryption-key")
	v.refused(false, []string{"encryption-key", "rotate"}, "partnerapi encryption-key", "PARTNERAPI_ENCRYPTION_KEY")
	for list, want := range map[string]string{newer: "another encryption key", newer + "," + older: "", older: "", "": ""} {
		if err := v.open(list); (err == nil) != (want == "") || !strings.Contains(fmt.Sprint(err), want) {
			t.Errorf("%q: %v", list, err)
		}
	}
	v.assertSealed(older, v.clients...)

	v.says(rotate(newer+","+older), "3 secrets were encrypted", "remove the old keys")
	v.says(rotate(newer, "--old="+older), "0 secrets were encrypted", "remove the old keys")
	v.says(rotate(newer), "0 secrets were encrypted", "remove the old keys")
	v.assertSealed(newer, v.clients...)
	if err := v.open(older); err == nil {
		t.Error("the older key is still taken")
	}

	v.Exec("UPDATE directory_connections SET credentials = credentials || '\\x00' WHERE client_id = $1", v.clients[1])
	v.refused(false, rotate(newest+","+newer), "directory_connections "+v.clients[1].UUID(), "altered", "1 secret was not encrypted with the new key; keep the old key")
	v.assertSealed(newest, v.clients[0], v.clients[2])
	v.Must(v.open(newer)) // it is not finished
}

// TestKeyFile has the key of an embedded database beside the data: made at the first start,
// rotated while a service runs, and missed where it is gone.
func TestKeyFile(t *testing.T) {
	t.Parallel()
	at := database.Flags{DataDir: t.TempDir()}
	path := filepath.Join(at.DataDir, "encryption.key")
	keys, err := database.KeyFlags{}.Keys(at, false)
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode() != 0o600 {
		t.Fatalf("%v: %v", info, err)
	}
	v := newVault(t, "file:"+path, 2)
	first, err := os.ReadFile(path)
	v.Must(err)
	for n, more := range []func() error{
		func() error { return nil },
		func() error { return seal.AddKey(path) }, // by a rotation that was killed after it: no other one is made
	} {
		v.Must(more())
		var out strings.Builder
		v.Must(rotateKeyCmd{Flags: at}.rotate(t.Context(), v.DB, cli.Env{Out: &out, Err: io.Discard}))
		if got := out.String(); !strings.Contains(got, "2 secrets were encrypted") || !strings.Contains(got, path) {
			t.Errorf("%s", got)
		}
		now, err := os.ReadFile(path)
		if err != nil || !strings.HasSuffix(string(now), string(first)) || len(now) != (n+2)*len(first) {
			t.Errorf("the file has %d bytes: %v", len(now), err)
		}
		v.assertSealed(strings.TrimSpace(string(now[:len(first)])), v.clients...)
		v.Must(database.CheckKeys(t.Context(), v.DB, keys, true)) // of the service that runs
	}

	v.Must(os.Remove(path))
	if _, err := (database.KeyFlags{}).Keys(at, true); err == nil || !strings.Contains(err.Error(), path+" is missing") ||
		!strings.Contains(err.Error(), "backup") {
		t.Error(err)
	}
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Errorf("a key was made that opens nothing: %v", err)
	}
}
