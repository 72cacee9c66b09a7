package main

import (
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"partnerapi/cmd/internal/database"
	"partnerapi/db"
	"partnerapi/platform/seal"
)

// connected stores sealed credentials of n clients of the demonstration, and
// returns the clients' UUIDs.
func connected(t *testing.T, d *db.DB, keys *seal.Keys, n int) (ids []string) {
	t.Helper()
	rows, err := d.SQL().QueryContext(t.Context(), "SELECT id FROM clients ORDER BY id LIMIT $1", n)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var id string
		if err := rows.Scan(&id); err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id)
	}
	for _, id := range ids {
		sealed, err := keys.Seal([]byte("credentials of "+id), seal.Context("directory", id))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := d.SQL().ExecContext(t.Context(), `
			INSERT INTO directory_connections (client_id, provider, settings, credentials, next_run_at, created_at, updated_at)
			VALUES ($1, 'google', '{}', $2, 'infinity', now(), now())`, id, sealed); err != nil {
			t.Fatal(err)
		}
	}
	return ids
}

// decrypted wants the credentials of clients to be as they were stored, and
// encrypted with the first of the keys.
func decrypted(t *testing.T, d *db.DB, list string, ids []string) {
	t.Helper()
	keys, err := seal.ParseKeys(list)
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range ids {
		var sealed []byte
		if err := d.SQL().QueryRowContext(t.Context(), "SELECT credentials FROM directory_connections WHERE client_id = $1", id).Scan(&sealed); err != nil {
			t.Fatal(err)
		}
		plain, err := keys.Open(sealed, seal.Context("directory", id))
		if err != nil || string(plain) != "credentials of "+id {
			t.Errorf("%s: %q: %v", id, plain, err)
		}
		if is, err := database.IsCurrent(keys, sealed); err != nil || !is {
			t.Errorf("%s is not encrypted with the current key: %v", id, err)
		}
	}
}

func freshKey(t *testing.T) string { return strings.TrimSpace(must(t, "encryption-key")) }

// parsed are the keys of a list.
func parsed(t *testing.T, list string) *seal.Keys {
	t.Helper()
	keys, err := seal.ParseKeys(list)
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

func TestNewEncryptionKey(t *testing.T) {
	t.Parallel()
	key := must(t, "encryption-key")
	if bytes, err := base64.StdEncoding.DecodeString(strings.TrimSpace(key)); err != nil || len(bytes) != 32 || key == must(t, "encryption-key", "new") {
		t.Errorf("%q: %v", key, err)
	}
}

// TestEncryptionKeyIsChecked starts with keys that are not those of the secrets.
func TestEncryptionKeyIsChecked(t *testing.T) {
	t.Parallel()
	flag := demonstration(t)
	older, newer := freshKey(t), freshKey(t)
	with := func(key string) string { return "--encryption-key=" + key }
	serving(t, flag, with(newer)).finish() // no secret is stored yet: any key will do
	serving(t, flag, with(older)).finish()
	ids := connected(t, opened(t, flag), parsed(t, older), 2)

	for _, command := range [][]string{{"serve", "--listen=127.0.0.1:0"}, {"work"}} {
		refused(t, 1, append(command, flag, "--data-dir="+t.TempDir(), with(newer)), "another encryption key", "--encryption-key")
	}
	refused(t, 1, []string{"encryption-key", "rotate", flag, with(newer)}, "another encryption key")
	refused(t, 1, []string{"encryption-key", "rotate", flag}, "partnerapi encryption-key", "PARTNERAPI_ENCRYPTION_KEY")
	serving(t, flag, with(newer+","+older)).finish()
	serving(t, flag, with(older)).finish()
	r := serving(t, flag)
	if r.finish(); !strings.Contains(r.logs.String(), "no --encryption-key") {
		t.Errorf("a service without a key logs %s", r.logs)
	}
	decrypted(t, opened(t, flag), older, ids)
}

// TestRotateEncryptionKey rotates by flags; a secret of a lost key keeps it from
// being finished.
func TestRotateEncryptionKey(t *testing.T) {
	t.Parallel()
	flag := demonstration(t)
	older, newer := freshKey(t), freshKey(t)
	serving(t, flag, "--encryption-key="+older).finish()
	d := opened(t, flag)
	ids := connected(t, d, parsed(t, older), 3)
	for i, key := range []string{newer + "," + older, newer, newer} {
		args := []string{"encryption-key", "rotate", flag, "--encryption-key=" + key}
		if i == 1 {
			args = append(args, "--old="+older)
		}
		want := fmt.Sprintf("%d secrets were encrypted", []int{3, 0, 0}[i])
		if got := must(t, args...); !strings.Contains(got, want) || !strings.Contains(got, "take them out") {
			t.Errorf("%d: %s", i, got)
		}
	}
	decrypted(t, d, newer, ids)
	serving(t, flag, "--encryption-key="+newer).finish()
	refused(t, 1, []string{"serve", "--listen=127.0.0.1:0", flag, "--data-dir=" + t.TempDir(), "--encryption-key=" + older},
		"another encryption key")

	if _, err := d.SQL().ExecContext(t.Context(), "UPDATE directory_connections SET credentials = credentials || '\\x00' WHERE client_id = $1", ids[1]); err != nil {
		t.Fatal(err)
	}
	newest := freshKey(t)
	args := []string{"encryption-key", "rotate", flag, "--encryption-key=" + newest + "," + newer}
	refused(t, 1, args, "directory_connections "+ids[1], "altered", "1 secret was not: keep the older key")
	decrypted(t, d, newest, []string{ids[0], ids[2]})
	serving(t, flag, "--encryption-key="+newer).finish() // it is not finished
}

// TestEmbeddedEncryptionKey has the key beside the data: made at the first start,
// rotated under a running service, and missed where it is gone.
func TestEmbeddedEncryptionKey(t *testing.T) {
	t.Parallel()
	dir := dataDir(t)
	path := filepath.Join(dir, "encryption.key")
	r := process(t, dir, "--demo")
	info, err := os.Stat(path)
	if err != nil || info.Mode() != 0o600 {
		t.Fatalf("%v: %v", info, err)
	}
	first, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	d, shut, err := database.Flags{DataDir: dir}.Connect(t.Context(), os.Stderr, nil)
	if err != nil {
		t.Fatal(err)
	}
	ids := connected(t, d, parsed(t, "file:"+path), 2)

	if got := must(t, "encryption-key", "rotate", "--data-dir="+dir); !strings.Contains(got, "2 secrets were encrypted") || !strings.Contains(got, path) {
		t.Errorf("%s", got)
	}
	second, err := os.ReadFile(path)
	if err != nil || !strings.HasSuffix(string(second), string(first)) || len(second) != 2*len(first) {
		t.Errorf("the file has %d bytes: %v", len(second), err)
	}
	decrypted(t, d, strings.TrimSpace(string(second[:len(first)])), ids)

	// A rotation that was killed after it had made its key: no other one is made.
	if err := seal.AddKey(path); err != nil {
		t.Fatal(err)
	}
	if got := must(t, "encryption-key", "rotate", "--data-dir="+dir); !strings.Contains(got, "2 secrets were encrypted") {
		t.Errorf("%s", got)
	}
	if third, err := os.ReadFile(path); err != nil || len(third) != 3*len(first) {
		t.Errorf("the file has %d bytes: %v", len(third), err)
	}
	decrypted(t, d, "file:"+path, ids)
	if err := shut(); err != nil {
		t.Error(err)
	}
	r.finish()

	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"serve", "--listen=127.0.0.1:0"}, {"work"}, {"encryption-key", "rotate"}} {
		refused(t, 1, append(args, "--data-dir="+dir), path+" is missing", "backup")
	}
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Errorf("a key was made that opens nothing: %v", err)
	}
}
