package db_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"partnerapi/db"
	"partnerapi/platform/seal"
)

// vault is a world with a table of sealed secrets.
type vault struct {
	*world
	columns []db.SealedColumn
}

func newVault(t *testing.T) *vault {
	w := newWorld(t)
	w.Exec("CREATE TABLE vault (id uuid PRIMARY KEY, secret bytea)")
	return &vault{w, []db.SealedColumn{{Table: "vault", Column: "secret", Key: "id", Kind: "vault"}}}
}

func (v *vault) keys(list ...string) *seal.Keys {
	v.T.Helper()
	keys, err := seal.ParseKeys(strings.Join(list, ","))
	v.Must(err)
	return keys
}

// put writes a secret.
func (v *vault) put(keys *seal.Keys, id, plain string) {
	v.T.Helper()
	sealed, err := keys.Seal([]byte(plain), seal.Context("vault", id))
	v.Must(err)
	v.Exec("INSERT INTO vault VALUES ($1, $2) ON CONFLICT (id) DO UPDATE SET secret = excluded.secret", id, sealed)
}

// fill writes n secrets, and one that is null.
func (v *vault) fill(keys *seal.Keys, n int) (ids []string) {
	for i := range n {
		ids = append(ids, uuid.Must(uuid.NewV7()).String())
		v.put(keys, ids[i], fmt.Sprint("secret ", i))
	}
	v.Exec("INSERT INTO vault VALUES ($1, NULL)", uuid.NewString())
	return ids
}

// reseal seals everything again with the first of the keys. each is called before
// each secret.
func (v *vault) reseal(ctx context.Context, keys *seal.Keys, each func(id string)) (int, []error, error) {
	prefix, err := keys.Prefix()
	v.Must(err)
	return v.Reseal(ctx, v.columns, prefix, func(c db.SealedColumn, id string, sealed []byte) ([]byte, error) {
		if each != nil {
			each(id)
		}
		return keys.Reseal(sealed, seal.Context(c.Kind, id))
	})
}

// want wants a secret that these keys open.
func (v *vault) want(keys *seal.Keys, id, plain string) {
	v.T.Helper()
	var sealed []byte
	v.Scan("SELECT secret FROM vault WHERE id = $1", []any{id}, &sealed)
	if got, err := keys.Open(sealed, seal.Context("vault", id)); err != nil || string(got) != plain {
		v.T.Errorf("%s is %q, not %q: %v", id, got, plain, err)
	}
}

// TestReseal cuts a rotation short after its first batch, and repeats it.
func TestReseal(t *testing.T) {
	t.Parallel()
	v := newVault(t)
	older, newer := seal.NewKey(), seal.NewKey()
	ids := v.fill(v.keys(older), 450)

	ctx, cancel := context.WithCancel(t.Context())
	n, _, err := v.reseal(ctx, v.keys(newer, older), func(id string) {
		if id == ids[230] {
			cancel()
		}
	})
	if !errors.Is(err, context.Canceled) || n != 200 {
		t.Errorf("cut short: %d, %v", n, err)
	}
	both := v.keys(older, newer)
	for i, id := range ids { // both keys' secrets beside each other
		v.want(both, id, fmt.Sprint("secret ", i))
	}
	for _, want := range []int{250, 0} {
		if n, failed, err := v.reseal(t.Context(), v.keys(newer, older), nil); n != want || failed != nil || err != nil {
			t.Errorf("%d, not %d: %v, %v", n, want, failed, err)
		}
	}
	for i, id := range ids {
		v.want(v.keys(newer), id, fmt.Sprint("secret ", i))
	}
}

// TestResealWhileWritten has secrets change between their reading and their
// writing, by processes that have the new key or do not have it yet.
func TestResealWhileWritten(t *testing.T) {
	t.Parallel()
	v := newVault(t)
	older, newer := seal.NewKey(), seal.NewKey()
	ids := v.fill(v.keys(older), 4)
	all := v.keys(newer, older)
	written := map[string]bool{}
	n, failed, err := v.reseal(t.Context(), all, func(id string) {
		switch {
		case written[id]:
		case id == ids[1]:
			v.put(v.keys(older), id, "changed by a process without the new key")
		case id == ids[2]:
			v.put(all, id, "changed by one with it")
		case id == ids[3]:
			v.Exec("DELETE FROM vault WHERE id = $1", id)
		}
		written[id] = true
	})
	if n != 2 || failed != nil || err != nil {
		t.Errorf("%d: %v, %v", n, failed, err)
	}
	v.want(v.keys(newer), ids[0], "secret 0")
	v.want(v.keys(newer), ids[1], "changed by a process without the new key")
	v.want(v.keys(newer), ids[2], "changed by one with it")

	stubborn := ids[0]
	v.put(v.keys(older), stubborn, "x")
	_, _, err = v.reseal(t.Context(), all, func(id string) { v.put(v.keys(older), id, "x") })
	if err == nil || !strings.Contains(err.Error(), "every process") {
		t.Errorf("%v", err)
	}
}

// TestEncryptionCheck replaces the value by which a wrong key is known.
func TestEncryptionCheck(t *testing.T) {
	t.Parallel()
	v := newVault(t)
	check := func(want string) {
		t.Helper()
		if got, err := v.EncryptionCheck(t.Context()); err != nil || string(got) != want {
			t.Errorf("%q, not %q: %v", got, want, err)
		}
	}
	set := func(before, now string, want bool) {
		t.Helper()
		if done, err := v.SetEncryptionCheck(t.Context(), slices.Clip([]byte(before)), []byte(now)); err != nil || done != want {
			t.Errorf("%t: %v", done, err)
		}
	}
	check("")
	set("", "one", true)
	set("", "two", false)
	set("three", "two", false)
	set("one", "two", true)
	check("two")

	if any, err := v.AnySealed(t.Context(), slices.Concat(v.columns, db.SealedColumns)); any || err != nil {
		t.Errorf("an empty table: %t, %v", any, err)
	}
	v.fill(v.keys(seal.NewKey()), 1)
	if any, err := v.AnySealed(t.Context(), slices.Concat(db.SealedColumns, v.columns)); !any || err != nil {
		t.Errorf("%t, %v", any, err)
	}
}
