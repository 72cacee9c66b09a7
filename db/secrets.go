package db

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"

	"partnerapi/db/pg"
	"partnerapi/domain"
)

// The table secrets holds the secrets that all processes of a database share.

const (
	// CursorSecretName is the name of the secret that encrypts list cursors.
	CursorSecretName = "cursor"
	// TrackingSecretName is the name of the secret that signs the links in simulated emails.
	TrackingSecretName = "tracking"
	// reportSecret is the name of the secret that signs the links to reports' files.
	reportSecret = "report"
)

// EnsureSecrets creates the service's secrets that the database does not have.
func (d *DB) EnsureSecrets(ctx context.Context) error {
	for _, name := range []string{CursorSecretName, TrackingSecretName, reportSecret} {
		secret := make([]byte, 32)
		if _, err := rand.Read(secret); err != nil {
			return err
		}
		err := pg.Run(ctx, d, "make the "+name+" secret",
			pg.SQL("INSERT INTO secrets (name, value) VALUES (?, ?) ON CONFLICT DO NOTHING", name, secret))
		if err != nil {
			return err
		}
	}
	return nil
}

// CursorSecret returns the secret that encrypts list cursors.
func (d *DB) CursorSecret(ctx context.Context) ([]byte, error) {
	return d.secret(ctx, CursorSecretName)
}

// TrackingSecret returns the secret that signs the links in simulated emails.
func (d *DB) TrackingSecret(ctx context.Context) ([]byte, error) {
	return d.secret(ctx, TrackingSecretName)
}

// ReportSecret returns the secret that signs the links to reports' files.
func (d *DB) ReportSecret(ctx context.Context) ([]byte, error) { return d.secret(ctx, reportSecret) }

// OtherCellSep separates the name of a secret of another cell from the code of that cell.
const OtherCellSep = "@"

// NamedSecret is a secret with its name.
type NamedSecret struct {
	Name  string
	Value []byte
}

// SharedSecrets returns the secrets that the new cell of a partner needs to accept cursors and links of this cell: the
// database's own secrets, under names that include the code of cell, and the secrets of other cells that it accepts.
func (d *DB) SharedSecrets(ctx context.Context, cell domain.Cell) ([]NamedSecret, error) {
	own, err := pg.All[NamedSecret](ctx, d, "read secrets to share", pg.SQL(
		"SELECT name || ?suffix AS name, value FROM secrets WHERE name IN (?cursorSecret, ?trackingSecret)",
		pg.Named{
			"suffix":         OtherCellSep + cell.Code(),
			"cursorSecret":   CursorSecretName,
			"trackingSecret": TrackingSecretName,
		}))
	if err != nil {
		return nil, err
	}
	accepted, err := d.AcceptedSecrets(ctx)
	return append(own, accepted...), err
}

// AcceptedSecrets returns the secrets of other cells whose cursors and links are accepted.
func (d *DB) AcceptedSecrets(ctx context.Context) ([]NamedSecret, error) {
	return pg.All[NamedSecret](ctx, d, "read the secrets of other cells", pg.SQL(
		"SELECT name, value FROM secrets WHERE name LIKE ? ORDER BY name", "%"+OtherCellSep+"%"))
}

// AcceptSecrets stores secrets of other cells, so that cursors and links that those cells made are valid here. It does
// not change secrets that are already stored.
func (d *DB) AcceptSecrets(ctx context.Context, secrets []NamedSecret) error {
	names := pg.MapRows(secrets, func(s *NamedSecret) string { return s.Name })
	values := pg.MapRows(secrets, func(s *NamedSecret) []byte { return s.Value })
	return pg.Run(ctx, d, "store secrets of another cell", pg.SQL(`
		INSERT INTO secrets (name, value) SELECT name, value FROM unnest(?::text[], ?::bytea[]) AS s (name, value)
		ON CONFLICT DO NOTHING`, names, values))
}

// secret reads a secret. It returns pg.ErrNoRow if there is none, and an error if it is empty.
func (d *DB) secret(ctx context.Context, name string) ([]byte, error) {
	action := "read the " + name + " secret"
	secret, err := pg.One[[]byte](ctx, d, action, pg.SQL("SELECT value FROM secrets WHERE name = ?", name))
	if err == nil && len(secret) == 0 {
		err = errors.New(action + ": it is empty")
	}
	return secret, err
}

// SealedColumn is a column of secrets that are sealed with the encryption key.
type SealedColumn struct {
	Table, Column string
	Key           string // the column of the rows' UUIDs
	Kind          string // the purpose that secrets are sealed for, with the UUID of the row
}

// HoldsSecret returns the SQL condition that the column of a row, alias t, is neither NULL nor empty. The secret of the
// demonstration's subscription is empty until the first start of a service with an encryption key.
func (c SealedColumn) HoldsSecret() string { return "t." + c.Column + " <> ''" }

// SealedColumns are all columns of sealed secrets.
var SealedColumns = []SealedColumn{
	{Table: "directory_connections", Column: "credentials", Key: "client_id", Kind: "directory"},
	{Table: "webhooks", Column: "secret", Key: "id", Kind: "webhook"},
	{Table: "webhooks", Column: "replaced_secret", Key: "id", Kind: "webhook"},
	{Table: "webhooks", Column: "sealed_authorization", Key: "id", Kind: "webhook authorization"},
	{Table: "idempotency_records", Column: "sealed_body", Key: "seal_id", Kind: "outcome"},
}

// AnySealed reports whether a secret is stored in one of the columns.
func (d *DB) AnySealed(ctx context.Context, columns []SealedColumn) (bool, error) {
	var parts []string
	for _, c := range columns {
		parts = append(parts, "EXISTS (SELECT 1 FROM "+c.Table+" AS t WHERE "+c.HoldsSecret()+")")
	}
	return pg.One[bool](ctx, d, "look for sealed secrets", pg.SQL("SELECT "+strings.Join(parts, " OR ")))
}

// encryptionCheck is the name of a value that is sealed with the encryption key. A starting process opens it to detect
// a wrong key.
const encryptionCheck = "encryption"

// EncryptionCheck returns the sealed value by which a wrong key is detected, or nil if there is none.
func (d *DB) EncryptionCheck(ctx context.Context) ([]byte, error) {
	sealed, err := d.secret(ctx, encryptionCheck)
	if errors.Is(err, pg.ErrNoRow) {
		return nil, nil
	}
	return sealed, err
}

// SetEncryptionCheck stores sealed as the value by which a wrong encryption key is detected, in place of before, which
// is nil if there is none yet. It returns false, and stores nothing, if a value other than before is stored.
func (d *DB) SetEncryptionCheck(ctx context.Context, before, sealed []byte) (bool, error) {
	n, err := pg.Exec(ctx, d, "store the check of the encryption key", pg.SQL(`
		INSERT INTO secrets AS s (name, value) VALUES (?encryptionCheck, ?sealed)
		ON CONFLICT (name) DO UPDATE SET value = excluded.value WHERE s.value = ?before`,
		pg.Named{"encryptionCheck": encryptionCheck, "sealed": sealed, "before": before}))
	return n == 1, err
}

const (
	// resealBatch is the number of secrets that one transaction seals again.
	resealBatch = 200
	// resealPasses bounds the passes over a column whose secrets other transactions change.
	resealPasses = 10
)

// Reseal replaces each secret of the columns that does not begin with prefix by the result of reseal. It returns the
// number of replaced secrets, and the errors of reseal. It repeats its pass over a column, up to resealPasses times,
// until none was changed concurrently. It is idempotent, and must not be called in a transaction.
func (d *DB) Reseal(
	ctx context.Context, columns []SealedColumn, prefix []byte,
	reseal func(c SealedColumn, id string, sealed []byte) ([]byte, error),
) (replaced int, failed []error, err error) {
	for _, column := range columns {
		r := resealing{DB: d, SealedColumn: column, prefix: prefix, reseal: reseal}
		for pass := 1; ; pass++ {
			if err := r.runPass(ctx); err != nil {
				return replaced + r.replaced, failed, err
			}
			if r.conflicts == 0 {
				break
			}
			if pass == resealPasses {
				return replaced + r.replaced, failed, fmt.Errorf(
					"secrets in %s are still written with an older key: give every process the new one first", column.Table)
			}
		}
		replaced += r.replaced
		failed = append(failed, r.failed...)
	}
	return replaced, failed, nil
}

// resealing is the state of Reseal for a column.
type resealing struct {
	*DB
	SealedColumn
	prefix []byte
	reseal func(c SealedColumn, id string, sealed []byte) ([]byte, error)

	replaced int
	// conflicts is the number of secrets of the last pass that changed concurrently, and failed its errors of reseal.
	conflicts int
	failed    []error
}

// sealedRow is a sealed secret with the UUID of its row.
type sealedRow struct {
	ID     string
	Sealed []byte
}

// runPass makes one pass over the secrets without the prefix, in the order of their keys. It sets conflicts and failed.
func (r *resealing) runPass(ctx context.Context) error {
	r.conflicts, r.failed = 0, nil
	after := "00000000-0000-0000-0000-000000000000"
	for {
		rows, err := pg.All[sealedRow](ctx, r, "read sealed secrets", pg.SQL(
			"SELECT "+r.Key+"::text AS id, "+r.Column+" AS sealed FROM "+r.Table+" AS t WHERE "+r.Key+" > ?after::uuid AND "+
				r.HoldsSecret()+" AND substring("+r.Column+" FOR length(?prefix::bytea)) <> ?prefix::bytea ORDER BY "+r.Key+" LIMIT ?resealBatch",
			pg.Named{"after": after, "prefix": r.prefix, "resealBatch": resealBatch}))
		if err != nil || len(rows) == 0 {
			return err
		}
		if err := r.replaceBatch(ctx, rows); err != nil {
			return err
		}
		after = rows[len(rows)-1].ID
	}
}

// replaceBatch replaces the secrets of rows. It collects the errors of reseal in r.failed, and counts those secrets in
// r.conflicts that it does not replace because they changed after they were read.
func (r *resealing) replaceBatch(ctx context.Context, rows []sealedRow) error {
	var ids []string
	var before, after [][]byte
	for _, row := range rows {
		sealed, err := r.reseal(r.SealedColumn, row.ID, row.Sealed)
		if err != nil {
			r.failed = append(r.failed, fmt.Errorf("%s %s: %w", r.Table, row.ID, err))
			continue
		}
		ids, before, after = append(ids, row.ID), append(before, row.Sealed), append(after, sealed)
	}
	n, err := pg.Exec(ctx, r, "seal secrets again", pg.SQL(
		"UPDATE "+r.Table+" AS t SET "+r.Column+" = n.after "+
			"FROM unnest(?ids::uuid[], ?before::bytea[], ?after::bytea[]) AS n (id, before, after) WHERE t."+r.Key+" = n.id AND t."+r.Column+" = n.before",
		pg.Named{"ids": ids, "before": before, "after": after}))
	r.replaced += n
	r.conflicts += len(ids) - n
	return err
}
