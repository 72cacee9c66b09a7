//go:build slow

package main

import (
	"path/filepath"
	"strings"
	"testing"

	"partnerapi/db"
	"partnerapi/db/cells"
	"partnerapi/platform/seal"
)

// TestMoveCommand: a dry run changes nothing, a move says what is left to do, its status
// is told on both sides, and it is in the audit trail of both. Partners move one after
// another, and one that does not keeps no other. A move that was begun is taken back.
func TestMoveCommand(t *testing.T) {
	t.Parallel()
	from, to, target, old, now := cellPair(t)
	for _, partner := range []string{"Acme", "Fabrikam", "Third"} {
		insertClients(t, old, partner, "Hill")
	}
	key := newKey(t, "--partner=Acme", "--name=k", "--clients=all", "--scopes=read", from)
	says(t, must(t, "move", "Acme", target, "--dry-run", from), "1  clients\n", "nothing prevents")
	if out := must(t, "move", "status", from); strings.Contains(out, "Acme") {
		t.Errorf("before the move: %q", out)
	}
	says(t, must(t, "move", "Acme", target, from), "cell 01 now serves the partner", "\n  "+key[:13]+"\n")
	for flag, want := range map[string]string{from: "is served by cell 01", to: "came from cell 00"} {
		says(t, must(t, "move", "status", flag), "Acme ", want)
		if out := must(t, "audit", flag); strings.Count(out, " move ") != 1 {
			t.Errorf("the audit trail is %q", out)
		}
	}
	for key, want := range map[string]string{key: "01", "pk_demo_all": ""} {
		cells, err := cells.Read(t.Context(), old)
		if err != nil {
			t.Fatal(err)
		}
		if got := cells.Elsewhere(key, db.KeyDigest(key)); got != want {
			t.Errorf("%s is of cell %q", key, got)
		}
	}
	if _, err := now.CallerByDigest(t.Context(), db.KeyDigest(key)); err != nil {
		t.Errorf("the new cell does not know the key: %v", err)
	}
	refused(t, 1, []string{"move", "cancel", "Acme", target, from}, "already serves the partner")
	refused(t, 1, []string{"keys", "create", "--partner=Acme", "--name=n", "--clients=all", "--scopes=read", from}, "being moved")
	refused(t, 1, []string{"move", "Nobody", "Fabrikam", target, from}, "Nobody: ")
	if out := must(t, "move", "status", from); strings.Count(out, "is served by cell 01") != 2 {
		t.Errorf("the status is %q", out)
	}

	execute(t, old, "INSERT INTO moves (partner_id, step, cell, held_until) VALUES ($1, 'handing', '01', now())", partnerNamed(t, old, "Third").UUID())
	if found := examined(t, 1, "--cell-count=16", from)["moves"]; found.Status != "warn" || !strings.Contains(found.Found, "writes are rejected") {
		t.Errorf("doctor says %v", found)
	}
	says(t, must(t, "move", "cancel", "Third", target, from), "the move is canceled")
	says(t, must(t, "audit", from), "move cancel")
	if out := must(t, "move", "status", from); strings.Contains(out, "Third") {
		t.Errorf("the status is %q", out)
	}
}

// TestMoveSecrets: what one cell sealed with its key is sealed with the other's, and a key
// that is not the other cell's is refused. A dry run names everything that the run would
// refuse.
func TestMoveSecrets(t *testing.T) {
	t.Parallel()
	from, _, target, old, now := cellPair(t)
	client := insertClients(t, old, "Acme", "Hill")[0]
	oldFile, newFile := filepath.Join(t.TempDir(), "old"), filepath.Join(t.TempDir(), "new")
	oldKeys, err := seal.FileKeys(oldFile)
	if err != nil {
		t.Fatal(err)
	}
	newKeys, err := seal.FileKeys(newFile)
	if err != nil {
		t.Fatal(err)
	}
	context := seal.Context("directory", client.UUID())
	sealed, err := oldKeys.Seal([]byte("secret"), context)
	if err != nil {
		t.Fatal(err)
	}
	execute(t, old, `INSERT INTO directory_connections (client_id, provider, settings, credentials, next_run_at, created_at, updated_at)
		VALUES ($1, 'google', '{}', $2, now(), now(), now())`, client.UUID(), sealed)
	own := "--encryption-key=file:" + oldFile
	const wrong = "use a key other than --to-key"

	refused(t, 1, []string{"move", "Acme", target, from}, "encryption-key")
	refused(t, 1, []string{"move", "Acme", target, from, own, "--to-key=" + newFile}, "no process of the other cell has started")
	started(t, now, newKeys) // with its key, and holds no secret yet
	for _, args := range [][]string{{own, "--to-key=" + oldFile}, {own}, {"--encryption-key=file:" + newFile, "--to-key=" + oldFile}} {
		refused(t, 1, append([]string{"move", "Acme", target, from}, args...), wrong)
		refused(t, 1, append([]string{"move", "Acme", target, from, "--dry-run"}, args...), wrong)
	}
	started(t, old, oldKeys)
	refused(t, 1, []string{"move", "Acme", target, from, "--encryption-key=file:" + newFile}, "the key of this cell (--encryption-key) does not decrypt its secrets")
	must(t, "move", "Acme", target, from, own, "--to-key="+newFile)
	var moved []byte
	if err := now.SQL().QueryRow("SELECT credentials FROM directory_connections").Scan(&moved); err != nil {
		t.Fatal(err)
	}
	if plain, err := newKeys.Open(moved, context); err != nil || string(plain) != "secret" {
		t.Errorf("the new cell opens %q, %v", plain, err)
	}

	insertClients(t, old, "Twin", "Dale")
	insertClients(t, now, "Twin", "Dale")
	for _, d := range []*db.DB{old, now} {
		execute(t, d, "INSERT INTO moves (partner_id, step, cell) SELECT $1, 'here', '02'", partnerNamed(t, old, "Twin").UUID())
	}
	refused(t, 1, []string{"move", "Twin", target, from, "--dry-run", own},
		"already serves the partner or is moving it", "another partner with this name", "a key other than --to-key")
}
