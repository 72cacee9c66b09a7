package operator

import (
	"context"
	"errors"
	"fmt"

	"partnerapi/cmd/internal/cli"
	"partnerapi/cmd/internal/database"
	"partnerapi/cmd/internal/output"
	"partnerapi/db"
	"partnerapi/domain"
	"partnerapi/platform/seal"
)

// EncryptionKey is the command encryption-key, which makes and replaces the key of secrets.
type EncryptionKey struct {
	New    newKeyCmd    `cmd:"" default:"1" help:"Print a new key, for --encryption-key or a file."`
	Rotate rotateKeyCmd `cmd:"" help:"Encrypt the secrets in the database with a new key."`
}

type newKeyCmd struct{}

// Run prints a key, and nothing else.
func (newKeyCmd) Run(s cli.Env) error {
	_, err := fmt.Fprintln(s.Out, seal.NewKey())
	return err
}

type rotateKeyCmd struct {
	database.Flags
	database.KeyFlags
	Old string `env:"-" placeholder:"KEY" help:"The key before, where it does not follow the new one in --encryption-key: in base64, or file:PATH."`
}

// Help says what is done before and after.
func (rotateKeyCmd) Help() string {
	return `Make a key with partnerapi encryption-key. Restart every process with --encryption-key NEW,OLD (or put NEW before OLD in the file of a file:PATH, which needs no restart), then run this command with the same, then take OLD away. It may be cut short and run again.

In an embedded installation without --encryption-key, this command makes the new key and puts it before the others in encryption.key.`
}

// Validate refuses keys that are none, as part of the command line.
func (c rotateKeyCmd) Validate() error {
	if c.Old != "" && c.EncryptionKey == "" {
		return errors.New("--old goes with --encryption-key, the new key")
	}
	if c.Old != "" {
		if _, err := seal.ParseKeys(c.Old); err != nil {
			return fmt.Errorf("--old: %w", err)
		}
	}
	return c.CheckKey()
}

// Run encrypts every secret with the current key that is not. The value by which a
// wrong key is known comes last: as long as that is sealed with an older key, the
// rotation is not finished.
func (c rotateKeyCmd) Run(ctx context.Context, s cli.Env) error {
	if c.EncryptionKey == "" && c.DatabaseURL != "" {
		return seal.ErrNoKey
	}
	return c.With(ctx, s, func(d *db.DB) error {
		return d.WithAdvisoryLock(ctx, "rotation of the encryption key", func(ctx context.Context) error {
			return c.rotate(ctx, d, s)
		})
	})
}

func (c rotateKeyCmd) rotate(ctx context.Context, d *db.DB, s cli.Env) error {
	keys, err := c.begin(ctx, d)
	if err != nil {
		return err
	}
	prefix, err := keys.Prefix()
	if err != nil {
		return err
	}
	reseal := func(c db.SealedColumn, id string, sealed []byte) ([]byte, error) {
		return keys.Reseal(sealed, seal.Context(c.Kind, id))
	}
	// It comes first: each batch of secrets is a transaction.
	if err := d.Audit(ctx, database.ByCommand(domain.AuditEntry{Operation: "encryption-key rotate"})); err != nil {
		return err
	}
	n, failed, err := d.Reseal(ctx, db.SealedColumns, prefix, reseal)
	for _, fault := range failed {
		fmt.Fprintln(s.Err, "partnerapi:", fault)
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(s.Out, "%s encrypted with the new key\n", output.Counted(n, "secret was", "secrets were"))
	if len(failed) > 0 {
		return fmt.Errorf("%s not: keep the older key, and see above", output.Counted(len(failed), "secret was", "secrets were"))
	}

	check, err := d.EncryptionCheck(ctx)
	if err != nil {
		return err
	}
	if _, err = database.SetCheck(ctx, d, keys, check); err != nil { // another process may have set it: then no secret is stored
		return err
	}
	place := "--encryption-key of every process"
	if c.EncryptionKey == "" {
		place = c.KeyFile()
	}
	fmt.Fprintf(s.Out, "older keys are needed for backups of before only: take them out of %s\n", place)
	return nil
}

// begin returns the keys, of which the first is the new one. In an embedded
// installation it is made, unless an earlier rotation was cut short.
func (c rotateKeyCmd) begin(ctx context.Context, d *db.DB) (*seal.Keys, error) {
	used, err := d.AnySealed(ctx, db.SealedColumns)
	if err != nil {
		return nil, err
	}
	flags := c.KeyFlags
	if c.Old != "" {
		flags.EncryptionKey += "," + c.Old
	}
	keys, err := flags.Keys(c.Flags, used)
	if err != nil {
		return nil, err
	}
	if err := database.CheckKeys(ctx, d, keys, used); err != nil || c.EncryptionKey != "" {
		return keys, err
	}
	check, err := d.EncryptionCheck(ctx)
	if err != nil {
		return nil, err
	}
	if finished, err := database.IsCurrent(keys, check); err != nil || !finished {
		return keys, err
	}
	return keys, seal.AddKey(c.KeyFile())
}
