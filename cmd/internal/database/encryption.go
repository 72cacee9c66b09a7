package database

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	"partnerapi/db"
	"partnerapi/platform/seal"
)

// KeyFlags select the encryption key of secrets.
type KeyFlags struct {
	EncryptionKey string `name:"encryption-key" placeholder:"KEY,…" help:"Key that encrypts the secrets in the database: 32 bytes in base64, or file:PATH. Older keys can follow and are used only for decryption. Default with the embedded database: encryption.key in --data-dir, which the first start creates. Otherwise, there is no default."`
}

// CheckKey returns an error if the flag is given and its keys cannot be read.
func (f KeyFlags) CheckKey() error {
	if f.EncryptionKey == "" {
		return nil
	}
	if _, err := seal.ParseKeys(f.EncryptionKey); err != nil {
		return fmt.Errorf("--encryption-key: %w", err)
	}
	return nil
}

// KeyFile returns the path of an embedded installation's key.
func (f Flags) KeyFile() string { return filepath.Join(f.DataDir, "encryption.key") }

// OpenKeys returns the keys of a database. They are nil if there are none; it then warns if the database has secrets. Keys
// that cannot decrypt the stored secrets are an error.
func (f KeyFlags) OpenKeys(ctx context.Context, d *db.DB, at Flags, log *slog.Logger) (*seal.Keys, error) {
	hasSecrets, err := d.AnySealed(ctx, db.SealedColumns)
	if err != nil {
		return nil, err
	}
	keys, err := f.Keys(at, hasSecrets)
	if err != nil {
		return nil, err
	}
	if keys != nil {
		return keys, CheckKeys(ctx, d, keys, hasSecrets)
	}
	if hasSecrets {
		log.WarnContext(ctx, "the database contains secrets, such as the credentials of directories; set "+
			"--encryption-key to decrypt them")
	}
	return nil, nil
}

// Keys reads the keys of the flag or, without it, those in the key file of an embedded database. It creates the file if it
// is missing, but returns an error if the database then has secrets. For another database without the flag it returns nil.
func (f KeyFlags) Keys(at Flags, hasSecrets bool) (*seal.Keys, error) {
	switch {
	case f.EncryptionKey != "":
		return seal.ParseKeys(f.EncryptionKey)
	case at.DatabaseURL != "":
		return nil, nil
	}
	if _, err := os.Stat(at.KeyFile()); errors.Is(err, fs.ErrNotExist) && hasSecrets {
		return nil, fmt.Errorf("%s is missing, but the database contains secrets that are encrypted with its key; "+
			"restore the file from a backup, or set --encryption-key to its key", at.KeyFile())
	}
	return seal.FileKeys(at.KeyFile())
}

// CheckContext is the sealing context of the check value, by which a wrong key is detected.
var CheckContext = seal.Context("check", "")

// CheckKeys returns an error if the database has secrets and the keys do not decrypt its check value. If that is
// missing or, without secrets, not decrypted, it stores a new one, and starts over if another process did so meanwhile.
func CheckKeys(ctx context.Context, d *db.DB, keys *seal.Keys, hasSecrets bool) error {
	for {
		check, err := d.EncryptionCheck(ctx)
		if err != nil {
			return err
		}
		if check != nil {
			switch _, err := keys.Open(check, CheckContext); {
			case err == nil:
				return nil
			case hasSecrets:
				return fmt.Errorf("the secrets in the database, such as the credentials of directories, are %w; set "+
					"--encryption-key to their key or, if a rotation was started, to NEW,OLD", err)
			}
		}
		if set, err := SetCheck(ctx, d, keys, check); err != nil || set {
			return err
		}
	}
}

// SetCheck stores a check value of the first key in place of old. It returns false if another process has replaced old.
func SetCheck(ctx context.Context, d *db.DB, keys *seal.Keys, old []byte) (bool, error) {
	sealed, err := keys.Seal(nil, CheckContext) // of no text: whether it can be decrypted is the check
	if err != nil {
		return false, err
	}
	return d.SetEncryptionCheck(ctx, old, sealed)
}

// IsCurrent reports whether a value was sealed with the first key, which new secrets are sealed with.
func IsCurrent(keys *seal.Keys, sealed []byte) (bool, error) {
	prefix, err := keys.Prefix()
	return bytes.HasPrefix(sealed, prefix), err
}
