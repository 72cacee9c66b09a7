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

// EncryptionKey is the command encryption-key, which generates and rotates the key of secrets.
type EncryptionKey struct {
	New    newKeyCmd    `cmd:"" default:"1" help:"Create a key for --encryption-key and print it." example:"encryption-key new"`
	Rotate rotateKeyCmd `cmd:"" help:"Encrypt the secrets in the database with a new key." example:"encryption-key rotate --encryption-key file:encryption.key"`
}

type newKeyCmd struct{}

// Run prints a new key.
func (newKeyCmd) Run(s cli.Env) error {
	_, err := fmt.Fprintln(s.Out, seal.NewKey())
	return err
}

type rotateKeyCmd struct {
	database.Flags
	database.KeyFlags
	Old string `env:"-" placeholder:"KEY" help:"The previous key, in base64 or as file:PATH, if --encryption-key does not already include it."`
}

func (rotateKeyCmd) Help() string {
	return `First, create a key with partnerapi encryption-key. Next, restart every process with --encryption-key NEW,OLD. With file:PATH, put NEW before OLD in the file instead; no restart is needed. Then run this command with the same keys, and finally remove OLD. If the command is interrupted, run it again.

With an embedded database and without --encryption-key, this command creates the new key itself and puts it first in encryption.key.`
}

// Validate rejects invalid keys, and --old without --encryption-key; kong calls it while parsing.
func (c rotateKeyCmd) Validate() error {
	if c.Old != "" && c.EncryptionKey == "" {
		return errors.New("--old requires --encryption-key with the new key")
	}
	if c.Old != "" {
		if _, err := seal.ParseKeys(c.Old); err != nil {
			return fmt.Errorf("--old: %w", err)
		}
	}
	return c.CheckKey()
}

// Run reencrypts all secrets with the new key, under a lock, so that one process does it at a time. A database other
// than the embedded one needs --encryption-key.
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

// rotate reencrypts the secrets with the new key, and then the check value, by which a wrong key is detected. If some
// secrets cannot be decrypted, it names them and fails. The check value then stays, as the rotation is incomplete.
func (c rotateKeyCmd) rotate(ctx context.Context, d *db.DB, s cli.Env) error {
	keys, err := c.prepareKeys(ctx, d)
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
	// The audit entry comes first, as each batch of secrets is its own transaction.
	if err := d.Audit(ctx, database.AsCommand(domain.AuditEntry{Operation: "encryption-key rotate"})); err != nil {
		return err
	}
	n, failed, err := d.Reseal(ctx, db.SealedColumns, prefix, reseal)
	for _, fault := range failed {
		fmt.Fprintln(s.Err, "partnerapi:", fault)
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(s.Out, "%s encrypted with the new key\n", output.Plural(n, "secret was", "secrets were"))
	if len(failed) > 0 {
		return fmt.Errorf("%s not encrypted with the new key; keep the old key and see the errors above", output.Plural(len(failed), "secret was", "secrets were"))
	}

	check, err := d.EncryptionCheck(ctx)
	if err != nil {
		return err
	}
	if _, err = database.SetCheck(ctx, d, keys, check); err != nil { // that another process has set it is no failure
		return err
	}
	place := "every process's --encryption-key"
	if c.EncryptionKey == "" {
		place = c.KeyFile()
	}
	fmt.Fprintf(s.Out, "only earlier backups still need the old keys; remove the old keys from %s\n", place)
	return nil
}

// prepareKeys returns the keys, the new one first. Without --encryption-key they are those in the key file of the
// embedded database. It then adds a new key to the file, unless an interrupted rotation has added one already.
func (c rotateKeyCmd) prepareKeys(ctx context.Context, d *db.DB) (*seal.Keys, error) {
	hasSecrets, err := d.AnySealed(ctx, db.SealedColumns)
	if err != nil {
		return nil, err
	}
	flags := c.KeyFlags
	if c.Old != "" {
		flags.EncryptionKey += "," + c.Old
	}
	keys, err := flags.Keys(c.Flags, hasSecrets)
	if err != nil {
		return nil, err
	}
	if err := database.CheckKeys(ctx, d, keys, hasSecrets); err != nil || c.EncryptionKey != "" {
		return keys, err
	}
	check, err := d.EncryptionCheck(ctx) // CheckKeys has stored one if there was none
	if err != nil {
		return nil, err
	}
	if isCurrent, err := database.IsCurrent(keys, check); err != nil || !isCurrent { // a rotation was interrupted
		return keys, err
	}
	return keys, seal.AddKey(c.KeyFile()) // keys read the file again, and then seal with the new key
}
